// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/tensor.h>
#include <baton/relay/transform.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/children.h>
#include <relay/op/narrow_values.h>
#include <relay/transform/half_weights.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace baton::relay::transform {
namespace {

PointerMap<int> CountUses(const Function& f) {
  PointerMap<int> uses;
  PostOrder(f, [&](const Expr& e) {
    if (const auto* c = e.as<CallNode>()) {
      for (const Expr& a : c->args) ++uses[a.get()];
    } else if (const auto* t = e.as<TupleNode>()) {
      for (const Expr& a : t->fields) ++uses[a.get()];
    } else if (const auto* g = e.as<TupleGetItemNode>()) {
      ++uses[g->tuple.get()];
    } else if (const auto* l = e.as<LetNode>()) {
      ++uses[l->value.get()], ++uses[l->body.get()];
    } else if (const auto* fn = e.as<FunctionNode>()) {
      ++uses[fn->body.get()];
    } else if (const auto* i = e.as<IfNode>()) {
      ++uses[i->cond.get()], ++uses[i->true_branch.get()], ++uses[i->false_branch.get()];
    }
  });
  return uses;
}

const NDArray* DataOf(const Expr& e) {
  const auto* c = e.as<ConstantNode>();
  return c ? &c->data : nullptr;
}
/// The value of an expression in another shape.
Expr Viewed(const Expr& e) {
  Expr out = e;
  for (const auto* c = out.as<CallNode>(); c; c = out.as<CallNode>()) {
    const OpDef* def = DefOf(c->op);
    if (!def || def->traits.values != Values::kView || c->args.empty()) break;
    out = c->args[0];
  }
  return out;
}
/// A dimension of a tensor; -1 where it is not known.
int64_t DimAt(const Expr& typed, int64_t d) {
  const auto* t = typed->checked_type_.as<TensorTypeNode>();
  return t && d >= 0 && d < static_cast<int64_t>(t->shape.size()) ? DimOf(t->shape[d]) : -1;
}
int64_t RankOf(const Expr& typed) {
  const auto* t = typed->checked_type_.as<TensorTypeNode>();
  return t ? static_cast<int64_t>(t->shape.size()) : -1;
}
DataType TensorDtype(const Expr& typed) {
  const auto* t = typed->checked_type_.as<TensorTypeNode>();
  return t ? t->dtype : DataType::Void();
}

/// A call whose operator says where factors meet its weights.
struct Layer {
  const CallNode* call = nullptr;
  ScaleAxes axes;
};

/// `typed` is the expression before it was rewritten, with its type.
Layer LayerOf(const Expr& e, const Expr& typed) {
  const auto *c = e.as<CallNode>(), *pre = typed.as<CallNode>();
  const OpDef* def = c ? DefOf(c->op) : nullptr;
  if (!def || !def->traits.scale_axes || !typed->checked_type_.defined() || !pre || !pre->op.same_as(c->op) ||
      c->args.size() < 2)
    return Layer();
  const auto* weight = pre->args[1]->checked_type_.as<TensorTypeNode>();
  std::vector<int64_t> shape;
  if (!weight || !StaticShape(weight->shape, &shape)) return Layer();
  const Layer layer{c, def->traits.scale_axes(c->attrs, RankOf(typed), shape)};
  return layer.axes.channel.at < 0 ? Layer() : layer;
}

/// The factor of a product for each channel.
struct Factor {
  Expr value;                                                 ///< as it is in the rewritten program
  Expr typed;                                                 ///< before it was rewritten
  std::vector<int64_t> ones;                                  ///< dimensions to drop
  std::shared_ptr<Expr> squeezed = std::make_shared<Expr>();  ///< what all places share
  bool Constant() const { return DataOf(typed) != nullptr; }
  bool Positive() const {
    return All([](double x) { return x > 0; });
  }
  bool Nonzero() const {
    return All([](double x) { return x != 0; });
  }
  /// Whether it is a constant all of whose elements are so.
  bool All(bool (*is)(double)) const {
    const NDArray* data = DataOf(Viewed(typed));
    if (!data) return false;
    const NDArray dense = data->Contiguous();
    for (int64_t i = 0; i < dense.numel(); ++i) {
      if (!is(dense.GetDouble(i))) return false;
    }
    return true;
  }
  /// One value a channel, in blocks of the channels where these are; dimensions around are dropped.
  Expr Squeezed() const {
    if (ones.empty()) return value;
    if (!squeezed->defined()) *squeezed = Squeeze(value, Array<int64_t>(ones.begin(), ones.end()));
    return *squeezed;
  }
  /// The same as a tensor that broadcasts along `dims` of one of `rank` dimensions.
  Expr Along(const ChannelDims& dims, int64_t rank) const {
    const Expr e = Squeezed();
    if (dims.block < 0) return dims.at + 1 < rank ? ExpandDims(e, 1, rank - 1 - dims.at) : e;
    Array<int64_t> shape(static_cast<size_t>(rank), 1);
    int64_t to = dims.at;
    for (int64_t d = 0; d < RankOf(typed); ++d) {
      if (std::find(ones.begin(), ones.end(), d) != ones.end()) continue;
      shape.Set(to, DimAt(typed, d));
      to = dims.block;
    }
    return Reshape(e, shape);
  }
};

/// Whether a tensor has one value for each of the channels of `data`, nothing else. `ones`: its other dimensions.
bool PerChannel(const Expr& typed, const Expr& data, const ChannelDims& channel, std::vector<int64_t>* ones = nullptr) {
  const int64_t rank = RankOf(typed), before = RankOf(data) - rank, at = channel.at - before,
                block = channel.block < 0 ? -1 : channel.block - before;
  if (rank < 1 || at < 0 || before < 0 || !(TensorDtype(typed) == TensorDtype(data))) return false;
  for (int64_t d = 0; d < rank; ++d) {
    if (d == at || d == block) continue;
    if (DimAt(typed, d) != 1) return false;
    if (ones) ones->push_back(d);
  }
  if (block >= 0 && (DimAt(typed, block) < 0 || DimAt(typed, block) != DimAt(data, channel.block))) return false;
  return DimAt(typed, at) >= 0 && DimAt(typed, at) == DimAt(data, channel.at);
}

/// Whether weights are whole numbers that NarrowWeights keeps in a byte each: scaled, they would take four.
bool KeptNarrow(const NDArray& weight) { return weight.numel() >= kFewestNarrow && FitsInt8(weight); }

/// Whether the layer's weights take factors of its data's or result's channels along `dims`. One dtype
/// all through: a factor of another would not fit the weights.
bool Takes(const Layer& layer, const Expr& typed, const Expr& scaled, const ChannelDims& dims) {
  const ChannelDims& channel = layer.axes.channel;
  if (!layer.call || dims.at < 0 || (dims.block < 0) != (channel.block < 0)) return false;
  const Expr& weight = typed.as<CallNode>()->args[1];
  if (const NDArray* data = DataOf(weight); data && KeptNarrow(*data)) return false;
  if (dims.block >= 0 && DimAt(weight, dims.block) != DimAt(scaled, channel.block)) return false;
  return DimAt(weight, dims.at) >= 0 && DimAt(weight, dims.at) == DimAt(scaled, channel.at) &&
         TensorDtype(weight) == TensorDtype(scaled);
}
/// The layer with its weights scaled along `dims`, on `data`.
Expr Scaled(const Layer& layer, const Expr& typed, const Expr& data, const Factor& factor, const ChannelDims& dims) {
  const Expr weight = Multiply(layer.call->args[1], factor.Along(dims, RankOf(typed.as<CallNode>()->args[1])));
  Expr e = MakeCall(Downcast<Op>(layer.call->op), {data, weight}, layer.call->attrs);
  e->span = layer.call->span;
  return e;
}
Scaling ScalingOf(const CallNode* call) {
  const OpDef* def = call ? DefOf(call->op) : nullptr;
  return def ? def->traits.scaling : Scaling::kNone;
}
bool KeepsPositive(const CallNode* call) { return ScalingOf(call) == Scaling::kPositive && call->args.size() == 1; }
bool IsSum(const CallNode* call) { return ScalingOf(call) == Scaling::kAny && call->args.size() == 2; }
Expr CallAgain(const CallNode* call, Array<Expr> args) {
  Expr e = MakeCall(Downcast<Op>(call->op), std::move(args), call->attrs);
  e->span = call->span;
  return e;
}

/// multiply(e, s), where e is a layer or what is computed of its result element by element: the factors of the output
/// channels go into its weights.
class Backward : public MixedModeMutator {
 public:
  explicit Backward(PointerMap<int> uses) : uses_(std::move(uses)) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    if (!call || !call->op.same_as(op::multiply)) return post;
    for (int64_t i = 0; i < 2; ++i) {
      Factor factor;
      factor.value = call->args[1 - i], factor.typed = pre->args[1 - i];
      if (Expr e = Take(call->args[i], pre->args[i], factor, 0).value; e.defined()) return e;
    }
    return post;
  }
  struct Taken {
    Expr value;  ///< null if the factors cannot be moved
    ChannelDims channel = {};
  };
  /// x * factor with the factors further up.
  Taken Take(const Expr& x, const Expr& typed, const Factor& factor, int depth) {  // NOLINT(misc-no-recursion)
    if (uses_[typed.get()] != 1 || depth > kDeep) return {};
    const Layer layer = LayerOf(x, typed);
    if (layer.call) {
      Factor f = factor;
      const ChannelDims channel = layer.axes.channel;
      if (!PerChannel(f.typed, typed, channel, &f.ones) || !Takes(layer, typed, typed, layer.axes.output)) return {};
      if (DataOf(typed.as<CallNode>()->args[1]) && !f.Constant()) return {};
      return {Scaled(layer, typed, layer.call->args[0], f, layer.axes.output), channel};
    }
    const auto *call = x.as<CallNode>(), *pre = typed.as<CallNode>();
    if (!call || !pre || !call->op.same_as(pre->op)) return {};
    if (KeepsPositive(call)) {
      if (!factor.Positive()) return {};
      const Taken t = Take(call->args[0], pre->args[0], factor, depth + 1);
      return t.value.defined() ? Taken{CallAgain(call, {t.value}), t.channel} : t;
    }
    if (call->op.same_as(op::bias_add)) return TakeBias(call, pre, factor, depth);
    return IsSum(call) ? TakeSum(call, pre, factor, depth) : Taken();
  }
  Taken TakeBias(const CallNode* call, const CallNode* pre, const Factor& factor,
                 int depth) {  // NOLINT(misc-no-recursion)
    const Taken t = Take(call->args[0], pre->args[0], factor, depth + 1);
    const int64_t axis = AttrsAs<BiasAddAttrs>(call->attrs).axis, rank = RankOf(pre->args[0]);
    Factor f = factor;
    if (!t.value.defined() || t.channel.block >= 0 || (axis < 0 ? axis + rank : axis) != t.channel.at ||
        !PerChannel(f.typed, pre->args[0], t.channel, &f.ones))
      return {};
    return {CallAgain(call, {t.value, Multiply(call->args[1], f.Squeezed())}), t.channel};
  }
  Taken TakeSum(const CallNode* call, const CallNode* pre, const Factor& factor,
                int depth) {  // NOLINT(misc-no-recursion)
    Taken sides[2];
    for (int k = 0; k < 2; ++k) {
      sides[k] = Take(call->args[k], pre->args[k], factor, depth + 1);
      const Taken& t = sides[k];
      Factor f = factor;
      if (!t.value.defined() || !PerChannel(f.typed, pre->args[k], t.channel, &f.ones) ||
          !PerChannel(pre->args[1 - k], pre->args[k], t.channel))
        continue;
      const Expr other = Multiply(call->args[1 - k], f.Along(t.channel, RankOf(pre->args[k])));
      return {CallAgain(call, k == 0 ? Array<Expr>{t.value, other} : Array<Expr>{other, t.value}), t.channel};
    }
    const bool both = sides[0].value.defined() && sides[1].value.defined() && sides[0].channel == sides[1].channel &&
                      RankOf(pre->args[0]) == RankOf(pre->args[1]);
    return both ? Taken{CallAgain(call, {sides[0].value, sides[1].value}), sides[0].channel} : Taken();
  }
  static constexpr int kDeep = 64;
  PointerMap<int> uses_;
};

