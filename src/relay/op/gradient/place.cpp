// SPDX-License-Identifier: Apache-2.0
// Gradients of operators that move and select elements. Where the way back is no operator of its own, the operator is
// run on the numbers of the elements: what it gives says where each adjoint goes.
#include <baton/relay/op/algorithm.h>
#include <baton/relay/op/nn.h>

#include "rule.h"

namespace baton::relay::gradient {
namespace {

Grads None(const Call& call, const Expr&) { return Grads(call->args.size(), Expr()); }
/// As many elements, in the same order.
Grads ReshapeBack(const Call& call, const Expr& grad) {
  Grads out(call->args.size(), Expr());
  out.Set(0, ShapeLike(grad, call->args[0]));
  return out;
}
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
Grads CollapseBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  Grads out(call->args.size(), Expr());
  out.Set(0, Collapse(grad, at.out(), at.arg(0)));
  return out;
}
Grads CollapseSumBack(const Call& call, const Expr& grad) {
  return {MakeCall(op::broadcast_to_like, {grad, call->args[0]}), Expr()};
}

std::vector<const TensorTypeNode*> Fields(const At& at) {
  std::vector<const TensorTypeNode*> out;
  const auto* t = at.arg(0)->checked_type().as<TupleTypeNode>();
  if (!t) at.Fail("its argument is no tuple");
  for (const Type& f : t->fields) out.push_back(AsTensor(f));
  return out;
}
Grads ConcatenateBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  auto fields = Fields(at);
  int64_t axis = NormalizeAxis(at.attrs<ConcatenateAttrs>().axis, fields[0]->shape.size(), "concatenate"), end = 0;
  if (fields.size() == 1) return {Tuple(Array<Expr>{grad})};
  Ints cuts;
  for (const auto* f : fields) {
    int64_t n = DimOf(f->shape[axis]);
    if (n < 0) at.Fail("it needs known extents along its axis");
    cuts.push_back(end += n);
  }
  cuts.pop_back();
  return {Split(grad, cuts, axis)};
}
Grads StackBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  auto fields = Fields(at);
  int64_t axis = NormalizeAxis(at.attrs<StackAttrs>().axis, fields[0]->shape.size() + 1, "stack");
  Expr parts = Split(grad, AxesFrom(1, fields.size()), axis);
  Array<Expr> out;
  for (size_t i = 0; i < fields.size(); ++i) out.push_back(Squeeze(Item(parts, i), {axis}));
  return {Tuple(out)};
}
Grads SplitBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  return {Concat(grad, at.Axis(at.attrs<SplitAttrs>().axis))};
}
Grads MeshgridBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  auto fields = Fields(at);
  int64_t n = fields.size();
  bool xy = at.attrs<MeshgridAttrs>().indexing == "xy";
  Array<Expr> out;
  for (int64_t i = 0; i < n; ++i) {
    int64_t own = xy && n > 1 && i < 2 ? 1 - i : i;
    Ints others;
    for (int64_t d = 0; d < n; ++d) {
      if (d != own) others.push_back(d);
    }
    Expr g = others.empty() ? Item(grad, i) : Sum(Item(grad, i), others);
    Ints dims;
    if (!StaticShape(fields[i]->shape, &dims)) at.Fail("it needs known extents");
    out.push_back(Reshape(g, ToArray(dims)));
  }
  return {Tuple(out)};
}

