// SPDX-License-Identifier: Apache-2.0
// Elementary functions of float32 as expressions that run in vector registers. The polynomials are least-squares fits
// in the maximum norm (Lawson's iteration) of relative error on the reduced range, rounded to float32.
#pragma once

#include <baton/tir/intrin.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

namespace baton::tir::float32 {

/// Binds values to names around a result.
class Names {
 public:
  PrimExpr operator()(const char* name, PrimExpr value) {
    if (value.as<VarNode>() || value.as<FloatImmNode>()) return value;
    Var v(name, value.dtype());
    lets_.push_back({v, std::move(value)});
    return v;
  }
  PrimExpr Close(PrimExpr r) const {
    for (size_t i = lets_.size(); i-- > 0;) r = Let(lets_[i].first, lets_[i].second, r);
    return r;
  }

 private:
  std::vector<std::pair<Var, PrimExpr>> lets_;
};

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kLn2 = 0.693147180559945309417;
// ln2 = high + low, the high part with few enough bits that a small integer times it is exact.
inline constexpr double kLn2High = 0.693145751953125;
inline constexpr double kLn2Low = kLn2 - kLn2High;

class Float32Math {
 public:
  explicit Float32Math(int lanes) : f_(DataType::Float(32, lanes)), i_(DataType::Int(32, lanes)) {}

  PrimExpr C(double v) const { return make_const(f_, v); }
  PrimExpr I(int64_t v) const { return make_int(i_, v); }
  PrimExpr Poly(const PrimExpr& x, std::initializer_list<double> low_to_high) const {
    std::vector<double> c(low_to_high);
    PrimExpr p = C(c.back());
    for (size_t k = c.size() - 1; k-- > 0;) p = fma(p, x, C(c[k]));
    return p;
  }
  PrimExpr Bits(const PrimExpr& x) const { return reinterpret(i_, x); }
  PrimExpr FromBits(const PrimExpr& x) const { return reinterpret(f_, x); }
  PrimExpr CopySign(const PrimExpr& magnitude, const PrimExpr& sign) const {
    return FromBits(bitwise_or(Bits(magnitude), bitwise_and(Bits(sign), I(INT32_MIN))));
  }

  /// 2^(k + r / ln2) for r in [-ln2/2, ln2/2] and integral k.
  PrimExpr ScaledExp(Names& n, const PrimExpr& k, const PrimExpr& r) const {
    PrimExpr p = Poly(
        r, {0.4999999403953552, 0.16666515171527863, 0.04166845604777336, 0.00836941972374916, 0.0013813135446980596});
    PrimExpr e = fma(n("rr", r * r), p, r) + C(1);
    return Call(f_, intrin::ldexp, {e, k});
  }
  PrimExpr Exp(Names& n, const PrimExpr& x) const { return BoundedExp(n, x, true, true); }
  /// exp; `low` and `high` say whether x may lie below -104 or above 89.
  PrimExpr BoundedExp(Names& n, const PrimExpr& x0, bool low, bool high) const {
    PrimExpr x = x0;
    if (low) x = max(C(-104.5), x);
    if (high) x = min(C(89), x);
    x = n("x", x);
    // Adding 1.5 * 2^23 rounds to an integer.
    PrimExpr k = n("k", fma(x, C(1 / kLn2), C(12582912)) - C(12582912));
    PrimExpr r = n("r", fma(k, C(-kLn2Low), fma(k, C(-kLn2High), x)));
    return ScaledExp(n, k, r);
  }
  PrimExpr Exp2(Names& n, const PrimExpr& x0) const {
    PrimExpr x = n("x", min(C(129), max(C(-151), x0)));
    PrimExpr k = n("k", (x + C(12582912)) - C(12582912));
    PrimExpr r = n("r", (x - k) * C(kLn2));
    return ScaledExp(n, k, r);
  }

