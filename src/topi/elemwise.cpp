// SPDX-License-Identifier: Apache-2.0
#include <baton/topi/elemwise.h>

namespace baton::topi {

using tir::as_const_int;
using tir::make_int;

Array<PrimExpr> BroadcastShape(const Array<PrimExpr>& a, const Array<PrimExpr>& b) {
  const auto& big = a.size() >= b.size() ? a : b;
  const auto& small = a.size() >= b.size() ? b : a;
  Array<PrimExpr> out;
  size_t lead = big.size() - small.size();
  for (size_t i = 0; i < big.size(); ++i) {
    // The other's extent counts where this one is 1; where this one is no literal, a literal above 1 says it.
    PrimExpr d = big[i];
    if (i >= lead) {
      PrimExpr e = small[i - lead];
      const int64_t* n = as_const_int(e);
      if (tir::is_one(d) || (!as_const_int(d) && n && *n != 1)) d = e;
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

PrimExpr IntPower(PrimExpr a, PrimExpr b) {
  DataType t = a.dtype();
  int bits = t.is_int() ? t.bits() - 1 : t.bits();
  PrimExpr zero = Zero(a), one = make_int(t, 1);
  // Right to left over the exponent's bits. Variables keep the expression linear in them.
  struct Step {
    tir::Var base, acc;
    PrimExpr base_value, acc_value;
  };
  std::vector<Step> steps;
  PrimExpr base = a, acc = one;
  for (int k = 0; k < bits; ++k) {
    Step s{tir::Var("base", t), tir::Var("power", t), base, PrimExpr()};
    PrimExpr bit = bitwise_and(shift_right(b, make_int(t, k)), one);
    s.acc_value = te::Select(equal(bit, one), acc * s.base, acc);
    steps.push_back(s);
    acc = s.acc;
    base = s.base * s.base;
  }
  PrimExpr out = acc;
  for (size_t k = steps.size(); k-- > 0;) {
    out = tir::Let(steps[k].base, steps[k].base_value, tir::Let(steps[k].acc, steps[k].acc_value, out));
  }
  if (!t.is_int()) return out;
  PrimExpr odd = equal(bitwise_and(b, one), one);
  PrimExpr minus = make_int(t, -1);
  PrimExpr inverse = te::Select(equal(a, one), one, te::Select(equal(a, minus), te::Select(odd, minus, one), zero));
  return te::Select(b < zero, inverse, out);
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
    // Bounds of up to 32 bits are exact in float64; in float32 the upper one of 32 bits is not, so it is compared there.
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
