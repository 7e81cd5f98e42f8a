// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/relay/text.h>
#include <baton/relay/transform.h>
#include <baton/tir/expr.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "sample.h"

using namespace sample;  // NOLINT

namespace {
std::string Print(const ObjectRef& o) { return PrintText(o); }
/// Prints, parses, compares, and prints the same text again.
template <class T>
std::string Trip(const T& obj) {
  Register();
  std::string text = Print(obj), where;
  INFO(text);
  ObjectRef back;
  if constexpr (std::is_same_v<T, IRModule>)
    back = ParseModule(text);
  else
    back = ParseExpr(text);
  CHECK_MESSAGE(StructuralEqual(obj, back, true, &where), where);
  CHECK(Print(back) == text);
  return text;
}
std::string Body(const Expr& e) {
  Trip(e);
  return PrintText(e, {.meta_data = false});
}
void Refused(const char* text, const char* what) {
  Register();
  INFO(text);
  CHECK_THROWS_WITH_AS(ParseModule(text, "t.relay"), doctest::Contains(what), CompileError);
}
Expr Parse(const char* text) {
  Register();
  return ParseExpr(text);
}
}  // namespace

TEST_CASE("the form of the text") {
  Var x("x", F32({1, 3})), c("c", TensorType::Scalar(DataType::Bool())), y("y");
  Expr n = Neg(x);
  Function f({x, c},
             Let(y, Scale(n, 0.5), If(Expr(c), Add(y, n), TupleGetItem(Tuple(Array<Expr>{n, Scalar(2)}), int64_t{0}))),
             F32({1, 3}));
  CHECK(Trip(IRModule::FromExpr(WithAttr(f, "Primitive", Any(1)))) ==
        "#[version = \"0.0.5\"]\n"
        "def @main(%x: Tensor[(1, 3), float32], %c: bool, Primitive=1) -> Tensor[(1, 3), float32] {\n"
        "  %0 = test.neg(%x);\n"
        "  let %y = test.scale(%0, factor=0.5f);\n"
        "  if (%c) {\n"
        "    test.add(%y, %0)\n"
        "  } else {\n"
        "    %1 = (%0, 2f);\n"
        "    %1.0\n"
        "  }\n"
        "}\n");
}

TEST_CASE("a shared value stands in the block that holds all its uses") {
  Var x("x"), c("c"), v("v"), w("w");
  Expr n = Neg(x);
  CHECK(
      Body(Function({x, c}, If(Expr(c), Add(n, x), Neg(n)))) ==
      "fn (%x, %c) {\n  %0 = test.neg(%x);\n  if (%c) {\n    test.add(%0, %x)\n  } else {\n    test.neg(%0)\n  }\n}\n");
  Expr m = Neg(v);
  CHECK(Body(Function({x}, Let(v, Neg(x), Let(w, Neg(m), Add(w, m))))) ==
        "fn (%x) {\n  let %v = test.neg(%x);\n  %0 = test.neg(%v);\n  let %w = test.neg(%0);\n  test.add(%w, %0)\n}\n");
  // A let that is an argument, and one that is shared.
  Expr l = Let(v, Neg(x), Neg(v));
  Body(Function({x}, Add(l, Neg(l))));
  Body(Function({x, c}, If(Expr(c), l, Neg(l))));
}

