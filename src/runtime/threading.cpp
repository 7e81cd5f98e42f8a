// SPDX-License-Identifier: Apache-2.0
// One caller at a time owns the pool. A fork is one exchange of `word`, a join one decrement of `pending` by each
// thread that ran a part. Each thread of a region has its own units, which it takes one by one, in order; one that
// has run out takes those of others. So a thread that has no processor holds up nothing that it has not begun, and
// threads that are all awake have the same parts from region to region. A thread that comes late takes nothing, and
// does not read the job, which can be replaced under its eyes.
#include <baton/runtime/error.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/threading.h>
#include <baton/support/machine.h>
#include <baton/support/text.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>

namespace baton::runtime::threading {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int64_t kSpinNanoseconds = 1000000;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int64_t Now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

void FutexWait(std::atomic<uint32_t>* word, uint32_t expected) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void FutexWake(std::atomic<uint32_t>* word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

/// The half of a word that a futex looks at.
std::atomic<uint32_t>* LowHalf(std::atomic<uint64_t>* word) {
  static_assert(std::endian::native == std::endian::little);
  return reinterpret_cast<std::atomic<uint32_t>*>(word);
}

/// Looks for a change so often (about 45 us) before it offers the processor to others; with more threads than
/// processors only a moment, since what we wait for may need ours.
constexpr int kHot = 2000, kHotCrowded = 20;

/// Spins until a word has another value than `value`; false where it keeps it. A `patient` thread goes on for about a
/// millisecond, giving the processor away; a caller sleeps instead, since Linux 6.18 takes a slice of its later time
/// for each sched_yield. One function for all waits: the library is to be small.
[[gnu::noinline]] bool SpinWhile(const std::atomic<uint64_t>& word, uint64_t value, int hot, bool patient) {
  const auto changed = [&](int times) {
    for (int i = 0; i < times; ++i) {
      if (word.load(std::memory_order_acquire) != value) return true;
      Pause();
    }
    return false;
  };
  if (changed(hot)) return true;
  if (!patient) return false;
  const int64_t end = Now() + kSpinNanoseconds;
  do {
    if (changed(16)) return true;
    sched_yield();
  } while (Now() < end);
  return false;
}

struct Failure {
  int task = INT_MAX;
  int code = 0;
  std::exception_ptr error;
};

/// Throws what a task threw; 0 where none failed.
int ResultOf(const Failure& f) {
  if (f.error) std::rethrow_exception(f.error);
  return f.code;
}

struct Job {
  BatonParallelTask fn = nullptr;
  void* closure = nullptr;
  int num_tasks = 0;
  // Written under the lock by a failing task. The lowest task wins, so that the error does not depend on timing.
  std::atomic<uint32_t> failure_lock{0};
  std::atomic<bool> failed{false};
  Failure failure;
};

thread_local bool in_region = false;

/// The error in this thread's slot, as an exception that can go to another thread; null if there is none.
std::exception_ptr TakeSlot() {
  BatonObject* object = nullptr;
  BatonErrorTake(&object);
  if (!object) return nullptr;
  return std::make_exception_ptr(Error(ObjectAccess::AdoptPtr<ErrorObj>(reinterpret_cast<Object*>(object))));
}

/// Runs one task; the failure that it gives, if any.
bool RunTask(const Job& job, int task, Failure* out) {
  int code = 0;
  std::exception_ptr error;
  try {
    code = job.fn(task, job.num_tasks, job.closure);
    if (code == 0) return true;
    error = TakeSlot();
  } catch (...) {
    code = -1;
    error = std::current_exception();
  }
  out->task = task;
  out->code = code;
  out->error = std::move(error);
  return false;
}

/// Part `unit` of `units` of a job's tasks.
void RunUnit(Job* job, int64_t unit, int64_t units) {
  const int end = static_cast<int>((unit + 1) * job->num_tasks / units);
  for (int task = static_cast<int>(unit * job->num_tasks / units); task < end; ++task) {
    Failure f;
    if (RunTask(*job, task, &f)) continue;
    while (job->failure_lock.exchange(1, std::memory_order_acquire)) Pause();
    if (f.task < job->failure.task) std::swap(job->failure, f);
    job->failed.store(true, std::memory_order_relaxed);
    job->failure_lock.store(0, std::memory_order_release);
  }
}

/// The fields of `word`: the number of the region, its units and its threads, 40, 13 and 11 bits of it.
constexpr int kUnitBits = 13, kThreadBits = 11, kRegionShift = kUnitBits + kThreadBits;
constexpr int kMaxUnits = (1 << kUnitBits) - 1;

/// How many of a thread's units are taken, behind the number of the region that this holds for.
struct alignas(64) Taken {
  std::atomic<uint64_t> word{0};
};

struct Pool {
  // Each of the words that threads wait on has its own cache line.
  alignas(64) std::atomic<uint64_t> word{0};
  alignas(64) std::atomic<uint64_t> pending{0};  // units that have not ended
  std::atomic<uint32_t> caller_sleeps{0};
  alignas(64) std::atomic<uint32_t> sleepers{0};
  std::atomic<uint32_t> wake{0};
  alignas(64) std::atomic<uint32_t> owned{0};
  Job job;
  int workers = 0;                  // started
  std::atomic<int> requested{0};    // by SetNumThreads; 0: not
  std::atomic<int> num_threads{0};  // 0: not yet known
  std::atomic<int> hot{kHot};

  int Threads();
  void Start(int count);
  void WorkerMain(int index);
  int Take(int thread, uint64_t region, int count);
  void Work(int index, uint64_t region);
  void Run(int participants);

  Taken taken[kMaxThreads];
};

// Storage that is never destroyed: workers may look at it while the process ends.
alignas(64) unsigned char storage[sizeof(Pool)];
Pool* const pool = reinterpret_cast<Pool*>(storage);

/// After a fork the child has no workers: it begins anew, with the number of threads that was asked for. A region that
/// the forking thread was within cannot be finished in the child, which has to call exec or _exit there, as POSIX says.
void InChild() {
  const int requested = pool->requested.load();
  new (storage) Pool();
  pool->requested.store(requested);
}

const bool ready = [] {
  new (storage) Pool();
  pthread_atfork(nullptr, nullptr, InChild);
  return true;
}();

int FromEnvironment() {
  const char* text = getenv("BATON_NUM_THREADS");
  if (text && *text) {
    char* end = nullptr;
    const long n = strtol(text, &end, 10);
    if (*end != '\0' || n < 1 || n > kMaxThreads) {
      throw RuntimeError(
          support::Cat("BATON_NUM_THREADS is `", text, "`: expected a whole number from 1 to 1024, or unset it"));
    }
    return static_cast<int>(n);
  }
  // Not ours, so what we do not understand in it is passed over. A list gives the outermost level first.
  text = getenv("OMP_NUM_THREADS");
  if (text) {
    const long n = strtol(text, nullptr, 10);
    if (n >= 1 && n <= kMaxThreads) return static_cast<int>(n);
  }
  const int cpus = support::AvailableCpus();
  return cpus < kMaxThreads ? cpus : kMaxThreads;
}

int Pool::Threads() {
  int n = num_threads.load(std::memory_order_relaxed);
  if (n == 0) [[unlikely]] {
    n = requested.load(std::memory_order_relaxed);
    if (n == 0) n = FromEnvironment();
    hot.store(n > support::AvailableCpus() ? kHotCrowded : kHot, std::memory_order_relaxed);
    num_threads.store(n, std::memory_order_relaxed);
  }
  return n;
}

struct StartArgument {
  Pool* pool;
  int index;
};

/// Ensures `count` workers. There are fewer if the system refuses more threads, which only costs time.
void Pool::Start(int count) {
  if (workers >= count) return;
  pthread_attr_t attr;
  if (pthread_attr_init(&attr) != 0) return;
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attr, size_t(2) << 20);
  // Signals are for the threads of the program.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  while (workers < count) {
    StartArgument* argument = new (std::nothrow) StartArgument{this, workers + 1};
    if (!argument) break;
    pthread_t thread;
    const int error = pthread_create(
        &thread, &attr,
        [](void* p) -> void* {
          const StartArgument a = *static_cast<StartArgument*>(p);
          delete static_cast<StartArgument*>(p);
          a.pool->WorkerMain(a.index);
          return nullptr;
        },
        argument);
    if (error != 0) {
      delete argument;
      break;
    }
    ++workers;
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  pthread_attr_destroy(&attr);
}

void Pool::WorkerMain(int index) {
  if (const char* bind = getenv("BATON_BIND_THREADS"); bind && *bind == '1') {
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
      int skip = index % CPU_COUNT(&allowed);
      for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &allowed) && skip-- == 0) {
          CPU_ZERO(&one);
          CPU_SET(cpu, &one);
          sched_setaffinity(0, sizeof(one), &one);
          break;
        }
      }
    }
  }
  in_region = true;
  // A job that was posted before this thread looked for the first time counts as new: the words of jobs are never 0.
  uint64_t seen = 0;
  for (;;) {
    if (!SpinWhile(word, seen, hot.load(std::memory_order_relaxed), true)) {
      const uint32_t ticket = wake.load(std::memory_order_seq_cst);
      sleepers.fetch_add(1, std::memory_order_seq_cst);
      // The caller posts first and asks for sleepers then; we count ourselves first and look then. One sees the other.
      if (word.load(std::memory_order_seq_cst) == seen) FutexWait(&wake, ticket);
      sleepers.fetch_sub(1, std::memory_order_seq_cst);
      continue;
    }
    seen = word.load(std::memory_order_acquire);
    Work(index, seen);
  }
}

