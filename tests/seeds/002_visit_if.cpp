// SPDX-License-Identifier: Apache-2.0
// NM-003: "Adding a Compiler Pass to Relay", Expression Visitors: the default visit of If.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_visit_if {
using tvm::relay::Expr;
using tvm::relay::IfNode;
using tvm::relay::VarNode;

struct ExprVisitor : tvm::relay::ExprVisitor {
  std::string order;
  void VisitExpr_(const IfNode* op) override;
  void VisitExpr_(const VarNode* op) override { order += std::string(op->vid->name_hint); }
  using tvm::relay::ExprVisitor::VisitExpr_;
};

void ExprVisitor::VisitExpr_(const IfNode* op) {
  this->VisitExpr(op->cond);
  this->VisitExpr(op->true_branch);
  this->VisitExpr(op->false_branch);
}

}  // namespace seed_visit_if

TEST_CASE("NM-003 FN-008 seed 002: If is visited condition, true, false; as by default") {
  using namespace tvm::relay;
  If branch(Var("c"), Var("t"), Var("f"));
  seed_visit_if::ExprVisitor v;
  v.VisitExpr(branch);
  CHECK(v.order == "ctf");
  struct Default : ExprVisitor {
    using ExprVisitor::VisitExpr_;
    std::string order;
    void VisitExpr_(const VarNode* op) final { order += std::string(op->vid->name_hint); }
  } d;
  d.VisitExpr(branch);
  CHECK(d.order == "ctf");
}
