// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>

namespace baton::relay::transform {
namespace {

/// Bottom-up: `pre` has its types, `post` has its arguments rewritten already; returning it as it is keeps sharing.
class @Camel@Mutator : public MixedModeMutator {
  using MixedModeMutator::Rewrite_;
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const OpDef* def = DefOf(pre->op);
    if (!def || def->traits.values != Values::kView) return post;
    const bool same_type = StructuralEqual(pre->args[0]->checked_type(), pre->checked_type());
    return same_type ? post.as<CallNode>()->args[0] : post;
  }
};

}  // namespace

Pass @Camel@() {
  return MakePass<@Camel@>({
      .doc = "Drops a view, such as a reshape, that has the type of its operand. Sound because a view keeps the order "
             "of elements.",
      .opt_level = 1,
      .required = {"InferType"},
      .run = [](Function f, IRModule, PassContext) { return @Camel@Mutator().Mutate(f); },
  });
}

namespace {
const RegisterPass<@Camel@> registered_@snake@;
}  // namespace

}  // namespace baton::relay::transform
