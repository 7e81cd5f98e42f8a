// SPDX-License-Identifier: Apache-2.0
// NM-003: "Adding a Compiler Pass to Relay" (later): ConstantFolder of Let, TupleGetItem and Call.
#include <baton/compat/tvm.h>
#include <baton/relay/evaluator.h>
#include <doctest/doctest.h>

#include <unordered_map>
#include <unordered_set>

namespace seed_constant_folder_003 {
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
  std::unordered_map<Expr, bool, ObjectHash, ObjectEqual> memo_;

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
        return Let(var, value, body);
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

    std::unordered_set<std::string> skip_list{"zeros_like", "ones_like", "full_like", "full"};

    auto origin_args = call->args;
    Expr res = ExprMutator::VisitExpr_(call);
    call = res.as<CallNode>();
    // We don't constant fold function with zero arguments.
    // This is a heuristic that is useful.
    // For example it is harmful to fold ones(shape=(4, 5)).
    if (call->args.size() == 0) return res;
    const OpNode* op = call->op.as<OpNode>();
    if (op == nullptr) return res;
    if (skip_list.count(op->name)) {
      return res;
    }
    // skip stateful ops.
    if (op_stateful.get(GetRef<Op>(op), false)) return res;
    // Try to evaluate shape_of op
    if (call->op == shape_of_op_) {
      return EvaluateShapeOf(res, origin_args, call->attrs);
    }

    // We should think about potentially constant evaluation over these ops too.
    if (call->op == invoke_tvm_op_ || call->op == shape_func_op_ || call->op == alloc_tensor_op_ ||
        call->op == alloc_storage_op_) {
      return GetRef<Call>(call);
    }

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
  Expr EvaluateShapeOf(const Expr& expr, const Array<Expr>&, const Attrs&) { return expr; }
  const Op& shape_of_op_ = Op::Get("vm.shape_of");
  const Op& invoke_tvm_op_ = Op::Get("vm.invoke_tvm_op");
  const Op& shape_func_op_ = Op::Get("vm.shape_func");
  const Op& alloc_tensor_op_ = Op::Get("memory.alloc_tensor");
  const Op& alloc_storage_op_ = Op::Get("memory.alloc_storage");
};

TVM_DLL Expr FoldConstant(const Expr& expr);
Expr FoldConstant(const Expr& expr) { return ConstantFolder().Mutate(expr); }

}  // namespace seed_constant_folder_003

TEST_CASE("NM-003 TR-21 seed 003: ConstantFolder folds calls of constants, tuples and lets") {
  using namespace tvm::relay;
  using seed_constant_folder_003::FoldConstant;
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
