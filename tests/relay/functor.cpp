// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "sample.h"

using namespace sample;  // NOLINT

namespace {

struct CallChecker : ExprVisitor {
  bool result = false;
  bool Check(const Expr& e) {
    result = false;
    VisitExpr(e);
    return result;
  }
  using ExprVisitor::VisitExpr_;
  void VisitExpr_(const CallNode*) override { result = true; }
};

struct PrintVisitor : ExprVisitor {
  int count = 0;
  void VisitExpr(const Expr& e) override {
    ++count;
    ExprVisitor::VisitExpr(e);
  }
};

struct Order : ExprVisitor {
  std::vector<std::string> seen;
  using ExprVisitor::VisitExpr_;
  void VisitExpr_(const VarNode* v) override { seen.push_back(v->name_hint().str()); }
};

struct IfCollapser : ExprMutator {
  using ExprMutator::VisitExpr_;
  Expr VisitExpr_(const IfNode* op) override { return Mutate(op->true_branch); }
};

struct Retype : ExprMutator {
  Type VisitType(const Type&) override { return F32({7}); }
};

struct Same : ExprMutator {};
struct MixedSame : MixedModeMutator {
  int calls = 0;
  using MixedModeMutator::Rewrite_;
  Expr Rewrite_(const CallNode*, const Expr& post) override {
    ++calls;
    return post;
  }
};

Expr Everything(Var x, Var c) {
  Var y("y"), z("z"), h("h"), f("f");
  GlobalTypeVar list(String("List"), TypeKind::kAdtHandle);
  ConstructorNode cons;
  cons.name_hint = "Cons", cons.belong_to = list;
  Constructor k(std::move(cons));
  Expr fn = Function({y}, Add(y, x));
  Expr match = Match(
      Expr(x),
      Array<Clause>{
          Clause(PatternConstructor(k, Array<Pattern>{PatternVar(h), PatternWildcard(PatternWildcardNode())}), Expr(h)),
          Clause(PatternTuple(Array<Pattern>()), Expr(x))},
      true);
  Expr parts = Tuple(Array<Expr>{RefCreate(Expr(x)), RefRead(Expr(z)), RefWrite(Expr(z), Expr(x)), match, Expr(k),
                                 Expr(GlobalVar("g")), TupleGetItem(Tuple(Array<Expr>{x, x}), int64_t{1}),
                                 Expr(NegOp()), Scalar(1)});
  return Let(z, Invoke(fn, {x}), Let(f, fn, If(Expr(c), parts, parts)));
}

}  // namespace

TEST_CASE("FN-004 an override of VisitExpr sees every edge; FN-013 shared nodes are handled once") {
  Var x("x");
  Expr a = Neg(x);
  PrintVisitor p;
  p.VisitExpr(Add(a, a));
  CHECK(p.count == 1 + 1 + 2 + 2);  // add, its op, a twice; of a the op and x, once
  Expr d = x;
  for (int i = 0; i < 60; ++i) d = Add(d, d);
  PrintVisitor q;
  q.VisitExpr(d);
  CHECK(q.count == 1 + 60 * 3);
}

TEST_CASE("FN-011 a checker can be asked again") {
  Var x("x");
  CallChecker c;
  Expr e = Neg(x);
  CHECK(c.Check(e));
  CHECK(!c.Check(x));
  CHECK(c.Check(e));
  CHECK(c.Check(Tuple(Array<Expr>{x, e})));
}

