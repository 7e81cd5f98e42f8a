// SPDX-License-Identifier: Apache-2.0
// Gradients of reductions and of running sums and products.
#include "rule.h"

namespace baton::relay::gradient {
namespace {

/// A reduction's axes; its result and the result's adjoint with the reduced axes kept, to broadcast against data.
struct Reduced {
  At at;
  Ints axes;
  bool keepdims;
  Val x, y, g;

  template <class A>
  Reduced(const Call& call, const Expr& grad, const A& a)
      : at(call, grad), axes(ReducedAxes(a.axis, a.exclude, at.ndim(0), at.op())), keepdims(a.keepdims), x(at.x()) {
    y = Kept(at.y()), g = Kept(at.g());
  }
  Reduced(const Call& call, const Expr& grad) : Reduced(call, grad, AttrsAs<ReduceAttrs>(call->attrs)) {}
  Val Kept(const Val& v) const {
    // A scalar broadcasts as it is.
    if (keepdims || axes.empty() || static_cast<int64_t>(axes.size()) == at.ndim(0)) return v;
    return {MakeCall<ExpandDimsAttrs>(op::expand_dims, {v.e}, [&](ExpandDimsAttrs* a) { a->axes = ToArray(axes); }),
            v.t};
  }
  /// `v`, which has the kept axes, with data's shape.
  Expr Spread(const Val& v) const {
    if (!at.Static(at.type(0)->shape)) return MakeCall(op::broadcast_to_like, {v.e, at.arg(0)});
    return MakeCall<InitOpAttrs>(op::broadcast_to, {v.e}, [&](InitOpAttrs* a) { a->shape = ToArray(at.dims(0)); });
  }
  double Count() const {
    Ints dims;
    for (int64_t d : axes) {
      int64_t n = DimOf(at.type(0)->shape[d]);
      if (n < 0) at.Fail("it needs known extents of the axes that it reduces");
      dims.push_back(n);
    }
    return static_cast<double>(ProductOf(dims));
  }
};

Grads SumRule(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  return {r.Spread(r.g)};
}
Grads MeanRule(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  return {r.Spread(r.g / r.Count())};
}
/// The largest elements share the adjoint equally.
Grads Extreme(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  Val hit = Pick(Test(op::equal, r.x, r.y), 1, 0);
  return {hit * (r.g / Val{Sum(hit, r.axes, true), r.x.t})};
}
Grads LogSumExp(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  return {r.g * Do(op::exp, r.x - r.y)};
}
Grads SumSquares(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  return {r.g * (2 * r.x)};
}
Grads NormL1(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  return {r.g * Do(op::sign, r.x)};
}
Grads NormL2(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  return {r.g * (r.x / r.y)};
}
Grads LogSum(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  return {r.Spread(r.g / Do(op::exp, r.y))};
}
Val Centred(const Reduced& r) { return r.x - Val{Mean(r.x, r.axes), r.x.t}; }
Grads Variance(const Call& call, const Expr& grad) {
  const auto& a = AttrsAs<VarianceAttrs>(call->attrs);
  Reduced r(call, grad, a);
  return {r.g * (2 / (r.Count() - (a.unbiased ? 1 : 0))) * Centred(r)};
}
Grads Std(const Call& call, const Expr& grad) {
  const auto& a = AttrsAs<VarianceAttrs>(call->attrs);
  Reduced r(call, grad, a);
  return {r.g / r.y * (1 / (r.Count() - (a.unbiased ? 1 : 0))) * Centred(r)};
}

Expr Scan(const Op& op, const Expr& data, const PrimExpr& axis, bool exclusive, bool reverse) {
  return MakeCall<ScanopAttrs>(op, {data},
                               [&](ScanopAttrs* a) { a->axis = axis, a->exclusive = exclusive, a->reverse = reverse; });
}
/// The product of the others, which zeros leave right: of those before and those behind.
Grads Prod(const Call& call, const Expr& grad) {
  Reduced r(call, grad);
  const Ints dims = r.at.dims(0);
  Ints order, moved, back(dims.size());
  int64_t merged = 1;
  for (int64_t d = 0, next = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    if (next < static_cast<int64_t>(r.axes.size()) && r.axes[next] == d) {
      ++next;
    } else {
      order.push_back(d);
      moved.push_back(dims[d]);
    }
  }
  for (int64_t d : r.axes) order.push_back(d), merged *= dims[d];
  moved.push_back(merged);
  for (size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int64_t>(i);
  if (ProductOf(dims) == 0) return {ZerosLike(r.at.arg(0))};
  Ints spread;
  for (int64_t d : order) spread.push_back(dims[d]);
  Expr flat = Reshape(Permute(r.x, order), ToArray(moved));
  PrimExpr axis(static_cast<int64_t>(moved.size()) - 1);
  Expr others = Multiply(Scan(op::cumprod, flat, axis, true, false), Scan(op::cumprod, flat, axis, true, true));
  return {Multiply(r.g, Permute(Reshape(others, ToArray(spread)), back))};
}

Expr Typed(const At& at, const Expr& g) { return at.dtype(0) == at.out()->dtype ? g : Cast(g, at.dtype(0)); }
Grads CumSum(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<ScanopAttrs>();
  if (!at.floating(0)) return {Expr()};
  Expr g = Scan(op::cumsum, grad, a.axis, a.exclusive, !a.reverse);
  return {Typed(at, HasValue(a.axis) ? g : ShapeLike(g, at.arg(0)))};
}
/// Not defined at 0, where it gives NaN.
Grads CumProd(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<ScanopAttrs>();
  if (!at.floating(0)) return {Expr()};
  Expr g = Scan(op::cumsum, at.g() * at.y(), a.axis, a.exclusive, !a.reverse);
  if (!HasValue(a.axis)) g = ShapeLike(g, at.arg(0));
  return {Val{Typed(at, g), at.dtype(0)} / at.x()};
}

const bool registered_reduce = [] {
  DefineGradients({{"sum", SumRule},
                   {"mean", MeanRule},
                   {"max", Extreme},
                   {"min", Extreme},
                   {"prod", Prod},
                   {"logsumexp", LogSumExp},
                   {"sum_squares", SumSquares},
                   {"norm_l1", NormL1},
                   {"norm_l2", NormL2},
                   {"log_sum", LogSum},
                   {"variance", Variance},
                   {"std", Std},
                   {"cumsum", CumSum},
                   {"cumprod", CumProd}});
  return true;
}();

}  // namespace
}  // namespace baton::relay::gradient
