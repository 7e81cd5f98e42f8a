// SPDX-License-Identifier: Apache-2.0
// Models trained for quantization compute real numbers between qnn.dequantize and qnn.quantize. Code between
// them is computed in integers here: each operator has a rule that gives, for integers in, integers out and what they
// stand for; operators of programs give theirs by the attribute FTVMFakeQuantizationToInteger.
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/qnn.h>
#include <baton/relay/transform.h>
#include <relay/expr/children.h>
#include <relay/op/qnn/integers.h>

#include <unordered_map>
#include <vector>

namespace baton::relay::transform {
namespace {

/// Null for an operator without a rule.
IntegersFn RuleOf(const OpNode* op) {
  const OpDef* def = DefOf(op);
  if (!def || def->traits.integers) return def ? def->traits.integers : nullptr;
  return def->traits.values >= Values::kSelects ? integers::Selection : nullptr;
}

class Integers : public MixedModeMutator {
 public:
  explicit Integers(bool hard_fail) : hard_fail_(hard_fail) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    if (!call || call->op != op::qnn::quantize) return post;
    if (!integers::IsScalar(pre->args[1]) || !integers::IsScalar(pre->args[2])) return post;
    TensorAffineType out(call->args[1], call->args[2], AttrsAs<QuantizeAttrs>(call->attrs).out_dtype, -1);
    const IntegerValue v = Region(pre->args[0], out.get());
    if (v.kind != IntegerValue::kAffine || !v.tensor()) return post;
    Expr e = integers::Requantized(v.expr, v.tensor(), out.get());
    if (!e->span.defined()) e->span = post->span;
    return e;
  }

  /// Results by expressions of a region, operands first. An expression of two regions is computed for the first.
  IntegerValue Region(const Expr& root, const TensorAffineTypeNode* out) {
    std::vector<Expr> work{root};
    while (!work.empty()) {
      const Expr e = work.back();
      IntegerValue& v = values_[e.get()];
      if (v.kind != IntegerValue::kUnknown) {
        work.pop_back();
        continue;
      }
      bool ready = true, failed = false;
      auto need = [&](const Expr& child) {
        auto it = values_.find(child.get());
        if (it == values_.end() || it->second.kind == IntegerValue::kUnknown) {
          work.push_back(child);
          ready = false;
        } else {
          failed |= it->second.kind == IntegerValue::kFailed;
        }
      };
      const auto* call = e.as<CallNode>();
      if (call && HasRule(call)) {
        for (const Expr& a : call->args) need(a);
      } else if (const auto* t = e.as<TupleNode>()) {
        for (const Expr& f : t->fields) need(f);
      } else if (const auto* g = e.as<TupleGetItemNode>()) {
        need(g->tuple);
      }
      if (failed) {
        values_[e.get()] = integers::Failed();
        continue;  // what was asked for meanwhile is not needed, and does no harm
      }
      if (!ready) continue;
      work.pop_back();
      IntegerValue made = Made(e, out);
      values_[e.get()] = std::move(made);
      kept_.push_back(e);
    }
    return values_[root.get()];
  }

  bool HasRule(const CallNode* call) const {
    const auto* op = call->op.as<OpNode>();
    if (!op) return false;
    return RuleOf(op) || !GetRef<Op>(op).GetAttrValue(kAttr).is_null();
  }

