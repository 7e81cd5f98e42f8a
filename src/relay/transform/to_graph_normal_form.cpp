// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <relay/expr/children.h>
#include <relay/transform/let_inserter.h>

namespace baton::relay::transform {
namespace {

/// Values take the place of their variables. A binding stays if its value has effects, whose order it keeps, or is a
/// function that calls itself.
class LetRemover : public MixedModeMutator {
 public:
  explicit LetRemover(const Expr& root) : impure_(ImpureNodes(root)) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  bool Stays(const LetNode* op) {
    if (impure_.Has(op->value.get())) return true;
    const auto* f = op->value.as<FunctionNode>();
    if (!f) return false;
    bool recursive = false;
    for (const Var& v : FreeVars(op->value)) recursive = recursive || v.same_as(op->var);
    return recursive;
  }
  void PreVisitLet_(const LetNode* op) final {
    if (Stays(op)) {
      kept_.Add(op);
      MixedModeMutator::PreVisitLet_(op);
    } else {
      Put(op->var, VisitExpr(op->value));
    }
  }
  Expr PostVisitLet_(const LetNode* op, const Expr& value, const Expr& body) final {
    return kept_.Has(op) ? MixedModeMutator::PostVisitLet_(op, value, body) : body;
  }
  PointerSet impure_, kept_;
};

Expr WithoutLets(const Expr& e) {
  const auto is_let = [](const ExprNode* n) { return n->IsInstance<LetNode>(); };
  return AnyNode(e, is_let) ? LetRemover(e).Mutate(e) : e;
}

}  // namespace

Pass ToGraphNormalForm() {
  return MakePass<ToGraphNormalForm>({
      .doc = "Puts let-bound values where they are used, as shared nodes; bindings of effects and of recursive "
             "functions stay.",
      .opt_level = 1,
      .destroys = {"ANF", "Typed"},
      .run = [](Function f, IRModule, PassContext) { return Downcast<Function>(WithoutLets(f)); },
  });
}

namespace {
const RegisterPass<ToGraphNormalForm> registered_to_graph_normal_form;
BATON_REGISTER_GLOBAL("relay._transform.ToGraphNormalFormExpr").set_body_typed([](Expr e) { return WithoutLets(e); });
}  // namespace

}  // namespace baton::relay::transform
