// SPDX-License-Identifier: Apache-2.0
// NM-003: "Adding a Compiler Pass to Relay" (later): ConstantChecker, word for word.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

#include <unordered_map>

namespace seed_constant_checker_003 {
using namespace tvm::relay;
using tvm::GetRef;
using tvm::ObjectEqual;
using tvm::ObjectHash;

class ConstantChecker : private ExprVisitor {
 public:
  // Check whether an expression is constant. The results are memoized.
  bool Check(const Expr& expr) {
    // The `ConstantNode` case is common enough that we check directly for the
    // case here, to avoid the time overhead of dispatching through the vtable
    // and the space overhead of memoizing always-true results.
    if (expr.as<ConstantNode>()) {
      return true;
    }
    const auto it = memo_.find(expr);
    if (it != memo_.end()) return it->second;
    VisitExpr(expr);
    return memo_[expr];  // return memoized result or the default value false
  }

 private:
  using ExprVisitor::VisitExpr_;  // not in the document: or the compiler warns of what is hidden
  std::unordered_map<Expr, bool, ObjectHash, ObjectEqual> memo_;

  void VisitExpr_(const TupleNode* n) final {
    bool result = true;
    for (const auto& field : n->fields) {
      if (!Check(field)) {
        result = false;
        break;
      }
    }
    memo_[GetRef<Tuple>(n)] = result;
  }
};

}  // namespace seed_constant_checker_003

TEST_CASE("NM-003 NM-009 seed 003: ConstantChecker") {
  using namespace tvm::relay;
  Constant one(tvm::runtime::NDArray::Scalar(1.0, tvm::runtime::DataType::Float(32)));
  Var x("x");
  seed_constant_checker_003::ConstantChecker checker;
  CHECK(checker.Check(one));
  CHECK(checker.Check(Tuple(tvm::Array<Expr>{one, Tuple(tvm::Array<Expr>{one})})));
  CHECK_FALSE(checker.Check(Tuple(tvm::Array<Expr>{one, x})));
  CHECK_FALSE(checker.Check(x));
}