TEST_CASE("every kind of expression reads back") {
  Var x("x", F32({2})), r("r"), f("f"), y("y"), y2("y"), odd("conv1/weight:0"), digit("0"),
      g("g", Type(RelayRefType(F32({2}))));
  Body(Function({x, odd, digit, y, y2}, Tuple(Array<Expr>{x, odd, digit, y, y2})));
  Body(Let(r, RefCreate(Expr(x)), Let(f, RefWrite(Expr(r), Expr(x)), RefRead(Expr(r)))));
  Body(Let(f, Function({y}, Invoke(f, {Neg(y)})), Invoke(f, {x})));
  Body(Invoke(Function({y}, Neg(y)), {x}));
  Body(Tuple(Array<Expr>()));
  Body(Tuple(Array<Expr>{x}));
  Body(Function({g}, Expr(g), F32({2})));
  Body(Constant(NDArray::Empty({0, 3}, DataType::Int(8))));
  float data[] = {1, NAN, -0.f, 3};
  Body(Add(Constant(NDArray::FromBytes(data, {2, 2}, DataType::Float(32))),
           Constant(NDArray::FromBytes(data, {2, 2}, DataType::Float(32)))));
  Body(Call(Expr(ScaleOp()), Array<Expr>{x}, Attrs(), Array<Type>()));
  TypeVar a(String("A"), TypeKind::kType);
  Var p("p", a);
  Body(Call(Expr(Function({p}, p, a, {a})), Array<Expr>{x}, Attrs(), Array<Type>{F32({2})}));
  Body(WithAttr(Function({x}, x), "odd key",
                Any(Array<Any>{Any("s\"\n"), Any(1.5), Any(true), Any(), Any(DataType::Float(16)), Any(int64_t{-3})})));
  Var q("q", FuncType(Array<TypeVar>{a}, Array<Type>{a, TupleType(Array<Type>{a})}, TupleType::Empty(),
                      Array<TypeConstraint>()));
  Body(Function({q}, q));
  tir::SizeVar n(String("n"));
  Var s("s", TensorType(Array<PrimExpr>{n, tir::AnyDim(), n}, DataType::Float(16))),
      t("t", TensorType(Array<PrimExpr>{n}, DataType::Float(16)));
  Body(Function({s, t}, s));
  Var u("u", TensorType(Array<PrimExpr>{tir::Add(n, PrimExpr(int64_t{1}))}, DataType::Float(16)));
  Trip(IRModule::FromExpr(Function({u}, u)));
}

TEST_CASE("AT-017 attributes that differ from their default") {
  Register();
  Expr e = Parse(
      "free_var %x; test.scale(%x, factor=-2.5f, axis=-3, exact=True, pads=[1, 2, 3], mode=\"a \\\"b\\\"\", "
      "out_dtype=\"float16\")");
  const auto* a = static_cast<const ScaleAttrs*>(e.as<CallNode>()->attrs.get());
  CHECK(a->factor == -2.5);
  CHECK(a->axis == -3);
  CHECK(a->exact);
  CHECK(a->pads.size() == 3);
  CHECK(a->mode == "a \"b\"");
  CHECK(a->out_dtype == DataType::Float(16));
  CHECK(Body(e).find("test.scale(%x, factor=-2.5f, axis=-3, exact=True, pads=[1, 2, 3], mode=\"a \\\"b\\\"\", "
                     "out_dtype=\"float16\")") != std::string::npos);
  for (double v : {0.1, 1e300, -0.0, 5e-324, std::numeric_limits<double>::infinity(), 3.0}) {
    Var x("x");
    Body(Scale(x, v));
  }
}

TEST_CASE("scalars keep dtype and bits") {
  auto trip = [](NDArray a, const char* text) {
    Expr c = Constant(a);
    CHECK(PrintText(c, {.meta_data = false}) == std::string(text) + "\n");
    CHECK(StructuralEqual(Parse(text), c));
  };
  trip(NDArray::Scalar(2.f, DataType::Float(32)), "2f");
  trip(NDArray::Scalar(-0.f, DataType::Float(32)), "-0f");
  trip(NDArray::Scalar(0.1f, DataType::Float(32)), "0.1f");
  trip(NDArray::Scalar(1e-45f, DataType::Float(32)), "1e-45f");
  trip(NDArray::Scalar(3.4028235e38f, DataType::Float(32)), "3.4028235e+38f");
  trip(NDArray::Scalar(0.1, DataType::Float(64)), "0.1f64");
  trip(NDArray::Scalar(int32_t{-7}, DataType::Int(32)), "-7");
  trip(NDArray::Scalar(std::numeric_limits<int64_t>::min(), DataType::Int(64)), "-9223372036854775808i64");
  trip(NDArray::Scalar(std::numeric_limits<uint64_t>::max(), DataType::UInt(64)), "18446744073709551615u64");
  trip(NDArray::Scalar(uint8_t{255}, DataType::UInt(8)), "255u8");
  trip(NDArray::Scalar(uint8_t{1}, DataType::Bool()), "True");
  NDArray h = NDArray::Empty({}, DataType::Float(16));
  h.SetDouble(0, 0.5);
  trip(h, "0.5f16");
  NDArray b = NDArray::Empty({}, DataType::BFloat16());
  b.SetDouble(0, -1.5);
  trip(b, "-1.5bf16");
  Trip(Expr(Scalar(NAN)));
  Trip(Expr(Scalar(INFINITY)));
  Refused("256u8", "does not fit");
  Refused("1e99f", "does not fit");
  Refused("2q", "is no number of a known dtype");
}

