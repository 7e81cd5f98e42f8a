// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <baton/tir/transform.h>
#include <tir/any_stmt.h>

namespace baton::tir {
namespace {

class Skipper : public StmtMutator {
 public:
  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const AssertStmtNode* op) final {
    if (op->body.defined()) return VisitStmt(op->body);
    EvaluateNode n;
    n.value = PrimExpr(0);
    return Evaluate(std::move(n));
  }
};

}  // namespace

namespace transform {
Pass SkipAssert() {
  return MakePass<SkipAssert>({
      .doc = "Assertions go: what they guard runs unchecked.",
      .run = [](PrimFunc f, IRModule,
                PassContext) { return AnyStmtOf<AssertStmtNode>(f->body) ? WithBody(f, Skipper()(f->body)) : f; },
  });
}
namespace {
const RegisterPass<SkipAssert> registered_skip_assert("tir.transform.");
}
}  // namespace transform
}  // namespace baton::tir
