// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>

namespace baton::tir {
namespace {

class Eliminator : public StmtExprMutator {
 public:
  using StmtExprMutator::VisitExpr_;
  PrimExpr VisitExpr_(const CastNode* op) final {
    PrimExpr e = StmtExprMutator::VisitExpr_(op);
    const auto* outer = e.as<CastNode>();
    const auto* inner = outer ? outer->value.as<CastNode>() : nullptr;
    const bool there_and_back = inner && inner->dtype.is_bfloat16() &&
                                outer->dtype.element_of() == DataType::Float(32) &&
                                inner->value.dtype() == outer->dtype;
    return there_and_back ? inner->value : e;
  }
};

}  // namespace

namespace transform {
Pass BF16CastElimination() {
  return MakePass<BF16CastElimination>({
      .doc = "A float32 that is made bfloat16 and float32 again stays as it is: between operations nothing is rounded, "
             "so that results are nearer to those of float32.",
      .run = [](PrimFunc f, IRModule, PassContext) { return WithBody(f, Eliminator()(f->body)); },
  });
}
namespace {
const RegisterPass<BF16CastElimination> registered_bf16_cast_elimination("tir.transform.");
}
}  // namespace transform
}  // namespace baton::tir
