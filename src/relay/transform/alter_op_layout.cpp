// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/target.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/transform.h>
#include <baton/relay/transform.h>
#include <baton/tir/functor.h>
#include <relay/expr/children.h>
#include <relay/op/axis_parts.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "relay/kernel/dots.h"
#include "relay/transform/convert_layout.h"

namespace baton::relay::transform {
namespace {

using kernel::BlockOf;
using Ints = std::vector<int64_t>;

/// The largest number of channels of a block that divides them all, at least 1.
int64_t AnyBlockOf(int64_t channels, int64_t lanes) {
  int64_t b = std::min(channels, lanes);
  while (channels % b != 0) --b;
  return b;
}
/// Channels of one block where a quarter more of them may be added for whole blocks; 0 where that does not do.
int64_t PaddedBlockOf(int64_t channels, int64_t lanes) {
  for (int64_t b = lanes; b >= 4; b /= 2) {
    if ((channels + b - 1) / b * b * 4 <= channels * 5) return b;
  }
  return 0;
}

/// The extents of an image whose number of channels is a literal; -1 for others that are none.
bool ImageShape(const Expr& e, Ints* shape) {
  const auto* t = e->checked_type_.as<TensorTypeNode>();
  if (!t || t->shape.size() < 3 || t->shape.size() > 5 || !HasKnownExtents(t->shape)) return false;
  shape->clear();
  for (const PrimExpr& d : t->shape) shape->push_back(DimOf(d));
  return (*shape)[1] >= 0;
}

/// Layouts of images with so many dimensions.
std::string PlainLayout(size_t rank) { return rank == 3 ? "NCW" : rank == 4 ? "NCHW" : "NCDHW"; }
std::string Blocked(size_t rank, int64_t b) { return PlainLayout(rank) + std::to_string(b) + "c"; }
/// Whether each image is one pixel.
bool IsPixel(const Ints& shape) {
  return std::all_of(shape.begin() + 2, shape.end(), [](int64_t d) { return d == 1; });
}
/// The shape of a value a channel, in blocks, for each of `batch` images (-1: as many as there are).
Array<int64_t> PerChannel(const Ints& image, int64_t block, int64_t batch = 1) {
  Array<int64_t> s{batch, image[1] / block};
  for (size_t d = 2; d < image.size(); ++d) s.push_back(1);
  s.push_back(block);
  return s;
}

/// Values exist in plain layout (NCHW) and, if an operator produced them in a blocked layout, in that layout too. Each
/// user takes the form that it supports. Unused layout transforms are not part of the result.
class LayoutMutator : public MixedModeMutator {
 public:
  explicit LayoutMutator(const Target& target) : target_(target), lanes_(target->Lanes(DataType::Float(32))) {}

 private:
  using MixedModeMutator::VisitExpr_;

  struct Block {
    Expr value;
    int64_t size = 0;
  };

  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }

