// SPDX-License-Identifier: Apache-2.0
// A value of bytes that is restored to float32 for two kernels is stored as bytes, and each restores it.
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/transform.h>
#include <baton/relay/transform.h>
#include <baton/support/pointer_map.h>
#include <baton/tir/functor.h>
#include <relay/expr/children.h>
#include <relay/op/qnn/integers.h>

#include <vector>

namespace baton::relay::transform {
namespace {

constexpr size_t kMostWidening = 6;

const TensorTypeNode* TensorHere(const ExprNode* e) { return e->checked_type_.as<TensorTypeNode>(); }
bool EqualShapes(const TensorTypeNode* a, const TensorTypeNode* b) {
  if (!a || !b || a->shape.size() != b->shape.size()) return false;
  for (size_t i = 0; i < a->shape.size(); ++i) {
    const auto k = static_cast<int64_t>(i);
    if (!tir::ExprDeepEqual(a->shape[k], b->shape[k])) return false;
  }
  return true;
}

/// Whether the kernel of a call reads its operands as something else computes them: not buffers.
bool ComputesOperands(const CallNode* call) {
  const OpDef* def = DefOf(call->op);
  return def && def->lower && !def->stateful && def->pattern <= OpPattern::kCommReduce;
}

/// The operand of a step that moves, scales or casts each element, with constants; -1 for other calls.
int64_t WideningOperand(const CallNode* call) {
  const OpDef* def = DefOf(call->op);
  if (!def || !def->lower) return -1;
  const IntegersFn rule = def->traits.integers;
  if (!call->attrs.as<CastAttrs>() && rule != integers::Sum && rule != integers::Difference &&
      rule != integers::Product)
    return -1;
  int64_t found = -1;
  for (size_t i = 0; i < call->args.size(); ++i) {
    const auto k = static_cast<int64_t>(i);
    if (call->args[k].as<ConstantNode>()) continue;
    if (found >= 0 || !EqualShapes(TensorHere(call->args[k].get()), TensorHere(call))) return -1;
    found = k;
  }
  return found;
}

class Repeater : public MixedModeMutator {
 public:
  explicit Repeater(const Function& f) {
    PostOrder(f, [&](const Expr& e) {
      const auto* call = e.as<CallNode>();
      PointerSet seen;
      ForEachChild(e.get(), [&](const ExprNode* child) {
        if (!seen.Add(child)) return;
        Readers& r = readers_[child];
        ++r.count, r.light = r.light && call && ComputesOperands(call);
      });
    });
  }

 private:
  struct Readers {
    int count = 0;
    bool light = true;
  };

  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    if (!call || !ComputesOperands(pre)) return post;
    Array<Expr> args = call->args;
    bool changed = false;
    for (size_t i = 0; i < args.size(); ++i) {
      const auto k = static_cast<int64_t>(i);
      const std::vector<const CallNode*> steps = Widening(pre->args[k]);
      if (steps.empty()) continue;
      Expr made = VisitExpr(steps.back()->args[WideningOperand(steps.back())]);
      for (size_t s = steps.size(); s-- > 0;) {
        auto step = runtime::make_object<CallNode>(*steps[s]);
        step->args.Set(WideningOperand(steps[s]), made);
        made = Call(step);
      }
      args.Set(k, made), changed = true;
    }
    if (!changed) return post;
    auto n = runtime::make_object<CallNode>(*call);
    n->args = args;
    return Call(n);
  }

  /// The steps, last first, that make a value with several light readers of one with fewer bits; none for other values.
  std::vector<const CallNode*> Widening(const Expr& e) const {
    const Readers* r = readers_.Find(e.get());
    if (!r || r->count < 2 || !r->light || !TensorHere(e.get())) return {};
    std::vector<const CallNode*> steps;
    for (const ExprNode* at = e.get(); steps.size() < kMostWidening;) {
      const auto* call = at->IsInstance<CallNode>() ? static_cast<const CallNode*>(at) : nullptr;
      const int64_t operand = call ? WideningOperand(call) : -1;
      if (operand < 0) return {};
      steps.push_back(call);
      at = call->args[operand].get();
      if (TensorHere(at)->dtype.bits() < TensorHere(e.get())->dtype.bits()) return steps;
    }
    return {};
  }

  PointerMap<Readers> readers_;
};

}  // namespace

Pass RepeatWidening() {
  return MakePass<RepeatWidening>({
      .doc = "Computes what makes wider elements of narrow ones by a few steps, such as qnn.dequantize, for each "
             "operator that reads it, where kernels of these operators compute their operands. Memory between kernels "
             "then holds the narrow elements.",
      .opt_level = 1,
      .required = {"InferType"},
      .run = [](Function f, IRModule, PassContext) { return Downcast<Function>(Repeater(f).Mutate(f)); },
  });
}

namespace {
const RegisterPass<RepeatWidening> registered_repeat_widening;
}  // namespace

}  // namespace baton::relay::transform
