// SPDX-License-Identifier: Apache-2.0
// What is known of integers before a program runs, and along which dimensions products sum.
#pragma once

#include <baton/relay/expr.h>
#include <baton/support/pointer_map.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace baton::relay {

/// Whole numbers up to this, and sums that stay below, are exact in float32.
inline constexpr double kExactInFloat32 = 1 << 24;

/// All values of an integer tensor lie in [low, high].
struct IntegerRange {
  double low = 0, high = 0;
  double Magnitude() const { return std::max(std::abs(low), std::abs(high)); }
};

/// Ranges of typed expressions, from dtypes, constants and the arithmetic around them; ranges beyond what float32 holds
/// exactly count as unknown.
class IntegerRanges {
 public:
  std::optional<IntegerRange> Of(const Expr& e, int depth = 0);

 private:
  std::optional<IntegerRange> Find(const Expr& e, int depth);
  PointerMap<std::optional<IntegerRange>> known_;
};

/// The dimensions of a product's operands that are summed.
struct SummedAxes {
  int64_t data = -1, weight = -1;
  bool weight_rows = false;  ///< the weight's first dimension is that of the results' channels
};
/// The axes that a typed product or convolution of two operands sums over; nothing for others.
std::optional<SummedAxes> SummedAxesOf(const CallNode* call);

/// Elements [begin, end) of one dimension.
Expr SliceAlong(const Expr& e, int64_t axis, int64_t begin, int64_t end);

}  // namespace baton::relay
