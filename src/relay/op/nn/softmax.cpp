// SPDX-License-Identifier: Apache-2.0
// Softmax and its like along one axis.
#include <baton/relay/op/nn.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>

#include "../common.h"
#include "../gradient.h"
#include "../reference/reference.h"
#include "../tensor/fast_math.h"
#include "weights.h"

namespace baton::relay {
namespace op {
extern const Op fast_softmax, softmax;
}
namespace {

struct SoftmaxAttrs : AttrsNode<SoftmaxAttrs> {
  static constexpr auto _type_key = "relay.attrs.SoftmaxAttrs";
  int64_t axis = -1;
  static constexpr void Describe(auto& d) { d(F<&SoftmaxAttrs::axis>, "Dimension that sums to 1."); }
};

Shape Without(const Indices& i, int64_t axis) {
  Shape at;
  for (size_t d = 0; d < i.size(); ++d) {
    if (static_cast<int64_t>(d) != axis) at.push_back(i[d]);
  }
  return at;
}
Type SoftmaxType(const SoftmaxAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.MinRank(0, 1, "R2");
  in.Axis(a.axis, in.ndim(0));
  return in.type(0);
}

struct Parts {
  int64_t axis;
  DataType t;  ///< of the arithmetic
  Tensor top;  ///< largest along the axis
  Tensor exp;  ///< exp(data - top)
  Tensor sum;
};
Parts PartsOf(const SoftmaxAttrs& a, const Tensor& x, bool keep_exp) {
  Parts p;
  p.axis = NormalizeAxis(a.axis, x.ndim(), "nn.softmax");
  p.t = Wide(x.dtype());
  p.top = topi::ReduceWith(
      x, {p.axis}, false, te::MaxOf, [&](PrimExpr v, const Shape&, const Shape&) { return cast(p.t, v); }, "max");
  auto difference = [&](PrimExpr v, const Shape& at) {
    Shape outer;
    for (int64_t d = 0; d < x.ndim(); ++d) {
      if (d != p.axis) outer.push_back(at[d]);
    }
    return exp(cast(p.t, v) - p.top(outer));
  };
  if (keep_exp) {
    p.exp = te::Compute(x.shape(), [&](Indices i) { return difference(x(i), i); }, "exp");
    p.sum = topi::ReduceWith(
        p.exp, {p.axis}, false, te::Sum, [](PrimExpr v, const Shape&, const Shape&) { return v; }, "sum");
  } else {
    p.sum = topi::ReduceWith(
        x, {p.axis}, false, te::Sum, [&](PrimExpr v, const Shape& at, const Shape&) { return difference(v, at); },
        "sum_exp");
  }
  return p;
}
Tensor LowerSoftmax(const SoftmaxAttrs& a, const Tensors& in) {
  Parts p = PartsOf(a, in[0], true);
  // One division a row: a product with the reciprocal is within one more ulp, and a vector division costs as much as
  // exp.
  Tensor scale = te::Compute(p.sum.shape(), [&](Indices i) { return Lit(1, p.t) / p.sum(i); }, "scale");
  return te::Compute(
      in[0].shape(), [&](Indices i) { return cast(in[0].dtype(), p.exp(i) * scale(Without(i, p.axis))); }, "softmax");
}
Tensor LowerLogSoftmax(const SoftmaxAttrs& a, const Tensors& in) {
  Parts p = PartsOf(a, in[0], false);
  return te::Compute(
      in[0].shape(),
      [&](Indices i) {
        Shape o = Without(i, p.axis);
        return cast(in[0].dtype(), cast(p.t, in[0](i)) - p.top(o) - log(p.sum(o)));
      },
      "log_softmax");
}
Tensor LowerHardmax(const SoftmaxAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  int64_t axis = NormalizeAxis(a.axis, x.ndim(), "nn.hardmax");
  DataType t = Wide(x.dtype()), i64 = DataType::Int(64);
  Tensor top = topi::ReduceWith(
      x, {axis}, true, te::MaxOf, [&](PrimExpr v, const Shape&, const Shape&) { return cast(t, v); }, "max");
  Tensor first = topi::ReduceWith(
      x, {axis}, false, te::MinOf,
      [&](PrimExpr v, const Shape& at, const Shape& k) {
        PrimExpr m = topi::BroadcastAt(top, at), w = cast(t, v);
        return te::Select(equal(w, m) || isnan(w), k[0], max_value(i64));
      },
      "first");
  return te::Compute(
      x.shape(),
      [&](Indices i) {
        return te::Select(equal(first(Without(i, axis)), PrimExpr(i[axis])), Lit(1, x.dtype()), Lit(0, x.dtype()));
      },
      "hardmax");
}

// ---- nn.fast_softmax
Type FastSoftmaxType(const SoftmaxAttrs& a, const TypeArgs& in) {
  AtMost32Bits(in);
  in.MinRank(0, 1, "R2");
  in.Axis(a.axis, in.ndim(0));
  return in.type(0);
}
Tensor LowerFastSoftmax(const SoftmaxAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  const DataType f32 = DataType::Float(32);
  const int64_t axis = NormalizeAxis(a.axis, x.ndim(), "nn.fast_softmax");
  auto wide = [&](PrimExpr v, const Shape&, const Shape&) { return cast(f32, v); };
  Tensor top = topi::ReduceWith(x, {axis}, true, te::MaxOf, wide, "max");
  auto row = [&](Indices i) {
    Shape at;
    for (size_t d = 0; d < i.size(); ++d) at.push_back(static_cast<int64_t>(d) == axis ? PrimExpr(0) : PrimExpr(i[d]));
    return at;
  };
  Tensor e = te::Compute(x.shape(), [&](Indices i) { return FastExp(cast(f32, x(i)) - top(row(i))); }, "exp");
  Tensor sum = topi::ReduceWith(e, {axis}, true, te::Sum, wide, "sum");
  return te::Compute(x.shape(), [&](Indices i) { return cast(x.dtype(), e(i) / sum(row(i))); }, "fast_softmax");
}

template <OpName kName>
Op Define(const char* doc, LowerFn lower, OpGradient gradient, const char* source, const OpTraits& traits = {}) {
  return DefineOp({.name = kName.text,
                   .doc = doc,
                   .inputs = {{"data", "R1: floating dtype. R2: rank 1 or more."}},
                   .output = "Shape and dtype of `data`.",
                   .attrs = TypeOf<SoftmaxAttrs>,
                   .type_rel = RelSame<kName, SoftmaxType>,
                   .lower = lower,
                   .gradient = gradient,
                   .pattern = OpPattern::kOpaque,
                   .source = source,
                   .traits = traits});
}

}  // namespace

namespace gradient {
namespace {

Grads SoftmaxBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  int64_t axis = at.Axis(at.attrs<SoftmaxAttrs>().axis);
  Val gy = at.g() * at.y();
  return {gy - at.y() * Val{Sum(gy, {axis}, true), gy.t}};
}
Grads LogSoftmaxBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  int64_t axis = at.Axis(at.attrs<SoftmaxAttrs>().axis);
  return {at.g() - Do(op::exp, at.y()) * Val{Sum(grad, {axis}, true), at.y().t}};
}

}  // namespace
}  // namespace gradient

