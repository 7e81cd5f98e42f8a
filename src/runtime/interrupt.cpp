// SPDX-License-Identifier: Apache-2.0
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
  int64_t& last = detail::interrupt_polls.last_asked;
  if (now.count() - last < Clock::duration(std::chrono::milliseconds(20)).count()) return;
  last = now.count();
  if (const PackedFunc* check = Registry::Get("runtime.CheckSignals")) (*check)();
}

bool HasInterrupts() { return Registry::Get("runtime.CheckSignals") != nullptr; }

}  // namespace baton::runtime
