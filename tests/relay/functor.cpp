// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/relay/analysis.h>
#include <baton/relay/transform.h>
#include <baton/relay/type_functor.h>
#include <baton/tir/functor.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "relay/expr/children.h"
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

TEST_CASE("FN-001, FN-002, FN-003 arguments, one override a kind, a table a functor") {
  struct Depth : ExprFunctor<int(const Expr&, int)> {
    using ExprFunctor::VisitExpr_;
    int VisitExpr_(const VarNode*, int d) override { return d; }
    int VisitExpr_(const CallNode* c, int d) override { return VisitExpr(c->args[0], d + 1); }
  } depth;
  struct Join : ExprFunctor<std::string(const Expr&, const std::string&, int)> {
    using ExprFunctor::VisitExpr_;
    std::string VisitExpr_(const VarNode* v, const std::string& s, int n) override {
      return v->name_hint().str() + s + std::to_string(n);
    }
  } join;
  struct Plain : ExprFunctor<bool(const Expr&)> {
    using ExprFunctor::VisitExpr_;
    bool VisitExpr_(const VarNode*) override { return true; }
  } plain;
  Var x("x");
  CHECK(depth.VisitExpr(Neg(Neg(x)), 10) == 12);
  CHECK(depth(Neg(x), 0) == 1);
  CHECK(join.VisitExpr(x, "-", 3) == "x-3");  // the same node, another functor, another table
  CHECK(plain.VisitExpr(x));
}

TEST_CASE("FN-007, FN-010, FN-023 the default visits go to every part, through VisitExpr") {
  struct Kinds : ExprVisitor {
    std::vector<std::string> keys;
    void VisitExpr(const Expr& e) override {
      keys.push_back(e.get()->GetTypeKey());
      ExprVisitor::VisitExpr(e);
    }
    int types = 0;
    void VisitType(const Type&) override { ++types; }
  } kinds;
  Var x("x", F32({2})), c("c");
  kinds.VisitExpr(Everything(x, c));
  for (const char* key : {"relay.Constant", "relay.Tuple", "relay.Var", "GlobalVar", "relay.Function", "relay.Call",
                          "relay.Let", "relay.If", "Op", "relay.TupleGetItem", "relay.RefCreate", "relay.RefRead",
                          "relay.RefWrite", "relay.Constructor", "relay.Match"}) {
    CHECK_MESSAGE(std::count(kinds.keys.begin(), kinds.keys.end(), key) > 0, key);
  }
  CHECK(kinds.types > 0);  // the annotation of %x
}

TEST_CASE("FN-012 a visitor keeps no results: a second visit goes through everything again") {
  struct Count : ExprVisitor {
    int calls = 0;
    using ExprVisitor::VisitExpr_;
    void VisitExpr_(const CallNode* op) override {
      ++calls;
      ExprVisitor::VisitExpr_(op);
    }
  } count;
  Var x("x");
  Expr e = Neg(Neg(x));
  count.VisitExpr(e);
  count.VisitExpr(e);
  CHECK(count.calls == 4);
}

TEST_CASE("FN-014, FN-015, FN-017, FN-022 a mutator rebuilds what changed; Mutate; the base's default by name") {
  struct Swap : ExprMutator {
    Expr to;
    int calls = 0;
    using ExprMutator::VisitExpr_;
    Expr VisitExpr_(const VarNode*) override { return to; }
    Expr VisitExpr_(const CallNode* op) override {
      ++calls;
      return ExprMutator::VisitExpr_(op);  // no dispatch, so no endless recursion
    }
  } swap;
  Var x("x"), y("y");
  swap.to = y;
  Expr pair = Tuple(Array<Expr>{x, Neg(x)}), item = TupleGetItem(pair, int64_t{1});
  Expr out = swap.Mutate(item);
  REQUIRE(out.as<TupleGetItemNode>());
  CHECK(!out.same_as(item));
  CHECK(out.as<TupleGetItemNode>()->index == 1);
  CHECK(out.as<TupleGetItemNode>()->tuple.as<TupleNode>()->fields[0].same_as(y));
  CHECK(swap.calls == 1);
  CHECK(swap.VisitExpr(item).same_as(out));  // one and the same; remembered
  CHECK(Same().Mutate(item).same_as(item));
  struct Prefilled : ExprMutator {
    Prefilled(Expr from, Expr into) { memo_[from] = into; }
  };
  CHECK(Prefilled(x, y).Mutate(Neg(x)).as<CallNode>()->args[0].same_as(y));  // FN-018
}

