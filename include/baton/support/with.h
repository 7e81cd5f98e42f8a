// SPDX-License-Identifier: Apache-2.0
// With<Context>: enters a scope and leaves it at the end of the block.
#pragma once

#include <exception>
#include <utility>

namespace baton {

/// Calls `EnterWithScope()` and, at the end, `ExitWithScope()` of a context. When the block is left by an exception,
/// one thrown by the exit is dropped: the first wins. Left normally, the exit's exception is delivered.
template <class Context>
class With {
 public:
  template <class... Args>
  explicit With(Args&&... args) : ctx_(std::forward<Args>(args)...), uncaught_(std::uncaught_exceptions()) {
    ctx_.EnterWithScope();
  }
  With(const With&) = delete;
  With& operator=(const With&) = delete;
  ~With() noexcept(false) {
    if (std::uncaught_exceptions() > uncaught_) {
      try {
        ctx_.ExitWithScope();
      } catch (...) {
      }
    } else {
      ctx_.ExitWithScope();
    }
  }
  Context& operator*() { return ctx_; }
  Context* operator->() { return &ctx_; }
  Context* get() { return &ctx_; }

 private:
  Context ctx_;
  int uncaught_;
};

}  // namespace baton
