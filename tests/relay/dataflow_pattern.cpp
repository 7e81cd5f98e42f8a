// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/relay/dataflow_pattern.h>
#include <baton/relay/functor.h>
#include <baton/relay/op/make.h>
#include <doctest/doctest.h>

#include <functional>

#include "sample.h"

using namespace sample;  // NOLINT

namespace {
Expr Unary(const char* op, const Expr& x) { return MakeCall(Op::Get(op), {x}); }

DFPatternCallback Rewriting(const DFPattern& pattern,
                            std::function<Expr(const Expr&, const Expr&, const Map<DFPattern, Array<Expr>>&)> f) {
  DFPatternCallbackNode n;
  n.pattern = pattern;
  n.function = PackedFunc([f](runtime::Args a, runtime::RetValue* rv) {
    *rv = f(a[0].As<Expr>(), a[1].As<Expr>(), a[2].As<Map<DFPattern, Array<Expr>>>());
  });
  return DFPatternCallback(std::move(n));
}
}  // namespace

TEST_CASE("dataflow pattern: short forms in C++") {
  Var x("x", F32({4})), y("y", F32({4}));
  DFPattern a = IsWildcard(), b = IsVar("y");
  CHECK(MatchPattern(a + b, relay::Add(x, y)));
  CHECK(MatchPattern(a + b, relay::Add(y, x)));
  CHECK(!MatchPattern(a - b, relay::Subtract(y, x)));
  CHECK(MatchPattern((a * b) / IsConstant(), relay::Divide(Multiply(x, y), MakeScalar(2, DataType::Float(32)))));
  CHECK(MatchPattern(IsOp("add")({a, a}).Optional([](DFPattern p) { return IsOp("nn.relu")({p}); }),
                     Unary("nn.relu", relay::Add(x, x))));
  CHECK(MatchPattern((a + b) || (a - b), relay::Subtract(x, y)));
  CHECK(MatchPattern(a.HasShape({4}).HasDtype("float32").HasType(F32({4})), relay::Add(x, y)));
  CHECK(!MatchPattern(a.HasDtype(DataType::Int(8)), relay::Add(x, y)));
  CHECK(MatchPattern(IsTupleGetItem(IsTuple(Array<DFPattern>{a, b}), 1), TupleGetItem(Tuple(Array<Expr>{x, y}), 1)));
  CHECK(MatchPattern(IsOp("add").HasAttr({{"TOpPattern", Any(1)}})({a, b}), relay::Add(x, y)));
  CHECK(MatchPattern(IsExpr(x), x));
  CHECK_THROWS_AS(MatchPattern(DFPattern(), x), CompileError);
  CHECK_THROWS_AS(MatchPattern(a, Expr()), CompileError);
  CHECK_THROWS_AS(MatchPattern(IsOp("add")({a, DFPattern()}), relay::Add(x, y)), CompileError);
}

TEST_CASE("dataflow pattern: a match, a rewrite and a partition of a chain of 1,000,000 calls") {
  constexpr int n = 1000000;
  Var x("x", F32({4}));
  Expr e = x;
  DFPattern leaf = IsWildcard(), p = leaf;
  DFPattern op = IsOp("abs");
  for (int i = 0; i < n; ++i) {
    e = Unary("abs", e);
    p = op(Array<DFPattern>{p});
  }
  CHECK(MatchPattern(p, e));
  CHECK(!MatchPattern(p, e.as<CallNode>()->args[0]));
  DFPattern in = IsWildcard();
  Expr out = RewritePatterns({Rewriting(op({op({in})}), [&](auto&, auto&, auto& m) { return m[in][0]; })}, e);
  CHECK(out.same_as(x));
  Expr parts = PartitionPattern(op({op({in})}), e);
  const auto* call = parts.as<CallNode>();
  REQUIRE(call);
  CHECK(call->op.as<FunctionNode>()->GetAttr<String>("PartitionedFromPattern") == "abs_abs_");
  // A dominator whose path is the whole chain.
  DFPattern fuzzy = DominatorPattern(
      DominatorPatternNode{.parent = IsVar("x"), .path = op({in}), .child = IsOp("tanh")({IsWildcard()})});
  CHECK(MatchPattern(fuzzy, Unary("tanh", e)));
  CHECK(!MatchPattern(fuzzy, Unary("tanh", Unary("exp", e))));
}

TEST_CASE("dataflow pattern: joins of a wide graph go past the child") {
  // x feeds k branches that come together in a sum; one more use of x goes past it.
  Var x("x", F32({4}));
  DFPattern w = IsWildcard();
  DFPattern path = IsOp("abs")({w}) || IsOp("add")({w, IsWildcard()});
  DFPattern pattern = DominatorPattern(
      DominatorPatternNode{.parent = IsOp("exp")({w}), .path = path, .child = IsOp("tanh")({IsWildcard()})});
  Expr root = Unary("exp", x), sum = Unary("abs", root);
  for (int i = 0; i < 2000; ++i) sum = relay::Add(sum, Unary("abs", root));
  Expr e = Unary("tanh", sum);
  CHECK(MatchPattern(pattern, e));
  int found = 0;
  auto count = Rewriting(pattern, [&](auto&, const Expr& post, auto&) { return ++found, post; });
  RewritePatterns({count}, Unary("nn.relu", e));
  CHECK(found == 1);
  found = 0;
  RewritePatterns({count}, relay::Add(e, root));
  CHECK(found == 0);
}

TEST_CASE("dataflow pattern: rewriting is linear") {
  // The same work a node in a graph of ten times the size: counted by the calls of the rewrite and by rounds.
  auto calls = [](int n) {
    Var x("x", F32({4}));
    Expr e = x;
    for (int i = 0; i < n; ++i) e = relay::Add(Unary("abs", e), x);
    DFPattern in = IsWildcard();
    int count = 0;
    Expr out =
        RewritePatterns({Rewriting(IsOp("abs")({in}), [&](auto&, auto&, auto& m) { return ++count, m[in][0]; })}, e);
    CHECK(PostOrderNodes(out).size() == static_cast<size_t>(n) + 2);
    return count;
  };
  CHECK(calls(1000) == 1000);
  CHECK(calls(100000) == 100000);
}
