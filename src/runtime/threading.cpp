// SPDX-License-Identifier: Apache-2.0
// One caller at a time owns the pool. A fork is one exchange of `word`, a join one decrement of `pending` by each
// worker that took part. Workers that do not take part never touch the job, so it can be replaced under their eyes.
#include <baton/runtime/error.h>
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
#include <climits>
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

/// Looks for `done()` so often (about 45 us) before it offers the processor to others; with more threads than
/// processors only a moment, since what we wait for may need ours.
constexpr int kHot = 2000, kHotCrowded = 20;

/// Spins until `done()`, giving the processor away after a while; false after about a millisecond.
template <class F>
bool SpinUntil(int hot, F done) {
  for (int i = 0; i < hot; ++i) {
    if (done()) return true;
    Pause();
  }
  const int64_t end = Now() + kSpinNanoseconds;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      Pause();
    }
    sched_yield();
  } while (Now() < end);
  return done();
}

struct Failure {
  int task = INT_MAX;
  int code = 0;
  std::exception_ptr error;
};

struct Job {
  BatonParallelTask fn = nullptr;
  void* closure = nullptr;
  int num_tasks = 0;
  int participants = 0;  // the caller included
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

/// Tasks first, first + step, ... of a job.
void RunTasks(Job* job, int first, int step) {
  for (int task = first; task < job->num_tasks; task += step) {
    Failure f;
    if (RunTask(*job, task, &f)) continue;
    while (job->failure_lock.exchange(1, std::memory_order_acquire)) Pause();
    if (f.task < job->failure.task) std::swap(job->failure, f);
    job->failed.store(true, std::memory_order_relaxed);
    job->failure_lock.store(0, std::memory_order_release);
  }
}

struct Pool {
  // Each of the words that threads wait on has a cache line of its own.
  alignas(64) std::atomic<uint64_t> word{0};  // epoch << 16 | participants
  alignas(64) std::atomic<uint32_t> pending{0};
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
  void Run(int num_tasks);
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
    uint64_t now = seen;
    const auto changed = [&] { return (now = word.load(std::memory_order_acquire)) != seen; };
    if (!SpinUntil(hot.load(std::memory_order_relaxed), changed)) {
      const uint32_t ticket = wake.load(std::memory_order_seq_cst);
      sleepers.fetch_add(1, std::memory_order_seq_cst);
      // The caller posts first and asks for sleepers then; we count ourselves first and look then. One sees the other.
      if ((now = word.load(std::memory_order_seq_cst)) == seen) FutexWait(&wake, ticket);
      sleepers.fetch_sub(1, std::memory_order_seq_cst);
      continue;
    }
    seen = now;
    const int participants = static_cast<int>(now & 0xffff);
    if (index >= participants) continue;
    RunTasks(&job, index, participants);
    if (pending.fetch_sub(1, std::memory_order_seq_cst) == 1 && caller_sleeps.load(std::memory_order_seq_cst)) {
      FutexWake(&pending, 1);
    }
  }
}

/// Posts the job, does the caller's share and waits for the others'. The caller owns the pool.
void Pool::Run(int participants) {
  pending.store(static_cast<uint32_t>(participants - 1), std::memory_order_relaxed);
  const uint64_t epoch = (word.load(std::memory_order_relaxed) >> 16) + 1;
  word.exchange(epoch << 16 | static_cast<uint64_t>(participants), std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst)) {
    wake.fetch_add(1, std::memory_order_seq_cst);
    FutexWake(&wake, INT_MAX);
  }
  in_region = true;
  RunTasks(&job, 0, participants);
  in_region = false;
  const auto done = [&] { return pending.load(std::memory_order_acquire) == 0; };
  while (!SpinUntil(hot.load(std::memory_order_relaxed), done)) {
    caller_sleeps.store(1, std::memory_order_seq_cst);
    const uint32_t left = pending.load(std::memory_order_seq_cst);
    if (left) FutexWait(&pending, left);
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
  Failure f;
  int task = 0;
  while (task < num_tasks && RunTask(job, task, &f)) ++task;
  in_region = was;
  if (f.code == 0) return 0;
  if (f.error) std::rethrow_exception(f.error);
  return f.code;
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
  job.participants = participants;
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
  if (f.error) std::rethrow_exception(f.error);
  return f.code;
}

}  // namespace baton::runtime::threading

using namespace baton::runtime;             // NOLINT: the C functions below
using namespace baton::runtime::threading;  // NOLINT

extern "C" {

int BatonBackendParallelLaunch(BatonParallelTask fn, void* closure, int num_tasks) {
  try {
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

const BatonBackendApi* BatonBackendGetApi(void) {
  static const BatonBackendApi api = {sizeof(BatonBackendApi),    1,
                                      BatonBackendParallelLaunch, BatonBackendNumThreads,
                                      BatonBackendSetError,       BatonBackendAlloc,
                                      BatonBackendFree,           BatonBackendGetFunction,
                                      BatonBackendCallFunction};
  return &api;
}

}  // extern "C"