// ---- by numbers
/// The operator with its attributes and its other arguments.
Grads SelectBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  Grads out(call->args.size(), Expr());
  out.Set(0, ByNumbers(at, grad, [&](const Expr& numbers) {
            Array<Expr> args = call->args;
            args.Set(0, numbers);
            return MakeCall(Downcast<Op>(call->op), args, call->attrs);
          }));
  return out;
}
Grads PadBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<PadAttrs>();
  if (a.pad_mode != "constant") {
    Grads out(call->args.size(), Expr());
    out.Set(0, ByNumbers(at, grad, [&](const Expr& numbers) {
              Array<Expr> args{numbers};
              if (call->args.size() > 1) args.push_back(MakeScalar(0, DataType::Int(64)));
              return MakeCall(op::pad, args, call->attrs);
            }));
    return out;
  }
  Ints before, after;
  for (const Array<int64_t>& w : a.pad_width) before.push_back(-w[0]), after.push_back(-w[1]);
  Expr dx = Pad(grad, before, after, at.dtype(0));
  if (call->args.size() < 2) return {dx};
  // What the value fills is what a mask of data's places leaves over.
  Expr inside = MakeCall(op::pad, {OnesLike(at.arg(0)), MakeScalar(0, at.dtype(0))}, call->attrs);
  Ints all = AxesFrom(0, at.ndim(0));
  Expr fill = all.empty() ? Expr() : Sum(at.g() * (1 - Val{inside, at.dtype(0)}), all);
  if (fill.defined() && !at.floating(1)) fill = Expr();
  return {dx, fill.defined() && at.ndim(1) ? ShapeLike(fill, at.arg(1)) : fill};
}
Grads SpaceToBatchBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<SpaceToBatchNDAttrs>();
  return {MakeCall<BatchToSpaceNDAttrs>(op::batch_to_space_nd, {grad}, [&](BatchToSpaceNDAttrs* b) {
    b->block_shape = a.block_shape, b->crops = a.paddings;
  })};
}
Grads BatchToSpaceBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<BatchToSpaceNDAttrs>();
  return {MakeCall<SpaceToBatchNDAttrs>(op::space_to_batch_nd, {grad}, [&](SpaceToBatchNDAttrs* b) {
    b->block_shape = a.block_shape, b->paddings = a.crops;
  })};
}
Grads SubPixelBack(const Call& call, const Expr& grad, const Op& op) {
  // space_to_depth has no other order than "DCR".
  if (AttrsAs<SubPixelAttrs>(call->attrs).mode != "DCR") return SelectBack(call, grad);
  return {MakeCall(op, {grad}, call->attrs)};
}
Grads DepthToSpaceBack(const Call& call, const Expr& grad) { return SubPixelBack(call, grad, op::space_to_depth); }
Grads SpaceToDepthBack(const Call& call, const Expr& grad) { return SubPixelBack(call, grad, op::depth_to_space); }
Grads LayoutTransformBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<LayoutTransformAttrs>();
  Ints from = Dims(at.type(0)->shape), to = Dims(at.out()->shape);
  // A tail that was filled up cannot be told from the layouts alone.
  if (ProductOf(from) < 0 || ProductOf(from) != ProductOf(to)) return SelectBack(call, grad);
  return {MakeCall<LayoutTransformAttrs>(op::layout_transform, {grad}, [&](LayoutTransformAttrs* b) {
    b->src_layout = a.dst_layout, b->dst_layout = a.src_layout;
  })};
}
Grads SequenceMaskBack(const Call& call, const Expr& grad) {
  const auto& a = AttrsAs<SequenceMaskAttrs>(call->attrs);
  Grads out(call->args.size(), Expr());
  Array<Expr> args = call->args;
  args.Set(0, grad);
  out.Set(0, MakeCall<SequenceMaskAttrs>(op::sequence_mask, args,
                                         [&](SequenceMaskAttrs* b) { b->mask_value = 0, b->axis = a.axis; }));
  return out;
}
Grads TriluBack(const Call& call, const Expr& grad) { return {MakeCall(op::trilu, {grad}, call->attrs)}; }
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