TEST_CASE("FN-006 the same scheme for PrimFuncs") {
  struct Eval : tir::ExprFunctor<int64_t(const PrimExpr&)> {
    using tir::ExprFunctor<int64_t(const PrimExpr&)>::VisitExpr_;
    int64_t VisitExpr_(const tir::AddNode* op) override { return VisitExpr(op->a) + VisitExpr(op->b); }
    int64_t VisitExpr_(const tir::MulNode* op) override { return VisitExpr(op->a) * VisitExpr(op->b); }
    int64_t VisitExpr_(const IntImmNode* op) override { return op->value; }
  } eval;
  PrimExpr two(int64_t{2}), three(int64_t{3});
  CHECK(eval.VisitExpr(tir::Add(tir::Mul(two, three), two)) == 8);
  CHECK_THROWS_AS(eval.VisitExpr(tir::Sub(two, three)), InternalError);
}

TEST_CASE("types have functor, visitor and mutator, too") {
  struct Names : TypeVisitor {
    std::string names;
    using TypeVisitor::VisitType_;
    void VisitType_(const TypeVarNode* v) override { names += v->name_hint.str(); }
  } names;
  struct Half : TypeMutator {
    using TypeMutator::VisitType_;
    Type VisitType_(const TensorTypeNode* t) override { return TensorType(t->shape, DataType::Float(16)); }
  } half;
  struct Bare : TypeFunctor<int(const Type&, int)> {
    using TypeFunctor::VisitType_;
    int VisitType_(const TensorTypeNode*, int n) override { return n; }
  } bare;
  TypeVar a(String("a"), TypeKind::kType), b(String("b"), TypeKind::kType);
  GlobalTypeVar list(String("List"), TypeKind::kAdtHandle);
  Type f = FuncType(Array<TypeVar>{a},
                    Array<Type>{TupleType(Array<Type>{a, RelayRefType(b)}), TypeCall(list, Array<Type>{F32({2})})},
                    Type(a), Array<TypeConstraint>());
  names.VisitType(f);
  CHECK(names.names == "aaba");
  Type g = half.Mutate(f);
  CHECK(g.as<FuncTypeNode>()->arg_types[0].same_as(f.as<FuncTypeNode>()->arg_types[0]));
  CHECK(g.as<FuncTypeNode>()->arg_types[1].as<TypeCallNode>()->args[0].as<TensorTypeNode>()->dtype ==
        DataType::Float(16));
  CHECK(TypeMutator().Mutate(f).same_as(f));
  CHECK(bare.VisitType(F32({2}), 5) == 5);
  CHECK_THROWS_WITH_AS(bare.VisitType(f, 0), doctest::Contains("FuncType"), InternalError);
  Type deep = a;
  for (int i = 0; i < kDeep; ++i) deep = RelayRefType(deep);
  OnStack(size_t{512} << 10, [&] { CHECK(TypeMutator().Mutate(deep).same_as(deep)); });
}

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

