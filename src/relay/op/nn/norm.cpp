// SPDX-License-Identifier: Apache-2.0
// Normalisations. Sums are in float32 or wider.
#include "../common.h"

#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>

namespace baton::relay {
namespace {

/// Extents of arguments 1.. must be those of the channels.
void CheckPerChannel(const TypeArgs& in, int64_t channels, int first, int last, const char* rule) {
  for (int i = first; i <= last; ++i) {
    in.Rank(i, 1, rule);
    if (channels >= 0 && in.dim(i, 0) >= 0 && in.dim(i, 0) != channels) {
      in.Fail(rule, "`" + in.Name(i) + "` has " + Str(in.dim(i, 0)) + " elements, `data` has " + Str(channels) + " channels");
    }
  }
}

Tensor MeanOf(const Tensor& x, const Ints& axes) {
  DataType t = Wide(x.dtype());
  PrimExpr n = cast(t, topi::ReducedCount(x.shape(), axes));
  Tensor sum = topi::ReduceWith(x, axes, true, te::Sum, [](PrimExpr v, const Shape&, const Shape&) { return Widen(v); }, "sum");
  return topi::Map(sum, [&](PrimExpr v) { return v / n; }, "mean");
}
Tensor VarianceOf(const Tensor& x, const Tensor& mean, const Ints& axes) {
  DataType t = Wide(x.dtype());
  PrimExpr n = cast(t, topi::ReducedCount(x.shape(), axes));
  Tensor squares = topi::ReduceWith(x, axes, true, te::Sum, [&](PrimExpr v, const Shape& at, const Shape&) {
    PrimExpr d = Widen(v) - topi::BroadcastAt(mean, at);
    return d * d;
  }, "squares");
  return topi::Map(squares, [&](PrimExpr v) { return v / n; }, "variance");
}
/// 1 / sqrt(v + epsilon)
Tensor InverseDeviation(const Tensor& variance, double epsilon) {
  return topi::Map(variance, [&](PrimExpr v) { return te::Const(1, v.dtype()) / sqrt(v + te::Const(epsilon, v.dtype())); }, "rstd");
}

// ---- batch_norm, dropout: as in inference, said in terms of others.
Type BatchNormType(const BatchNormAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  int64_t axis = in.Axis(a.axis, in.ndim(0));
  CheckPerChannel(in, in.dim(0, axis), 1, 4, "R2");
  return TupleType(Array<Type>{GetRef<TensorType>(in[0]), GetRef<TensorType>(in[3]), GetRef<TensorType>(in[4])});
}
Expr DecomposeBatchNorm(const Call& call, const Array<Expr>& args) {
  const auto& a = AttrsOf<BatchNormAttrs>(call);
  const auto* t = Downcast<TensorType>(call->args[0]->checked_type()).get();
  int64_t ndim = static_cast<int64_t>(t->shape.size()), axis = NormalizeAxis(a.axis, ndim, "nn.batch_norm");
  // Parameters may be of another floating dtype than the data: the sum is that of the parameters.
  DataType p = Downcast<TensorType>(call->args[4]->checked_type())->dtype;
  auto param = [&](int i) { return Downcast<TensorType>(call->args[i]->checked_type())->dtype == p ? args[i] : Cast(args[i], p); };
  static const Op sqrt_op = Op::Get("sqrt");
  Expr scale = Divide(MakeScalar(1, p), MakeCall(sqrt_op, {Add(args[4], MakeScalar(a.epsilon, p))}));
  if (a.scale) scale = Multiply(param(1), scale);
  Expr shift = Multiply(Subtract(MakeScalar(0, p), param(3)), scale);
  if (a.center) shift = Add(param(2), shift);
  if (ndim - axis > 1) {
    scale = ExpandDims(scale, 1, ndim - axis - 1);
    shift = ExpandDims(shift, 1, ndim - axis - 1);
  }
  Expr x = t->dtype == p ? args[0] : Cast(args[0], p);
  Expr out = Add(Multiply(x, scale), shift);
  if (!(t->dtype == p)) out = Cast(out, t->dtype);
  return Tuple(Array<Expr>{out, args[3], args[4]});
}

Type DropoutType(const DropoutAttrs&, const TypeArgs& in) {
  return TupleType(Array<Type>{GetRef<TensorType>(in[0]), TensorType(in.shape(0), DataType::Bool())});
}
Expr DecomposeDropout(const Call&, const Array<Expr>& args) {
  static const Op ones = Op::Get("ones_like");
  return Tuple(Array<Expr>{args[0], Cast(MakeCall(ones, {args[0]}), DataType::Bool())});
}

// ---- layer_norm, rms_norm
Type LayerNormType(const LayerNormAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  int64_t axis = in.Axis(a.axis, in.ndim(0));
  if (axis + a.num_axes > in.ndim(0)) in.Fail("R2", "num_axes is " + Str(a.num_axes) + ", `data` has " + Str(in.ndim(0) - axis) + " dimensions from axis " + Str(axis) + " on");
  return GetRef<TensorType>(in[0]);
}
/// The element of a parameter of the normalised dimensions that belongs to index i of the data.
PrimExpr ParamAt(const Tensor& p, const Indices& i, int64_t axis, int64_t n) {
  Shape at;
  for (int64_t d = axis; d < axis + n; ++d) at.push_back(i[d]);
  return Widen(topi::BroadcastAt(p, at));
}
Ints AxesFrom(int64_t axis, int64_t n) {
  Ints axes;
  for (int64_t d = axis; d < axis + n; ++d) axes.push_back(d);
  return axes;
}
Tensor LowerLayerNorm(const LayerNormAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  int64_t axis = NormalizeAxis(a.axis, x.ndim(), "nn.layer_norm");
  Ints axes = AxesFrom(axis, a.num_axes);
  Tensor mean = MeanOf(x, axes), rstd = InverseDeviation(VarianceOf(x, mean, axes), a.epsilon);
  return te::Compute(x.shape(), [&](Indices i) {
    PrimExpr y = (Widen(x(i)) - topi::BroadcastAt(mean, i)) * topi::BroadcastAt(rstd, i);
    if (a.scale) y = y * ParamAt(in[1], i, axis, a.num_axes);
    if (a.center) y = y + ParamAt(in[2], i, axis, a.num_axes);
    return cast(x.dtype(), y);
  }, "layer_norm");
}
Type RmsNormType(const RmsNormAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  int64_t axis = in.Axis(a.axis, in.ndim(0));
  if (axis + a.num_axes > in.ndim(0)) in.Fail("R2", "num_axes is " + Str(a.num_axes) + ", `data` has " + Str(in.ndim(0) - axis) + " dimensions from axis " + Str(axis) + " on");
  return GetRef<TensorType>(in[0]);
}
Tensor LowerRmsNorm(const RmsNormAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  int64_t axis = NormalizeAxis(a.axis, x.ndim(), "nn.rms_norm");
  Ints axes = AxesFrom(axis, a.num_axes);
  DataType t = Wide(x.dtype());
  PrimExpr n = cast(t, topi::ReducedCount(x.shape(), axes));
  Tensor squares = topi::ReduceWith(x, axes, true, te::Sum, [](PrimExpr v, const Shape&, const Shape&) { return Widen(v) * Widen(v); }, "squares");
  Tensor rstd = InverseDeviation(topi::Map(squares, [&](PrimExpr v) { return v / n; }, "mean_square"), a.epsilon);
  return te::Compute(x.shape(), [&](Indices i) {
    return cast(x.dtype(), Widen(x(i)) * topi::BroadcastAt(rstd, i) * ParamAt(in[1], i, axis, a.num_axes));
  }, "rms_norm");
}

// ---- instance_norm, group_norm
Type InstanceNormType(const InstanceNormAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  int64_t axis = in.Axis(a.axis, in.ndim(0));
  CheckPerChannel(in, in.dim(0, axis), 1, 2, "R2");
  return GetRef<TensorType>(in[0]);
}
Tensor LowerInstanceNorm(const InstanceNormAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  int64_t axis = NormalizeAxis(a.axis, x.ndim(), "nn.instance_norm");
  Ints axes;
  for (int64_t d = 1; d < x.ndim(); ++d) {
    if (d != axis) axes.push_back(d);
  }
  Tensor mean = MeanOf(x, axes), rstd = InverseDeviation(VarianceOf(x, mean, axes), a.epsilon);
  return te::Compute(x.shape(), [&](Indices i) {
    PrimExpr y = (Widen(x(i)) - topi::BroadcastAt(mean, i)) * topi::BroadcastAt(rstd, i);
    if (a.scale) y = y * Widen(in[1](i[axis]));
    if (a.center) y = y + Widen(in[2](i[axis]));
    return cast(x.dtype(), y);
  }, "instance_norm");
}
Type GroupNormType(const GroupNormAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  int64_t axis = in.Axis(a.axis, in.ndim(0)), channels = in.dim(0, axis);
  CheckPerChannel(in, channels, 1, 2, "R2");
  if (channels >= 0 && channels % a.num_groups != 0) in.Fail("R3", "`data` has " + Str(channels) + " channels, which " + Str(a.num_groups) + " groups do not divide");
  return GetRef<TensorType>(in[0]);
}
Tensor LowerGroupNorm(const GroupNormAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  int64_t axis = NormalizeAxis(a.axis, x.ndim(), "nn.group_norm");
  // The channel dimension is seen as (group, channel of the group); batch and group stay, the others are normalised over.
  PrimExpr groups = PrimExpr(a.num_groups), per = floordiv(x.shape()[axis], groups);
  Shape split;
  for (int64_t d = 0; d < x.ndim(); ++d) {
    if (d == axis) split.push_back(groups);
    split.push_back(d == axis ? per : x.shape()[d]);
  }
  Tensor y = te::Compute(split, [&](Indices i) {
    Shape at;
    for (int64_t d = 0; d < x.ndim(); ++d) {
      if (d < axis) at.push_back(i[d]);
      if (d == axis) at.push_back(i[d] * per + i[d + 1]);
      if (d > axis) at.push_back(i[d + 1]);
    }
    return x(at);
  }, "groups");
  Ints axes;
  for (int64_t d = 1; d < y.ndim(); ++d) {
    if (d != axis) axes.push_back(d);
  }
  Tensor mean = MeanOf(y, axes), rstd = InverseDeviation(VarianceOf(y, mean, axes), a.epsilon);
  return te::Compute(x.shape(), [&](Indices i) {
    Shape at;
    for (int64_t d = 0; d < x.ndim(); ++d) {
      if (d == axis) at.push_back(floordiv(i[d], per));
      at.push_back(d == axis ? floormod(i[d], per) : PrimExpr(i[d]));
    }
    PrimExpr z = (Widen(x(i)) - topi::BroadcastAt(mean, at)) * topi::BroadcastAt(rstd, at);
    if (a.scale) z = z * Widen(in[1](i[axis]));
    if (a.center) z = z + Widen(in[2](i[axis]));
    return cast(x.dtype(), z);
  }, "group_norm");
}

// ---- l2_normalize, lp_normalize, lrn
Type L2Type(const L2NormalizeAttrs&, const TypeArgs& in) {
  in.Floating(0, "R1");
  return GetRef<TensorType>(in[0]);
}
Tensor LowerL2(const L2NormalizeAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  Ints axes;
  if (a.axis.defined()) {
    axes = NormalizeAxes(a.axis, x.ndim(), "nn.l2_normalize");
  } else {
    axes = AxesFrom(0, x.ndim());
  }
  Tensor squares = topi::ReduceWith(x, axes, true, te::Sum, [](PrimExpr v, const Shape&, const Shape&) { return Widen(v) * Widen(v); }, "squares");
  return te::Compute(x.shape(), [&](Indices i) {
    PrimExpr s = topi::BroadcastAt(squares, i);
    return cast(x.dtype(), Widen(x(i)) / sqrt(max(s, te::Const(a.eps, s.dtype()))));
  }, "l2_normalize");
}
Type LpType(const LpNormalizeAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.Axis(a.axis, in.ndim(0));
  return GetRef<TensorType>(in[0]);
}
Tensor LowerLp(const LpNormalizeAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  Ints axes{NormalizeAxis(a.axis, x.ndim(), "nn.lp_normalize")};
  Tensor norm = topi::ReduceWith(x, axes, true, te::Sum, [&](PrimExpr v, const Shape&, const Shape&) {
    return a.p == 1 ? fabs(Widen(v)) : Widen(v) * Widen(v);
  }, "norm");
  return te::Compute(x.shape(), [&](Indices i) {
    PrimExpr s = topi::BroadcastAt(norm, i);
    if (a.p == 2) s = sqrt(s);
    // Nothing divided by nothing is nothing here.
    PrimExpr zero = te::Const(0, s.dtype());
    return cast(x.dtype(), te::Select(equal(s, zero), zero, Widen(x(i)) / s));
  }, "lp_normalize");
}
Type LrnType(const LRNAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.Axis(a.axis, in.ndim(0));
  return GetRef<TensorType>(in[0]);
}
Tensor LowerLrn(const LRNAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  int64_t axis = NormalizeAxis(a.axis, x.ndim(), "nn.lrn");
  DataType t = Wide(x.dtype());
  // Neighbours c - floor((size - 1) / 2) ... c + ceil((size - 1) / 2), as far as there are such channels.
  int64_t before = (a.size - 1) / 2;
  PrimExpr channels = x.shape()[axis];
  te::IterVar k = te::ReduceAxis(PrimExpr(0), PrimExpr(a.size), "k");
  Tensor sum = te::Compute(x.shape(), [&](Indices i) {
    PrimExpr c = PrimExpr(i[axis]) + PrimExpr(k->var) - PrimExpr(before);
    Shape at = i;
    at.Set(axis, c);
    PrimExpr inside = c >= PrimExpr(0) && c < channels;
    PrimExpr v = if_then_else(inside, Widen(x(at)), te::Const(0, t));
    return te::Sum(v * v, {k});
  }, "square_sum");
  return te::Compute(x.shape(), [&](Indices i) {
    PrimExpr d = te::Const(a.bias, t) + te::Const(a.alpha / static_cast<double>(a.size), t) * sum(i);
    return cast(x.dtype(), Widen(x(i)) / pow(d, te::Const(a.beta, t)));
  }, "lrn");
}

}  // namespace

const Op op::batch_norm = DefineOp({
    .name = "nn.batch_norm",
    .doc = "(data - moving_mean) / sqrt(moving_var + epsilon) * gamma + beta, with mean and variance as in inference.",
    .inputs = {{"data", "R1: floating dtype."},
               {"gamma", "Factor of each channel. R2: as many elements as channels."},
               {"beta", "Term of each channel. R2."},
               {"moving_mean", "Mean of each channel. R2."},
               {"moving_var", "Variance of each channel. R2."}},
    .output = "(normalised data, moving_mean, moving_var).",
    .attrs = TypeOf<BatchNormAttrs>,
    .type_rel = Rel<"nn.batch_norm", BatchNormType>,
    .decompose = DecomposeBatchNorm,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX BatchNormalization-15",
});
const Op op::dropout = DefineOp({
    .name = "nn.dropout",
    .doc = "In inference: the data, and a mask that keeps everything.",
    .inputs = {{"data", "Any shape and dtype."}},
    .output = "(data, mask): the mask is bool.",
    .attrs = TypeOf<DropoutAttrs>,
    .type_rel = Rel<"nn.dropout", DropoutType>,
    .decompose = DecomposeDropout,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX Dropout-13",
});
const Op op::layer_norm = DefineOp({
    .name = "nn.layer_norm",
    .doc = "(data - mean) / sqrt(variance + epsilon) * gamma + beta over `num_axes` dimensions from `axis` on.",
    .inputs = {{"data", "R1: floating dtype."},
               {"gamma", "Factor; broadcasts to the normalised dimensions."},
               {"beta", "Term; broadcasts to the normalised dimensions."}},
    .output = "Shape and dtype of `data`. R2: there are that many dimensions.",
    .attrs = TypeOf<LayerNormAttrs>,
    .type_rel = Rel<"nn.layer_norm", LayerNormType>,
    .lower = LowerLayerNorm,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX LayerNormalization-17",
});
const Op op::rms_norm = DefineOp({
    .name = "nn.rms_norm",
    .doc = "data / sqrt(mean(data^2) + epsilon) * gamma over `num_axes` dimensions from `axis` on.",
    .inputs = {{"data", "R1: floating dtype."}, {"gamma", "Factor; broadcasts to the normalised dimensions."}},
    .output = "Shape and dtype of `data`. R2: there are that many dimensions.",
    .attrs = TypeOf<RmsNormAttrs>,
    .type_rel = Rel<"nn.rms_norm", RmsNormType>,
    .lower = LowerRmsNorm,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX RMSNormalization-23",
});
const Op op::instance_norm = DefineOp({
    .name = "nn.instance_norm",
    .doc = "Normalises each channel of each batch element over the other dimensions.",
    .inputs = {{"data", "R1: floating dtype."},
               {"gamma", "Factor of each channel. R2: as many elements as channels."},
               {"beta", "Term of each channel. R2."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<InstanceNormAttrs>,
    .type_rel = Rel<"nn.instance_norm", InstanceNormType>,
    .lower = LowerInstanceNorm,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX InstanceNormalization-22",
});
const Op op::group_norm = DefineOp({
    .name = "nn.group_norm",
    .doc = "Normalises each group of channels of each batch element over all but batch and group.",
    .inputs = {{"data", "R1: floating dtype."},
               {"gamma", "Factor of each channel. R2: as many elements as channels."},
               {"beta", "Term of each channel. R2."}},
    .output = "Shape and dtype of `data`. R3: the groups divide the channels.",
    .attrs = TypeOf<GroupNormAttrs>,
    .type_rel = Rel<"nn.group_norm", GroupNormType>,
    .lower = LowerGroupNorm,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX GroupNormalization-21",
});
const Op op::l2_normalize = DefineOp({
    .name = "nn.l2_normalize",
    .doc = "data / sqrt(max(sum(data^2), eps)) over `axis`.",
    .inputs = {{"data", "R1: floating dtype."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<L2NormalizeAttrs>,
    .type_rel = Rel<"nn.l2_normalize", L2Type>,
    .lower = LowerL2,
    .pattern = OpPattern::kOpaque,
    .source = "Relay nn.l2_normalize",
});
const Op op::lp_normalize = DefineOp({
    .name = "nn.lp_normalize",
    .doc = "data divided by its p-norm along `axis`; 0 where the norm is 0.",
    .inputs = {{"data", "R1: floating dtype."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<LpNormalizeAttrs>,
    .type_rel = Rel<"nn.lp_normalize", LpType>,
    .lower = LowerLp,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX LpNormalization-22",
});
const Op op::lrn = DefineOp({
    .name = "nn.lrn",
    .doc = "data / (bias + alpha / size * sum of squares of neighbouring channels) ^ beta.",
    .inputs = {{"data", "R1: floating dtype."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<LRNAttrs>,
    .type_rel = Rel<"nn.lrn", LrnType>,
    .lower = LowerLrn,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX LRN-13",
});

}  // namespace baton::relay
