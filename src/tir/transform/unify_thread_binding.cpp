// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>

#include <unordered_map>
#include <unordered_set>

#include "tir/thread_axes.h"

namespace baton::tir {
namespace {

/// Removes the marks of axes and keeps the first of each.
class Remover : public StmtMutator {
 public:
  std::unordered_map<int, const AttrStmtNode*> first;
  std::unordered_set<const Object*> bound;  ///< variables bound between them
  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    const int axis = ThreadAxis(op);
    if (axis < 0) return StmtMutator::VisitStmt_(op);
    first.try_emplace(axis, op);
    return VisitStmt(op->body);
  }
  Stmt VisitStmt_(const ForNode* op) final {
    bound.insert(op->loop_var.get());
    return StmtMutator::VisitStmt_(op);
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    bound.insert(op->var.get());
    return StmtMutator::VisitStmt_(op);
  }
};

class Unifier : public StmtMutator {
 public:
  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key != kThreadExtent) return StmtMutator::VisitStmt_(op);
    const Stmt kernel = GetRef<Stmt>(op);
    const std::vector<KernelAxis> axes = AxesOf(kernel);
    if (IsUnified(op, axes)) return kernel;
    Remover remover;
    Stmt body = remover.VisitStmt(kernel);
    VarMap one;
    for (const KernelAxis& a : axes) {
      for (const VarNode* v : a.vars) {
        if (v != a.vars[0]) one[v] = GetRef<PrimExpr>(a.vars[0]);
      }
      PostOrderVisitExpr(a.extent, [&](const PrimExpr& e) {
        if (!remover.bound.count(e.get())) return;
        throw CompileError("UnifyThreadBinding: the extent of `" + std::string(ThreadAxisName(a.axis)) +
                           "` depends on `" + e.as<VarNode>()->name_hint.str() +
                           "`, which is bound within the kernel; a kernel has all its threads from the begin");
      });
    }
    body = Substitute(body, one);
    for (size_t i = axes.size(); i-- > 0;) {
      AttrStmtNode n = *remover.first.at(axes[i].axis);
      n.body = body;
      body = AttrStmt(std::move(n));
    }
    return body;
  }

 private:
  /// Whether all axes are marked once, one around the other, around all else.
  static bool IsUnified(const AttrStmtNode* op, const std::vector<KernelAxis>& axes) {
    for (const KernelAxis& a : axes) {
      if (!op || ThreadAxis(op) != a.axis || a.vars.size() != 1) return false;
      op = op->body.as<AttrStmtNode>();
    }
    return true;
  }
};

}  // namespace

namespace transform {
Pass UnifyThreadBinding() {
  return MakePass<UnifyThreadBinding>({
      .doc =
          "Each thread axis of a kernel (the marks \"thread_extent\" of blockIdx.x to threadIdx.z within the outermost "
          "one) has one mark and one variable, around all of the kernel. Throws where the marks of an axis differ in "
          "extent.",
      .run = [](PrimFunc f, IRModule, PassContext) { return WithBody(f, Unifier()(f->body)); },
  });
}
namespace {
const RegisterPass<UnifyThreadBinding> registered_unify_thread_binding("tir.transform.");
}
}  // namespace transform
}  // namespace baton::tir