/// The next of `count` units that a thread has in a region; -1 where none is left, or the region is over. Words of
/// earlier regions count as 0: so nothing has to be cleared. All units of a region are taken when it ends.
int Pool::Take(int thread, uint64_t region, int count) {
  std::atomic<uint64_t>& word = taken[thread].word;
  constexpr uint64_t kCount = (uint64_t(1) << kRegionShift) - 1;
  region &= ~kCount;
  uint64_t seen = word.load(std::memory_order_acquire);
  for (;;) {
    const auto age = static_cast<int64_t>((seen & ~kCount) - region);
    const int next = age < 0 ? 0 : static_cast<int>(seen & kCount);
    if (age > 0 || next >= count) return -1;
    if (word.compare_exchange_weak(seen, region | (next + 1), std::memory_order_acq_rel)) return next;
  }
}

/// Runs units, first those of thread `index`, until none is left.
void Pool::Work(int index, uint64_t region) {
  const int threads = static_cast<int>(region) & ((1 << kThreadBits) - 1);
  const int units = static_cast<int>(region >> kThreadBits) & kMaxUnits;
  uint64_t done = 0;
  for (int k = 0; k < threads && index < threads; ++k) {
    const int thread = (index + k) % threads, first = thread * units / threads;
    const int count = (thread + 1) * units / threads - first;
    for (int u; (u = Take(thread, region, count)) >= 0; ++done) RunUnit(&job, first + u, units);
  }
  // The caller sleeps until this changes, not until it is 0.
  if (done && pending.fetch_sub(done, std::memory_order_seq_cst) && caller_sleeps.load(std::memory_order_seq_cst)) {
    FutexWake(LowHalf(&pending), 1);
  }
}

