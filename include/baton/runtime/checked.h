// SPDX-License-Identifier: Apache-2.0
/// \file checked.h
/// Arithmetic on sizes that come from files and users: a result that does not fit is an error, never a wrapped number.
#pragma once

#include <baton/runtime/error.h>

#include <cstdint>
#include <type_traits>

namespace baton::runtime {

/// A size does not fit into an int64. Importers catch it to add the node it happened in.
struct SizeOverflow : CompileError {
  SizeOverflow() : CompileError("the numbers given ask for a size beyond 2^63; check them") {}
};

/// An int64 whose sums, differences, products and quotients throw SizeOverflow instead of wrapping. Reads as an int64,
/// so formulas look as they would without it: `Checked(n) * stride + pad`.
class Checked {
 public:
  constexpr Checked(int64_t value) : value_(value) {}
  constexpr operator int64_t() const { return value_; }

  Checked operator-() const { return Checked(0) - *this; }
  Checked& operator+=(Checked o) { return *this = *this + o; }
  Checked& operator-=(Checked o) { return *this = *this - o; }
  Checked& operator*=(Checked o) { return *this = *this * o; }

  friend Checked operator+(Checked a, Checked b) {
    int64_t r = 0;
    if (__builtin_add_overflow(a.value_, b.value_, &r)) throw SizeOverflow();
    return r;
  }
  friend Checked operator-(Checked a, Checked b) {
    int64_t r = 0;
    if (__builtin_sub_overflow(a.value_, b.value_, &r)) throw SizeOverflow();
    return r;
  }
  friend Checked operator*(Checked a, Checked b) {
    int64_t r = 0;
    if (__builtin_mul_overflow(a.value_, b.value_, &r)) throw SizeOverflow();
    return r;
  }
  friend Checked operator/(Checked a, Checked b) {
    if (b.value_ == 0 || (b.value_ == -1 && a.value_ == INT64_MIN)) throw SizeOverflow();
    return a.value_ / b.value_;
  }

  // With plain integers on either side: without these the built-in operators would do as well, unchecked.
#define BATON_CHECKED_MIXED(op)                                        \
  template <class I, std::enable_if_t<std::is_integral_v<I>, int> = 0> \
  friend Checked operator op(Checked a, I b) {                         \
    return a op Checked(static_cast<int64_t>(b));                      \
  }                                                                    \
  template <class I, std::enable_if_t<std::is_integral_v<I>, int> = 0> \
  friend Checked operator op(I a, Checked b) {                         \
    return Checked(static_cast<int64_t>(a)) op b;                      \
  }
  BATON_CHECKED_MIXED(+)
  BATON_CHECKED_MIXED(-)
  BATON_CHECKED_MIXED(*)
  BATON_CHECKED_MIXED(/)
#undef BATON_CHECKED_MIXED

 private:
  int64_t value_;
};

}  // namespace baton::runtime
