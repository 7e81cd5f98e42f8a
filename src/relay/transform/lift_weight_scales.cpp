// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/target.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/qnn.h>
#include <baton/relay/op/tensor.h>
#include <baton/relay/op/transform.h>
#include <baton/relay/transform.h>
#include <relay/expr/children.h>
#include <relay/op/integer_ranges.h>
#include <relay/op/narrow_values.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

namespace baton::relay::transform {
namespace {

/// Whole numbers up to this are exact in bfloat16.
constexpr double kExactInBFloat16 = 256;
/// Operators between a product and the integers of its weight.
constexpr int kMostSteps = 8;

const TensorTypeNode* TensorTypeOf(const Expr& e) { return e->checked_type_.as<TensorTypeNode>(); }
bool StaticShapeOf(const Expr& e, std::vector<int64_t>* shape) {
  const auto* t = TensorTypeOf(e);
  return t && StaticShape(t->shape, shape);
}
int64_t ElementCount(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}
const OpDef* DefOfCall(const CallNode* call) { return call ? DefOf(call->op) : nullptr; }

/// Whether an expression is computed from constants alone, in a few steps.
bool FromConstants(const Expr& e, int steps = 0) {  // NOLINT(misc-no-recursion): a few steps deep
  if (e.as<ConstantNode>()) return true;
  const auto* call = e.as<CallNode>();
  const OpDef* def = DefOfCall(call);
  if (!def || def->stateful || call->args.empty() || steps > kMostSteps) return false;
  return std::all_of(call->args.begin(), call->args.end(), [&](const Expr& a) { return FromConstants(a, steps + 1); });
}

/// A weight as whole numbers times a scale, with what was done to their product behind that, the last first.
struct ScaledIntegers {
  Expr integers, scale;
  std::vector<const CallNode*> moves;
};

class ScaleLifter : public MixedModeMutator {
 private:
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const OpDef* def = DefOfCall(pre);
    if (!def || !call || pre->args.size() < 2 || !call->op.same_as(pre->op)) return post;
    if (def->traits.scale_axes) return BehindProduct(pre, call, def->traits.scale_axes, post);
    return def->traits.values == Values::kSelects ? BehindSelection(pre, call, post) : post;
  }

  /// product(x, move(integers * scale)) -> product(x, move(integers)) * scale.
  Expr BehindProduct(const CallNode* pre, const CallNode* call, ScaleAxesFn axes_of, const Expr& post) {
    std::vector<int64_t> weight;
    const auto* out = pre->checked_type_.as<TensorTypeNode>();
    if (!out || out->dtype != DataType::Float(32) || !StaticShapeOf(pre->args[1], &weight) ||
        ElementCount(weight) < kFewestNarrow)
      return post;
    const auto rank = static_cast<int64_t>(out->shape.size());
    const ScaleAxes axes = axes_of(pre->attrs, rank, weight);
    if (axes.channel.block >= 0) return post;
    if (axes.input.at >= 0 && axes.input == axes.output) return post;  // each channel for itself: no narrow kernel
    const std::optional<ScaledIntegers> parts = Split(pre->args[1]);
    if (!parts) return post;
    const Expr factor = FactorOf(*parts, axes, rank);
    if (!factor.defined()) return post;
    Expr integers = parts->integers;
    for (size_t i = parts->moves.size(); i-- > 0;) integers = Again(parts->moves[i], {integers});
    Array<Expr> args = call->args;
    args.Set(1, integers);
    Expr product = MakeCall(Downcast<Op>(call->op), args, call->attrs);
    product->span = call->span;
    Expr scaled = Multiply(product, factor);
    scaled->span = call->span;
    return scaled;
  }

  std::optional<ScaledIntegers> Split(const Expr& weight) {
    ScaledIntegers parts;
    Expr e = weight;
    for (const auto* c = e.as<CallNode>(); c; c = e.as<CallNode>()) {
      const OpDef* def = DefOf(c->op);
      if (!def || c->args.size() != 1 || def->traits.values < Values::kSelects ||
          parts.moves.size() >= static_cast<size_t>(kMostSteps))
        break;
      parts.moves.push_back(c);
      e = c->args[0];
    }
    const auto* product = e.as<CallNode>();
    if (!product || !product->op.same_as(op::multiply)) return std::nullopt;
    for (int64_t i = 0; i < 2; ++i) {
      if (!IsSmallIntegers(product->args[i]) || !FromConstants(product->args[1 - i])) continue;
      parts.integers = product->args[i], parts.scale = product->args[1 - i];
      return parts;
    }
    return std::nullopt;
  }

  /// float32 that is cast from constant whole numbers which int8 or bfloat16 holds.
  bool IsSmallIntegers(const Expr& e) {
    const auto* cast = e.as<CallNode>();
    const auto* t = TensorTypeOf(e);
    if (!cast || !t || !cast->op.same_as(op::cast) || t->dtype != DataType::Float(32) || !FromConstants(e))
      return false;
    const std::optional<IntegerRange> range = ranges_.Of(cast->args[0]);
    return range && range->Magnitude() <= kExactInBFloat16;
  }

