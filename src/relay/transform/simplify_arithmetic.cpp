// SPDX-License-Identifier: Apache-2.0
// Rows of arithmetic: neutral operands, functions that undo each other, casts.
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/transform.h>

#include <algorithm>
#include <cmath>

#include "simplify_rows.h"

namespace baton::relay::transform {
namespace {

Expr Unary(const Op& op, const Expr& x) { return MakeCall(op, {x}); }

// Expressions that a condition looks at.
/// Expressions that may be a single number in all elements.
const DFPattern& C() {
  static const DFPattern p = IsConstant() || Filled();
  return p;
}
const DFPattern& D() {
  static const DFPattern p = IsConstant();
  return p;
}
/// The inner call of a row that has two.
const DFPattern& ClipOfX() {
  static const DFPattern p = Of("clip", X());
  return p;
}
const DFPattern& CastOfX() {
  static const DFPattern p = Of("cast", X());
  return p;
}

/// A constant of one element does not decide the shape of a sum with it, as long as it has no more dimensions.
bool Neutral(const Found& f, double value) {
  const Expr c = f[C()];
  if (!IsSplat(c, value)) return false;
  const auto* k = c.as<ConstantNode>();
  return HasStaticShape(f[X()]) || (k && k->data.numel() == 1);
}
bool NeutralBits(const Found& f, double value) { return Neutral(f, value) && IsSplatBits(f[C()], value); }

template <int kValue>
Expr XIfNeutral(const Found& f) {
  return Neutral(f, kValue) ? f[X()] : Expr();
}
template <const Op& kOp>
Expr OpOfX(const Found& f) {
  return Unary(kOp, f[X()]);
}

/// Whether every value of `from` is one of `to`.
bool Holds(DataType to, DataType from) {
  if (from == to) return true;
  if (from.is_bool()) return to.is_int() || to.is_uint() || to.is_floating();
  if (to.is_bool()) return false;
  auto digits = [](DataType t) {  // of whole numbers, or of the fraction with its hidden bit
    if (t.is_uint()) return t.bits();
    if (t.is_int()) return t.bits() - 1;
    return t.is_bfloat16() ? 8 : t.bits() == 16 ? 11 : t.bits() == 32 ? 24 : t.bits() == 64 ? 53 : 0;
  };
  if (from.is_int() && to.is_uint()) return false;
  if (from.is_floating()) {
    if (!to.is_floating() || from.bits() < 16 || to.bits() < 16) return false;
    if (from.is_bfloat16() || to.is_bfloat16()) return from.is_bfloat16() && to.bits() >= 32;
    return to.bits() >= from.bits();
  }
  if (to.is_floating() && to.bits() < 16) return false;
  return digits(to) >= digits(from);
}

/// Whether going from `a` to `c` through `b` is the same as going there at once.
bool CastsMerge(DataType a, DataType b, DataType c) {
  auto is_int = [](DataType t) { return t.is_int() || t.is_uint(); };
  if (is_int(a) && is_int(b) && is_int(c) && b.bits() >= c.bits()) return true;  // the low bits are the same
  if (!Holds(b, a)) return false;
  // A float out of the range of an integer has no one value there; an integer wraps.
  return !b.is_floating() || !is_int(c) || a.is_floating() || Holds(c, a);
}

DFPattern EitherOrder(const char* op, const DFPattern& a, const DFPattern& b) { return Of(op, a, b) || Of(op, b, a); }
template <const Op& kOp>
Expr MergeConstants(const Found& f) {
  if (!f[C()].as<ConstantNode>() || !f[D()].as<ConstantNode>() || f[X()].as<ConstantNode>()) return Expr();
  return MakeCall(kOp, {f[X()], MakeCall(kOp, {f[D()], f[C()]})});
}

double PowerOfTwoInverse(double c) {
  int exp = 0;
  return std::frexp(std::fabs(c), &exp) == 0.5 && exp > -120 && exp < 120 ? 1 / c : 0;
}

/// min(max(min(max(x, a1), b1), a2), b2) has its own bounds.
Expr ClipOf(const Found& f, double a1, double b1, double a2, double b2) {
  if (!(a1 <= b1) || !(a2 <= b2)) return Expr();
  auto within = [&](double v) { return std::min(std::max(v, a2), b2); };
  return MakeCall<ClipAttrs>(op::clip, {f[X()]}, [&](ClipAttrs* a) { a->a_min = within(a1), a->a_max = within(b1); });
}

}  // namespace

std::vector<SimplifyRow> ArithmeticRows() {
  const DFPattern x = X(), y = Y(), c = C(), d = D();
  static const DFPattern round_x =
      (IsOp("floor") || IsOp("ceil") || IsOp("trunc") || IsOp("round"))(Array<DFPattern>{x});
  static const DFPattern not_negative = Of("exp", y) || Of("sigmoid", y) || Of("nn.relu", y) || Of("abs", y) ||
                                        Of("sqrt", y) || Of("exp2", y) || Of("nn.softmax", y);
  std::vector<SimplifyRow> rows = {
      // Neutral operands.
      {"x + -0 -> x", E::kExact, kFloats, true, x + c,
       [](const Found& f) { return NeutralBits(f, -0.0) ? f[X()] : Expr(); }},
      {"x + 0 -> x", E::kButNanOrZero, kNumbers, true, x + c, XIfNeutral<0>, true},
      {"x - 0 -> x", E::kExact, kNumbers, true, x - c,
       [](const Found& f) { return NeutralBits(f, 0.0) ? f[X()] : Expr(); }},
      {"x - -0 -> x", E::kButNanOrZero, kFloats, true, x - c, XIfNeutral<0>},
      {"0 - x -> -x", E::kButNanOrZero, kNumbers, true, c - x,
       [](const Found& f) { return Neutral(f, 0) ? Unary(op::negative, f[X()]) : Expr(); },
       false,
       true},
      {"x * 1 -> x", E::kExact, kNumbers, true, x * c, XIfNeutral<1>},
      {"x * -1 -> -x", E::kExact, kNumbers, true, x * c,
       [](const Found& f) {
         return Neutral(f, -1) && !DtypeOf(f[X()]).is_uint() ? Unary(op::negative, f[X()]) : Expr();
       }},
      {"x * 0 -> 0", E::kButNanOrZero, kNumbers, false, x * c,
       [](const Found& f) { return Neutral(f, 0) ? FullLike(GetRef<Expr>(f.root()), 0) : Expr(); }},
      {"x / 1 -> x", E::kExact, kNumbers, true, x / c, XIfNeutral<1>},
      {"x / -1 -> -x", E::kExact, kFloats, true, x / c,
       [](const Found& f) { return Neutral(f, -1) ? Unary(op::negative, f[X()]) : Expr(); }},
      {"x / 2**n -> x * 2**-n", E::kExact, kFloats, true, x / c,
       [](const Found& f) {
         const auto* k = f[C()].as<ConstantNode>();
         const DataType t = DtypeOf(f[X()]);
         if (!k || k->data.numel() != 1 || k->data.ndim() != 0 || t.bits() < 32 || t.is_bfloat16()) return Expr();
         const double inverse = PowerOfTwoInverse(k->data.GetDouble(0));
         return inverse != 0 && inverse != 1 ? Multiply(f[X()], MakeScalar(inverse, t)) : Expr();
       },
       false,
       true},
      {"x / c -> x * (1 / c)", E::kReassociates, kFloats, true, x / c,
       [](const Found& f) {
         const auto* k = f[C()].as<ConstantNode>();
         if (!k || k->data.numel() != 1 || k->data.ndim() != 0) return Expr();
         const double v = k->data.GetDouble(0);
         if (!(std::fabs(v) > 1e-30 && std::fabs(v) < 1e30) || k->data.dtype().bits() < 32) return Expr();
         return Multiply(f[X()], MakeScalar(1 / v, k->data.dtype()));
       }},
      {"floor_divide(x, 1) -> x", E::kExact, kInts, true, Of("floor_divide", x, c), XIfNeutral<1>},
      {"x - x -> 0", E::kButNanOrZero, kNumbers, false, x - x,
       [](const Found& f) { return FullLike(f[X()], 0); }},
      {"x / x -> 1", E::kButNanOrZero, kFloats, false, x / x, [](const Found& f) { return FullLike(f[X()], 1); }},
      {"power(x, 1) -> x", E::kExact, kNumbers, true, Of("power", x, c), XIfNeutral<1>},
      {"power(x, 0) -> 1", E::kExact, kNumbers, false, Of("power", x, c),
       [](const Found& f) { return Neutral(f, 0) ? FullLike(GetRef<Expr>(f.root()), 1) : Expr(); }},
      {"power(x, 2) -> x * x", E::kReassociates, kFloats, true, Of("power", x, c),
       [](const Found& f) { return Neutral(f, 2) ? Multiply(f[X()], f[X()]) : Expr(); }},
      {"power(x, 2) -> x * x (integers)", E::kExact, kInts, true, Of("power", x, c),
       [](const Found& f) { return Neutral(f, 2) ? Multiply(f[X()], f[X()]) : Expr(); }},
      {"power(x, 0.5) -> sqrt(x)", E::kReassociates, kFloats, true, Of("power", x, c),
       [](const Found& f) { return Neutral(f, 0.5) ? Unary(op::sqrt, f[X()]) : Expr(); }},
      {"power(x, -0.5) -> rsqrt(x)", E::kReassociates, kFloats, true, Of("power", x, c),
       [](const Found& f) { return Neutral(f, -0.5) ? Unary(op::rsqrt, f[X()]) : Expr(); }},
      {"power(x, -1) -> reciprocal(x)", E::kReassociates, kFloats, true, Of("power", x, c),
       [](const Found& f) { return Neutral(f, -1) ? Unary(op::reciprocal, f[X()]) : Expr(); }},
      // Signs.
      {"-(-x) -> x", E::kExact, kNumbers, true, Of("negative", Of("negative", x)), JustX},
      {"x + -y -> x - y", E::kExact, kNumbers, true, x + Of("negative", y),
       [](const Found& f) { return Subtract(f[X()], f[Y()]); }},
      {"x - -y -> x + y", E::kExact, kNumbers, true, x - Of("negative", y),
       [](const Found& f) { return Add(f[X()], f[Y()]); }},
      {"-(x - y) -> y - x", E::kButNanOrZero, kNumbers, true, Of("negative", x - y),
       [](const Found& f) { return Subtract(f[Y()], f[X()]); }},
      {"-x * -y -> x * y", E::kExact, kNumbers, true, Of("negative", x) * Of("negative", y),
       [](const Found& f) { return Multiply(f[X()], f[Y()]); }},
      {"-x / -y -> x / y", E::kExact, kFloats, true, Of("negative", x) / Of("negative", y),
       [](const Found& f) { return Divide(f[X()], f[Y()]); }},
      {"abs(-x) -> abs(x)", E::kExact, kNumbers, true, Of("abs", Of("negative", x)),
       [](const Found& f) { return DtypeOf(f[X()]).is_uint() ? Expr() : Unary(op::abs, f[X()]); }},
      {"abs(abs(x)) -> abs(x)", E::kExact, kNumbers, true, Of("abs", Of("abs", x)), OpOfX<op::abs>},
      {"abs(y) -> y where y >= 0", E::kExact, kFloats, true, Of("abs", not_negative),
       [](const Found& f) {
         const auto* inner = f.root()->args[0].as<CallNode>();
         // sqrt(-0) is -0, and so may max(-0, 0) be.
         if (inner->op.same_as(op::sqrt) || inner->op.same_as(op::relu) || inner->op.same_as(op::abs)) return Expr();
         return f.root()->args[0];
       }},
      {"abs(sqrt(x)) -> sqrt(x)", E::kButNanOrZero, kFloats, true, Of("abs", Of("sqrt", x)),
       OpOfX<op::sqrt>},
      {"relu(relu(x)) -> relu(x)", E::kExact, kNumbers, true, Of("nn.relu", Of("nn.relu", x)), OpOfX<op::relu>},
      {"relu(y) -> y where y >= 0", E::kButNanOrZero, kFloats, true, Of("nn.relu", not_negative),
       [](const Found& f) { return f.root()->args[0]; }},
      {"sign(sign(x)) -> sign(x)", E::kExact, kNumbers, true, Of("sign", Of("sign", x)), OpOfX<op::sign>},
      {"round of a whole number -> it", E::kExact, kFloats, true,
       Of("floor", round_x) || Of("ceil", round_x) || Of("trunc", round_x) || Of("round", round_x),
       [](const Found& f) { return f.root()->args[0]; }},
      {"round of an integer that was cast -> it", E::kExact, kFloats, true,
       Of("floor", CastOfX()) || Of("ceil", CastOfX()) || Of("trunc", CastOfX()) || Of("round", CastOfX()),
       [](const Found& f) {
         const DataType t = DtypeOf(f[X()]);
         return t.is_int() || t.is_uint() || t.is_bool() ? f.root()->args[0] : Expr();
       }},
      {"abs(x * x) -> x * x", E::kExact, kFloats, true, Of("abs", x * x),
       [](const Found& f) { return f.root()->args[0]; }},
      {"abs(x) * abs(x) -> x * x", E::kExact, kNumbers, true, Of("abs", x) * Of("abs", x),
       [](const Found& f) { return Multiply(f[X()], f[X()]); }},
      {"mod(x, 1) -> 0", E::kExact, kInts, false, Of("mod", x, c) || Of("floor_mod", x, c),
       [](const Found& f) { return Neutral(f, 1) ? FullLike(GetRef<Expr>(f.root()), 0) : Expr(); }},
      {"bias_add(x, 0) -> x", E::kButNanOrZero, kNumbers, true, Of("nn.bias_add", x, c),
       [](const Found& f) { return IsSplat(f[C()], 0) ? f[X()] : Expr(); }},
      {"round of an integer -> it", E::kExact, kInts, true,
       Of("floor", x) || Of("ceil", x) || Of("trunc", x) || Of("round", x), JustX},
      {"bitwise_not(bitwise_not(x)) -> x", E::kExact, kInts | kBools, true,
       Of("bitwise_not", Of("bitwise_not", x)), JustX},
      // Largest and smallest.
      {"maximum(x, x) -> x", E::kExact, kAll, true, Of("maximum", x, x), JustX},
      {"minimum(x, x) -> x", E::kExact, kAll, true, Of("minimum", x, x), JustX},
      {"maximum(maximum(x, c), d) -> maximum(x, maximum(c, d))", E::kButNanOrZero, kNumbers, true,
       EitherOrder("maximum", EitherOrder("maximum", x, d), c), MergeConstants<op::maximum>},
      {"minimum(minimum(x, c), d) -> minimum(x, minimum(c, d))", E::kButNanOrZero, kNumbers, true,
       EitherOrder("minimum", EitherOrder("minimum", x, d), c), MergeConstants<op::minimum>},
      {"clip(x) -> x where all values are within", E::kExact, kInts, true, ClipOfX(),
       [](const Found& f) {
         const auto& a = f.RootAttrs<ClipAttrs>();
         const DataType t = DtypeOf(f[X()]);
         const int bits = t.is_int() ? t.bits() - 1 : t.bits();
         const double top = std::ldexp(1.0, bits) - 1, bottom = t.is_int() ? -std::ldexp(1.0, bits) : 0;
         return t.bits() <= 32 && a.a_min <= bottom && a.a_max >= top ? f[X()] : Expr();
       }},
      {"clip(clip(x)) -> clip(x)", E::kExact, kNumbers, true, Of("clip", ClipOfX()),
       [](const Found& f) {
         const auto& in = f.Attrs<ClipAttrs>(ClipOfX());
         const auto& out = f.RootAttrs<ClipAttrs>();
         return ClipOf(f, in.a_min, in.a_max, out.a_min, out.a_max);
       }},
      {"relu(clip(x)) -> clip(x)", E::kButNanOrZero, kNumbers, true, Of("nn.relu", ClipOfX()),
       [](const Found& f) {
         const auto& in = f.Attrs<ClipAttrs>(ClipOfX());
         return ClipOf(f, in.a_min, in.a_max, 0, INFINITY);
       }},
      {"clip(relu(x)) -> clip(x)", E::kButNanOrZero, kNumbers, true, Of("clip", Of("nn.relu", x)),
       [](const Found& f) {
         const auto& out = f.RootAttrs<ClipAttrs>();
         return ClipOf(f, 0, INFINITY, out.a_min, out.a_max);
       }},
      // Functions.
      {"exp(log(x)) -> x", E::kReassociates, kFloats, true, Of("exp", Of("log", x)), JustX},
      {"log(exp(x)) -> x", E::kReassociates, kFloats, true, Of("log", Of("exp", x)), JustX},
      {"exp(x) * exp(y) -> exp(x + y)", E::kReassociates, kFloats, true, Of("exp", x) * Of("exp", y),
       [](const Found& f) { return Unary(op::exp, Add(f[X()], f[Y()])); }},
      {"exp(x) / exp(y) -> exp(x - y)", E::kReassociates, kFloats, true, Of("exp", x) / Of("exp", y),
       [](const Found& f) { return Unary(op::exp, Subtract(f[X()], f[Y()])); }},
      {"log(x) + log(y) -> log(x * y)", E::kReassociates, kFloats, true, Of("log", x) + Of("log", y),
       [](const Found& f) { return Unary(op::log, Multiply(f[X()], f[Y()])); }},
      {"(x + c) * d -> x * d + c * d", E::kReassociates, kFloats, true, (x + c) * d,
       [](const Found& f) {
         if (!f[C()].as<ConstantNode>() || f[X()].as<ConstantNode>()) return Expr();
         return Add(Multiply(f[X()], f[D()]), Multiply(f[C()], f[D()]));
       },
       true},
      {"sqrt(x) * sqrt(x) -> x", E::kReassociates, kFloats, true, Of("sqrt", x) * Of("sqrt", x), JustX},
      {"1 / sqrt(x) -> rsqrt(x)", E::kExact, kFloats, true, c / Of("sqrt", x),
       [](const Found& f) { return Neutral(f, 1) && DtypeOf(f[X()]).bits() >= 32 ? Unary(op::rsqrt, f[X()]) : Expr(); }},
      {"c / sqrt(x) -> c * rsqrt(x)", E::kReassociates, kFloats, true, c / Of("sqrt", x),
       [](const Found& f) {
         return f[C()].as<ConstantNode>() ? Multiply(f[C()], Unary(op::rsqrt, f[X()])) : Expr();
       },
       true},
      {"1 / x -> reciprocal(x)", E::kExact, kFloats, true, c / x,
       [](const Found& f) { return Neutral(f, 1) && DtypeOf(f[X()]).bits() >= 32 ? Unary(op::reciprocal, f[X()]) : Expr(); },
       false,
       true},
      {"reciprocal(reciprocal(x)) -> x", E::kReassociates, kFloats, true, Of("reciprocal", Of("reciprocal", x)),
       JustX},
      {"x / sqrt(y) -> x * rsqrt(y)", E::kReassociates, kFloats, true, x / Of("sqrt", y),
       [](const Found& f) { return Multiply(f[X()], Unary(op::rsqrt, f[Y()])); }},
      {"log(softmax(x)) -> log_softmax(x)", E::kReassociates, kFloats, true, Of("log", Of("nn.softmax", x)),
       [](const Found& f) {
         return MakeCall(op::log_softmax, {f[X()]}, f.root()->args[0].as<CallNode>()->attrs);
       }},
      // Constants that meet: they are folded afterwards.
      {"(x + c) + d -> x + (c + d)", E::kReassociates, kNumbers, true, (x + c) + d,
       [](const Found& f) {
         if (!f[C()].as<ConstantNode>() || !f[D()].as<ConstantNode>() || f[X()].as<ConstantNode>()) return Expr();
         return Add(f[X()], Add(f[C()], f[D()]));
       },
       true},
      {"(x * c) * d -> x * (c * d)", E::kReassociates, kNumbers, true, (x * c) * d,
       [](const Found& f) {
         if (!f[C()].as<ConstantNode>() || !f[D()].as<ConstantNode>() || f[X()].as<ConstantNode>()) return Expr();
         return Multiply(f[X()], Multiply(f[C()], f[D()]));
       },
       true},
      // Casts.
      {"cast(x) -> x", E::kExact, kAll, true, Of("cast", x),
       [](const Found& f) { return f.RootAttrs<CastAttrs>().dtype == DtypeOf(f[X()]) ? f[X()] : Expr(); }},
      {"cast(cast(x)) -> cast(x)", E::kExact, kAll, true, Of("cast", CastOfX()),
       [](const Found& f) {
         const DataType a = DtypeOf(f[X()]), b = f.Attrs<CastAttrs>(CastOfX()).dtype,
                        to = f.RootAttrs<CastAttrs>().dtype;
         return !a.is_void() && CastsMerge(a, b, to) ? Cast(f[X()], to) : Expr();
       }},
      {"cast_like(x, y) -> cast(x)", E::kExact, kAll, true, Of("cast_like", x, y),
       [](const Found& f) { return TensorOf(f[Y()]) ? Cast(f[X()], DtypeOf(f[Y()])) : Expr(); }},
      {"reinterpret(x) -> x", E::kExact, kAll, true, Of("reinterpret", x),
       [](const Found& f) { return f.RootAttrs<CastAttrs>().dtype == DtypeOf(f[X()]) ? f[X()] : Expr(); }},
      {"copy(x) -> x", E::kExact, kAll, true, Of("copy", x) || Of("identity", x), JustX},
  };
  return rows;
}

}  // namespace baton::relay::transform
