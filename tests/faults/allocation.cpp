// SPDX-License-Identifier: Apache-2.0
#include "allocation.h"

#include <baton/runtime/block_watch.h>
#include <baton/runtime/error.h>
#include <doctest/doctest.h>
#include <malloc.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BATON_OWN_MALLOC 0
#else
#define BATON_OWN_MALLOC 1
#endif

namespace {

// Each thread's own: one that does not ask for it is never failed.
thread_local bool armed = false, fail_rest = false, has_failed = false;
thread_local int64_t fail_at = -1, asked = 0, living = 0;

/// Counts an allocation; false if it shall fail.
bool Allow() {
  if (!armed) return true;
  const int64_t k = asked++;
  if (fail_at >= 0 && (k == fail_at || (fail_rest && k > fail_at))) {
    has_failed = true;
    return false;
  }
  ++living;
  return true;
}
void Freed() {
  if (armed) --living;
}

void WatchBlock(int step) {
  if (step < 0)
    Freed();
  else if (!Allow())
    throw std::bad_alloc();
}

}  // namespace

#if BATON_OWN_MALLOC
#define BATON_EXPORT extern "C" __attribute__((visibility("default")))
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}
BATON_EXPORT void* malloc(size_t n) {
  if (!Allow()) return errno = ENOMEM, nullptr;
  return __libc_malloc(n);
}
BATON_EXPORT void* calloc(size_t n, size_t m) {
  if (!Allow()) return errno = ENOMEM, nullptr;
  return __libc_calloc(n, m);
}
BATON_EXPORT void* realloc(void* p, size_t n) {
  if (!Allow()) return errno = ENOMEM, nullptr;
  if (p) Freed();
  return __libc_realloc(p, n);
}
BATON_EXPORT void* memalign(size_t a, size_t n) {
  if (!Allow()) return errno = ENOMEM, nullptr;
  return __libc_memalign(a, n);
}
BATON_EXPORT void* aligned_alloc(size_t a, size_t n) { return memalign(a, n); }
BATON_EXPORT int posix_memalign(void** out, size_t a, size_t n) {
  void* p = memalign(a, n);
  if (!p) return ENOMEM;
  *out = p;
  return 0;
}
BATON_EXPORT void free(void* p) {
  if (p) Freed();
  __libc_free(p);
}
#else
// The sanitizers' malloc stays; what C++ allocates is ours to fail.
void* operator new(size_t n) {
  void* p = Allow() ? malloc(n ? n : 1) : nullptr;
  if (!p) throw std::bad_alloc();
  return p;
}
void* operator new[](size_t n) { return operator new(n); }
void* operator new(size_t n, const std::nothrow_t&) noexcept { return Allow() ? malloc(n ? n : 1) : nullptr; }
void* operator new[](size_t n, const std::nothrow_t& t) noexcept { return operator new(n, t); }
void operator delete(void* p) noexcept {
  if (p) Freed();
  free(p);
}
void operator delete[](void* p) noexcept { operator delete(p); }
void operator delete(void* p, size_t) noexcept { operator delete(p); }
void operator delete[](void* p, size_t) noexcept { operator delete(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { operator delete(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { operator delete(p); }
#endif

namespace faults {

bool SeesMalloc() { return BATON_OWN_MALLOC; }

Failing::Failing(int64_t nth, bool for_good) {
  fail_at = nth, fail_rest = for_good;
  asked = living = 0;
  has_failed = false;
  baton::runtime::WatchBlocks(WatchBlock);
  armed = true;
}
void Failing::End() {
  if (!armed) return;
  armed = false;
  baton::runtime::WatchBlocks(nullptr);
}
bool Failing::happened() { return has_failed; }
int64_t Failing::allocations() { return asked; }
int64_t Failing::live() { return living; }

namespace {

Outcome Try(void (*run)()) {
  Outcome out;
  const auto say = [&out](const char* kind, const char* text) {
    out.failed = true;
    out.out_of_memory = !std::strcmp(kind, "MemoryError");
    snprintf(out.text, sizeof out.text, "%s: %s", kind, text);
  };
  try {
    run();
  } catch (const std::bad_alloc&) {
    say("MemoryError", "bad_alloc");
  } catch (const baton::Error& e) {
    say(e.kind().c_str(), e.what());
  } catch (const std::exception& e) {
    say("std::exception", e.what());
  }
  return out;
}

}  // namespace

void EachAllocation(const char* what, void (*run)(), bool absorbs) {
  CAPTURE(what);
  // Tables that are made once and kept are made now.
  for (int i = 0; i < 2; ++i) {
    if (i) {
      Failing first_throw(0, false);
      Try(run);
    }
    BatonErrorPut(nullptr);
    const Outcome first = Try(run);
    REQUIRE_MESSAGE(!first.failed, std::string(first.text));
  }
  int64_t total = 0, left = 0;
  {
    Failing count(-1, false);
    Try(run);
    count.End();
    total = Failing::allocations(), left = Failing::live();
  }
  if (!SeesMalloc() && total == 0) return;
  REQUIRE(total > 0);
  if (SeesMalloc()) CHECK(left == 0);
  constexpr int64_t kAll = 400, kSample = 400;
  int64_t reached = 0, errors = 0;
  for (int64_t k = 0; k < total; k += k < kAll ? 1 : 1 + (total - kAll) / kSample) {
    for (bool for_good : {false, true}) {
      Outcome out;
      int64_t live = 0;
      bool happened = false;
      {
        Failing fail(k, for_good);
        out = Try(run);
        BatonErrorPut(nullptr);
        fail.End();
        live = Failing::live(), happened = Failing::happened();
      }
      CAPTURE(k);
      CAPTURE(for_good);
      if (!happened) continue;
      ++reached;
      errors += out.failed;
      if (out.failed || !absorbs) CHECK_MESSAGE(out.out_of_memory, std::string(out.failed ? out.text : "it went on"));
      if (SeesMalloc()) CHECK(live == 0);
    }
    if (k % 50 == 0) {
      const Outcome again = Try(run);
      REQUIRE_MESSAGE(!again.failed, std::string(again.text));
    }
  }
  CHECK(reached >= (total < kAll ? total : kAll));
  if (reached) CHECK(errors > 0);
  MESSAGE(std::string(what), ": ", total, " allocations, ", reached, " made to fail, ", errors, " errors");
}

}  // namespace faults
