// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "relay/kernel/plan.h"
#include "run.h"

using namespace baton;
using namespace baton::kernel_test;

namespace {
Expr Dense(Expr x, Expr w) { return relay::MakeCall(relay::op::dense, {x, w}, relay::MakeAttrs<relay::DenseAttrs>()); }
Expr DensePack(Expr x, Expr w, int64_t units) {
  return relay::MakeCall(relay::op::dense_pack, {x, w},
                         relay::MakeAttrs<relay::DenseAttrs>([&](auto* a) { a->units = PrimExpr(units); }));
}
Expr Batched(Expr a, Expr b, bool ta, bool tb) {
  return relay::MakeCall(relay::op::batch_matmul, {a, b}, relay::MakeAttrs<relay::BatchMatmulAttrs>([&](auto* x) {
                           x->transpose_a = ta, x->transpose_b = tb;
                         }));
}
Expr Matmul(Expr a, Expr b, bool ta, bool tb) {
  return relay::MakeCall(relay::op::matmul, {a, b}, relay::MakeAttrs<relay::MatmulAttrs>([&](auto* x) {
                           x->transpose_a = ta, x->transpose_b = tb;
                         }));
}
Expr Relu(Expr x) { return relay::Maximum(x, relay::MakeScalar(0, DataType::Float(32))); }
}  // namespace

TEST_CASE("kernel: dense of many shapes") {
  for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                            {1, 16, 3},
                                                            {2, 17, 5},
                                                            {7, 48, 16},
                                                            {8, 48, 33},
                                                            {9, 49, 31},
                                                            {3, 1, 40},
                                                            {31, 100, 20},
                                                            {1, 130, 70},
                                                            {16, 96, 48},
                                                            {50, 50, 50}}) {
    Var x = Input("x", {m, k}), w = Input("w", {n, k});
    Check({x, w}, Dense(x, w));
  }
}

TEST_CASE("kernel: dense with a long sum is cut into blocks") {
  Var x = Input("x", {40, 700}), w = Input("w", {70, 700}), b = Input("b", {70});
  Check({x, w, b}, Relu(relay::Add(Dense(x, w), b)));
}

TEST_CASE("kernel: dense without elements") {
  Var x = Input("x", {3, 0}), w = Input("w", {20, 0});
  Check({x, w}, Dense(x, w));
  Var y = Input("y", {0, 4}), v = Input("v", {20, 4});
  Check({y, v}, Dense(y, v));
}

TEST_CASE("kernel: dense with weights in panels") {
  for (int64_t columns : {16, 48, 64}) {
    for (auto [m, n, k] :
         std::vector<std::array<int64_t, 3>>{{1, 10, 20}, {8, 96, 32}, {13, 100, 17}, {30, 65, 64}, {5, 130, 7}}) {
      Var x = Input("x", {2, m, k}), w = Input("w", {(n + columns - 1) / columns, k, columns}), b = Input("b", {n}),
          r = Input("r", {2, m, n});
      Check({x, w}, DensePack(x, w, n), 1e-4, true, n == 65);
      Check({x, w, b, r}, relay::Add(Relu(relay::Add(DensePack(x, w, n), b)), r));
    }
  }
}

TEST_CASE("kernel: products of bytes are exact sums, four terms a step") {
  const DataType u8 = DataType::UInt(8), i8 = DataType::Int(8);
  for (int64_t columns : {16, 48}) {
    for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 10, 4}, {8, 96, 32}, {13, 100, 20}, {40, 65, 1024}}) {
      Var x = Input("x", {m, k}, u8), w = Input("w", {(n + columns - 1) / columns, k / 4, columns, 4}, i8),
          b = Input("b", {n});
      Check({x, w}, DensePack(x, w, n), 0, true, n == 100);
      Expr scaled = relay::Multiply(relay::Cast(DensePack(x, w, n), DataType::Float(32)), b);
      Check({x, w, b}, scaled, 1e-6);
    }
  }
}

TEST_CASE("kernel: a long epilogue is a loop over a tile's rows") {
  Var x = Input("x", {21, 30}), w = Input("w", {3, 30, 48}), b = Input("b", {130});
  Expr y = relay::Add(DensePack(x, w, 130), b);
  Expr half = relay::MakeScalar(0.5, DataType::Float(32)), one = relay::MakeScalar(1, DataType::Float(32)),
       s = relay::MakeScalar(0.70710678, DataType::Float(32));
  Expr gelu = relay::Multiply(relay::Multiply(y, half),
                              relay::Add(relay::MakeCall(Op::Get("erf"), {relay::Multiply(y, s)}), one));
  Check({x, w, b}, gelu);
}

TEST_CASE("kernel: batched products, each side transposed or not") {
  for (int t = 0; t < 4; ++t) {
    bool ta = t & 1, tb = t & 2;
    for (auto [b, m, n, k] : std::vector<std::array<int64_t, 4>>{
             {3, 5, 7, 9}, {2, 20, 33, 32}, {1, 17, 64, 40}, {4, 32, 32, 16}, {2, 1, 50, 35}}) {
      Var x = Input("x", ta ? std::vector<int64_t>{b, k, m} : std::vector<int64_t>{b, m, k});
      Var y = Input("y", tb ? std::vector<int64_t>{b, n, k} : std::vector<int64_t>{b, k, n});
      Check({x, y}, Batched(x, y, ta, tb), 1e-4, true, n == 33);
      Var mask = Input("mask", {1, 1, n});
      Check({x, y, mask},
            relay::Add(relay::Multiply(Batched(x, y, ta, tb), relay::MakeScalar(0.25, DataType::Float(32))), mask));
    }
  }
}

TEST_CASE("kernel: long rows of a product are packed") {
  Var x = Input("x", {40, 33}), y = Input("y", {33, 530});
  Check({x, y}, Matmul(x, y, false, false));
}

TEST_CASE("kernel: products with batches that broadcast") {
  struct Case {
    std::vector<int64_t> a, b;
  };
  for (const Case& c : std::vector<Case>{{{2, 3, 4, 5}, {5, 6}},
                                         {{2, 1, 4, 5}, {3, 5, 6}},
                                         {{3, 4, 5}, {2, 3, 5, 6}},
                                         {{1, 4, 5}, {3, 5, 20}},
                                         {{2, 3, 1, 4, 5}, {1, 3, 2, 5, 18}}}) {
    Var x = Input("x", c.a), y = Input("y", c.b);
    Check({x, y}, Matmul(x, y, false, false));
  }
}

TEST_CASE("kernel: products of float64") {
  Var x = Input("x", {9, 20}, DataType::Float(64)), w = Input("w", {30, 20}, DataType::Float(64));
  Check({x, w}, Dense(x, w), 1e-12);
}

TEST_CASE("kernel: the plan keeps its tiles in registers and gives each core its share") {
  relay::kernel::Machine mc;
  for (int64_t m : {1, 3, 8, 49, 128, 197, 1000}) {
    for (int64_t n : {1, 32, 384, 1000, 1536}) {
      for (int64_t k : {1, 64, 384, 4096}) {
        relay::kernel::MatmulPlan p = relay::kernel::PlanMatmul(mc, {1, m, n, k, true});
        CHECK(p.rows * p.vectors + 1 <= mc.registers);
        CHECK(p.k_block >= 1);
        CHECK(p.rows <= m);
      }
    }
  }
  // The feed-forward product of a small transformer: eight rows or more by three vectors, panels for both cores.
  relay::kernel::MatmulPlan p = relay::kernel::PlanMatmul(mc, {1, 128, 1536, 384, true});
  CHECK(p.rows * p.vectors >= 24);
}