// ---- slices
Grads StridedSliceBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<StridedSliceAttrs>();
  bool plain = a.slice_mode == "end";
  for (int64_t s : a.strides) plain = plain && s == 1;
  if (!plain) return SelectBack(call, grad);
  Ints dims = at.dims(0), out = at.out_dims(), before(dims.size(), 0), after(dims.size(), 0);
  for (size_t i = 0; i < a.begin.size(); ++i) {
    int64_t d = a.axes.defined() ? at.Axis(a.axes[i]) : static_cast<int64_t>(i), b = a.begin[i];
    if (b < 0) b += dims[d];
    before[d] = std::min(std::max<int64_t>(b, 0), dims[d]);
  }
  for (size_t d = 0; d < dims.size(); ++d) after[d] = dims[d] - before[d] - out[d];
  return {Pad(grad, before, after, at.dtype(0))};
}
Grads SliceLikeBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  Ints dims = at.dims(0), out = at.out_dims(), before(dims.size(), 0), after;
  for (size_t d = 0; d < dims.size(); ++d) after.push_back(dims[d] - out[d]);
  return {Pad(grad, before, after, at.dtype(0)), Expr()};
}
Grads StridedSetBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  // The places that are set, by setting a mask.
  Array<Expr> mask{OnesLike(at.arg(0)), ZerosLike(at.arg(1))};
  // Which element of `v` stands where: numbers from 1, 0 for data's own.
  int64_t n = ProductOf(at.dims(1)), m = ProductOf(at.dims(0));
  if (n == 0 || m == 0) return {grad, ZerosLike(at.arg(1))};
  Ints vdims = at.dims(1), ddims = at.dims(0);
  Expr zeros = MakeCall<InitOpAttrs>(op::zeros, {},
                                     [&](InitOpAttrs* a) { a->shape = ToArray(ddims), a->dtype = DataType::Int(64); });
  Array<Expr> where{Subtract(zeros, MakeInts({-n})), Reshape(Iota(n), ToArray(vdims))};
  for (size_t i = 2; i < call->args.size(); ++i) mask.push_back(call->args[i]), where.push_back(call->args[i]);
  Expr kept = MakeCall(op::strided_set, mask, call->attrs), numbers = MakeCall(op::strided_set, where, call->attrs);
  Grads out(call->args.size(), Expr());
  out.Set(0, Multiply(grad, kept));
  out.Set(1, ShapeLike(Scatter(ZerosOf(n, at.dtype(1)), Flatten(numbers), Flatten(grad)), at.arg(1)));
  return out;
}

