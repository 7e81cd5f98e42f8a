// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>

namespace baton::relay::transform {
namespace {

/// Bottom-up: `post` has its arguments rewritten already; returning it as it is keeps sharing.
class @Camel@Mutator : public MixedModeMutator {
  using MixedModeMutator::Rewrite_;
  Expr Rewrite_(const CallNode*, const Expr& post) final {
    const auto* outer = post.as<CallNode>();
    if (!outer || outer->op != negative_) return post;
    const auto* inner = outer->args[0].as<CallNode>();
    return inner && inner->op == negative_ ? inner->args[0] : post;
  }

  const Op negative_ = Op::Get("negative");
};

}  // namespace

Pass @Camel@() {
  return MakePass<@Camel@>({
      .doc = "Replaces negative(negative(x)) by x. Sound because changing a sign twice changes nothing.",
      .opt_level = 1,
      .required = {"InferType"},
      .run = [](Function f, IRModule, PassContext) { return @Camel@Mutator().Mutate(f); },
  });
}

namespace {
const RegisterPass<@Camel@> registered_@snake@;
}  // namespace

}  // namespace baton::relay::transform