TEST_CASE("data types and match") {
  Register();
  const char* text =
      "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n\n"
      "type Two {\n  Pair(float32, (int64, Two)),\n}\n\n"
      "def @main(%l: List[float32], %t: Two) {\n"
      "  match? (%l) {\n"
      "    Cons(%h, Cons(_, %r)) => {\n      Cons(%h, Nil)\n    },\n"
      "    Nil => {\n      @main(%l, %t)\n    },\n"
      "  }\n}\n";
  IRModule m = ParseModule(text);
  CHECK(PrintText(m, {.meta_data = false}) == text);
  Trip(m);
  Refused("type T { A(U), }", "there is no type `U`");
  Refused("type T { A, A, }", "defined twice");
  Refused("def @main(%x: Lst) { %x }\ntype List { Nil, }", "did you mean `List`");
}

TEST_CASE("what people write: operators, comments, blocks, trailing forms") {
  Register();
  Var x("x");
  Expr e =
      Parse("free_var %x; // a comment\n /* one /* inside */ another */ { let %y = test.neg(%x); (test.add(%y, %x)) }");
  CHECK(e.as<LetNode>());
  CHECK(Parse("(1, 2f,)").as<TupleNode>()->fields.size() == 2);
  CHECK(Parse("((1, 2).1, 3).0").as<TupleGetItemNode>());
  CHECK(Parse("let %x = 1; let %x = (%x,); %x").as<LetNode>()->body.as<LetNode>()->value.as<TupleNode>());
  CHECK(Parse("if (True) { 1 } else if (False) { 2 } else { 3 }").as<IfNode>());
  CHECK(Parse("{ 1; 2 }").as<LetNode>());
  CHECK(ParseModule("1")->ContainGlobalVar("main"));
  CHECK(ParseModule("def @f() { @g() }\ndef @g() { 1 }")->functions.size() == 2);
  CHECK(ParseModule("")->functions.empty());
}

TEST_CASE("temporaries have any numbers, in any order, and end with their block") {
  const Expr near = Parse("fn (%x: float32) { %0 = add(%x, %x); %1 = add(%0, %x); %2 = add(%1, %0); add(%2, %1) }");
  for (const char* far :
       {"fn (%x: float32) { %4000000 = add(%x, %x); %0 = add(%4000000, %x); %1 = add(%0, %4000000); add(%1, %0) }",
        "fn (%x: float32) { %7 = add(%x, %x); %4000000 = add(%7, %x); %8 = add(%4000000, %7); add(%8, %4000000) }",
        "fn (%x: float32) { %3 = add(%x, %x); %0 = add(%3, %x); %3 = add(%0, %3); add(%3, %0) }"}) {
    CHECK(StructuralEqual(Parse(far), near, true));
  }
  for (const char* number : {"0", "4000000"}) {
    const std::string n = number;
    Refused(
        ("#[version = \"0.0.5\"]\ndef @main(%x: bool) { if (%x) { %" + n + " = %x; %" + n + " } else { %" + n + " } }")
            .c_str(),
        "is not defined here");
  }
}

TEST_CASE("spans point at what they are of") {
  Register();
  IRModule m = ParseModule("def @main(%x: float32) {\n  %0 = test.neg(%x);\n  test.add(%0,\n    %x)\n}\n", "a.relay");
  const auto* f = m->Lookup("main").as<FunctionNode>();
  const Span& s = f->body->span;
  CHECK(s->source_name->name == "a.relay");
  CHECK(s->line == 3);
  CHECK(s->column == 3);
  CHECK(s->end_line == 4);
  CHECK(s->end_column == 8);
}

