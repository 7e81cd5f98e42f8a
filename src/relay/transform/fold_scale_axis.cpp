// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/tensor.h>
#include <baton/relay/transform.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/children.h>
#include <relay/transform/half_weights.h>

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
/// A dimension of a tensor; -1 where it is not known.
int64_t DimAt(const Expr& typed, int64_t d) {
  const auto* t = typed->checked_type_.as<TensorTypeNode>();
  return t && d < static_cast<int64_t>(t->shape.size()) ? DimOf(t->shape[d]) : -1;
}
int64_t RankOf(const Expr& typed) {
  const auto* t = typed->checked_type_.as<TensorTypeNode>();
  return t ? static_cast<int64_t>(t->shape.size()) : -1;
}
DataType TensorDtype(const Expr& typed) {
  const auto* t = typed->checked_type_.as<TensorTypeNode>();
  return t ? t->dtype : DataType::Void();
}

/// A call with constant weights whose operator says where factors meet them.
struct Layer {
  const CallNode* call = nullptr;
  ScaleAxes axes;
  const NDArray& weight() const { return *DataOf(call->args[1]); }
  int64_t Channels(int64_t dimension) const {
    return dimension < 0 ? -1 : weight().shape()[static_cast<size_t>(dimension)];
  }
};

/// `typed` is the expression before it was rewritten, with its type.
Layer LayerOf(const Expr& e, const Expr& typed) {
  const auto* c = e.as<CallNode>();
  const OpDef* def = c ? DefOf(c->op) : nullptr;
  if (!def || !def->traits.scale_axes || !typed->checked_type_.defined() || c->args.size() < 2 || !DataOf(c->args[1]))
    return Layer();
  const Layer layer{c, def->traits.scale_axes(c->attrs, RankOf(typed), DataOf(c->args[1])->shape())};
  return layer.axes.channel < 0 ? Layer() : layer;
}

/// The number of channels of a constant with one value a channel of a tensor of `rank` dimensions, nothing else; -1 for
/// another.
int64_t PerChannel(const Expr& e, const Expr& typed, int64_t rank, int64_t channel_axis) {
  const NDArray* c = DataOf(e);
  if (!c || !(c->dtype() == TensorDtype(typed))) return -1;
  const std::vector<int64_t> s = c->shape();
  const int64_t at = channel_axis - (rank - static_cast<int64_t>(s.size()));
  if (rank < static_cast<int64_t>(s.size()) || at < 0) return -1;
  for (int64_t d = 0; d < static_cast<int64_t>(s.size()); ++d) {
    if (d != at && s[static_cast<size_t>(d)] != 1) return -1;
  }
  return s[static_cast<size_t>(at)];
}

/// The layer with its weights scaled along a dimension, on `data`.
Expr Scaled(const Layer& layer, const Expr& data, const Expr& scale, int64_t dimension, const DataType& dtype) {
  const int64_t channels = layer.Channels(dimension);
  const NDArray* factors = DataOf(scale);
  // One dtype all through: a factor of another would not fit the weights.
  if (channels != static_cast<int64_t>(factors->numel()) || !(layer.weight().dtype() == dtype) ||
      !(factors->dtype() == dtype))
    return Expr();
  std::vector<int64_t> shape(layer.weight().shape().size(), 1);
  shape[static_cast<size_t>(dimension)] = channels;
  Expr w = Multiply(layer.call->args[1], Reshape(scale, Array<int64_t>(shape.begin(), shape.end())));
  Expr e = MakeCall(Downcast<Op>(layer.call->op), {data, w}, layer.call->attrs);
  e->span = layer.call->span;
  return e;
}

