// SPDX-License-Identifier: Apache-2.0
// NM-003: "Adding a Compiler Pass to Relay" (later), Expression Visitors: Let and If.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_visit_let_if {
using tvm::relay::Expr;
using tvm::relay::IfNode;
using tvm::relay::LetNode;
using tvm::relay::VarNode;

struct ExprVisitor : tvm::relay::ExprVisitor {
  using tvm::relay::ExprVisitor::VisitExpr_;
  std::string order;
  void VisitExpr_(const LetNode* op) override;
  void VisitExpr_(const IfNode* op) override;
  void VisitExpr_(const VarNode* op) override { order += std::string(op->vid->name_hint); }
};

void ExprVisitor::VisitExpr_(const LetNode* op) {
  this->VisitExpr(op->value);
  this->VisitExpr(op->var);
  this->VisitExpr(op->body);
}

void ExprVisitor::VisitExpr_(const IfNode* op) {
  this->VisitExpr(op->cond);
  this->VisitExpr(op->true_branch);
  this->VisitExpr(op->false_branch);
}

}  // namespace seed_visit_let_if

TEST_CASE("NM-003 FN-008 FN-009 seed 003: Let is visited value, variable, body; as by default") {
  using namespace tvm::relay;
  Let let(Var("v"), Var("e"), If(Var("c"), Var("t"), Var("f")));
  seed_visit_let_if::ExprVisitor v;
  v.VisitExpr(let);
  CHECK(v.order == "evctf");
  struct Default : ExprVisitor {
    using ExprVisitor::VisitExpr_;
    std::string order;
    void VisitExpr_(const VarNode* op) final { order += std::string(op->vid->name_hint); }
  } d;
  d.VisitExpr(let);
  CHECK(d.order == "evctf");
}
