// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/transform.h>

#include "relay/transform/combine_parallel.h"

namespace baton::relay::transform {
namespace {

/// dense of weights (units, K) side by side: one dense, or one batch_matmul of the data for each branch.
class DenseRule : public ParallelRule {
 public:
  explicit DenseRule(bool stacks) : stacks_(stacks) {}
  bool Match(const CallNode* call, Ints* key, Attrs* attrs) const final {
    if (call->op != op::dense) return false;
    Ints data, weight, out;
    if (!KnownShape(call->args[0], &data) || !KnownShape(call->args[1], &weight) ||
        !KnownShape(GetRef<Expr>(call), &out))
      return false;
    const auto* t = call->args[1]->checked_type_.as<TensorTypeNode>();
    if (stacks_) {
      // A product of matrices, all of one shape.
      if (data.size() != 2 || !(call->args[0]->checked_type_.as<TensorTypeNode>()->dtype == t->dtype)) return false;
      key->push_back(weight[0]);
    }
    key->insert(key->end(), {weight[1], static_cast<int64_t>(t->dtype.code()), t->dtype.bits()});
    auto plain = runtime::make_object<DenseAttrs>(AttrsAs<DenseAttrs>(call->attrs));
    plain->units = PrimExpr();
    *attrs = Attrs(runtime::ObjectPtr<Object>(plain));
    return true;
  }
  Expr Combine(const std::vector<const CallNode*>& calls, const Expr& data, const Array<Expr>& weights) const final {
    const auto& own = AttrsAs<DenseAttrs>(calls[0]->attrs);
    if (stacks_) {
      static const Op stack = Op::Get("stack");
      auto stacked = [&](const Array<Expr>& parts) {
        return MakeCall<StackAttrs>(stack, {Tuple(parts)}, [](StackAttrs* a) { a->axis = 0; });
      };
      static const Op batch_matmul = Op::Get("nn.batch_matmul");
      Array<Expr> copies(calls.size(), data);
      return MakeCall<BatchMatmulAttrs>(batch_matmul, {stacked(copies), stacked(weights)},
                                        [&](BatchMatmulAttrs* a) { a->out_dtype = own.out_dtype; });
    }
    int64_t units = 0;
    for (const CallNode* c : calls) {
      Ints w;
      KnownShape(c->args[1], &w);
      units += w[0];
    }
    return MakeCall<DenseAttrs>(op::dense, {data, ConcatenateOf(weights, 0)}, [&](DenseAttrs* a) {
      *a = own;
      a->units = PrimExpr(units);
    });
  }
  int64_t Axis(const CallNode* call) const final {
    return static_cast<int64_t>(call->checked_type_.as<TensorTypeNode>()->shape.size()) - 1;
  }
  bool stacks() const final { return stacks_; }

 private:
  bool stacks_;
};

}  // namespace

Pass CombineParallelDense(const CombineParallelDenseOptions& options) {
  const int64_t min_num_branches = options.min_num_branches;
  CheckMinBranches(min_num_branches, "CombineParallelDense");
  return MakePass<CombineParallelDense>(
      options,
      {
          .doc =
              "One product for at least min_num_branches (3) nn.dense of the same data, together with the elementwise "
              "operators that follow all of them: nn.batch_matmul of weights of one shape, or, with to_batch_matmul "
              "false, nn.dense with all units, which may differ.",
          .opt_level = 4,
          .required = {"InferType"},
          .reassociates = true,
          .run = [min_num_branches, to_batch_matmul = options.to_batch_matmul](
                     Function f, IRModule,
                     PassContext) { return CombineParallel(f, DenseRule(to_batch_matmul), min_num_branches); },
      });
}

namespace {
const RegisterPass<CombineParallelDense> registered_combine_parallel_dense;
}  // namespace

}  // namespace baton::relay::transform
