// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <exception>
#include <stdexcept>

namespace on_stack {

/// Calls within each other that a program survives.
#if defined(__SANITIZE_THREAD__)
constexpr int kDeep = 30'000;  // the sanitizer's own stack of calls ends at 65,536
#else
constexpr int kDeep = 1'000'000;
#endif

/// Runs `f` in a thread with a small stack; an exception comes back.
template <class F>
void OnStack(size_t bytes, F f) {
  struct Box {
    F* f;
    std::exception_ptr error;
  } box{&f, nullptr};
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, bytes);
  pthread_t thread;
  if (pthread_create(
          &thread, &attr,
          [](void* p) -> void* {
            auto* b = static_cast<Box*>(p);
            try {
              (*b->f)();
            } catch (...) {
              b->error = std::current_exception();
            }
            return nullptr;
          },
          &box) != 0)
    throw std::runtime_error("no thread");
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attr);
  if (box.error) std::rethrow_exception(box.error);
}

}  // namespace on_stack