  const Block* Find(const Expr& plain) const {
    auto it = blocked_.find(plain.get());
    return it == blocked_.end() ? nullptr : &it->second;
  }
  /// The value in blocks of `size`; made by a transform where it is not there.
  Expr Get(const Expr& plain, size_t rank, int64_t size) {
    if (const Block* b = Find(plain); b && b->size == size) return b->value;
    return GetBy(LayoutTransform(plain, PlainLayout(rank), Blocked(rank, size)), plain, size);
  }
  /// The same for one pixel, of which both orders of elements are the same. `shape`: the plain one.
  Expr GetPixel(const Expr& plain, const Ints& shape, int64_t size) {
    if (const Block* b = Find(plain); b && b->size == size) return b->value;
    return GetBy(Reshape(plain, PerChannel(shape, size, shape[0])), plain, size);
  }
  Expr GetBy(Expr t, const Expr& plain, int64_t size) {
    if (!Find(plain)) Put(plain, t, size);
    return t;
  }
  void Put(const Expr& plain, Expr value, int64_t size) {
    blocked_[plain.get()] = {std::move(value), size};
    keep_.push_back(plain);
  }
  /// The plain form of a blocked value of this shape, both known from now on.
  Expr Plain(const Expr& value, int64_t size, const Ints& shape, const Span& span) {
    value->span = span;
    // With one pixel the order of elements is the same in both.
    // (A batch of unknown size is what remains: -1.)
    Expr plain = IsPixel(shape) ? Reshape(value, Array<int64_t>(shape.begin(), shape.end()))
                                : LayoutTransform(value, Blocked(shape.size(), size), PlainLayout(shape.size()));
    plain->span = span;
    Put(plain, value, size);
    return plain;
  }

  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const OpDef* def = call ? DefOf(call->op) : nullptr;
    Ints shape;
    if (!def || !pre->checked_type_.defined() || !ImageShape(GetRef<Expr>(pre), &shape)) return post;
    if (!Downcast<Op>(call->op).GetAttrValue("FTVMAlterOpLayout").is_null()) return post;  // that function has decided
    switch (ConvDims(call->op)) {
      case 1:
        return Convolution<1>(pre, post, shape);
      case 2:
        return Convolution<2>(pre, post, shape);
      case 3:
        return Convolution<3>(pre, post, shape);
    }
    if (call->op == op::bias_add) return BiasAdd(pre, post, shape);
    if (def->traits.layout == LayoutRule::kBlocks) return Blocks(call, post, shape);
    if (def->traits.layout == LayoutRule::kJoins) return Concatenate(pre, post, shape);
    if (def->traits.layout == LayoutRule::kReduces) return Reduce(call, post, shape);
    if (def->traits.layout == LayoutRule::kKeeps || (def->pattern == OpPattern::kElemWise && call->args.size() == 1))
      return ByElement(call, post, shape);
    if (def->pattern == OpPattern::kBroadcast && call->args.size() == 2 && !call->attrs.defined())
      return Binary(pre, call, post, shape);
    return post;
  }

  template <int N>
  Expr Convolution(const CallNode* pre, const Expr& post, const Ints& out) {
    const auto* call = post.as<CallNode>();
    const auto& a = *static_cast<const ConvAttrs<N>*>(call->attrs.get());
    const std::string plain = PlainLayout(N + 2), weights = ForSpace<N>("OIW", "OIHW", "OIDHW");
    Ints in, w;
    if (!(a.data_layout == plain) || !(a.kernel_layout == weights) ||
        (!a.out_layout.empty() && !(a.out_layout == plain)))
      return post;
    if (!ImageShape(pre->args[0], &in) || !ImageShape(pre->args[1], &w) || !call->args[1].as<ConstantNode>())
      return post;
    const bool dots = kernel::HasDotKernel(pre, target_);
    const auto dtype_of = [](const Expr& e) { return e->checked_type_.as<TensorTypeNode>()->dtype; };
    const int64_t terms =
        dots ? kernel::DotFormatOf(dtype_of(pre->args[0]), dtype_of(pre->args[1]), target_)->terms : 1;
    if (!dots && !(pre->args[0]->checked_type_.as<TensorTypeNode>()->dtype == DataType::Float(32))) return post;
    if (std::count(in.begin(), in.end(), 0) || std::count(out.begin(), out.end(), 0)) return post;
    bool depthwise = N < 3 && a.groups > 1 && a.groups == in[1] && a.groups == out[1];
    int64_t groups = depthwise ? 1 : a.groups;
    int64_t ob = BlockOf(out[1] / groups, lanes_), ib = BlockOf(in[1] / groups, lanes_);
    if (ib == 0 && in[1] / groups <= 4) ib = in[1] / groups;  // an image's channels are one block
    if (depthwise) ib = ob;
    // Kernels of plain images know their sides. Where they are open, channels that make no whole blocks are filled up.
    const bool open = std::count_if(in.begin() + 2, in.end(), [](int64_t d) { return d < 0; }) != 0;
    Ints full = out;
    const bool floats = pre->args[0]->checked_type_.as<TensorTypeNode>()->dtype == DataType::Float(32);
    if (N < 3 && open && floats && a.groups == 1) {
      if (ib == 0) ib = AnyBlockOf(in[1], lanes_);
      if (ob == 0) ob = PaddedBlockOf(out[1], lanes_);
      if (ob != 0) full[1] = (out[1] + ob - 1) / ob * ob;
    }
    if (ob == 0 || ib == 0) return post;
    // Groups that leave lanes empty, or channels alone that lie plain already, are not worth another order.
    if (groups > 1 && (ob < lanes_ || ib < 4)) return post;
    if (depthwise && !dots && !Find(call->args[0]) && !std::count(a.strides.begin(), a.strides.end(), 2)) return post;
    const std::string outputs = std::to_string(ob) + "o";
    std::string kernel = dots && !depthwise ? weights + outputs + std::to_string(terms) + "i"
                                            : weights + std::to_string(depthwise ? 1 : ib) + "i" + outputs;
    Expr data = Get(call->args[0], N + 2, ib);
    const DataType held = call->args[1].as<ConstantNode>()->data.dtype();
    Expr weight = LayoutTransform(FilledUp(call->args[1], held, w, 0, full[1]), weights, kernel);
    auto attrs = runtime::make_object<ConvAttrs<N>>(a);
    attrs->data_layout = String(Blocked(N + 2, ib));
    attrs->kernel_layout = String(kernel);
    attrs->out_layout = String(Blocked(N + 2, ob));
    Op op = Downcast<Op>(call->op);
    if (N == 2) op = depthwise ? op::depthwise_conv2d_nchwc : op::conv2d_nchwc;
    if (full != out && a.channels.defined()) attrs->channels = PrimExpr(full[1]);
    const Expr made = MakeCall(op, {data, weight}, Attrs(ObjectPtr<Object>(attrs)));
    return full == out ? Plain(made, ob, out, post->span) : FirstChannels(made, ob, out, post->span);
  }

