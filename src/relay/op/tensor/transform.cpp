// SPDX-License-Identifier: Apache-2.0
// Operators that move elements: reshape, transpose, repeat, broadcast.
#include <baton/arith/extent.h>
#include <baton/relay/op/transform.h>
#include <baton/runtime/checked.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>

#include <algorithm>

#include "../common.h"
#include "../elements.h"
#include "../gradient.h"
#include "../qnn/integers.h"
#include "../reference/reference.h"
#include "injective.h"
#include "reshape_codes.h"

namespace baton::relay {
namespace {

using runtime::Checked;

bool SameExtent(const PrimExpr& a, const PrimExpr& b) {
  return a.same_as(b) || (DimOf(a) >= 0 && DimOf(a) == DimOf(b));
}

// ---- reshape
Shape TypeShape(const Shape& s) {
  Shape out;
  for (const PrimExpr& d : s) out.push_back(TypeDim(d));
  return out;
}
Type ReshapeType(const ReshapeAttrs& a, const TypeArgs& in) {
  return TensorType(TypeShape(ReshapeShape(in.shape(0), a.newshape, a.allowzero, TypeReshapeChecks(in))), in.dtype(0));
}
Tensor LowerReshape(const ReshapeAttrs& a, const Tensors& in) {
  return topi::Reshape(in[0], ReshapeShape(in[0].shape(), a.newshape, a.allowzero, NoReshapeChecks()));
}

Type ReverseReshapeType(const ReshapeAttrs& a, const TypeArgs& in) {
  return TensorType(TypeShape(ReverseReshapeShape(in.shape(0), a.newshape, a.allowzero, TypeReshapeChecks(in))),
                    in.dtype(0));
}
Tensor LowerReverseReshape(const ReshapeAttrs& a, const Tensors& in) {
  return topi::Reshape(in[0], ReverseReshapeShape(in[0].shape(), a.newshape, a.allowzero, NoReshapeChecks()));
}

Shape ReshapeLikeShape(const ReshapeLikeAttrs& a, const Shape& lhs, const Shape& rhs) {
  auto bound = [](int64_t v, size_t n) {
    int64_t m = static_cast<int64_t>(n);
    v = v < 0 ? v + m : v;
    return v < 0 ? 0 : v > m ? m : v;
  };
  int64_t lb = bound(a.lhs_begin, lhs.size()), rb = bound(a.rhs_begin, rhs.size());
  int64_t le = HasValue(a.lhs_end) ? bound(ValueOf(a.lhs_end), lhs.size()) : lhs.size();
  int64_t re = HasValue(a.rhs_end) ? bound(ValueOf(a.rhs_end), rhs.size()) : rhs.size();
  Shape out;
  for (int64_t d = 0; d < lb; ++d) out.push_back(lhs[d]);
  for (int64_t d = rb; d < re; ++d) out.push_back(rhs[d]);
  for (int64_t d = le; d < static_cast<int64_t>(lhs.size()); ++d) out.push_back(lhs[d]);
  return out;
}
Type ReshapeLikeType(const ReshapeLikeAttrs& a, const TypeArgs& in) {
  Shape out = ReshapeLikeShape(a, in.shape(0), in.shape(1));
  int64_t n = ProductOf(Dims(in.shape(0))), m = ProductOf(Dims(out));
  std::vector<PrimExpr> have(in.shape(0).begin(), in.shape(0).end()), want(out.begin(), out.end());
  if ((n < 0 || m < 0) && !HasUnknown(have) && !HasUnknown(want)) {
    if (!in.Same(ProductExpr(have), ProductExpr(want))) in.Assume(ProductExpr(have), ProductExpr(want));
  } else if (n >= 0 && m >= 0 && n != m) {
    in.Fail("R1", in.Show(0) + " has " + Str(n) + " elements, the shape " + ShowShape(out) + " made from `rhs` has " +
                      Str(m));
  }
  return TensorType(out, in.dtype(0));
}
Tensor LowerReshapeLike(const ReshapeLikeAttrs& a, const Tensors& in) {
  return topi::Reshape(in[0], ReshapeLikeShape(a, in[0].shape(), in[1].shape()));
}

Shape FlatShape(const Shape& in, bool symbolic) {
  Shape rest(in.begin() + 1, in.end());
  return {in[0], symbolic ? topi::Product(rest) : rest.empty() ? PrimExpr(1) : ProductDim(rest)};
}
Type BatchFlattenType(const TypeArgs& in) {
  in.MinRank(0, 1, "R1");
  return TensorType(FlatShape(in.shape(0), false), in.dtype(0));
}
Tensor LowerBatchFlatten(const Tensors& in) { return topi::Reshape(in[0], FlatShape(in[0].shape(), true)); }

// ---- expand_dims, squeeze
/// Which dimensions of the result are new.
std::vector<bool> NewDims(const ExpandDimsAttrs& a, int64_t ndim, const char* op) {
  int64_t n = a.axes.defined() ? a.axes.size() : a.num_newaxis;
  if (ndim + n > 64)
    throw CompileError(std::string("[") + op + " R1] the result would have " + Str(ndim + n) +
                       " dimensions; 64 is the most");
  std::vector<bool> is_new(ndim + n);
  if (a.axes.defined()) {
    for (int64_t x : a.axes) {
      int64_t d = NormalizeAxis(x, ndim + n, op, "axes");
      if (is_new[d])
        throw CompileError(std::string("[") + op + " R2] axes " + ShowInts(ToInts(a.axes)) + " names dimension " +
                           Str(d) + " twice");
      is_new[d] = true;
    }
  } else {
    int64_t at = NormalizeAxis(a.axis, ndim + 1, op);
    for (int64_t k = 0; k < n; ++k) is_new[at + k] = true;
  }
  return is_new;
}
Shape Expanded(const Shape& in, const std::vector<bool>& is_new) {
  Shape out;
  int64_t from = 0;
  for (bool fresh : is_new) out.push_back(fresh ? PrimExpr(1) : in[from++]);
  return out;
}
Type ExpandDimsType(const ExpandDimsAttrs& a, const TypeArgs& in) {
  return TensorType(Expanded(in.shape(0), NewDims(a, in.ndim(0), in.op())), in.dtype(0));
}
Tensor LowerExpandDims(const ExpandDimsAttrs& a, const Tensors& in) {
  std::vector<bool> is_new = NewDims(a, in[0].ndim(), "expand_dims");
  return topi::Pick(
      Expanded(in[0].shape(), is_new), in[0],
      [&](Indices i) {
        Shape at;
        for (size_t d = 0; d < is_new.size(); ++d) {
          if (!is_new[d]) at.push_back(i[d]);
        }
        return at;
      },
      "expand_dims");
}

/// Dimensions that stay.
Ints Kept(const SqueezeAttrs& a, const Shape& in, const char* op) {
  Ints kept;
  std::vector<bool> drop(in.size());
  if (a.axis.defined()) {
    for (int64_t x : a.axis) drop[NormalizeAxis(x, static_cast<int64_t>(in.size()), op)] = true;
  }
  for (size_t d = 0; d < in.size(); ++d) {
    if (a.axis.defined() ? !drop[d] : DimOf(in[d]) != 1) kept.push_back(d);
  }
  return kept;
}
Type SqueezeType(const SqueezeAttrs& a, const TypeArgs& in) {
  if (a.axis.defined()) {
    for (int64_t x : a.axis) {
      int64_t d = in.Axis(x, in.ndim(0)), n = in.dim(0, d);
      if (n >= 0 ? n != 1 : !in.Same(in.shape(0)[d], PrimExpr(1)))
        in.Fail("R1", in.Show(0) + " has extent " + arith::ExtentText(in.shape(0)[d]) + " on axis " + Str(d) +
                          ", where 1 is wanted");
    }
  } else {
    for (const PrimExpr& d : in.shape(0)) {
      if (DimOf(d) < 0) in.Fail("R2", in.Show(0) + " has an unknown extent: say which axes to drop");
    }
  }
  Shape out;
  for (int64_t d : Kept(a, in.shape(0), in.op())) out.push_back(in.shape(0)[d]);
  return TensorType(out, in.dtype(0));
}
Tensor LowerSqueeze(const SqueezeAttrs& a, const Tensors& in) {
  Ints kept = Kept(a, in[0].shape(), "squeeze");
  Shape out;
  for (int64_t d : kept) out.push_back(in[0].shape()[d]);
  return topi::Pick(
      out, in[0],
      [&](Indices i) {
        std::vector<PrimExpr> at(in[0].ndim(), PrimExpr(0));
        for (size_t k = 0; k < kept.size(); ++k) at[kept[k]] = i[k];
        return Shape(at);
      },
      "squeeze");
}

// ---- transpose
Ints Permutation(const TransposeAttrs& a, int64_t ndim, const char* op) {
  Ints p;
  if (!a.axes.defined()) {
    for (int64_t d = ndim - 1; d >= 0; --d) p.push_back(d);
    return p;
  }
  std::vector<bool> seen(ndim);
  for (int64_t x : a.axes) {
    int64_t d = NormalizeAxis(x, ndim, op, "axes");
    if (seen[d]) break;
    seen[d] = true;
    p.push_back(d);
  }
  if (static_cast<int64_t>(p.size()) != ndim || static_cast<int64_t>(a.axes.size()) != ndim) {
    throw CompileError(std::string("[") + op + " R1] axes " + ShowInts(ToInts(a.axes)) + " is no permutation of the " +
                       Str(ndim) + " dimensions of `data`");
  }
  return p;
}
Tensor TransposeBy(const Tensor& x, const Ints& p) {
  Shape out;
  for (int64_t d : p) out.push_back(x.shape()[d]);
  return topi::Pick(
      out, x,
      [&](Indices i) {
        std::vector<PrimExpr> at(p.size());
        for (size_t k = 0; k < p.size(); ++k) at[p[k]] = i[k];
        return Shape(at);
      },
      "transpose");
}
Type TransposeType(const TransposeAttrs& a, const TypeArgs& in) {
  Shape out;
  for (int64_t d : Permutation(a, in.ndim(0), in.op())) out.push_back(in.shape(0)[d]);
  return TensorType(out, in.dtype(0));
}
Tensor LowerTranspose(const TransposeAttrs& a, const Tensors& in) {
  return TransposeBy(in[0], Permutation(a, in[0].ndim(), "transpose"));
}
Ints Swap(const SwapAxesAttrs& a, int64_t ndim) {
  Ints p;
  for (int64_t d = 0; d < ndim; ++d) p.push_back(d);
  std::swap(p[NormalizeAxis(a.axis1, ndim, "swapaxes", "axis1")], p[NormalizeAxis(a.axis2, ndim, "swapaxes", "axis2")]);
  return p;
}
Type SwapType(const SwapAxesAttrs& a, const TypeArgs& in) {
  Shape out;
  for (int64_t d : Swap(a, in.ndim(0))) out.push_back(in.shape(0)[d]);
  return TensorType(out, in.dtype(0));
}
Tensor LowerSwap(const SwapAxesAttrs& a, const Tensors& in) { return TransposeBy(in[0], Swap(a, in[0].ndim())); }

// ---- tile, repeat, reverse
Shape TiledShape(const TileAttrs& a, const Shape& in) {
  size_t n = in.size() > a.reps.size() ? in.size() : a.reps.size();
  Shape out;
  for (size_t d = 0; d < n; ++d) {
    PrimExpr x = d + in.size() >= n ? in[d + in.size() - n] : PrimExpr(1);
    int64_t r = d + a.reps.size() >= n ? a.reps[d + a.reps.size() - n] : 1;
    out.push_back(r == 1 ? x : x.as<tir::AnyNode>() ? UnknownDim() : x * PrimExpr(r));
  }
  return out;
}
Type TileType(const TileAttrs& a, const TypeArgs& in) {
  return TensorType(TypeShape(TiledShape(a, in.shape(0))), in.dtype(0));
}
Tensor LowerTile(const TileAttrs& a, const Tensors& in) {
  Shape out = TiledShape(a, in[0].shape());
  return topi::Pick(
      out, in[0],
      [&](Indices i) {
        Shape at;
        size_t lead = out.size() - in[0].shape().size();
        for (size_t d = lead; d < out.size(); ++d) {
          const PrimExpr& n = in[0].shape()[d - lead];
          at.push_back(SameExtent(n, out[d]) ? PrimExpr(i[d]) : tir::is_one(n) ? PrimExpr(0) : floormod(i[d], n));
        }
        return at;
      },
      "tile");
}

Type RepeatType(const RepeatAttrs& a, const TypeArgs& in) {
  if (!HasValue(a.axis)) {
    int64_t n = ProductOf(Dims(in.shape(0)));
    PrimExpr all =
        n >= 0 ? PrimExpr(int64_t{Checked(n) * a.repeats}) : TypeDim(ProductDim(in.shape(0)) * PrimExpr(a.repeats));
    return TensorType(Shape{all}, in.dtype(0));
  }
  in.MinRank(0, 1, "R1");
  int64_t axis = in.Axis(ValueOf(a.axis), in.ndim(0)), n = in.dim(0, axis);
  Shape out = in.shape(0);
  out.Set(axis, n >= 0 ? PrimExpr(int64_t{Checked(n) * a.repeats}) : TypeDim(in.shape(0)[axis] * PrimExpr(a.repeats)));
  return TensorType(out, in.dtype(0));
}
Tensor LowerRepeat(const RepeatAttrs& a, const Tensors& in) {
  Tensor x = HasValue(a.axis) ? in[0] : topi::Reshape(in[0], {topi::Product(in[0].shape())});
  int64_t axis = HasValue(a.axis) ? NormalizeAxis(ValueOf(a.axis), x.ndim(), "repeat") : 0;
  Shape out = x.shape();
  out.Set(axis, x.shape()[axis] * PrimExpr(a.repeats));
  return topi::Pick(
      out, x,
      [&](Indices i) {
        Shape at = i;
        at.Set(axis, floordiv(i[axis], PrimExpr(a.repeats > 0 ? a.repeats : 1)));
        return at;
      },
      "repeat");
}

Type ReverseType(const ReverseAttrs& a, const TypeArgs& in) {
  in.MinRank(0, 1, "R1");
  in.Axis(a.axis, in.ndim(0));
  return in.type(0);
}
Tensor LowerReverse(const ReverseAttrs& a, const Tensors& in) {
  int64_t axis = NormalizeAxis(a.axis, in[0].ndim(), "reverse");
  return topi::Pick(
      in[0].shape(), in[0],
      [&](Indices i) {
        Shape at = i;
        at.Set(axis, in[0].shape()[axis] - PrimExpr(1) - i[axis]);
        return at;
      },
      "reverse");
}
Type ReverseSequenceType(const ReverseSequenceAttrs& a, const TypeArgs& in) {
  in.MinRank(0, 2, "R1");
  in.Rank(1, 1, "R2");
  in.Integral(1, "R2");
  int64_t seq = in.Axis(a.seq_axis, in.ndim(0), "seq_axis"), batch = in.Axis(a.batch_axis, in.ndim(0), "batch_axis");
  if (seq == batch) in.Fail("R3", "seq_axis and batch_axis are both " + Str(seq));
  if (!in.Same(in.shape(0)[batch], in.shape(1)[0])) {
    in.Fail("R4", in.Show(1) + " and " + in.Show(0) + " differ on batch_axis " + Str(batch));
  }
  return in.type(0);
}
Tensor LowerReverseSequence(const ReverseSequenceAttrs& a, const Tensors& in) {
  int64_t seq = NormalizeAxis(a.seq_axis, in[0].ndim(), "reverse_sequence");
  int64_t batch = NormalizeAxis(a.batch_axis, in[0].ndim(), "reverse_sequence");
  PrimExpr last = in[0].shape()[seq] - PrimExpr(1);
  return topi::Pick(
      in[0].shape(), in[0],
      [&](Indices i) {
        PrimExpr n = min(cast(DataType::Int(64), in[1](i[batch])), in[0].shape()[seq]);
        PrimExpr from = te::Select(PrimExpr(i[seq]) < n, n - PrimExpr(1) - i[seq], i[seq]);
        Shape at = i;
        at.Set(seq, max(min(from, last), PrimExpr(0)));
        return at;
      },
      "reverse_sequence");
}

// ---- broadcasting
void CheckBroadcastsTo(const TypeArgs& in, const Shape& from, const Shape& to) {
  bool fits = from.size() <= to.size();
  for (size_t d = 0; fits && d < from.size(); ++d) {
    const PrimExpr &x = from[d], &y = to[to.size() - from.size() + d];
    if (DimOf(x) >= 0 && DimOf(y) >= 0) {
      fits = DimOf(x) == 1 || DimOf(x) == DimOf(y);
    } else if (!x.as<tir::AnyNode>() && !y.as<tir::AnyNode>() && DimOf(x) != 1) {
      // A literal is not stretched, what is open has to be 1 or as long.
      if (DimOf(x) >= 0) {
        fits = in.Same(x, y);
      } else if (arith::ExtentsEqual(x, y) != arith::Fact::kYes) {
        in.Assume(tir::Select(tir::EQ(x, PrimExpr(1)), y, x), y);
      }
    }
  }
  if (!fits) in.Fail("R1", "`data`: " + ShowShape(from) + " does not broadcast to " + ShowShape(to));
}
Type BroadcastToType(const InitOpAttrs& a, const TypeArgs& in) {
  if (!a.shape.defined()) in.Fail("R2", "needs the attribute `shape`");
  Shape out = MakeShape(a.shape);
  CheckBroadcastsTo(in, in.shape(0), out);
  return TensorType(out, in.dtype(0));
}
Tensor BroadcastTo(const Tensor& x, const Shape& shape) {
  return te::Compute(shape, [&](Indices i) { return topi::BroadcastAt(x, i, shape); }, "broadcast_to");
}
Tensor LowerBroadcastTo(const InitOpAttrs& a, const Tensors& in) { return BroadcastTo(in[0], MakeShape(a.shape)); }
Type BroadcastToLikeType(const TypeArgs& in) {
  CheckBroadcastsTo(in, in.shape(0), in.shape(1));
  return TensorType(in.shape(1), in.dtype(0));
}
Tensor LowerBroadcastToLike(const Tensors& in) { return BroadcastTo(in[0], in[1].shape()); }

Type CollapseSumLikeType(const TypeArgs& in) {
  in.Number(0, "R2");
  CheckBroadcastsTo(in, in.shape(1), in.shape(0));
  return TensorType(in.shape(1), in.dtype(0));
}
Tensor LowerCollapseSumLike(const Tensors& in) {
  const Tensor& x = in[0];
  int64_t lead = x.ndim() - in[1].ndim();
  Ints axes;
  Shape summed = x.shape();                                     // extents of the sums
  std::vector<PrimExpr> is_one(static_cast<size_t>(x.ndim()));  // where that is known when it runs
  for (int64_t d = 0; d < x.ndim(); ++d) {
    if (d < lead || (tir::is_one(in[1].shape()[d - lead]) && !tir::is_one(x.shape()[d]))) {
      axes.push_back(d);
    } else if (const PrimExpr& to = in[1].shape()[d - lead];
               DimOf(to) < 0 && arith::ExtentsEqual(to, x.shape()[d]) != arith::Fact::kYes) {
      if (to.as<tir::AnyNode>() || x.shape()[d].as<tir::AnyNode>()) {
        throw CompileError("collapse_sum_like: axis " + Str(d) +
                           " is summed or not, which is not known before it runs");
      }
      // A sum over all elements where the result has one, over itself where it has as many.
      is_one[static_cast<size_t>(d)] = equal(to, PrimExpr(1));
      summed.Set(d, tir::Select(is_one[static_cast<size_t>(d)], x.shape()[d], PrimExpr(1)));
      axes.push_back(d);
    }
  }
  DataType acc = Wide(x.dtype());
  Array<te::IterVar> k = topi::ReduceAxes(summed, axes);
  Tensor sum = te::Compute(
      in[1].shape(),
      [&](Indices i) {
        Shape at, ks = topi::VarsOf(k);
        size_t next = 0;
        for (int64_t d = 0; d < x.ndim(); ++d) {
          bool reduced = next < axes.size() && axes[next] == d;
          PrimExpr place = reduced ? ks[next++] : PrimExpr(i[d - lead]);
          if (const PrimExpr& one = is_one[static_cast<size_t>(d)]; one.defined()) {
            place = tir::Select(one, place, PrimExpr(i[d - lead]));
          }
          at.push_back(place);
        }
        PrimExpr v = cast(acc, x(at));
        return k.empty() ? v : te::Sum(v, k);
      },
      "collapse_sum");
  return topi::Cast(sum, x.dtype());
}

}  // namespace

namespace gradient {
namespace {

Grads TransposeBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<TransposeAttrs>();
  if (!a.axes.defined()) return {Transpose(grad, NoInts())};
  Ints back(a.axes.size());
  for (size_t i = 0; i < a.axes.size(); ++i) back[at.Axis(a.axes[i])] = static_cast<int64_t>(i);
  return {Permute(grad, back)};
}
Grads SwapAxesBack(const Call& call, const Expr& grad) { return {MakeCall(op::swapaxes, {grad}, call->attrs)}; }
Grads ReverseBack(const Call& call, const Expr& grad) { return {MakeCall(op::reverse, {grad}, call->attrs)}; }
Grads CollapseSumBack(const Call& call, const Expr& grad) {
  return {MakeCall(op::broadcast_to_like, {grad, call->args[0]}), Expr()};
}
Grads RepeatBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<RepeatAttrs>();
  Ints dims = at.dims(0);
  int64_t axis = HasValue(a.axis) ? at.Axis(ValueOf(a.axis)) : 0;
  if (!HasValue(a.axis)) dims = {ProductOf(dims)};
  if (ProductOf(dims) == 0 || a.repeats == 0) return {ZerosLike(at.arg(0))};
  dims.insert(dims.begin() + axis + 1, a.repeats);
  return {ShapeLike(Sum(Reshape(grad, ToArray(dims)), {axis + 1}), at.arg(0))};
}
Grads TileBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& reps = at.attrs<TileAttrs>().reps;
  Ints dims = at.dims(0), split, axes;
  if (ProductOf(dims) == 0 || ProductOf(ToInts(reps)) == 0) return {ZerosLike(at.arg(0))};
  size_t n = std::max(dims.size(), reps.size());
  for (size_t d = 0; d < n; ++d) {
    bool has_rep = d + reps.size() >= n, has_dim = d + dims.size() >= n;
    axes.push_back(static_cast<int64_t>(split.size()));
    split.push_back(has_rep ? reps[d + reps.size() - n] : 1);
    split.push_back(has_dim ? dims[d + dims.size() - n] : 1);
  }
  return {ShapeLike(axes.empty() ? grad : Sum(Reshape(grad, ToArray(split)), axes), at.arg(0))};
}

}  // namespace
}  // namespace gradient

