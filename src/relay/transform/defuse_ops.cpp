// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <relay/expr/children.h>
#include <relay/transform/let_inserter.h>

namespace baton::relay::transform {
namespace {

class Defuser : public MixedModeMutator {
 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const CallNode*, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const auto* f = call ? call->op.as<FunctionNode>() : nullptr;
    if (!f || !f->HasNonzeroAttr(attr::kPrimitive) || f->params.size() != call->args.size()) return post;
    // Each use has its own variables.
    Function own = Downcast<Function>(RenewVars(call->op));
    Map<Var, Expr> binds;
    for (size_t i = 0; i < call->args.size(); ++i) binds.Set(own->params[i], call->args[i]);
    return Bind(own->body, binds);
  }
};

}  // namespace

Pass DefuseOps() {
  return MakePass<DefuseOps>({
      .doc = "Undoes FuseOps: calls of primitive functions become their bodies.",
      .opt_level = 3,
      .run =
          [](Function f, IRModule, PassContext) {
            const bool fused = AnyNode(f, [](const ExprNode* n) {
              return n->IsInstance<FunctionNode>() &&
                     static_cast<const FunctionNode*>(n)->HasNonzeroAttr(attr::kPrimitive);
            });
            return fused ? Defuser().Mutate(f) : f;
          },
  });
}

namespace {
const RegisterPass<DefuseOps> registered_defuse_ops;
}  // namespace

}  // namespace baton::relay::transform