  IntegerValue Made(const Expr& e, const TensorAffineTypeNode* out) {
    if (e.as<ConstantNode>()) return {IntegerValue::kPlain, e, {}};
    if (const auto* t = e.as<TupleNode>()) {
      Array<Expr> fields;
      Array<TensorAffineType> types;
      for (const Expr& f : t->fields) {
        const IntegerValue& v = values_[f.get()];
        if (v.kind != IntegerValue::kAffine || !v.tensor()) return integers::Failed();
        fields.push_back(v.expr);
        types.push_back(Downcast<TensorAffineType>(v.type));
      }
      return integers::Affine(Tuple(fields), TupleAffineType(types));
    }
    if (const auto* g = e.as<TupleGetItemNode>()) {
      const IntegerValue& v = values_[g->tuple.get()];
      const auto* types = v.kind == IntegerValue::kAffine ? v.type.as<TupleAffineTypeNode>() : nullptr;
      if (!types) return integers::Failed();
      return integers::Affine(TupleGetItem(v.expr, static_cast<int64_t>(g->index)), types->types[g->index]);
    }
    const auto* call = e.as<CallNode>();
    if (!call) return integers::Failed();
    if (call->op == op::qnn::dequantize) {
      const auto* t = call->args[0]->checked_type_.as<TensorTypeNode>();
      if (!t) return integers::Failed();
      // The arguments were rewritten before: a region is behind them.
      return integers::Affine(VisitExpr(call->args[0]), VisitExpr(call->args[1]), VisitExpr(call->args[2]), t->dtype,
                              AttrsAs<DequantizeAttrs>(call->attrs).axis);
    }
    if (!HasRule(call)) return integers::Failed();
    std::vector<IntegerValue> args;
    bool any = false;
    for (const Expr& a : call->args) {
      args.push_back(values_[a.get()]);
      any |= args.back().kind == IntegerValue::kAffine;
    }
    if (!any) return integers::Failed();
    const Op op = Downcast<Op>(call->op);
    const Any own = op.GetAttrValue(kAttr);
    if (own.is_null()) return RuleOf(op.get())({call, args, out});
    return Asked(own.As<PackedFunc>(), call, args, out);
  }

  /// A rule of the program: f(call on integers, affine types by expression) -> [expression, affine type].
  IntegerValue Asked(const PackedFunc& f, const CallNode* call, const std::vector<IntegerValue>& args,
                     const TensorAffineTypeNode* out) {
    Map<Expr, AffineType> types;
    Array<Expr> exprs;
    for (const IntegerValue& v : args) {
      exprs.push_back(v.expr);
      if (v.kind == IntegerValue::kAffine) types.Set(v.expr, v.type);
    }
    auto n = runtime::make_object<CallNode>(*call);
    n->args = exprs;
    const Expr asked{Call(n)};
    types.Set(asked, GetRef<TensorAffineType>(out));
    try {
      const auto made = f(asked, types).As<Array<ObjectRef>>();
      if (made.size() != 2 || !made[0].as<ExprNode>() || !made[1].as<AffineTypeNode>())
        throw CompileError("the rule of `" + Downcast<Op>(call->op)->name.str() +
                           "` for FakeQuantizationToInteger gives no [expression, affine type]");
      return integers::Affine(Downcast<Expr>(made[0]), Downcast<AffineType>(made[1]));
    } catch (const Error&) {
      if (hard_fail_) throw;
      return integers::Failed();
    }
  }

  static constexpr const char* kAttr = "FTVMFakeQuantizationToInteger";
  bool hard_fail_;
  std::unordered_map<const Object*, IntegerValue> values_;
  std::vector<Expr> kept_;  ///< keys of values_ stay alive
};

}  // namespace

Pass FakeQuantizationToInteger(const FakeQuantizationToIntegerOptions& options) {
  if (options.use_qat)
    throw UnsupportedError(
        "FakeQuantizationToInteger: use_qat converts operators that no qnn.quantize follows, which is not there; put "
        "one "
        "behind them");
  return MakePass<FakeQuantizationToInteger>(
      options,
      {
          .doc = "What stands between qnn.dequantize and qnn.quantize is computed in integers, by a rule for each "
                 "operator; "
                 "regions with an operator that has none stay. Results change as far as rounding between steps does.",
          .opt_level = 0,
          .required = {"InferType"},
          .changes_results = true,
          .run =
              [hard_fail = options.hard_fail](Function f, IRModule, PassContext) {
                return AnyCallOf(f, op::qnn::quantize) ? Integers(hard_fail).Mutate(f) : f;  // where regions end
              },
      });
}

namespace {
const RegisterNodes<AffineTypeNode, TensorAffineTypeNode, TupleAffineTypeNode> registered_types;
const RegisterPass<FakeQuantizationToInteger> registered_fake_quantization_to_integer;
}  // namespace

}  // namespace baton::relay::transform
