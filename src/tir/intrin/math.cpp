// SPDX-License-Identifier: Apache-2.0
// Elementary functions. LowerIntrin makes polynomials of most; te counts them as 16 additions, those of two arguments,
// which run scalar by scalar, as 40.
#include <baton/tir/intrin.h>

#include <cmath>

#include "tir/intrin/float32_math.h"

namespace baton::tir {
namespace {

using float32::Expanded;
using float32::Float32Math;
using float32::kInf;
using float32::kLn2;
using float32::Names;

const double kPi = std::acos(-1.0);

PrimExpr Of(const PrimExpr& x, double v) { return make_const(x.dtype(), v); }

// ---- Values on the host

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
/// The root is rounded, too: compiled code divides by it.
double Rsqrt(double x, DataType t) {
  const double root = std::sqrt(x);
  return 1 / (t.bits() < 64 ? static_cast<double>(static_cast<float>(root)) : root);
}
double Fma(double a, double b, double c, DataType t) {
  if (t.bits() == 64) return std::fma(a, b, c);
  return static_cast<double>(std::fmaf(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
}
double Ldexp(double x, double k) { return std::isnan(k) ? k : std::ldexp(x, static_cast<int>(k)); }

// ---- Other words

PrimExpr RemainderOfInts(const Array<PrimExpr>& args) {
  return args[0].dtype().is_integral() ? truncmod(args[0], args[1]) : PrimExpr();
}
PrimExpr FmaOfInts(const Array<PrimExpr>& args) {
  return args[0].dtype().is_floating() ? PrimExpr() : args[0] * args[1] + args[2];
}

PrimExpr ExpandRsqrt(const CallNode* call) {
  return call->args.size() == 1 ? make_const(call->dtype, 1) / sqrt(call->args[0]) : PrimExpr();
}
PrimExpr ExpandSigmoid(const CallNode* call) {
  if (PrimExpr e = Expanded<&Float32Math::Sigmoid>(call); e.defined()) return e;
  if (call->args.size() != 1) return {};
  const DataType t = call->dtype;
  Names n;
  const PrimExpr x = n("x", call->args[0]), e = n("e", exp(-fabs(x)));
  return n.Close(Select(x < make_const(t, 0), e, make_const(t, 1)) / (make_const(t, 1) + e));
}
/// Small exponents that are literals: x^2 is what a layer norm's export holds.
PrimExpr ExpandPow(const CallNode* call) {
  if (call->args.size() != 2 || !call->dtype.is_float()) return {};
  PrimExpr y = call->args[1];
  if (const auto* b = y.as<BroadcastNode>()) y = b->value;
  const auto* f = y.as<FloatImmNode>();
  if (!f) return {};
  Names n;
  const PrimExpr x = n("x", call->args[0]);
  const DataType t = call->dtype;
  if (f->value == 1) return call->args[0];
  if (f->value == 2) return n.Close(x * x);
  if (f->value == 3) return n.Close(x * x * x);
  if (f->value == -1) return make_const(t, 1) / call->args[0];
  // pow(-0, 0.5) is 0 and pow(-inf, 0.5) is inf, where sqrt gives -0 and NaN.
  if (f->value == 0.5)
    return n.Close(Select(equal(x, make_const(t, -kInf)), make_const(t, kInf), sqrt(x + make_const(t, 0))));
  return {};
}

// ---- Derivatives of several arguments

Array<PrimExpr> PowFactors(const CallNode* call) {
  const PrimExpr x = call->args[0], n = call->args[1];
  return {n * pow(x, n - Of(n, 1)), GetRef<PrimExpr>(call) * log(x)};
}
Array<PrimExpr> FmodFactors(const CallNode* call) {
  const PrimExpr x = call->args[0], y = call->args[1];
  return {Of(x, 1), Of(x, -1) * trunc(x / y)};
}
Array<PrimExpr> Atan2Factors(const CallNode* call) {
  const PrimExpr y = call->args[0], x = call->args[1], square = x * x + y * y;
  return {x / square, Of(y, -1) * y / square};
}
Array<PrimExpr> FmaFactors(const CallNode* call) { return {call->args[1], call->args[0], Of(call->args[2], 1)}; }

}  // namespace

const Op intrin::exp = DefineIntrin({
    .name = "exp",
    .doc = "e to the power of x.",
    .takes = "n",
    .params = "x",
    .host = std::exp,
    .derivative = [](const PrimExpr&, const PrimExpr& y) -> PrimExpr { return y; },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
    .expand = Expanded<&Float32Math::Exp>,
});
const Op intrin::exp2 = DefineIntrin({
    .name = "exp2",
    .doc = "2 to the power of x.",
    .takes = "n",
    .params = "x",
    .host = std::exp2,
    .derivative = [](const PrimExpr& x, const PrimExpr& y) -> PrimExpr { return y * Of(x, kLn2); },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
    .expand = Expanded<&Float32Math::Exp2>,
});
const Op intrin::log = DefineIntrin({
    .name = "log",
    .doc = "The natural logarithm of x.",
    .takes = "n",
    .params = "x",
    .host = std::log,
    .derivative = [](const PrimExpr& x, const PrimExpr&) -> PrimExpr { return Of(x, 1) / x; },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
    .expand = Expanded<&Float32Math::Log>,
});
const Op intrin::log2 = DefineIntrin({
    .name = "log2",
    .doc = "The logarithm of x to the base of 2.",
    .takes = "n",
    .params = "x",
    .host = std::log2,
    .derivative = [](const PrimExpr& x, const PrimExpr&) -> PrimExpr { return Of(x, 1 / kLn2) / x; },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
    .expand = Expanded<&Float32Math::Log2>,
});
const Op intrin::log10 = DefineIntrin({
    .name = "log10",
    .doc = "The logarithm of x to the base of 10.",
    .takes = "n",
    .params = "x",
    .host = std::log10,
    .derivative = [](const PrimExpr& x, const PrimExpr&) -> PrimExpr { return Of(x, 1 / std::log(10)) / x; },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
    .expand = Expanded<&Float32Math::Log10>,
});
const Op intrin::log1p = DefineIntrin({
    .name = "log1p",
    .doc = "The natural logarithm of 1 + x, precise near 0.",
    .takes = "n",
    .params = "x",
    .host = std::log1p,
    .derivative = [](const PrimExpr& x, const PrimExpr&) -> PrimExpr { return Of(x, 1) / (Of(x, 1) + x); },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
    .expand = Expanded<&Float32Math::Log1p>,
});
const Op intrin::sqrt = DefineIntrin({
    .name = "sqrt",
    .doc = "The square root of x.",
    .takes = "r",
    .params = "x",
    .host = std::sqrt,
    .derivative = [](const PrimExpr& x, const PrimExpr& y) -> PrimExpr { return Of(x, 0.5) / y; },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 4,
});
const Op intrin::rsqrt = DefineIntrin({
    .name = "rsqrt",
    .doc = "1 by the square root of x.",
    .takes = "r",
    .params = "x",
    .host = Rsqrt,
    .derivative = [](const PrimExpr& x, const PrimExpr& y) -> PrimExpr { return Of(x, -0.5) * y / x; },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 4,
    .expand = ExpandRsqrt,
});
const Op intrin::sin = DefineIntrin({
    .name = "sin",
    .doc = "The sine of x, in radians.",
    .takes = "n",
    .params = "x",
    .host = std::sin,
    .derivative = [](const PrimExpr& x, const PrimExpr&) -> PrimExpr { return baton::cos(x); },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
    .expand = Expanded<&Float32Math::Sin>,
});
const Op intrin::cos = DefineIntrin({
    .name = "cos",
    .doc = "The cosine of x, in radians.",
    .takes = "n",
    .params = "x",
    .host = std::cos,
    .derivative = [](const PrimExpr& x, const PrimExpr&) -> PrimExpr { return Of(x, -1) * baton::sin(x); },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
    .expand = Expanded<&Float32Math::Cos>,
});
const Op intrin::tan = DefineIntrin({
    .name = "tan",
    .doc = "The tangent of x, in radians.",
    .takes = "n",
    .params = "x",
    .host = std::tan,
    .derivative = [](const PrimExpr& x, const PrimExpr& y) -> PrimExpr { return Of(x, 1) + y * y; },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::sinh = DefineIntrin({
    .name = "sinh",
    .doc = "The hyperbolic sine of x.",
    .takes = "n",
    .params = "x",
    .host = std::sinh,
    .derivative = [](const PrimExpr& x, const PrimExpr&) -> PrimExpr { return baton::cosh(x); },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::cosh = DefineIntrin({
    .name = "cosh",
    .doc = "The hyperbolic cosine of x.",
    .takes = "n",
    .params = "x",
    .host = std::cosh,
    .derivative = [](const PrimExpr& x, const PrimExpr&) -> PrimExpr { return baton::sinh(x); },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::tanh = DefineIntrin({
    .name = "tanh",
    .doc = "The hyperbolic tangent of x.",
    .takes = "n",
    .params = "x",
    .host = std::tanh,
    .derivative = [](const PrimExpr& x, const PrimExpr& y) -> PrimExpr { return Of(x, 1) - y * y; },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
    .expand = Expanded<&Float32Math::Tanh>,
});
const Op intrin::asin = DefineIntrin({
    .name = "asin",
    .doc = "The angle whose sine is x, in radians.",
    .takes = "n",
    .params = "x",
    .host = std::asin,
    .derivative = [](const PrimExpr& x, const PrimExpr&) -> PrimExpr { return baton::rsqrt(Of(x, 1) - x * x); },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::acos = DefineIntrin({
    .name = "acos",
    .doc = "The angle whose cosine is x, in radians.",
    .takes = "n",
    .params = "x",
    .host = std::acos,
    .derivative = [](const PrimExpr& x, const PrimExpr&) -> PrimExpr {
      return Of(x, -1) * baton::rsqrt(Of(x, 1) - x * x);
    },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::atan = DefineIntrin({
    .name = "atan",
    .doc = "The angle whose tangent is x, in radians.",
    .takes = "n",
    .params = "x",
    .host = std::atan,
    .derivative = [](const PrimExpr& x, const PrimExpr&) -> PrimExpr { return Of(x, 1) / (Of(x, 1) + x * x); },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::asinh = DefineIntrin({
    .name = "asinh",
    .doc = "The inverse of sinh.",
    .takes = "n",
    .params = "x",
    .host = std::asinh,
    .derivative = [](const PrimExpr& x, const PrimExpr&) -> PrimExpr { return baton::rsqrt(x * x + Of(x, 1)); },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::acosh = DefineIntrin({
    .name = "acosh",
    .doc = "The inverse of cosh.",
    .takes = "n",
    .params = "x",
    .host = std::acosh,
    .derivative = [](const PrimExpr& x, const PrimExpr&) -> PrimExpr { return baton::rsqrt(x * x - Of(x, 1)); },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::atanh = DefineIntrin({
    .name = "atanh",
    .doc = "The inverse of tanh.",
    .takes = "n",
    .params = "x",
    .host = std::atanh,
    .derivative = [](const PrimExpr& x, const PrimExpr&) -> PrimExpr { return Of(x, 1) / (Of(x, 1) - x * x); },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
const Op intrin::erf = DefineIntrin({
    .name = "erf",
    .doc = "The error function of x.",
    .takes = "n",
    .params = "x",
    .host = std::erf,
    .derivative = [](const PrimExpr& x, const PrimExpr&) -> PrimExpr {
      return Of(x, 2 / std::sqrt(kPi)) * baton::exp(Of(x, -1) * x * x);
    },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
    .expand = Expanded<&Float32Math::Erf>,
});
const Op intrin::sigmoid = DefineIntrin({
    .name = "sigmoid",
    .doc = "1 by 1 + exp(-x).",
    .takes = "n",
    .params = "x",
    .host = Sigmoid,
    .derivative = [](const PrimExpr& x, const PrimExpr& y) -> PrimExpr { return y * (Of(x, 1) - y); },
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
    .expand = ExpandSigmoid,
});
const Op intrin::pow = DefineIntrin({
    .name = "pow",
    .doc = "x to the power of y.",
    .takes = "nn",
    .params = "x y",
    .domain = Domain::kNumbers,
    .host = std::pow,
    .derivative = PowFactors,
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 40,
    .expand = ExpandPow,
});
const Op intrin::fmod = DefineIntrin({
    .name = "fmod",
    .doc = "The remainder of x by y, of the sign of x.",
    .takes = "nn",
    .params = "x y",
    .instead = RemainderOfInts,
    .host = std::fmod,
    .derivative = FmodFactors,
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 40,
});
const Op intrin::atan2 = DefineIntrin({
    .name = "atan2",
    .doc = "The angle of the point (x2, x1), in radians.",
    .takes = "nn",
    .params = "x1 x2",
    .host = std::atan2,
    .derivative = Atan2Factors,
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 40,
});
const Op intrin::fma = DefineIntrin({
    .name = "fma",
    .doc = "a * b + c in one rounding.",
    .takes = "rrr",
    .params = "a b c",
    .instead = FmaOfInts,
    .host = Fma,
    .derivative = FmaFactors,
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 1,
});
const Op intrin::ldexp = DefineIntrin({
    .name = "ldexp",
    .doc = "x times 2 to the power of an integral k.",
    .takes = "ni",
    .host = Ldexp,
    .derivative = IntrinDerivative::None("it moves bits of a polynomial"),
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 16,
});
}  // namespace baton::tir