// ---- indices
Val Inside(const Expr& index, DataType t, const String& mode, int64_t n) {
  Val i{t == DataType::Int(64) ? index : Cast(index, DataType::Int(64)), DataType::Int(64)};
  if (mode == "wrap") return {MakeCall(op::floor_mod, {i.e, MakeScalar(static_cast<double>(n), i.t)}), i.t};
  if (mode == "negative") i = Pick(Test(op::less, i, 0), i + static_cast<double>(n), i);
  return {Minimum(Maximum(i.e, MakeScalar(0, i.t)), MakeScalar(static_cast<double>(n - 1), i.t)), i.t};
}
Grads TakeBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<TakeAttrs>();
  Ints dims = at.dims(0), idims = at.dims(1);
  if (ProductOf(dims) == 0) return {ZerosLike(at.arg(0)), Expr()};
  if (a.batch_dims != 0) return SelectBack(call, grad);
  if (!HasValue(a.axis)) {
    int64_t n = ProductOf(dims);
    Val i = Inside(at.arg(1), at.dtype(1), a.mode, n);
    return {ShapeLike(Scatter(ZerosOf(n, at.dtype(0)), Flatten(i), Flatten(grad)), at.arg(0)), Expr()};
  }
  int64_t axis = at.Axis(ValueOf(a.axis)), n = dims.size(), k = idims.size(), count = ProductOf(idims);
  Val i = Inside(at.arg(1), at.dtype(1), a.mode, dims[axis]);
  // The axis first: (indices, the rest) added into rows of (axis, the rest).
  Ints order, rows{dims[axis]}, back(n);
  for (int64_t d = axis; d < axis + k; ++d) order.push_back(d);
  for (int64_t d = 0; d < axis; ++d) order.push_back(d), rows.push_back(dims[d]);
  for (int64_t d = axis + 1; d < n; ++d) order.push_back(d + k - 1), rows.push_back(dims[d]);
  for (int64_t d = 0; d < n; ++d) back[d] = d < axis ? d + 1 : d == axis ? 0 : d;
  Ints updates = rows;
  updates[0] = count;
  Expr zeros =
      MakeCall<InitOpAttrs>(op::zeros, {}, [&](InitOpAttrs* z) { z->shape = ToArray(rows), z->dtype = at.dtype(0); });
  auto shaped = [](const Expr& e, const Ints& s) {
    return MakeCall<ReshapeAttrs>(op::reshape, {e},
                                  [&](ReshapeAttrs* r) { r->newshape = ToArray(s), r->allowzero = true; });
  };
  Expr sum =
      MakeCall<ScatterNDAttrs>(op::scatter_nd, {zeros, shaped(i, {1, count}), shaped(Permute(grad, order), updates)},
                               [](ScatterNDAttrs* s) { s->mode = "add"; });
  return {Permute(sum, back), Expr()};
}
Grads GatherBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  int64_t axis = at.Axis(at.attrs<GatherAttrs>().axis);
  Ints dims = at.dims(0);
  if (ProductOf(dims) == 0) return {ZerosLike(at.arg(0)), Expr()};
  Val i = Inside(at.arg(1), at.dtype(1), "negative", dims[axis]);
  return {MakeCall<ScatterElementsAttrs>(op::scatter_elements, {ZerosLike(at.arg(0)), i.e, grad},
                                         [&](ScatterElementsAttrs* s) { s->axis = axis, s->reduction = "add"; }),
          Expr()};
}
Expr GatherAt(const Expr& data, const Expr& index, int64_t axis) {
  return MakeCall<GatherAttrs>(op::gather, {data, index}, [&](GatherAttrs* g) { g->axis = axis; });
}
Expr Filled(const Ints& dims, double v, DataType t) {
  return MakeCall<InitOpAttrs>(op::full, {MakeScalar(v, t)},
                               [&](InitOpAttrs* a) { a->shape = ToArray(dims), a->dtype = t; });
}
/// Of updates to one place the last one counts: the adjoint at each update's place, zero if another one is there.
/// `write(data, updates)` is the operator on other tensors, `read(data)` what stands at each update's place.
template <class WriteTo, class ReadFrom>
Expr WinnersOf(const At& at, WriteTo write, ReadFrom read) {
  Ints udims = at.dims(2);
  DataType t = DataType::Int(64);
  Expr numbers = Reshape(Iota(ProductOf(udims)), ToArray(udims));
  Expr placed = read(write(Filled(at.dims(0), -1, t), numbers));
  return Where(MakeCall(op::equal, {placed, numbers}), read(at.grad()), MakeScalar(0, at.dtype(2)));
}
Grads ScatterAlong(const At& at, int64_t axis, const String& how) {
  if (how != "update" && how != "add")
    at.Fail("it has a rule for \"update\" and \"add\", not for \"" + how.str() + "\"");
  if (ProductOf(at.dims(2)) == 0 || ProductOf(at.dims(0)) == 0) return {at.grad(), Expr(), ZerosLike(at.arg(2))};
  auto read = [&](const Expr& data) { return GatherAt(data, at.arg(1), axis); };
  if (how == "add") {  // indices out of range are left out
    int64_t n = at.dims(0)[at.Axis(axis)];
    Val i{at.dtype(1) == DataType::Int(64) ? at.arg(1) : Cast(at.arg(1), DataType::Int(64)), DataType::Int(64)};
    Expr inside = MakeCall(op::logical_and, {Test(op::greater_equal, i, static_cast<double>(-n)).e,
                                             Test(op::less, i, static_cast<double>(n)).e});
    return {at.grad(), Expr(), Where(inside, read(at.grad()), MakeScalar(0, at.dtype(2)))};
  }
  auto write = [&](const Expr& data, const Expr& updates) {
    return MakeCall<ScatterElementsAttrs>(op::scatter_elements, {data, at.arg(1), updates},
                                          [&](ScatterElementsAttrs* s) { s->axis = axis; });
  };
  return {write(at.grad(), ZerosLike(at.arg(2))), Expr(), WinnersOf(at, write, read)};
}
Grads ScatterAddBack(const Call& call, const Expr& grad) {
  return ScatterAlong(At(call, grad), AttrsAs<GatherAttrs>(call->attrs).axis, "add");
}
Grads ScatterBack(const Call& call, const Expr& grad) {
  return ScatterAlong(At(call, grad), AttrsAs<GatherAttrs>(call->attrs).axis, "update");
}
Grads ScatterElementsBack(const Call& call, const Expr& grad) {
  const auto& a = AttrsAs<ScatterElementsAttrs>(call->attrs);
  return ScatterAlong(At(call, grad), a.axis, a.reduction);
}
/// Index tuples as int64, and a number for each of their places, to compare them with.
struct Tuples {
  Expr index;
  bool last;
  int64_t rank, length;
  Tuples(const At& at, bool index_last) : last(index_last), rank(at.ndim(1)) {
    DataType t = DataType::Int(64);
    index = at.dtype(1) == t ? at.arg(1) : Cast(at.arg(1), t);
    Ints dims = at.dims(1);
    length = last ? dims.back() : dims[0];
  }
  Expr Along(const std::vector<int64_t>& v) const {
    Expr e = MakeInts(v);
    return last || rank == 1 ? e : ExpandDims(e, 1, rank - 1);
  }
};
Grads GatherNDBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<GatherNDAttrs>();
  if (a.batch_dims != 0) return SelectBack(call, grad);
  Ints dims = at.dims(0);
  if (ProductOf(dims) == 0) return {ZerosLike(at.arg(0)), Expr()};
  // Indices out of range read the nearest element.
  Tuples tuples(at, a.index_last);
  std::vector<int64_t> ends(dims.begin(), dims.begin() + tuples.length), last;
  for (int64_t n : ends) last.push_back(n - 1);
  Expr i = tuples.index, zero = MakeScalar(0, DataType::Int(64));
  if (tuples.length > 0) {
    i = Where(MakeCall(op::less, {i, zero}), Add(i, tuples.Along(ends)), i);
    i = Minimum(Maximum(i, zero), tuples.Along(last));
  }
  return {MakeCall<ScatterNDAttrs>(op::scatter_nd, {ZerosLike(at.arg(0)), i, grad},
                                   [&](ScatterNDAttrs* s) { s->mode = "add", s->index_last = a.index_last; }),
          Expr()};
}
Grads ScatterNDBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<ScatterNDAttrs>();
  if (a.mode != "update" && a.mode != "add")
    at.Fail("it has a rule for \"update\" and \"add\", not for \"" + a.mode.str() + "\"");
  if (ProductOf(at.dims(2)) == 0 || ProductOf(at.dims(0)) == 0) return {grad, Expr(), ZerosLike(at.arg(2))};
  auto read = [&](const Expr& data) {
    return MakeCall<GatherNDAttrs>(op::gather_nd, {data, at.arg(1)},
                                   [&](GatherNDAttrs* g) { g->index_last = a.index_last; });
  };
  if (a.mode == "add") {  // tuples out of range are left out
    Tuples tuples(at, a.index_last);
    Ints dims = at.dims(0);
    std::vector<int64_t> ends(dims.begin(), dims.begin() + tuples.length), low;
    for (int64_t n : ends) low.push_back(-n);
    if (tuples.length == 0) return {grad, Expr(), read(grad)};
    Expr inside = MakeCall(op::logical_and, {MakeCall(op::greater_equal, {tuples.index, tuples.Along(low)}),
                                             MakeCall(op::less, {tuples.index, tuples.Along(ends)})});
    inside = ReduceCall(op::all, inside, {a.index_last ? tuples.rank - 1 : 0}, false);
    int64_t slices = at.ndim(2) - (tuples.rank - 1);
    if (slices > 0) inside = ExpandDims(inside, tuples.rank - 1, slices);
    return {grad, Expr(), Where(inside, read(grad), MakeScalar(0, at.dtype(2)))};
  }
  auto write = [&](const Expr& data, const Expr& updates) {
    return MakeCall(op::scatter_nd, {data, at.arg(1), updates}, call->attrs);
  };
  return {write(grad, ZerosLike(at.arg(2))), Expr(), WinnersOf(at, write, read)};
}

