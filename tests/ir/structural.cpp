// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/tir/expr.h>
#include <doctest/doctest.h>

#include <cmath>

#include "../relay/sample.h"

using namespace sample;  // NOLINT

namespace {
bool Eq(const ObjectRef& a, const ObjectRef& b, bool free = false) {
  bool same = StructuralEqual(a, b, free);
  CHECK(same == StructuralEqual(b, a, free));
  if (same) CHECK(StructuralHash(a, free) == StructuralHash(b, free));
  return same;
}
std::string Where(const ObjectRef& a, const ObjectRef& b) {
  std::string w;
  CHECK(!StructuralEqual(a, b, false, &w));
  return w;
}
Function Sample(const char* name, double factor) {
  Var x(name, F32({2})), y("y");
  return Function({x}, Let(y, Scale(x, factor), Add(y, x)));
}
}  // namespace

TEST_CASE("RF-014 bound variables up to renaming, free ones by themselves or mapped") {
  CHECK(Eq(Sample("x", 2), Sample("other", 2)));
  CHECK(!Eq(Sample("x", 2), Sample("x", 3)));
  Var a("a"), b("a");
  CHECK(!Eq(a, b));
  CHECK(Eq(a, b, true));
  CHECK(Eq(Add(a, a), Add(a, a)));
  CHECK(!Eq(Add(a, b), Add(a, a), true));
  CHECK(!Eq(Add(a, a), Add(a, b), true));
  CHECK(!Eq(Function({a}, a), Function({a}, b)));
  CHECK(!Eq(Function({a, b}, Add(a, b)), Function({a, b}, Add(b, a))));
  // A variable that is bound on one side only.
  CHECK(!Eq(Function({a}, b), Function({b}, b)));
  CHECK(!Eq(Var("a", F32({1})), Var("a", F32({2})), true));
}

TEST_CASE("recursive let, by name of the variable that it binds") {
  auto make = [](const char* name) {
    Var f(name), x("x");
    return Let(f, Function({x}, Invoke(f, {x})), Expr(f));
  };
  CHECK(Eq(make("f"), make("g")));
}

TEST_CASE("expressions are graphs, values are trees") {
  Var x("x");
  auto shared = [&] {
    Expr n = Neg(x);
    return Expr(Tuple(Array<Expr>{n, n}));
  };
  Expr twice = Tuple(Array<Expr>{Neg(x), Neg(x)});
  CHECK(Eq(shared(), shared()));
  CHECK(!Eq(shared(), twice));
  CHECK(Eq(twice, Tuple(Array<Expr>{Neg(x), Neg(x)})));
  Expr one = Scalar(1);
  CHECK(Eq(Tuple(Array<Expr>{one, one}), Tuple(Array<Expr>{Scalar(1), Scalar(1)})));
  Type t = F32({2});
  CHECK(Eq(TupleType(Array<Type>{t, t}), TupleType(Array<Type>{F32({2}), F32({2})})));
  Expr unit = Tuple(Array<Expr>());
  CHECK(Eq(Tuple(Array<Expr>{unit, unit}), Tuple(Array<Expr>{Tuple(Array<Expr>()), Tuple(Array<Expr>())})));
}

TEST_CASE("function types and loop expressions with binders hash alike however they are shared") {
  auto make = [] {
    TypeVar t(String("T"), TypeKind::kType);
    return Type(FuncType(Array<TypeVar>{t}, Array<Type>{t}, t, Array<TypeConstraint>()));
  };
  Type f = make();
  CHECK(Eq(TupleType(Array<Type>{f, f}), TupleType(Array<Type>{make(), make()})));
  TypeVar outer(String("U"), TypeKind::kType), outer2(String("V"), TypeKind::kType);
  CHECK(Eq(FuncType(Array<TypeVar>{outer}, Array<Type>{f, f}, outer, Array<TypeConstraint>()),
           FuncType(Array<TypeVar>{outer2}, Array<Type>{make(), make()}, outer2, Array<TypeConstraint>())));
}

