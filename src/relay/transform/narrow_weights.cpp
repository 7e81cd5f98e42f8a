// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/target.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/children.h>
#include <relay/op/later.h>
#include <relay/op/narrow_values.h>

#include <vector>

namespace baton::relay::transform {
namespace {

bool TakesNarrowWeights(const OpNode* op) {
  const OpDef* def = DefOf(GetRef<Op>(op));
  return def && def->traits.narrow_weight;
}

class WeightNarrower : public MixedModeMutator {
 public:
  explicit WeightNarrower(const Target& target) {
    narrow_.push_back(DataType::Int(8));
    narrow_.push_back(DataType::BFloat16());
    // Without instructions for it, widening float16 would take longer than the products.
    if (target->Has("f16c")) narrow_.push_back(DataType::Float(16));
  }

 private:
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* op = pre->op.as<OpNode>();
    const auto* call = post.as<CallNode>();
    if (!op || !call || !TakesNarrowWeights(op)) return post;
    const auto* w = call->args[1].as<ConstantNode>();
    const auto* data = pre->args[0]->checked_type_.as<TensorTypeNode>();
    if (!w || !data || !(w->data.dtype() == DataType::Float(32)) || !(data->dtype == DataType::Float(32))) return post;
    Expr& narrow = narrowed_[call->args[1]];
    if (!narrow.defined()) narrow = Narrow(GetRef<Constant>(w));
    if (narrow.same_as(call->args[1])) return post;
    auto n = make_object<CallNode>(*call);
    n->checked_type_ = ObjectRef();
    n->args.Set(1, narrow);
    // The result's dtype can no longer be that of both operands.
    const auto* info = runtime::TypeInfo::Get(n->attrs->type_index());
    if (const auto* f = info->Find("out_dtype")) {
      Attrs own(info->copy(n->attrs.get()));
      f->Set(runtime::ObjectAccess::Get(own), Any(DataType::Float(32)).raw());
      n->attrs = own;
    }
    return Call(n);
  }

  Expr Narrow(const Constant& w) const {
    if (w->data.numel() < kFewestNarrow) return w;
    for (DataType t : narrow_) {
      NDArray made = ExactlyAs(w->data, t);
      if (!made.defined()) continue;
      if (w->data.HasSource()) {
        MakeAgain(made, w->data, [t](const NDArray& wide) { return ExactlyAs(wide, t); });
        w->data.GiveBack();
      }
      Constant c(made);
      c->span = w->span;
      return c;
    }
    return w;
  }

  std::vector<DataType> narrow_;
  ExprMemo narrowed_;
};

}  // namespace

Pass NarrowWeights() {
  return MakePass<NarrowWeights>({
      .doc = "Keeps constant float32 weights in int8, bfloat16 or float16 where that holds all of them exactly and the "
             "kernel that reads them widens them on the way: weights of half-float and of integer models.",
      .opt_level = 1,
      .required = {"InferType"},
      .run = [](Function f, IRModule, PassContext) -> Function {
        const Target target = Target::Current();
        if (!target->traits().vector_kernels) return f;
        return AnyCallWhere(f, TakesNarrowWeights) ? Downcast<Function>(WeightNarrower(target).Mutate(f)) : f;
      },
  });
}

namespace {
const RegisterPass<NarrowWeights> registered_narrow_weights;
}  // namespace

}  // namespace baton::relay::transform
