// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/float64_math.h"

#include <baton/tir/intrin.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tir/intrin/float32_math.h"

namespace baton::codegen::cuda {

using tir::Select;
using tir::Var;
using tir::float32::Names;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
constexpr double kLn2 = 0.693147180559945309417, kLn2High = 6.93147180369123816490e-01,
                 kLn2Low = 1.90821492927058770002e-10;
constexpr double kHalfPi = 1.57079632679489661923;

const DataType kF = DataType::Float(64), kI = DataType::Int(64), kU = DataType::UInt(64);

PrimExpr C(double v) { return tir::make_const(kF, v); }
PrimExpr I(int64_t v) { return tir::make_int(kI, v); }
PrimExpr U(uint64_t v) { return reinterpret(kU, I(static_cast<int64_t>(v))); }
PrimExpr Bits(const PrimExpr& x) { return reinterpret(kI, x); }
PrimExpr FromBits(const PrimExpr& x) { return reinterpret(kF, x); }
PrimExpr Nan() { return C(std::nan("")); }
PrimExpr CopySign(const PrimExpr& magnitude, const PrimExpr& sign) {
  return FromBits(bitwise_or(Bits(magnitude), bitwise_and(Bits(sign), I(INT64_MIN))));
}
PrimExpr Poly(const PrimExpr& x, const std::vector<double>& low_to_high) {
  PrimExpr p = C(low_to_high.back());
  for (size_t k = low_to_high.size() - 1; k-- > 0;) p = fma(p, x, C(low_to_high[k]));
  return p;
}
/// 1/first!, 1/(first + step)!, ... with alternating signs if `alternate`.
std::vector<double> Factorials(int first, int step, int count, bool alternate) {
  std::vector<double> c;
  for (int i = 0; i < count; ++i) {
    c.push_back((alternate && i % 2 ? -1 : 1) / std::tgamma(first + step * i + 1.0));
  }
  return c;
}

/// e^r * 2^k for r in [-ln2/2, ln2/2] and integral k.
PrimExpr ScaledExp(Names& n, const PrimExpr& k, const PrimExpr& r) {
  PrimExpr e = n("e", fma(r * r, Poly(r, Factorials(2, 1, 12, false)), r) + C(1));
  PrimExpr whole = n("whole", cast(kI, k)), half = n("half", shift_right(whole, I(1)));
  auto power = [](const PrimExpr& j) { return FromBits(shift_left(j + I(1023), I(52))); };
  return e * power(half) * power(whole - half);
}
PrimExpr ExpOf(Names& n, const PrimExpr& x0) {
  PrimExpr x = n("x", min(C(710), max(C(-746), x0)));
  PrimExpr k = n("k", fma(x, C(1 / kLn2), C(kRound)) - C(kRound));
  PrimExpr r = n("r", fma(k, C(-kLn2Low), fma(k, C(-kLn2High), x)));
  return n("exp", ScaledExp(n, k, r));
}
/// x = 2^k * m with m in [sqrt(1/2), sqrt(2)): gives k, and log(m). Right for positive finite x.
void ExponentAndLog(Names& n, const PrimExpr& x, PrimExpr* k, PrimExpr* log_m) {
  PrimExpr small = n("small", x < C(2.2250738585072014e-308));
  PrimExpr bits = n("bits", Bits(Select(small, x * C(18014398509481984.0), x)));
  PrimExpr e = n("e", shift_right(bits - I(0x3FE6A09E667F3BCD), I(52)));
  *k = n("k", cast(kF, e) - Select(small, C(54), C(0)));
  PrimExpr f = n("f", FromBits(bits - shift_left(e, I(52))) - C(1));
  PrimExpr s = n("s", f / (C(2) + f)), z = n("z", s * s);
  std::vector<double> c;
  for (int i = 0; i < 11; ++i) c.push_back(2.0 / (2 * i + 3));
  PrimExpr h = n("h", C(0.5) * f * f);
  *log_m = n("log_m", f - (h - s * (h + z * Poly(z, c))));
}
PrimExpr LogSpecial(const PrimExpr& x, const PrimExpr& r) {
  PrimExpr special = Select(x < C(0), Nan(), Select(equal(x, C(0)), C(-kInfinity), x));
  return Select(x > C(0) && x < C(kInfinity), r, special);
}
PrimExpr LogOf(Names& n, const PrimExpr& x) {
  PrimExpr k, m;
  ExponentAndLog(n, x, &k, &m);
  return n("log", LogSpecial(x, fma(k, C(kLn2High), fma(k, C(kLn2Low), m))));
}
PrimExpr Log1pOf(Names& n, const PrimExpr& x) {
  PrimExpr u = n("u", x + C(1)), k, m;
  ExponentAndLog(n, u, &k, &m);
  PrimExpr lost = Select(fabs(x) < C(1), x - (u - C(1)), C(1) - (u - x));
  PrimExpr r = fma(k, C(kLn2High), fma(k, C(kLn2Low), m + lost / u));
  PrimExpr special = Select(u < C(0), Nan(), Select(equal(u, C(0)), C(-kInfinity), u));
  PrimExpr inside = Select(fabs(x) < C(5.5e-17), x, r);
  return n("log1p", Select(u > C(0) && u < C(kInfinity), inside, special));
}

/// Bits of 2/pi behind the point, after 64 zeros.
constexpr uint32_t kTwoByPi[] = {0x00000000, 0x00000000, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599,
                                 0x3C439041, 0xFE5163AB, 0xDEBBC561, 0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C,
                                 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41, 0x3991D639,
                                 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F, 0xEF2F118B, 0x5A0A6D1F,
                                 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B, 0x3D0739F7,
                                 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B6BAB};

/// Quarter turns of a >= 2^20, and what is left in radians, as a value of 128 bits gives it (Payne and Hanek): the
/// mantissa times those 192 bits of 2/pi that neither make whole turns nor are too small to be seen.
PrimExpr ReduceLarge(Names& n, const PrimExpr& a, bool of_float32, bool want_quarter) {
  PrimExpr bits = n("bits", Bits(a));
  PrimExpr e = n("e", shift_right(bits, I(52)) - I(1075));
  PrimExpr mantissa = n("mantissa", bitwise_or(bitwise_and(bits, I((int64_t{1} << 52) - 1)), I(int64_t{1} << 52)));
  PrimExpr at = n("at", e + I(62)), word = n("word", shift_right(at, I(5)));
  PrimExpr shift = n("shift", cast(kU, I(32) - bitwise_and(at, I(31))));
  const int most = of_float32 ? 5 : 34;
  std::vector<PrimExpr> t;
  for (int j = 0; j < 7; ++j) {
    PrimExpr v = U(kTwoByPi[j]);
    for (int q = 1; q < most && q + j < 40; ++q) v = Select(equal(word, I(q)), U(kTwoByPi[q + j]), v);
    t.push_back(n("t", v));
  }
  const PrimExpr low = U(0xFFFFFFFF);
  PrimExpr w[6],
      m[2] = {n("m0", bitwise_and(cast(kU, mantissa), low)), n("m1", shift_right(cast(kU, mantissa), U(32)))};
  for (int j = 0; j < 6; ++j) {  // w[0] is the least
    PrimExpr pair = bitwise_or(shift_left(t[j], U(32)), t[j + 1]);
    w[5 - j] = n("w", bitwise_and(shift_right(pair, shift), low));
  }
  PrimExpr product[6], carry = U(0);
  auto lower = [&](const PrimExpr& v) { return bitwise_and(v, low); };
  auto upper = [&](const PrimExpr& v) { return shift_right(v, U(32)); };
  for (int i = 0; i < 6; ++i) {
    PrimExpr sum = carry + lower(m[0] * w[i]);
    if (i > 0) sum = sum + upper(m[0] * w[i - 1]) + lower(m[1] * w[i - 1]);
    if (i > 1) sum = sum + upper(m[1] * w[i - 2]);
    sum = n("sum", sum);
    product[i] = n("p", lower(sum));
    carry = upper(sum);
  }
  PrimExpr high = n("high", bitwise_or(shift_left(bitwise_or(shift_left(product[5], U(32)), product[4]), U(2)),
                                       shift_right(product[3], U(30))));
  PrimExpr signed_high = n("signed_high", reinterpret(kI, high));
  if (want_quarter) return cast(kI, shift_right(product[5], U(30))) + Select(signed_high < I(0), I(1), I(0));
  PrimExpr rest = bitwise_or(bitwise_or(shift_left(product[3], U(34)), shift_left(product[2], U(2))),
                             shift_right(product[1], U(30)));
  PrimExpr fraction = cast(kF, signed_high) * C(0x1p-64) + cast(kF, rest) * C(0x1p-128);
  return fraction * C(kHalfPi);
}

/// sin and cos of x reduced: `*sine` and `*cosine` of what is left, and quarter turns.
struct Turned {
  PrimExpr sine, cosine, quarter;
};
Turned Reduce(Names& n, const PrimExpr& x, bool of_float32) {
  PrimExpr a = n("a", fabs(x));
  PrimExpr k = n("k", fma(a, C(1 / kHalfPi), C(kRound)) - C(kRound));
  PrimExpr near = fma(k, C(-1.57079632673412561417e+00), a);
  near = fma(k, C(-2.02226624879595063154e-21), fma(k, C(-6.07710050630396597660e-11), near));
  PrimExpr small = n("is_small", !(a >= C(1048576)));
  // Infinities and NaN have no angle.
  PrimExpr finite = n("finite", a < C(kInfinity));
  auto large = [&](bool quarter) {
    Names own;
    PrimExpr v = ReduceLarge(own, a, of_float32, quarter);
    return own.Close(v);
  };
  PrimExpr r = n("r", Select(finite, if_then_else(small, near, large(false)), Nan()));
  PrimExpr quarter = n("quarter", if_then_else(small, cast(kI, k), large(true)));
  PrimExpr z = n("z", r * r);
  std::vector<double> odd = Factorials(3, 2, 8, true), even = Factorials(4, 2, 8, true);
  for (double& c : odd) c = -c;
  PrimExpr sine = n("sine", fma(r * z, Poly(z, odd), r));
  PrimExpr cosine = n("cosine", fma(z * z, Poly(z, even), fma(C(-0.5), z, C(1))));
  return {sine, cosine, quarter};
}
PrimExpr Turn(const Turned& t, int more) {
  PrimExpr q = t.quarter + I(more);
  PrimExpr v = Select(equal(bitwise_and(q, I(1)), I(0)), t.sine, t.cosine);
  return FromBits(bitwise_xor(Bits(v), shift_left(bitwise_and(q, I(2)), I(62))));
}

/// The angle of (x, y), x and y not negative, in [0, pi/2].
PrimExpr Angle(Names& n, const PrimExpr& y, const PrimExpr& x) {
  PrimExpr swap = n("swap", y > x);
  PrimExpr most = n("most", Select(swap, y, x)), least = n("least", Select(swap, x, y));
  PrimExpr t = Select(equal(most, C(0)), C(0), Select(equal(least, C(kInfinity)), C(1), least / most));
  t = n("t", t);
  // tan(v / 2) = tan v / (1 + sqrt(1 + tan^2 v)), twice.
  for (int i = 0; i < 2; ++i) t = n("t", t / (C(1) + sqrt(fma(t, t, C(1)))));
  std::vector<double> c;
  for (int i = 0; i < 12; ++i) c.push_back((i % 2 ? 1.0 : -1.0) / (2 * i + 3));
  PrimExpr z = n("z", t * t);
  PrimExpr v = n("v", C(4) * fma(t * z, Poly(z, c), t));
  return n("angle", Select(swap, C(kHalfPi) - v, v));
}
PrimExpr Atan2Of(Names& n, const PrimExpr& y, const PrimExpr& x) {
  PrimExpr v = Angle(n, n("ay", fabs(y)), n("ax", fabs(x)));
  PrimExpr turned = Select(Bits(x) < I(0), C(2 * kHalfPi) - v, v);
  PrimExpr number = equal(x, x) && equal(y, y);
  return n("atan2", Select(number, CopySign(turned, y), x + y));
}
/// sinh for |x| <= 1.
PrimExpr SmallSinh(Names& n, const PrimExpr& x) {
  PrimExpr z = n("z", x * x);
  return n("sinh", fma(x * z, Poly(z, Factorials(3, 2, 9, false)), x));
}

template <class F>
PrimExpr With(const Array<PrimExpr>& args, F f) {
  Names n;
  PrimExpr x = n("x", args[0]);
  PrimExpr r = f(n, x);
  return n.Close(r);
}

}  // namespace

