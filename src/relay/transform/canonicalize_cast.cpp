// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/tensor.h>
#include <baton/relay/transform.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/children.h>

namespace baton::relay::transform {
namespace {

class CastDivider : public MixedModeMutator {
 public:
  explicit CastDivider(const Expr& root) {
    for (const ExprNode* n : PostOrderNodes(root)) {
      if (!n->IsInstance<CallNode>()) continue;
      for (const Expr& a : static_cast<const CallNode*>(n)->args) ++uses_[a.get()];
    }
  }

 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  static bool IsCast(const Expr& e) {
    const auto* c = e.as<CallNode>();
    return c && c->op.same_as(op::cast);
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const OpDef* def = call ? DefOf(call->op) : nullptr;
    // An operator that a cast can be fused into; another would only compute the cast once more.
    if (!def || static_cast<int>(def->pattern) > static_cast<int>(OpPattern::kBroadcast)) return post;
    Array<Expr> args;
    bool changed = false;
    for (size_t i = 0; i < call->args.size(); ++i) {
      Expr a = call->args[i];
      if (i < pre->args.size() && IsCast(a) && IsCast(pre->args[i])) {
        // The first user keeps it.
        int32_t* uses = uses_.Find(pre->args[i].get());
        bool first = seen_.Add(pre->args[i].get());
        if (uses && *uses > 1 && !first) {
          auto own = make_object<CallNode>(*a.as<CallNode>());
          own->checked_type_ = pre->args[i]->checked_type_;
          a = Call(own);
          changed = true;
        }
      }
      args.push_back(a);
    }
    if (!changed) return post;
    auto n = make_object<CallNode>(*call);
    n->args = args;
    return Call(n);
  }
  PointerMap<int32_t> uses_;
  PointerSet seen_;
};

}  // namespace

Pass CanonicalizeCast() {
  return MakePass<CanonicalizeCast>({
      .doc =
          "Gives each elementwise or broadcasting user of a cast a cast of its own, so that the narrow tensor is what "
          "goes between kernels and the cast is fused into each of them.",
      .opt_level = 3,
      .required = {"InferType"},
      .run = [](Function f, IRModule, PassContext) { return AnyCallOf(f, op::cast) ? CastDivider(f).Mutate(f) : f; },
  });
}

namespace {
const RegisterPass<CanonicalizeCast> registered_canonicalize_cast;
}  // namespace

}  // namespace baton::relay::transform