/// Posts the job, works and waits for units that others have begun. The caller owns the pool.
void Pool::Run(int participants) {
  const int units = job.num_tasks < kMaxUnits ? job.num_tasks : kMaxUnits;
  pending.store(static_cast<uint64_t>(units), std::memory_order_relaxed);
  const uint64_t number = (word.load(std::memory_order_relaxed) >> kRegionShift) + 1;
  const uint64_t region =
      number << kRegionShift | static_cast<uint64_t>(units) << kThreadBits | static_cast<uint64_t>(participants);
  word.exchange(region, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst)) {
    wake.fetch_add(1, std::memory_order_seq_cst);
    FutexWake(&wake, INT_MAX);
  }
  in_region = true;
  Work(0, region);
  in_region = false;
  for (uint64_t left; (left = pending.load(std::memory_order_acquire)) != 0;) {
    if (SpinWhile(pending, left, hot.load(std::memory_order_relaxed), false)) continue;
    caller_sleeps.store(1, std::memory_order_seq_cst);
    if (pending.load(std::memory_order_seq_cst) == left) FutexWait(LowHalf(&pending), static_cast<uint32_t>(left));
    caller_sleeps.store(0, std::memory_order_seq_cst);
  }
}

/// All tasks on this thread, as if there were that many threads: the same parts, so the same result.
int RunSerially(BatonParallelTask fn, void* closure, int num_tasks) {
  Job job;
  job.fn = fn;
  job.closure = closure;
  job.num_tasks = num_tasks;
  const bool was = in_region;
  in_region = true;
  RunUnit(&job, 0, 1);
  in_region = was;
  return ResultOf(job.failure);
}

}  // namespace

