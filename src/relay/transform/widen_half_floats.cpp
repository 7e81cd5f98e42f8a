// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/target.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/tensor.h>
#include <baton/relay/transform.h>
#include <relay/expr/children.h>
#include <relay/op/narrow_values.h>
#include <relay/transform/half_weights.h>
#include <relay/transform/tuple_fields.h>

#include <algorithm>
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

/// Values are held in half width as before, by casts; what such a cast is made of is used in its place by operators
/// that compute, and casts that nothing uses are no part of the result.
class Widener : public MixedModeMutator {
 public:
  explicit Widener(const Function& f) : fields_(f) {}
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
    if (!def || def->traits.precision == Precision::kUnknown || !HasHalfArg(pre)) return post;
    // A conversion that a program asks for rounds, so only its operand may be wide.
    const bool is_cast = call->attrs.as<CastAttrs>() != nullptr;
    if (!is_cast && def->attrs && HasField(call->attrs, "dtype")) return post;
    const bool to_half = HoldsHalf(pre->checked_type_);
    const bool moves = def->traits.values != Values::kComputes || is_cast || !to_half;
    // What only moves elements, or reads them, takes them as they are; in half width they take half the time.
    if (moves && !std::ranges::any_of(call->args, [&](const Expr& a) { return HasWide(a); })) return post;
    auto n = make_object<CallNode>(*call);
    n->checked_type_ = ObjectRef();
    for (size_t i = 0; i < n->args.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      n->args.Set(at, Wide(pre->args[at]->checked_type_, call->args[at]));
    }
    if (is_cast) return Call(n);
    if (to_half) SetOutDtype(&n->attrs);
    return Narrowed(pre->checked_type_, Call(n));
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
    const auto* info = runtime::TypeInfo::Get(attrs->get()->type_index());
    const auto* f = info->Find("out_dtype");
    const auto said = f->Get(attrs->get()).As<DataType>();
    if (said.is_void() || !info->copy) return;
    Attrs own(info->copy(attrs->get()));
    f->Set(runtime::ObjectAccess::Get(own), Any(kWide).raw());
    *attrs = own;
  }

  /// What a cast made here narrows; null for other expressions.
  const Expr* MadeOf(const Expr& e) const {
    const auto* made = wide_.find(e);
    return made ? &made->second : nullptr;
  }
  bool HasWide(const Expr& e) const {
    if (const auto* tuple = e.as<TupleNode>()) {
      return std::ranges::any_of(tuple->fields, [&](const Expr& f) { return MadeOf(f) != nullptr; });
    }
    return MadeOf(e) != nullptr;
  }

  Expr Wide(const ObjectRef& type, const Expr& e) {
    if (const auto* types = type.as<TupleTypeNode>()) {
      if (!HoldsHalf(type)) return e;
      const auto* tuple = e.as<TupleNode>();
      Array<Expr> fields;
      for (size_t i = 0; i < types->fields.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        fields.push_back(Wide(types->fields[at], tuple ? tuple->fields[at] : Expr(TupleGetItem(e, at))));
      }
      return Tuple(fields);
    }
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
  bool constants_ = false;  ///< whether weights were made wide
  ExprMemo wide_;           ///< what casts made here narrow
  ExprMemo widened_;        ///< the wide form of what was not made here
};

}  // namespace

Pass WidenHalfFloats() {
  return MakePass<WidenHalfFloats>({
      .doc = "Computes in float32 what is said in float16 and bfloat16, through the kernels of float32; values keep "
             "the wide form from one operator to the next, and are rounded where a program converts them or hands them "
             "out.",
      .opt_level = 1,
      .required = {"InferType"},
      .reassociates = true,
      .run = [](Function f, IRModule, PassContext) -> Function {
        const Target target = Target::Current();
        if (target.defined() && target->traits().work_items) return f;  // such devices compute in half width
        const bool any = AnyNode(f, [](const ExprNode* n) { return IsHalf(n->checked_type_); });
        if (!any) return f;
        Widener widener(f);
        const Function made = Downcast<Function>(widener.Mutate(f));
        return widener.widened_constants() ? WithAttr(made, kHalfWeights, Any(int64_t{1})) : made;
      },
  });
}

namespace {
const RegisterPass<WidenHalfFloats> registered_widen_half_floats;
}  // namespace

}  // namespace baton::relay::transform
