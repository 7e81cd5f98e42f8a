// SPDX-License-Identifier: Apache-2.0
// Rows of bools, comparisons and choices.
#include <baton/relay/op/make.h>
#include <baton/relay/op/tensor.h>

#include "simplify_rows.h"

namespace baton::relay::transform {
namespace {

const DFPattern& Condition() {
  static const DFPattern p = IsWildcard();
  return p;
}
const DFPattern& AnyConstant() {
  static const DFPattern p = IsConstant();
  return p;
}
/// In either order.
DFPattern Either(const char* op, const DFPattern& a, const DFPattern& b) { return Of(op, a, b) || Of(op, b, a); }

template <int kValue>
Expr XIf(const Found& f) {
  return IsSplat(f[AnyConstant()], kValue) ? f[X()] : Expr();
}
template <int kWhen, int kValue>
Expr AllIf(const Found& f) {
  return IsSplat(f[AnyConstant()], kWhen) ? FullLike(GetRef<Expr>(f.root()), kValue) : Expr();
}
template <int kValue>
Expr All(const Found& f) {
  return FullLike(GetRef<Expr>(f.root()), kValue);
}
template <const Op& kOp>
Expr OfXY(const Found& f) {
  return MakeCall(kOp, {f[X()], f[Y()]});
}

}  // namespace

std::vector<SimplifyRow> LogicRows() {
  const DFPattern x = X(), y = Y(), c = AnyConstant();
  auto negated = [&](const char* op) { return Of("logical_not", Of(op, x, y)); };
  std::vector<SimplifyRow> rows = {
      {"not not x -> x", E::kExact, kBools, true, Of("logical_not", Of("logical_not", x)), JustX},
      {"x and x -> x", E::kExact, kBools, true, Of("logical_and", x, x), JustX},
      {"x or x -> x", E::kExact, kBools, true, Of("logical_or", x, x), JustX},
      {"x xor x -> false", E::kExact, kBools, false, Of("logical_xor", x, x), All<0>},
      {"x and true -> x", E::kExact, kBools, false, Either("logical_and", x, c), XIf<1>},
      {"x and false -> false", E::kExact, kBools, false, Either("logical_and", x, c), AllIf<0, 0>},
      {"x or false -> x", E::kExact, kBools, false, Either("logical_or", x, c), XIf<0>},
      {"x or true -> true", E::kExact, kBools, false, Either("logical_or", x, c), AllIf<1, 1>},
      {"x xor false -> x", E::kExact, kBools, false, Either("logical_xor", x, c), XIf<0>},
      {"x and not x -> false", E::kExact, kBools, false, Either("logical_and", x, Of("logical_not", x)), All<0>},
      {"x or not x -> true", E::kExact, kBools, false, Either("logical_or", x, Of("logical_not", x)), All<1>},
      {"x == true -> x", E::kExact, kBools, false, Either("equal", x, c), XIf<1>},
      {"x == false -> not x", E::kExact, kBools, false, Either("equal", x, c),
       [](const Found& f) { return IsSplat(f[AnyConstant()], 0) ? MakeCall(op::logical_not, {f[X()]}) : Expr(); }},
      {"x != false -> x", E::kExact, kBools, false, Either("not_equal", x, c), XIf<0>},
      {"x != true -> not x", E::kExact, kBools, false, Either("not_equal", x, c),
       [](const Found& f) { return IsSplat(f[AnyConstant()], 1) ? MakeCall(op::logical_not, {f[X()]}) : Expr(); }},
      {"x & x -> x", E::kExact, kInts | kBools, true, Of("bitwise_and", x, x), JustX},
      {"x | x -> x", E::kExact, kInts | kBools, true, Of("bitwise_or", x, x), JustX},
      {"x ^ x -> 0", E::kExact, kInts | kBools, false, Of("bitwise_xor", x, x), All<0>},
      {"x & 0 -> 0", E::kExact, kInts, false, Either("bitwise_and", x, c), AllIf<0, 0>},
      {"x | 0 -> x", E::kExact, kInts, false, Either("bitwise_or", x, c), XIf<0>},
      {"x ^ 0 -> x", E::kExact, kInts, false, Either("bitwise_xor", x, c), XIf<0>},
      {"x << 0 -> x", E::kExact, kInts, false, Of("left_shift", x, c), XIf<0>},
      {"x >> 0 -> x", E::kExact, kInts, false, Of("right_shift", x, c), XIf<0>},
      // Comparisons. NaN is not equal to itself, and neither less nor greater.
      {"x == x -> true", E::kButNanOrZero, kAll, false, Of("equal", x, x), All<1>},
      {"x <= x -> true", E::kButNanOrZero, kNumbers, false, Of("less_equal", x, x), All<1>},
      {"x >= x -> true", E::kButNanOrZero, kNumbers, false, Of("greater_equal", x, x), All<1>},
      {"x != x -> false", E::kButNanOrZero, kAll, false, Of("not_equal", x, x), All<0>},
      {"x < x -> false", E::kExact, kNumbers, false, Of("less", x, x), All<0>},
      {"x > x -> false", E::kExact, kNumbers, false, Of("greater", x, x), All<0>},
      {"not x == y -> x != y", E::kExact, kAll, true, negated("equal"), OfXY<op::not_equal>},
      {"not x != y -> x == y", E::kExact, kAll, true, negated("not_equal"), OfXY<op::equal>},
      // Whether the row holds depends on the dtype compared, which the call's own argument is not.
      {"not x < y -> x >= y", E::kExact, kAll, true, negated("less"),
       [](const Found& f) { return DtypeOf(f[X()]).is_floating() ? Expr() : OfXY<op::greater_equal>(f); }},
      {"not x <= y -> x > y", E::kExact, kAll, true, negated("less_equal"),
       [](const Found& f) { return DtypeOf(f[X()]).is_floating() ? Expr() : OfXY<op::greater>(f); }},
      {"not x > y -> x <= y", E::kExact, kAll, true, negated("greater"),
       [](const Found& f) { return DtypeOf(f[X()]).is_floating() ? Expr() : OfXY<op::less_equal>(f); }},
      {"not x >= y -> x < y", E::kExact, kAll, true, negated("greater_equal"),
       [](const Found& f) { return DtypeOf(f[X()]).is_floating() ? Expr() : OfXY<op::less>(f); }},
      // Choices.
      {"where(c, x, x) -> x", E::kExact, kAll, false, IsOp("where")({Condition(), x, x}), JustX},
      {"where(true, x, y) -> x", E::kExact, kAll, false, IsOp("where")({c, x, y}), XIf<1>},
      {"where(false, x, y) -> y", E::kExact, kAll, false, IsOp("where")({c, x, y}),
       [](const Found& f) { return IsSplat(f[AnyConstant()], 0) ? f[Y()] : Expr(); }},
      {"where(c, where(c, x, z), y) -> where(c, x, y)", E::kExact, kAll, false,
       IsOp("where")({Condition(), IsOp("where")({Condition(), x, IsWildcard()}), y}),
       [](const Found& f) { return Where(f[Condition()], f[X()], f[Y()]); }},
      {"where(c, x, where(c, z, y)) -> where(c, x, y)", E::kExact, kAll, false,
       IsOp("where")({Condition(), x, IsOp("where")({Condition(), IsWildcard(), y})}),
       [](const Found& f) { return Where(f[Condition()], f[X()], f[Y()]); }},
      {"where(not c, x, y) -> where(c, y, x)", E::kExact, kAll, true,
       IsOp("where")({Of("logical_not", Condition()), x, y}),
       [](const Found& f) { return Where(f[Condition()], f[Y()], f[X()]); }},
  };
  return rows;
}

}  // namespace baton::relay::transform
