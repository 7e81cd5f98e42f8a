// SPDX-License-Identifier: Apache-2.0
// User interrupts in long loops, and what bounds a call: time, calls, bytes of arrays.
#pragma once

#include <baton/support/export.h>

#include <cstdint>

namespace baton::runtime {

namespace detail {
struct InterruptPolls {
  uint32_t steps;
  int64_t last_asked;  // in ticks of the steady clock
  // What the front end allows a call that runs on this thread (`limits=` of Python); 0: all.
  int64_t deadline;   // in ticks
  int64_t rounds;     // one more than the calls that a program may still make
  int64_t max_bytes;  // of `bytes`
  int64_t bytes;      // of the arrays that this thread made and that are not dropped
};
extern BATON_DLL constinit thread_local InterruptPolls interrupt_polls __attribute__((tls_model("initial-exec")));
}  // namespace detail

/// Asks the front end whether the user wants to stop (Ctrl-C), at most every 20 ms; throws then what the front end
/// raises, or TimeoutError where the time of a call is over. The front end registers the question as
/// "runtime.CheckSignals".
BATON_DLL void CheckInterrupt();
/// Whether there is a front end to ask.
BATON_DLL bool HasInterrupts();

/// Called at each step of a loop over a program, an addition and a comparison most of the time:
///     for (const Node& n : million_nodes) {
///       PollInterrupt();
///       ...
inline void PollInterrupt() {
  if ((++detail::interrupt_polls.steps & 0xfff) == 0) [[unlikely]]
    CheckInterrupt();
}

}  // namespace baton::runtime