/// multiply(layer(x, w), s) and the same with a bias between: the factors of the output channels go into the weights.
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
      const Expr &x = call->args[i], &typed = pre->args[i], &scale = call->args[1 - i];
      if (!DataOf(scale) || uses_[typed.get()] != 1) continue;
      if (Expr e = Take(x, typed, scale); e.defined()) return e;
    }
    return post;
  }
  /// x * scale with the factors further up; null if they cannot be.
  Expr Take(const Expr& x, const Expr& typed, const Expr& scale) {
    auto scaled = [&](const Expr& e, const Expr& type, Layer* layer) {
      *layer = LayerOf(e, type);
      if (!layer->call || PerChannel(scale, type, RankOf(type), layer->axes.channel) < 0) return Expr();
      if (layer->axes.output < 0) return Expr();
      return Scaled(*layer, layer->call->args[0], scale, layer->axes.output, TensorDtype(type));
    };
    Layer layer;
    if (Expr e = scaled(x, typed, &layer); e.defined()) return e;
    const auto* sum = x.as<CallNode>();
    const auto* pre_sum = typed.as<CallNode>();
    if (!sum || !pre_sum || sum->args.size() != 2) return Expr();
    const bool bias = sum->op.same_as(op::bias_add);
    if (!bias && !sum->op.same_as(op::add)) return Expr();
    for (int64_t k = 0; k < (bias ? 1 : 2); ++k) {
      if (uses_[pre_sum->args[k].get()] != 1 || !DataOf(sum->args[1 - k])) continue;
      Expr e = scaled(sum->args[k], pre_sum->args[k], &layer);
      if (!e.defined()) continue;
      const int64_t rank = RankOf(pre_sum->args[k]);
      if (!bias) {
        if (PerChannel(sum->args[1 - k], typed, rank, layer.axes.channel) < 0) continue;
        return Add(e, Multiply(sum->args[1 - k], scale));
      }
      const int64_t axis = AttrsAs<BiasAddAttrs>(sum->attrs).axis;
      if ((axis < 0 ? axis + rank : axis) != layer.axes.channel) continue;
      Expr b = Multiply(sum->args[1], Reshape(scale, {static_cast<int64_t>(DataOf(scale)->numel())}));
      return MakeCall(Downcast<Op>(sum->op), {e, b}, sum->attrs);
    }
    return Expr();
  }
  PointerMap<int> uses_;
};

/// layer(multiply(x, s), w): the factors of the input channels go into the weights.
class Forward : public MixedModeMutator {
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const Layer layer = LayerOf(post, GetRef<Expr>(pre));
    const auto* mul = layer.call ? layer.call->args[0].as<CallNode>() : nullptr;
    const auto* pre_mul = mul ? pre->args[0].as<CallNode>() : nullptr;
    if (!pre_mul || !mul->op.same_as(op::multiply) || layer.axes.input < 0) return post;
    for (int64_t i = 0; i < 2; ++i) {
      const Expr& typed = pre_mul->args[i];
      const int64_t channels = PerChannel(mul->args[1 - i], typed, RankOf(typed), layer.axes.channel);
      // A tensor of one channel that the factors make several cannot do without them.
      if (channels < 0 || DimAt(typed, layer.axes.channel) != channels) continue;
      Expr e = Scaled(layer, mul->args[i], mul->args[1 - i], layer.axes.input, TensorDtype(typed));
      if (e.defined()) return e;
    }
    return post;
  }
};

/// Scaled weights would no longer fit half floats; the factor follows the product, where it costs little.
bool Folds(const Function& f) { return AnyCallOf(f, op::multiply) && !f->HasNonzeroAttr(kHalfWeights); }
}  // namespace

Pass BackwardFoldScaleAxis() {
  return MakePass<BackwardFoldScaleAxis>({
      .doc = "Moves per-channel factors of the result of a convolution, of a transposed one or of a dense layer into "
             "its weights, "
             "and into the bias between.",
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
             "its weights.",
      .opt_level = 3,
      .required = {"InferType"},
      .reassociates = true,
      .run = [](Function f, IRModule, PassContext) { return Folds(f) ? Downcast<Function>(Forward().Mutate(f)) : f; },
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
