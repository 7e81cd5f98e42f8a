// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>

namespace baton::tir {
namespace {

class IntrinLowerer : public StmtExprMutator {
 public:
  using StmtExprMutator::VisitExpr_;
  PrimExpr VisitExpr_(const CallNode* op) final {
    PrimExpr e = StmtExprMutator::VisitExpr_(op);
    const auto* call = e.as<CallNode>();
    const IntrinDef* row = IntrinOf(call);
    if (!row || !row->expand || !call->dtype.is_floating()) return e;
    const PrimExpr expanded = row->expand(call);
    return expanded.defined() ? expanded : e;
  }
};

}  // namespace

PrimFunc LowerIntrinsics(const PrimFunc& f) {
  Stmt body = IntrinLowerer()(f->body);
  if (body.same_as(f->body)) return f;
  PrimFunc out = f;
  out.CopyOnWrite()->body = body;
  return out;
}

namespace transform {
Pass LowerIntrin() {
  return MakePass<LowerIntrin>({
      .doc = "Elementary functions of float32 become polynomials in vector registers.",
      .reassociates = true,
      .run = [](PrimFunc f, IRModule, PassContext) { return LowerIntrinsics(f); },
  });
}
const RegisterPass<LowerIntrin> registered_intrin("tir.transform.");
}  // namespace transform

}  // namespace baton::tir
