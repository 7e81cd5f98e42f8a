// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/stmt.h>

#include "reference.h"

using namespace baton;
using namespace baton::te_test;
using te::Compute;
using te::Indices;
using te::placeholder;
using te::ReduceAxis;
using te::Sum;
using tir::IterVar;

namespace {
const DataType F32 = DataType::Float(32);

Array<PrimExpr> Dims(const std::vector<int64_t>& s) {
  Array<PrimExpr> a;
  for (int64_t d : s) a.push_back(d);
  return a;
}
/// softmax over the last axis, as its operator writes it.
Tensor Softmax(const Tensor& x) {
  int64_t last = x.ndim() - 1;
  PrimExpr n = x.shape()[last];
  Array<PrimExpr> rows(x.shape().begin(), x.shape().begin() + last);
  auto with = [&](Indices i, PrimExpr k) {
    Array<PrimExpr> at = i;
    at.push_back(k);
    return at;
  };
  auto row = [&](Indices i) {
    Array<PrimExpr> at = i;
    at.pop_back();
    return at;
  };
  IterVar k = ReduceAxis(0, n, "k"), k2 = ReduceAxis(0, n, "k2");
  Tensor m = Compute(rows, [&](Indices i) { return te::MaxOf(x(with(i, k->var)), {k}); }, "m");
  Tensor e = Compute(x.shape(), [&](Indices i) { return exp(x(i) - m(row(i))); }, "e");
  Tensor s = Compute(rows, [&](Indices i) { return Sum(e(with(i, k2->var)), {k2}); }, "s");
  return Compute(x.shape(), [&](Indices i) { return e(i) / s(row(i)); }, "softmax");
}
}  // namespace

TEST_CASE("te: elementwise chains become one loop of vectors") {
  for (auto shape : std::vector<std::vector<int64_t>>{
           {}, {1}, {3}, {16}, {17}, {100}, {4, 30}, {2, 3, 33}, {0, 4}, {1, 7, 7, 5}, {70, 130}}) {
    Tensor x = placeholder(Dims(shape), F32, "x"), y = placeholder(Dims(shape), F32, "y");
    Tensor a = Compute(Dims(shape), [&](Indices i) { return x(i) + y(i); }, "a");
    Tensor b = Compute(Dims(shape), [&](Indices i) { return a(i) * 0.5f * (1.0f + erf(a(i) * 0.70710678f)); }, "b");
    std::string text = CheckLowering({x, y}, {b});
    if (shape == std::vector<int64_t>{4, 30}) CHECK(text.find("i0_i1") != std::string::npos);  // joined axes
  }
}

TEST_CASE("te: broadcasts") {
  Tensor x = placeholder({5, 37}, F32, "x"), b = placeholder({37}, F32, "b"), c = placeholder({5, 1}, F32, "c");
  Tensor r =
      Compute({5, 37}, [&](Indices i) { return max(x(i) * c(i[0], PrimExpr(0)) + b(i[1]), te::Const(0, F32)); }, "r");
  CheckLowering({x, b, c}, {r});
}

TEST_CASE("te: softmax is one loop over rows") {
  for (auto shape :
       std::vector<std::vector<int64_t>>{{1}, {5}, {3, 7}, {2, 4, 16}, {2, 3, 100}, {40, 1000}, {3, 64}, {2, 65}}) {
    Tensor x = placeholder(Dims(shape), F32, "x");
    CheckLowering({x}, {Softmax(x)});
  }
}

TEST_CASE("te: layer normalisation with a fused addition") {
  for (int64_t n : {7, 64, 384}) {
    Array<PrimExpr> shape = {3, 5, n};
    Tensor x = placeholder(shape, F32, "x"), y = placeholder(shape, F32, "y"), g = placeholder({n}, F32, "g"),
           b = placeholder({n}, F32, "b");
    Tensor a = Compute(shape, [&](Indices i) { return x(i) + y(i); }, "add");
    IterVar k = ReduceAxis(0, n, "k"), k2 = ReduceAxis(0, n, "k2");
    Tensor sum = Compute({3, 5, 1}, [&](Indices i) { return Sum(a(i[0], i[1], k->var), {k}); }, "sum");
    Tensor mean =
        Compute({3, 5, 1}, [&](Indices i) { return sum(i) / te::Const(static_cast<double>(n), F32); }, "mean");
    Tensor d = Compute(shape, [&](Indices i) { return a(i) - mean(i[0], i[1], PrimExpr(0)); }, "d");
    Tensor var = Compute(
        {3, 5, 1}, [&](Indices i) { return Sum(d(i[0], i[1], k2->var) * d(i[0], i[1], k2->var), {k2}); }, "var");
    Tensor out = Compute(
        shape,
        [&](Indices i) {
          PrimExpr v = var(i[0], i[1], PrimExpr(0)) / te::Const(static_cast<double>(n), F32);
          return d(i) * rsqrt(v + te::Const(1e-5, F32)) * g(i[2]) + b(i[2]);
        },
        "out");
    std::string text = CheckLowering({x, y, g, b}, {out});
    // One nest: nothing of full size besides the arguments.
    CHECK(text.find("allocate sum: Buffer[(1)") != std::string::npos);
  }
}

