// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/diagnostic.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/tensor.h>
#include <baton/relay/transform.h>
#include <baton/support/stack.h>
#include <fmt/format.h>
#include <relay/transform/tuple_fields.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace baton::relay::transform {
namespace {

struct Rule {
  Precision precision;
  DataType accumulation, output;
};

/// Values are held in float32 as before, by casts; what a cast is made of is used in its place where a consumer takes
/// the narrow type, and casts that nothing uses are not part of the result.
class Narrower : public MixedModeMutator {
 public:
  Narrower(DataType narrow, int64_t missing_op_mode, const Function& f)
      : narrow_(narrow), mode_(missing_op_mode), fields_(f) {}
  /// A function that this one made, with results that stay narrow where they were computed so.
  Function WithNarrowResults(const Function& f) const {
    const Expr body = NarrowResult(f->body);
    if (body.same_as(f->body)) return f;
    auto n = make_object<FunctionNode>(*f.get());
    n->body = body, n->ret_type = Type();
    n->checked_type_ = ObjectRef();
    return Function(n);
  }
  void Report() const { errors_.ThrowIfAny(baton::transform::PassContext::Current()->diag_ctx); }

 private:
  using MixedModeMutator::VisitExpr_;

  /// A variable is bound to the narrow form of its value; its uses are casts of it.
  void PreVisitLet_(const LetNode* let) final {
    const Expr value = VisitExpr(let->value), narrow = NarrowForm(value);
    if (narrow.same_as(value)) {
      VisitExpr(let->var);
      return;
    }
    Var own(let->var->name_hint(), Type());
    own->span = let->var->span;
    narrow_lets_[let] = std::pair(own, narrow);
    Put(let->var, WidenedLike(value, own));
  }
  Expr PostVisitLet_(const LetNode* let, const Expr& value, const Expr& body) final {
    const std::pair<Var, Expr>* narrow = narrow_lets_.Find(let);
    if (!narrow) return MixedModeMutator::PostVisitLet_(let, value, body);
    auto n = make_object<LetNode>(*let);
    n->var = narrow->first, n->value = narrow->second, n->body = body;
    n->checked_type_ = ObjectRef();
    return Let(n);
  }
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const TupleGetItemNode* pre, const Expr& post) final { return fields_.Take(pre, post, graph()); }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const auto* op = call ? call->op.as<OpNode>() : nullptr;
    if (!op || pre->args.empty()) return post;
    if (call->attrs.as<CastAttrs>()) return CastOfNarrow(call, post);
    const Rule rule = RuleOf(pre, GetRef<Op>(op));
    if (rule.precision != Precision::kAlways && rule.precision != Precision::kFollow) return post;
    bool any = false;
    for (size_t i = 0; i < call->args.size(); ++i) {
      const ObjectRef& type = pre->args[i]->checked_type_;
      if (rule.precision == Precision::kAlways) {
        any = any || HoldsWide(type);
      } else {
        // A variable is cast where all else is narrow or a variable too.
        const bool variable = call->args[i]->IsInstance<VarNode>() && IsWide(type);
        if (!variable && !Follows(type, call->args[i])) return post;
        any = any || variable || IsNarrow(call->args[i]);
      }
    }
    if (!any) return post;
    auto n = make_object<CallNode>(*call);
    n->checked_type_ = ObjectRef();
    for (size_t i = 0; i < n->args.size(); ++i) n->args.Set(i, Narrow(pre->args[i]->checked_type_, n->args[i]));
    const bool accumulates = rule.precision == Precision::kAlways && SetOutDtype(&n->attrs, rule.accumulation);
    Expr made = Call(n);
    if (accumulates && rule.accumulation != rule.output) made = Cast(made, rule.output);
    const bool wide = rule.precision == Precision::kAlways ? rule.output != narrow_ : StatesDtype(call->attrs);
    return wide ? made : Widened(pre->checked_type_, made);
  }
  /// A cast of what was narrow needs no wide form between.
  Expr CastOfNarrow(const CallNode* cast, const Expr& post) {
    const Expr* narrow = cast->attrs.same_as(widening_) ? nullptr : MadeOf(cast->args[0]);
    if (!narrow) return post;
    auto n = make_object<CallNode>(*cast);
    n->args = {*narrow};
    return Call(n);
  }
  /// Whether attributes say the dtype of the result, which is then not that of the operands.
  static bool StatesDtype(const Attrs& attrs) {
    const auto* info = attrs.defined() ? runtime::TypeInfo::Get(attrs->type_index()) : nullptr;
    const runtime::FieldInfo* f = info ? info->Find("dtype") : nullptr;
    if (!f || f->kind != runtime::FieldKind::kDataType) return false;
    return f->Get(attrs.get()).As<DataType>() == DataType::Float(32);
  }

  /// The source of a result, where that is narrow. Chains of lets are long in practice: no recursion over them.
  Expr NarrowResult(const Expr& result) const {
    std::vector<Let> lets;
    Expr e = result;
    for (const auto* l = e.as<LetNode>(); l; l = e.as<LetNode>()) lets.push_back(GetRef<Let>(l)), e = l->body;
    Expr made = NarrowForm(e);
    if (made.same_as(e)) return result;
    for (size_t i = lets.size(); i-- > 0;) made = Let(lets[i]->var, lets[i]->value, made);
    return made;
  }

  /// A value with what is narrow in it as it was computed; the value itself where nothing is.
  Expr NarrowForm(const Expr& e) const {
    if (const Expr* narrow = MadeOf(e)) return *narrow;
    const auto* tuple = e.as<TupleNode>();
    if (!tuple) return e;
    Array<Expr> fields;
    bool changed = false, whole = true;
    const Expr* of = nullptr;  // the tuple of which these are all fields, in order
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      const Expr field = support::WithStack([&] { return NarrowForm(tuple->fields[i]); });
      changed = changed || !field.same_as(tuple->fields[i]);
      const auto* get = field.as<TupleGetItemNode>();
      whole = whole && get && get->index == static_cast<int64_t>(i) && (!of || of->same_as(get->tuple));
      if (whole) of = &get->tuple;
      fields.push_back(field);
    }
    if (!changed) return e;
    const size_t* width = whole && of ? widths_.Find(of->get()) : nullptr;
    return width && *width == fields.size() ? *of : Expr(Tuple(fields));
  }
  /// The variable of a narrow form of `value`, as that is used: casts of what is narrow.
  Expr WidenedLike(const Expr& value, const Expr& var) {
    if (MadeOf(value)) return Cast(var, widening_);
    const auto* tuple = value.as<TupleNode>();
    if (!tuple) return var;
    widths_[var.get()] = tuple->fields.size();
    Array<Expr> fields;
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      fields.push_back(
          support::WithStack([&] { return WidenedLike(tuple->fields[i], TupleGetItem(var, static_cast<int>(i))); }));
    }
    return Tuple(fields);
  }

  static bool IsWide(const ObjectRef& type) {
    const auto* t = type.as<TensorTypeNode>();
    return t && t->dtype == DataType::Float(32);
  }
  static bool HoldsWide(const ObjectRef& type) {
    if (const auto* tuple = type.as<TupleTypeNode>()) {
      for (const Type& f : tuple->fields) {
        if (IsWide(f)) return true;
      }
    }
    return IsWide(type);
  }
  bool IsNarrow(const Expr& e) const {
    if (const auto* tuple = e.as<TupleNode>()) {
      for (const Expr& f : tuple->fields) {
        if (MadeOf(f)) return true;
      }
    }
    return MadeOf(e);
  }
  /// The operand of a cast that widens a narrow value; null for other expressions.
  const Expr* MadeOf(const Expr& e) const {
    const auto* call = e.as<CallNode>();
    return call && call->attrs.same_as(widening_) ? &call->args[0] : nullptr;
  }
  /// Whether a value is narrow already, or costs nothing to make so.
  bool Follows(const ObjectRef& type, const Expr& e) const {
    if (const auto* types = type.as<TupleTypeNode>()) {
      const auto* tuple = e.as<TupleNode>();
      if (!tuple) return !HoldsWide(type);
      for (size_t i = 0; i < tuple->fields.size(); ++i) {
        if (!Follows(types->fields[i], tuple->fields[i])) return false;
      }
      return true;
    }
    return !IsWide(type) || e.as<ConstantNode>() || MadeOf(e);
  }
  Expr Narrow(const ObjectRef& type, const Expr& e) {
    if (const auto* types = type.as<TupleTypeNode>()) {
      if (!HoldsWide(type)) return e;
      Array<Expr> fields;
      const auto* tuple = e.as<TupleNode>();
      for (size_t i = 0; i < types->fields.size(); ++i) {
        fields.push_back(
            Narrow(types->fields[i], tuple ? Expr(tuple->fields[i]) : Expr(TupleGetItem(e, static_cast<int>(i)))));
      }
      return Tuple(fields);
    }
    if (!IsWide(type)) return e;
    if (const Expr* narrow = MadeOf(e)) return *narrow;
    Expr& narrow = narrowed_[e];
    if (!narrow.defined()) narrow = Cast(e, narrow_);
    return narrow;
  }
  Expr Widened(const ObjectRef& type, const Expr& e) {
    if (const auto* types = type.as<TupleTypeNode>()) {
      widths_[e.get()] = types->fields.size();
      Array<Expr> fields;
      for (size_t i = 0; i < types->fields.size(); ++i)
        fields.push_back(Widened(types->fields[i], TupleGetItem(e, static_cast<int>(i))));
      return Tuple(fields);
    }
    if (!IsWide(type)) return e;
    return Cast(e, widening_);
  }
  static Attrs CastTo(DataType dtype) {
    auto attrs = make_object<CastAttrs>();
    attrs->dtype = dtype;
    return Attrs(attrs);
  }
  Expr Cast(const Expr& e, DataType dtype) {
    auto known = std::ranges::find(casts_, dtype, &std::pair<DataType, Attrs>::first);
    if (known == casts_.end()) known = casts_.insert(known, {dtype, CastTo(dtype)});
    return Cast(e, known->second);
  }
  static Expr Cast(const Expr& e, const Attrs& attrs) {
    auto made = make_object<CallNode>(CallNode{.op = op::cast, .args = {e}, .attrs = attrs});
    made->span = e->span;
    return Call(made);
  }
  /// False where the operator does not say the dtype of its result.
  static bool SetOutDtype(Attrs* attrs, DataType dtype) {
    if (!attrs->defined()) return false;
    const auto* info = runtime::TypeInfo::Get(attrs->get()->type_index());
    const runtime::FieldInfo* f = info ? info->Find("out_dtype") : nullptr;
    if (!f || !info->copy) return false;
    Attrs own(info->copy(attrs->get()));
    f->Set(runtime::ObjectAccess::Get(own), Any(dtype).raw());
    *attrs = own;
    return true;
  }

  Rule RuleOf(const CallNode* call, const Op& op) {
    if (const Rule* known = rules_.Find(op.get())) return *known;
    const Any own = op.GetAttrValue("FTVMMixedPrecisionConversionType");
    if (!own.is_null() && !own.As<PackedFunc>().same_as(DefinedPrecision(op))) {
      const auto said =
          own.As<PackedFunc>()(GetRef<Call>(call), String(runtime::DataType2String(narrow_))).As<Array<Any>>();
      const int64_t precision = said.size() ? said[0].As<int64_t>() : -1;
      if (precision < 0 || precision > 2 || said.size() > 3)
        throw runtime::ValueError("the conversion of `" + op->name.str() +
                                  "` is [0 (always), 1 (follow) or 2 (never), accumulation dtype, result dtype]");
      return {static_cast<Precision>(precision), said.size() > 1 ? said[1].As<DataType>() : narrow_,
              said.size() > 2 ? said[2].As<DataType>() : narrow_};
    }
    const OpDef* def = DefOf(op);
    const Precision p = def ? def->traits.precision : Precision::kUnknown;
    if (p == Precision::kUnknown && mode_ == 0) {
      errors_.Error(call->span,
                    fmt::format("it is not known whether `{}` may be computed in {}", op->name.view(),
                                runtime::DataType2String(narrow_)),
                    "", "relay.op.register_mixed_precision_conversion says it; missing_op_mode=1 leaves it as it is");
    }
    const Rule rule{p, narrow_, narrow_};
    if (p != Precision::kUnknown) rules_[op.get()] = rule;
    return rule;
  }

  DataType narrow_;
  int64_t mode_;
  TupleFields fields_;
  PointerMap<Rule> rules_;                              ///< of operators for which it does not depend on the call
  std::vector<std::pair<DataType, Attrs>> casts_;       ///< attributes, which all casts to a dtype share
  const Attrs widening_ = CastTo(DataType::Float(32));  ///< those of casts of a narrow value, by which they are known
  ExprMemo narrowed_;                                   ///< the narrow form of what was not
  PointerMap<std::pair<Var, Expr>> narrow_lets_;        ///< a let to its narrow variable and value
  PointerMap<size_t> widths_;                           ///< numbers of fields of narrow tuples
  mutable DiagnosticList errors_;
};

}  // namespace

