// SPDX-License-Identifier: Apache-2.0
// Children come from the description: a class made here has never been named by a traversal.
#include "ir/node/children.h"

#include <baton/relay/expr.h>
#include <baton/tir/stmt.h>
#include <doctest/doctest.h>

#include <vector>

using namespace baton;  // NOLINT

namespace {

struct PairNode : Node<PairNode, RelayExprNode> {
  static constexpr const char* _type_key = "test.Pair";
  relay::Var bound;
  RelayExpr left;
  Array<RelayExpr> rest;
  Type maybe;
  int64_t tag = 0;
  static constexpr void Describe(auto& d) {
    d(F<&PairNode::left>, "First child.");
    d(F<&PairNode::bound>, "A variable.", kBinds);
    d(F<&PairNode::rest>, "More children.");
    d(F<&PairNode::maybe>, "A type, or null.", kNullable);
    d(F<&PairNode::tag>, "No child.");
  }
};

std::vector<const Object*> Children(const PairNode* n) {
  std::vector<const Object*> out;
  ForEachChildOf<Family<RelayExpr, Type>>(n, [&](const ObjectRef& child) { out.push_back(child.get()); });
  return out;
}

}  // namespace

TEST_CASE("children are the fields of a family, in the order of the description") {
  const relay::Var a("a"), b("b"), c("c"), v("v");
  auto pair = make_object<PairNode>();
  pair->bound = v, pair->left = a, pair->rest = {b, c}, pair->tag = 7;
  const PairNode* n = pair.get();
  CHECK(Children(n) == std::vector<const Object*>{a.get(), v.get(), b.get(), c.get()});
  pair->maybe = TupleType::Empty();
  CHECK(Children(n).size() == 5);

  std::vector<const Object*> uses, binders;
  ForEachChildOf<FamilyOfUses<RelayExpr>>(n, [&](const RelayExpr& e) { uses.push_back(e.get()); });
  ForEachChildOf<FamilyOfBinders<relay::Var>>(n, [&](const relay::Var& e) { binders.push_back(e.get()); });
  CHECK(uses == std::vector<const Object*>{a.get(), b.get(), c.get()});
  CHECK(binders == std::vector<const Object*>{v.get()});
}

TEST_CASE("a rebuild copies what changed and nothing else") {
  const relay::Var a("a"), b("b"), c("c"), v("v");
  auto pair = make_object<PairNode>();
  pair->bound = v, pair->left = a, pair->rest = {b, c}, pair->tag = 7;
  pair->checked_type_ = TupleType::Empty();
  using Exprs = Family<RelayExpr>;
  CHECK(!MapChildren<Exprs>(pair.get(), [](const RelayExpr& e) { return e; }).get());
  const auto made = MapChildren<Exprs>(pair.get(), [&](const RelayExpr& e) { return e.same_as(c) ? RelayExpr(a) : e; });
  REQUIRE(made.get());
  CHECK(Children(made.get()) == std::vector<const Object*>{a.get(), v.get(), b.get(), a.get()});
  CHECK(made->tag == 7);
  CHECK(!made->checked_type_.defined());
  CHECK(Children(pair.get()).back() == c.get());
  CHECK(MapChildren<FamilyOfUses<RelayExpr>>(pair.get(), [&](const RelayExpr&) {
          return RelayExpr(b);
        })->bound.same_as(v));
  // A child of the wrong class is refused.
  CHECK_THROWS(MapChildren<Exprs>(pair.get(), [](const RelayExpr&) { return relay::Tuple(Array<RelayExpr>()); }));

  const std::vector<relay::Var> given{b, c, a, v};
  size_t next = 0;
  const auto with = WithChildren<Exprs>(pair.get(), [&] { return given[next++]; });
  CHECK(Children(with.get()) == std::vector<const Object*>{b.get(), c.get(), a.get(), v.get()});
  CHECK(with->tag == 7);
  CHECK(!with->checked_type_.defined());
}

TEST_CASE("children of statements leave out bound variables and missing branches") {
  const tir::Var i("i");
  const tir::Stmt body = tir::Evaluate(PrimExpr(int64_t{1}));
  const tir::For loop(i, PrimExpr(int64_t{0}), PrimExpr(int64_t{4}), tir::ForKind::kSerial, body);
  std::vector<const Object*> seen;
  ForEachChildOf<FamilyOfUses<PrimExpr, tir::Stmt>>(loop.get(), [&](const ObjectRef& x) { seen.push_back(x.get()); });
  CHECK(seen == std::vector<const Object*>{loop->min.get(), loop->extent.get(), body.get()});
  const tir::IfThenElse branch(PrimExpr(int64_t{1}), body, tir::Stmt());
  int statements = 0;
  ForEachChildOf<Family<tir::Stmt>>(branch.get(), [&](const tir::Stmt&) { ++statements; });
  CHECK(statements == 1);
}
