// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <baton/tir/transform.h>

namespace baton::tir {
namespace {

/// Whether evaluating an expression whose value is not used may do harm, its operands aside: it reads memory, divides,
/// or has an effect.
bool IsUnsafe(const PrimExpr& x) {
  if (x.as<BufferLoadNode>()) return true;
  if (const auto* call = x.as<CallNode>()) return CallHasSideEffect(call);
  const PrimExpr* divisor = nullptr;
  if (const auto* d = x.as<DivNode>()) divisor = &d->b;
  if (const auto* d = x.as<ModNode>()) divisor = &d->b;
  if (const auto* d = x.as<FloorDivNode>()) divisor = &d->b;
  if (const auto* d = x.as<FloorModNode>()) divisor = &d->b;
  return divisor && !divisor->dtype().is_floating() && !divisor->as<IntImmNode>();
}

class Rewriter : public StmtExprMutator {
 public:
  using StmtExprMutator::VisitExpr_;
  PrimExpr VisitExpr(const PrimExpr& e) final {
    const bool around = unsafe_;
    unsafe_ = IsUnsafe(e);
    PrimExpr out = StmtExprMutator::VisitExpr(e);
    last_ = unsafe_;
    unsafe_ = unsafe_ || around;
    return out;
  }
  PrimExpr VisitExpr_(const SelectNode* op) final {
    PrimExpr c = VisitExpr(op->condition), t = VisitExpr(op->true_value);
    bool harm = last_;
    PrimExpr f = VisitExpr(op->false_value);
    harm = harm || last_;
    // A condition of a vector has no branch.
    if (c.dtype().is_scalar() && harm) return if_then_else(c, t, f);
    const bool same = c.same_as(op->condition) && t.same_as(op->true_value) && f.same_as(op->false_value);
    return same ? GetRef<PrimExpr>(op) : Select(c, t, f);
  }

 private:
  bool unsafe_ = false;  ///< something in the expression that is being visited, so far
  bool last_ = false;    ///< in the one that was visited last
};

}  // namespace

namespace transform {
Pass RewriteUnsafeSelect() {
  return MakePass<RewriteUnsafeSelect>({
      .doc =
          "A select, which evaluates both its values, becomes if_then_else, which evaluates one, where the other may "
          "read outside a buffer or divide by zero.",
      .run = [](PrimFunc f, IRModule, PassContext) { return WithBody(f, Rewriter()(f->body)); },
  });
}
const RegisterPass<RewriteUnsafeSelect> registered_select("tir.transform.");
}  // namespace transform
}  // namespace baton::tir
