// SPDX-License-Identifier: Apache-2.0
// Finds softmax(scale * query key^T + mask) value, as exporters spell it out.
#include <baton/ir/target.h>
#include <baton/relay/functor.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/transform.h>
#include <baton/relay/transform.h>
#include <baton/support/pointer_map.h>
#include <baton/tir/op.h>
#include <relay/expr/children.h>
#include <relay/expr/expr_index.h>
#include <relay/op/nn/weights.h>

#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "causal_mask.h"
#include "strided_view.h"

namespace baton::relay::transform {
namespace {

using Shape = Array<PrimExpr>;

/// Operators between a product and what it is taken of, on the way to a dense tensor.
constexpr size_t kMostViews = 16;
/// Masks and scales between a product and its softmax.
constexpr int kMostSteps = 12;
/// Elements of a head's keys up to which their products are as fast as the kernel, which fills registers.
constexpr int64_t kFewElements = 128;
constexpr std::string_view kLetters = "BHSD";

const TensorTypeNode* TypeAt(const Expr& e) {
  return e->checked_type_.defined() ? e->checked_type_.as<TensorTypeNode>() : nullptr;
}
bool IsFloat32(const Expr& e) { return TypeAt(e) && TypeAt(e)->dtype == DataType::Float(32); }
bool SameExtent(const PrimExpr& a, const PrimExpr& b) { return DimOf(EvenQuotient(a, b)) == 1; }
bool SameShape(const Shape& a, const Shape& b) {
  bool same = a.size() == b.size();
  for (size_t d = 0; same && d < a.size(); ++d)
    same = SameExtent(a[static_cast<int64_t>(d)], b[static_cast<int64_t>(d)]);
  return same;
}
Expr ReshapeTo(const Expr& x, const Shape& from, const Shape& shape) {
  if (SameShape(from, shape)) return x;
  return MakeCall<ReshapeAttrs>(op::reshape, {x},
                                [&](ReshapeAttrs* a) { a->newshape = ExtentArray(shape), a->allowzero = true; });
}

/// A product of matrices whose operands may be transposed.
struct Product {
  const CallNode* call = nullptr;
  bool transpose_a = false, transpose_b = false;
  Shape shape;
  explicit operator bool() const { return call != nullptr; }
};
Product ProductOf(const Expr& e) {
  Product p;
  const auto* call = e.as<CallNode>();
  if (!call || !IsFloat32(e)) return p;
  if (call->op.same_as(op::batch_matmul)) {
    const auto& a = AttrsAs<BatchMatmulAttrs>(call->attrs);
    p.transpose_a = a.transpose_a, p.transpose_b = a.transpose_b;
  } else if (call->op.same_as(op::matmul)) {
    const auto& a = AttrsAs<MatmulAttrs>(call->attrs);
    p.transpose_a = a.transpose_a, p.transpose_b = a.transpose_b;
  } else {
    return p;
  }
  for (const Expr& arg : call->args) {
    if (!IsFloat32(arg) || TypeAt(arg)->shape.size() < 2 || !HasKnownExtents(TypeAt(arg)->shape)) return p;
  }
  p.call = call, p.shape = TypeAt(e)->shape;
  return p;
}

/// An addend of scores: an expression of the program, `factor` times; or a number where a condition holds, or does
/// not, and 0 elsewhere.
struct Mask {
  Expr value;
  double factor = 1;
  bool chooses = false, where_true = false;
  double number = 0;
};
/// The operand of a softmax, followed down to a product.
struct Scores {
  Product product;
  double scale = 1;
  std::vector<Mask> masks;
  int64_t guard = 0;  ///< as AttentionAttrs has it: rows that see no key are asked for, and have weights of 0
  Shape shape;        ///< of scores where masks are added
};

/// An attention that was found: its call but for the layout of the result, and the product that it replaces as an
/// arrangement of letters.
struct Found {
  Array<Expr> args;
  AttentionAttrs attrs;
  std::optional<StridedView> result;
};

class AttentionFuser : public MixedModeMutator {
 public:
  explicit AttentionFuser(const Expr& root) : index_(root) {}

