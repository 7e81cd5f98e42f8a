// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/target.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/tensor.h>
#include <baton/relay/transform.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/children.h>
#include <relay/kernel/dots.h>
#include <relay/op/narrow_values.h>
#include <relay/transform/half_weights.h>
#include <relay/transform/tuple_fields.h>

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

namespace baton::relay::transform {
namespace {

constexpr DataType kWide = DataType::Float(32);

bool IsHalf(const ObjectRef& type) {
  const auto* t = type.as<TensorTypeNode>();
  return t && (t->dtype == DataType::Float(16) || t->dtype == DataType::BFloat16());
}
/// A tensor, or a tuple of tensors as operators take and give them.
bool HoldsHalf(const ObjectRef& type) {
  if (const auto* tuple = type.as<TupleTypeNode>()) return std::ranges::any_of(tuple->fields, IsHalf);
  return IsHalf(type);
}

DataType DTypeOf(const ObjectRef& type) {
  const auto* t = type.as<TensorTypeNode>();
  return t ? t->dtype : DataType::Void();
}
const CallNode* CastToHalf(const Expr& e) {
  const auto* call = e.as<CallNode>();
  const bool to_half = call && call->attrs.as<CastAttrs>() && IsHalf(call->checked_type_);
  return to_half && DTypeOf(call->args[0]->checked_type_) == kWide ? call : nullptr;
}

/// The values that products take in half width, as they lie in memory.
class TakenNarrow {
 public:
  TakenNarrow(const Function& f, const Target& target) : target_(target) {
    const NodeList nodes = PostOrderNodes(f);
    for (size_t i = nodes.size(); i-- > 0;) Visit(nodes[i]);
  }
  bool Has(const Expr& e) const { return taken_.count(e.get()) != 0; }
  /// A product that the target adds in half floats.
  bool IsDot(const CallNode* call) const {
    if (call->args.size() != 2 || !call->op.as<OpNode>()) return false;
    const CallNode* weight = CastToHalf(call->args[1]);
    const Expr held = weight ? weight->args[0] : call->args[1];
    return held.as<ConstantNode>() &&
           kernel::HasDotKernel(Downcast<Op>(call->op), call->attrs, call->args[0]->checked_type_.as<TensorTypeNode>(),
                                call->args[1]->checked_type_.as<TensorTypeNode>(), target_);
  }
  /// A constant in half floats, on a target that adds no products of them.
  bool IsRoundedWeight(const Expr& e) const {
    const CallNode* cast = CastToHalf(e);
    const DataType t = DTypeOf(e->checked_type_);
    return cast && cast->args[0].as<ConstantNode>() && !kernel::DotFormatOf(t, t, target_);
  }
  /// Whether it moves elements from place to place: what follows a product in its kernel is computed.
  static bool Moves(const OpDef* def) {
    return def && def->traits.values != Values::kComputes && def->pattern != OpPattern::kElemWise;
  }

 private:
  void Visit(const ExprNode* n) {
    const Expr e = GetRef<Expr>(n);
    if (const auto* tuple = e.as<TupleNode>()) {
      if (!Has(e)) return;
      for (const Expr& f : tuple->fields) taken_.insert(f.get());
    } else if (const auto* field = e.as<TupleGetItemNode>()) {
      if (Has(e)) taken_.insert(field->tuple.get());
    } else if (const auto* call = e.as<CallNode>()) {
      if (IsDot(call)) {
        taken_.insert(call->args[0].get());
      } else if (Has(e) && !call->attrs.as<CastAttrs>() && Moves(DefOf(call->op))) {
        for (const Expr& a : call->args) taken_.insert(a.get());
      }
    }
  }

  const Target target_;
  std::unordered_set<const Object*> taken_;
};

/// Values are held in half width as before, by casts; what such a cast is made of is used in its place by operators
/// that compute, and casts that nothing uses are not part of the result.
class Widener : public MixedModeMutator {
 public:
  /// `taken`: of a program for which half floats were asked; null: of one that says them itself.
  explicit Widener(const Function& f, const TakenNarrow* taken = nullptr) : fields_(f), taken_(taken) {}
  bool widened_constants() const { return constants_; }