TEST_CASE("te: reductions over any axes") {
  Tensor x = placeholder({3, 4, 50}, F32, "x");
  for (int mask = 1; mask < 8; ++mask) {
    Array<PrimExpr> shape, keep;
    std::vector<int64_t> dims = {3, 4, 50};
    Array<IterVar> axes;
    for (int d = 0; d < 3; ++d) {
      if (mask >> d & 1)
        axes.push_back(ReduceAxis(0, dims[static_cast<size_t>(d)], "k" + std::to_string(d)));
      else
        shape.push_back(dims[static_cast<size_t>(d)]);
    }
    auto at = [&](Indices i) {
      Array<PrimExpr> index;
      int64_t used = 0, reduced = 0;
      for (int d = 0; d < 3; ++d) {
        if (mask >> d & 1)
          index.push_back(axes[reduced++]->var);
        else
          index.push_back(i[used++]);
      }
      return index;
    };
    Tensor s = Compute(shape, [&](Indices i) { return Sum(x(at(i)), axes); }, "s");
    Tensor m = Compute(shape, [&](Indices i) { return te::MinOf(x(at(i)), axes); }, "m");
    CheckLowering({x}, {s});
    CheckLowering({x}, {m});
    CheckLowering({x}, {s, m});
  }
}

TEST_CASE("te: reductions of other types") {
  for (DataType t : {DataType::Int(8), DataType::Int(32), DataType::Int(64), DataType::Float(64), DataType::UInt(8)}) {
    Tensor x = placeholder({5, 70}, t, "x");
    IterVar k = ReduceAxis(0, 70, "k");
    Tensor m = Compute({5}, [&](Indices i) { return te::MaxOf(x(i[0], k->var), {k}); }, "m");
    CheckLowering({x}, {m}, 1e-5, t.is_uint() ? 0 : -3, 3);
  }
  Tensor b = placeholder({5, 70}, DataType::Bool(), "b");
  IterVar k = ReduceAxis(0, 70, "k");
  CheckLowering({b}, {Compute({5}, [&](Indices i) { return te::AnyOf(b(i[0], k->var), {k}); }, "any")});
  IterVar k2 = ReduceAxis(0, 70, "k");
  CheckLowering({b}, {Compute({5}, [&](Indices i) { return te::AllOf(b(i[0], k2->var), {k2}); }, "all")});
}

TEST_CASE("te: matrix products, plain and with an epilogue") {
  Tensor x = placeholder({7, 33}, F32, "x"), w = placeholder({20, 33}, F32, "w"), b = placeholder({20}, F32, "b");
  IterVar k = ReduceAxis(0, 33, "k");
  Tensor d = Compute({7, 20}, [&](Indices i) { return Sum(x(i[0], k->var) * w(i[1], k->var), {k}); }, "dense");
  Tensor r = Compute({7, 20}, [&](Indices i) { return max(d(i) + b(i[1]), te::Const(0, F32)); }, "relu");
  CheckLowering({x, w, b}, {r});
  Tensor y = placeholder({33, 40}, F32, "y");
  IterVar k2 = ReduceAxis(0, 33, "k");
  Tensor p = Compute({7, 40}, [&](Indices i) { return Sum(x(i[0], k2->var) * y(k2->var, i[1]), {k2}); }, "matmul");
  CheckLowering({x, y}, {p});
  // The operand is computed, and read once for each column: it is stored, not computed again.
  Tensor e = Compute({7, 33}, [&](Indices i) { return exp(x(i)); }, "e");
  IterVar k3 = ReduceAxis(0, 33, "k");
  Tensor q = Compute({7, 40}, [&](Indices i) { return Sum(e(i[0], k3->var) * y(k3->var, i[1]), {k3}); }, "matmul");
  CheckLowering({x, y}, {q});
}

