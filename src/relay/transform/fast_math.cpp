// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/transform.h>
#include <relay/expr/children.h>

namespace baton::relay::transform {
namespace {

class FastMathMutator : public MixedModeMutator {
 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const auto* t = pre->checked_type_.as<TensorTypeNode>();
    if (!call || !t || !t->dtype.is_floating() || t->dtype.bits() > 32) return post;
    const OpDef* def = DefOf(call->op);
    const Op* fast = def ? def->traits.approximation : nullptr;
    if (!fast) return post;
    Expr out = MakeCall(*fast, call->args, call->attrs);
    out->span = post->span;
    return out;
  }
};

}  // namespace

Pass FastMath() {
  return MakePass<FastMath>({
      .doc = "Takes approximations of exp, erf, tanh and nn.softmax, within about 1e-6 of them: fast_exp, fast_erf, "
             "fast_tanh, nn.fast_softmax. For floats of up to 32 bits.",
      .opt_level = 4,
      .required = {"InferType"},
      .reassociates = true,
      .run =
          [](Function f, IRModule, PassContext) {
            return AnyCallWhere(f, [](const OpNode* op) { return DefOf(op) && DefOf(op)->traits.approximation; })
                       ? FastMathMutator().Mutate(f)
                       : f;
          },
  });
}

namespace {
const RegisterPass<FastMath> registered_fast_math;
}  // namespace

}  // namespace baton::relay::transform
