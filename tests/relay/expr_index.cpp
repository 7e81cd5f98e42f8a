// SPDX-License-Identifier: Apache-2.0
#include "relay/expr/expr_index.h"

#include <baton/relay/text.h>
#include <doctest/doctest.h>

#include <functional>
#include <vector>

#include "sample.h"

using namespace sample;  // NOLINT

namespace {

const char* const kText = R"(
#[version = "0.0.5"]
fn (%c: bool, %x: float32, %t: (float32, float32)) {
  %0 = exp(%x);
  let %f = fn (%y: float32) { add(%y, %0) };
  let %r = ref(%0);
  let %z = if (%c) { add(%0, %t.1) } else { let %u = tanh(%0); multiply(%u, %u) };
  (%f(%z), ref_read(%r), ref_write(%r, %z), (), %0)
}
)";

/// Parts before users, parts in their order: what the numbers must follow.
std::vector<const ExprNode*> InOrder(const Expr& e) {
  std::vector<const ExprNode*> out;
  PointerSet seen;
  std::function<void(const ExprNode*)> visit = [&](const ExprNode* n) {
    if (!n || !seen.Add(n)) return;
    ForEachChild(n, visit);
    out.push_back(n);
  };
  visit(e.get());
  return out;
}

/// The parts that are evaluated, in text: the place of the part, the block of the node's own, whether it is its value.
std::vector<std::string> Edges(const ExprIndex& graph, size_t i) {
  std::vector<std::string> out;
  graph.ForEachEdge(i, [&](uint32_t part, int own, bool tail) {
    out.push_back((part == ExprIndex::kNone ? "none" : graph[part]->GetTypeKey()) + " " + std::to_string(own) +
                  (tail ? " tail" : ""));
  });
  return out;
}

size_t Count(const ExprIndex& graph, ExprIndex::Kind kind) {
  size_t n = 0;
  for (size_t i = 0; i < graph.size(); ++i) n += graph.kind(i) == kind;
  return n;
}

}  // namespace

TEST_CASE("numbers of nodes follow their parts, and say them") {
  const Expr e = ParseExpr(kText);
  const ExprIndex graph(e);
  const std::vector<const ExprNode*> order = InOrder(e);
  REQUIRE(graph.size() == order.size());
  for (uint32_t i = 0; i < graph.size(); ++i) {
    CHECK(graph[i] == order[i]);
    CHECK(graph.IdOf(order[i]) == i);
    CHECK(graph.atom(i) == IsAtom(order[i]));
    std::vector<uint32_t> parts;
    ForEachChild(order[i], [&](const ExprNode* p) { parts.push_back(graph.IdOf(p)); });
    CHECK(std::vector<uint32_t>(graph.Operands(i).begin(), graph.Operands(i).end()) == parts);
  }
  CHECK(Count(graph, ExprIndex::kLet) == 4);
  CHECK(Count(graph, ExprIndex::kFunction) == 2);
  CHECK(Count(graph, ExprIndex::kIf) == 1);
  CHECK(graph.IdOf(Var("v", Type()).get()) == ExprIndex::kNone);
  CHECK(PostOrderNodes(e).size() == order.size());
}

TEST_CASE("edges of nodes lead to what is evaluated, and to the block it is the value of") {
  const Var a("a", Type()), b("b", Type());
  const Let let(a, Constant(runtime::NDArray::Empty({}, DataType::Float(32), {kDLCPU, 0})), a);
  const ExprIndex of_let{Expr(let)};
  CHECK(Edges(of_let, of_let.size() - 1) == std::vector<std::string>{"relay.Constant -1 tail", "relay.Var 0 tail"});
  const ExprIndex of_if{Expr(If(a, let, b))};
  CHECK(Edges(of_if, of_if.size() - 1) ==
        std::vector<std::string>{"relay.Var -1", "relay.Let 0 tail", "relay.Var 1 tail"});
  const ExprIndex of_function{Expr(Function(Array<Var>{a, b}, let, Type(), Array<TypeVar>()))};
  CHECK(Edges(of_function, of_function.size() - 1) == std::vector<std::string>{"relay.Let 0 tail"});
  // Variables that patterns bind are parts, but nothing that is evaluated.
  const Array<Pattern> inner{PatternVar(b), PatternWildcard()};
  const Expr match =
      Match(Expr(a), Array<Clause>{Clause(PatternTuple(inner), Expr(b)), Clause(PatternWildcard(), Expr(let))}, true);
  const ExprIndex of_match{match};
  const size_t last = of_match.size() - 1;
  CHECK(of_match.Operands(last).size() == 4);
  CHECK(Edges(of_match, last) == std::vector<std::string>{"relay.Var -1", "relay.Var 0 tail", "relay.Let 1 tail"});
  CHECK(Edges(of_match, of_match.IdOf(a.get())).empty());
}

TEST_CASE("what is missing has no number") {
  const ExprIndex empty{Expr()};
  CHECK(empty.size() == 0);
  const Var a("a", Type());
  const ExprIndex graph{Expr(Tuple(Array<Expr>{a, Expr(), a}))};
  REQUIRE(graph.size() == 2);
  CHECK(std::vector<uint32_t>(graph.Operands(1).begin(), graph.Operands(1).end()) ==
        std::vector<uint32_t>{0, ExprIndex::kNone, 0});
}

TEST_CASE("users are listed once for each use, in order, and post-dominators by the paths to the root") {
  const Var x("x", Type());
  const Expr a = Tuple(Array<Expr>{x}), left = TupleGetItem(a, 0), right = TupleGetItem(a, 0);
  const Expr twice = Tuple(Array<Expr>{left, left}), join = Tuple(Array<Expr>{twice, right}),
             root = TupleGetItem(join, 0);
  const ExprIndex index{root};
  const auto id = [&](const Expr& e) { return index.IdOf(e.operator->()); };
  const auto users = [&](const Expr& e) {
    const auto of = index.Users(id(e));
    return std::vector<uint32_t>(of.begin(), of.end());
  };
  CHECK(users(x) == std::vector<uint32_t>{id(a)});
  CHECK(users(a) == std::vector<uint32_t>{id(left), id(right)});
  CHECK(users(left) == std::vector<uint32_t>{id(twice), id(twice)});
  CHECK(users(root).empty());
  CHECK(index.PostDominator(id(left)) == id(twice));
  CHECK(index.PostDominator(id(a)) == id(join));
  CHECK(index.PostDominator(id(x)) == id(a));
  CHECK(index.PostDominator(id(root)) == ExprIndex::kNone);
  CHECK(index.PostDominates(id(join), id(x)));
  CHECK(index.PostDominates(id(root), id(x)));
  CHECK(!index.PostDominates(id(left), id(a)));
  CHECK(!index.PostDominates(id(x), id(a)));
}

TEST_CASE("a value is placed in the innermost scope that holds its uses") {
  const Expr e = ParseExpr(kText);
  const ExprIndex index(e);
  CHECK(index.num_scopes() == 1 + 4 + 2 + 2);  // the whole, lets, functions, branches
  const auto* f = e.as<FunctionNode>();
  const auto& outer = index.placement(f);
  CHECK(outer.scope == 0);
  for (uint32_t id : index.ids()) {
    if (index.atom(id) || index[id] == f) continue;
    const auto& p = index.placement(id);
    CHECK(p.uses >= 1);
    CHECK(index.Within(p.scope, outer.own_scope));
    // A value is placed around all that uses it.
    for (uint32_t user : index.Users(id)) CHECK(index.Within(index.placement(user).scope, 0));
  }
}
