// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/tensor.h>
#include <baton/relay/transform.h>

#include <unordered_map>

namespace baton::relay::transform {
namespace {

std::unordered_map<const Object*, int> CountUses(const Function& f) {
  std::unordered_map<const Object*, int> uses;
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

/// The number of channels of a constant with one value a channel of an NCHW image ([C, 1, 1] or [1, C, 1, 1]); -1 for
/// another.
int64_t PerChannel(const Expr& e) {
  const auto* c = e.as<ConstantNode>();
  if (!c) return -1;
  std::vector<int64_t> s = c->data.shape();
  if (s.size() == 4 && s[0] == 1) s.erase(s.begin());
  return s.size() == 3 && s[1] == 1 && s[2] == 1 ? s[0] : -1;
}

const CallNode* Convolution(const Expr& e) {
  const auto* c = e.as<CallNode>();
  if (!c || !(c->op == op::conv2d) || !c->args[1].as<ConstantNode>()) return nullptr;
  const auto* a = static_cast<const Conv2DAttrs*>(c->attrs.get());
  return a->data_layout == "NCHW" && a->kernel_layout == "OIHW" ? c : nullptr;
}

bool IsOp(const CallNode* c, const char* name) {
  const auto* op = c->op.as<OpNode>();
  return op && op->name == name;
}

/// multiply(conv(x, w), s) and multiply(add(conv(x, w), b), s): the factors of the output channels go into the weights.
class Backward : public MixedModeMutator {
 public:
  explicit Backward(std::unordered_map<const Object*, int> uses) : uses_(std::move(uses)) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    if (!call || !IsOp(call, "multiply")) return post;
    for (int64_t i = 0; i < 2; ++i) {
      const Expr &x = call->args[i], &scale = call->args[1 - i];
      int64_t channels = PerChannel(scale);
      if (channels < 0 || uses_[pre->args[i].get()] != 1) continue;
      if (const auto* conv = Convolution(x)) {
        if (Expr e = Scaled(conv, scale, channels); e.defined()) return e;
      }
      const auto* add = x.as<CallNode>();
      const auto* pre_add = pre->args[i].as<CallNode>();
      if (!add || !pre_add || !IsOp(add, "add")) continue;
      for (int64_t k = 0; k < 2; ++k) {
        const auto* conv = Convolution(add->args[k]);
        if (!conv || PerChannel(add->args[1 - k]) != channels || uses_[pre_add->args[k].get()] != 1) continue;
        if (Expr e = Scaled(conv, scale, channels); e.defined()) return Add(e, Multiply(add->args[1 - k], scale));
      }
    }
    return post;
  }
  Expr Scaled(const CallNode* conv, const Expr& scale, int64_t channels) {
    if (conv->args[1].as<ConstantNode>()->data.shape()[0] != channels) return Expr();
    Expr w = Multiply(conv->args[1], Reshape(scale, {channels, 1, 1, 1}));
    Expr e = MakeCall(Downcast<Op>(conv->op), {conv->args[0], w}, conv->attrs);
    e->span = conv->span;
    return e;
  }
  std::unordered_map<const Object*, int> uses_;
};

/// conv(multiply(x, s), w): the factors of the input channels go into the weights.
class Forward : public MixedModeMutator {
  using MixedModeMutator::VisitExpr_;
  Expr Rewrite_(const CallNode*, const Expr& post) final {
    const auto* conv = Convolution(post);
    const auto* mul = conv ? conv->args[0].as<CallNode>() : nullptr;
    if (!mul || !IsOp(mul, "multiply") || static_cast<const Conv2DAttrs*>(conv->attrs.get())->groups != 1) return post;
    for (int64_t i = 0; i < 2; ++i) {
      int64_t channels = PerChannel(mul->args[1 - i]);
      if (channels < 0 || channels != conv->args[1].as<ConstantNode>()->data.shape()[1]) continue;
      Expr w = Multiply(conv->args[1], Reshape(mul->args[1 - i], {1, channels, 1, 1}));
      Expr e = MakeCall(Downcast<Op>(conv->op), {mul->args[i], w}, conv->attrs);
      e->span = conv->span;
      return e;
    }
    return post;
  }
};

}  // namespace

Pass BackwardFoldScaleAxis() {
  return MakePass<BackwardFoldScaleAxis>({
      .doc = "Moves per-channel factors of a convolution's result into its weights.",
      .opt_level = 3,
      .required = {"InferType"},
      .run = [](Function f, IRModule, PassContext) { return Backward(CountUses(f)).Mutate(f); },
  });
}
Pass ForwardFoldScaleAxis() {
  return MakePass<ForwardFoldScaleAxis>({
      .doc = "Moves per-channel factors of a convolution's input into its weights.",
      .opt_level = 3,
      .required = {"InferType"},
      .run = [](Function f, IRModule, PassContext) { return Forward().Mutate(f); },
  });
}
/// Backward first, then forward, with folding between so that scaled weights are constants again.
Pass FoldScaleAxis() {
  baton::transform::RegisterPassDoc("FoldScaleAxis",
                                    "Moves per-channel factors into the weights of convolutions before "
                                    "or after them: BackwardFoldScaleAxis, then ForwardFoldScaleAxis.");
  return Sequential({BackwardFoldScaleAxis(), FoldConstant(), ForwardFoldScaleAxis(), FoldConstant()},
                    PassInfo(3, "FoldScaleAxis", {"InferType"}));
}

namespace {
const RegisterPass<BackwardFoldScaleAxis> registered_backward;
const RegisterPass<ForwardFoldScaleAxis> registered_forward;
const RegisterPass<FoldScaleAxis> registered_both;
}  // namespace

}  // namespace baton::relay::transform