 private:
  bool UsedOnce(const Expr& e) const { return HasUses(e, 1); }
  bool HasUses(const Expr& e, size_t count) const {
    const uint32_t id = index_.IdOf(e.get());
    return id != ExprIndex::kNone && index_.Users(id).size() == count;
  }

  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const Expr e = GetRef<Expr>(pre);
    if (pre->op.same_as(op::transpose)) return Transposed(e, post);
    const Product mixing = ProductOf(e);
    if (!mixing) return post;
    std::optional<Found> found = Match(mixing);
    if (!found) return post;
    Expr out = CallOf(*found, post->span, TypeAt(e)->shape);
    found_[pre] = std::move(*found);
    return out;
  }

  static Expr CallOf(const Found& f, const Span& span, const Shape& shape) {
    Expr call = MakeCall<AttentionAttrs>(op::attention, f.args, [&](AttentionAttrs* a) { *a = f.attrs; });
    call->span = span;
    Expr out = ReshapeTo(call, OwnShape(f), shape);
    if (!out->span.defined()) out->span = span;
    return out;
  }
  /// The shape of the attention's result in its layout.
  static Shape OwnShape(const Found& f) { return f.result->InValue(kLetters).shape; }

  /// A transposition of an attention's result gives its layout instead.
  Expr Transposed(const Expr& e, const Expr& post) {
    std::vector<const CallNode*> steps;
    Expr at = e;
    const Found* found = nullptr;
    while (!found) {
      const auto* call = at.as<CallNode>();
      if (!call || steps.size() > kMostViews) return post;
      if (at.get() != e.get() && !UsedOnce(at)) return post;
      found = found_.Find(call);
      if (found) break;
      if (!IsView(call->op) && !call->op.same_as(op::transpose)) return post;
      steps.push_back(call);
      at = call->args[0];
    }
    Found moved = *found;
    if (!moved.result->Reshape(TypeAt(at)->shape)) return post;
    for (size_t i = steps.size(); i-- > 0;) {
      if (!Step(steps[i], &*moved.result)) return post;
    }
    const StridedView::Named named = moved.result->InValue(kLetters);
    if (named.layout.empty() || named.layout.back() != 'D') return post;
    moved.attrs.out_layout = named.layout;
    return CallOf(moved, post->span, TypeAt(e)->shape);
  }

  /// Applies a call that only arranges elements to its first operand's arrangement; false for other calls.
  static bool Step(const CallNode* call, StridedView* view) {
    const auto* type = TypeAt(GetRef<Expr>(call));
    if (!type || !HasKnownExtents(type->shape)) return false;
    if (IsView(call->op)) return view->Reshape(type->shape);
    if (call->op.same_as(op::broadcast_to)) return view->BroadcastTo(type->shape);
    if (!call->op.same_as(op::transpose)) return false;
    const Array<int64_t>& axes = AttrsAs<TransposeAttrs>(call->attrs).axes;
    const auto rank = static_cast<int64_t>(view->rank());
    std::vector<int64_t> order;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t a = axes.defined() && !axes.empty() ? axes[d] : rank - 1 - d;
      order.push_back(a < 0 ? a + rank : a);
    }
    return view->Transpose(order);
  }

  /// The value as an arrangement of a dense tensor. `scale`, where given, is multiplied by the factors on the way.
  static StridedView Trace(const Expr& e, double* scale) {
    struct Move {
      const CallNode* call;
      double factor;  ///< 0: the call arranges elements
    };
    std::vector<Move> steps;
    Expr at = e;
    for (const auto* call = at.as<CallNode>(); call && steps.size() < kMostViews; call = at.as<CallNode>()) {
      const bool arranges = IsView(call->op) || call->op.same_as(op::broadcast_to) || call->op.same_as(op::transpose);
      const bool scales = scale && call->op.same_as(op::multiply) && SameAs(call->args[0], at);
      const double factor = scales ? NumberOf(call->args[1]).value_or(0) : 0;
      if ((!arranges && factor == 0) || !TypeAt(call->args[0]) || !HasKnownExtents(TypeAt(call->args[0])->shape)) break;
      steps.push_back({call, factor}), at = call->args[0];
    }
    StridedView view(at);
    double found = 1;
    for (size_t i = steps.size(); i-- > 0;) {
      if (steps[i].factor != 0) {
        found *= steps[i].factor;
      } else if (!Step(steps[i].call, &view)) {
        // Values without a form are computed.
        view = StridedView(GetRef<Expr>(steps[i].call)), found = 1;
      }
    }
    if (scale) *scale *= found;
    return view;
  }
  static bool SameAs(const Expr& a, const Expr& b) {
    return TypeAt(a) && SameShape(TypeAt(a)->shape, TypeAt(b)->shape);
  }

