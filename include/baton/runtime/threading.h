// SPDX-License-Identifier: Apache-2.0
// The thread pool: one per process, started on first use, hot while there is work, asleep a millisecond later.
#pragma once

#include <baton/runtime/c_backend_api.h>

#include <cstdint>
#include <type_traits>

namespace baton::runtime::threading {

/// Threads that a parallel region uses, the calling one included: SetNumThreads, else BATON_NUM_THREADS, else
/// OMP_NUM_THREADS, else the processors that affinity and control group allow. A BATON_NUM_THREADS that is no number
/// from 1 to 1,024 is a RuntimeError.
BATON_DLL int NumThreads();
/// For the whole process, 1 to 1,024; 0 goes back to what the environment says. Waits for a running region to end.
BATON_DLL void SetNumThreads(int n);

/// As BatonBackendParallelLaunch, but the error of a task (of the lowest that failed), be it an exception or in the
/// error slot of its thread, is thrown here. A task that failed without an error has its value returned.
BATON_DLL int Launch(BatonParallelTask fn, void* closure, int num_tasks);

/// True on a thread that runs a task of a parallel region now.
BATON_DLL bool InParallelRegion();

/// Calls `body(begin, end)` on consecutive parts of [0, n), at least `grain` long each, in parallel. The first
/// exception (by index) comes out. The caller hands in thread-local state that the body needs.
template <class F>
void ParallelFor(int64_t n, int64_t grain, const F& body) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  const int64_t most = (n + grain - 1) / grain;
  const int threads = NumThreads();
  const int tasks = most < threads ? static_cast<int>(most) : threads;
  if (tasks == 1) {
    body(int64_t(0), n);
    return;
  }
  struct Closure {
    const F* body;
    int64_t n;
  } closure{&body, n};
  Launch(
      [](int task, int num_tasks, void* p) {
        const Closure* c = static_cast<const Closure*>(p);
        // Parts differ by at most one.
        const int64_t each = c->n / num_tasks, extra = c->n % num_tasks;
        const int64_t begin = each * task + (task < extra ? task : extra);
        (*c->body)(begin, begin + each + (task < extra ? 1 : 0));
        return 0;
      },
      &closure, tasks);
}

}  // namespace baton::runtime::threading
