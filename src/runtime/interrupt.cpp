// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/error.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/registry.h>

#include <chrono>

namespace baton::runtime {

namespace detail {
constinit thread_local InterruptPolls interrupt_polls = {};
}  // namespace detail

void CheckInterrupt() {
  // The front end may have to wait for its own lock to answer.
  using Clock = std::chrono::steady_clock;
  const Clock::duration now = Clock::now().time_since_epoch();
  detail::InterruptPolls& polls = detail::interrupt_polls;
  if (now.count() - polls.last_asked < Clock::duration(std::chrono::milliseconds(20)).count()) return;
  polls.last_asked = now.count();
  if (polls.deadline && now.count() > polls.deadline) {
    BatonErrorSet("TimeoutError", "a call takes longer than `limits` allow");
    ThrowFromSlot();
  }
  if (const PackedFunc* check = Registry::Get("runtime.CheckSignals")) (*check)();
}

bool HasInterrupts() { return Registry::Get("runtime.CheckSignals") != nullptr; }

}  // namespace baton::runtime
