// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>

#include "relay/transform/combine_parallel.h"

namespace baton::relay::transform {
namespace {

int64_t PlaceOf(const String& layout, char letter) {
  size_t at = layout.view().find(letter);
  for (char c : layout.view()) {
    if (c >= '0' && c <= '9') return -1;  // split dimensions
  }
  return at == std::string_view::npos ? -1 : static_cast<int64_t>(at);
}

class Conv2DRule : public ParallelRule {
 public:
  bool Match(const CallNode* call, Ints* key, Attrs* attrs) const final {
    if (call->op != op::conv2d) return false;
    const auto& a = AttrsAs<Conv2DAttrs>(call->attrs);
    Ints data, weight, out;
    if (a.groups != 1 || !KnownShape(call->args[0], &data) || !KnownShape(call->args[1], &weight) ||
        !KnownShape(GetRef<Expr>(call), &out)) {
      return false;
    }
    const int64_t o = PlaceOf(a.kernel_layout, 'O');
    if (o < 0 || PlaceOf(a.data_layout, 'C') < 0 || Axis(call) < 0) return false;
    for (size_t d = 0; d < weight.size(); ++d) key->push_back(static_cast<int64_t>(d) == o ? -1 : weight[d]);
    key->push_back(static_cast<int64_t>(call->args[1]->checked_type_.as<TensorTypeNode>()->dtype.code()));
    key->push_back(call->args[1]->checked_type_.as<TensorTypeNode>()->dtype.bits());
    auto plain = runtime::make_object<Conv2DAttrs>(a);
    plain->channels = PrimExpr();
    plain->kernel_size = NoInts();
    *attrs = Attrs(runtime::ObjectPtr<Object>(plain));
    return true;
  }
  Expr Combine(const std::vector<const CallNode*>& calls, const Expr& data, const Array<Expr>& weights) const final {
    auto attrs = runtime::make_object<Conv2DAttrs>(AttrsAs<Conv2DAttrs>(calls[0]->attrs));
    const int64_t o = PlaceOf(attrs->kernel_layout, 'O');
    int64_t channels = 0;
    for (const CallNode* c : calls) {
      Ints w;
      KnownShape(c->args[1], &w);
      channels += w[o];
    }
    attrs->channels = PrimExpr(channels);
    return MakeCall(op::conv2d, {data, ConcatenateOf(weights, o)}, Attrs(runtime::ObjectPtr<Object>(attrs)));
  }
  int64_t Axis(const CallNode* call) const final {
    const auto& a = AttrsAs<Conv2DAttrs>(call->attrs);
    return PlaceOf(a.out_layout.empty() ? a.data_layout : a.out_layout, 'C');
  }
};

}  // namespace

Pass CombineParallelConv2D(const CombineParallelConv2DOptions& options) {
  const int64_t min_num_branches = options.min_num_branches;
  CheckMinBranches(min_num_branches, "CombineParallelConv2D");
  return MakePass<CombineParallelConv2D>(
      options,
      {
          .doc = "One nn.conv2d with all output channels for at least min_num_branches (3) on the same data that "
                 "differ in "
                 "their weights alone, together with the elementwise operators that follow all of them.",
          .opt_level = 4,
          .required = {"InferType"},
          .reassociates = true,
          .run = [min_num_branches](Function f, IRModule,
                                    PassContext) { return CombineParallel(f, Conv2DRule(), min_num_branches); },
      });
}

namespace {
const RegisterPass<CombineParallelConv2D> registered_combine_parallel_conv2d;
}  // namespace

}  // namespace baton::relay::transform