Pass ToMixedPrecision(const ToMixedPrecisionOptions& options) {
  const DataType mixed_precision_type = options.mixed_precision_type;
  const int64_t missing_op_mode = options.missing_op_mode;
  if (!mixed_precision_type.is_floating() || mixed_precision_type.bits() < 16 ||
      mixed_precision_type == DataType::Float(32) || !mixed_precision_type.is_scalar())
    throw runtime::ValueError("mixed_precision_type is " + runtime::DataType2String(mixed_precision_type) +
                              "; it is float16, bfloat16 or float64");
  if (missing_op_mode < 0 || missing_op_mode > 2)
    throw runtime::ValueError(
        "missing_op_mode is " + std::to_string(missing_op_mode) +
        "; it is 0 (an operator of unknown precision is an error), 1 or 2 (they stay as they are)");
  return MakePass<ToMixedPrecision>(
      options,
      {
          .doc =
              "Computes convolutions and products of matrices in a narrow type, their `out_dtype` too, and what takes "
              "only such values, variables and constants and does not lose much; everything else stays in float32, "
              "parameters too, and results if asked. Operators say what becomes of them by "
              "FTVMMixedPrecisionConversionType, [category, dtype of sums, dtype of the result].",
          .opt_level = 0,
          .required = {"InferType"},
          .changes_results = true,
          .run =
              [mixed_precision_type, missing_op_mode, keep = options.keep_orig_output_dtype](Function f, IRModule mod,
                                                                                             PassContext) {
                Narrower narrower(mixed_precision_type, missing_op_mode, f);
                Function made = narrower.Mutate(f);
                narrower.Report();
                const bool main = !keep && mod->ContainGlobalVar("main") && mod->Lookup("main").same_as(f);
                return main ? narrower.WithNarrowResults(made) : made;
              },
      });
}

namespace {
const RegisterPass<ToMixedPrecision> registered_to_mixed_precision;
}  // namespace

}  // namespace baton::relay::transform