  /// Follows scores down to the product; false where they are something else.
  bool Follow(Expr e, Scores* s, int steps) const {
    for (; steps < kMostSteps; ++steps) {
      const auto* call = e.as<CallNode>();
      if (!call || !IsFloat32(e) || !HasKnownExtents(TypeAt(e)->shape)) return false;
      if (!HasUses(e, steps == 0 && s->guard == 1 ? 2 : 1)) return false;
      const Shape& shape = TypeAt(e)->shape;
      if ((s->product = ProductOf(e))) {
        if (s->masks.empty() && s->shape.size() < 4 && shape.size() == 4) s->shape = shape;
        return true;
      }
      if (IsView(call->op)) {
        e = call->args[0];
        continue;
      }
      if (call->op.same_as(op::multiply) || call->op.same_as(op::divide)) {
        const std::optional<double> number = NumberOf(call->args[1]);
        if (!number || !SameAs(call->args[0], e)) return false;
        s->scale = call->op.same_as(op::multiply) ? s->scale * *number : s->scale / *number;
        e = call->args[0];
        continue;
      }
      // Masks are added at one shape.
      if (!s->masks.empty() && !SameShape(s->shape, shape)) return false;
      s->shape = shape;
      if (call->op.same_as(op::add)) return Summed(call, s, steps);
      if (call->op.same_as(op::where)) return Chosen(call, s, steps);
      return false;
    }
    return false;
  }
  bool Summed(const CallNode* call, Scores* s, int steps) const {
    for (int64_t i = 0; i < 2; ++i) {
      if (!SameAs(call->args[i], GetRef<Expr>(call))) continue;
      Scores tried = *s;
      tried.masks.push_back({call->args[1 - i], s->scale});
      if (!Follow(call->args[i], &tried, steps + 1)) continue;
      *s = tried;
      return true;
    }
    return false;
  }
  /// where(condition, score, number), or the other way around.
  bool Chosen(const CallNode* call, Scores* s, int steps) const {
    for (int64_t i = 1; i < 3; ++i) {
      const std::optional<double> number = NumberOf(call->args[i]);
      if (!number || !(*number * s->scale <= kHides) || !SameAs(call->args[3 - i], GetRef<Expr>(call))) continue;
      Scores tried = *s;
      tried.masks.push_back({call->args[0], 1, true, i == 1, *number * s->scale});
      if (!Follow(call->args[3 - i], &tried, steps + 1)) continue;
      *s = tried;
      return true;
    }
    return false;
  }

  /// An operand of a product as (lead..., outer, inner), where `each` blocks of the product's rows are heads that share
  /// it. `transposed`: its last two dimensions are (inner, outer).
  static bool Arrange(StridedView* view, bool transposed, const Product& product, const PrimExpr& each,
                      const Shape& lead, const PrimExpr& outer, const PrimExpr& inner) {
    std::vector<int64_t> order;
    for (size_t d = 0; d < view->rank(); ++d) order.push_back(static_cast<int64_t>(d));
    if (transposed) std::swap(order[order.size() - 1], order[order.size() - 2]);
    if (!view->Transpose(order)) return false;
    Shape batch(product.shape.begin(), product.shape.end() - 2), full = lead;
    const size_t stack = batch.size();
    batch.push_back(outer), batch.push_back(inner);
    full.push_back(outer), full.push_back(inner);
    if (!view->BroadcastTo(batch)) return false;
    view->Repeat(stack, each);
    return view->Reshape(full);
  }