 private:
  using MixedModeMutator::VisitExpr_;

  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const TupleGetItemNode* pre, const Expr& post) final { return fields_.Take(pre, post, graph()); }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const OpDef* def = call ? DefOf(call->op) : nullptr;
    if (taken_ && taken_->Has(GetRef<Expr>(pre)) && CastToHalf(GetRef<Expr>(pre)))
      return BelowViews(call->args[0], call);
    if (!def || def->traits.precision == Precision::kUnknown || !HasHalfArg(pre)) return post;
    if (taken_ && taken_->IsDot(pre)) return Dot(pre, call);
    // A conversion that a program asks for rounds, so only its operand may be wide.
    const bool is_cast = call->attrs.as<CastAttrs>() != nullptr;
    if (!is_cast && def->attrs && HasField(call->attrs, "dtype")) return post;
    const bool to_half = HoldsHalf(pre->checked_type_);
    const bool moves = def->traits.values != Values::kComputes || is_cast || !to_half;
    // Operators that only move or read elements take them as they are; in half width they take half the time.
    bool any_wide = false;
    for (size_t i = 0; i < call->args.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      any_wide = any_wide || HasWide(pre->args[at], call->args[at]) || IsNeedless(pre, at);
    }
    if (moves && !any_wide) return post;
    if (taken_ && is_cast && !to_half) {
      const Expr wide = Wide(pre->args[0], call->args[0]);
      if (AttrsAs<CastAttrs>(call->attrs).dtype == kWide) return wide;
    }
    auto n = make_object<CallNode>(*call);
    n->checked_type_ = ObjectRef();
    for (size_t i = 0; i < n->args.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      // Where no product is one of half floats, weights are what is rounded.
      const bool weight =
          taken_ && at == 1 && def->traits.precision == Precision::kAlways && taken_->IsRoundedWeight(pre->args[at]);
      n->args.Set(at, weight ? Cast(call->args[at], kWide) : Wide(pre->args[at], call->args[at]));
    }
    if (is_cast) return Call(n);
    if (to_half) SetOutDtype(&n->attrs);
    return Narrowed(pre->checked_type_, Call(n));
  }

  /// The cast `call` of `e`, where that is computed: views lie outside of kernels, and what is rounded there is one
  /// more.
  static Expr BelowViews(const Expr& e, const CallNode* call) {
    const auto* view = e.as<CallNode>();
    const OpDef* def = view ? DefOf(view->op) : nullptr;
    const bool moves = def && def->traits.values == Values::kView && view->args.size() == 1;
    if (!moves || view->args[0].as<ConstantNode>()) {
      auto n = make_object<CallNode>(*call);
      n->checked_type_ = ObjectRef(), n->args = {e};
      return Call(n);
    }
    auto n = make_object<CallNode>(*view);
    n->checked_type_ = ObjectRef(), n->args = {BelowViews(view->args[0], call)};
    return Call(n);
  }

  /// A product of half floats that is added in float32.
  Expr Dot(const CallNode* pre, const CallNode* call) {
    auto n = make_object<CallNode>(*call);
    n->checked_type_ = ObjectRef();
    SayOutDtype(&n->attrs);
    return IsHalf(pre->checked_type_) ? Narrowed(pre->checked_type_, Call(n)) : Expr(Call(n));
  }

  /// Whether the argument is rounded for a call that only moves it, of whose result no product takes the half width.
  bool IsNeedless(const CallNode* call, int64_t at) const {
    const CallNode* rounded = taken_ && !taken_->Has(GetRef<Expr>(call)) ? CastToHalf(call->args[at]) : nullptr;
    return rounded && !rounded->args[0].as<ConstantNode>();
  }
  static bool HasHalfArg(const CallNode* call) {
    return std::ranges::any_of(call->args, [](const Expr& a) { return HoldsHalf(a->checked_type_); });
  }
  static bool HasField(const Attrs& attrs, const char* name) {
    const auto* info = attrs.defined() ? runtime::TypeInfo::Get(attrs->type_index()) : nullptr;
    return info && info->Find(name);
  }
  /// Where attributes say a half result, they say a wide one.
  static void SetOutDtype(Attrs* attrs) {
    if (!HasField(*attrs, "out_dtype")) return;
    const auto* f = runtime::TypeInfo::Get(attrs->get()->type_index())->Find("out_dtype");
    if (!f->Get(attrs->get()).As<DataType>().is_void()) SayOutDtype(attrs);
  }
  static void SayOutDtype(Attrs* attrs) {
    const auto* info = runtime::TypeInfo::Get(attrs->get()->type_index());
    const auto* f = info->Find("out_dtype");
    if (!f || !info->copy) return;
    Attrs own(info->copy(attrs->get()));
    f->Set(runtime::ObjectAccess::Get(own), Any(kWide).raw());
    *attrs = own;
  }

