// SPDX-License-Identifier: Apache-2.0
// NM-003: "Adding a Compiler Pass to Relay", AST Traversers: PrintVisitor.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

#include <sstream>

namespace seed_print_visitor {
using namespace tvm::relay;

// The document's body alone is printed; the class around it is ours. It prints here, where the test sees it.
struct PrintVisitor : ExprVisitor {
  using ExprFunctor = ExprVisitor;
  std::ostringstream out;
  void VisitExpr(const Expr& expr) override;
};
#define cout_ out

void PrintVisitor::VisitExpr(const Expr& expr) {
  cout_ << "Here" << std::endl;
  ExprFunctor::VisitExpr(expr);
}
#undef cout_

}  // namespace seed_print_visitor

TEST_CASE("NM-003 FN-004 seed 002: PrintVisitor prints before every visit, nested ones too") {
  using namespace tvm::relay;
  Var x("x");
  seed_print_visitor::PrintVisitor v;
  v.VisitExpr(Tuple(tvm::Array<Expr>{x, Tuple(tvm::Array<Expr>{x})}));
  CHECK(v.out.str() == "Here\nHere\nHere\nHere\n");
}
