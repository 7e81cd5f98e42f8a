// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/op.h>
#include <baton/tir/transform.h>

namespace baton::tir {
namespace {

/// Whether evaluating an expression that is not wanted may do harm: it reads memory, divides, or has an effect.
bool IsUnsafe(const PrimExpr& e) {
  if (HasSideEffect(e)) return true;
  bool unsafe = false;
  PostOrderVisitExpr(e, [&](const PrimExpr& x) {
    const PrimExpr* divisor = nullptr;
    if (const auto* d = x.as<DivNode>()) divisor = &d->b;
    if (const auto* d = x.as<ModNode>()) divisor = &d->b;
    if (const auto* d = x.as<FloorDivNode>()) divisor = &d->b;
    if (const auto* d = x.as<FloorModNode>()) divisor = &d->b;
    if (divisor && !divisor->dtype().is_floating() && !divisor->as<IntImmNode>()) unsafe = true;
    if (x.as<BufferLoadNode>()) unsafe = true;
  });
  return unsafe;
}

class Rewriter : public StmtExprMutator {
 public:
  using StmtExprMutator::VisitExpr_;
  PrimExpr VisitExpr_(const SelectNode* op) final {
    PrimExpr e = StmtExprMutator::VisitExpr_(op);
    const auto* s = e.as<SelectNode>();
    // A condition of a vector has no branch.
    if (!s || !s->condition.dtype().is_scalar() || !(IsUnsafe(s->true_value) || IsUnsafe(s->false_value))) return e;
    return if_then_else(s->condition, s->true_value, s->false_value);
  }
};

}  // namespace

namespace transform {
Pass RewriteUnsafeSelect() {
  return MakePass<RewriteUnsafeSelect>({
      .doc =
          "A select, which evaluates both its values, becomes if_then_else, which evaluates one, where the other may "
          "read outside a buffer or divide by zero.",
      .run =
          [](PrimFunc f, IRModule, PassContext) {
            Stmt body = Rewriter()(f->body);
            if (body.same_as(f->body)) return f;
            PrimFunc out = f;
            out.CopyOnWrite()->body = body;
            return out;
          },
  });
}
const RegisterPass<RewriteUnsafeSelect> registered_select("tir.transform.");
}  // namespace transform
}  // namespace baton::tir
