// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/op.h>
#include <baton/tir/printer.h>
#include <baton/tir/verify.h>
#include <doctest/doctest.h>

#include <limits>

using namespace baton;
using namespace baton::tir;

TEST_CASE("tir: operators fold literals and match dtypes") {
  Var x("x"), f("f", DataType::Float(32)), b("b", DataType::Int(8));
  CHECK(AsText(x + 0) == "x");
  CHECK(AsText(x * 1 + 2 * 3) == "x + 6");
  CHECK(AsText(f * 2) == "f*2f");
  CHECK(AsText(f + 1.5f) == "f + 1.5f");
  CHECK(AsText(cast(DataType::Int(64), b) + x) == "int64(b) + x");
  CHECK(AsText(b + x) == "int64(b) + x");
  CHECK(AsText(floordiv(PrimExpr(-7), 2)) == "-4");
  CHECK(AsText(truncdiv(PrimExpr(-7), 2)) == "-3");
  CHECK(AsText(floormod(PrimExpr(-7), 2)) == "1");
  CHECK(AsText(make_int(DataType::Int(8), 100) + make_int(DataType::Int(8), 100)) == "int8(-56)");
  CHECK(AsText((x + 1) * 2 - x) == "(x + 1)*2 - x");
  CHECK(AsText(x - (x - 1)) == "x - (x - 1)");
  CHECK_THROWS_AS(x / 2, runtime::TypeError);
  CHECK_THROWS_AS(Add(x, f), runtime::TypeError);
  CHECK_THROWS_AS(x && (x < 1), runtime::TypeError);
  // A division by a literal zero stays for the run time.
  CHECK(AsText(floordiv(x * 0 + 1, 0)) == "1//0");
}

TEST_CASE("tir: index vectors stay ramps") {
  Var x("x");
  PrimExpr r = Ramp(x, 1, 16);
  CHECK(AsText(r + 4) == "(x + 4):16");
  CHECK(AsText(r * 3) == "ramp(x*3, 3, 16)");
  CHECK(AsText(r * 2 + Ramp(PrimExpr(0), 1, 16)) == "ramp(x*2, 3, 16)");
}

TEST_CASE("tir: equality and hash of expressions") {
  Var x("x"), y("y");
  CHECK(ExprDeepEqual(x * 2 + y, x * 2 + y));
  CHECK(ExprHash(x * 2 + y) == ExprHash(x * 2 + y));
  CHECK_FALSE(ExprDeepEqual(x * 2 + y, y * 2 + x));
  CHECK_FALSE(ExprDeepEqual(make_const(DataType::Float(32), 0.0), make_const(DataType::Float(32), -0.0)));
  CHECK(ExprDeepEqual(make_const(DataType::Float(32), std::numeric_limits<double>::quiet_NaN()),
                      make_const(DataType::Float(32), std::numeric_limits<double>::quiet_NaN())));
}

TEST_CASE("tir: a million operators deep") {
  Var x("x");
  PrimExpr e = x;
  for (int i = 0; i < 1000000; ++i) e = Add(Mul(e, x), x);
  Var y("y");
  PrimExpr r = Substitute(e, VarMap{{x.get(), y}});
  CHECK(UsesVar(r, y.get()));
  CHECK_FALSE(UsesVar(r, x.get()));
  CHECK(ExprDeepEqual(e, Substitute(r, VarMap{{y.get(), x}})));
}

TEST_CASE("tir: text and well-formedness of a function") {
  Buffer a = Buffer::Make({16, 4}, DataType::Float(32), "A"), c = Buffer::Make({64}, DataType::Float(32), "C");
  Var pa("a", DataType::Handle()), pc("c", DataType::Handle()), i("i"), j("j");
  Stmt store = BufferStore(BufferStoreNode{.buffer = c, .value = BufferLoad(a, {i, j}) * 2.0f, .indices = {i * 4 + j}});
  Stmt inner = For(ForNode{.loop_var = j, .min = 0, .extent = 4, .kind = ForKind::kSerial, .body = store});
  Stmt outer = For(ForNode{.loop_var = i, .min = 0, .extent = 16, .kind = ForKind::kParallel, .body = inner});
  PrimFunc f({pa, pc}, outer, {{pa, a}, {pc, c}});
  f = WithAttr(f, attr::kGlobalSymbol, String("scale"));
  CHECK(AsText(f) ==
        "def @scale(A: Buffer[(16, 4), float32], C: Buffer[(64), float32]) {\n"
        "  for i in parallel [0, 16) {\n"
        "    for j in [0, 4) {\n"
        "      C[i*4 + j] = A[i, j]*2f\n"
        "    }\n"
        "  }\n"
        "}\n");
  CHECK(CheckWellFormed(f) == "");
  PrimFunc unbound({pa, pc}, inner, {{pa, a}, {pc, c}});
  CHECK(CheckWellFormed(unbound) == "variable `i` is used where it is not bound");
  CHECK_THROWS_AS(BufferLoad(a, {i}), runtime::TypeError);
  CHECK_THROWS_AS(BufferLoad(c, {cast(DataType::Float(32), i)}), runtime::TypeError);
}

TEST_CASE("tir: what a mutator makes keeps the span, variables and literals take none") {
  Span first(SourceName(String("model.relay")), 3, 1, 3, 9), second(SourceName(String("model.relay")), 4, 1, 4, 9);
  Buffer buffer = Buffer::Make({PrimExpr(8)}, DataType::Float(32), "buffer");
  Var i("i"), x("x", DataType::Float(32));
  PrimExpr inner = x * 2.0f, outer = inner + BufferLoad(buffer, {i});
  inner->span = first;
  outer->span = second;
  BufferStoreNode node;
  node.buffer = buffer, node.indices = {i}, node.value = outer;
  Stmt store = BufferStore(std::move(node));
  store->span = second;
  // Another value for x makes new nodes all the way up; a literal in place of i folds nothing away.
  Var y("y", DataType::Float(32));
  Stmt out = Substitute(store, VarMap{{x.get(), y}, {i.get(), PrimExpr(3)}});
  REQUIRE(!out.same_as(store));
  CHECK(out->span.same_as(second));
  const auto* sum = out.as<BufferStoreNode>()->value.as<AddNode>();
  REQUIRE(sum);
  CHECK(sum->span.same_as(second));
  CHECK(sum->a->span.same_as(first));
  CHECK(!sum->a.as<MulNode>()->a->span.defined());
  // A node that has a span keeps its own.
  PrimExpr marked = y + 1.0f;
  marked->span = first;
  PrimExpr put = Substitute(outer, VarMap{{x.get(), marked}});
  CHECK(put.as<AddNode>()->a.as<MulNode>()->a->span.same_as(first));
  MarkSpan(y, first);
  CHECK(!y->span.defined());
}
