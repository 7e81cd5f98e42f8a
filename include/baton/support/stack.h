// SPDX-License-Identifier: Apache-2.0
// Recursion that cannot overflow: a function that nears the end of its stack goes on on a fresh one.
#pragma once

#include <baton/support/export.h>

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace baton::support {

/// True if fewer than `reserve` bytes are left on the stack that this thread runs on now. A few nanoseconds.
/// On an unknown stack (a coroutine of another library) the answer is true, which is safe.
/// Threads whose stack is smaller than twice the reserve keep half of it.
BATON_DLL bool StackNearEnd(size_t reserve = 256 << 10) noexcept;

/// Calls `fn(arg)` on a fresh segment of 64 MiB (address space; pages come as they are touched), on this very thread:
/// thread-local variables stay, exceptions pass through. Throws std::runtime_error when the fresh segments of this
/// thread would exceed 4 GiB, which in practice is recursion without an end.
BATON_DLL void RunOnFreshStack(void (*fn)(void*), void* arg);

/// Calls `f()`, on a fresh stack if this one nears its end, and returns its result. Put it around each level of a
/// recursion whose depth the input decides:
///     int Depth(const Node* n) { return WithStack([&] { return n ? 1 + Depth(n->next) : 0; }); }
template <class F>
decltype(auto) WithStack(F&& f) {
  using Fn = std::remove_reference_t<F>;
  using R = decltype(f());
  if (!StackNearEnd()) [[likely]] {
    return f();
  }
  Fn* fn = __builtin_addressof(f);
  if constexpr (std::is_void_v<R>) {
    RunOnFreshStack([](void* p) { (*static_cast<Fn*>(p))(); }, const_cast<std::remove_const_t<Fn>*>(fn));
  } else if constexpr (std::is_reference_v<R>) {
    struct Box {
      Fn* fn;
      std::remove_reference_t<R>* out;
    } box{fn, nullptr};
    RunOnFreshStack(
        [](void* p) {
          Box* b = static_cast<Box*>(p);
          R r = (*b->fn)();
          b->out = __builtin_addressof(r);
        },
        &box);
    return static_cast<R>(*box.out);
  } else {
    struct Box {
      Fn* fn;
      union {
        R out;
      };
      bool full = false;
      explicit Box(Fn* f) : fn(f) {}
      ~Box() {
        if (full) out.~R();
      }
    } box(fn);
    RunOnFreshStack(
        [](void* p) {
          Box* b = static_cast<Box*>(p);
          ::new (static_cast<void*>(__builtin_addressof(b->out))) R((*b->fn)());
          b->full = true;
        },
        &box);
    return R(std::move(box.out));
  }
}

}  // namespace baton::support
