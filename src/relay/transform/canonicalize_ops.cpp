// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/tensor.h>
#include <baton/relay/transform.h>
#include <relay/expr/children.h>

namespace baton::relay::transform {
namespace {

class Canonicalizer : public MixedModeMutator {
 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    static const Op bias_add = Op::Get("nn.bias_add");
    const auto* call = post.as<CallNode>();
    if (!call || !call->op.same_as(bias_add)) return post;
    const auto* t = pre->args[0]->checked_type_.as<TensorTypeNode>();
    if (!t) return post;
    const int64_t rank = static_cast<int64_t>(t->shape.size());
    const int64_t axis = NormalizeAxis(AttrsAs<BiasAddAttrs>(call->attrs).axis, rank, "nn.bias_add");
    Expr bias = call->args[1];
    if (axis + 1 < rank) bias = ExpandDims(bias, 1, rank - axis - 1);
    Expr out = Add(call->args[0], bias);
    out->span = post->span;
    return out;
  }
};

}  // namespace

Pass CanonicalizeOps() {
  return MakePass<CanonicalizeOps>({
      .doc = "Says operators in terms of plainer ones that other passes know: nn.bias_add as add of an expanded bias.",
      .opt_level = 3,
      .required = {"InferType"},
      .reassociates = true,
      .run =
          [](Function f, IRModule, PassContext) {
            static const Op bias_add = Op::Get("nn.bias_add");
            return AnyCallOf(f, bias_add) ? Canonicalizer().Mutate(f) : f;
          },
  });
}

namespace {
const RegisterPass<CanonicalizeOps> registered_canonicalize_ops;
}  // namespace

}  // namespace baton::relay::transform