PrimExpr Exp(const Array<PrimExpr>& args, bool) { return With(args, ExpOf); }
PrimExpr Exp2(const Array<PrimExpr>& args, bool) {
  return With(args, [](Names& n, const PrimExpr& x0) {
    PrimExpr x = n("x", min(C(1025), max(C(-1080), x0)));
    PrimExpr k = n("k", (x + C(kRound)) - C(kRound));
    return ScaledExp(n, k, n("r", (x - k) * C(kLn2)));
  });
}
PrimExpr Log(const Array<PrimExpr>& args, bool) { return With(args, LogOf); }
PrimExpr Log2(const Array<PrimExpr>& args, bool) {
  return With(args, [](Names& n, const PrimExpr& x) {
    PrimExpr k, m;
    ExponentAndLog(n, x, &k, &m);
    return LogSpecial(x, fma(m, C(1 / kLn2), k));
  });
}
PrimExpr Log10(const Array<PrimExpr>& args, bool) {
  return With(args, [](Names& n, const PrimExpr& x) { return LogOf(n, x) * C(0.434294481903251827651); });
}
PrimExpr Log1p(const Array<PrimExpr>& args, bool) { return With(args, Log1pOf); }
PrimExpr Sin(const Array<PrimExpr>& args, bool f) {
  return With(args, [f](Names& n, const PrimExpr& x) {
    PrimExpr v = n("v", Turn(Reduce(n, x, f), 0));
    return FromBits(bitwise_xor(Bits(v), bitwise_and(Bits(x), I(INT64_MIN))));
  });
}
PrimExpr Cos(const Array<PrimExpr>& args, bool f) {
  return With(args, [f](Names& n, const PrimExpr& x) { return Turn(Reduce(n, x, f), 1); });
}
PrimExpr Tan(const Array<PrimExpr>& args, bool f) {
  return With(args, [f](Names& n, const PrimExpr& x) {
    const Turned t = Reduce(n, x, f);
    PrimExpr odd = n("odd", equal(bitwise_and(t.quarter, I(1)), I(1)));
    PrimExpr v = n("v", Select(odd, C(-1) * t.cosine, t.sine) / Select(odd, t.sine, t.cosine));
    return FromBits(bitwise_xor(Bits(v), bitwise_and(Bits(x), I(INT64_MIN))));
  });
}
PrimExpr Sinh(const Array<PrimExpr>& args, bool) {
  return With(args, [](Names& n, const PrimExpr& x) {
    PrimExpr a = n("a", fabs(x)), e = ExpOf(n, n("half", a * C(0.5)));
    PrimExpr big = C(0.5) * e * e - C(0.5) / e / e;
    return Select(a < C(1), SmallSinh(n, x), CopySign(big, x));
  });
}
PrimExpr Cosh(const Array<PrimExpr>& args, bool) {
  return With(args, [](Names& n, const PrimExpr& x) {
    PrimExpr e = ExpOf(n, n("half", fabs(x) * C(0.5)));
    return C(0.5) * e * e + C(0.5) / e / e;
  });
}
PrimExpr Tanh(const Array<PrimExpr>& args, bool) {
  return With(args, [](Names& n, const PrimExpr& x) {
    PrimExpr a = n("a", fabs(x)), e = ExpOf(n, n("twice", C(-2) * a));
    PrimExpr s = SmallSinh(n, n("low", Select(a < C(1), a, C(0))));
    return CopySign(Select(a < C(0.5), s / sqrt(fma(s, s, C(1))), (C(1) - e) / (C(1) + e)), x);
  });
}
PrimExpr Asin(const Array<PrimExpr>& args, bool) {
  return With(args, [](Names& n, const PrimExpr& x) { return Atan2Of(n, x, n("leg", sqrt((C(1) - x) * (C(1) + x)))); });
}
PrimExpr Acos(const Array<PrimExpr>& args, bool) {
  return With(args, [](Names& n, const PrimExpr& x) { return Atan2Of(n, n("leg", sqrt((C(1) - x) * (C(1) + x))), x); });
}
PrimExpr Atan(const Array<PrimExpr>& args, bool) {
  return With(args, [](Names& n, const PrimExpr& x) { return Atan2Of(n, x, C(1)); });
}
PrimExpr Atan2(const Array<PrimExpr>& args, bool) {
  return With(args, [&](Names& n, const PrimExpr& y) { return Atan2Of(n, y, n("second", args[1])); });
}
PrimExpr Asinh(const Array<PrimExpr>& args, bool) {
  return With(args, [](Names& n, const PrimExpr& x) {
    PrimExpr a = n("a", fabs(x)), low = n("low", min(a, C(1e8))), square = n("square", low * low);
    PrimExpr small = Log1pOf(n, n("one", low + square / (C(1) + sqrt(square + C(1)))));
    return CopySign(Select(a > C(1e8), LogOf(n, a) + C(kLn2), small), x);
  });
}
PrimExpr Acosh(const Array<PrimExpr>& args, bool) {
  return With(args, [](Names& n, const PrimExpr& x) {
    PrimExpr t = n("t", min(x, C(1e8)) - C(1));
    PrimExpr small = Log1pOf(n, n("one", t + sqrt(t * t + C(2) * t)));
    return Select(x < C(1), Nan(), Select(x > C(1e8), LogOf(n, x) + C(kLn2), small));
  });
}
PrimExpr Atanh(const Array<PrimExpr>& args, bool) {
  return With(args, [](Names& n, const PrimExpr& x) {
    PrimExpr a = n("a", fabs(x));
    return CopySign(C(0.5) * Log1pOf(n, n("ratio", C(2) * a / (C(1) - a))), x);
  });
}
/// By its series where |x| < 2.2, and by the continued fraction of erfc, 60 terms deep, from there on.
PrimExpr Erf(const Array<PrimExpr>& args, bool) {
  return With(args, [](Names& n, const PrimExpr& x) {
    PrimExpr a = n("a", min(fabs(x), C(6))), z = n("z", a * a);
    // erf(a) = 2 / sqrt(pi) * sum of (-1)^k a^(2k+1) / (k! (2k+1)), for a < 2.2 in 40 terms.
    std::vector<double> c;
    double factorial = 1;
    for (int k = 0; k < 40; ++k) {
      if (k) factorial *= k;
      c.push_back((k % 2 ? -1 : 1) / factorial / (2 * k + 1));
    }
    const double scale = 2 / std::sqrt(2 * kHalfPi);
    PrimExpr low = C(scale) * a * Poly(z, c);
    PrimExpr tail = n("tail", a);
    for (int k = 60; k >= 1; --k) tail = n("tail", a + C(k / 2.0) / Select(a < C(1), C(1), tail));
    PrimExpr high = C(1) - ExpOf(n, n("minus", C(-1) * z)) * C(1 / std::sqrt(2 * kHalfPi)) / tail;
    PrimExpr v = Select(a < C(2.2), low, high);
    return Select(equal(x, x), CopySign(v, x), x);
  });
}
PrimExpr Pow(const Array<PrimExpr>& args, bool) {
  return With(args, [&](Names& n, const PrimExpr& x) {
    PrimExpr y = n("y", args[1]), log = LogOf(n, n("a", fabs(x)));
    PrimExpr product = n("product", Select(equal(log, C(0)), C(0), y * log));
    PrimExpr magnitude = ExpOf(n, product);
    PrimExpr whole = n("is_whole", equal(floor(y), y)), half = n("half_y", y * C(0.5));
    PrimExpr odd = n("is_odd", whole && !equal(floor(half), half));
    PrimExpr r = Select(odd && Bits(x) < I(0), C(-1) * magnitude, magnitude);
    r = Select(x < C(0) && !whole && x > C(-kInfinity), Nan(), r);
    return Select(equal(y, C(0)) || equal(x, C(1)), C(1), Select(equal(x, x) && equal(y, y), r, x + y));
  });
}

}  // namespace baton::codegen::cuda
