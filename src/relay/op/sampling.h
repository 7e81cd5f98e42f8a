// SPDX-License-Identifier: Apache-2.0
// Gradients of operators that read an image between its elements: these are decomposed into a gather of the elements
// around each place, products with weights that depend on the place, and sums. That gives adjoints of image and places.
#pragma once

#include "gradient.h"

namespace baton::relay::gradient {

/// Along one dimension, (batch, places, taps): elements to read, how much each counts, and which are there. A null
/// weight or mask means all of them.
struct Taps {
  Expr element, weight, inside;
  int64_t count = 1;
};
enum class SampleMethod { kNearest, kLinear, kCubic };

inline Val AsVal(const Expr& e, DataType from, DataType to) { return {from == to ? e : Cast(e, to), to}; }
/// The weight of a tap at distance `off` from its place.
Val TapWeights(const Val& off, SampleMethod method);
/// Elements at the places `p`, (batch, places), along a dimension of n elements. Others count as 0 or are
/// the nearest ones; `mirror` takes an element's number to where it is reflected.
template <class Mirror>
Taps TapsOf(const Val& p, int64_t n, SampleMethod method, bool zeros, Mirror mirror) {
  Taps out;
  Val at{ExpandDims(p, 2), p.t}, tap = at;
  if (method != SampleMethod::kNearest) {
    std::vector<int64_t> steps =
        method == SampleMethod::kLinear ? std::vector<int64_t>{0, 1} : std::vector{-1L, 0L, 1L, 2L};
    out.count = static_cast<int64_t>(steps.size());
    tap = Do(op::floor, at) + Val{Cast(MakeInts(steps), p.t), p.t};
    out.weight = TapWeights(at - tap, method);
  }
  tap = mirror(tap);
  double last = static_cast<double>(n - 1);
  Val low = Test(op::greater_equal, tap, 0), high = Test(op::less_equal, tap, last);
  if (zeros) out.inside = MakeCall(op::logical_and, {low.e, high.e});
  out.element = Cast(Pick(low, Pick(high, tap, last), 0), DataType::Int(64));  // a NaN reads element 0
  return out;
}
inline Taps TapsOf(const Val& p, int64_t n, SampleMethod method, bool zeros) {
  return TapsOf(p, n, method, zeros, [](const Val& tap) { return tap; });
}
/// data, (batch, channels, the extents `space`), at places: (batch, channels, places).
Val Sample(const Val& data, int64_t batch, int64_t channels, const Ints& space, int64_t places,
           const std::vector<Taps>& taps);
/// `e`, whose extents are `dims`, with one element of an axis, and without it.
Expr Part(const Expr& e, Ints dims, int64_t axis, int64_t k);

}  // namespace baton::relay::gradient