const Op op::reshape =
    DefineInjective("reshape", "The same elements, row-major, in another shape.", "Any tensor.",
                    "R1: the codes are valid. R2: they find their dimensions. R3: as many elements as data has.",
                    TypeOf<ReshapeAttrs>, Rel<"reshape", ReshapeType>, LowerReshape, gradient::ReshapeBack,
                    "Relay; ONNX Reshape-21", {.values = Values::kView, .elements = SameElements});
const Op op::reverse_reshape =
    DefineInjective("reverse_reshape", "reshape whose codes are read from the right.", "Any tensor.",
                    "R1: the codes are valid. R2: they find their dimensions. R3: as many elements as data has.",
                    TypeOf<ReshapeAttrs>, Rel<"reverse_reshape", ReverseReshapeType>, LowerReverseReshape,
                    gradient::ReshapeBack, "Relay", {.values = Values::kView});
const Op op::reshape_like = DefineOp({
    .name = "reshape_like",
    .doc = "lhs with dimensions lhs_begin to lhs_end replaced by rhs_begin to rhs_end of rhs.",
    .inputs = {{"lhs", "Any tensor."}, {"rhs", "Its shape counts alone. R1: the result has as many elements as lhs."}},
    .output = "The new shape, dtype of `lhs`.",
    .attrs = TypeOf<ReshapeLikeAttrs>,
    .type_rel = Rel<"reshape_like", ReshapeLikeType>,
    .lower = LowerReshapeLike,
    .gradient = gradient::ReshapeBack,
    .pattern = OpPattern::kInjective,
    .source = "Relay",
    .traits = {.values = Values::kView},
});
const Op op::batch_flatten =
    DefineInjective("nn.batch_flatten", "All dimensions but the first become one.", "R1: rank 1 or more.", "Rank 2.",
                    nullptr, Rel<"nn.batch_flatten", BatchFlattenType>, LowerBatchFlatten, gradient::ReshapeBack,
                    "Relay", {.values = Values::kView});
