// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>
#include <tir/any_stmt.h>

namespace baton::tir {
namespace {

class Serializer : public StmtMutator {
 public:
  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const ForNode* op) final {
    Stmt s = StmtMutator::VisitStmt_(op);
    if (op->kind != ForKind::kParallel) return s;
    ForNode n = *s.as<ForNode>();
    n.kind = ForKind::kSerial;
    return For(std::move(n));
  }
};

}  // namespace

namespace transform {
Pass ConvertForLoopsToSerial() {
  return MakePass<ConvertForLoopsToSerial>({
      .doc = "Parallel loops become loops that run a round after the other, for machines without threads.",
      .run =
          [](PrimFunc f, IRModule, PassContext) {
            const auto parallel = [](const ForNode* l) { return l->kind == ForKind::kParallel; };
            return AnyStmtOf<ForNode>(f->body, parallel) ? WithBody(f, Serializer()(f->body)) : f;
          },
  });
}
namespace {
const RegisterPass<ConvertForLoopsToSerial> registered_convert_for_loops_to_serial("tir.transform.");
}
}  // namespace transform
}  // namespace baton::tir
