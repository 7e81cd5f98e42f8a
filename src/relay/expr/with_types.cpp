// SPDX-License-Identifier: Apache-2.0
// For tests: annotates a program with all inferred types, so that programs with different annotations can be compared.
#include <baton/relay/analysis.h>
#include <baton/relay/functor.h>
#include <baton/runtime/registry.h>

namespace baton::relay {
namespace {

class Annotate : public MixedModeMutator {
 public:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const VarNode* v) override {
    auto n = make_object<VarNode>(*v);
    n->type_annotation = runtime::RefCast<Type>(v->checked_type_);
    return Var(n);
  }
  Expr VisitExpr_(const FunctionNode* f) override {
    auto made = Downcast<Function>(ExprMutator::VisitExpr_(f));
    auto n = make_object<FunctionNode>(*made.get());
    if (const auto* t = f->checked_type_.as<FuncTypeNode>()) n->ret_type = t->ret_type;
    return Function(n);
  }
};

BATON_REGISTER_GLOBAL("relay.testing.with_types").set_body_typed([](IRModule mod) {
  mod = InferModuleTypes(mod);
  IRModule out = mod.Copy();
  for (const auto& [var, func] : mod->functions) {
    if (func.as<FunctionNode>()) out.CopyOnWrite()->Update(var, Downcast<Function>(Annotate().Mutate(func)));
  }
  return out;
});

}  // namespace
}  // namespace baton::relay
