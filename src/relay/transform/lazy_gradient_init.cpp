// SPDX-License-Identifier: Apache-2.0
// Leaves out tensors of zeros and ones that gradients begin with.
#include <baton/ir/structural.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/tensor.h>
#include <baton/relay/op/transform.h>
#include <baton/relay/transform.h>
#include <relay/expr/children.h>

#include <cmath>

namespace baton::relay::transform {
namespace {

bool IsFilled(const CallNode* c) {
  const OpDef* def = DefOf(c->op);
  return def && def->traits.fill >= 0;
}

/// The number that all elements of a tensor are, if it is 0 or 1 and known; else -1.
int FilledWith(Expr e) {
  for (;;) {
    if (const auto* c = e.as<ConstantNode>()) {
      if (!c->is_scalar()) return -1;
      DataType t = c->data.dtype();
      double v = t.is_floating() ? c->data.GetDouble(0) : static_cast<double>(c->data.GetInt(0));
      return v == 0 && !std::signbit(v) ? 0 : v == 1 ? 1 : -1;
    }
    const auto* call = e.as<CallNode>();
    const OpDef* def = call ? DefOf(call->op) : nullptr;
    if (!def) return -1;
    if (def->traits.fill >= 0) return def->traits.fill;
    if ((def->traits.values < Values::kSelects && call->op != op::full) || call->args.empty()) return -1;
    e = call->args[0];
  }
}

class Omitter : public MixedModeMutator {
  using MixedModeMutator::VisitExpr_;
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    if (!call || call->args.size() != 2 || !pre->checked_type_.defined()) return post;
    // The neutral element, on the right alone or on either side.
    int neutral = -1;
    bool either = false;
    if (call->op == op::add) neutral = 0, either = true;
    if (call->op == op::multiply) neutral = 1, either = true;
    if (call->op == op::subtract) neutral = 0;
    if (call->op == op::divide) neutral = 1;
    if (neutral < 0) return post;
    auto keeps = [&](int other) {  // the other operand is the result: nothing is broadcast or converted
      const auto& type = pre->args[other]->checked_type_;
      return type.defined() && StructuralEqual(type, pre->checked_type_);
    };
    if (FilledWith(call->args[1]) == neutral && keeps(0)) return call->args[0];
    if (either && FilledWith(call->args[0]) == neutral && keeps(1)) return call->args[1];
    return post;
  }
};

}  // namespace

Pass LazyGradientInit() {
  return MakePass<LazyGradientInit>({
      .doc =
          "Tensors of zeros that are added and of ones that are multiplied, with which gradients begin, are left out. "
          "Exact but for the sign of a zero.",
      .opt_level = 1,
      .required = {"InferType"},
      .run =
          [](Function f, IRModule, PassContext) {
            const bool any = AnyNode(f, [](const ExprNode* n) {
              return n->IsInstance<ConstantNode>() ||
                     (n->IsInstance<CallNode>() && IsFilled(static_cast<const CallNode*>(n)));
            });
            return any ? Downcast<Function>(Omitter().Mutate(f)) : f;
          },
  });
}

namespace {
const RegisterPass<LazyGradientInit> registered_lazy_gradient_init;
}  // namespace

}  // namespace baton::relay::transform
