// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>

namespace baton::topi {

using tir::as_const_int;
using tir::make_int;

namespace {

/// Whether one of two extents is known to be that of their broadcast: a literal above 1.
bool Decides(const PrimExpr& d) {
  const int64_t* n = as_const_int(d);
  return n && *n != 1;
}

}  // namespace

Array<PrimExpr> BroadcastShape(const Array<PrimExpr>& a, const Array<PrimExpr>& b) {
  const auto& big = a.size() >= b.size() ? a : b;
  const auto& small = a.size() >= b.size() ? b : a;
  Array<PrimExpr> out;
  size_t lead = big.size() - small.size();
  for (size_t i = 0; i < big.size(); ++i) {
    PrimExpr d = big[i];
    if (i >= lead) {
      const PrimExpr e = small[i - lead];
      if (tir::is_one(d) || (!as_const_int(d) && Decides(e))) {
        d = e;
      } else if (!Decides(d) && !tir::is_one(e) && !tir::ExprDeepEqual(d, e)) {
        d = tir::Select(tir::EQ(d, make_int(d.dtype(), 1)), cast(d.dtype(), e), d);
      }
    }
    out.push_back(d);
  }
  return out;
}

PrimExpr BroadcastAt(const te::Tensor& x, const Array<PrimExpr>& i) {
  Array<PrimExpr> at;
  size_t lead = i.size() - x.shape().size();
  for (size_t d = 0; d < x.shape().size(); ++d) at.push_back(tir::is_one(x.shape()[d]) ? PrimExpr(0) : i[lead + d]);
  return x(at);
}

PrimExpr BroadcastIndex(const PrimExpr& extent, const PrimExpr& i, const PrimExpr& result) {
  if (tir::is_one(extent)) return PrimExpr(0);
  if (as_const_int(extent) || tir::ExprDeepEqual(extent, result)) return i;
  return tir::Select(tir::EQ(extent, make_int(extent.dtype(), 1)), make_int(i.dtype(), 0), i);
}

PrimExpr BroadcastAt(const te::Tensor& x, const Array<PrimExpr>& i, const Array<PrimExpr>& shape) {
  Array<PrimExpr> at;
  const size_t lead = i.size() - x.shape().size();
  for (size_t d = 0; d < x.shape().size(); ++d)
    at.push_back(BroadcastIndex(x.shape()[d], i[lead + d], shape[lead + d]));
  return x(at);
}

te::Tensor Cast(const te::Tensor& x, DataType dtype) {
  if (x.dtype() == dtype) return x;
  return Map(x, [&](PrimExpr v) { return Convert(dtype, v); }, "cast");
}

te::Tensor Full(const Array<PrimExpr>& shape, PrimExpr value) {
  return te::Compute(shape, [&](te::Indices) { return value; }, "full");
}

namespace {
PrimExpr Zero(const PrimExpr& like) { return make_int(like.dtype(), 0); }
/// f(a, b) where b is neither 0 nor -1; `minus` for -1 and 0 for 0.
template <class Fn>
PrimExpr Guard(PrimExpr a, PrimExpr b, PrimExpr minus, Fn f) {
  PrimExpr one = make_int(a.dtype(), 1);
  if (const int64_t* n = as_const_int(b)) {
    if (*n == 0) return Zero(a);
    if (*n == -1 && a.dtype().is_int()) return minus;
    return f(a, b);
  }
  PrimExpr zero = equal(b, Zero(b));
  if (!a.dtype().is_int()) return te::Select(zero, Zero(a), f(a, te::Select(zero, one, b)));
  PrimExpr neg = equal(b, make_int(b.dtype(), -1));
  PrimExpr q = f(a, te::Select(zero || neg, one, b));
  return te::Select(zero, Zero(a), te::Select(neg, minus, q));
}
}  // namespace

PrimExpr SafeTruncDiv(PrimExpr a, PrimExpr b) {
  return Guard(a, b, Zero(a) - a, [](PrimExpr x, PrimExpr y) { return truncdiv(x, y); });
}
PrimExpr SafeTruncMod(PrimExpr a, PrimExpr b) {
  return Guard(a, b, Zero(a), [](PrimExpr x, PrimExpr y) { return truncmod(x, y); });
}
PrimExpr SafeFloorDiv(PrimExpr a, PrimExpr b) {
  return Guard(a, b, Zero(a) - a, [](PrimExpr x, PrimExpr y) { return floordiv(x, y); });
}
PrimExpr SafeFloorMod(PrimExpr a, PrimExpr b) {
  return Guard(a, b, Zero(a), [](PrimExpr x, PrimExpr y) { return floormod(x, y); });
}

te::Tensor IntPower(const te::Tensor& a, const te::Tensor& b) {
  DataType t = a.dtype();
  Array<PrimExpr> shape = BroadcastShape(a.shape(), b.shape());
  te::Tensor x = te::Compute(shape, [&](te::Indices i) { return BroadcastAt(a, i, shape); }, "base");
  te::Tensor y = te::Compute(shape, [&](te::Indices i) { return cast(t, BroadcastAt(b, i, shape)); }, "exponent");
  PrimExpr zero = make_int(t, 0), one = make_int(t, 1), minus = t.is_int() ? make_int(t, -1) : one;
  // A loop over the exponent's bits: as one expression it would be exponential in them.
  return Extern(
      shape, t, {x, y},
      [&](const Array<tir::Buffer>& in, const tir::Buffer& out) {
        return Loops(shape, [&](const Array<PrimExpr>& i) {
          tir::Buffer base = tir::Buffer::Make({1}, t, "base", "local"),
                      acc = tir::Buffer::Make({1}, t, "acc", "local");
          Array<PrimExpr> at{PrimExpr(0)};
          PrimExpr v = tir::BufferLoad(in[0], i), e = tir::BufferLoad(in[1], i), p = tir::BufferLoad(base, at),
                   r = tir::BufferLoad(acc, at);
          tir::Stmt run = Loops({PrimExpr(t.is_int() ? t.bits() - 1 : t.bits())}, [&](const Array<PrimExpr>& k) {
            PrimExpr bit = bitwise_and(shift_right(e, cast(t, k[0])), one);
            return tir::SeqStmt::Flatten(
                {Store(acc, at, te::Select(equal(bit, one), r * p, r)), Store(base, at, p * p)});
          });
          PrimExpr result = r;
          if (t.is_int()) {
            PrimExpr odd = equal(bitwise_and(e, one), one);
            PrimExpr inverse =
                te::Select(equal(v, one), one, te::Select(equal(v, minus), te::Select(odd, minus, one), zero));
            result = te::Select(e < zero, inverse, r);
          }
          tir::AllocateNode outer, inner;
          inner.buffer = acc;
          inner.body = tir::SeqStmt::Flatten({Store(base, at, v), Store(acc, at, one), run, Store(out, i, result)});
          outer.buffer = base;
          outer.body = tir::Allocate(std::move(inner));
          return tir::Stmt(tir::Allocate(std::move(outer)));
        });
      },
      "power");
}

PrimExpr Convert(DataType dtype, PrimExpr x) {
  DataType from = x.dtype();
  if (from == dtype) return x;
  if (dtype.is_bool()) {
    if (from.is_floating() && from.bits() < 32) x = cast(DataType::Float(32), x);
    return not_equal(x, from.is_floating() ? tir::make_const(x.dtype(), 0) : make_int(x.dtype(), 0));
  }
  // A bool is 0 or 1 in any dtype.
  if (from.is_bool() && dtype.is_floating()) {
    return te::Select(x, tir::make_const(dtype, 1), tir::make_const(dtype, 0));
  }
  auto narrow = [](DataType t) { return t.is_floating() && t.bits() < 32; };
  if (narrow(from) && !dtype.is_floating()) x = cast(DataType::Float(32), x);
  if (narrow(from) && narrow(dtype)) x = cast(DataType::Float(32), x);
  return cast(dtype, x);
}

PrimExpr SaturatingCast(DataType dtype, PrimExpr x) {
  if (x.dtype().is_floating()) {
    // Bounds of up to 32 bits are exact in float64; in float32 the upper one of 32 bits is not, so it is compared
    // there.
    DataType t = dtype.bits() >= 32 ? DataType::Float(64) : x.dtype();
    x = cast(t, x);
    double lo = dtype.is_uint() ? 0 : -static_cast<double>(uint64_t{1} << (dtype.bits() - 1));
    double hi = dtype.is_uint() ? static_cast<double>((uint64_t{1} << (dtype.bits() - 1)) - 1) * 2 + 1
                                : static_cast<double>((uint64_t{1} << (dtype.bits() - 1)) - 1);
    return cast(dtype, max(min(x, tir::make_const(t, hi)), tir::make_const(t, lo)));
  }
  PrimExpr v = cast(DataType::Int(64), x);
  int64_t lo = dtype.is_uint() ? 0 : -(int64_t{1} << (dtype.bits() - 1));
  int64_t hi = dtype.is_uint() ? (int64_t{1} << dtype.bits()) - 1 : (int64_t{1} << (dtype.bits() - 1)) - 1;
  return cast(dtype, max(min(v, PrimExpr(hi)), PrimExpr(lo)));
}

}  // namespace baton::topi
