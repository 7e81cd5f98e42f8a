// SPDX-License-Identifier: Apache-2.0
#include "sampling.h"

namespace baton::relay::gradient {

Val TapWeights(const Val& off, SampleMethod method) {
  if (method == SampleMethod::kLinear) return 1 + off * Val{Cast(MakeInts({-1, 1}), off.t), off.t};
  const double a = -0.75;
  Val x = Do(op::abs, off);
  Val near = ((a + 2) * x - (a + 3)) * x * x + 1;
  Val far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return Pick(Test(op::less_equal, x, 1), near, Pick(Test(op::less, x, 2), far, 0));
}
Val Sample(const Val& data, int64_t batch, int64_t channels, const Ints& space, int64_t places,
           const std::vector<Taps>& taps) {
  int64_t total = 1, step = 1, rank = static_cast<int64_t>(space.size());
  for (const Taps& t : taps) total *= t.count;
  Expr element, weight, inside;
  for (int64_t d = rank - 1; d >= 0; --d) {
    Ints shape(rank + 2, 1);
    shape[0] = batch, shape[1] = places, shape[d + 2] = taps[d].count;
    auto spread = [&](const Expr& e) { return Reshape(e, ToArray(shape)); };
    Expr e = spread(taps[d].element);
    if (step != 1) e = Multiply(e, MakeScalar(static_cast<double>(step), DataType::Int(64)));
    element = element.defined() ? Add(e, element) : e;
    if (taps[d].weight.defined()) {
      Expr w = spread(taps[d].weight);
      weight = weight.defined() ? Multiply(w, weight) : w;
    }
    if (taps[d].inside.defined()) {
      Expr i = spread(taps[d].inside);
      inside = inside.defined() ? MakeCall(op::logical_and, {i, inside}) : i;
    }
    step *= space[d];
  }
  auto row = [&](const Expr& e) { return Reshape(e, {batch, 1, places * total}); };
  Expr index = MakeCall<InitOpAttrs>(op::broadcast_to, {row(element)},
                                     [&](InitOpAttrs* b) { b->shape = {batch, channels, places * total}; });
  Val v{MakeCall<GatherAttrs>(op::gather, {Reshape(data, {batch, channels, step}), index},
                              [](GatherAttrs* g) { g->axis = 2; }),
        data.t};
  if (inside.defined()) v = Pick({row(inside), v.t}, v, 0);
  if (weight.defined()) v = v * Val{row(weight), v.t};
  return total == 1 ? v : Val{Sum(Reshape(v, {batch, channels, places, total}), {3}), v.t};
}
Expr Part(const Expr& e, Ints dims, int64_t axis, int64_t k) {
  Ints begin(dims.size(), 0);
  begin[axis] = k, dims[axis] = k + 1;
  return Squeeze(Slice(e, begin, dims), {axis});
}

}  // namespace baton::relay::gradient