/// The adjoint of each chosen element goes to where it was.
Expr PutBack(const At& at, const Expr& index, const Expr& grad, int64_t axis) {
  return MakeCall<ScatterElementsAttrs>(op::scatter_elements, {ZerosLike(at.arg(0)), index, grad},
                                        [&](ScatterElementsAttrs* s) { s->axis = axis, s->reduction = "add"; });
}
Grads SortBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<SortAttrs>();
  Expr index = MakeCall<ArgsortAttrs>(op::argsort, {at.arg(0)}, [&](ArgsortAttrs* b) {
    b->axis = a.axis, b->is_ascend = a.is_ascend, b->dtype = DataType::Int(64);
  });
  return {PutBack(at, index, grad, at.Axis(a.axis))};
}
Grads TopKBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<TopKAttrs>();
  if (a.ret_type == "indices") return {Expr()};
  bool both = a.ret_type == "both";
  // Indices of a narrow dtype do not hold every place.
  Expr index = both && a.dtype == DataType::Int(64) ? Item(call, 1)
                                                    : MakeCall<TopKAttrs>(op::topk, {at.arg(0)}, [&](TopKAttrs* b) {
                                                        b->k = a.k, b->axis = a.axis, b->is_ascend = a.is_ascend;
                                                        b->ret_type = "indices", b->dtype = DataType::Int(64);
                                                      });
  return {PutBack(at, index, both ? Item(grad, 0) : grad, at.Axis(a.axis))};
}
/// Of values for one place the last one counts. Numbers of the values are from 1; 0 is the default's.
Grads SparseToDenseBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  int64_t n = at.ndim(0) == 0 ? 1 : at.dims(0)[0];
  if (ProductOf(at.out_dims()) == 0) return {Expr(), ZerosLike(at.arg(1)), ZerosLike(at.arg(2))};
  DataType t = DataType::Int(64);
  Expr numbers = Add(Iota(n), MakeScalar(1, t));
  Expr placed = MakeCall(op::sparse_to_dense, {at.arg(0), numbers, MakeScalar(0, t)}, call->attrs);
  Expr sum = Scatter(ZerosOf(n + 1, at.dtype(1)), Flatten(placed), Flatten(grad));
  Expr values = Slice(sum, {1}, {n + 1});
  return {Expr(), at.ndim(1) == 0 ? Sum(values, {0}) : values, Reshape(Slice(sum, {0}, {1}), Array<int64_t>())};
}
/// What was cut away comes back as zeros, and what was put around goes: the same places either way.
Grads CenterCropPadBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<CenterCropPadAttrs>();
  Ints size;
  for (size_t k = 0; k < a.shape.size(); ++k) {
    int64_t n = DimOf(at.type(0)->shape[a.axes.defined() ? at.Axis(a.axes[k]) : static_cast<int64_t>(k)]);
    if (n < 0) at.Fail("it needs known extents of its axes");
    size.push_back(n);
  }
  return {MakeCall<CenterCropPadAttrs>(op::center_crop_pad, {grad},
                                       [&](CenterCropPadAttrs* b) { b->shape = ToArray(size), b->axes = a.axes; })};
}

