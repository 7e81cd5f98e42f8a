// SPDX-License-Identifier: Apache-2.0
#include "symbolic.h"

#include <baton/arith/extent.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/transform.h>
#include <baton/tir/functor.h>

#include "../common.h"

namespace baton::relay {
namespace {

Shape ShapeOfExpr(const Expr& e) {
  const auto* t = e->checked_type_.as<TensorTypeNode>();
  return t ? t->shape : Shape();
}
DataType DtypeOfExpr(const Expr& e) { return e->checked_type_.as<TensorTypeNode>()->dtype; }
bool NotNegative(const PrimExpr& e) { return arith::ExtentAtLeast(e, 0) == arith::Fact::kYes; }
PrimExpr Canonical(const PrimExpr& e) { return arith::CanonicalExtent(e); }
PrimExpr Literal(int64_t v) { return PrimExpr(v); }

ExtentArray Extents(const std::vector<PrimExpr>& list) {
  ExtentArray out;
  for (const PrimExpr& e : list) out.push_back(Extent(Canonical(e)));
  return out;
}

Expr ReshapeTo(const Expr& data, const std::vector<PrimExpr>& shape) {
  return MakeCall(op::reshape, {data},
                  MakeAttrs<ReshapeAttrs>([&](ReshapeAttrs* s) { s->newshape = Extents(shape), s->allowzero = true; }));
}
Expr BroadcastTo(const Expr& data, const std::vector<PrimExpr>& shape) {
  return MakeCall(op::broadcast_to, {data}, MakeAttrs<InitOpAttrs>([&](InitOpAttrs* s) { s->shape = Extents(shape); }));
}
Expr Full(const Expr& value, const std::vector<PrimExpr>& shape, DataType dtype) {
  return MakeCall(op::full, {value},
                  MakeAttrs<InitOpAttrs>([&](InitOpAttrs* s) { s->shape = Extents(shape), s->dtype = dtype; }));
}
Expr Joined(const Array<Expr>& parts, int64_t axis) {
  return MakeCall(op::concatenate, {Tuple(parts)},
                  MakeAttrs<ConcatenateAttrs>([&](ConcatenateAttrs* s) { s->axis = axis; }));
}
/// 0, 1, ... of a length.
Expr Count(const PrimExpr& length) {
  const DataType t = DataType::Int(64);
  return MakeCall(op::arange, {MakeScalar(0, t), MakeScalar(0, t), MakeScalar(1, t)},
                  MakeAttrs<ArangeAttrs>([&](ArangeAttrs* s) { s->dtype = t, s->length = Canonical(length); }));
}
/// An extent as a tensor.
Expr Scalar(const PrimExpr& e) {
  if (const int64_t* n = tir::as_const_int(e)) return MakeScalar(static_cast<double>(*n), DataType::Int(64));
  // The last of so many numbers, and one more.
  const Expr all = Count(Canonical(e + Literal(1)));
  return MakeCall(op::max, {all}, MakeAttrs<ReduceAttrs>([](ReduceAttrs*) {}));
}

}  // namespace

bool MayBeNegative(const ExtentList& values) {
  for (const PrimExpr& e : values) {
    if (!e.as<IntImmNode>() && !NotNegative(e)) return true;
  }
  return false;
}

Expr SymbolicReshape(const Expr& data, const ExtentList& codes, bool allowzero) {
  if (!MayBeNegative(codes)) {
    return MakeCall(op::reshape, {data}, MakeAttrs<ReshapeAttrs>([&](ReshapeAttrs* s) {
                      s->newshape = ExtentArray(codes), s->allowzero = allowzero;
                    }));
  }
  const Shape in = ShapeOfExpr(data);
  PrimExpr all = Literal(1), given = Literal(1);
  for (const PrimExpr& d : in) all = all * d;
  std::vector<PrimExpr> wanted, out;
  for (size_t i = 0; i < codes.size(); ++i) {
    PrimExpr e = codes[i];
    const bool open = !e.as<IntImmNode>();
    if (!open && DimOf(e) < -1) return Expr();
    const PrimExpr copied = i < in.size() ? in[static_cast<int64_t>(i)] : Literal(0);
    if (open && !allowzero && !NotNegative(e)) e = tir::Select(tir::EQ(e, Literal(0)), copied, e);
    if (!open && !allowzero && DimOf(e) == 0) e = copied;
    wanted.push_back(e);
    given = given * (open || DimOf(e) != -1 ? tir::Select(tir::EQ(e, Literal(-1)), Literal(1), e) : Literal(1));
  }
  const PrimExpr rest = floordiv(all, max(given, Literal(1)));
  for (const PrimExpr& e : wanted) {
    out.push_back(e.as<IntImmNode>() && tir::as_const_int(e) && *tir::as_const_int(e) != -1
                      ? e
                      : tir::Select(tir::EQ(e, Literal(-1)), rest, e));
  }
  return ReshapeTo(data, out);
}

Expr SymbolicSlice(const Expr& data, const ExtentList& begin, const ExtentList& end, const ExtentList* axes,
                   const ExtentList* strides) {
  const Shape in = ShapeOfExpr(data);
  StridedSliceAttrs s;
  Array<int64_t> steps, dims;
  std::vector<PrimExpr> from, to;
  auto place = [](const PrimExpr& v, const PrimExpr& n) {
    PrimExpr p = v;
    if (const int64_t* k = tir::as_const_int(v)) {
      if (*k < 0) p = *k < -(int64_t{1} << 40) ? Literal(0) : n + v;
      if (*k > (int64_t{1} << 40)) return n;
      return *k < 0 ? max(p, Literal(0)) : min(p, n);
    }
    if (!NotNegative(v)) p = max(tir::Select(tir::LT(v, Literal(0)), v + n, v), Literal(0));
    return min(p, n);
  };
  for (size_t i = 0; i < begin.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    int64_t axis = at, step = 1;
    if (axes) {
      const int64_t* a = tir::as_const_int((*axes)[at]);
      if (!a) return Expr();
      axis = *a < 0 ? *a + static_cast<int64_t>(in.size()) : *a;
    }
    if (strides) {
      const int64_t* k = tir::as_const_int((*strides)[at]);
      if (!k || *k < 1) return Expr();
      step = *k;
    }
    if (axis < 0 || axis >= static_cast<int64_t>(in.size())) return Expr();
    dims.push_back(axis), steps.push_back(step);
    const PrimExpr n = in[axis];
    if (n.as<tir::AnyNode>()) return Expr();
    from.push_back(place(begin[at], n));
    to.push_back(max(place(end[at], n), from.back()));
  }
  return MakeCall(op::strided_slice, {data}, MakeAttrs<StridedSliceAttrs>([&](StridedSliceAttrs* a) {
                    a->begin = Extents(from), a->end = Extents(to), a->strides = steps, a->axes = dims;
                  }));
}

Expr SymbolicTile(const Expr& data, const ExtentList& reps) {
  const Shape in = ShapeOfExpr(data);
  const size_t rank = std::max(in.size(), reps.size());
  std::vector<PrimExpr> apart, stretched, out;
  for (size_t i = 0; i < rank; ++i) {
    const size_t lead = rank - in.size(), before = rank - reps.size();
    const PrimExpr n = i < lead ? Literal(1) : in[static_cast<int64_t>(i - lead)];
    const PrimExpr r = i < before ? Literal(1) : reps[static_cast<int64_t>(i - before)];
    apart.insert(apart.end(), {Literal(1), n});
    stretched.insert(stretched.end(), {r, n});
    out.push_back(r * n);
  }
  return ReshapeTo(BroadcastTo(ReshapeTo(data, apart), stretched), out);
}

Expr SymbolicOneHot(const Expr& indices, const Expr& on, const Expr& off, const PrimExpr& depth, int64_t axis,
                    DataType dtype) {
  const Shape in = ShapeOfExpr(indices);
  const auto rank = static_cast<int64_t>(in.size()) + 1;
  const int64_t at = axis < 0 ? axis + rank : axis;
  std::vector<PrimExpr> apart(in.begin(), in.end()), line(static_cast<size_t>(rank), Literal(1));
  apart.insert(apart.begin() + at, Literal(1));
  line[static_cast<size_t>(at)] = depth;
  const DataType t = DtypeOfExpr(indices);
  const Expr count = ReshapeTo(t == DataType::Int(64) ? Count(depth) : Cast(Count(depth), t), line);
  const Expr hit = MakeCall(op::equal, {ReshapeTo(indices, apart), count});
  auto one = [&](const Expr& v) {
    const Expr scalar = ReshapeTo(v, {});
    return dtype.is_void() || dtype == DtypeOfExpr(v) ? scalar : Cast(scalar, dtype);
  };
  return Where(hit, one(on), one(off));
}

namespace {

/// The part of an axis between two places, which are asked to be in it, in order.
Expr Between(const Expr& data, int64_t axis, const PrimExpr& begin, const PrimExpr& end) {
  return MakeCall(op::strided_slice, {data}, MakeAttrs<StridedSliceAttrs>([&](StridedSliceAttrs* a) {
                    a->begin = Extents({begin}), a->end = Extents({end});
                    a->strides = Array<int64_t>{1}, a->axes = Array<int64_t>{axis};
                  }));
}

}  // namespace

Expr SymbolicSplit(const Expr& data, const ExtentList& sizes, int64_t axis) {
  const Shape in = ShapeOfExpr(data);
  if (in[axis].as<tir::AnyNode>()) return Expr();
  Array<Expr> parts;
  PrimExpr begin = Literal(0);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const PrimExpr& size = sizes[static_cast<int64_t>(i)];
    const bool last = i + 1 == sizes.size();
    const PrimExpr end = last ? in[axis] : Canonical(begin + size);
    Expr part = Between(data, axis, begin, end);
    if (last && !tir::ExprDeepEqual(Canonical(begin + size), Canonical(in[axis]))) {
      // The rest has to be as long as it is said to be.
      std::vector<PrimExpr> shape(in.begin(), in.end());
      shape[static_cast<size_t>(axis)] = size;
      part = ReshapeTo(part, shape);
    }
    parts.push_back(part);
    begin = end;
  }
  return parts.size() == 1 ? parts[0] : Expr(Tuple(parts));
}

