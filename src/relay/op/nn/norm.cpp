// SPDX-License-Identifier: Apache-2.0
// Normalisations. Those by the data's own moments are kernels of a few passes; batch_norm at inference
// is arithmetic with constants, said in other operators so that it folds into its neighbours.
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/transform.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>

#include <algorithm>

#include "../common.h"
#include "../gradient.h"
#include "../reference/reference.h"

namespace baton::relay {
namespace {

struct BatchNormAttrs : NormFields<BatchNormAttrs, 1> {
  static constexpr auto _type_key = "relay.attrs.BatchNormAttrs";
  static constexpr void Describe(auto& d) { DescribeNorm(d, "Dimension of the channels."); }
};

struct InstanceNormAttrs : NormFields<InstanceNormAttrs, 1> {
  static constexpr auto _type_key = "relay.attrs.InstanceNormAttrs";
  static constexpr void Describe(auto& d) {
    DescribeNorm(d, "Dimension of the channels; the first is the batch, the others are normalised over.");
  }
};

struct LayerNormAttrs : NormFields<LayerNormAttrs, -1> {
  static constexpr auto _type_key = "relay.attrs.LayerNormAttrs";
  int64_t num_axes = 1;
  static constexpr void Describe(auto& d) {
    DescribeNorm(d, "First dimension to normalise over.");
    d(F<&LayerNormAttrs::num_axes>, "How many dimensions, from `axis` on, are normalised over.", AtLeast(1));
  }
};

struct GroupNormAttrs : NormFields<GroupNormAttrs, 1> {
  static constexpr auto _type_key = "relay.attrs.GroupNormAttrs";
  int64_t num_groups = 1;
  static constexpr void Describe(auto& d) {
    d(F<&GroupNormAttrs::num_groups>, "Number of groups of channels.", kRequired, AtLeast(1));
    DescribeNorm(d, "Dimension of the channels; the first is the batch.");
  }
};

struct RmsNormAttrs : AttrsNode<RmsNormAttrs> {
  static constexpr auto _type_key = "relay.attrs.RmsNormAttrs";
  int64_t axis = -1;
  int64_t num_axes = 1;
  double epsilon = 1e-5;
  static constexpr void Describe(auto& d) {
    d(F<&RmsNormAttrs::axis>, "First dimension to normalise over.");
    d(F<&RmsNormAttrs::num_axes>, "How many dimensions, from `axis` on.", AtLeast(1));
    d(F<&RmsNormAttrs::epsilon>, "Added to the mean square.");
  }
};

struct L2NormalizeAttrs : AttrsNode<L2NormalizeAttrs> {
  static constexpr auto _type_key = "relay.attrs.L2NormalizeAttrs";
  double eps = 0;
  Array<int64_t> axis = NoInts();
  static constexpr void Describe(auto& d) {
    d(F<&L2NormalizeAttrs::eps>, "Smallest sum of squares to divide by.", kRequired);
    d(F<&L2NormalizeAttrs::axis>, "Dimensions to normalise over; None: all.");
  }
};

struct LpNormalizeAttrs : AttrsNode<LpNormalizeAttrs> {
  static constexpr auto _type_key = "relay.attrs.LpNormalizeAttrs";
  int64_t p = 2;
  int64_t axis = -1;
  static constexpr void Describe(auto& d) {
    d(F<&LpNormalizeAttrs::p>, "1 or 2.", AtLeast(1), runtime::AtMost(2));
    d(F<&LpNormalizeAttrs::axis>, "Dimension to normalise over.");
  }
};

struct LRNAttrs : AttrsNode<LRNAttrs> {
  static constexpr auto _type_key = "relay.attrs.LRNAttrs";
  int64_t size = 5;
  int64_t axis = 1;
  double bias = 2;
  double alpha = 1e-5;
  double beta = 0.75;
  static constexpr void Describe(auto& d) {
    d(F<&LRNAttrs::size>, "Number of neighbouring channels, itself among them.", AtLeast(1));
    d(F<&LRNAttrs::axis>, "Dimension of the channels.");
    d(F<&LRNAttrs::bias>, "Added to the scaled sum of squares.");
    d(F<&LRNAttrs::alpha>, "Factor of the mean square.");
    d(F<&LRNAttrs::beta>, "Exponent.");
  }
};

struct DropoutAttrs : AttrsNode<DropoutAttrs> {
  static constexpr auto _type_key = "relay.attrs.DropoutAttrs";
  double rate = 0.5;
  static constexpr void Describe(auto& d) {
    d(F<&DropoutAttrs::rate>, "Share of elements dropped in training.", AtLeast(0), runtime::AtMost(1));
  }
};

PrimExpr Sum(const PrimExpr& v, const Array<te::IterVar>& k) { return k.empty() ? v : te::Sum(v, k); }

/// Mean and 1 / sqrt(variance + epsilon) of data over `axes`, both with extent 1 there.
struct Moments {
  Tensor mean, rstd;
};
Moments MomentsOf(const Tensor& x, const Ints& axes, double epsilon) {
  DataType t = Wide(x.dtype());
  PrimExpr n = cast(t, topi::ReducedCount(x.shape(), axes));
  Tensor sum = topi::ReduceWith(
      x, axes, true, te::Sum, [&](PrimExpr v, const Shape&, const Shape&) { return cast(t, v); }, "sum");
  Tensor mean = topi::Map(sum, [&](PrimExpr v) { return v / n; }, "mean");
  Tensor squares = topi::ReduceWith(
      x, axes, true, te::Sum,
      [&](PrimExpr v, const Shape& at, const Shape&) {
        PrimExpr d = cast(t, v) - topi::BroadcastAt(mean, at);
        return d * d;
      },
      "squares");
  Tensor rstd = topi::Map(squares, [&](PrimExpr v) { return Lit(1, t) / sqrt(v / n + Lit(epsilon, t)); }, "rstd");
  return {mean, rstd};
}
/// (data - mean) * rstd * gamma + beta, gamma and beta found by `param(tensor, i)`.
template <class A, class Param>
Tensor Normalized(const A& a, const Tensors& in, const Moments& m, Param param, const char* name) {
  const Tensor& x = in[0];
  DataType t = Wide(x.dtype());
  return te::Compute(
      x.shape(),
      [&](Indices i) {
        PrimExpr v = (cast(t, x(i)) - topi::BroadcastAt(m.mean, i)) * topi::BroadcastAt(m.rstd, i);
        if (a.scale) v = v * cast(t, param(in[1], i));
        if (a.center) v = v + cast(t, param(in[2], i));
        return cast(x.dtype(), v);
      },
      name);
}
void CheckParam(const TypeArgs& in, int i, const PrimExpr& channels, const char* rule) {
  in.SameDtype(0, i, rule);
  in.Rank(i, 1, rule);
  if (!in.Same(in.shape(i)[0], channels)) {
    in.Fail(rule,
            in.Show(i) + ", where " + Str(DimOf(channels)) + " elements are wanted, as many as `data` has channels");
  }
}
template <class A>
void GuessParams(const A& a, Array<Type>* types) {
  const auto* x = AsTensor((*types)[0]);
  if (!x || x->shape.empty()) return;
  int64_t n = x->shape.size(), axis = a.axis < 0 ? a.axis + n : a.axis;
  if (axis < 0 || axis >= n) return;
  for (int i = 1; i + 1 < static_cast<int>(types->size()); ++i) Guess(types, i, {x->shape[axis]}, x->dtype);
}

// ---- batch_norm
Type BatchNormType(const BatchNormAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.MinRank(0, 1, "R2");
  int64_t axis = in.Axis(a.axis, in.ndim(0));
  for (int i = 1; i < 5; ++i) {
    in.Floating(i, "R3");
    in.Rank(i, 1, "R3");
    if (!in.Same(in.shape(i)[0], in.shape(0)[axis])) {
      in.Fail("R3",
              in.Show(i) + ", where " + Str(in.dim(0, axis)) + " elements are wanted, as many as `data` has channels");
    }
  }
  return TupleType(Array<Type>{in.type(0), in.type(3), in.type(4)});
}
Tensors LowerBatchNorm(const BatchNormAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  int64_t axis = NormalizeAxis(a.axis, x.ndim(), "nn.batch_norm");
  DataType t = Wide(x.dtype());
  Tensor y = te::Compute(
      x.shape(),
      [&](Indices i) {
        auto param = [&](int k) { return cast(t, in[k](i[axis])); };
        PrimExpr v = (cast(t, x(i)) - param(3)) / sqrt(param(4) + Lit(a.epsilon, t));
        if (a.scale) v = v * param(1);
        if (a.center) v = v + param(2);
        return cast(x.dtype(), v);
      },
      "batch_norm");
  auto copy = [](const Tensor& v) { return topi::Map(v, [](PrimExpr e) { return e; }, "copy"); };
  return {y, copy(in[3]), copy(in[4])};
}
Expr DecomposeBatchNorm(const Call& call, const Array<Expr>& args) {
  const auto& a = AttrsOf<BatchNormAttrs>(call);
  const auto* x = AsTensor(call->args[0]->checked_type());
  const auto* var = AsTensor(call->args[4]->checked_type());
  int64_t ndim = x->shape.size(), axis = NormalizeAxis(a.axis, ndim, "nn.batch_norm");
  // Scale and shift a channel: with constant statistics they fold to two constants.
  Expr scale = Divide(MakeScalar(1, var->dtype), MakeCall(op::sqrt, {Add(args[4], MakeScalar(a.epsilon, var->dtype))}));
  if (a.scale) scale = Multiply(scale, args[1]);
  Expr shift = Multiply(MakeCall(op::negative, {args[3]}), scale);
  if (a.center) shift = Add(shift, args[2]);
  if (var->dtype != x->dtype) scale = Cast(scale, x->dtype), shift = Cast(shift, x->dtype);
  int64_t behind = ndim - 1 - axis;
  if (behind > 0) scale = ExpandDims(scale, 1, behind), shift = ExpandDims(shift, 1, behind);
  return Tuple(TupleNode{{}, {Add(Multiply(args[0], scale), shift), args[3], args[4]}});
}

// ---- layer_norm, rms_norm
template <class A>
Ints NormAxes(const A& a, int64_t ndim, const char* op) {
  int64_t axis = NormalizeAxis(a.axis, ndim, op);
  if (a.num_axes > ndim - axis) {
    throw CompileError(std::string("[") + op + " R2] num_axes is " + Str(a.num_axes) + " from axis " + Str(axis) +
                       " on, `data` has rank " + Str(ndim));
  }
  Ints axes;
  for (int64_t d = axis; d < axis + a.num_axes; ++d) axes.push_back(d);
  return axes;
}
/// A parameter broadcasts to the normalised dimensions.
void CheckNormParam(const TypeArgs& in, int i, const Ints& axes) {
  in.SameDtype(0, i, "R3");
  int64_t n = in.ndim(i), m = axes.size();
  bool fits = n <= m;
  for (int64_t d = 0; fits && d < n; ++d) {
    int64_t have = in.dim(i, n - 1 - d), want = in.dim(0, axes[m - 1 - d]);
    fits = have < 0 || want < 0 || have == 1 || have == want;
  }
  if (!fits) in.Fail("R3", in.Show(i) + " does not broadcast to the normalised dimensions of " + in.Show(0));
}
PrimExpr NormParam(const Tensor& p, const Indices& i, const Ints& axes) {
  Shape at;
  for (int64_t a : axes) at.push_back(i[a]);
  return topi::BroadcastAt(p, at);
}
Type LayerNormType(const LayerNormAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.MinRank(0, 1, "R2");
  Ints axes = NormAxes(a, in.ndim(0), in.op());
  CheckNormParam(in, 1, axes);
  CheckNormParam(in, 2, axes);
  return in.type(0);
}
Tensor LowerLayerNorm(const LayerNormAttrs& a, const Tensors& in) {
  Ints axes = NormAxes(a, in[0].ndim(), "nn.layer_norm");
  return Normalized(
      a, in, MomentsOf(in[0], axes, a.epsilon),
      [&](const Tensor& p, const Indices& i) { return NormParam(p, i, axes); }, "layer_norm");
}
Type RmsNormType(const RmsNormAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.MinRank(0, 1, "R2");
  CheckNormParam(in, 1, NormAxes(a, in.ndim(0), in.op()));
  return in.type(0);
}
Tensor LowerRmsNorm(const RmsNormAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  Ints axes = NormAxes(a, x.ndim(), "nn.rms_norm");
  DataType t = Wide(x.dtype());
  PrimExpr n = cast(t, topi::ReducedCount(x.shape(), axes));
  Tensor squares = topi::ReduceWith(
      x, axes, true, te::Sum, [&](PrimExpr v, const Shape&, const Shape&) { return cast(t, v) * cast(t, v); },
      "squares");
  Tensor rms = topi::Map(squares, [&](PrimExpr v) { return Lit(1, t) / sqrt(v / n + Lit(a.epsilon, t)); }, "rms");
  return te::Compute(
      x.shape(),
      [&](Indices i) {
        return cast(x.dtype(), cast(t, x(i)) * topi::BroadcastAt(rms, i) * cast(t, NormParam(in[1], i, axes)));
      },
      "rms_norm");
}

// ---- instance_norm, group_norm
Type InstanceNormType(const InstanceNormAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.MinRank(0, 2, "R2");
  int64_t axis = in.Axis(a.axis, in.ndim(0));
  if (axis == 0) in.Fail("R2", "axis is the batch's");
  CheckParam(in, 1, in.shape(0)[axis], "R3");
  CheckParam(in, 2, in.shape(0)[axis], "R3");
  return in.type(0);
}
Tensor LowerInstanceNorm(const InstanceNormAttrs& a, const Tensors& in) {
  int64_t axis = NormalizeAxis(a.axis, in[0].ndim(), "nn.instance_norm");
  Ints axes;
  for (int64_t d = 1; d < in[0].ndim(); ++d) {
    if (d != axis) axes.push_back(d);
  }
  return Normalized(
      a, in, MomentsOf(in[0], axes, a.epsilon), [&](const Tensor& p, const Indices& i) { return p(i[axis]); },
      "instance_norm");
}
Type GroupNormType(const GroupNormAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.MinRank(0, 2, "R2");
  int64_t axis = in.Axis(a.axis, in.ndim(0)), c = in.dim(0, axis);
  if (axis == 0) in.Fail("R2", "axis is the batch's");
  if (c >= 0 && c % a.num_groups != 0)
    in.Fail("R4", "`data` has " + Str(c) + " channels, which num_groups = " + Str(a.num_groups) + " does not divide");
  CheckParam(in, 1, in.shape(0)[axis], "R3");
  CheckParam(in, 2, in.shape(0)[axis], "R3");
  return in.type(0);
}
Tensor LowerGroupNorm(const GroupNormAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  int64_t axis = NormalizeAxis(a.axis, x.ndim(), "nn.group_norm");
  PrimExpr groups = a.num_groups, size = floordiv(x.shape()[axis], groups);
  DataType t = Wide(x.dtype());
  // Sums over a group's channels and all of space: tensors (batch, group).
  Shape reduced{size};
  for (int64_t d = 1; d < x.ndim(); ++d) {
    if (d != axis) reduced.push_back(x.shape()[d]);
  }
  PrimExpr n = cast(t, topi::Product(reduced));
  auto sum = [&](auto value, const char* name) {
    Array<te::IterVar> k;
    for (size_t d = 0; d < reduced.size(); ++d) k.push_back(te::ReduceAxis(0, reduced[d], "k" + Str(d)));
    return te::Compute(
        Shape{x.shape()[0], groups},
        [&](Indices i) {
          Shape at{i[0]};
          for (int64_t d = 1, s = 1; d < x.ndim(); ++d)
            at.push_back(d == axis ? i[1] * size + k[0]->var : PrimExpr(k[s++]->var));
          return Sum(value(cast(t, x(at)), i), k);
        },
        name);
  };
  Tensor total = sum([](PrimExpr v, const Indices&) { return v; }, "sum");
  Tensor mean = topi::Map(total, [&](PrimExpr v) { return v / n; }, "mean");
  Tensor squares = sum([&](PrimExpr v, const Indices& i) { return (v - mean(i)) * (v - mean(i)); }, "squares");
  Tensor rstd = topi::Map(squares, [&](PrimExpr v) { return Lit(1, t) / sqrt(v / n + Lit(a.epsilon, t)); }, "rstd");
  return te::Compute(
      x.shape(),
      [&](Indices i) {
        PrimExpr g = floordiv(i[axis], size);
        PrimExpr v = (cast(t, x(i)) - mean(i[0], g)) * rstd(i[0], g);
        if (a.scale) v = v * cast(t, in[1](i[axis]));
        if (a.center) v = v + cast(t, in[2](i[axis]));
        return cast(x.dtype(), v);
      },
      "group_norm");
}

// ---- norms of vectors
Type L2NormalizeType(const L2NormalizeAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  if (a.axis.defined()) NormalizeAxes(a.axis, in.ndim(0), in.op());
  return in.type(0);
}
Tensor LowerL2Normalize(const L2NormalizeAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  DataType t = Wide(x.dtype());
  Ints axes;
  for (int64_t d = 0; d < x.ndim(); ++d) axes.push_back(d);
  if (a.axis.defined()) axes = NormalizeAxes(a.axis, x.ndim(), "nn.l2_normalize");
  Tensor sum = topi::ReduceWith(
      x, axes, true, te::Sum, [&](PrimExpr v, const Shape&, const Shape&) { return cast(t, v) * cast(t, v); },
      "squares");
  return te::Compute(
      x.shape(),
      [&](Indices i) { return cast(x.dtype(), cast(t, x(i)) / sqrt(max(topi::BroadcastAt(sum, i), Lit(a.eps, t)))); },
      "l2_normalize");
}
Type LpNormalizeType(const LpNormalizeAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.MinRank(0, 1, "R2");
  in.Axis(a.axis, in.ndim(0));
  return in.type(0);
}
Tensor LowerLpNormalize(const LpNormalizeAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  DataType t = Wide(x.dtype());
  Tensor sum = topi::ReduceWith(
      x, {NormalizeAxis(a.axis, x.ndim(), "nn.lp_normalize")}, true, te::Sum,
      [&](PrimExpr v, const Shape&, const Shape&) {
        v = cast(t, v);
        return a.p == 1 ? fabs(v) : v * v;
      },
      "norm");
  return te::Compute(
      x.shape(),
      [&](Indices i) {
        PrimExpr s = topi::BroadcastAt(sum, i);
        if (a.p == 2) s = sqrt(s);
        // A vector of zeros stays zero, as in ONNX.
        return cast(x.dtype(), te::Select(equal(s, Lit(0, t)), Lit(0, t), cast(t, x(i)) / s));
      },
      "lp_normalize");
}
Type LRNType(const LRNAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.MinRank(0, 1, "R2");
  in.Axis(a.axis, in.ndim(0));
  return in.type(0);
}
Tensor LowerLRN(const LRNAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  int64_t axis = NormalizeAxis(a.axis, x.ndim(), "nn.lrn");
  DataType t = Wide(x.dtype());
  PrimExpr n = x.shape()[axis];
  // A window wider than the axis covers all of it.
  int64_t before = (a.size - 1) / 2, after = a.size - 1 - before, extent = DimOf(n);
  if (extent >= 0) before = std::min(before, extent), after = std::min(after, extent);
  Array<te::IterVar> k{te::ReduceAxis(0, PrimExpr(before + after + 1), "k")};
  Tensor squares = te::Compute(
      x.shape(),
      [&](Indices i) {
        PrimExpr c = i[axis] + k[0]->var - PrimExpr(before);
        Shape at = i;
        at.Set(axis, c);
        PrimExpr v = if_then_else(c >= PrimExpr(0) && c < n, cast(t, x(at)), Lit(0, t));
        return te::Sum(v * v, k);
      },
      "squares");
  return te::Compute(
      x.shape(),
      [&](Indices i) {
        return cast(x.dtype(),
                    cast(t, x(i)) / pow(Lit(a.bias, t) + Lit(a.alpha / static_cast<double>(a.size), t) * squares(i),
                                        Lit(a.beta, t)));
      },
      "lrn");
}

// ---- dropout
Type DropoutType(const DropoutAttrs&, const TypeArgs& in) {
  in.Floating(0, "R1");
  return TupleType(Array<Type>{in.type(0), in.type(0)});
}
Tensors LowerDropout(const DropoutAttrs&, const Tensors& in) {
  return {topi::Map(in[0], [](PrimExpr v) { return v; }, "dropout"), topi::Full(in[0].shape(), Lit(1, in[0].dtype()))};
}
Expr DecomposeDropout(const Call&, const Array<Expr>& args) {
  return Tuple(TupleNode{{}, {args[0], MakeCall(op::ones_like, {args[0]})}});
}

}  // namespace

namespace gradient {
namespace {

// Normalisations decomposed into arithmetic.
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
Expr DecomposeLayerNorm(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<LayerNormAttrs>();
  int64_t axis = at.Axis(a.axis), n = at.ndim(0), end = axis + a.num_axes;
  Val v = Normalised({args[0], at.dtype(0)}, AxesFrom(axis, end), a.epsilon);
  auto param = [&](int i) { return Val{end < n ? ExpandDims(args[i], at.ndim(i), n - end) : args[i], at.dtype(i)}; };
  if (a.scale) v = v * param(1);
  if (a.center) v = v + param(2);
  return v;
}
Expr DecomposeInstanceNorm(const Call& call, const Array<Expr>& args) {
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
Expr DecomposeGroupNorm(const Call& call, const Array<Expr>& args) {
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
Expr DecomposeRmsNorm(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<RmsNormAttrs>();
  int64_t axis = at.Axis(a.axis), n = at.ndim(0), end = axis + a.num_axes;
  Val x{args[0], at.dtype(0)};
  Val v = x * Do(op::rsqrt, Val{Mean(x * x, AxesFrom(axis, end)), x.t} + a.epsilon);
  return v * Val{end < n ? ExpandDims(args[1], at.ndim(1), n - end) : args[1], x.t};
}
Expr DecomposeL2Normalize(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<L2NormalizeAttrs>();
  Val x{args[0], at.dtype(0)};
  Ints axes = ReducedAxes(a.axis, false, at.ndim(0), at.op());
  Val s = axes.empty() ? x * x : Val{Sum(x * x, axes, true), x.t};
  return x * Do(op::rsqrt, Val{Maximum(s, Num(a.eps, x.t)), x.t});
}
Expr DecomposeLpNormalize(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<LpNormalizeAttrs>();
  Val x{args[0], at.dtype(0)};
  Ints axis{at.Axis(a.axis)};
  if (a.p == 1) return x / Val{Sum(Do(op::abs, x), axis, true), x.t};
  return x * Do(op::rsqrt, Val{Sum(x * x, axis, true), x.t});
}
Expr DecomposeLRN(const Call& call, const Array<Expr>& args) {
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

}  // namespace
}  // namespace gradient

const Op op::batch_norm = DefineOp({
    .name = "nn.batch_norm",
    .doc = "(data - moving_mean) / sqrt(moving_var + epsilon) * gamma + beta, a channel at a time: as at inference.",
    .inputs = {{"data", "R1: floating dtype. R2: rank 1 or more."},
               {"gamma", "R3: rank 1, a number a channel."},
               {"beta", "As gamma."},
               {"moving_mean", "As gamma."},
               {"moving_var", "As gamma."}},
    .output = "A tuple: the result like `data`, moving_mean, moving_var.",
    .attrs = TypeOf<BatchNormAttrs>,
    .type_rel = RelGuess<"nn.batch_norm", &GuessParams<BatchNormAttrs>, BatchNormType>,
    .lower = LowerBatchNorm,
    .decompose = DecomposeBatchNorm,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX BatchNormalization-15",
    .traits = {.precision = Precision::kFollow, .layout = LayoutRule::kAxisParts},
});
const Op op::instance_norm = DefineOp({
    .name = "nn.instance_norm",
    .doc = "Each channel of each image normalised by its own mean and variance, times gamma, plus beta.",
    .inputs = {{"data", "R1: floating dtype. R2: rank 2 or more; axis is not the batch's."},
               {"gamma", "R3: rank 1, dtype of data, a number a channel."},
               {"beta", "As gamma."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<InstanceNormAttrs>,
    .type_rel = RelGuess<"nn.instance_norm", &GuessParams<InstanceNormAttrs>, InstanceNormType>,
    .lower = LowerInstanceNorm,
    .decompose = gradient::DecomposeInstanceNorm,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX InstanceNormalization-22",
    .traits = {.precision = Precision::kNever, .layout = LayoutRule::kAxis},
});
const Op op::group_norm = DefineOp({
    .name = "nn.group_norm",
    .doc = "Groups of channels normalised by their own mean and variance, times gamma, plus beta.",
    .inputs =
        {{"data",
          "R1: floating dtype. R2: rank 2 or more; axis is not the batch's. R4: num_groups divides the channels."},
         {"gamma", "R3: rank 1, dtype of data, a number a channel."},
         {"beta", "As gamma."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<GroupNormAttrs>,
    .type_rel = RelGuess<"nn.group_norm", &GuessParams<GroupNormAttrs>, GroupNormType>,
    .lower = LowerGroupNorm,
    .decompose = gradient::DecomposeGroupNorm,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX GroupNormalization-21",
    .traits = {.precision = Precision::kNever, .layout = LayoutRule::kAxis},
});
const Op op::layer_norm = DefineOp({
    .name = "nn.layer_norm",
    .doc = "Normalised by mean and variance over some dimensions, times gamma, plus beta.",
    .inputs = {{"data", "R1: floating dtype. R2: the dimensions exist."},
               {"gamma", "R3: dtype of data; broadcasts to the normalised dimensions."},
               {"beta", "As gamma."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<LayerNormAttrs>,
    .type_rel = RelGuess<"nn.layer_norm", &GuessParams<LayerNormAttrs>, LayerNormType>,
    .lower = LowerLayerNorm,
    .decompose = gradient::DecomposeLayerNorm,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX LayerNormalization-17",
    .traits = {.precision = Precision::kNever, .reference = reference::LayerNorm},
});
const Op op::rms_norm = DefineOp({
    .name = "nn.rms_norm",
    .doc = "Divided by the root of the mean square over some dimensions, times gamma.",
    .inputs = {{"data", "R1: floating dtype. R2: the dimensions exist."},
               {"gamma", "R3: dtype of data; broadcasts to the normalised dimensions."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<RmsNormAttrs>,
    .type_rel = RelGuess<"nn.rms_norm", &GuessParams<RmsNormAttrs>, RmsNormType>,
    .lower = LowerRmsNorm,
    .gradient = gradient::DecomposeRmsNorm,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX RMSNormalization-23",
    .traits = {.precision = Precision::kNever},
});
const Op op::l2_normalize = DefineOp({
    .name = "nn.l2_normalize",
    .doc = "data / sqrt(max(sum(data ** 2), eps)).",
    .inputs = {{"data", "R1: floating dtype."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<L2NormalizeAttrs>,
    .type_rel = Rel<"nn.l2_normalize", L2NormalizeType>,
    .lower = LowerL2Normalize,
    .decompose = gradient::DecomposeL2Normalize,
    .pattern = OpPattern::kOpaque,
    .source = "Relay",
    .traits = {.precision = Precision::kNever},
});
const Op op::lp_normalize = DefineOp({
    .name = "nn.lp_normalize",
    .doc = "Divided by the norm along an axis; a vector of zeros stays one.",
    .inputs = {{"data", "R1: floating dtype. R2: rank 1 or more."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<LpNormalizeAttrs>,
    .type_rel = Rel<"nn.lp_normalize", LpNormalizeType>,
    .lower = LowerLpNormalize,
    .gradient = gradient::DecomposeLpNormalize,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX LpNormalization-22",
});
const Op op::lrn = DefineOp({
    .name = "nn.lrn",
    .doc = "data / (bias + alpha / size * sum of squares over `size` neighbouring channels) ** beta.",
    .inputs = {{"data", "R1: floating dtype. R2: rank 1 or more."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<LRNAttrs>,
    .type_rel = Rel<"nn.lrn", LRNType>,
    .lower = LowerLRN,
    .gradient = gradient::DecomposeLRN,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX LRN-13",
    .traits = {.precision = Precision::kNever, .layout = LayoutRule::kAxis},
});
const Op op::dropout = DefineOp({
    .name = "nn.dropout",
    .doc = "data itself, and a mask of ones: as at inference.",
    .inputs = {{"data", "R1: floating dtype."}},
    .output = "A tuple: the result and the mask, both like `data`.",
    .attrs = TypeOf<DropoutAttrs>,
    .type_rel = Rel<"nn.dropout", DropoutType>,
    .lower = LowerDropout,
    .decompose = DecomposeDropout,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX Dropout-22",
    .traits = {.precision = Precision::kFollow},
});

bool IsNormOfMoments(const OpDef* def) {
  for (const Op& norm : {op::layer_norm, op::group_norm, op::instance_norm, op::l2_normalize}) {
    if (def == DefOf(norm)) return true;
  }
  return false;
}

}  // namespace baton::relay
