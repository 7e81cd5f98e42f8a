// SPDX-License-Identifier: Apache-2.0
// NM-003: "Adding a Compiler Pass to Relay", Expression Mutators: the default for TupleGetItem, with the early `make`.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_mutate_tuple_get_item {
using namespace tvm::relay;
using tvm::GetRef;

struct Mutator : ExprMutator {
  using ExprMutator::VisitExpr_;
  Expr VisitExpr_(const VarNode* op) final { return op->vid->name_hint == "x" ? Var("y") : GetRef<Expr>(op); }
  Expr VisitExpr_(const TupleGetItemNode* g) final {
    auto t = this->Mutate(g->tuple);
    if (g->tuple == t) {
      return GetRef<Expr>(g);
    } else {
      return TupleGetItemNode::make(t, g->index);
    }
  }
};

}  // namespace seed_mutate_tuple_get_item

TEST_CASE("NM-003 NM-005 seed 002: TupleGetItem is rebuilt only if its tuple changed") {
  using namespace tvm::relay;
  TupleGetItem same(Var("z"), 0), other(Var("x"), 1);
  seed_mutate_tuple_get_item::Mutator m;
  CHECK(m.Mutate(same).same_as(same));
  Expr changed = m.Mutate(other);
  REQUIRE(changed.as<TupleGetItemNode>());
  CHECK(changed.as<TupleGetItemNode>()->index == 1);
  CHECK(changed.as<TupleGetItemNode>()->tuple.as<VarNode>()->vid->name_hint == "y");
}
