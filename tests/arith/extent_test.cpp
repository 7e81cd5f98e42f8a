// SPDX-License-Identifier: Apache-2.0
#include <baton/arith/extent.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

using namespace baton;
using arith::CanonicalExtent;
using arith::ExtentAtLeast;
using arith::ExtentsEqual;
using arith::ExtentText;
using arith::Fact;

namespace {

struct Symbols {
  tir::SizeVar n{"n"}, m{"m"}, k{"k"};
};
PrimExpr Sel(PrimExpr c, PrimExpr a, PrimExpr b) { return tir::Select(c, a, b); }

/// An expression of the symbols whose divisors are positive.
PrimExpr Random(std::mt19937* rng, const std::vector<PrimExpr>& symbols, int depth) {
  auto pick = [&](int n) { return static_cast<int>((*rng)() % static_cast<uint32_t>(n)); };
  if (depth == 0 || pick(6) == 0) {
    return pick(3) == 0 ? PrimExpr(int64_t{pick(6)})
                        : symbols[static_cast<size_t>(pick(static_cast<int>(symbols.size())))];
  }
  PrimExpr a = Random(rng, symbols, depth - 1), b = Random(rng, symbols, depth - 1);
  switch (pick(9)) {
    case 0:
    case 1:
      return a + b;
    case 2:
      return a - b;
    case 3:
      return a * b;
    case 4:
      return floordiv(a, PrimExpr(int64_t{1 + pick(6)}));
    case 5:
      return floormod(a, PrimExpr(int64_t{1 + pick(6)}));
    case 6:
      return min(a, b);
    case 7:
      return max(a, b);
    default:
      return Sel(pick(2) == 0 ? equal(a, b) : a < b, Random(rng, symbols, depth - 1), b);
  }
}
int64_t Value(const PrimExpr& e, const tir::VarMap& with) {
  PrimExpr r = tir::Substitute(e, with);
  arith::Analyzer a;
  r = a.Simplify(r);
  const int64_t* v = tir::as_const_int(r);
  REQUIRE(v);
  return *v;
}

}  // namespace

TEST_CASE("extent: equal polynomials are one expression") {
  Symbols s;
  CHECK(ExtentText(s.n + s.n) == "n*2");
  CHECK(ExtentText(s.m * s.n - s.n * s.m) == "0");
  CHECK(ExtentText((s.n + 1) * (s.m + 2)) == "m*n + m + n*2 + 2");
  CHECK(ExtentText(s.n * 3 * 2 * s.m) == ExtentText(s.m * 6 * s.n));
  CHECK(ExtentText(PrimExpr(int64_t{5}) - s.n) == "5 - n");
  PrimExpr once = CanonicalExtent(s.n * 2 + s.m);
  CHECK(CanonicalExtent(once).same_as(once));
  CHECK(CanonicalExtent(s.n).same_as(s.n));
}

TEST_CASE("extent: quotients go out even where they do") {
  Symbols s;
  CHECK(ExtentText(floordiv(s.n * s.m * 384, s.n * s.m)) == "384");
  CHECK(ExtentText(floordiv(s.n * s.m * 384, s.m * 12)) == "n*32");
  CHECK(ExtentText(floordiv((s.n + s.m) * 12 * s.k, s.n + s.m)) == "k*12");
  CHECK(ExtentText(floordiv(s.n * 4 + 2, PrimExpr(int64_t{6}))) == "floordiv(n*2 + 1, 3)");
  CHECK(ExtentText(floordiv(floordiv(s.n, 2), 3)) == "floordiv(n, 6)");
  CHECK(ExtentText(floordiv(floordiv(s.n + 1, 2) + 1, 2)) == "floordiv(n + 3, 4)");
  CHECK(ExtentText(floordiv(s.n * 6 + s.m + 7, 3)) == "n*2 + floordiv(m + 1, 3) + 2");
  CHECK(ExtentText(floormod(s.n * 4, 2)) == "0");
  CHECK(ExtentText(floormod(s.n, 4) + floordiv(s.n, 4) * 4) == "n");
  CHECK(ExtentText(floordiv(s.n * s.m * 2, s.n * 4)) == "floordiv(m, 2)");
  // What a convolution of stride 2, window 3 and padding 1 leaves.
  CHECK(ExtentText(floordiv(s.n + 2 - 3, 2) + 1) == "floordiv(n + 1, 2)");
}

