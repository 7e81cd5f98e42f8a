// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/transform.h>
#include <baton/relay/transform.h>
#include <relay/expr/children.h>

namespace baton::relay::transform {
namespace {

class PaddingFolder : public MixedModeMutator {
 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const CallNode*, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    switch (call ? ConvDims(call->op) : 0) {
      case 1:
        return Fold<1>(call, post);
      case 2:
        return Fold<2>(call, post);
      case 3:
        return Fold<3>(call, post);
      default:
        return post;
    }
  }

  template <int N>
  static Expr Fold(const CallNode* call, const Expr& post) {
    const auto* pad = call->args[0].as<CallNode>();
    const auto* conv = call->attrs.as<ConvAttrs<N>>();
    if (!pad || !conv || !pad->op.same_as(op::pad)) return post;
    const auto& widths = AttrsAs<PadAttrs>(pad->attrs);
    // A convolution pads with zeros, around its spatial dimensions.
    const auto* value = pad->args[1].as<ConstantNode>();
    const std::string layout = conv->data_layout.str();
    if (!value || value->data.numel() != 1 || value->data.GetDouble(0) != 0 || !(widths.pad_mode == "constant") ||
        widths.pad_width.size() != layout.size()) {
      return post;
    }
    const size_t given = conv->padding.size();
    if (given != 1 && given != N && given != 2 * N) return post;
    std::vector<int64_t> padding;
    for (size_t d = 0; d < 2 * N; ++d) padding.push_back(conv->padding[given == 1 ? 0 : given == N ? d % N : d]);
    const std::string space = std::string("DHW").substr(3 - N);
    for (size_t i = 0; i < layout.size(); ++i) {
      const size_t d = space.find(layout[i]);
      const int64_t before = widths.pad_width[i][0], after = widths.pad_width[i][1];
      if (before < 0 || after < 0 || (d == std::string::npos && (before || after))) return post;
      if (d == std::string::npos) continue;
      padding[d] += before;
      padding[N + d] += after;
    }
    auto attrs = make_object<ConvAttrs<N>>(*conv);
    attrs->padding = Array<int64_t>(padding);
    auto n = make_object<CallNode>(*call);
    n->args.Set(0, pad->args[0]);
    n->attrs = Attrs(ObjectPtr<Object>(attrs));
    n->span = post->span;
    return Call(n);
  }
};

}  // namespace

Pass FoldExplicitPadding() {
  return MakePass<FoldExplicitPadding>({
      .doc = "Zeros that nn.pad puts around the spatial dimensions become padding of the convolution that reads them.",
      .opt_level = 0,
      .run = [](Function f, IRModule, PassContext) { return AnyCallOf(f, op::pad) ? PaddingFolder().Mutate(f) : f; },
  });
}

namespace {
const RegisterPass<FoldExplicitPadding> registered_fold_explicit_padding;
}  // namespace

}  // namespace baton::relay::transform