/// The common part of all consumers of a tensor: factors along a dimension.
struct Wanted {
  ChannelDims axis = {};  ///< nowhere: none
  bool positive = false;  ///< factors above 0 alone, which are constants
  bool constant = false;  ///< constants alone
  bool nonzero = false;   ///< constants without 0 alone, since something is divided by them
  bool asked = false;     ///< by a consumer
};

/// layer(e, w), where e is multiply(x, s) or computed of that element by element: the factors of the input channels go
/// into the weights of all layers that take the product.
class Forward : public MixedModeMutator {
 public:
  explicit Forward(const Function& f) {
    const NodeList nodes = PostOrderNodes(f);
    for (size_t i = nodes.size(); i-- > 0;) Ask(GetRef<Expr>(static_cast<const ExprNode*>(nodes[i])));
  }

 private:
  void Give(const Expr& e, Wanted w) {
    Wanted& have = wanted_[e.get()];
    if (have.asked && have.axis != w.axis) w.axis = {};
    have = {w.axis, have.positive || w.positive, have.constant || w.constant, have.nonzero || w.nonzero, true};
  }
  void Ask(const Expr& e) {
    const auto* call = e.as<CallNode>();
    const Wanted* found = wanted_.Find(e.get());
    const Wanted own = found ? *found : Wanted();
    int taker = -1;  // the argument whose factors are taken
    Wanted w;
    if (const Layer layer = LayerOf(e, e); layer.call) {
      const Expr& data = call->args[0];
      if (data->checked_type_.defined() && Takes(layer, e, data, layer.axes.input))
        taker = 0, w = {layer.axes.channel, false, DataOf(call->args[1]) != nullptr};
    } else if (own.axis.at >= 0 && KeepsPositive(call)) {
      taker = 0, w = own, w.positive = true;
    } else if (own.axis.at >= 0 && IsSum(call) && TensorDtype(e).is_floating()) {
      for (int k = 0; k < 2 && taker < 0; ++k) {
        if (PerChannel(call->args[1 - k], call->args[k], own.axis)) taker = k, w = own, w.nonzero = true;
      }
    }
    int at = 0;
    ForEachChild(e.get(), [&](const ExprNode* child) {
      if (!child) return;
      const bool takes = taker >= 0 && child == call->args[taker].get() && !(at++ > 0);
      Give(GetRef<Expr>(child), takes ? w : Wanted());
    });
  }

  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  /// Factors that were taken out of an argument; null if there are none.
  const Factor* TakenOutOf(const Expr& pre) const { return factors_.Find(pre.get()); }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const Wanted* w = wanted_.Find(pre);
    if (!call) return post;
    if (call->op.same_as(op::multiply) && w && w->axis.at >= 0) return TakeOut(pre, call, *w, post);
    const Expr typed = GetRef<Expr>(pre);
    if (const Layer layer = LayerOf(post, typed); layer.call) {
      const Factor* f = TakenOutOf(pre->args[0]);
      return f ? Scaled(layer, typed, call->args[0], *f, layer.axes.input) : post;
    }
    if (KeepsPositive(call)) {
      if (const Factor* f = TakenOutOf(pre->args[0])) factors_[pre] = Factor(*f);
    } else if (IsSum(call)) {
      for (int k = 0; k < 2; ++k) {
        const Factor* f = TakenOutOf(pre->args[k]);
        if (!f) continue;
        const Factor factor = *f;
        factors_[pre] = factor;
        const Expr other = Divide(call->args[1 - k], factor.Along(w->axis, RankOf(pre->args[k])));
        return CallAgain(call, k == 0 ? Array<Expr>{call->args[0], other} : Array<Expr>{other, call->args[1]});
      }
    }
    return post;
  }
  Expr TakeOut(const CallNode* pre, const CallNode* call, const Wanted& w, const Expr& post) {
    for (int i = 0; i < 2; ++i) {
      Factor f;
      f.value = call->args[1 - i], f.typed = pre->args[1 - i];
      // A tensor of one channel that the factors make several cannot do without them.
      if (!PerChannel(f.typed, pre->args[i], w.axis, &f.ones) || RankOf(pre->args[i]) != RankOf(GetRef<Expr>(pre)))
        continue;
      if ((w.constant && !f.Constant()) || (w.positive && !f.Positive()) || (w.nonzero && !f.Nonzero())) continue;
      factors_[pre] = std::move(f);
      return call->args[i];
    }
    return post;
  }
  PointerMap<Wanted> wanted_;
  PointerMap<Factor> factors_;
};

