// SPDX-License-Identifier: Apache-2.0
// User interrupts in long loops.
#pragma once

#include <baton/support/export.h>

#include <cstdint>

namespace baton::runtime {

namespace detail {
struct InterruptPolls {
  uint32_t steps;
  int64_t last_asked;  // in ticks of the steady clock
};
extern BATON_DLL constinit thread_local InterruptPolls interrupt_polls __attribute__((tls_model("initial-exec")));
}  // namespace detail

/// Asks the front end whether the user wants to stop (Ctrl-C), at most every 20 ms; throws then what the front end
/// raises. The front end registers the question as "runtime.CheckSignals"; without one nothing happens.
BATON_DLL void CheckInterrupt();
/// Whether there is a front end to ask.
BATON_DLL bool HasInterrupts();

/// What a loop over a program calls at each step, an addition and a comparison most of the time:
///     for (const Node& n : million_nodes) {
///       PollInterrupt();
///       ...
inline void PollInterrupt() {
  if ((++detail::interrupt_polls.steps & 0xfff) == 0) [[unlikely]]
    CheckInterrupt();
}

}  // namespace baton::runtime