  /// Of where(max(scores) == -inf, 0, softmax(scores)) the softmax, and of where(isnan(w), 0, w) the weights w; null
  /// for others.
  Expr Guarded(const Expr& weights, int64_t* guard) const {
    const auto* choice = weights.as<CallNode>();
    if (!choice || !choice->op.same_as(op::where) || NumberOf(choice->args[1]) != 0.0 || !UsedOnce(weights)) return {};
    const auto *normalised = choice->args[2].as<CallNode>(), *test = choice->args[0].as<CallNode>();
    if (!normalised || !test || !UsedOnce(choice->args[0])) return {};
    *guard = 2;
    if (FindsNan(test)) return test->args[0].same_as(choice->args[2]) ? choice->args[2] : Expr();
    *guard = 1;
    if (!test->op.same_as(op::equal)) return {};
    const auto* top = test->args[0].as<CallNode>();
    const std::optional<double> least = NumberOf(test->args[1]);
    if (!top || !top->op.same_as(op::max) || !UsedOnce(test->args[0]) || !least || *least >= 0 || !std::isinf(*least))
      return {};
    return top->args[0].same_as(normalised->args[0]) ? choice->args[2] : Expr();
  }

  std::optional<Found> Match(const Product& mixing) {
    // The weights: a softmax, in another shape perhaps.
    Expr weights = mixing.call->args[0];
    for (const auto* c = weights.as<CallNode>(); c && IsView(c->op); c = weights.as<CallNode>()) {
      if (!UsedOnce(weights)) return std::nullopt;
      weights = c->args[0];
    }
    Scores s;
    int64_t guard = 0;
    if (const Expr inner = Guarded(weights, &guard); inner.defined()) weights = inner, s.guard = guard;
    const auto* normalised = weights.as<CallNode>();
    if (!normalised || mixing.transpose_a || !HasUses(weights, s.guard == 2 ? 2 : 1)) return std::nullopt;
    const auto* type = TypeAt(weights);
    const auto rank = type ? static_cast<int64_t>(type->shape.size()) : 0;
    if (rank < 2 || !IsWeights(normalised, rank)) return std::nullopt;
    s.shape = type->shape;
    if (!Follow(normalised->args[0], &s, 0)) return std::nullopt;
    const PrimExpr rows = s.shape[s.shape.size() - 2], keys = s.shape.back();
    if (!SameExtent(type->shape[rank - 2], rows) || !SameExtent(type->shape[rank - 1], keys)) return std::nullopt;
    return Build(mixing, s, rows, keys);
  }

  std::optional<Found> Build(const Product& mixing, Scores& s, const PrimExpr& rows, const PrimExpr& keys) {
    const Product& p = s.product;
    const Shape lead(s.shape.begin(), s.shape.end() - 2);
    auto blocks = [&](const Product& of) { return EvenQuotient(of.shape[of.shape.size() - 2], rows); };
    const PrimExpr each = blocks(p), each_mixed = blocks(mixing), width = mixing.shape.back();
    if (!each.defined() || !each_mixed.defined() || DimOf(each) < 1 || DimOf(each_mixed) < 1) return std::nullopt;
    if (!SameExtent(p.shape.back(), keys)) return std::nullopt;
    const auto* a = TypeAt(p.call->args[0]);
    const PrimExpr depth = a->shape[a->shape.size() - (p.transpose_a ? 2 : 1)];
    if (DimOf(keys) >= 0 && DimOf(keys) * DimOf(depth) <= kFewElements) return std::nullopt;
    double scale = s.scale;
    StridedView q = Trace(p.call->args[0], &scale), k = Trace(p.call->args[1], &scale),
                v = Trace(mixing.call->args[1], nullptr);
    StridedView out(GetRef<Expr>(mixing.call));
    Shape result = lead;
    result.push_back(rows), result.push_back(width);
    if (!Arrange(&k, !p.transpose_b, p, each, lead, keys, depth) ||
        !Arrange(&v, mixing.transpose_b, mixing, each_mixed, lead, keys, width) || !out.Reshape(result)) {
      return std::nullopt;
    }
    // Heads that share keys are in the rows of the query's product already.
    Shape batch(p.shape.begin(), p.shape.end() - 2), queries = lead;
    batch.push_back(p.shape[p.shape.size() - 2]), batch.push_back(depth);
    queries.push_back(rows), queries.push_back(depth);
    if (p.transpose_a) {
      std::vector<int64_t> order;
      for (size_t d = 0; d < q.rank(); ++d) order.push_back(static_cast<int64_t>(d));
      std::swap(order[order.size() - 1], order[order.size() - 2]);
      q.Transpose(order);
    }
    if (!q.BroadcastTo(batch) || !q.Reshape(queries)) return std::nullopt;
    // The batch is the first dimension as a rule.
    const size_t most = lead.size();
    for (size_t split : {size_t{1}, size_t{0}, size_t{2}}) {
      if (split > most || (split == 1 && most < 2) || (split == 2 && most < 3)) continue;
      if (std::optional<Found> f = Named(q, k, v, out, lead.size(), split)) {
        f->attrs.scale = scale;
        if (!AddMask(&*f, s, split)) return std::nullopt;
        // A causal query sees its own place: no row is without a key.
        f->attrs.guard = s.guard == 1 && f->args.size() == 3 ? 0 : s.guard;
        return f;
      }
    }
    return std::nullopt;
  }

