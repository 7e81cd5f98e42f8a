// SPDX-License-Identifier: Apache-2.0
// NM-003: "Adding a Compiler Pass to Relay": ConstantFolder of Let, TupleGetItem and Call; FoldConstant.
#include <baton/compat/tvm.h>
#include <baton/relay/evaluator.h>
#include <doctest/doctest.h>

#include <unordered_map>

namespace seed_constant_folder_002 {
using namespace tvm::relay;
using namespace tvm;
using tvm::relay::Call;
using tvm::relay::CallNode;
using tvm::relay::Expr;
using tvm::relay::Let;
using tvm::relay::LetNode;
using tvm::relay::Tuple;
using tvm::relay::Var;

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

class ConstantFolder : public ExprMutator {
 public:
  using ExprMutator::VisitExpr_;

  Expr VisitExpr_(const LetNode* op) final {
    Expr value = this->Mutate(op->value);
    if (value.as<ConstantNode>()) {
      memo_[op->var] = value;
      return this->Mutate(op->body);
    } else {
      Var var = Downcast<Var>(this->Mutate(op->var));
      Expr body = this->Mutate(op->body);
      if (var.same_as(op->var) && value.same_as(op->value) && body.same_as(op->body)) {
        return GetRef<Expr>(op);
      } else {
        return LetNode::make(var, value, body);
      }
    }
  }

  Expr VisitExpr_(const TupleGetItemNode* op) final {
    Expr res = ExprMutator::VisitExpr_(op);
    op = res.as<TupleGetItemNode>();
    if (const auto* tuple = op->tuple.as<TupleNode>()) {
      return tuple->fields[op->index];
    } else {
      return res;
    }
  }

  Expr VisitExpr_(const CallNode* call) final {
    static auto op_stateful = Op::GetAttr<TOpIsStateful>("TOpIsStateful");
    Expr res = ExprMutator::VisitExpr_(call);
    call = res.as<CallNode>();
    // We don't constant fold function with zero arguments.
    // This is a heuristic that is useful.
    // For example it is harmful to fold ones(shape=(4, 5)).
    if (call->args.size() == 0) return res;
    const OpNode* op = call->op.as<OpNode>();
    if (op == nullptr) return res;
    // skip stateful ops.
    if (op_stateful.get(GetRef<Op>(op), false)) return res;
    bool all_const_args = true;
    for (Expr arg : call->args) {
      if (!checker_.Check(arg)) {
        all_const_args = false;
      }
    }
    if (all_const_args) {
      return ConstEvaluate(res);
    } else {
      return res;
    }
  }

 private:
  ConstantChecker checker_;
  // Not in the document.
  Expr ConstEvaluate(const Expr& expr) {
    return Constant(Downcast<runtime::NDArray>(Interpret(expr, IRModule(Map<GlobalVar, BaseFunc>{}))));
  }
};

TVM_DLL Expr FoldConstant(const Expr& expr);
Expr FoldConstant(const Expr& expr) { return ConstantFolder().Mutate(expr); }

}  // namespace seed_constant_folder_002

TEST_CASE("NM-003 seed 002: ConstantFolder folds calls of constants, tuples and lets") {
  using namespace tvm::relay;
  using seed_constant_folder_002::FoldConstant;
  using tvm::Array;
  Constant one(tvm::runtime::NDArray::Scalar(1.0, tvm::runtime::DataType::Float(32)));
  Var x("x");
  const tvm::Op& add = tvm::Op::Get("add");
  Call two(add, Array<Expr>{one, one});
  auto value = [](const Expr& e) {
    const auto* c = e.as<ConstantNode>();
    return c ? *static_cast<const float*>(c->data.data()) : -1;
  };
  CHECK(value(FoldConstant(two)) == 2);
  CHECK(value(FoldConstant(Call(add, Array<Expr>{two, two}))) == 4);
  CHECK(FoldConstant(Call(add, Array<Expr>{one, x})).as<CallNode>());
  CHECK(value(FoldConstant(Let(x, two, x))) == 2);
  CHECK(value(FoldConstant(TupleGetItem(Tuple(Array<Expr>{x, two}), 1))) == 2);
  Let kept(x, Var("y"), x);
  CHECK(FoldConstant(kept).same_as(kept));
}