const Op op::expand_dims =
    DefineInjective("expand_dims", "New dimensions of extent 1.", "Any tensor.",
                    "R1: at most 64 dimensions. R2: no dimension is named twice.", TypeOf<ExpandDimsAttrs>,
                    Rel<"expand_dims", ExpandDimsType>, LowerExpandDims, gradient::ReshapeBack,
                    "NumPy; ONNX Unsqueeze-21", {.values = Values::kView, .elements = SameElements});
const Op op::squeeze = DefineInjective(
    "squeeze", "Without dimensions of extent 1.", "R1: extent 1 on `axis`. R2: known extents with axis=None.",
    "The other dimensions.", TypeOf<SqueezeAttrs>, Rel<"squeeze", SqueezeType>, LowerSqueeze, gradient::ReshapeBack,
    "NumPy; ONNX Squeeze-21", {.values = Values::kView, .layout = LayoutRule::kReduces, .elements = SameElements});
const Op op::transpose = DefineInjective(
    "transpose", "Dimensions in another order.", "Any tensor.", "R1: `axes` is a permutation.", TypeOf<TransposeAttrs>,
    Rel<"transpose", TransposeType>, LowerTranspose, gradient::TransposeBack, "NumPy",
    {.values = Values::kSelects, .layout = LayoutRule::kPermutes, .reference = reference::Transpose});
