// SPDX-License-Identifier: Apache-2.0
// Work on separate threads that its caller may walk away from.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

namespace baton::codegen {

/// A job owns all data that it uses. `stop` becomes true when no caller waits for the job any more; long jobs should
/// check it.
using Job = std::function<void(const std::atomic<bool>& stop)>;

/// Runs `jobs` at the same time, each on its own thread, and returns when all are done; the first exception (by index)
/// comes out. Meanwhile it calls `check` every 20 ms: when that throws, the exception comes out at once, and the jobs
/// end by themselves. Without `check` the calling thread does the first job.
void RunJobs(std::vector<Job> jobs, void (*check)());

/// A front end with interrupts calls this before the process ends, while no statics are destroyed yet: abandoned jobs
/// use statics of LLVM. Jobs that take longer than a moment do not delay the exit; the process then skips the
/// destructors of statics, but keeps its exit status and flushes its files.
void FinishJobs();

}  // namespace baton::codegen