TEST_CASE("extent: min, max, select") {
  Symbols s;
  CHECK(ExtentText(min(s.n, s.n + 1)) == "n");
  CHECK(ExtentText(max(max(s.n, s.m), s.n)) == "max(m, n)");
  CHECK(ExtentText(max(s.n, PrimExpr(int64_t{0}))) == "n");
  CHECK(ExtentText(min(max(s.n, s.m), min(s.n + 2, s.m + 3))) == ExtentText(min(min(s.m + 3, max(s.m, s.n)), s.n + 2)));
  CHECK(ExtentText(Sel(equal(s.n, s.n), s.n, s.m)) == "n");
  CHECK(ExtentText(Sel(equal(s.m, 1), s.n, s.m)) == "select(m == 1, n, m)");
  CHECK(ExtentText(Sel(not_equal(s.m, 1), s.m, s.n)) == "select(m == 1, n, m)");
  CHECK(ExtentText(Sel(equal(s.m, 1), s.m, s.m)) == "m");
  CHECK(ExtentText(Sel(equal(s.m, 1), PrimExpr(int64_t{1}), s.m)) == "m");
  CHECK(ExtentText(Sel(equal(s.n + 1, 0), s.n, s.m)) == "m");
  CHECK(ExtentText(Sel(PrimExpr(int64_t{3}) < s.n, s.n, s.m)) == "select(n >= 4, n, m)");
}

TEST_CASE("extent: facts") {
  Symbols s;
  CHECK(ExtentsEqual(s.n * 2, s.n + s.n) == Fact::kYes);
  CHECK(ExtentsEqual(s.n, s.n + 1) == Fact::kNo);
  CHECK(ExtentsEqual(s.n, s.m) == Fact::kOpen);
  CHECK(ExtentsEqual(s.n * 2, PrimExpr(int64_t{3})) == Fact::kNo);
  CHECK(ExtentsEqual(s.n, PrimExpr(int64_t{-1})) == Fact::kNo);
  CHECK(ExtentsEqual(tir::AnyDim(), s.n) == Fact::kOpen);
  CHECK(ExtentsEqual(PrimExpr(int64_t{3}), PrimExpr(int64_t{4})) == Fact::kNo);
  CHECK(ExtentAtLeast(s.n + 1, 1) == Fact::kYes);
  CHECK(ExtentAtLeast(s.n, 1) == Fact::kOpen);
  CHECK(ExtentAtLeast(PrimExpr(int64_t{0}) - s.n, 1) == Fact::kNo);
  CHECK(ExtentAtLeast(floordiv(s.n, 2), 0) == Fact::kYes);
  CHECK(ExtentAtLeast(max(s.n, PrimExpr(int64_t{4})), 4) == Fact::kYes);
}

TEST_CASE("extent: what does not fit int64 is an error, what is no extent stays") {
  Symbols s;
  PrimExpr big(int64_t{1} << 62);
  CHECK_THROWS_WITH_AS(CanonicalExtent(s.n * big * 4), "an extent has a coefficient beyond int64", CompileError);
  CHECK_THROWS_AS(CanonicalExtent(tir::FloorDiv(s.n, PrimExpr(int64_t{0}))), CompileError);
  tir::Var f("f", DataType::Float(32));
  PrimExpr e = f + tir::make_const(DataType::Float(32), 1);
  CHECK(CanonicalExtent(e).same_as(e));
}

TEST_CASE("extent: the canonical form has the same values, and is its own") {
  Symbols s;
  std::mt19937 rng(7);
  for (int round = 0; round < 3000; ++round) {
    const PrimExpr e = Random(&rng, {s.n, s.m, s.k}, 4);
    const PrimExpr c = CanonicalExtent(e);
    CAPTURE(ExtentText(c));
    CHECK(tir::ExprDeepEqual(CanonicalExtent(c), c));
    const auto bound = arith::ExtentBound(e);
    for (int at = 0; at < 6; ++at) {
      auto draw = [&] { return PrimExpr(static_cast<int64_t>(rng() % 13)); };
      const tir::VarMap with{{s.n.get(), draw()}, {s.m.get(), draw()}, {s.k.get(), draw()}};
      const int64_t v = Value(e, with);
      CHECK(v == Value(c, with));
      CHECK(v >= bound.min);
      CHECK(v <= bound.max);
    }
  }
}
