// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/analysis.h>
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <baton/support/pointer_map.h>
#include <driver/vm/compile.h>

namespace baton::driver {

using namespace relay;

bool IsPrimitive(const Expr& e) {
  const auto* f = e.as<FunctionNode>();
  return f && f->HasNonzeroAttr(attr::kPrimitive);
}

namespace {

/// A let may name a fused group of operators, and it may be an argument: calls get the group itself, other uses a
/// function that calls it.
class PrimitivePlacer : public MixedModeMutator {
 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    if (!f->HasNonzeroAttr(attr::kPrimitive)) return MixedModeMutator::VisitExpr_(f);
    Array<Var> params;
    Array<Expr> args;
    for (const Var& p : f->params) {
      params.push_back(Var(p->name_hint(), p->type_annotation));
      args.push_back(params.back());
    }
    return Function(params, Call(GetRef<Expr>(f), args, Attrs(), Array<Type>()), f->ret_type);
  }
  void PreVisitLet_(const LetNode* op) final {
    if (IsPrimitive(op->value)) named_[op->var.get()] = op->value;
    MixedModeMutator::PreVisitLet_(op);
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const Expr* named = named_.Find(pre->op.get());
    if (!named && !IsPrimitive(pre->op)) return post;
    auto n = make_object<CallNode>(*post.as<CallNode>());
    n->op = named ? *named : pre->op;
    return Call(n);
  }
  PointerMap<Expr> named_;
};

/// Whether a fused group stands elsewhere than where it is called.
bool HasStray(const Expr& e) {
  bool stray = false;
  const std::vector<const ExprNode*> order = PostOrderNodes(e);
  for (const ExprNode* n : order) {
    if (n->IsInstance<LetNode>()) stray = stray || IsPrimitive(static_cast<const LetNode*>(n)->value);
    if (n->IsInstance<CallNode>()) {
      for (const Expr& a : static_cast<const CallNode*>(n)->args) stray = stray || IsPrimitive(a);
    } else if (n->IsInstance<TupleNode>()) {
      for (const Expr& a : static_cast<const TupleNode*>(n)->fields) stray = stray || IsPrimitive(a);
    } else if (n->IsInstance<FunctionNode>()) {
      stray = stray || IsPrimitive(static_cast<const FunctionNode*>(n)->body);
    } else if (n->IsInstance<RefCreateNode>()) {
      stray = stray || IsPrimitive(static_cast<const RefCreateNode*>(n)->value);
    } else if (n->IsInstance<RefWriteNode>()) {
      stray = stray || IsPrimitive(static_cast<const RefWriteNode*>(n)->value);
    } else if (n->IsInstance<IfNode>()) {
      const auto* i = static_cast<const IfNode*>(n);
      stray = stray || IsPrimitive(i->true_branch) || IsPrimitive(i->false_branch);
    }
  }
  return stray;
}

}  // namespace

IRModule PlacePrimitives(const IRModule& mod) {
  IRModule out = mod;
  for (const auto& [var, func] : mod->functions) {
    const auto* f = func.as<FunctionNode>();
    if (!f || f->HasNonzeroAttr(attr::kPrimitive) || !HasStray(func)) continue;
    out.CopyOnWrite()->Update(var, Downcast<Function>(PrimitivePlacer().Mutate(Downcast<Function>(func))));
  }
  return out.same_as(mod) ? mod : InferModuleTypes(out);
}

}  // namespace baton::driver