  /// x = 2^k * m with m in [sqrt(1/2), sqrt(2)): gives k as float and log(m). Right for normal and subnormal x > 0.
  void ExponentAndLog(Names& n, const PrimExpr& x, PrimExpr* k, PrimExpr* log_m) const {
    PrimExpr small = n("small", x < C(1.17549435e-38));
    PrimExpr scaled = n("scaled", Select(small, x * C(8388608), x));
    PrimExpr bits = n("bits", Bits(scaled));
    PrimExpr e = n("e", shift_right(bits - I(0x3F3504F3), I(23)));
    PrimExpr m = FromBits(bits - shift_left(e, I(23)));
    *k = n("k", cast(f_, e) - Select(small, C(23), C(0)));
    PrimExpr f = n("f", m - C(1));
    PrimExpr s = n("s", f / (C(2) + f));
    PrimExpr z = n("z", s * s);
    PrimExpr p = z * Poly(z, {0.6666678190231323, 0.39976611733436584, 0.2989867031574249});
    // log(1 + f) = f - f^2/2 + s * (f^2/2 + R)
    PrimExpr h = n("h", C(0.5) * f * f);
    *log_m = n("log_m", f - (h - s * (h + p)));
  }
  /// The value of a logarithm outside of the positive finite numbers.
  PrimExpr LogSpecial(const PrimExpr& x, const PrimExpr& r) const {
    PrimExpr special = Select(x < C(0), C(std::nan("")), Select(equal(x, C(0)), C(-kInf), x));
    return Select(x > C(0) && x < C(kInf), r, special);
  }
  PrimExpr Log(Names& n, const PrimExpr& x) const {
    PrimExpr k, m;
    ExponentAndLog(n, x, &k, &m);
    return LogSpecial(x, fma(k, C(kLn2High), fma(k, C(kLn2Low), m)));
  }
  PrimExpr Log2(Names& n, const PrimExpr& x) const {
    PrimExpr k, m;
    ExponentAndLog(n, x, &k, &m);
    return LogSpecial(x, fma(m, C(1 / kLn2), k));
  }
  PrimExpr Log10(Names& n, const PrimExpr& x) const {
    PrimExpr k, m;
    ExponentAndLog(n, x, &k, &m);
    const double log10_2 = 0.301029995663981195214, high = 0.30102920532226562, low = log10_2 - high;
    return LogSpecial(x, fma(k, C(high), fma(m, C(0.434294481903251827651), k * C(low))));
  }
  PrimExpr Log1p(Names& n, const PrimExpr& x) const {
    // log(1 + x) with a correction for what rounding 1 + x lost; the quotient is about one ulp.
    PrimExpr u = n("u", x + C(1));
    PrimExpr k, m;
    ExponentAndLog(n, u, &k, &m);
    PrimExpr lost = Select(fabs(x) < C(1), x - (u - C(1)), C(1) - (u - x));
    PrimExpr r = fma(k, C(kLn2High), fma(k, C(kLn2Low), m + lost / u));
    PrimExpr special = Select(u < C(0), C(std::nan("")), Select(equal(u, C(0)), C(-kInf), u));
    PrimExpr inside = Select(fabs(x) < C(2.9802322e-8), x, r);  // below half an ulp of 1: x itself, with its sign
    return Select(u > C(0) && u < C(kInf), inside, special);
  }
  PrimExpr Tanh(Names& n, const PrimExpr& x) const {
    PrimExpr a = n("a", fabs(x));
    PrimExpr z = n("z", x * x);
    PrimExpr small = fma(x * z,
                         Poly(z, {-0.33333271741867065, 0.13331152498722076, -0.0537140928208828, 0.020551683381199837,
                                  -0.0056038787588477135}),
                         x);
    PrimExpr e = BoundedExp(n, n("a2", min(C(20), a + a)), false, false);
    PrimExpr big = C(1) - C(2) / (e + C(1));
    return CopySign(Select(a < C(0.625), small, big), x);  // of -0, too
  }
  PrimExpr Sigmoid(Names& n, const PrimExpr& x) const {
    PrimExpr e = n("e", BoundedExp(n, n("a", -fabs(x)), true, false));
    PrimExpr d = C(1) + e;
    return Select(x < C(0), e, C(1)) / d;
  }
  PrimExpr Erf(Names& n, const PrimExpr& x) const {
    PrimExpr a = n("a", fabs(x));
    PrimExpr z = n("z", x * x);
    PrimExpr small = fma(x,
                         Poly(z, {0.12837915122509003, -0.3761247992515564, 0.11281682550907135, -0.026761718094348907,
                                  0.004985938314348459, -0.0005953731597401202}),
                         x);
    // erf(t) = 1 - exp(-t + t * Q(t)), and 1 from 3.95 on.
    PrimExpr t = n("t", min(C(3.95), a));
    PrimExpr q = Poly(t, {-0.1285143792629242, -0.6357182264328003, -0.10526197403669357, 0.02289005182683468,
                          -0.0032149851322174072, 0.00021398878016043454});
    PrimExpr e = BoundedExp(n, n("q", fma(t, q, -t)), false, false);
    return Select(a < C(0.92), small, CopySign(C(1) - e, x));
  }
  PrimExpr Sin(Names& n, const PrimExpr& x) const { return Sine(n, x, false, Call(f_, intrin::sin, {x})); }
  PrimExpr Cos(Names& n, const PrimExpr& x) const { return Sine(n, x, true, Call(f_, intrin::cos, {x})); }

 private:
  /// sin, or cos: of a quarter turn more. `exact` is the value for arguments that a float32 does not reduce well.
  PrimExpr Sine(Names& n, const PrimExpr& x, bool cosine, const PrimExpr& exact) const {
    PrimExpr a = n("a", fabs(x));
    // x = k * pi / 2 + r. The first product's bits lie above 2^-23, as x does: that difference is exact.
    PrimExpr k = n("k", fma(x, C(0.636619772367581343), C(12582912)) - C(12582912));
    PrimExpr r = fma(k, C(1.71512449e-15), fma(k, C(4.37113900018624283e-8), fma(k, C(-1.57079637050628662), x)));
    r = n("r", std::move(r));
    PrimExpr z = n("z", r * r);
    // Moshier's polynomials (Cephes), on [-pi/4, pi/4].
    PrimExpr odd = fma(r * z, Poly(z, {-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4}), r);
    PrimExpr even =
        fma(z * z, Poly(z, {4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5}), fma(C(-0.5), z, C(1)));
    PrimExpr turn = n("turn", cast(i_, k) + I(cosine ? 1 : 0));
    PrimExpr value = Select(equal(bitwise_and(turn, I(1)), I(0)), odd, even);
    value = FromBits(bitwise_xor(Bits(value), shift_left(bitwise_and(turn, I(2)), I(30))));
    if (!cosine) value = Select(a < C(2.44140625e-4), x, value);  // its sign, too
    // Beyond this the reduction loses digits; NaN and infinities go there too.
    return if_then_else(vector_max(a) < make_const(DataType::Float(32), 8192), value, exact);
  }
  DataType f_, i_;
};

/// A call of one argument by a function of Float32Math; null for other dtypes.
template <auto kFunction>
PrimExpr Expanded(const CallNode* call) {
  if (call->args.size() != 1 || call->dtype.element_of() != DataType::Float(32)) return {};
  const Float32Math m(call->dtype.lanes());
  Names n;
  const PrimExpr x = n("x", call->args[0]);
  return n.Close((m.*kFunction)(n, x));
}

}  // namespace baton::tir::float32