  /// Returns the operand of a cast made here; null for other expressions.
  const Expr* MadeOf(const Expr& e) const {
    const auto* made = wide_.find(e);
    return made ? &made->second : nullptr;
  }
  /// Whether the wide form of a value is there, and what reads it takes that.
  bool HasWide(const Expr& pre, const Expr& e) const {
    const auto *tuple = e.as<TupleNode>(), *was = pre.as<TupleNode>();
    if (!tuple) return MadeOf(e) && !(taken_ && taken_->Has(pre));
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (HasWide(was ? was->fields[at] : pre, tuple->fields[at])) return true;
    }
    return false;
  }

  Expr Wide(const Expr& pre, const Expr& e) {
    const ObjectRef& type = pre->checked_type_;
    if (taken_ && IsHalf(type)) {
      // In memory it is narrow, and each that reads it widens it; a rounding that no product asks for is none.
      if (taken_->Has(pre) && !CastToHalf(pre)) return Spanned(Cast(e, kWide), e->span);
      const auto* cast = MadeOf(e) ? nullptr : e.as<CallNode>();
      if (cast && CastToHalf(pre) && cast->attrs.as<CastAttrs>()) return cast->args[0];
    }
    if (const auto* types = type.as<TupleTypeNode>()) {
      if (!HoldsHalf(type)) return e;
      const auto *tuple = e.as<TupleNode>(), *was = pre.as<TupleNode>();
      Array<Expr> fields;
      for (size_t i = 0; i < types->fields.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        const Expr field = tuple ? tuple->fields[at] : Expr(TupleGetItem(e, at));
        fields.push_back(was ? Wide(was->fields[at], field) : WideOfField(types->fields[at], field));
      }
      return Tuple(fields);
    }
    return WideOfField(type, e);
  }
  Expr WideOfField(const ObjectRef& type, const Expr& e) {
    if (!IsHalf(type)) return e;
    if (const Expr* wide = MadeOf(e)) return *wide;
    Expr& wide = widened_[e];
    if (wide.defined()) return wide;
    if (const auto* c = e.as<ConstantNode>()) {
      Constant made(Widened(c->data));
      made->span = c->span;
      constants_ = constants_ || !c->is_scalar();
      return wide = made;
    }
    return wide = Spanned(Cast(e, kWide), e->span);
  }
  Expr Narrowed(const ObjectRef& type, const Expr& e) {
    if (const auto* types = type.as<TupleTypeNode>()) {
      if (!HoldsHalf(type)) return e;
      Array<Expr> fields;
      for (size_t i = 0; i < types->fields.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        fields.push_back(Narrowed(types->fields[at], TupleGetItem(e, at)));
      }
      return Tuple(fields);
    }
    if (!IsHalf(type)) return e;
    const Expr narrow = Spanned(Cast(e, type.as<TensorTypeNode>()->dtype), e->span);
    wide_[narrow] = e;
    return narrow;
  }
  static Expr Spanned(Expr e, const Span& span) {
    e->span = span;
    return e;
  }

  TupleFields fields_;
  const TakenNarrow* taken_;
  bool constants_ = false;  ///< whether weights were made wide
  ExprMemo wide_;           ///< what casts made here narrow
  ExprMemo widened_;        ///< the wide form of what was not made here
};

}  // namespace

Pass WidenHalfFloats(const WidenHalfFloatsOptions& options) {
  return MakePass<WidenHalfFloats>(
      options,
      {
          .doc =
              "Computes in float32 what is said in float16 and bfloat16, through the kernels of float32; values keep "
              "the wide form from one operator to the next, and are rounded where a program converts them or hands "
              "them "
              "out.",
          .opt_level = 1,
          .required = {"InferType"},
          .reassociates = true,
          .run = [asked = options.asked](Function f, IRModule, PassContext) -> Function {
            const Target target = Target::Current();
            if (target.defined() && target->traits().work_items) return f;  // such devices compute in half width
            const bool any = AnyNode(f, [](const ExprNode* n) { return IsHalf(n->checked_type_); });
            if (!any) return f;
            std::optional<TakenNarrow> taken;
            if (asked) taken.emplace(f, target);
            Widener widener(f, taken ? &*taken : nullptr);
            const Function made = Downcast<Function>(widener.Mutate(f));
            return widener.widened_constants() ? WithAttr(made, kHalfWeights, Any(int64_t{1})) : made;
          },
      });
}

namespace {
const RegisterPass<WidenHalfFloats> registered_widen_half_floats;
}  // namespace

}  // namespace baton::relay::transform
