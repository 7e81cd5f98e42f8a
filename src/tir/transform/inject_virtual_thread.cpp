// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <baton/tir/transform.h>
#include <tir/any_stmt.h>

namespace baton::tir {
namespace {

constexpr const char* kVirtualThread = "virtual_thread";
/// Most threads that are written out; more become a loop.
constexpr int64_t kWrittenOut = 16;

class VirtualThreadInjector : public StmtMutator {
 public:
  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key != kVirtualThread) return StmtMutator::VisitStmt_(op);
    const auto* axis = op->node.as<IterVarNode>();
    const auto* var = axis ? axis->var.get() : op->node.as<VarNode>();
    if (!var) {
      throw CompileError(
          "InjectVirtualThread: the mark \"virtual_thread\" is about no variable; its node is a tir.IterVar or a "
          "tir.Var");
    }
    const int64_t* count = as_const_int(op->value);
    ForNode n;
    n.loop_var = GetRef<Var>(var);
    n.min = make_int(var->dtype, 0);
    n.extent = op->value;
    n.kind = count && *count <= kWrittenOut ? ForKind::kUnrolled : ForKind::kSerial;
    n.body = VisitStmt(op->body);
    return For(std::move(n));
  }
};

}  // namespace

namespace transform {
Pass InjectVirtualThread() {
  return MakePass<InjectVirtualThread>({
      .doc = "Virtual threads (the mark \"virtual_thread\" of a variable) become rounds of a loop, written out where "
             "they are few. They share nothing, so that each may run to its end before the next one.",
      .run =
          [](PrimFunc f, IRModule, PassContext) {
            const auto marked = [](const AttrStmtNode* a) { return a->attr_key == kVirtualThread; };
            return AnyStmtOf<AttrStmtNode>(f->body, marked) ? WithBody(f, VirtualThreadInjector()(f->body)) : f;
          },
  });
}
namespace {
const RegisterPass<InjectVirtualThread> registered_inject_virtual_thread("tir.transform.");
}
}  // namespace transform
}  // namespace baton::tir
