// SPDX-License-Identifier: Apache-2.0
// NM-003: "Adding a Compiler Pass to Relay": CallChecker (TR-19: `Check` is not virtual, so not final).
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_call_checker {
using namespace tvm::relay;

class CallChecker : public ExprVisitor {
 public:
  using ExprVisitor::VisitExpr_;

  bool Check(const Expr& expr) {
    result_ = false;
    VisitExpr(expr);
    return result_;
  }

  void VisitExpr_(const CallNode* n) final { result_ = true; }

 private:
  bool result_ = false;
};

}  // namespace seed_call_checker

TEST_CASE("NM-003 TR-19 seed 002: CallChecker") {
  using namespace tvm::relay;
  seed_call_checker::CallChecker checker;
  Var x("x");
  CHECK_FALSE(checker.Check(Tuple(tvm::Array<Expr>{x})));
  CHECK(checker.Check(Tuple(tvm::Array<Expr>{x, Call(tvm::Op::Get("abs"), tvm::Array<Expr>{x})})));
}
