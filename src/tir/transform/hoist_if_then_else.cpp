// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/transform.h>

namespace baton::tir {
namespace {

/// Whether an expression is the same whenever it is evaluated: no memory is read, nothing is done.
bool IsFixed(const PrimExpr& e) {
  if (HasSideEffect(e)) return false;
  bool fixed = true;
  PostOrderVisitExpr(e, [&](const PrimExpr& x) { fixed = fixed && !x.as<BufferLoadNode>(); });
  return fixed;
}

class Hoister : public StmtMutator {
 public:
  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const ForNode* op) final {
    // Inner loops first, so that a condition climbs as far as it can.
    Stmt s = StmtMutator::VisitStmt_(op);
    op = s.as<ForNode>();
    const auto* branch = op->body.as<IfThenElseNode>();
    if (!branch || UsesVar(branch->condition, op->loop_var.get()) || !IsFixed(branch->condition)) return s;
    auto loop = [&](const Stmt& body) {
      ForNode n = *op;
      n.body = body;
      return For(std::move(n));
    };
    IfThenElseNode n;
    n.condition = branch->condition;
    n.then_case = loop(branch->then_case);
    if (branch->else_case.defined()) n.else_case = RenewBindings(loop(branch->else_case));
    return IfThenElse(std::move(n));
  }
};

}  // namespace

namespace transform {
Pass HoistIfThenElse() {
  return MakePass<HoistIfThenElse>({
      .doc = "A condition that is the same in all rounds of a loop, and is all that the loop does, moves out of it. "
             "Sound because it reads no memory, so that it can be asked before the first round.",
      .run =
          [](PrimFunc f, IRModule, PassContext) {
            Stmt body = Hoister()(f->body);
            if (body.same_as(f->body)) return f;
            PrimFunc out = f;
            out.CopyOnWrite()->body = body;
            return out;
          },
  });
}
const RegisterPass<HoistIfThenElse> registered_hoist("tir.transform.");
}  // namespace transform
}  // namespace baton::tir
