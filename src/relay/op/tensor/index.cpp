// SPDX-License-Identifier: Apache-2.0
// Operators whose indices are data: reading (take, gather) and writing (scatter). No index reaches outside a tensor.
#include <baton/relay/op/transform.h>
#include <baton/runtime/checked.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>

#include "../common.h"
#include "../elements.h"
#include "../gradient.h"
#include "../reference/reference.h"

namespace baton::relay {
namespace {

struct ScatterNDAttrs : AttrsNode<ScatterNDAttrs> {
  static constexpr auto _type_key = "relay.attrs.ScatterNDAttrs";
  String mode = "update";
  bool index_last = false;
  static constexpr void Describe(auto& d) {
    d(F<&ScatterNDAttrs::mode>, "\"update\", \"add\", \"mul\", \"min\" or \"max\".");
    d(F<&ScatterNDAttrs::index_last>, "Whether the last dimension of indices holds the index tuple, not the first.");
  }
};

using runtime::Checked;

PrimExpr I64(const PrimExpr& e) { return cast(DataType::Int(64), e); }
/// Counts from the end if negative; then clipped into [0, n).
PrimExpr FromEnd(PrimExpr i, const PrimExpr& n) {
  i = te::Select(i < PrimExpr(0), i + n, i);
  return max(min(i, n - PrimExpr(1)), PrimExpr(0));
}
bool Unsigned(const Tensor& t) { return t.dtype().is_uint(); }

// ---- take
PrimExpr TakeIndex(const TakeAttrs& a, const PrimExpr& i, const PrimExpr& n) {
  if (a.mode == "wrap") return floormod(i, max(n, PrimExpr(1)));
  if (a.mode == "negative") return FromEnd(i, n);
  return max(min(i, n - PrimExpr(1)), PrimExpr(0));
}
Type TakeType(const TakeAttrs& a, const TypeArgs& in) {
  in.Integral(1, "R1");
  if (a.mode != "clip" && a.mode != "wrap" && a.mode != "fast" && a.mode != "negative") {
    in.Fail("R2", "mode is \"" + a.mode.str() + "\"; it is \"clip\", \"wrap\", \"fast\" or \"negative\"");
  }
  int64_t b = a.batch_dims < 0 ? a.batch_dims + in.ndim(1) : a.batch_dims;
  if (b < 0 || b > in.ndim(1) || b > in.ndim(0))
    in.Fail("R3", "batch_dims is " + Str(a.batch_dims) + " for " + in.Show(0) + " and " + in.Show(1));
  int64_t from;  // how many elements there are to choose from
  Shape out;
  if (!HasValue(a.axis)) {
    if (b != 0) in.Fail("R3", "batch_dims needs an axis");
    from = ProductOf(Dims(in.shape(0)));
    out = in.shape(1);
  } else {
    in.MinRank(0, 1, "R4");
    int64_t axis = in.Axis(ValueOf(a.axis), in.ndim(0));
    if (b > axis) in.Fail("R3", "batch_dims is " + Str(b) + " and axis " + Str(axis) + ": the axis lies in the batch");
    for (int64_t d = 0; d < b; ++d) {
      if (!in.Same(in.shape(0)[d], in.shape(1)[d]))
        in.Fail("R5", in.Show(0) + " and " + in.Show(1) + " differ in batch dimension " + Str(d));
    }
    from = in.dim(0, axis);
    for (int64_t d = 0; d < axis; ++d) out.push_back(in.shape(0)[d]);
    for (int64_t d = b; d < in.ndim(1); ++d) out.push_back(in.shape(1)[d]);
    for (int64_t d = axis + 1; d < in.ndim(0); ++d) out.push_back(in.shape(0)[d]);
  }
  if (from == 0 && ProductOf(Dims(out)) != 0) in.Fail("R6", in.Show(0) + " has no element to take");
  return TensorType(out, in.dtype(0));
}
Tensor LowerTake(const TakeAttrs& a, const Tensors& in) {
  const Tensor &x = in[0], &at = in[1];
  if (!HasValue(a.axis)) {
    return te::Compute(
        at.shape(),
        [&](Indices i) { return x(topi::Unravel(TakeIndex(a, I64(at(i)), topi::Product(x.shape())), x.shape())); },
        "take");
  }
  int64_t axis = NormalizeAxis(ValueOf(a.axis), x.ndim(), "take"),
          b = a.batch_dims < 0 ? a.batch_dims + at.ndim() : a.batch_dims;
  Shape out;
  for (int64_t d = 0; d < axis; ++d) out.push_back(x.shape()[d]);
  for (int64_t d = b; d < at.ndim(); ++d) out.push_back(at.shape()[d]);
  for (int64_t d = axis + 1; d < x.ndim(); ++d) out.push_back(x.shape()[d]);
  return te::Compute(
      out,
      [&](Indices i) {
        Shape where, from;
        for (int64_t d = 0; d < b; ++d) where.push_back(i[d]);
        for (int64_t d = b; d < at.ndim(); ++d) where.push_back(i[axis + d - b]);
        for (int64_t d = 0; d < axis; ++d) from.push_back(i[d]);
        from.push_back(TakeIndex(a, I64(at(where)), x.shape()[axis]));
        for (int64_t d = axis + 1; d < x.ndim(); ++d) from.push_back(i[d - 1 + at.ndim() - b]);
        return x(from);
      },
      "take");
}

// ---- gather
void CheckAlong(const TypeArgs& in, int64_t axis, int index, const char* rule) {
  if (in.ndim(index) != in.ndim(0)) in.Fail(rule, in.Show(index) + " and " + in.Show(0) + " differ in rank");
  for (int64_t d = 0; d < in.ndim(0); ++d) {
    int64_t n = in.dim(0, d), m = in.dim(index, d);
    if (d != axis && n >= 0 && m > n)
      in.Fail(rule, in.Show(index) + " is longer than " + in.Show(0) + " on axis " + Str(d));
  }
}
Type GatherType(const GatherAttrs& a, const TypeArgs& in) {
  in.Integral(1, "R1");
  in.MinRank(0, 1, "R2");
  int64_t axis = in.Axis(a.axis, in.ndim(0));
  CheckAlong(in, axis, 1, "R2");
  if (in.dim(0, axis) == 0 && ProductOf(Dims(in.shape(1))) != 0)
    in.Fail("R3", in.Show(0) + " has no element to gather");
  return TensorType(in.shape(1), in.dtype(0));
}
Tensor LowerGather(const GatherAttrs& a, const Tensors& in) {
  int64_t axis = NormalizeAxis(a.axis, in[0].ndim(), "gather");
  return topi::Pick(
      in[1].shape(), in[0],
      [&](Indices i) {
        Shape at = i;
        at.Set(axis, FromEnd(I64(in[1](i)), in[0].shape()[axis]));
        return at;
      },
      "gather");
}

// ---- gather_nd
/// Places of index k of a tuple within `indices`: at(batch and outer positions, k).
struct TupleLayout {
  bool last;      ///< the tuple is the last dimension
  int64_t outer;  ///< number of the other dimensions
  Shape At(const Shape& where, PrimExpr k) const {
    Shape at;
    if (!last) at.push_back(k);
    for (const PrimExpr& w : where) at.push_back(w);
    if (last) at.push_back(k);
    return at;
  }
  Shape Outer(const Shape& indices) const {
    return last ? Shape(indices.begin(), indices.begin() + outer) : Shape(indices.begin() + 1, indices.end());
  }
  PrimExpr Length(const Shape& indices) const { return last ? indices.back() : indices.front(); }
};
int64_t TupleLength(const TypeArgs& in, const TupleLayout& t, int index, const PrimExpr& said, const char* rule) {
  int64_t m = DimOf(t.Length(in.shape(index)));
  if (m < 0 && HasValue(said)) m = ValueOf(said);
  if (m < 0) in.Fail(rule, in.Show(index) + ": the length of its index tuples is not known");
  return m;
}
Type GatherNDType(const GatherNDAttrs& a, const TypeArgs& in) {
  in.Integral(1, "R1");
  in.MinRank(1, 1, "R2");
  TupleLayout t{a.index_last, in.ndim(1) - 1};
  int64_t m = TupleLength(in, t, 1, a.index_rank, "R3"), b = a.batch_dims;
  if (b > t.outer || b + m > in.ndim(0)) {
    in.Fail("R4", in.Show(1) + " holds tuples of " + Str(m) + " indices and batch_dims is " + Str(b) +
                      ", which is more than " + in.Show(0) + " has");
  }
  Shape out = t.Outer(in.shape(1));
  for (int64_t d = 0; d < b; ++d) {
    if (!in.Same(in.shape(0)[d], out[d]))
      in.Fail("R5", in.Show(0) + " and " + in.Show(1) + " differ in batch dimension " + Str(d));
  }
  for (int64_t d = b + m; d < in.ndim(0); ++d) out.push_back(in.shape(0)[d]);
  if (ProductOf(Dims(in.shape(0))) == 0 && ProductOf(Dims(out)) != 0)
    in.Fail("R6", in.Show(0) + " has no element to gather");
  return TensorType(out, in.dtype(0));
}
Tensor LowerGatherND(const GatherNDAttrs& a, const Tensors& in) {
  const Tensor &x = in[0], &idx = in[1];
  TupleLayout t{a.index_last, idx.ndim() - 1};
  int64_t m = DimOf(t.Length(idx.shape())), b = a.batch_dims;
  if (m < 0) m = ValueOf(a.index_rank);
  Shape out = t.Outer(idx.shape());
  for (int64_t d = b + m; d < x.ndim(); ++d) out.push_back(x.shape()[d]);
  return topi::Pick(
      out, x,
      [&](Indices i) {
        Shape where, at;
        for (int64_t d = 0; d < t.outer; ++d) where.push_back(i[d]);
        for (int64_t d = 0; d < b; ++d) at.push_back(i[d]);
        for (int64_t k = 0; k < m; ++k) at.push_back(FromEnd(I64(idx(t.At(where, PrimExpr(k)))), x.shape()[b + k]));
        for (int64_t d = b + m; d < x.ndim(); ++d) at.push_back(i[t.outer + d - b - m]);
        return at;
      },
      "gather_nd");
}

// ---- scatter
PrimExpr CombineBy(const String& how, PrimExpr old, PrimExpr fresh) {
  DataType t = old.dtype();
  PrimExpr a = Widen(old), b = Widen(fresh);
  if (how == "add") return cast(t, a + b);
  if (how == "mul") return cast(t, a * b);
  if (how == "min") return cast(t, min(a, b));
  if (how == "max") return cast(t, max(a, b));
  return fresh;
}
void CheckCombine(const TypeArgs& in, const String& how, const char* what) {
  if (how != "update" && how != "add" && how != "mul" && how != "min" && how != "max") {
    in.Fail("R1",
            std::string(what) + " is \"" + how.str() + "\"; it is \"update\", \"add\", \"mul\", \"min\" or \"max\"");
  }
  if (how != "update") in.Number(0, "R1");
  in.Integral(1, "R2");
  in.SameDtype(0, 2, "R3");
}
/// Copies data, then visits the updates in row-major order: where(update's index) gives its place in data. A place
/// outside data is left out.
template <class Where>
Tensor Scatter(const Tensors& in, const String& how, Where where, const char* name) {
  const Tensor& x = in[0];
  return topi::Extern(
      x.shape(), x.dtype(), in,
      [&](const Array<tir::Buffer>& buf, const tir::Buffer& out) {
        tir::Stmt copy =
            topi::Loops(x.shape(), [&](const Shape& i) { return topi::Store(out, i, tir::BufferLoad(buf[0], i)); });
        tir::Stmt write = topi::Loops(in[2].shape(), [&](const Shape& i) {
          Shape raw = where(i, buf[1]), at, shape = x.shape();
          PrimExpr inside = tir::make_int(DataType::Bool(), 1);
          for (int64_t d = 0; d < x.ndim(); ++d) {
            PrimExpr j = raw[d];
            if (j.as<tir::VarNode>()) {  // a loop's variable: inside by the shapes
              at.push_back(j);
              continue;
            }
            inside = inside && j >= -shape[d] && j < shape[d];
            at.push_back(te::Select(j < PrimExpr(0), j + shape[d], j));
          }
          tir::Stmt store = topi::Store(out, at, CombineBy(how, tir::BufferLoad(out, at), tir::BufferLoad(buf[2], i)));
          tir::IfThenElseNode n;
          n.condition = inside, n.then_case = store;
          return tir::is_one(inside) ? store : tir::Stmt(tir::IfThenElse(std::move(n)));
        });
        return tir::SeqStmt::Flatten({copy, write});
      },
      name);
}
Type ScatterElementsCheck(int64_t axis, const String& how, const TypeArgs& in) {
  CheckCombine(in, how, "reduction");
  in.MinRank(0, 1, "R4");
  CheckAlong(in, in.Axis(axis, in.ndim(0)), 1, "R4");
  bool same = in.ndim(1) == in.ndim(2);
  for (int64_t d = 0; same && d < in.ndim(1); ++d) same = in.Same(in.shape(1)[d], in.shape(2)[d]);
  if (!same) in.Fail("R5", in.Show(2) + " and " + in.Show(1) + " differ in shape");
  return in.type(0);
}
Tensor ScatterAlong(int64_t axis, const String& how, const Tensors& in) {
  axis = NormalizeAxis(axis, in[0].ndim(), "scatter_elements");
  return Scatter(
      in, how,
      [&](const Shape& i, const tir::Buffer& idx) {
        Shape at = i;
        at.Set(axis, I64(tir::BufferLoad(idx, i)));
        return at;
      },
      "scatter_elements");
}
Type ScatterElementsType(const ScatterElementsAttrs& a, const TypeArgs& in) {
  return ScatterElementsCheck(a.axis, a.reduction, in);
}
Tensor LowerScatterElements(const ScatterElementsAttrs& a, const Tensors& in) {
  return ScatterAlong(a.axis, a.reduction, in);
}
Type ScatterAddType(const GatherAttrs& a, const TypeArgs& in) { return ScatterElementsCheck(a.axis, "add", in); }
Tensor LowerScatterAdd(const GatherAttrs& a, const Tensors& in) { return ScatterAlong(a.axis, "add", in); }
Type ScatterType(const GatherAttrs& a, const TypeArgs& in) { return ScatterElementsCheck(a.axis, "update", in); }
Tensor LowerScatter(const GatherAttrs& a, const Tensors& in) { return ScatterAlong(a.axis, "update", in); }

Type ScatterNDType(const ScatterNDAttrs& a, const TypeArgs& in) {
  CheckCombine(in, a.mode, "mode");
  in.MinRank(1, 1, "R4");
  TupleLayout t{a.index_last, in.ndim(1) - 1};
  int64_t m = TupleLength(in, t, 1, PrimExpr(), "R4");
  if (m > in.ndim(0))
    in.Fail("R4", in.Show(1) + " holds tuples of " + Str(m) + " indices, more than " + in.Show(0) + " has dimensions");
  Shape want = t.Outer(in.shape(1));
  for (int64_t d = m; d < in.ndim(0); ++d) want.push_back(in.shape(0)[d]);
  bool same = want.size() == in.shape(2).size();
  for (size_t d = 0; same && d < want.size(); ++d) same = in.Same(want[d], in.shape(2)[d]);
  if (!same) in.Fail("R5", in.Show(2) + ", where shape " + ShowShape(want) + " is wanted");
  return in.type(0);
}
Tensor LowerScatterND(const ScatterNDAttrs& a, const Tensors& in) {
  TupleLayout t{a.index_last, in[1].ndim() - 1};
  int64_t m = DimOf(t.Length(in[1].shape()));
  return Scatter(
      in, a.mode,
      [&](const Shape& i, const tir::Buffer& idx) {
        Shape where(i.begin(), i.begin() + t.outer), at;
        for (int64_t k = 0; k < m; ++k) at.push_back(I64(tir::BufferLoad(idx, t.At(where, PrimExpr(k)))));
        for (int64_t d = m; d < in[0].ndim(); ++d) at.push_back(i[t.outer + d - m]);
        return at;
      },
      "scatter_nd");
}

// ---- sparse_to_dense
Type SparseToDenseType(const SparseToDenseAttrs& a, const TypeArgs& in) {
  in.Integral(0, "R1");
  in.SameDtype(1, 2, "R2");
  if (in.ndim(0) > 2 || in.ndim(1) > 1 || in.ndim(2) != 0) {
    in.Fail("R3", in.Show(0) + ", " + in.Show(1) + ", " + in.Show(2) + ", where rank 0 to 2, 0 to 1, and 0 is wanted");
  }
  int64_t rank = a.output_shape.size(), m = in.ndim(0) == 2 ? in.dim(0, 1) : 1;
  if (m >= 0 && m != rank)
    in.Fail("R4", in.Show(0) + " holds tuples of " + Str(m) + " indices for output_shape " +
                      ShowInts(ToInts(a.output_shape)));
  if (in.ndim(1) == 1 && !in.Same(in.ndim(0) == 0 ? PrimExpr(1) : in.shape(0)[0], in.shape(1)[0]))
    in.Fail("R5", in.Show(1) + " and " + in.Show(0) + " differ in number; one value for all has rank 0");
  return TensorType(MakeShape(ToInts(a.output_shape)), in.dtype(1));
}
Tensor LowerSparseToDense(const SparseToDenseAttrs& a, const Tensors& in) {
  Shape shape = MakeShape(ToInts(a.output_shape));
  const Tensor &idx = in[0], &v = in[1];
  return topi::Extern(
      shape, v.dtype(), in,
      [&](const Array<tir::Buffer>& buf, const tir::Buffer& out) {
        tir::Stmt fill =
            topi::Loops(shape, [&](const Shape& i) { return topi::Store(out, i, tir::BufferLoad(buf[2], Shape())); });
        Shape rows = idx.ndim() == 0 ? Shape{PrimExpr(1)} : Shape{idx.shape()[0]};
        tir::Stmt write = topi::Loops(rows, [&](const Shape& r) {
          Shape at;
          PrimExpr inside = tir::make_int(DataType::Bool(), 1);
          for (size_t d = 0; d < shape.size(); ++d) {
            Shape where = idx.ndim() == 0   ? Shape()
                          : idx.ndim() == 1 ? r
                                            : Shape{r[0], PrimExpr(static_cast<int64_t>(d))};
            PrimExpr j = I64(tir::BufferLoad(buf[0], where));
            inside = inside && j >= PrimExpr(0) && j < shape[d];
            at.push_back(j);
          }
          tir::IfThenElseNode n;
          n.condition = inside;
          n.then_case = topi::Store(out, at, tir::BufferLoad(buf[1], v.ndim() == 0 ? Shape() : r));
          return tir::Stmt(tir::IfThenElse(std::move(n)));
        });
        return tir::SeqStmt::Flatten({fill, write});
      },
      "sparse_to_dense");
}

// ---- one_hot
Type OneHotType(const OneHotAttrs& a, const TypeArgs& in) {
  in.Integral(0, "R1");
  in.SameDtype(1, 2, "R2");
  for (int k : {1, 2}) {
    int64_t n = ProductOf(Dims(in.shape(k)));
    if (n >= 0 && n != 1) in.Fail("R3", in.Show(k) + ", where one element is wanted");
  }
  Shape out = in.shape(0);
  out.insert(in.Axis(a.axis, in.ndim(0) + 1), PrimExpr(a.depth));
  return TensorType(out, a.dtype.is_void() ? in.dtype(1) : a.dtype);
}
Tensor LowerOneHot(const OneHotAttrs& a, const Tensors& in) {
  int64_t axis = NormalizeAxis(a.axis, in[0].ndim() + 1, "one_hot");
  Shape out = in[0].shape();
  out.insert(axis, PrimExpr(a.depth));
  DataType t = a.dtype.is_void() ? in[1].dtype() : a.dtype;
  auto scalar = [&](const Tensor& x) {
    std::vector<PrimExpr> zeros(x.ndim(), PrimExpr(0));
    return topi::Convert(t, x(Shape(zeros)));
  };
  return te::Compute(
      out,
      [&](Indices i) {
        Shape at;
        for (int64_t d = 0; d < static_cast<int64_t>(out.size()); ++d) {
          if (d != axis) at.push_back(i[d]);
        }
        PrimExpr j = I64(in[0](at));
        PrimExpr hit = equal(j, PrimExpr(i[axis]));
        if (!Unsigned(in[0])) hit = hit || equal(j + PrimExpr(a.depth), PrimExpr(i[axis]));  // ONNX counts from the end
        return te::Select(hit, scalar(in[1]), scalar(in[2]));
      },
      "one_hot");
}

}  // namespace

namespace gradient {
namespace {

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
Expr FilledWith(const Ints& dims, double v, DataType t) {
  return MakeCall<InitOpAttrs>(op::full, {MakeScalar(v, t)},
                               [&](InitOpAttrs* a) { a->shape = ToArray(dims), a->dtype = t; });
}
/// Of updates to one place the last one counts: the adjoint at each update's place, zero if another one is there.
/// `write(data, updates)` is the operator on other tensors, `read(data)` the element at each update's place.
template <class WriteTo, class ReadFrom>
Expr WinnersOf(const At& at, WriteTo write, ReadFrom read) {
  Ints udims = at.dims(2);
  DataType t = DataType::Int(64);
  Expr numbers = Reshape(Iota(ProductOf(udims)), ToArray(udims));
  Expr placed = read(write(FilledWith(at.dims(0), -1, t), numbers));
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
/// Of values for one place the last one counts. Ids of the values start at 1; 0 is that of the default.
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

/// Each of the two values gets the adjoints of the elements that hold it.
Grads OneHotBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const DataType t = at.out()->dtype;
  Grads out(3, Expr());
  if (!t.is_floating() || !at.floating(1)) return out;
  const Val hot{MakeCall<OneHotAttrs>(op::one_hot, {at.arg(0), MakeScalar(1, t), MakeScalar(0, t)},
                                      [&](OneHotAttrs* a) {
                                        *a = at.attrs<OneHotAttrs>();
                                        a->dtype = t;
                                      }),
                t};
  const Ints all = AxesFrom(0, static_cast<int64_t>(at.out()->shape.size()));
  for (int i : {1, 2}) {
    const Expr sum = Sum(at.g() * (i == 1 ? hot : 1 - hot), all);
    out.Set(i, ShapeLike(at.dtype(i) == t ? sum : Cast(sum, at.dtype(i)), at.arg(i)));
  }
  return out;
}

}  // namespace
}  // namespace gradient

namespace {
std::optional<Elements> TakeElements(const ElementsSite& site) {
  const auto* data = AsTensor(site.types[0]);
  if (!data || data->shape.size() != 1 || !site.in[0] || !site.in[1]) return std::nullopt;
  return ElementsAt(*site.in[0], *site.in[1], AttrsAs<TakeAttrs>(site.attrs).mode == "negative");
}
}  // namespace

const Op op::take = DefineOp({
    .name = "take",
    .doc = "Elements or slices of data by index.",
    .inputs = {{"data", "R4: rank 1 or more, unless axis=None. R6: not empty where something is taken."},
               {"indices", "R1: integers. R5: data's extents in the batch."}},
    .output = "data's shape with `axis` replaced by the shape of `indices`. R2: a known mode. R3: batch_dims <= axis.",
    .attrs = TypeOf<TakeAttrs>,
    .type_rel = Rel<"take", TakeType>,
    .lower = LowerTake,
    .gradient = gradient::TakeBack,
    .pattern = OpPattern::kInjective,
    .source = "NumPy; ONNX Gather-13",
    .traits = {.values = Values::kSelects, .reference = reference::Take, .elements = TakeElements},
});
const Op op::gather = DefineOp({
    .name = "gather",
    .doc = "out[i, j, k] = data[indices[i, j, k], j, k] for axis 0; negative indices count from the end.",
    .inputs = {{"data", "R3: not empty where something is gathered."},
               {"indices", "R1: integers. R2: data's rank, not longer off `axis`."}},
    .output = "Shape of `indices`, dtype of `data`.",
    .attrs = TypeOf<GatherAttrs>,
    .type_rel = Rel<"gather", GatherType>,
    .lower = LowerGather,
    .gradient = gradient::GatherBack,
    .pattern = OpPattern::kInjective,
    .source = "ONNX GatherElements-13",
    .traits = {.values = Values::kSelects},
});
const Op op::gather_nd = DefineOp({
    .name = "gather_nd",
    .doc = "Slices of data by index tuples; negative indices count from the end.",
    .inputs = {{"data", "R6: not empty where something is gathered."},
               {"indices",
                "R1: integers. R2: rank 1 or more. R3: tuples of a known length. R4: not longer than data has "
                "dimensions. R5: data's batch."}},
    .output = "Shape of `indices` without its tuples, then what is left of data's.",
    .attrs = TypeOf<GatherNDAttrs>,
    .type_rel = Rel<"gather_nd", GatherNDType>,
    .lower = LowerGatherND,
    .gradient = gradient::GatherNDBack,
    .pattern = OpPattern::kInjective,
    .source = "Relay; ONNX GatherND-13",
    .traits = {.values = Values::kSelects},
});

namespace {
Op DefineScatter(const char* name, const char* doc, const char* (*attrs)(), TypeRelationFn rel, LowerFn lower,
                 OpGradient gradient, const char* source,
                 const char* output = "Shape and dtype of `data`. R1: a known way to combine.") {
  return DefineOp(
      {.name = name,
       .doc = doc,
       .inputs = {{"data", "Any tensor; of numbers unless values replace."},
                  {"indices",
                   "R2: integers; negative ones count from the end, others outside are left out. R4: fits data."},
                  {"updates", "R3: dtype of data. R5: an element or slice for each index."}},
       .output = output,
       .attrs = attrs,
       .type_rel = rel,
       .lower = lower,
       .gradient = gradient,
       .pattern = OpPattern::kOpaque,
       .source = source,
       .traits = {.precision = Precision::kFollow}});
}
}  // namespace

const Op op::scatter_elements = DefineScatter(
    "scatter_elements", "data with elements replaced or combined: out[indices[i, j], j] = updates[i, j] for axis 0.",
    TypeOf<ScatterElementsAttrs>, Rel<"scatter_elements", ScatterElementsType>, LowerScatterElements,
    gradient::ScatterElementsBack, "ONNX ScatterElements-18");
const Op op::scatter =
    DefineScatter("scatter", "scatter_elements that replaces.", TypeOf<GatherAttrs>, Rel<"scatter", ScatterType>,
                  LowerScatter, gradient::ScatterBack, "Relay", "Shape and dtype of `data`.");
const Op op::scatter_add =
    DefineScatter("scatter_add", "scatter_elements that adds.", TypeOf<GatherAttrs>, Rel<"scatter_add", ScatterAddType>,
                  LowerScatterAdd, gradient::ScatterAddBack, "Relay", "Shape and dtype of `data`. R1: numbers.");
const Op op::scatter_nd = DefineScatter("scatter_nd", "data with slices, found by index tuples, replaced or combined.",
                                        TypeOf<ScatterNDAttrs>, Rel<"scatter_nd", ScatterNDType>, LowerScatterND,
                                        gradient::ScatterNDBack, "Relay; ONNX ScatterND-18");
const Op op::sparse_to_dense = DefineOp({
    .name = "sparse_to_dense",
    .doc = "A tensor of default values with some elements set.",
    .inputs = {{"sparse_indices", "R1: integers. R3: rank 0 to 2. R4: index tuples of output_shape's length."},
               {"sparse_values", "R3: rank 0 or 1. R5: of rank 1, as many as sparse_indices."},
               {"default_value", "R2: dtype of sparse_values. R3: rank 0."}},
    .output = "Shape output_shape.",
    .attrs = TypeOf<SparseToDenseAttrs>,
    .type_rel = Rel<"sparse_to_dense", SparseToDenseType>,
    .lower = LowerSparseToDense,
    .gradient = gradient::SparseToDenseBack,
    .pattern = OpPattern::kOpaque,
    .source = "Relay",
});
const Op op::one_hot = DefineOp({
    .name = "one_hot",
    .doc = "on_value where the new dimension's index is that of `indices`, off_value elsewhere; negative indices count "
           "from the end.",
    .inputs = {{"indices", "R1: integers."},
               {"on_value", "R3: one element."},
               {"off_value", "R2: dtype of on_value. R3: one element."}},
    .output = "Shape of `indices` with `depth` inserted at `axis`.",
    .attrs = TypeOf<OneHotAttrs>,
    .type_rel = Rel<"one_hot", OneHotType>,
    .lower = LowerOneHot,
    .gradient = gradient::OneHotBack,
    .pattern = OpPattern::kInjective,
    .source = "ONNX OneHot-11",
});

}  // namespace baton::relay
