// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>

#include "relay/transform/combine_parallel.h"

namespace baton::relay::transform {
namespace {

/// batch_matmul of second factors side by side.
class BatchMatmulRule : public ParallelRule {
 public:
  bool Match(const CallNode* call, Ints* key, Attrs* attrs) const final {
    static const Op batch_matmul = Op::Get("nn.batch_matmul");
    Ints x, y, out;
    if (!call->op.same_as(batch_matmul) || !KnownShape(call->args[0], &x) || !KnownShape(call->args[1], &y) ||
        !KnownShape(GetRef<Expr>(call), &out) || y.size() != 3 || out[0] != y[0]) {
      return false;
    }
    const auto* t = call->args[1]->checked_type_.as<TensorTypeNode>();
    const bool transposed = AttrsAs<BatchMatmulAttrs>(call->attrs).transpose_b;
    key->insert(key->end(), {y[0], y[transposed ? 2 : 1], static_cast<int64_t>(t->dtype.code()), t->dtype.bits()});
    *attrs = call->attrs.defined() ? call->attrs : MakeAttrs<BatchMatmulAttrs>();
    return true;
  }
  Expr Combine(const std::vector<const CallNode*>& calls, const Expr& data, const Array<Expr>& weights) const final {
    const bool transposed = AttrsAs<BatchMatmulAttrs>(calls[0]->attrs).transpose_b;
    return MakeCall(Downcast<Op>(calls[0]->op), {data, ConcatenateOf(weights, transposed ? 1 : 2)}, calls[0]->attrs);
  }
  int64_t Axis(const CallNode*) const final { return 2; }
};

}  // namespace

Pass CombineParallelBatchMatmul(const CombineParallelBatchMatmulOptions& options) {
  const int64_t min_num_branches = options.min_num_branches;
  CheckMinBranches(min_num_branches, "CombineParallelBatchMatmul");
  return MakePass<CombineParallelBatchMatmul>(
      options,
      {
          .doc = "One nn.batch_matmul for at least min_num_branches (3) with the same first factor, together with the "
                 "elementwise operators that follow all of them.",
          .opt_level = 4,
          .required = {"InferType"},
          .reassociates = true,
          .run = [min_num_branches](Function f, IRModule,
                                    PassContext) { return CombineParallel(f, BatchMatmulRule(), min_num_branches); },
      });
}

namespace {
const RegisterPass<CombineParallelBatchMatmul> registered_combine_parallel_batch_matmul;
}  // namespace

}  // namespace baton::relay::transform