const Op op::swapaxes = DefineInjective(
    "swapaxes", "Two dimensions change places.", "Any tensor.", "The shape with both swapped.", TypeOf<SwapAxesAttrs>,
    Rel<"swapaxes", SwapType>, LowerSwap, gradient::SwapAxesBack, "NumPy", {.values = Values::kSelects});
const Op op::tile = DefineInjective("tile", "The tensor repeated as a whole.", "Any tensor.", "Extents times `reps`.",
                                    TypeOf<TileAttrs>, Rel<"tile", TileType>, LowerTile, gradient::TileBack,
                                    "NumPy; ONNX Tile-13", {.values = Values::kSelects});
const Op op::repeat =
    DefineInjective("repeat", "Each element several times in a row.", "R1: rank 1 or more, unless axis=None.",
                    "The extent on `axis` times `repeats`.", TypeOf<RepeatAttrs>, Rel<"repeat", RepeatType>,
                    LowerRepeat, gradient::RepeatBack, "NumPy", {.values = Values::kSelects});
const Op op::reverse = DefineInjective("reverse", "A dimension turned round.", "R1: rank 1 or more.",
                                       "Shape and dtype of `data`.", TypeOf<ReverseAttrs>, Rel<"reverse", ReverseType>,
                                       LowerReverse, gradient::ReverseBack, "NumPy flip", {.values = Values::kSelects});