  /// The plain form of a blocked value that has more channels than `shape`.
  static Expr FirstChannels(const Expr& value, int64_t size, const Ints& shape, const Span& span) {
    value->span = span;
    const Expr all = LayoutTransform(value, Blocked(shape.size(), size), PlainLayout(shape.size()));
    const Expr first = FirstOf(all, 1, shape[1]);
    all->span = span, first->span = span;
    return first;
  }

  /// A call that takes blocks where its attribute `layout` says so.
  Expr Blocks(const CallNode* call, const Expr& post, const Ints& out) {
    const Block* b = Find(call->args[0]);
    if (!b || !call->attrs.defined()) return post;
    const auto* info = runtime::TypeInfo::Get(call->attrs.type_index());
    if (info->Find("layout")->Get(call->attrs.get()).As<String>() != PlainLayout(out.size())) return post;
    const Attrs attrs(info->copy(call->attrs.get()));
    Object* fields = runtime::ObjectAccess::Get(attrs);
    info->Find("layout")->Set(fields, Any(String(Blocked(out.size(), b->size))).raw());
    if (const auto* result = info->Find("out_layout")) result->Set(fields, Any(String()).raw());
    return Plain(MakeCall(Downcast<Op>(call->op), {b->value}, attrs), b->size, out, post->span);
  }

