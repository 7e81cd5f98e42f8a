// SPDX-License-Identifier: Apache-2.0
// Gradients of softmax and losses; normalisations are restated as the arithmetic that they are.
#include <baton/relay/op/nn.h>

#include <string>

#include "rule.h"

namespace baton::relay::gradient {
namespace {

Grads Softmax(const Call& call, const Expr& grad) {
  At at(call, grad);
  int64_t axis = at.Axis(at.attrs<SoftmaxAttrs>().axis);
  Val gy = at.g() * at.y();
  return {gy - at.y() * Val{Sum(gy, {axis}, true), gy.t}};
}
Grads LogSoftmax(const Call& call, const Expr& grad) {
  At at(call, grad);
  int64_t axis = at.Axis(at.attrs<SoftmaxAttrs>().axis);
  return {at.g() - Do(op::exp, at.y()) * Val{Sum(grad, {axis}, true), at.y().t}};
}

// ---- normalisations
Val Normalised(const Val& x, const Ints& axes, double epsilon) {
  Val d = x - Val{Mean(x, axes), x.t};
  return d * Do(op::rsqrt, Val{Mean(d * d, axes), x.t} + epsilon);
}
/// A vector along `axis` of a tensor of rank `ndim`.
Val Along(const Expr& v, DataType t, int64_t axis, int64_t ndim) {
  return {axis + 1 < ndim ? ExpandDims(v, 1, ndim - 1 - axis) : v, t};
}
template <class A>
Expr Affine(const At& at, const A& a, Val v, const Array<Expr>& args, int64_t axis) {
  int64_t n = at.ndim(0);
  if (a.scale) v = v * Along(args[1], at.dtype(1), axis, n);
  if (a.center) v = v + Along(args[2], at.dtype(2), axis, n);
  return v;
}
Expr LayerNorm(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<LayerNormAttrs>();
  int64_t axis = at.Axis(a.axis), n = at.ndim(0), end = axis + a.num_axes;
  Val v = Normalised({args[0], at.dtype(0)}, AxesFrom(axis, end), a.epsilon);
  auto param = [&](int i) { return Val{end < n ? ExpandDims(args[i], at.ndim(i), n - end) : args[i], at.dtype(i)}; };
  if (a.scale) v = v * param(1);
  if (a.center) v = v + param(2);
  return v;
}
Expr InstanceNorm(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<InstanceNormAttrs>();
  int64_t axis = at.Axis(a.axis);
  Ints axes;
  for (int64_t d = 1; d < at.ndim(0); ++d) {
    if (d != axis) axes.push_back(d);
  }
  Val x{args[0], at.dtype(0)};
  return Affine(at, a, axes.empty() ? (x - x) : Normalised(x, axes, a.epsilon), args, axis);
}
Expr GroupNorm(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<GroupNormAttrs>();
  int64_t axis = at.Axis(a.axis), n = at.ndim(0);
  Ints dims = at.dims(0), split, axes;
  for (int64_t d = 0; d < n; ++d) {
    if (d == axis) split.push_back(a.num_groups);
    if (d != 0) axes.push_back(static_cast<int64_t>(split.size()));
    split.push_back(d == axis ? dims[d] / a.num_groups : dims[d]);
  }
  Val v = Normalised({Reshape(args[0], ToArray(split)), at.dtype(0)}, axes, a.epsilon);
  return Affine(at, a, {Reshape(v, ToArray(dims)), v.t}, args, axis);
}
Expr RmsNorm(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<RmsNormAttrs>();
  int64_t axis = at.Axis(a.axis), n = at.ndim(0), end = axis + a.num_axes;
  Val x{args[0], at.dtype(0)};
  Val v = x * Do(op::rsqrt, Val{Mean(x * x, AxesFrom(axis, end)), x.t} + a.epsilon);
  return v * Val{end < n ? ExpandDims(args[1], at.ndim(1), n - end) : args[1], x.t};
}
Expr L2Normalize(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<L2NormalizeAttrs>();
  Val x{args[0], at.dtype(0)};
  Ints axes = ReducedAxes(a.axis, false, at.ndim(0), at.op());
  Val s = axes.empty() ? x * x : Val{Sum(x * x, axes, true), x.t};
  return x * Do(op::rsqrt, Val{Maximum(s, Num(a.eps, x.t)), x.t});
}
Expr LpNormalize(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<LpNormalizeAttrs>();
  Val x{args[0], at.dtype(0)};
  Ints axis{at.Axis(a.axis)};
  if (a.p == 1) return x / Val{Sum(Do(op::abs, x), axis, true), x.t};
  return x * Do(op::rsqrt, Val{Sum(x * x, axis, true), x.t});
}
Expr LRN(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<LRNAttrs>();
  Val x{args[0], at.dtype(0)};
  int64_t axis = at.Axis(a.axis), n = at.ndim(0), before = (a.size - 1) / 2;
  Ints dims = at.dims(0), low(n, 0), high(n, 0);
  if (ProductOf(dims) == 0) return x;
  int64_t reach = dims[axis];
  int64_t lo = std::min(before, reach), hi = std::min(a.size - 1 - before, reach);
  low[axis] = lo, high[axis] = hi;
  Expr squares = Pad(x * x, low, high, x.t);
  Val sum;
  for (int64_t k = 0; k <= lo + hi; ++k) {
    Ints begin(n, 0), end = dims;
    begin[axis] = k, end[axis] = k + dims[axis];
    Val part{lo + hi ? Slice(squares, begin, end) : squares, x.t};
    sum = k ? sum + part : part;
  }
  Val base = a.bias + sum * (a.alpha / static_cast<double>(a.size));
  return x * Val{MakeCall(op::power, {base.e, Num(-a.beta, x.t).e}), x.t};
}

// ---- losses
template <bool kLogits>
Expr CrossEntropy(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  Val p{args[0], at.dtype(0)}, q{args[1], at.dtype(1)};
  int64_t n = DimOf(at.type(0)->shape[0]);
  if (n < 0) at.Fail("it needs a known batch");
  return Val{Sum((kLogits ? p : Do(op::log, p)) * q, {0, 1}), p.t} * (-1.0 / static_cast<double>(n));
}
Expr NLLLoss(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<NLLLossAttrs>();
  DataType t = at.dtype(0), i64 = DataType::Int(64);
  int64_t rank = at.ndim(1), c = at.ndim(0) == 1 ? 0 : 1;
  Val target{Cast(args[1], i64), i64};
  Val counts = Test(op::not_equal, target, static_cast<double>(a.ignore_index));
  // A target that does not count may be no class.
  Val safe = Pick(counts, target, 0);
  Val w{MakeCall<TakeAttrs>(op::take, {args[2], safe.e}, [](TakeAttrs* k) { k->axis = PrimExpr(0); }), t};
  w = Pick(Val{counts.e, t}, w, 0);
  Val picked{
      Squeeze(MakeCall<GatherAttrs>(op::gather, {args[0], ExpandDims(safe.e, c)}, [&](GatherAttrs* g) { g->axis = c; }),
              {c}),
      t};
  Val loss = -(picked * w);
  if (a.reduction == "none") return loss;
  Ints all = AxesFrom(0, rank);
  Expr sum = all.empty() ? loss.e : Sum(loss, all), total = all.empty() ? w.e : Sum(w, all);
  return a.reduction == "sum" ? sum : Divide(sum, total);
}

const bool registered_norm = [] {
  DefineGradients({{"nn.softmax", Softmax}, {"nn.log_softmax", LogSoftmax}});
  DefineRestatements({{"nn.layer_norm", LayerNorm},
                      {"nn.instance_norm", InstanceNorm},
                      {"nn.group_norm", GroupNorm},
                      {"nn.rms_norm", RmsNorm},
                      {"nn.l2_normalize", L2Normalize},
                      {"nn.lp_normalize", LpNormalize},
                      {"nn.lrn", LRN},
                      {"nn.cross_entropy", CrossEntropy<false>},
                      {"nn.cross_entropy_with_logits", CrossEntropy<true>},
                      {"nn.nll_loss", NLLLoss}});
  return true;
}();

}  // namespace
}  // namespace baton::relay::gradient