TEST_CASE("globals by name, modules by function name, arrays and numbers by content") {
  CHECK(Eq(GlobalVar("f"), GlobalVar("f")));
  CHECK(!Eq(GlobalVar("f"), GlobalVar("g")));
  Function f = Sample("x", 2);
  IRModule one({{GlobalVar("a"), f}, {GlobalVar("b"), f}});
  IRModule two({{GlobalVar("b"), Sample("z", 2)}, {GlobalVar("a"), Sample("y", 2)}});
  CHECK(Eq(one, two));
  CHECK(!Eq(one, IRModule({{GlobalVar("a"), f}})));
  CHECK(!Eq(one, IRModule({{GlobalVar("a"), f}, {GlobalVar("c"), f}})));
  CHECK(!Eq(Scalar(1), Scalar(2)));
  CHECK(!Eq(Scalar(0.f), Scalar(-0.f)));
  auto fl = [](double v) { return FloatImm(DataType::Float(64), v); };
  CHECK(Eq(fl(NAN), fl(-NAN)));
  CHECK(!Eq(fl(0.0), fl(-0.0)));
  CHECK(!Eq(IntImm(DataType::Int(32), 1), IntImm(DataType::Int(64), 1)));
}

TEST_CASE("maps whatever their order, null as empty") {
  Map<String, Any> a{{"x", Any(1)}, {"y", Any("s")}}, b{{"y", Any("s")}, {"x", Any(1)}};
  CHECK(Eq(a, b));
  CHECK(Eq(DictAttrs(a), DictAttrs(b)));
  b.Set("z", Any(2.5));
  CHECK(!Eq(a, b));
  CHECK(Eq(Array<Any>(), ObjectRef()));
  CHECK(Eq(Array<Any>{Any(true)}, Array<Any>{Any(1)}));
  CHECK(!Eq(Array<Any>{Any(1.0)}, Array<Any>{Any(1)}));
  CHECK(!Eq(Array<Any>{Any("1")}, Array<Any>{Any(1)}));
}

TEST_CASE("loop expressions with bound variables") {
  auto make = [](const char* n) {
    tir::Var i(String(n), DataType::Int(64));
    return PrimExpr(tir::Let(i, PrimExpr(int64_t{3}), tir::Add(i, tir::Mul(i, i))));
  };
  CHECK(Eq(make("i"), make("j")));
}

TEST_CASE("RF-015 where two values differ") {
  CHECK(Where(Sample("x", 2), Sample("x", 3)) == ".body.value.attrs.factor: 2 against 3");
  CHECK(Where(IRModule::FromExpr(Sample("x", 2)), IRModule::FromExpr(Sample("x", 3))) ==
        ".functions[@main].body.value.attrs.factor: 2 against 3");
  Var x("x"), y("y");
  CHECK(Where(Add(x, y), Add(x, x)) == ".args[1]: %y against %x");
  CHECK(Where(Neg(x), Add(x, x)) == ".op: test.neg against test.add");
  CHECK(Where(F32({2}), F32({3})) == ".shape[0].value: 2 against 3");
  Expr n = Neg(x);
  CHECK(Where(Add(n, n), Add(Neg(x), Neg(x))).find("used twice on the left") != std::string::npos);
  CHECK(Where(IRModule::FromExpr(Sample("x", 2)), IRModule(Map<GlobalVar, BaseFunc>())) ==
        ".functions[@main]: missing on the right");
}

TEST_CASE("a million deep, and wide with sharing, in linear time") {
  constexpr int n = 1'000'000;
  Var x("x"), y("y"), c("c");
  OnStack(size_t{512} << 10, [&] {
    CHECK(Eq(Function({x}, CallChain(x, n)), Function({y}, CallChain(y, n))));
    CHECK(Eq(Function({x}, LetChain(x, n)), Function({y}, LetChain(y, n))));
    CHECK(Eq(Function({x, c}, IfChain(c, x, n / 5)), Function({y, c}, IfChain(c, y, n / 5))));
    CHECK(!Eq(Function({x}, CallChain(x, n / 5)), Function({y}, CallChain(y, n / 5 - 1))));
    Type t = F32({1}), u = F32({1});
    for (int i = 0; i < 200; ++i) t = TupleType(Array<Type>{t, t}), u = TupleType(Array<Type>{u, u});
    CHECK(Eq(t, u));
  });
}
