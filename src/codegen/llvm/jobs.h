// SPDX-License-Identifier: Apache-2.0
// Work on threads of its own that its caller may walk away from.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

namespace baton::codegen {

/// Owns all that it uses. `stop` becomes true when nobody waits for it any more; looking at it now and then is polite.
using Job = std::function<void(const std::atomic<bool>& stop)>;

/// Runs `jobs` at the same time, each on its own thread, and returns when all are done; the first exception (by index)
/// comes out. Meanwhile it calls `check` every 20 ms: when that throws, the exception comes out at once, and the jobs
/// end by themselves. Without `check` the calling thread does the first job.
void RunJobs(std::vector<Job> jobs, void (*check)());

/// A front end that interrupts calls it before the process ends, while nothing is destroyed yet: jobs that nobody waits
/// for use statics of LLVM. Those that need longer than a moment do not delay the end; the process then leaves without
/// destructors of statics, with the exit status and the flushed files that it has.
void FinishJobs();

}  // namespace baton::codegen
