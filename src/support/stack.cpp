// SPDX-License-Identifier: Apache-2.0
#include <baton/support/stack.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BATON_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define BATON_ASAN 1
#endif
#ifdef BATON_ASAN
#include <sanitizer/common_interface_defs.h>

#include <exception>
#endif

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>

#include <exception>
#endif

namespace baton::support {
namespace {

constexpr size_t kSegment = size_t(64) << 20;
constexpr size_t kGuard = size_t(64) << 10;
constexpr size_t kMaxSegments = (size_t(4) << 30) / kSegment;

struct Bounds {
  uintptr_t low = 0, high = 0;
};
struct Portable;

/// The stacks of a thread. Trivially destructible and zero-initialised, so that access is one load.
struct ThreadStacks {
  Bounds bounds;  // of the stack that it runs on
  bool known;     // whether `bounds` was asked for
  size_t segments_in_use;
  void* cached;  // a segment for the next use
  Portable* starting;
};
constinit thread_local ThreadStacks stacks = {};

/// Gives the cached segment back when the thread ends.
struct CacheOwner {
  ~CacheOwner() {
    if (stacks.cached) munmap(stacks.cached, kSegment);
    stacks.cached = nullptr;
  }
};

[[gnu::noinline]] void FindBounds() noexcept {
  stacks.known = true;
  const uintptr_t here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  pthread_attr_t attr;
  if (pthread_getattr_np(pthread_self(), &attr) == 0) {
    void* low = nullptr;
    size_t size = 0, guard = 0;
    pthread_attr_getstack(&attr, &low, &size);
    pthread_attr_getguardsize(&attr, &guard);
    pthread_attr_destroy(&attr);
    // Versions of glibc differ in whether the guard is inside of the stack; twice is harmless.
    const uintptr_t from = reinterpret_cast<uintptr_t>(low) + guard;
    if (low && here > from && here < reinterpret_cast<uintptr_t>(low) + size) {
      stacks.bounds = {from, reinterpret_cast<uintptr_t>(low) + size};
      return;
    }
  }
  // No /proc, or a stack that is not this thread's own: leave it at once. RunOnFreshStack sets bounds that are right.
  stacks.bounds = {here, here};
}

void* NewSegment() {
  if (stacks.cached) {
    void* s = stacks.cached;
    stacks.cached = nullptr;
    return s;
  }
  if (stacks.segments_in_use >= kMaxSegments) {
    throw std::runtime_error(
        "recursion needs more than 4 GiB of stack: it has no end, or the program is nested too deep");
  }
  void* s =
      mmap(nullptr, kSegment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (s == MAP_FAILED) throw std::bad_alloc();
  if (mprotect(s, kGuard, PROT_NONE) != 0) {
    munmap(s, kSegment);
    throw std::bad_alloc();
  }
  return s;
}

void FreeSegment(void* s) noexcept {
  static thread_local CacheOwner owner;
  (void)owner;
  if (stacks.cached) {
    munmap(s, kSegment);
    return;
  }
  // One segment stays for the recursion that goes to and fro over the end of a stack, but only its first MiB in memory.
  constexpr size_t kKeep = size_t(1) << 20;
  madvise(static_cast<char*>(s) + kGuard, kSegment - kGuard - kKeep, MADV_DONTNEED);
  stacks.cached = s;
}

/// Takes a segment for its lifetime, and gives back stack and bounds also when an exception passes.
class OnSegment {
 public:
  OnSegment() : saved_(stacks.bounds), segment_(NewSegment()) {
    ++stacks.segments_in_use;
    const uintptr_t low = reinterpret_cast<uintptr_t>(segment_);
    stacks.bounds = {low + kGuard, low + kSegment};
  }
  ~OnSegment() {
    stacks.bounds = saved_;
    --stacks.segments_in_use;
    FreeSegment(segment_);
  }
  char* low() const { return static_cast<char*>(segment_) + kGuard; }
  char* top() const { return static_cast<char*>(segment_) + kSegment; }

 private:
  Bounds saved_;
  void* segment_;
};

}  // namespace

#if defined(__x86_64__)
// The unwinder finds the caller through the frame pointer, so exceptions and backtraces cross the switch.
extern "C" void baton_call_on_stack(void (*fn)(void*), void* arg, void* top);
asm(R"(
    .text
    .p2align 4
    .hidden baton_call_on_stack
    .globl baton_call_on_stack
    .type baton_call_on_stack, @function
baton_call_on_stack:
    .cfi_startproc
    endbr64
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    movq %rdi, %rax
    movq %rsi, %rdi
    movq %rdx, %rsp
    callq *%rax
    movq %rbp, %rsp
    popq %rbp
    .cfi_def_cfa %rsp, 8
    retq
    .cfi_endproc
    .size baton_call_on_stack, .-baton_call_on_stack
)");
#elif defined(__aarch64__)
extern "C" void baton_call_on_stack(void (*fn)(void*), void* arg, void* top);
asm(R"(
    .text
    .p2align 4
    .hidden baton_call_on_stack
    .globl baton_call_on_stack
    .type baton_call_on_stack, %function
baton_call_on_stack:
    .cfi_startproc
    hint #34
    stp x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset 29, -16
    .cfi_offset 30, -8
    mov x29, sp
    .cfi_def_cfa x29, 16
    mov x9, x0
    mov x0, x1
    mov sp, x2
    blr x9
    mov sp, x29
    .cfi_def_cfa sp, 16
    ldp x29, x30, [sp], #16
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size baton_call_on_stack, .-baton_call_on_stack
)");
#else
namespace {
struct Portable {
  void (*fn)(void*);
  void* arg;
  std::exception_ptr error;
  ucontext_t back, there;
};
void PortableEntry() {
  Portable* p = stacks.starting;
  try {
    p->fn(p->arg);
  } catch (...) {
    p->error = std::current_exception();
  }
  setcontext(&p->back);
}
void baton_call_on_stack(void (*fn)(void*), void* arg, void* top) {
  Portable p;
  p.fn = fn;
  p.arg = arg;
  getcontext(&p.there);
  p.there.uc_link = nullptr;
  p.there.uc_stack.ss_sp = static_cast<char*>(top) - (kSegment - kGuard);
  p.there.uc_stack.ss_size = kSegment - kGuard;
  makecontext(&p.there, PortableEntry, 0);
  stacks.starting = &p;
  swapcontext(&p.back, &p.there);
  if (p.error) std::rethrow_exception(p.error);
}
}  // namespace
#endif

bool StackNearEnd(size_t reserve) noexcept {
  if (!stacks.known) [[unlikely]] {
    FindBounds();
  }
  const uintptr_t here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const uintptr_t low = stacks.bounds.low, size = stacks.bounds.high - low;
  if (reserve > size / 2) reserve = size / 2;
  // One unsigned comparison for "not within" and "too near".
  return here - low - reserve >= size - reserve;
}

void RunOnFreshStack(void (*fn)(void*), void* arg) {
  if (!stacks.known) FindBounds();
#ifdef BATON_ASAN
  // The sanitizer is told of both switches; the exception waits until we are back.
  struct Trampoline {
    void (*fn)(void*);
    void* arg;
    std::exception_ptr error;
    const void* from_low;
    size_t from_size;
    static void Entry(void* p) {
      Trampoline* t = static_cast<Trampoline*>(p);
      __sanitizer_finish_switch_fiber(nullptr, &t->from_low, &t->from_size);
      try {
        t->fn(t->arg);
      } catch (...) {
        t->error = std::current_exception();
      }
      __sanitizer_start_switch_fiber(nullptr, t->from_low, t->from_size);
    }
  } t{fn, arg, nullptr, nullptr, 0};
  {
    OnSegment segment;
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, segment.low(), size_t(segment.top() - segment.low()));
    baton_call_on_stack(&Trampoline::Entry, &t, segment.top());
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
  }
  if (t.error) std::rethrow_exception(t.error);
#else
  OnSegment segment;
  baton_call_on_stack(fn, arg, segment.top());
#endif
}

}  // namespace baton::support
