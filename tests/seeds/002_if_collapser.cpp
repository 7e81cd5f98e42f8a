// SPDX-License-Identifier: Apache-2.0
// NM-003: "Adding a Compiler Pass to Relay": IfCollapser (TR-19: its own class, and `CollapseIfs` is not virtual).
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_if_collapser {
using namespace tvm::relay;

class IfCollapser : public ExprMutator {
 public:
  using ExprMutator::VisitExpr_;

  Expr VisitExpr_(const IfNode* op) override;

  Expr CollapseIfs(const Expr& expr) { return this->Mutate(expr); }
};

Expr IfCollapser::VisitExpr_(const IfNode* op) { return this->Mutate(op->true_branch); }

}  // namespace seed_if_collapser

TEST_CASE("NM-003 TR-19 seed 002: IfCollapser") {
  using namespace tvm::relay;
  Var t("t");
  If inner(Var("c"), t, Var("f"));
  CHECK(seed_if_collapser::IfCollapser().CollapseIfs(If(Var("d"), inner, inner)).same_as(t));
}