  Expr Concatenate(const CallNode* pre, const Expr& post, const Ints& out) {
    const auto* call = post.as<CallNode>();
    const auto* tuple = call->args[0].as<TupleNode>();
    const auto* pre_tuple = pre->args[0].as<TupleNode>();
    int64_t axis = runtime::GetField(call->attrs.get(), "axis").As<int64_t>();
    if (!tuple || !pre_tuple || call->args.size() != 1 || (axis != 1 && axis != 1 - static_cast<int64_t>(out.size())))
      return post;
    // One block size for all, taken from those that are in blocks; at least half of them must be.
    int64_t size = 0, have = 0;
    for (const Expr& f : tuple->fields) {
      if (const Block* b = Find(f)) {
        size = size == 0 ? b->size : std::min(size, b->size);
        ++have;
      }
    }
    if (have * 2 < static_cast<int64_t>(tuple->fields.size())) return post;
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      Ints s;
      int64_t k = static_cast<int64_t>(i);
      if (!ImageShape(pre_tuple->fields[k], &s) || s[1] % size != 0) return post;
      const Block* b = Find(tuple->fields[k]);
      if (b && b->size != size) return post;
    }
    Array<Expr> fields;
    for (const Expr& f : tuple->fields) fields.push_back(Get(f, out.size(), size));
    return Plain(MakeCall(Downcast<Op>(call->op), {Tuple(fields)}, call->attrs), size, out, post->span);
  }

  Expr BiasAdd(const CallNode* pre, const Expr& post, const Ints& out) {
    const auto* call = post.as<CallNode>();
    const Block* b = Find(call->args[0]);
    int64_t axis = runtime::GetField(call->attrs.get(), "axis").As<int64_t>();
    const auto* t = pre->args[1]->checked_type_.as<TensorTypeNode>();
    if (!b || (axis != 1 && axis != 1 - static_cast<int64_t>(out.size())) || !t || t->shape.size() != 1) return post;
    return Plain(Add(b->value, Reshape(call->args[1], PerChannel(out, b->size))), b->size, out, post->span);
  }

  Expr ByElement(const CallNode* call, const Expr& post, const Ints& out) {
    const Block* b = Find(call->args[0]);
    if (!b) return post;
    Array<Expr> args = call->args;
    args.Set(0, b->value);
    return Plain(MakeCall(Downcast<Op>(call->op), args, call->attrs), b->size, out, post->span);
  }

  /// A reduction of each channel's pixels, whose dimensions are where they were.
  Expr Reduce(const CallNode* call, const Expr& post, const Ints& out) {
    const Block* b = Find(call->args[0]);
    const auto* a = call->attrs.as<ReduceAttrs>();
    if (!b || !a || !a->keepdims || a->exclude || !a->axis.defined() || a->axis.empty()) return post;
    for (int64_t axis : a->axis) {
      if (axis < 2) return post;
    }
    return Plain(MakeCall(Downcast<Op>(call->op), {b->value}, call->attrs), b->size, out, post->span);
  }

  Expr Binary(const CallNode* pre, const CallNode* call, const Expr& post, const Ints& out) {
    const Block *x = Find(call->args[0]), *y = Find(call->args[1]);
    if (!x && !y) return post;
    int64_t size = x ? x->size : y->size;
    Array<Expr> args;
    for (int64_t i = 0; i < 2; ++i) {
      const auto* t = pre->args[i]->checked_type_.as<TensorTypeNode>();
      if (!t) return post;
      Ints s;
      const bool literal = StaticShape(t->shape, &s);
      int64_t n = 1;
      for (int64_t d : s) n *= d;
      // Blocks broadcast over the batch and the sides as plain images do.
      if (Ints image; ImageShape(pre->args[i], &image) && image.size() == out.size() && image[1] == out[1]) {
        args.push_back(IsPixel(image) ? GetPixel(call->args[i], image, size) : Get(call->args[i], out.size(), size));
      } else if (!literal) {
        return post;
      } else if (n == 1) {
        args.push_back(s.empty() ? call->args[i] : Reshape(call->args[i], {1}));
      } else if (n == out[1] && s.size() + 1 >= out.size() &&
                 s[s.size() + 1 - out.size()] == out[1]) {  // a value a channel
        args.push_back(Reshape(call->args[i], PerChannel(out, size)));
      } else {
        return post;
      }
    }
    return Plain(MakeCall(Downcast<Op>(call->op), args, call->attrs), size, out, post->span);
  }

  Target target_;
  int64_t lanes_;
  std::unordered_map<const Object*, Block> blocked_;
  std::vector<Expr> keep_;
};

}  // namespace

Pass AlterOpLayout() {
  return MakePass<AlterOpLayout>({
      .doc =
          "Runs convolutions, and what lies between them, on images whose channels are in blocks of a vector's lanes. "
          "Where a function is registered for an operator (FTVMAlterOpLayout), that one decides first.",
      .opt_level = 3,
      .required = {"InferType"},
      .reassociates = true,
      .run = [](Function f, IRModule mod, PassContext) -> Function {
        if (Function altered = AlterRegistered(f); !altered.same_as(f)) {
          InferTypeOf(altered, mod);
          f = altered;
        }
        const Target target = Target::Current();
        if (!target->traits().vector_kernels) return f;  // kernels read images as they are
        // Blocks begin at convolutions and pools.
        const bool any = AnyCallWhere(f, [](const OpNode* op) { return op->name.view().starts_with("nn."); });
        return any ? Downcast<Function>(LayoutMutator(target).Mutate(f)) : f;
      },
  });
}

namespace {
const RegisterPass<AlterOpLayout> registered_alter_op_layout;
}

}  // namespace baton::relay::transform