/// Scaled weights would no longer fit half floats; the factor follows the product, where it costs little.
bool Folds(const Function& f) { return AnyCallOf(f, op::multiply) && !f->HasNonzeroAttr(kHalfWeights); }
}  // namespace

Pass BackwardFoldScaleAxis() {
  return MakePass<BackwardFoldScaleAxis>({
      .doc = "Moves per-channel factors of the result of a convolution, of a transposed one or of a dense layer into "
             "its weights, through sums with a value a channel, and through what keeps factors above 0.",
      .opt_level = 3,
      .required = {"InferType"},
      .reassociates = true,
      .run = [](Function f, IRModule,
                PassContext) { return Folds(f) ? Downcast<Function>(Backward(CountUses(f)).Mutate(f)) : f; },
  });
}
Pass ForwardFoldScaleAxis() {
  return MakePass<ForwardFoldScaleAxis>({
      .doc = "Moves per-channel factors of the input of a convolution, of a transposed one or of a dense layer into "
             "its weights, through sums with a value a channel, and through what keeps factors above 0.",
      .opt_level = 3,
      .required = {"InferType"},
      .reassociates = true,
      .run = [](Function f, IRModule, PassContext) { return Folds(f) ? Downcast<Function>(Forward(f).Mutate(f)) : f; },
  });
}
/// Backward first, then forward, with folding between so that scaled weights are constants again.
Pass FoldScaleAxis() {
  return Sequential({BackwardFoldScaleAxis(), FoldConstant(), ForwardFoldScaleAxis(), FoldConstant()},
                    PassInfo(baton::transform::PassInfoNode{
                        .opt_level = 3,
                        .name = "FoldScaleAxis",
                        .required = {"InferType"},
                        .doc = "Moves per-channel factors into the weights of convolutions and dense layers before or "
                               "after them: BackwardFoldScaleAxis, then ForwardFoldScaleAxis."}));
}

namespace {
const RegisterPass<BackwardFoldScaleAxis> registered_backward;
const RegisterPass<ForwardFoldScaleAxis> registered_forward;
const RegisterPass<FoldScaleAxis> registered_both;
}  // namespace

}  // namespace baton::relay::transform
