// SPDX-License-Identifier: Apache-2.0
// Gradients of elementwise operators: a row is the derivative by the input `x`, given the result `y` too. At a kink the
// derivative is that of one side, as other frameworks have it; steps have derivative 0 everywhere.
#include <baton/relay/op/annotation.h>

#include <cmath>

#include "rule.h"

namespace baton::relay::gradient {
namespace {

using Derivative = Val (*)(const At& at, const Val& x, const Val& y);
struct UnaryRow {
  const char* op;
  Derivative d;
};
Grads Through(const Call&, const Expr& grad) { return {grad}; }
Grads Flat(const Call& call, const Expr&) {  // constant between its steps
  return Grads(call->args.size(), Expr());
}

Val Swish(const Val& x, double alpha) {
  Val s = Do(op::sigmoid, x * alpha);
  return s + alpha * x * s * (1 - s);
}

const double kLn2 = std::log(2.0), kLn10 = std::log(10.0);

Grads CastBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  Grads out(call->args.size(), Expr());
  if (at.floating(0)) out.Set(0, at.dtype(0) == at.out()->dtype ? grad : Cast(grad, at.dtype(0)));
  return out;
}

/// alpha with data's rank.
Expr AlphaFor(const At& at) {
  int64_t n = at.ndim(0);
  if (at.ndim(1) != 1) return at.arg(1);
  int64_t after = n - 1 - at.Axis(at.attrs<PReluAttrs>().axis);
  return after ? ExpandDims(at.arg(1), 1, after) : at.arg(1);
}
Grads PRelu(const Call& call, const Expr& grad) {
  At at(call, grad);
  Val alpha{AlphaFor(at), at.dtype(1)}, positive = Test(op::greater, at.x(), 0);
  Val da = Pick(positive, 0, at.g() * at.x());
  if (at.ndim(1) != 1) return {Pick(positive, at.g(), at.g() * alpha), Collapse(da, at.out(), at.arg(1))};
  Ints axes;
  bool one = DimOf(at.type(1)->shape[0]) == 1;
  for (int64_t d = 0; d < at.ndim(0); ++d) {
    if (one || d != at.Axis(at.attrs<PReluAttrs>().axis)) axes.push_back(d);
  }
  Expr sum = axes.empty() ? Expr(da) : Sum(da, axes);
  return {Pick(positive, at.g(), at.g() * alpha), one ? ShapeLike(sum, at.arg(1)) : sum};
}

// ---- two inputs
Grads Pair(const At& at, const Val& a, const Val& b) {
  return {a.e.defined() ? Collapse(a, at.out(), at.arg(0)) : Expr(),
          b.e.defined() ? Collapse(b, at.out(), at.arg(1)) : Expr()};
}
using PairOf = void (*)(const At& at, const Val& a, const Val& b, const Val& g, Val* da, Val* db);
struct BinaryRow {
  const char* op;
  PairOf f;
};
void Power(const At& at, const Val& a, const Val& b, const Val& g, Val* da, Val* db) {
  Val e{at.dtype(1) == a.t ? b.e : Cast(b.e, a.t), a.t};
  // 0 ** 0 is constant in its base.
  Val lower{MakeCall(op::power, {a.e, (e - 1).e}), a.t};
  *da = g * Pick(Test(op::equal, e, 0), 0, e * lower);
  if (!at.floating(1)) return;
  Val y = at.y();
  *db = g * Pick(Test(op::greater, a, 0), y * Do(op::log, Pick(Test(op::greater, a, 0), a, 1)), 0);
  if (!(b.t == a.t)) *db = {Cast(*db, b.t), b.t};
}
Grads WhereRule(const Call& call, const Expr& grad) {
  At at(call, grad);
  Val c{at.arg(0), at.out()->dtype};
  return {Expr(), Collapse(Pick(c, at.g(), 0), at.out(), at.arg(1)), Collapse(Pick(c, 0, at.g()), at.out(), at.arg(2))};
}
Grads BiasAdd(const Call& call, const Expr& grad) {
  At at(call, grad);
  Ints axes;
  for (int64_t d = 0; d < at.ndim(0); ++d) {
    if (d != at.Axis(at.attrs<BiasAddAttrs>().axis)) axes.push_back(d);
  }
  return {grad, axes.empty() ? grad : Sum(grad, axes)};
}

// ---- restated in simpler operators
Expr Mish(const Call& call, const Array<Expr>& args) {
  Val x{args[0], At(call, call).dtype(0)};
  return x * Do(op::tanh, Do(op::softplus, x));
}
Expr Gelu(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  Val x{args[0], at.dtype(0)};
  if (at.attrs<GeluAttrs>().approximate == "tanh") {
    return 0.5 * x * (1 + Do(op::tanh, 0.7978845608028654 * (x + 0.044715 * x * x * x)));
  }
  return 0.5 * x * (1 + Do(op::erf, x * 0.7071067811865476));
}

// clang-format off: a row a line
#define BATON_D(expr) [](const At& at, const Val& x, const Val& y) -> Val { (void)at, (void)x, (void)y; return expr; }
const UnaryRow kUnary[] = {
    {"abs", BATON_D(Do(op::sign, x))},
    {"exp", BATON_D(y)},
    {"exp2", BATON_D(y * kLn2)},
    {"expm1", BATON_D(y + 1)},
    {"log", BATON_D(1 / x)},
    {"log2", BATON_D(1 / (x * kLn2))},
    {"log10", BATON_D(1 / (x * kLn10))},
    {"log1p", BATON_D(1 / (1 + x))},
    {"sqrt", BATON_D(0.5 / y)},
    {"rsqrt", BATON_D(-0.5 * y * y * y)},
    {"sigmoid", BATON_D(y * (1 - y))},
    {"tanh", BATON_D(1 - y * y)},
    {"erf", BATON_D(1.1283791670955126 * Do(op::exp, -(x * x)))},
    {"sin", BATON_D(Do(op::cos, x))},
    {"cos", BATON_D(-Do(op::sin, x))},
    {"tan", BATON_D(1 + y * y)},
    {"sinh", BATON_D(Do(op::cosh, x))},
    {"cosh", BATON_D(Do(op::sinh, x))},
    {"asin", BATON_D(Do(op::rsqrt, 1 - x * x))},
    {"acos", BATON_D(-Do(op::rsqrt, 1 - x * x))},
    {"atan", BATON_D(1 / (1 + x * x))},
    {"asinh", BATON_D(Do(op::rsqrt, 1 + x * x))},
    {"acosh", BATON_D(Do(op::rsqrt, x * x - 1))},
    {"atanh", BATON_D(1 / (1 - x * x))},
    {"reciprocal", BATON_D(-(y * y))},
    {"nn.softplus", BATON_D(Do(op::sigmoid, x))},
    {"nn.softsign", BATON_D((1 - Do(op::abs, y)) * (1 - Do(op::abs, y)))},
    {"nn.silu", BATON_D(Swish(x, 1))},
    {"nn.swish", BATON_D(Swish(x, at.attrs<AlphaAttrs>().alpha))},
    {"nn.hard_swish", BATON_D(Pick(Test(op::less_equal, x, -3), 0, Pick(Test(op::greater_equal, x, 3), 1, x / 3.0 + 0.5)))},
    {"nn.leaky_relu", BATON_D(Pick(Test(op::greater, x, 0), 1, at.attrs<LeakyReluAttrs>().alpha))},
    {"nn.elu", BATON_D(Pick(Test(op::greater, x, 0), 1, y + at.attrs<AlphaAttrs>().alpha))},
    {"nn.celu", BATON_D(Pick(Test(op::greater, x, 0), 1, y / at.attrs<AlphaAttrs>().alpha + 1))},
    {"nn.selu", BATON_D(Pick(Test(op::greater, x, 0), at.attrs<SeluAttrs>().gamma, y + at.attrs<SeluAttrs>().gamma * at.attrs<SeluAttrs>().alpha))},
    {"nn.hard_sigmoid", BATON_D(Pick(Test(op::greater, y, 0), Pick(Test(op::less, y, 1), Num(at.attrs<HardSigmoidAttrs>().alpha, y.t), 0), 0))},
    {"nn.thresholded_relu", BATON_D(Pick(Test(op::greater, x, at.attrs<AlphaAttrs>().alpha), 1, 0))},
    {"nn.shrink", BATON_D(Pick(Test(op::greater, Do(op::abs, x), at.attrs<ShrinkAttrs>().lambd), 1, 0))},
    {"clip", BATON_D(Pick(Test(op::greater_equal, x, at.attrs<ClipAttrs>().a_min), Pick(Test(op::less_equal, x, at.attrs<ClipAttrs>().a_max), Num(1, x.t), 0), 0))},
};
#undef BATON_D
#define BATON_D(body) [](const At& at, const Val& a, const Val& b, const Val& g, Val* da, Val* db) { (void)at, (void)a, (void)b; body }
const BinaryRow kBinary[] = {
    {"add", BATON_D(*da = g; *db = g;)},
    {"subtract", BATON_D(*da = g; *db = -g;)},
    {"multiply", BATON_D(*da = g * b; *db = g * a;)},
    {"divide", BATON_D(*da = g / b; *db = -(*da * at.y());)},
    {"maximum", BATON_D(Val first = Test(op::greater_equal, a, b); *da = Pick(first, g, 0); *db = Pick(first, 0, g);)},
    {"minimum", BATON_D(Val first = Test(op::less_equal, a, b); *da = Pick(first, g, 0); *db = Pick(first, 0, g);)},
  {"power", Power},
    {"mod", BATON_D(*da = g; *db = -(g * Do(op::trunc, a / b));)},
    {"floor_mod", BATON_D(*da = g; *db = -(g * Do(op::floor, a / b));)},
    {"atan2", BATON_D(Val s = g / (a * a + b * b); *da = s * b; *db = -(s * a);)},
};
#undef BATON_D
// clang-format on

const bool registered_elementwise = [] {
  for (const UnaryRow& row : kUnary) {
    DefineGradient(row.op, [d = row.d](const Call& call, const Expr& grad) {
      At at(call, grad);
      return Grads{at.g() * d(at, at.x(), at.y())};
    });
  }
  for (const BinaryRow& row : kBinary) {
    DefineGradient(row.op, [f = row.f](const Call& call, const Expr& grad) {
      At at(call, grad);
      Val da, db;
      f(at, at.x(0), at.x(1), at.g(), &da, &db);
      return Pair(at, da, db);
    });
  }
  DefineGradients({
      {"negative", [](const Call&, const Expr& g) { return Grads{MakeCall(op::negative, {g})}; }},
      {"copy", Through},
      {"identity", Through},
      {"sign", Flat},
      {"floor", Flat},
      {"ceil", Flat},
      {"trunc", Flat},
      {"round", Flat},
      {"nn.hardmax", Flat},
      {"nn.relu",
       [](const Call& c, const Expr& g) {
         At at(c, g);
         return Grads{Pick(Test(op::greater, at.x(), 0), at.g(), 0)};
       }},
      {"cast", CastBack},
      {"cast_like", CastBack},
      {"nn.prelu", PRelu},
      {"on_device", Through},
      {"annotation.stop_fusion", Through},
      {"annotation.checkpoint", Through},
      {"annotation.compiler_begin", Through},
      {"annotation.compiler_end", Through},
      {"nn.bias_add", BiasAdd},
      {"where", WhereRule},
      {"floor_divide", Flat},
  });
  DefineRestatements({{"nn.mish", Mish}, {"nn.gelu", Gelu}});
  DefineNoGradients({{"reinterpret", "it reads bits as another type"},
                     {"fixed_point_multiply", "it works on integers"},
                     {"device_copy", "where its gradient goes back to is decided by PlanDevices; run gradient first"}});
  return true;
}();

}  // namespace
}  // namespace baton::relay::gradient