  /// The scale as it meets the product's result; null where it differs along other dimensions than the channels'.
  static Expr FactorOf(const ScaledIntegers& parts, const ScaleAxes& axes, int64_t rank) {
    std::vector<int64_t> shape, integers;
    if (!StaticShapeOf(parts.scale, &shape) || !StaticShapeOf(parts.integers, &integers)) return Expr();
    if (ElementCount(shape) == 1) return shape.empty() ? parts.scale : Reshape(parts.scale, Array<int64_t>());
    // Leading dimensions that broadcasting adds.
    if (shape.size() > integers.size() || axes.channel.at < 0 || axes.output.at < 0) return Expr();
    shape.insert(shape.begin(), integers.size() - shape.size(), 1);
    for (size_t i = parts.moves.size(); i-- > 0;) {
      if (!parts.moves[i]->op.same_as(op::transpose)) return Expr();
      std::vector<int64_t> moved;
      const auto& permutation = AttrsAs<TransposeAttrs>(parts.moves[i]->attrs).axes;
      for (size_t d = 0; d < shape.size(); ++d) {
        int64_t from = permutation.empty() ? static_cast<int64_t>(shape.size() - 1 - d)
                                           : static_cast<int64_t>(permutation[static_cast<int64_t>(d)]);
        if (from < 0) from += static_cast<int64_t>(shape.size());
        moved.push_back(shape[static_cast<size_t>(from)]);
      }
      shape = moved;
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] != 1 && static_cast<int64_t>(d) != axes.output.at) return Expr();
    }
    Array<int64_t> along{shape[static_cast<size_t>(axes.output.at)]};
    for (int64_t d = axes.channel.at + 1; d < rank; ++d) along.push_back(1);
    return Reshape(parts.scale, along);
  }

  /// select(f(integers), i) -> f(select(integers, i)) for a table of constants, where f works on each element with
  /// numbers that are the same for all: a table of int8 stays one.
  Expr BehindSelection(const CallNode* pre, const CallNode* call, const Expr& post) {
    std::vector<const CallNode*> steps;
    Expr e = pre->args[0];
    for (const auto* c = e.as<CallNode>(); c && steps.size() < static_cast<size_t>(kMostSteps); c = e.as<CallNode>()) {
      const bool binary = c->op.same_as(op::multiply) || c->op.same_as(op::subtract);
      std::vector<int64_t> other;
      if (!c->op.same_as(op::cast) &&
          !(binary && StaticShapeOf(c->args[1], &other) && other.empty() && FromConstants(c->args[1])))
        break;
      steps.push_back(c);
      e = c->args[0];
    }
    const auto* table = e.as<ConstantNode>();
    if (!table || steps.empty() || table->data.dtype().bits() > 8 || table->data.numel() < kFewestNarrow) return post;
    if (std::all_of(pre->args.begin() + 1, pre->args.end(), [](const Expr& a) { return FromConstants(a); }))
      return post;
    Array<Expr> args = call->args;
    args.Set(0, e);
    Expr out = MakeCall(Downcast<Op>(call->op), args, call->attrs);
    out->span = call->span;
    for (size_t i = steps.size(); i-- > 0;) {
      Array<Expr> with = steps[i]->args;
      with.Set(0, out);
      out = Again(steps[i], with);
    }
    return out;
  }

  static Expr Again(const CallNode* call, Array<Expr> args) {
    Expr e = MakeCall(Downcast<Op>(call->op), std::move(args), call->attrs);
    e->span = call->span;
    return e;
  }

  IntegerRanges ranges_;
};

/// qnn.dequantize of constants said in plain operators, which the lifter reads.
class ConstantDequantizer : public MixedModeMutator {
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    if (!call || call->op != op::qnn::dequantize || !call->args[0].as<ConstantNode>()) return post;
    Expr plain = DefOf(call->op)->decompose(GetRef<Call>(pre), call->args);
    plain->span = pre->span;
    return plain;
  }
};

bool IsLayer(const OpNode* op) {
  const OpDef* def = DefOf(op);
  return def && (def->traits.scale_axes || def->traits.values == Values::kSelects);
}

}  // namespace

Pass LiftWeightScales() {
  return MakePass<LiftWeightScales>({
      .doc =
          "Multiplies the result of a product by the scale of its constant integer weight, in place of the weight, so "
          "that NarrowWeights keeps the integers; takes elements of a constant integer table before they are scaled.",
      .opt_level = 1,
      .required = {"InferType"},
      .reassociates = true,
      .run = [](Function f, IRModule mod, PassContext) -> Function {
        if (!Target::Current()->traits().vector_kernels) return f;
        if (AnyCallOf(f, op::qnn::dequantize)) {
          if (auto plain = Downcast<Function>(ConstantDequantizer().Mutate(f)); !plain.same_as(f)) {
            InferTypeOf(plain, mod);
            f = plain;
          }
        }
        return AnyCallWhere(f, IsLayer) ? Downcast<Function>(ScaleLifter().Mutate(f)) : f;
      },
  });
}

namespace {
const RegisterPass<LiftWeightScales> registered_lift_weight_scales;
}  // namespace

}  // namespace baton::relay::transform
