// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/analysis.h>
#include <baton/relay/text.h>
#include <baton/tir/expr.h>
#include <doctest/doctest.h>

#include "sample.h"

using namespace sample;  // NOLINT

namespace {
bool Good(const char* text) {
  Register();
  std::string problems;
  bool ok = WellFormed(ParseModule(text), &problems);
  CHECK_MESSAGE(problems.empty() == ok, problems);
  return ok;
}
void Bad(const ObjectRef& obj, const char* what) {
  std::string problems;
  CHECK(!(obj.as<IRModuleNode>() ? WellFormed(Downcast<IRModule>(obj), &problems)
                                 : WellFormed(Downcast<Expr>(obj), &problems)));
  CHECK_MESSAGE(problems.find(what) != std::string::npos, problems);
}
}  // namespace

TEST_CASE("the verifier accepts what the language allows") {
  CHECK(
      Good("def @main(%x: float32) { let %y = test.neg(%x); %0 = test.neg(%y); if (True) { %0 } else { test.add(%0, "
           "%y) } }"));
  CHECK(Good("def @main(%x: float32) { let %f = fn (%y: float32) { %f(%y) }; %f(%x) }"));
  CHECK(Good("type L { C(float32, L), N, }\ndef @main(%l: L) { match (%l) { C(%h, %t) => %h, N => 1f, } }"));
  Var x("x");
  CHECK(WellFormed(Neg(x)));  // an expression may have free variables
}

TEST_CASE("reliability figure 33: each fault is named") {
  // tests/tools/test_verifier_rules.py reads this case: each rule of the verifier has its message here.
  Var x("x"), y("y"), c("c"), v("v", F32({-1}));
  Expr n = Neg(y);
  Bad(IRModule::FromExpr(Function({x}, n)), "@main: %y is used but bound nowhere");
  Bad(Let(x, Scalar(1), Let(x, Scalar(2), Expr(x))), "%x is bound twice; each variable object is bound once");
  Bad(Function({x, x}, Expr(x)), "%x is bound twice");
  Bad(Tuple(Array<Expr>{Let(y, Scalar(1), n), n}), "%y is used outside of its scope");
  Bad(If(Expr(c), Let(y, Scalar(1), Expr(y)), Expr(y)), "%y is used outside of its scope");
  Bad(Let(y, Neg(y), Expr(y)), "%y is used outside of its scope");
  Bad(Neg(Expr()), "`relay.Call` has a part that is missing (null)");
  Bad(Invoke(NegOp(), {x, x}), "`test.neg` takes 1 arguments, has 2");
  Bad(Invoke(ScaleOp(), {x}), "`test.scale` has attributes of type none, must be test.attrs.ScaleAttrs");
  Bad(Function({v}, Expr(v)), "a dimension is -1");
  Bad(Function({Var("v", TensorType(Array<PrimExpr>{IntImm(DataType::Int(32), 2)}, DataType::Float(32)))}, Scalar(1)),
      "a dimension has dtype int32, must be int64");
  Bad(IRModule::FromExpr(Function(Array<Var>(), Invoke(GlobalVar("nope"), {}))), "there is no function @nope");
  Bad(TupleGetItem(Expr(x), int64_t{-1}), "a part of a tuple has a negative number");
  Bad(Constant(NDArray()), "a constant has no data");
  Bad(Expr(), "the expression is missing (null)");
  std::string problems;
  CHECK_FALSE(WellFormed(IRModule(), &problems));
  CHECK(problems == "the module is missing (null)");
  Bad(Let(Var(), Scalar(1), Scalar(2)), "a variable is missing (null)");
  Bad(Function({Var()}, Scalar(2)), "a variable is missing (null)");
  Bad(Function({Var("v", TupleType(Array<Type>{F32({2}), Type()}))}, Scalar(1)),
      "a type has a part that is missing (null)");
  Bad(Function({Var("v", TensorType(Array<PrimExpr>{PrimExpr()}, DataType::Float(32)))}, Scalar(1)),
      "a dimension is missing (null)");
  Var nobody("v");
  const_cast<VarNode*>(nobody.get())->vid = Id();
  Bad(Function({nobody}, Scalar(1)), "a variable has no identity");
  Bad(Match(x, Array<Clause>{Clause()}, true), "a clause or pattern is missing (null)");
  const GlobalTypeVar data(String("Nope"), TypeKind::kAdtHandle);
  Bad(IRModule::FromExpr(Function({Var("v", TypeCall(data, Array<Type>()))}, Scalar(1))),
      "the module has no data type `Nope`");
  IRModule twice = IRModule::FromExpr(Function(Array<Var>(), Scalar(1)));
  twice.CopyOnWrite()->functions.Set(GlobalVar("main"), Function(Array<Var>(), Scalar(2)));
  Bad(twice, "@main: two functions have this name");
  IRModule none = IRModule::FromExpr(Function(Array<Var>(), Scalar(1)));
  none.CopyOnWrite()->functions.Set(GlobalVar("none"), BaseFunc());
  Bad(none, "@none: the function is missing (null)");
  IRModule nothing = IRModule::FromExpr(Function(Array<Var>(), Scalar(1)));
  nothing.CopyOnWrite()->type_definitions.Set(data, TypeData());
  Bad(nothing, "the data type `Nope` is missing or has another name");
}

TEST_CASE("type variables and counts") {
  TypeVar a(String("A"), TypeKind::kType), b(String("B"), TypeKind::kType);
  Var x("x", a), y("y", b);
  Function f({x}, Add(x, y), a, {a});
  REQUIRE(FreeTypeVars(f).size() == 1);
  CHECK(FreeTypeVars(f)[0].same_as(b));
  CHECK(BoundTypeVars(f)[0].same_as(a));
  CHECK(AllTypeVars(f).size() == 2);
  CHECK(CountNodes(f) == 5);
  CHECK(CountOps(IRModule::FromExpr(f)).at("test.add") == 1);
}

TEST_CASE("a million deep") {
  Var x("x"), c("c");
  OnStack(size_t{512} << 10, [&] {
    CHECK(WellFormed(LetChain(x, 1'000'000)));
    CHECK(WellFormed(IfChain(c, x, 200'000)));
  });
}
