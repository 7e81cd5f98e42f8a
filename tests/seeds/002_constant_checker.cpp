// SPDX-License-Identifier: Apache-2.0
// NM-003: "Adding a Compiler Pass to Relay": ConstantChecker, early names of hash and equality.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

#include <unordered_map>

namespace seed_constant_checker_002 {
using namespace tvm::relay;
using tvm::GetRef;
using tvm::NodeEqual;
using tvm::NodeHash;

class ConstantChecker : private ExprVisitor {
 public:
  bool Check(const Expr& expr) {
    const auto it = memo_.find(expr);
    if (it != memo_.end()) return it->second;
    VisitExpr(expr);
    return memo_[expr];
  }

 private:
  using ExprVisitor::VisitExpr_;
  std::unordered_map<Expr, bool, NodeHash, NodeEqual> memo_;

  void VisitExpr_(const ConstantNode* n) final { memo_[GetRef<Constant>(n)] = true; }

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

}  // namespace seed_constant_checker_002

TEST_CASE("NM-003 NM-009 seed 002: ConstantChecker") {
  using namespace tvm::relay;
  Constant one(tvm::runtime::NDArray::Scalar(1.0, tvm::runtime::DataType::Float(32)));
  Var x("x");
  seed_constant_checker_002::ConstantChecker checker;
  CHECK(checker.Check(one));
  CHECK(checker.Check(Tuple(tvm::Array<Expr>{one, Tuple(tvm::Array<Expr>{one})})));
  CHECK_FALSE(checker.Check(Tuple(tvm::Array<Expr>{one, x})));
  CHECK_FALSE(checker.Check(x));
}
