// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/target.h>
#include <baton/runtime/registry.h>
#include <baton/tir/functor.h>
#include <baton/tir/transform.h>
#include <baton/tir/verify.h>

#include <string>

#include "tir/thread_axes.h"

namespace baton::tir {
namespace {

constexpr int64_t kKernelConvention = 2;  ///< of the attribute "calling_conv": a kernel already

/// The first access of memory outside of parallel loops.
class AccessFinder : public StmtExprVisitor {
 public:
  std::string found;
  using StmtExprVisitor::VisitExpr_;
  using StmtExprVisitor::VisitStmt_;
  void VisitStmt(const Stmt& s) final {
    if (found.empty()) StmtExprVisitor::VisitStmt(s);
  }
  void VisitStmt_(const ForNode* op) final {
    VisitExpr(op->min);
    VisitExpr(op->extent);
    // All within is done by the device's work-items.
    if (op->kind != ForKind::kParallel) VisitStmt(op->body);
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key != kThreadExtent) StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    Access(op->buffer, "written");
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    Access(op->buffer, "read");
    StmtExprVisitor::VisitExpr_(op);
  }

 private:
  void Access(const Buffer& b, const char* how) {
    if (found.empty() && b->scope() != "local")
      found = "buffer `" + b->name.str() + "` is " + how + " outside of parallel loops";
  }
};

}  // namespace

std::string CheckMemory(const PrimFunc& func) {
  Target target = func->GetAttr<Target>(baton::attr::kTarget);
  if (!target.defined()) target = Target::Current();
  if (target->device_type() == kDLCPU || func->GetAttr<int64_t>("calling_conv", 0) == kKernelConvention) return "";
  AccessFinder finder;
  finder.VisitStmt(func->body);
  return finder.found;
}

namespace transform {
Pass VerifyMemory() {
  return MakePass<VerifyMemory>({
      .doc = "Throws where a function for a device (its attribute \"target\", else the current target) reads or writes "
             "memory outside of parallel loops and thread axes, which the host, or one work-item, would do.",
      .run =
          [](PrimFunc f, IRModule, PassContext) {
            if (const std::string what = CheckMemory(f); !what.empty()) {
              throw CompileError("`" + f->GetAttr<String>(baton::attr::kGlobalSymbol, String("prim_func")).str() +
                                 "`: " + what + "; mark a loop around it parallel");
            }
            return f;
          },
  });
}
namespace {
const RegisterPass<VerifyMemory> registered_verify_memory("tir.transform.");
}
}  // namespace transform

namespace {
BATON_REGISTER_GLOBAL("tir.analysis.verify_memory").set_body_typed([](PrimFunc f) { return CheckMemory(f).empty(); });
BATON_REGISTER_GLOBAL("tir.analysis.verify_ssa").set_body_typed([](PrimFunc f) { return CheckSSA(f).empty(); });
BATON_REGISTER_GLOBAL("tir.analysis.verify_well_formed").set_body_typed([](PrimFunc f) {
  return CheckWellFormed(f).empty();
});
}  // namespace
}  // namespace baton::tir
