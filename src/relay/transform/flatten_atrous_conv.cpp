// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/qnn.h>
#include <baton/relay/op/transform.h>
#include <baton/relay/transform.h>
#include <relay/expr/children.h>

#include <string>

namespace baton::relay::transform {
namespace {

double ConstantScalar(const Expr& e, double default_value) {
  const auto* c = e.as<ConstantNode>();
  return c && c->data->ndim == 0 ? c->data.GetDouble(0) : default_value;
}

/// batch_to_space(conv2d(space_to_batch(x), w)): the convolution of every b-th element is one with dilation b. Block i
/// of the batch holds the elements i, i + b, ...: a window over neighbours there is one over elements b apart here, and
/// the padding in front of x is what space_to_batch put there, less what batch_to_space cuts.
class Flattener : public MixedModeMutator {
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const CallNode*, const Expr& post) final {
    const auto* back = post.as<CallNode>();
    if (!back || back->op != op::batch_to_space_nd) return post;
    const auto* conv = back->args[0].as<CallNode>();
    const bool quantized = conv && conv->op == op::qnn::conv2d;
    if (!conv || (conv->op != op::conv2d && !quantized)) return post;
    const auto* there = conv->args[0].as<CallNode>();
    if (!there || there->op != op::space_to_batch_nd) return post;
    const auto& b = AttrsAs<BatchToSpaceNDAttrs>(back->attrs);
    const auto& s = AttrsAs<SpaceToBatchNDAttrs>(there->attrs);
    const auto& a = AttrsAs<Conv2DAttrs>(conv->attrs);
    // Blocks are of the dimensions behind the batch, which have to be height and width.
    const std::string layout = a.data_layout.str(), out = a.out_layout.str();
    if (layout != "NHWC" || (!out.empty() && out != layout)) return post;
    if (s.block_shape.size() != 2 || b.block_shape.size() != 2) return post;
    // The padding value stands for 0.
    const double zero = quantized ? ConstantScalar(conv->args[2], -1) : 0;
    bool padded = false;
    for (const auto& p : s.paddings) padded |= p[0] != 0 || p[1] != 0;
    if (padded && s.pad_value != zero) return post;
    Array<int64_t> dilation = a.dilation, padding;
    int64_t begins[2], ends[2];
    for (int64_t d = 0; d < 2; ++d) {
      if (s.block_shape[d] != b.block_shape[d] || a.strides[a.strides.size() == 1 ? 0 : d] != 1) return post;
      const int64_t n = s.block_shape[d];
      const size_t k = a.padding.size();
      const int64_t begin = a.padding[k == 1 ? 0 : d], end = a.padding[k == 1 ? 0 : k == 2 ? d : d + 2];
      begins[d] = n * begin + s.paddings[d][0] - b.crops[d][0];
      ends[d] = n * end + s.paddings[d][1] - b.crops[d][1];
      if (begins[d] < 0 || ends[d] < 0) return post;
      dilation.Set(d, n * a.dilation[a.dilation.size() == 1 ? 0 : d]);
    }
    padding = {begins[0], begins[1], ends[0], ends[1]};
    auto attrs = runtime::make_object<Conv2DAttrs>(a);
    attrs->dilation = dilation, attrs->padding = padding;
    auto n = runtime::make_object<CallNode>(*conv);
    n->args.Set(0, there->args[0]);
    n->attrs = Attrs(runtime::ObjectPtr<runtime::Object>(attrs));
    n->checked_type_ = ObjectRef();
    n->span = post->span;
    return Call(n);
  }
};

}  // namespace

Pass FlattenAtrousConv() {
  return MakePass<FlattenAtrousConv>({
      .doc = "nn.batch_to_space_nd of a convolution (nn.conv2d, qnn.conv2d, NHWC) of nn.space_to_batch_nd becomes the "
             "dilated convolution that it computes.",
      .opt_level = 0,
      .required = {"InferType"},
      .reassociates = true,
      .run = [](Function f, IRModule,
                PassContext) { return AnyCallOf(f, op::space_to_batch_nd) ? Flattener().Mutate(f) : f; },
  });
}

namespace {
const RegisterPass<FlattenAtrousConv> registered_flatten_atrous_conv;
}

}  // namespace baton::relay::transform
