// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/evaluator.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <relay/op/known_values.h>

namespace baton::relay::transform {
namespace {

/// Operators whose shape-like operands became constants turn into their static forms.
class Staticizer : public MixedModeMutator {
 public:
  explicit Staticizer(bool symbolic) : symbolic_(symbolic) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const OpDef* def = call ? DefOf(call->op) : nullptr;
    if (!def || !def->static_form) return post;
    Array<NDArray> values;
    bool any = false;
    for (const Expr& a : call->args) {
      const auto* c = a.as<ConstantNode>();
      values.push_back(c ? c->data : NDArray());
      any |= c != nullptr;
    }
    const SymbolicFormFn symbolic = symbolic_ ? def->traits.symbolic_form : nullptr;
    if (!any && !symbolic) return post;
    // The static form reads types off the call; those of the original hold for the rewritten one. They are taken back
    // after: a typed node must have typed parts, and these may be new.
    std::vector<Expr> lent;
    auto lend = [&](const Expr& e, const Expr& original) {
      if (e->checked_type_.defined() || !original->checked_type_.defined()) return;
      e->checked_type_ = Downcast<Type>(original->checked_type_);
      lent.push_back(e);
    };
    lend(post, GetRef<Expr>(pre));
    for (size_t i = 0; i < call->args.size(); ++i)
      lend(call->args[static_cast<int64_t>(i)], pre->args[static_cast<int64_t>(i)]);
    Expr out = any ? def->static_form(GetRef<Call>(call), values) : Expr();
    if (!out.defined() && symbolic) out = symbolic(GetRef<Call>(call), Extents(pre));
    for (const Expr& e : lent) e->checked_type_ = ObjectRef();
    if (!out.defined()) return post;
    if (!out->span.defined()) out->span = post->span;
    return out;
  }
  /// A result whose extents were unknown may have known ones now; it is inferred anew.
  Expr VisitExpr_(const FunctionNode* op) override {
    Expr out = MixedModeMutator::VisitExpr_(op);
    if (out.get() == op || !HasUnknownExtent(op->ret_type)) return out;
    const auto* f = out.as<FunctionNode>();
    Function g(f->params, f->body, Type(), f->type_params, f->attrs);
    g->span = f->span;
    return g;
  }

 private:
  /// Values of the arguments that are extents; null for the others.
  Array<Array<PrimExpr>> Extents(const CallNode* call) {
    Array<Array<PrimExpr>> out;
    for (const Expr& a : call->args) {
      const auto known = values_.Of(a);
      out.push_back(known ? Array<PrimExpr>(*known) : Array<PrimExpr>(ObjectPtr<Object>()));
    }
    return out;
  }

  const bool symbolic_;
  KnownValues values_;

  static bool HasUnknownExtent(const Type& type) {
    std::vector<Type> work{type};
    while (!work.empty()) {
      const Type t = work.back();
      work.pop_back();
      if (const auto* tensor = t.as<TensorTypeNode>()) {
        std::vector<int64_t> shape;
        if (!StaticShape(tensor->shape, &shape)) return true;
      } else if (const auto* tuple = t.as<TupleTypeNode>()) {
        for (const Type& f : tuple->fields) work.push_back(f);
      }
    }
    return false;
  }
};

}  // namespace

Pass DynamicToStatic(const DynamicToStaticOptions& options) {
  return MakePass<DynamicToStatic>(
      options,
      {
          .doc =
              "Replaces dyn.* operators whose shape-like operands are constants by their static forms, as far as that "
              "spreads.",
          .opt_level = 0,
          .reassociates = true,
          .run =
              [symbolic = options.symbolic](IRModule mod, PassContext) {
                // Folding makes operands constant, static forms give shapes to fold: each round reaches one operator
                // further along a chain of them, and stops when nothing changes.
                const FoldingBudget budget(mod);
                Pass infer = InferType(), fold = FoldConstant();
                mod = infer(mod);
                for (int round = 0; round < 64; ++round) {
                  // Static forms read the types of operands, which folding drops above each constant that it makes.
                  mod = infer(fold(mod));
                  IRModule next = mod.Copy();
                  bool changed = false;
                  for (const auto& [var, func] : mod->functions) {
                    if (!func.as<FunctionNode>()) continue;
                    Function f = Downcast<Function>(func), g = Staticizer(symbolic).Mutate(f);
                    if (g.same_as(f)) continue;
                    next.CopyOnWrite()->Update(var, g);
                    changed = true;
                  }
                  if (!changed) break;
                  mod = infer(next);
                }
                return mod;
              },
      });
}

namespace {
const RegisterPass<DynamicToStatic> registered_dynamic_to_static;
}

}  // namespace baton::relay::transform