bool InParallelRegion() { return in_region; }

int NumThreads() { return pool->Threads(); }

void SetNumThreads(int n) {
  if (n < 0 || n > kMaxThreads) {
    throw RuntimeError(support::Cat("the number of threads is ", n, ": expected 1 to 1024, or 0 for the default"));
  }
  if (in_region) throw RuntimeError("the number of threads cannot be set within a parallel region");
  while (pool->owned.exchange(1, std::memory_order_acquire)) sched_yield();
  pool->requested.store(n, std::memory_order_relaxed);
  pool->num_threads.store(0, std::memory_order_relaxed);
  pool->owned.store(0, std::memory_order_release);
}

int Launch(BatonParallelTask fn, void* closure, int num_tasks) {
  const int threads = pool->Threads();
  if (num_tasks <= 0) num_tasks = threads;
  int participants = num_tasks < threads ? num_tasks : threads;
  if (participants == 1 || in_region || pool->owned.exchange(1, std::memory_order_acquire)) {
    return RunSerially(fn, closure, num_tasks);
  }
  pool->Start(participants - 1);
  if (participants > pool->workers + 1) participants = pool->workers + 1;
  Job& job = pool->job;
  job.fn = fn;
  job.closure = closure;
  job.num_tasks = num_tasks;
  if (participants == 1) {
    pool->owned.store(0, std::memory_order_release);
    return RunSerially(fn, closure, num_tasks);
  }
  pool->Run(participants);
  if (!job.failed.load(std::memory_order_relaxed)) [[likely]] {
    pool->owned.store(0, std::memory_order_release);
    return 0;
  }
  Failure f = std::move(job.failure);
  job.failure = Failure();
  job.failed.store(false, std::memory_order_relaxed);
  pool->owned.store(0, std::memory_order_release);
  return ResultOf(f);
}

}  // namespace baton::runtime::threading

using namespace baton::runtime;             // NOLINT: the C functions below
using namespace baton::runtime::threading;  // NOLINT

extern "C" {

int BatonBackendParallelLaunch(BatonParallelTask fn, void* closure, int num_tasks) {
  try {
    if (!in_region) CheckInterrupt();  // between the steps of a model; a fraction of what a fork takes
    return Launch(fn, closure, num_tasks);
  } catch (...) {
    return CatchToSlot();
  }
}

int BatonBackendNumThreads(void) {
  try {
    return NumThreads();
  } catch (...) {
    return 1;
  }
}

int BatonBackendSetError(const char* message) {
  BatonErrorSet("RuntimeError", message ? message : "error in generated code");
  return -1;
}

void* BatonBackendAlloc(uint64_t size) {
  void* p = nullptr;
  if (size > SIZE_MAX - 64 || posix_memalign(&p, 64, size ? static_cast<size_t>(size) : 1) != 0) return nullptr;
  return p;
}

void BatonBackendFree(void* memory) { free(memory); }

__attribute__((format(printf, 1, 0))) static int SetIndexError(const char* format, int64_t index, int64_t extent) {
  char text[512];
  snprintf(text, sizeof text, format, index, extent);
  BatonErrorSet("IndexError", text);
  return -1;
}

const BatonBackendApi* BatonBackendGetApi(void) {
  static const BatonBackendApi api = {sizeof(BatonBackendApi),    1,
                                      BatonBackendParallelLaunch, BatonBackendNumThreads,
                                      BatonBackendSetError,       BatonBackendAlloc,
                                      BatonBackendFree,           BatonBackendGetFunction,
                                      BatonBackendCallFunction,   SetIndexError};
  return &api;
}

}  // extern "C"
