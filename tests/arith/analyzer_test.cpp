// SPDX-License-Identifier: Apache-2.0
#include <baton/arith/analyzer.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>
#include <baton/tir/printer.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace baton;
using arith::Analyzer;
using tir::Var;

namespace {
struct Fixture {
  Var x{"x"}, y{"y"}, z{"z"};
  Analyzer a;
  Fixture() {
    a.Bind(x, 0, 8);
    a.Bind(y, 0, 16);
    a.Bind(z, 0, 4);
  }
  std::string S(const PrimExpr& e) { return tir::AsText(a.Simplify(e)); }
};
int64_t Eval(const PrimExpr& e, const tir::VarMap& env) {
  PrimExpr r = tir::Substitute(e, env);
  const int64_t* v = tir::as_const_int(r);
  REQUIRE_MESSAGE(v, tir::AsText(r));
  return *v;
}
}  // namespace

TEST_CASE("arith: sums are canonical") {
  Fixture f;
  CHECK(f.S(f.x * 4 + f.y - f.x * 4) == "y");
  CHECK(f.S((f.x + 1) * 3 - 3) == "x*3");
  CHECK(f.S(f.x - f.x) == "0");
  CHECK(f.S((f.x + f.y) + (f.x - f.y)) == "x*2");
}

TEST_CASE("arith: division and remainder of indices") {
  Fixture f;
  CHECK(f.S(floordiv(f.x * 16 + f.y, 16)) == "x");
  CHECK(f.S(floormod(f.x * 16 + f.y, 16)) == "y");
  CHECK(f.S(floordiv(f.x * 16 + f.y, 4)) == "x*4 + y//4");
  CHECK(f.S(floordiv(f.y, 4) * 4 + floormod(f.y, 4)) == "y");
  CHECK(f.S(floordiv(floordiv(f.y, 2), 4)) == "y//8");
  CHECK(f.S(floormod(floormod(f.y, 12), 4)) == "y%4");
  CHECK(f.S(floordiv(f.y, 16)) == "0");
  CHECK(f.S(floordiv(f.y - 16, 16)) == "-1");
  CHECK(f.S(floordiv(f.x * 6 + 3, 2)) == "x*3 + 1");
  CHECK(f.S(floormod(f.x * 6 + 3, 2)) == "1");
  // Through two reshapes and back.
  PrimExpr flat = f.x * 64 + f.y * 4 + f.z;
  CHECK(f.S(floordiv(flat, 32) * 32 + floormod(flat, 32)) == "x*64 + y*4 + z");
  CHECK(f.S(floormod(floordiv(f.y, 4), 2) * 4 + floormod(f.y, 4)) == "y%8");
}

TEST_CASE("arith: proofs by bounds and assumptions") {
  Fixture f;
  CHECK(f.a.CanProve(f.x * 16 + f.y < 128));
  CHECK_FALSE(f.a.CanProve(f.x * 16 + f.y < 127));
  CHECK(f.a.CanProve(f.x - f.y > -16));
  Var n = tir::SizeVar("n"), i("i");
  f.a.Bind(i, 0, n);
  CHECK(f.a.CanProve(i < n));
  CHECK(f.a.CanProve(i + 1 <= n));
  CHECK_FALSE(f.a.CanProve(i + 1 < n));
  size_t mark = f.a.Assume(f.x >= 3 && f.y < f.x);
  CHECK(f.a.CanProve(f.x > 2));
  CHECK(f.a.CanProve(f.y + 1 <= f.x));
  f.a.Forget(mark);
  CHECK_FALSE(f.a.CanProve(f.x > 2));
  CHECK(f.S(if_then_else(f.x < 3, f.x * 0 + floordiv(f.x, 3), f.x)) == "if_then_else(x < 3, 0, x)");
}

TEST_CASE("arith: simplified index expressions keep their value") {
  // A small generator with a fixed seed: every expression over x, y, z is evaluated at all points.
  Fixture f;
  uint64_t seed = 12345;
  auto rnd = [&](uint64_t n) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (seed >> 33) % n;
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<PrimExpr> pool = {f.x, f.y, f.z, PrimExpr(static_cast<int64_t>(rnd(9)) - 4)};
    for (int k = 0; k < 8; ++k) {
      PrimExpr a = pool[rnd(pool.size())], b = pool[rnd(pool.size())];
      int64_t c = static_cast<int64_t>(rnd(12)) + 1;
      switch (rnd(9)) {
        case 0:
          pool.push_back(a + b);
          break;
        case 1:
          pool.push_back(a - b);
          break;
        case 2:
          pool.push_back(a * c);
          break;
        case 3:
          pool.push_back(floordiv(a, c));
          break;
        case 4:
          pool.push_back(floormod(a, c));
          break;
        case 5:
          pool.push_back(min(a, b));
          break;
        case 6:
          pool.push_back(max(a, b));
          break;
        case 7:
          pool.push_back(if_then_else(a < b, a, b - 1));
          break;
        default:
          pool.push_back(tir::Select(a >= b, a, floormod(b, c)));
          break;
      }
    }
    PrimExpr e = pool.back(), s = f.a.Simplify(e);
    arith::ConstIntBound bound = f.a.Bound(e);
    for (int64_t x = 0; x < 8; x += 3) {
      for (int64_t y = 0; y < 16; y += 5) {
        for (int64_t z = 0; z < 4; ++z) {
          tir::VarMap env{{f.x.get(), x}, {f.y.get(), y}, {f.z.get(), z}};
          int64_t want = Eval(f.a.Simplify(tir::Substitute(e, env)), {});
          CHECK_MESSAGE(Eval(f.a.Simplify(tir::Substitute(s, env)), {}) == want, tir::AsText(e), " -> ",
                        tir::AsText(s));
          CHECK(bound.min <= want);
          CHECK(want <= bound.max);
        }
      }
    }
  }
}
