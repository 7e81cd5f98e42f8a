// SPDX-License-Identifier: Apache-2.0
// NM-003: "Adding a Compiler Pass to Relay" (later), Expression Mutators: the default for Var.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_mutate_var {
using namespace tvm::relay;
using tvm::GetRef;
using tvm::Type;

struct ExprMutator : tvm::relay::ExprMutator {
  using tvm::relay::ExprMutator::VisitExpr_;
  Type from, to;
  Type VisitType(const Type& t) override { return t.same_as(from) ? to : t; }
  Expr VisitExpr_(const VarNode* op) override;
};

Expr ExprMutator::VisitExpr_(const VarNode* op) {
  if (op->type_annotation.defined()) {
    auto type = this->VisitType(op->type_annotation);
    if (!op->type_annotation.same_as(type)) {
      return Var(op->vid, type);
    }
  }
  // default case return self.
  return GetRef<Expr>(op);
}

}  // namespace seed_mutate_var

TEST_CASE("NM-003 NM-005 seed 003: a Var is rebuilt only if its type changed, and keeps its identity") {
  using namespace tvm::relay;
  tvm::TensorType a(tvm::Array<tvm::PrimExpr>{}, tvm::runtime::DataType::Float(32));
  tvm::TensorType b(tvm::Array<tvm::PrimExpr>{}, tvm::runtime::DataType::Float(16));
  Var x("x", a), y("y");
  seed_mutate_var::ExprMutator m;
  CHECK(m.Mutate(x).same_as(x));
  m = {};
  m.from = a;
  m.to = b;
  Expr changed = m.Mutate(x);
  CHECK(changed.as<VarNode>()->type_annotation.same_as(b));
  CHECK(changed.as<VarNode>()->vid.same_as(x->vid));
  CHECK(m.Mutate(y).same_as(y));
}