  /// The call where the first `split` of `lead` dimensions are the batch, the others heads.
  std::optional<Found> Named(StridedView q, StridedView k, StridedView v, StridedView out, size_t lead, size_t split) {
    for (StridedView* x : {&q, &k, &v, &out}) {
      x->Name(0, split, 'B'), x->Name(split, lead, 'H'), x->Name(lead, lead + 1, 'S'), x->Name(lead + 1, lead + 2, 'D');
      if (x->Repeats(0, split) || x->Repeats(lead, lead + 2)) return std::nullopt;
    }
    if (q.Repeats(0, lead)) return std::nullopt;
    const PrimExpr shared = k.DropRepeated('H'), shared_values = v.DropRepeated('H');
    if (!shared.defined() || !shared_values.defined() || !SameExtent(shared, shared_values)) return std::nullopt;
    const StridedView::Named of_q = q.InSource(kLetters), of_k = k.InSource(kLetters), of_v = v.InSource(kLetters),
                             of_out = out.InSource(kLetters);
    auto extent = [](const StridedView::Named& n, char letter) {
      return DimOf(n.shape[static_cast<int64_t>(n.layout.find(letter))]);
    };
    for (const auto* n : {&of_q, &of_k, &of_v, &of_out}) {
      if (n->layout.empty() || extent(*n, 'D') < 1 || extent(*n, 'H') < 1) return std::nullopt;
      if (n != &of_k && n->layout.back() != 'D') return std::nullopt;
    }
    if (of_k.layout.back() != 'D' && of_k.layout.back() != 'S') return std::nullopt;
    Found f;
    auto operand = [&](const StridedView& x, const StridedView::Named& n) {
      const Expr& source = x.source();
      return ReshapeTo(Mutate(source), TypeAt(source)->shape, n.shape);
    };
    f.args = {operand(q, of_q), operand(k, of_k), operand(v, of_v)};
    f.attrs.query_layout = of_q.layout, f.attrs.key_layout = of_k.layout, f.attrs.value_layout = of_v.layout;
    f.attrs.out_layout = of_out.layout;
    f.result = out;
    return f;
  }