TEST_CASE("te: pooling with padding, both layouts") {
  Tensor x = placeholder({2, 3, 11, 13}, F32, "x");
  IterVar h = ReduceAxis(0, 3, "h"), w = ReduceAxis(0, 3, "w");
  Tensor p = Compute(
      {2, 3, 6, 7},
      [&](Indices i) {
        PrimExpr r = i[2] * 2 + h->var - 1, c = i[3] * 2 + w->var - 1;
        return te::MaxOf(if_then_else(r >= 0 && r < 11 && c >= 0 && c < 13, x(i[0], i[1], r, c), lowest(F32)), {h, w});
      },
      "pool");
  CheckLowering({x}, {p});
  Tensor z = placeholder({1, 2, 9, 9, 16}, F32, "z");
  IterVar h2 = ReduceAxis(0, 3, "h"), w2 = ReduceAxis(0, 3, "w");
  Tensor q = Compute(
      {1, 2, 5, 5, 16},
      [&](Indices i) {
        PrimExpr r = i[2] * 2 + h2->var - 1, c = i[3] * 2 + w2->var - 1;
        return te::MaxOf(if_then_else(r >= 0 && r < 9 && c >= 0 && c < 9, z(i[0], i[1], r, c, i[4]), lowest(F32)),
                         {h2, w2});
      },
      "pool");
  CheckLowering({z}, {q});
}

TEST_CASE("te: moving elements: transpose, concatenate, pad, slice, gather, reshape, reverse") {
  Tensor x = placeholder({6, 20, 33}, F32, "x");
  CheckLowering({x}, {Compute({33, 6, 20}, [&](Indices i) { return x(i[1], i[2], i[0]); }, "t")});
  CheckLowering({x}, {Compute({6, 33, 20}, [&](Indices i) { return exp(x(i[0], i[2], i[1])); }, "t")});
  CheckLowering(
      {x}, {Compute({6, 660}, [&](Indices i) { return x(i[0], floordiv(i[1], 33), floormod(i[1], 33)) + 1.0f; }, "r")});
  CheckLowering({x}, {Compute(
                         {3, 40, 33},
                         [&](Indices i) {
                           PrimExpr f = (i[0] * 40 + i[1]) * 33 + i[2];
                           return x(floordiv(f, 660), floormod(floordiv(f, 33), 20), floormod(f, 33));
                         },
                         "r")});
  CheckLowering({x}, {Compute({6, 10, 11}, [&](Indices i) { return x(i[0], i[1] * 2 + 1, i[2] * 3); }, "s")});
  CheckLowering({x}, {Compute({6, 20, 16}, [&](Indices i) { return x(i[0], i[1], i[2] * 2); }, "s2")});
  CheckLowering({x}, {Compute({6, 20, 33}, [&](Indices i) { return x(i[0], i[1], 32 - i[2]); }, "rev")});
  CheckLowering({x}, {Compute(
                         {8, 24, 40},
                         [&](Indices i) {
                           PrimExpr in = i[0] >= 1 && i[0] < 7 && i[1] >= 2 && i[1] < 22 && i[2] >= 3 && i[2] < 36;
                           return if_then_else(in, x(i[0] - 1, i[1] - 2, i[2] - 3), te::Const(0.5, F32));
                         },
                         "pad")});
  // Layouts packed by 16 and back, of several element sizes.
  for (DataType t : {F32, DataType::Int(8), DataType::Float(64), DataType::Float(16), DataType::Bool()}) {
    Tensor a = placeholder({2, 32, 7, 9}, t, "a"), p = placeholder({2, 2, 7, 9, 16}, t, "p");
    CheckLowering(
        {a}, {Compute({2, 2, 7, 9, 16}, [&](Indices i) { return a(i[0], i[1] * 16 + i[4], i[2], i[3]); }, "pack")});
    CheckLowering(
        {p}, {Compute(
                 {2, 32, 7, 9}, [&](Indices i) { return p(i[0], floordiv(i[1], 16), i[2], i[3], floormod(i[1], 16)); },
                 "unpack")});
  }
  Tensor sq = placeholder({40, 50}, F32, "sq"), bias = placeholder({40}, F32, "bias");
  CheckLowering({sq, bias},
                {Compute({50, 40}, [&](Indices i) { return exp(sq(i[1], i[0])) + bias(i[1]) * sq(i[1], i[0]); }, "t")});
  Tensor u = placeholder({4, 30}, F32, "u"), v = placeholder({4, 50}, F32, "v"), w = placeholder({4, 1}, F32, "w");
  CheckLowering({u, v, w}, {Compute(
                               {4, 81},
                               [&](Indices i) {
                                 return if_then_else(i[1] < 30, u(i[0], i[1]),
                                                     if_then_else(i[1] < 80, v(i[0], i[1] - 30), w(i[0], i[1] - 80)));
                               },
                               "concat")});
  Tensor idx = placeholder({9}, DataType::Int(64), "idx");
  CheckLowering({x, idx},
                {Compute({9, 20, 33}, [&](Indices i) { return x(idx(i[0]), i[1], i[2]); }, "take")}, 1e-5, 0, 5);
  CheckLowering({x, idx},
                {Compute({6, 20, 9}, [&](Indices i) { return x(i[0], i[1], idx(i[2])); }, "take")}, 1e-5, 0, 32);
}

