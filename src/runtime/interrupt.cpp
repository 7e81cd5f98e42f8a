// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/interrupt.h>
#include <baton/runtime/registry.h>

#include <chrono>

namespace baton::runtime {

namespace detail {
constinit thread_local uint32_t interrupt_steps = 0;
}  // namespace detail

void CheckInterrupt() {
  // The front end may have to wait for its own lock to answer.
  using Clock = std::chrono::steady_clock;
  // As `interrupt_steps`: the loader must see when it loads this library that its thread-local block has to be static,
  // other libraries rely on it.
  thread_local Clock::time_point last __attribute__((tls_model("initial-exec")));
  const Clock::time_point now = Clock::now();
  if (now - last < std::chrono::milliseconds(20)) return;
  last = now;
  if (const PackedFunc* check = Registry::Get("runtime.CheckSignals")) (*check)();
}

bool HasInterrupts() { return Registry::Get("runtime.CheckSignals") != nullptr; }

}  // namespace baton::runtime