// ---- made of a number
Grads FullBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  Ints all = AxesFrom(0, at.out()->shape.size());
  Grads out(call->args.size(), Expr());
  int value = static_cast<int>(call->args.size()) - 1;
  if (at.floating(value)) {
    Expr g = all.empty() ? grad : Sum(grad, all);
    out.Set(value, at.dtype(value) == at.out()->dtype ? g : Cast(g, at.dtype(value)));
  }
  return out;
}
Grads DilateBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<DilateAttrs>();
  Ints dims = at.out_dims();
  return {MakeCall<StridedSliceAttrs>(op::strided_slice, {grad}, [&](StridedSliceAttrs* s) {
    s->begin = ToArray(Ints(dims.size(), 0)), s->end = ToArray(dims), s->strides = a.strides;
  })};
}
Grads MaxUnpoolBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  Ints dims = at.dims(0);
  int64_t n = ProductOf(dims);
  if (n == 0 || ProductOf(at.out_dims()) == 0) return {ZerosLike(at.arg(0)), Expr()};
  auto read = [&](const Expr& data) {
    return MakeCall<TakeAttrs>(op::take, {Flatten(data), at.arg(1)}, [](TakeAttrs* t) { t->axis = PrimExpr(0); });
  };
  // Of elements that go to one place the last one counts; numbers are from 1, 0 is nobody's.
  Expr numbers = Reshape(Add(Iota(n), MakeScalar(1, DataType::Int(64))), ToArray(dims));
  Expr placed = read(MakeCall(op::max_unpool, {numbers, at.arg(1)}, call->attrs));
  return {Where(MakeCall(op::equal, {placed, numbers}), read(grad), MakeScalar(0, at.dtype(0))), Expr()};
}
Grads MatrixSetDiagBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  int64_t n = ProductOf(at.dims(1)), m = ProductOf(at.dims(0));
  if (n == 0 || m == 0) return {grad, ZerosLike(at.arg(1))};
  Expr kept = MakeCall(op::matrix_set_diag, {OnesLike(at.arg(0)), ZerosLike(at.arg(1))}, call->attrs);
  Expr none = MakeCall<InitOpAttrs>(
      op::zeros, {}, [&](InitOpAttrs* a) { a->shape = ToArray(at.dims(0)), a->dtype = DataType::Int(64); });
  Expr numbers = MakeCall(
      op::matrix_set_diag,
      {Subtract(none, MakeScalar(static_cast<double>(-n), DataType::Int(64))), Reshape(Iota(n), ToArray(at.dims(1)))},
      call->attrs);
  return {Multiply(grad, kept),
          ShapeLike(Scatter(ZerosOf(n, at.dtype(1)), Flatten(numbers), Flatten(grad)), at.arg(1))};
}

