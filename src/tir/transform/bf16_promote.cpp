// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <baton/tir/transform.h>

namespace baton::tir {
namespace {

class Promoter : public StmtExprMutator {
 public:
  using StmtExprMutator::VisitExpr_;
#define BATON_PROMOTE(Name) \
  PrimExpr VisitExpr_(const Name##Node* op) final { return Binary<Name>(op); }
  BATON_TIR_BINARY_LIST(BATON_PROMOTE)
#undef BATON_PROMOTE

 private:
  template <class R, class N>
  PrimExpr Binary(const N* op) {
    if (!op->a.dtype().is_bfloat16()) return StmtExprMutator::VisitExpr_(op);
    const DataType wide = DataType::Float(32, op->a.dtype().lanes());
    PrimExpr out = R(Cast(wide, VisitExpr(op->a)), Cast(wide, VisitExpr(op->b)));
    return op->dtype.is_bfloat16() ? PrimExpr(Cast(op->dtype, out)) : out;
  }
};

}  // namespace

namespace transform {
Pass BF16Promote() {
  return MakePass<BF16Promote>({
      .doc =
          "Arithmetic on bfloat16 is done in float32, each result rounded to bfloat16. BF16CastElimination takes the "
          "roundings between out; BF16Legalize does both, and for float16 too.",
      .run = [](PrimFunc f, IRModule, PassContext) { return WithBody(f, Promoter()(f->body)); },
  });
}
namespace {
const RegisterPass<BF16Promote> registered_bf16_promote("tir.transform.");
}
}  // namespace transform
}  // namespace baton::tir
