// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/diagnostic.h>
#include <baton/ir/structural.h>
#include <baton/relay/analysis.h>
#include <baton/relay/transform.h>
#include <baton/tir/expr.h>
#include <doctest/doctest.h>

#include "sample.h"

using namespace sample;  // NOLINT
using relay::transform::InferTypeOf;

namespace {
bool Has(const Expr& e, const Type& t) { return StructuralEqual(InferTypeOf(e), t); }
void Refused(const Expr& e, const char* what) {
  CHECK_THROWS_WITH_AS(InferTypeOf(e), doctest::Contains(what), CompileError);
}
Type Fn(Array<Type> args, Type ret) { return FuncType(Array<TypeVar>(), args, ret, Array<TypeConstraint>()); }
TensorType Bool() { return TensorType::Scalar(DataType::Bool()); }
IRModule Infer(const IRModule& m) { return InferModuleTypes(m); }
}  // namespace

TEST_CASE("AN-002 annotations, operators and structure give each expression its type") {
  Var x("x", F32({2, 1})), y("y", F32({3})), z("z"), c("c", Bool());
  CHECK(Has(Add(x, y), F32({2, 3})));
  CHECK(Has(Less(x, y), TensorType(Array<PrimExpr>{PrimExpr(int64_t{2}), PrimExpr(int64_t{3})}, DataType::Bool())));
  CHECK(Has(Let(z, Neg(x), Add(z, z)), F32({2, 1})));
  CHECK(Has(If(Expr(c), Neg(x), Expr(x)), F32({2, 1})));
  CHECK(Has(TupleGetItem(Invoke(SplitOp(), {x}), int64_t{1}), F32({2, 1})));
  CHECK(Has(Function({x}, Neg(x)), Fn({F32({2, 1})}, F32({2, 1}))));
  CHECK(Has(RefRead(RefCreate(Expr(x))), F32({2, 1})));
  CHECK(Has(RefWrite(RefCreate(Expr(x)), Expr(x)), TupleType::Empty()));
  CHECK(Has(Scalar(1), TensorType::Scalar(DataType::Float(32))));
  Expr inner = Neg(x), outer = Neg(inner);
  InferTypeOf(outer);
  CHECK(StructuralEqual(inner->checked_type(), F32({2, 1})));
}

TEST_CASE("what is not annotated follows from its use") {
  Var x("x", F32({2})), f("f"), p("p"), t("t");
  // The parameter's type comes from the call, after the body's operator was met.
  CHECK(Has(Let(f, Function({p}, Neg(p)), Invoke(f, {x})), F32({2})));
  Var q("q");
  CHECK(Has(Invoke(Function({q}, TupleGetItem(Invoke(SplitOp(), {q}), int64_t{0})), {x}), F32({2})));
  Var r("r");
  CHECK(Has(Invoke(Function({r}, TupleGetItem(Expr(r), int64_t{0})), {Tuple(Array<Expr>{x})}), F32({2})));
  // A closure that is called.
  Var g("g");
  CHECK(Has(Invoke(Function({g}, Invoke(g, {x})), {Function({t}, Neg(t))}), F32({2})));
}

TEST_CASE("polymorphic functions are instantiated at each call") {
  TypeVar a(String("A"), TypeKind::kType);
  Var v("v", a), id("id"), x("x", F32({2})), c("c", Bool());
  Function poly({v}, v, a, {a});
  Expr e = Let(id, poly, Tuple(Array<Expr>{Invoke(id, {x}), Invoke(id, {c})}));
  CHECK(Has(e, TupleType(Array<Type>{F32({2}), Bool()})));
}