const bool registered_place = [] {
  DefineGradients({{"reshape", ReshapeBack},
                   {"reshape_like", ReshapeBack},
                   {"reverse_reshape", ReshapeBack},
                   {"expand_dims", ReshapeBack},
                   {"squeeze", ReshapeBack},
                   {"nn.batch_flatten", ReshapeBack},
                   {"dyn.reshape", ReshapeBack},
                   {"dyn.expand_dims", ReshapeBack},
                   {"dyn.squeeze", ReshapeBack},
                   {"transpose", TransposeBack},
                   {"swapaxes", SwapAxesBack},
                   {"reverse", ReverseBack},
                   {"broadcast_to", CollapseBack},
                   {"broadcast_to_like", CollapseBack},
                   {"dyn.broadcast_to", CollapseBack},
                   {"collapse_sum_like", CollapseSumBack},
                   {"concatenate", ConcatenateBack},
                   {"stack", StackBack},
                   {"split", SplitBack},
                   {"meshgrid", MeshgridBack},
                   {"nn.pad", PadBack},
                   {"nn.mirror_pad", SelectBack},
                   {"reverse_sequence", SelectBack},
                   {"vision.yolo_reorg", SelectBack},
                   {"nn.space_to_batch_nd", SpaceToBatchBack},
                   {"nn.batch_to_space_nd", BatchToSpaceBack},
                   {"nn.depth_to_space", DepthToSpaceBack},
                   {"nn.space_to_depth", SpaceToDepthBack},
                   {"layout_transform", LayoutTransformBack},
                   {"sequence_mask", SequenceMaskBack},
                   {"trilu", TriluBack},
                   {"repeat", RepeatBack},
                   {"tile", TileBack},
                   {"strided_slice", StridedSliceBack},
                   {"slice_like", SliceLikeBack},
                   {"strided_set", StridedSetBack},
                   {"take", TakeBack},
                   {"gather", GatherBack},
                   {"gather_nd", GatherNDBack},
                   {"scatter", ScatterBack},
                   {"scatter_add", ScatterAddBack},
                   {"scatter_elements", ScatterElementsBack},
                   {"scatter_nd", ScatterNDBack},
                   {"sort", SortBack},
                   {"topk", TopKBack},
                   {"sparse_to_dense", SparseToDenseBack},
                   {"center_crop_pad", CenterCropPadBack},
                   {"full", FullBack},
                   {"full_like", FullBack},
                   {"zeros_like", None},
                   {"ones_like", None},
                   {"nn.dilate", DilateBack},
                   {"nn.max_unpool", MaxUnpoolBack},
                   {"matrix_set_diag", MatrixSetDiagBack}});
  return true;
}();

}  // namespace
}  // namespace baton::relay::gradient