const Op op::softmax = Define<"nn.softmax">("exp(data) / sum(exp(data)) along an axis, safe for large values.",
                                            LowerSoftmax, gradient::SoftmaxBack, "ONNX Softmax-13",
                                            {.precision = Precision::kNever,
                                             .layout = LayoutRule::kAxis,
                                             .approximation = &op::fast_softmax,
                                             .reference = reference::Softmax});
const Op op::log_softmax =
    Define<"nn.log_softmax">("log(softmax(data)), safe for large values.", LowerLogSoftmax, gradient::LogSoftmaxBack,
                             "ONNX LogSoftmax-13", {.precision = Precision::kNever, .layout = LayoutRule::kAxis});
const Op op::hardmax = Define<"nn.hardmax">("1 for the first largest along an axis, 0 elsewhere.", LowerHardmax,
                                            gradient::Flat, "ONNX Hardmax-13");
const Op op::fast_softmax = DefineOp(
    {.name = "nn.fast_softmax",
     .doc = "softmax(data) along an axis with `fast_exp`: within 1e-6 of it. What should be smaller than 1e-38 is "
            "about 1e-38.",
     .inputs = {{"data", "R1: floating dtype of up to 32 bits. R2: rank 1 or more."}},
     .output = "Shape and dtype of `data`.",
     .attrs = TypeOf<SoftmaxAttrs>,
     .type_rel = Rel<"nn.fast_softmax", FastSoftmaxType>,
     .lower = LowerFastSoftmax,
     .pattern = OpPattern::kOpaque,
     .source = "ONNX Softmax-13",
     .traits = {.precision = Precision::kNever}});

Expr MakeWeights(const Expr& scores) {
  return MakeCall<SoftmaxAttrs>(op::softmax, {scores}, [](SoftmaxAttrs* a) { a->axis = -1; });
}
bool MakesWeights(const OpNode* op) { return op == op::softmax.get(); }
bool IsWeights(const CallNode* call, int64_t rank) {
  if (!MakesWeights(call->op.as<OpNode>())) return false;
  const int64_t axis = AttrsAs<SoftmaxAttrs>(call->attrs).axis;
  return axis == -1 || axis == rank - 1;
}

}  // namespace baton::relay