TEST_CASE("recursion: local, global, mutual, with and without annotations") {
  Var x("x", F32({2})), n("n", Bool()), f("f");
  Var y("y"), m("m");
  CHECK(Has(Let(f, Function({y, m}, If(Expr(m), Invoke(f, {Neg(y), m}), Expr(y))), Invoke(f, {x, n})), F32({2})));
  GlobalVar even("even"), odd("odd"), main("main");
  Var a("a", F32({2})), p("p", Bool()), b("b"), q("q"), z("z", F32({2})), r("r", Bool());
  IRModule mod({{main, Function({z, r}, Invoke(even, {z, r}))},
                {even, Function({a, p}, If(Expr(p), Expr(a), Invoke(odd, {a, p})))},
                {odd, Function({b, q}, If(Expr(q), Neg(b), Invoke(even, {b, q})))}});
  IRModule out = Infer(mod);
  CHECK(StructuralEqual(out->Lookup("main")->checked_type(), Fn({F32({2}), Bool()}, F32({2}))));
  CHECK(StructuralEqual(out->Lookup("odd")->checked_type(), Fn({F32({2}), Bool()}, F32({2}))));
  CHECK(StructuralEqual(odd->checked_type(), Fn({F32({2}), Bool()}, F32({2}))));
}

TEST_CASE("data types: constructors, match, type parameters") {
  GlobalTypeVar list(String("List"), TypeKind::kAdtHandle);
  TypeVar a(String("A"), TypeKind::kType);
  ConstructorNode cn, nn;
  cn.name_hint = "Cons", cn.inputs = {a, TypeCall(list, Array<Type>{a})}, cn.belong_to = list;
  nn.name_hint = "Nil", nn.belong_to = list;
  Constructor cons(std::move(cn)), nil(std::move(nn));
  TypeDataNode data;
  data.header = list, data.type_vars = {a}, data.constructors = {cons, nil};
  IRModule mod({}, {{list, TypeData(std::move(data))}});
  Var x("x", F32({2})), h("h"), t("t");
  Expr l = Invoke(cons, {x, Invoke(nil, {})});
  CHECK(StructuralEqual(InferTypeOf(l, mod), TypeCall(list, Array<Type>{F32({2})})));
  Expr m = Match(l,
                 Array<Clause>{Clause(PatternConstructor(cons, Array<Pattern>{PatternVar(h), PatternVar(t)}), Neg(h)),
                               Clause(PatternConstructor(nil, Array<Pattern>()), Expr(x))},
                 true);
  CHECK(StructuralEqual(InferTypeOf(m, mod), F32({2})));
  Expr bad = Match(Expr(x), Array<Clause>{Clause(PatternConstructor(nil, Array<Pattern>()), Expr(x))}, true);
  CHECK_THROWS_WITH_AS(InferTypeOf(bad, mod), doctest::Contains("`Nil` makes List"), CompileError);
}

TEST_CASE("unknown dimensions agree with any; branches give the more general type") {
  TensorType dyn(Array<PrimExpr>{tir::AnyDim()}, DataType::Float(32));
  Var x("x", F32({2})), y("y", dyn), c("c", Bool());
  CHECK(Has(If(Expr(c), Expr(x), Expr(y)), dyn));
  CHECK(Has(If(Expr(c), Expr(y), Expr(x)), dyn));
  Var p("p", dyn);
  CHECK(Has(Invoke(Function({p}, Neg(p)), {x}), dyn));
}