const Op op::reverse_sequence = DefineOp({
    .name = "reverse_sequence",
    .doc =
        "The first seq_lengths[b] elements on seq_axis turned round, for each b on batch_axis; all where it is more.",
    .inputs = {{"data", "R1: rank 2 or more. R3: the two axes differ."},
               {"seq_lengths", "R2: integers, rank 1. R4: data's extent on batch_axis."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<ReverseSequenceAttrs>,
    .type_rel = Rel<"reverse_sequence", ReverseSequenceType>,
    .lower = LowerReverseSequence,
    .gradient = gradient::SelectBack,
    .pattern = OpPattern::kInjective,
    .source = "ONNX ReverseSequence-10",
});
const Op op::broadcast_to = DefineOp({
    .name = "broadcast_to",
    .doc = "data repeated to a shape, by NumPy's broadcasting.",
    .inputs = {{"data", "R1: its shape broadcasts to `shape`."}},
    .output = "Shape `shape`, dtype of `data`. R2: shape is given.",
    .attrs = TypeOf<InitOpAttrs>,
    .type_rel = Rel<"broadcast_to", BroadcastToType>,
    .lower = LowerBroadcastTo,
    .gradient = gradient::CollapseBack,
    .pattern = OpPattern::kBroadcast,
    .source = "NumPy",
    .traits = {.values = Values::kSelects},
});
const Op op::broadcast_to_like = DefineOp({
    .name = "broadcast_to_like",
    .doc = "data repeated to the shape of another tensor.",
    .inputs = {{"data", "R1: its shape broadcasts to that of `like`."}, {"like", "Its shape counts alone."}},
    .output = "Shape of `like`, dtype of `data`.",
    .type_rel = Rel<"broadcast_to_like", BroadcastToLikeType>,
    .lower = LowerBroadcastToLike,
    .gradient = gradient::CollapseBack,
    .pattern = OpPattern::kBroadcast,
    .source = "Relay",
    .traits = {.values = Values::kSelects},
});
const Op op::collapse_sum_like = DefineOp({
    .name = "collapse_sum_like",
    .doc = "Sums over what broadcasting from like's shape to data's repeats.",
    .inputs = {{"data", "R2: floating or integer dtype."}, {"like", "R1: its shape broadcasts to data's."}},
    .output = "Shape of `like`, dtype of `data`.",
    .type_rel = Rel<"collapse_sum_like", CollapseSumLikeType>,
    .lower = LowerCollapseSumLike,
    .gradient = gradient::CollapseSumBack,
    .pattern = OpPattern::kCommReduce,
    .source = "Relay",
});

}  // namespace baton::relay