TEST_CASE("AnyNode asks of each node once, as lists of nodes have them, and stops at the first that holds") {
  Var x("x", F32({4})), c("c", TensorType::Scalar(DataType::Bool()));
  Expr wide = Tuple(Array<Expr>());
  for (int k = 0; k < 3'000; ++k) wide = Tuple(Array<Expr>{wide, k % 7 ? Expr(x) : wide, Everything(x, c)});
  for (const Expr& e : Array<Expr>{Everything(x, c), wide, x}) {
    std::vector<const ExprNode*> asked, all;
    CHECK_FALSE(AnyNode(e, [&](const ExprNode* n) {
      asked.push_back(n);
      return false;
    }));
    for (const ExprNode* n : PostOrderNodes(e)) all.push_back(n);
    std::sort(asked.begin(), asked.end());
    std::sort(all.begin(), all.end());
    CHECK(asked == all);
    size_t count = 0;
    CHECK(AnyNode(e, [&](const ExprNode*) { return ++count == all.size(); }));
    CHECK(count == all.size());
  }
  CHECK_FALSE(AnyNode(Expr(), [](const ExprNode*) { return true; }));
  CHECK(AnyCallOf(Everything(x, c), LessOp(), AddOp()));
  CHECK_FALSE(AnyCallOf(Everything(x, c), LessOp()));
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

TEST_CASE("what a mutator knows, and what it is told before, while and after it visits") {
  struct Told : MixedModeMutator {
    using MixedModeMutator::Known;
    using MixedModeMutator::Put;
    Expr put_first, instead;
    int calls = 0;
    void Remember(const Expr& e, const Expr& out) { memo_[e] = out; }
    using MixedModeMutator::Rewrite_;
    Expr Rewrite_(const CallNode* pre, const Expr& post) override {
      ++calls;
      if (put_first.defined() && pre == put_first.get()) throw CompileError("stop");
      return post;
    }
  };
  Var x("x"), y("y");
  const Expr a = Neg(x), b = Neg(a), root = Add(b, a), other = Neg(root);
  {
    Told m;
    CHECK(!m.Known(a).defined());
    CHECK(m.Mutate(root).same_as(root));
    CHECK(m.Known(a).same_as(a));
    CHECK(m.Known(x).same_as(x));
    CHECK(!m.Known(other).defined());
    CHECK(m.Mutate(other).same_as(other));  // on top of what is known
    CHECK(m.calls == 4);
    CHECK(m.Known(other).same_as(other));
    CHECK(m.Mutate(Neg(y)).as<CallNode>() != nullptr);
    CHECK(m.calls == 5);
  }
  for (int how = 0; how < 3; ++how) {  // before the first visit, by either name, and after it
    Told m;
    if (how == 0) m.Remember(x, y);
    if (how == 1) m.Put(x, y);
    if (how == 2) {
      m.Mutate(a);
      m.Put(a, Neg(y));
    }
    const Expr out = m.Mutate(root);
    const Expr& part = out.as<CallNode>()->args[1];
    CHECK(part.as<CallNode>()->args[0].same_as(y));
    CHECK(out.as<CallNode>()->args[0].as<CallNode>()->args[0].same_as(part));
    CHECK(m.Known(root).same_as(out));
    CHECK(m.calls == 3);
  }
  {  // what is put for a node of a root that is visited already
    Told m;
    m.Mutate(root);
    m.Put(a, y);
    m.Put(a, Neg(y));
    m.Put(a, a);
    CHECK(m.Known(a).same_as(a));
    m.Put(root, x);
    CHECK(m.Mutate(other).as<CallNode>()->args[0].same_as(x));
  }
  {  // an error leaves what was found, and the mutator goes on
    Told m;
    m.put_first = b;
    CHECK_THROWS_AS(m.Mutate(root), CompileError);
    CHECK(m.Known(a).same_as(a));
    CHECK(!m.Known(root).defined());
    m.put_first = Expr(ObjectPtr<Object>(nullptr));
    m.calls = 0;
    CHECK(m.Mutate(root).same_as(root));
    CHECK(m.calls == 2);
  }
  struct Nothing : MixedModeMutator {
    using MixedModeMutator::Rewrite_;
    Expr Rewrite_(const CallNode*, const Expr&) override { return Expr(ObjectPtr<Object>(nullptr)); }
  };
  CHECK(!Nothing().Mutate(a).defined());
  CHECK(!Nothing().Mutate(Tuple(Array<Expr>{a, x})).as<TupleNode>()->fields[0].defined());
  CHECK_THROWS_AS(Told().Mutate(Expr(ObjectPtr<Object>(nullptr))), CompileError);
  CHECK_THROWS_AS(Told().Mutate(Invoke(Expr(ObjectPtr<Object>(nullptr)), {x})), CompileError);
}

TEST_CASE("calls, tuples and fields that change keep what is beside their parts") {
  struct Renamed : MixedModeMutator {
    Type VisitType(const Type&) override { return F32({7}); }
  };
  Var x("x"), y("y", F32({2}));
  const Expr before = Invoke(y, {x, y});
  auto n = make_object<CallNode>(*before.as<CallNode>());
  n->attrs = Attrs(make_object<ScaleAttrs>());
  n->span = Span(SpanNode{.line = 3});
  n->type_args = {F32({2})};
  const Call call(n);
  Tuple fields(Array<Expr>{call, x});
  fields->span = n->span;
  TupleGetItem get(fields, int64_t{1});
  get->span = n->span;
  const Expr out = Renamed().Mutate(get);
  const auto* g = out.as<TupleGetItemNode>();
  REQUIRE(g);
  CHECK(g->index == 1);
  CHECK(g->span.same_as(n->span));
  const auto* t = g->tuple.as<TupleNode>();
  CHECK(t->span.same_as(n->span));
  CHECK(t->fields.size() == 2);
  CHECK(t->fields[1].same_as(x));
  const auto* c = t->fields[0].as<CallNode>();
  CHECK(c->attrs.same_as(n->attrs));
  CHECK(c->span.same_as(n->span));
  CHECK(c->op.same_as(c->args[1]));
  CHECK(!c->op.same_as(y));
  CHECK(c->args[0].same_as(x));
  REQUIRE(c->type_args.size() == 1);
  CHECK(StructuralEqual(c->type_args[0], F32({7})));
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

TEST_CASE("FN-024 a million branches or functions, very many tuples, references and matches within each other") {
  constexpr int n = 1'000'000;
  Var x("x", F32({2})), c("c", TensorType::Scalar(DataType::Bool()));
  Expr functions = x, references = x, matches = x;
  for (int i = 0; i < n; ++i) functions = Function(Array<Var>(), functions);
  for (int i = 0; i < n / 5; ++i) {
    Var v("v");
    references = RefRead(RefCreate(references));
    matches = Match(matches, Array<Clause>{Clause(PatternVar(v), Expr(v))}, true);
  }
  OnStack(size_t{512} << 10, [&] {
    for (Expr e : {IfChain(c, x, n), TupleChain(x, n / 5), functions, references, matches}) {
      CHECK(MixedModeMutator().Mutate(e).same_as(e));
      MixedModeVisitor().VisitExpr(e);
      CHECK(WellFormed(e));
      CHECK(relay::transform::InferTypeOf(e).defined());
    }
  });
}