Expr SymbolicSplit(const Expr& data, int64_t parts, int64_t axis) {
  const PrimExpr n = ShapeOfExpr(data)[axis], each = floordiv(n + Literal(parts - 1), Literal(parts));
  if (n.as<tir::AnyNode>()) return Expr();
  Array<Expr> out;
  for (int64_t i = 0; i < parts; ++i) {
    const PrimExpr begin = i == 0 ? Literal(0) : min(each * Literal(i), n);
    out.push_back(Between(data, axis, begin, i + 1 == parts ? n : min(each * Literal(i + 1), n)));
  }
  return out.size() == 1 ? out[0] : Expr(Tuple(out));
}

Expr SymbolicPad(const Expr& source, const ExtentList& given, const Expr& value, const String& mode) {
  Shape in = ShapeOfExpr(source);
  const DataType t = DtypeOfExpr(source);
  if (given.size() != 2 * in.size()) return Expr();
  Expr data = source;
  ExtentList widths;
  for (size_t k = 0; k < given.size(); ++k) {
    const PrimExpr& w = given[static_cast<int64_t>(k)];
    const bool positive = w.as<IntImmNode>() ? DimOf(w) >= 0 : NotNegative(w);
    widths.push_back(positive ? w : max(w, Literal(0)));
    if (positive) continue;
    const auto axis = static_cast<int64_t>(k / 2);
    if (mode != "constant" || in[axis].as<tir::AnyNode>()) return Expr();
    const PrimExpr cut = max(Literal(0) - w, Literal(0)), n = in[axis];
    data = k % 2 == 0 ? Between(data, axis, cut, n) : Between(data, axis, Literal(0), n - cut);
    in.Set(axis, Canonical(n - cut));
  }
  std::vector<PrimExpr> shape(in.begin(), in.end());
  Expr out = data;
  for (size_t d = 0; d < in.size(); ++d) {
    const auto axis = static_cast<int64_t>(d);
    const PrimExpr before = widths[2 * axis], after = widths[2 * axis + 1], n = in[axis];
    if (DimOf(before) == 0 && DimOf(after) == 0) continue;
    if (mode == "constant") {
      const Expr fill = value.defined() ? ReshapeTo(value, {}) : Expr(MakeScalar(0, t));
      Array<Expr> parts;
      auto part = [&](const PrimExpr& length) {
        if (DimOf(length) == 0) return;
        std::vector<PrimExpr> size = shape;
        size[d] = length;
        parts.push_back(Full(fill, size, t));
      };
      part(before);
      parts.push_back(out);
      part(after);
      out = Joined(parts, axis);
    } else {
      // The place in data of each element.
      const Expr last = Scalar(Canonical(n - Literal(1)));
      Expr at = Subtract(Count(before + n + after), Scalar(before));
      if (mode == "edge") {
        at = Maximum(Minimum(at, last), MakeScalar(0, DataType::Int(64)));
      } else if (mode == "wrap") {
        at = MakeCall(op::floor_mod, {at, Scalar(n)});
      } else if (mode == "reflect") {
        // There and back again: 2 (n - 1) elements, at least one.
        const Expr both = Maximum(Add(last, last), MakeScalar(1, DataType::Int(64)));
        at = MakeCall(op::floor_mod, {at, both});
        at = Minimum(at, Subtract(both, at));
        at = Minimum(at, last);
      } else {
        return Expr();
      }
      out = MakeCall(op::take, {out, at}, MakeAttrs<TakeAttrs>([&](TakeAttrs* s) { s->axis = axis; }));
    }
    shape[d] = Canonical(before + n + after);
  }
  return out;
}

}  // namespace baton::relay