TEST_CASE("errors: what, where, how to mend; several at once") {
  Register();
  Refused("def @main(%x: float32) {\n  test.ned(%x)\n}",
          "t.relay:2:3: error: there is no operator `test.ned`; did you mean `test.neg`");
  Refused("def @main(%x: float32) {\n  test.ned(%x)\n}", "\n  2 |   test.ned(%x)\n    |   ^~~~~~~~");
  Refused("def @main(%abc: float32) {\n  test.neg(%abd)\n}",
          "t.relay:2:12: error: `%abd` is not defined here; did you mean `%abc`");
  Refused("def @main() { %0 }", "`%0` is not defined here");
  Refused("def @main() { if (True) { %0 = 1; %0 } else { %0 } }", "`%0` is not defined here");
  Refused("def @main() { @mainn() }", "there is no function @mainn; did you mean `@main`");
  Refused("def @f() { 1 }\ndef @f() { 2 }", "t.relay:2:5: error: @f is defined twice");
  Refused("def @main(%x) { test.scale(%x, factr=1f) }", "`test.scale` has no attribute `factr`; did you mean `factor`");
  Refused("def @main(%x) { test.scale(%x, factor=\"a\") }", "[test.scale] `factor`");
  Refused("def @main(%x) { test.scale(%x, axis=-9) }", "must be at least -8");
  Refused("def @main(%x) { test.scale(%x, axis=1, axis=2) }", "given twice");
  Refused("def @main(%x: Tensor[(1, -2), float32]) { %x }", "must not be negative");
  Refused("def @main(%x: Tensor[(1, 2), flot32]) { %x }", "expected a dtype, got `flot32`");
  Refused("def @main() { (1, 2 }", "expected `)` or `,` after the value, got `}`");
  Refused("def @main() { let %x = 1 }", "expected `;` after the value");
  Refused("def @main() { let %x = 1; }", "expected an expression");
  Refused("def @main() { if (True) { 1 } }", "expected `else`");
  Refused("def @main() { \"abc", "has no end");
  Refused("def @main() { /* abc", "comment has no end");
  Refused("def @main() { $ }", "`$` has no meaning here");
  Refused("#[version = \"0.0.4\"]", "reads \"0.0.5\"");
  Refused("def @main() { meta[relay.Constant][0] }", "no metadata");
  Refused("def @main() { meta[relay.Constant][7] }\n#[metadata]\n{}", "cannot be read");
  Refused("banana", "there is no operator `banana`");
  Refused("def @main(%x, %x) { %x }", "two parameters have the name `%x`");
  Refused("def main() { 1 }", "expected `@name` after `def`");
  try {
    ParseModule("def @main(%x) {\n  let %a = test.ned(%x);\n  let %b = (1, ;\n  test.neg(%y)\n}\ndef @g() { ) }\n",
                "t.relay");
    FAIL("no error");
  } catch (const CompileError& e) {
    for (const char* at : {"t.relay:2:12", "t.relay:3:16", "t.relay:4:12", "t.relay:6:12"})
      CHECK_MESSAGE(e.message().find(at) != std::string::npos, e.message());
  }
  std::string deep(200'000, '(');
  CHECK_THROWS_WITH_AS(ParseExpr(deep), doctest::Contains("more than 50000 levels"), CompileError);
}

TEST_CASE("text cut anywhere is an error or a program, never anything else") {
  Register();
  Var x("x", F32({1, 3})), c("c");
  float data[] = {1, 2};
  std::string text = Print(IRModule::FromExpr(Function(
      {x, c}, If(Expr(c), Scale(x, 2), Add(x, Constant(NDArray::FromBytes(data, {2}, DataType::Float(32))))))));
  for (size_t i = 0; i < text.size(); ++i) {
    try {
      ParseModule(text.substr(0, i));
    } catch (const CompileError&) {
    }
  }
}

TEST_CASE("a million deep: chains of calls, lets and tuples; nested blocks as deep as the parser reads") {
  Register();
  Var x("x", F32({2})), c("c");
  OnStack(size_t{512} << 10, [&] {
    for (Expr e : {CallChain(x, 1'000'000), LetChain(x, 1'000'000), TupleChain(x, 100'000)}) {
      Function f({x}, e);
      std::string text = Print(f);
      CHECK(StructuralEqual(ParseExpr(text), f));
    }
    Function f({x, c}, IfChain(c, x, 20'000));
    CHECK(StructuralEqual(ParseExpr(Print(f)), f));
    CHECK(Print(Function({x, c}, IfChain(c, x, 200'000))).size() > 1'000'000);
  });
}

TEST_CASE("many of one name, and distant uses, in linear time") {
  Register();
  std::vector<Var> vars;
  Var x("x");
  for (int i = 0; i < 50'000; ++i) vars.push_back(Var("v"));
  Expr early = Neg(x), body = vars.back();
  for (int i = 50'000; i-- > 0;) body = Let(vars[i], Add(early, i ? Expr(vars[i - 1]) : x), body);
  Function f({x}, body);
  CHECK(StructuralEqual(ParseExpr(Print(f)), f));
}

TEST_CASE("types as comments") {
  Var x("x", F32({2}));
  Function f({x}, Neg(x));
  relay::transform::InferTypeOf(f);
  CHECK(PrintText(f, {.meta_data = false, .types = true}).find("test.neg(%x) /* ty=Tensor[(2), float32] */") !=
        std::string::npos);
}