TEST_CASE("te: several results, results that others read, inputs as results") {
  Tensor x = placeholder({4, 50}, F32, "x");
  Tensor a = Compute({4, 50}, [&](Indices i) { return x(i) * 2.0f; }, "a");
  Tensor b = Compute({4, 50}, [&](Indices i) { return a(i) + 1.0f; }, "b");
  IterVar k = ReduceAxis(0, 50, "k");
  Tensor s = Compute({4}, [&](Indices i) { return Sum(b(i[0], k->var), {k}); }, "s");
  CheckLowering({x}, {a, b});
  CheckLowering({x}, {b, a, s});
  CheckLowering({x}, {x, a, a});
}

TEST_CASE("te: argmax by two values at once") {
  for (int64_t axis : {0, 1}) {
    Tensor x = placeholder({20, 40}, F32, "x");
    IterVar k = ReduceAxis(0, axis ? 40 : 20, "k");
    tir::Var i0("i0"), v1("v1", F32), v2("v2", F32), n1("n1"), n2("n2");
    tir::CommReducerNode c;
    c.lhs = {n1, v1}, c.rhs = {n2, v2};
    PrimExpr take = v2 > v1;
    c.result = {te::Select(take, n2, n1), te::Select(take, v2, v1)};
    c.identity_element = {PrimExpr(-1), lowest(F32)};
    tir::ReduceNode r;
    r.combiner = tir::CommReducer(std::move(c));
    r.axis = {k};
    r.source = {k->var, axis ? x(i0, k->var) : x(k->var, i0)};
    r.condition = IntImm(DataType::Bool(), 1);
    tir::ReduceNode r0 = r, r1 = r;
    r0.dtype = DataType::Int(64), r1.dtype = F32, r1.value_index = 1;
    Array<Tensor> out =
        te::ComputeMany({axis ? 20 : 40}, {i0}, {tir::Reduce(std::move(r0)), tir::Reduce(std::move(r1))}, "argmax");
    CheckLowering({x}, {out[0], out[1]});
    CheckLowering({x}, {out[0]});
  }
}

TEST_CASE("te: half floats are computed in float32") {
  for (DataType t : {DataType::Float(16), DataType::BFloat16()}) {
    Tensor x = placeholder({3, 70}, t, "x");
    Tensor e = Compute({3, 70}, [&](Indices i) { return exp(x(i)) * te::Const(0.5, t); }, "e");
    CheckLowering({x}, {e}, 1e-2);
    IterVar k = ReduceAxis(0, 70, "k");
    CheckLowering({x}, {Compute({3}, [&](Indices i) { return Sum(x(i[0], k->var), {k}); }, "s")}, 2e-2);
    CheckLowering({x}, {Compute({3, 70}, [&](Indices i) { return cast(DataType::Float(32), x(i)); }, "c")}, 0);
  }
}

TEST_CASE("te: types of every kind") {
  Tensor x = placeholder({3, 70}, DataType::Int(32), "x"), y = placeholder({3, 70}, DataType::Int(32), "y");
  CheckLowering({x, y}, {Compute({3, 70}, [&](Indices i) { return floordiv(x(i), y(i) + 5); }, "d")});
  CheckLowering({x, y}, {Compute({3, 70}, [&](Indices i) { return floormod(x(i), y(i) + 5); }, "m")});
  CheckLowering({x, y}, {Compute({3, 70}, [&](Indices i) { return x(i) < y(i); }, "lt")});
  CheckLowering(
      {x, y},
      {Compute(
          {3, 70}, [&](Indices i) { return te::Select(x(i) < y(i), cast(F32, x(i)), te::Const(0.25, F32)); }, "sel")});
  Tensor b = placeholder({3, 70}, DataType::Bool(), "b");
  CheckLowering({x, b}, {Compute({3, 70}, [&](Indices i) { return !b(i) || x(i) > 0; }, "or")});
  CheckLowering(
      {x},
      {Compute(
          {3, 70}, [&](Indices i) { return cast(DataType::Float(64), x(i)) * te::Const(0.1, DataType::Float(64)); },
          "f64")});
  // The position itself as a value.
  CheckLowering({x},
                {Compute({3, 70}, [&](Indices i) { return cast(F32, i[1] * 2 + i[0]) + cast(F32, x(i)); }, "iota")});
}

TEST_CASE("te: long chains and shared subexpressions stay small") {
  Tensor x = placeholder({64}, F32, "x");
  Tensor t = x;
  for (int i = 0; i < 200; ++i) {
    Tensor p = t;
    // Read twice each: written out, it would be 2^200 operations.
    t = Compute({64}, [&](Indices j) { return p(j) * 0.25f + p(j) * 0.25f; }, "t");
  }
  std::string text = CheckLowering({x}, {t});
  CHECK(text.size() < 40000);
}