  /// The addend of scores as one operand: the masks from the product outwards. False where they have no such form.
  bool AddMask(Found* f, const Scores& s, size_t split) {
    Expr all;
    Shape of_all;
    CausalMasks causal(s.shape[s.shape.size() - 2], s.shape.back());
    for (size_t i = s.masks.size(); i-- > 0;) {
      const Mask& m = s.masks[i];
      // Beside another mask a row may see no key: it then weighs all keys that are hidden by finite numbers.
      if ((m.chooses ? causal.Shows(m.value, m.where_true) : causal.Adds(m.value, m.factor)) &&
          (s.masks.size() == 1 || std::isinf(m.chooses ? m.number : causal.hides()))) {
        f->attrs.causal = f->attrs.causal || DimOf(s.shape[s.shape.size() - 2]) != 1;  // one row sees all keys
        continue;
      }
      Shape shape;
      if (!MaskShape(m, s.shape, split, &shape)) return false;
      // A mask that is larger than its parts, and has all heads, would cost what the kernel saves.
      bool larger = false, other = false;
      Shape both;
      for (int64_t d = 0; d < 4; ++d) {
        both.push_back(all.defined() && DimOf(shape[d]) == 1 ? of_all[d] : shape[d]);
        larger = larger || (all.defined() && !SameExtent(both[d], of_all[d]));
        other = other || !SameExtent(both[d], shape[d]);
      }
      if (larger && other && DimOf(both[1]) != 1) return false;
      all = WithMask(all, m, shape);
      of_all = both;
    }
    if (all.defined()) f->args.push_back(all);
    return true;
  }

  /// The extents of a mask along batch, heads, rows and keys; false where it varies along a part of one.
  static bool MaskShape(const Mask& m, const Shape& scores, size_t split, Shape* shape) {
    const auto* type = TypeAt(m.value);
    const size_t rank = scores.size(), own = type ? type->shape.size() : rank + 1;
    if (own > rank || !HasKnownExtents(type->shape)) return false;
    const std::pair<size_t, size_t> parts[] = {{0, split}, {split, rank - 2}, {rank - 2, rank - 1}, {rank - 1, rank}};
    for (auto [begin, end] : parts) {
      PrimExpr extent(int64_t{1}), full(int64_t{1});
      for (size_t d = begin; d < end; ++d) {
        if (d + own >= rank) extent = extent * type->shape[static_cast<int64_t>(d + own - rank)];
        full = full * scores[static_cast<int64_t>(d)];
      }
      if (DimOf(extent) != 1 && !SameExtent(extent, full)) return false;
      shape->push_back(DimOf(extent) == 1 ? extent : full);
    }
    return true;
  }

  /// The sum of `inner` (null: nothing) and the mask around it. Equal ones of several layers are one expression.
  Expr WithMask(const Expr& inner, const Mask& m, const Shape& shape) {
    const DataType t = DataType::Float(32);
    Expr& made = masks_[{inner.get(), m.value.get(), m.chooses, m.where_true, m.chooses ? m.number : m.factor}];
    if (made.defined()) return made;
    const Expr value = ReshapeTo(Mutate(m.value), TypeAt(m.value)->shape, shape);
    if (m.chooses) {
      const Expr hidden = MakeScalar(m.number, t), shown = inner.defined() ? inner : MakeScalar(0, t);
      made = m.where_true ? Where(value, hidden, shown) : Where(value, shown, hidden);
      return made;
    }
    made = m.factor == 1 ? value : Multiply(value, MakeScalar(m.factor, t));
    if (inner.defined()) made = Add(inner, made);
    return made;
  }

  ExprIndex index_;
  PointerMap<Found> found_;
  std::map<std::tuple<const Object*, const Object*, bool, bool, double>, Expr> masks_;
};

}  // namespace

Pass FuseAttention() {
  return MakePass<FuseAttention>({
      .doc = "Makes nn.attention of softmax(scale * query key^T + mask) value in float32: what only arranges elements "
             "around it becomes layouts of its operands, repeated heads become groups. Left out where the context's "
             "`fp` is \"strict\".",
      .opt_level = 1,
      .required = {"InferType"},
      .reassociates = true,
      .run =
          [](Function f, IRModule, PassContext ctx) {
            if (!Target::Current()->traits().vector_kernels || ctx->GetConfig<String>("fp", "") == "strict") return f;
            const bool any = AnyCallWhere(f, MakesWeights);
            return any ? Downcast<Function>(AttentionFuser(f).Mutate(f)) : f;
          },
  });
}

namespace {
const RegisterPass<FuseAttention> registered_fuse_attention;
}  // namespace

}  // namespace baton::relay::transform