TEST_CASE("AN-003 errors say what, where and what was got; several at once") {
  Var x("x", F32({2})), y("y", F32({3})), b("b", Bool()), t("t");
  Refused(Add(x, y), "[test.add R2]");
  Refused(Add(x, y), "lhs: Tensor[(2), float32], rhs: Tensor[(3), float32]");
  Refused(Scale(b, 2), "[test.scale R1] `data` has dtype bool");
  Refused(Invoke(NegOp(), {x, x}), "[test.neg] takes 1 argument (data), got 2");
  Refused(Invoke(ScaleOp(), {x}), "needs attributes of type `test.attrs.ScaleAttrs`, got none");
  Refused(If(Expr(x), Expr(x), Expr(x)), "must be bool");
  Refused(If(Expr(b), Expr(x), Expr(y)),
          "the branches of `if` have types Tensor[(2), float32] and Tensor[(3), float32]");
  Refused(TupleGetItem(Expr(x), int64_t{0}), "no tuple");
  Refused(TupleGetItem(Tuple(Array<Expr>{x}), int64_t{3}), "part 3 is taken of a tuple of 1");
  Refused(Invoke(x, {x}), "`%x` is called but is no function");
  Refused(Invoke(Function({y}, y), {x}),
          "argument 0 of `fn` has type Tensor[(2), float32], must be Tensor[(3), float32]");
  Refused(Invoke(Function({y}, y), {}), "takes 1 argument, got 0");
  Refused(Function({t}, t), "the type of `%t` does not follow");
  Refused(RefRead(Expr(x)), "a reference is wanted");
  Refused(Expr(NegOp()), "used as a value");
  Refused(GlobalVar("nope"), "no function @nope");
  Refused(Function({x}, Expr(x), F32({3})), "declared to return");
  Refused(Let(Var("v", F32({5})), Expr(x), Expr(x)), "`%v` is declared as Tensor[(5), float32]");
  Refused(Tuple(Array<Expr>{Add(x, y), Scale(b, 2)}), "[test.scale R1]");
  Refused(Tuple(Array<Expr>{Neg(Neg(Add(x, y))), Scale(b, 2)}), "[test.add R2]");
  Refused(Call(Expr(Op::GetOrCreate("test.unknown")), Array<Expr>{x}, Attrs(), Array<Type>()), "no type relation");
  Refused(Neg(Expr()), "null");
  Var self("self");
  Refused(Function({self}, Invoke(self, {self})), "called with itself");
  CHECK_THROWS_WITH(Infer(IRModule({{GlobalVar("f"), Function({x, y}, Add(x, y))}})), doctest::Contains("in @f"));
}

TEST_CASE("typed nodes stay; what changed below gets new types, shared old nodes keep theirs (IR-018)") {
  Var x("x", F32({2}));
  Function f({x}, Neg(Neg(x)));
  IRModule one = Infer(IRModule::FromExpr(f));
  CHECK(Infer(one).same_as(one));
  // A let whose value gets another type: the variable and what uses it are copied.
  Var v("v"), y("y", F32({2})), z("z", F32({5}));
  Expr body = Neg(v);
  Function g({y}, Let(v, Neg(y), body));
  Infer(IRModule::FromExpr(g));
  Function h({z}, Let(v, Neg(z), body));
  IRModule two = Infer(IRModule::FromExpr(h));
  CHECK(StructuralEqual(two->Lookup("main")->checked_type(), Fn({F32({5})}, F32({5}))));
  CHECK(StructuralEqual(body->checked_type(), F32({2})));
  CHECK(StructuralEqual(v->checked_type(), F32({2})));
  // What a function returns is written into it, once it is known; nothing else changes.
  const auto* typed = two->Lookup("main").as<FunctionNode>();
  CHECK(StructuralEqual(typed->ret_type, F32({5})));
  CHECK(StructuralEqual(Function(typed->params, typed->body), h));
  CHECK_FALSE(h->ret_type.defined());
  // A callee that changed its type.
  GlobalVar callee("callee"), main("main");
  Var p("p", F32({2})), q("q", F32({2}));
  IRModule before = Infer(IRModule({{callee, Function({p}, Neg(p))}, {main, Function({q}, Invoke(callee, {q}))}}));
  Var w("w", F32({2}));
  IRModule after = before.Copy();
  const auto* caller = before->Lookup("main").as<FunctionNode>();
  after.CopyOnWrite()->Update(main, Function(caller->params, caller->body));
  after.CopyOnWrite()->Update(callee, Function({w}, Less(w, w)));
  after = Infer(after);
  CHECK(StructuralEqual(Downcast<Function>(after->Lookup("main"))->body->checked_type(),
                        TensorType(Array<PrimExpr>{PrimExpr(int64_t{2})}, DataType::Bool())));
  CHECK(StructuralEqual(Downcast<Function>(before->Lookup("main"))->body->checked_type(), F32({2})));
}

TEST_CASE("a million deep") {
  constexpr int n = 1'000'000;
  Var x("x", F32({2})), c("c", Bool());
  OnStack(size_t{512} << 10, [&] {
    for (Expr e : {CallChain(x, n), LetChain(x, n), TupleChain(x, n / 5), IfChain(c, x, n / 5)})
      CHECK(Has(e, F32({2})));
  });
}