TEST_CASE("FN-008, FN-009 order of the default visits") {
  Var a("a"), b("b"), c("c");
  Order o;
  o.VisitExpr(If(Expr(a), Expr(b), Expr(c)));
  CHECK(o.seen == std::vector<std::string>{"a", "b", "c"});
  Order l;
  l.VisitExpr(Let(b, Expr(a), Expr(c)));
  CHECK(l.seen == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("FN-005 a bare functor names what it does not handle") {
  struct Bare : ExprFunctor<int(const Expr&)> {
    using ExprFunctor::VisitExpr_;
    int VisitExpr_(const VarNode*) override { return 7; }
  } f;
  CHECK(f.VisitExpr(Var("x")) == 7);
  CHECK_THROWS_WITH_AS(f.VisitExpr(Neg(Var("x"))), doctest::Contains("relay.Call"), InternalError);
  CHECK_THROWS_AS(f.VisitExpr(Expr()), CompileError);
}

TEST_CASE("FN-016 nothing changed: the same object, for every kind of node") {
  Var x("x", F32({2})), c("c");
  Expr e = Everything(x, c);
  CHECK(Same().Mutate(e).same_as(e));
  CHECK(MixedSame().Mutate(e).same_as(e));
}

TEST_CASE("FN-018, FN-019, FN-020 a retyped variable is one new variable everywhere") {
  Var x("x", F32({2}));
  Expr f = Retype().Mutate(Function({x}, Add(x, Neg(x))));
  const auto* fn = f.as<FunctionNode>();
  const auto* add = fn->body.as<CallNode>();
  CHECK(!fn->params[0].same_as(x));
  CHECK(fn->params[0]->vid.same_as(x->vid));
  CHECK(add->args[0].same_as(fn->params[0]));
  CHECK(add->args[1].as<CallNode>()->args[0].same_as(fn->params[0]));
}

TEST_CASE("FN-021 a mutation may change the kind") {
  Var x("x"), y("y"), c("c");
  CHECK(IfCollapser().Mutate(If(Expr(c), Expr(x), Expr(y))).same_as(x));
  Expr shared = If(Expr(c), Neg(x), Expr(y));
  Expr out = IfCollapser().Mutate(Add(shared, shared));
  CHECK(out.as<CallNode>()->args[0].same_as(out.as<CallNode>()->args[1]));
}

TEST_CASE("a mutator copies nodes without their type") {
  Var x("x", F32({2}));
  Expr e = Neg(x);
  e->checked_type_ = F32({2});
  Expr out = Bind(e, {{x, Scalar(1)}});
  CHECK(!out.same_as(e));
  CHECK(!out->checked_type_.defined());
  CHECK(e->checked_type_.defined());
}

TEST_CASE("free, bound and all variables; binding") {
  Var x("x"), y("y"), z("z");
  Expr e = Let(z, Add(x, y), Add(z, x));
  Array<Var> free = FreeVars(e);
  REQUIRE(free.size() == 2);
  CHECK(free[0].same_as(x));
  CHECK(free[1].same_as(y));
  CHECK(BoundVars(e).size() == 1);
  CHECK(AllVars(e).size() == 3);
  CHECK(FreeVars(Bind(e, {{x, Scalar(1)}})).size() == 1);
  Expr f = Bind(Function({x, y}, Add(x, y)), {{x, Neg(z)}});
  REQUIRE(f.as<FunctionNode>()->params.size() == 2);
  CHECK(f.as<FunctionNode>()->params[1].same_as(z));
  CHECK(FreeVars(f).empty());
}

TEST_CASE("FN-024 a million deep, with 8 MiB and with 512 KiB of stack") {
  constexpr int n = 1'000'000;
  Var x("x"), c("c");
  OnStack(size_t{8} << 20, [&] {
    for (Expr e : {CallChain(x, n), LetChain(x, n)}) {
      CHECK(MixedModeMutator().Mutate(e).same_as(e));
      MixedModeVisitor().VisitExpr(e);
    }
  });
  OnStack(size_t{512} << 10, [&] {
    for (Expr e : {CallChain(x, n), LetChain(x, n), TupleChain(x, n / 4), IfChain(c, x, n / 4)}) {
      CHECK(MixedModeMutator().Mutate(e).same_as(e));
      MixedModeVisitor().VisitExpr(e);
      CHECK(PostOrderNodes(e).size() > n / 4);
      CHECK(FreeVars(e).size() >= 1);
    }
    Expr e = CallChain(x, n);
    CHECK(!Bind(e, {{x, Scalar(1)}}).same_as(e));
  });
  // The naive, recursive forms survive too.
  OnStack(size_t{512} << 10, [&] {
    Expr e = CallChain(x, n / 4);
    ExprVisitor().VisitExpr(e);
    CHECK(Same().Mutate(e).same_as(e));
    Expr l = LetChain(x, n / 4);
    ExprVisitor().VisitExpr(l);
    CHECK(Same().Mutate(l).same_as(l));
  });
}
