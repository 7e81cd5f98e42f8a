// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/pipeline.h>
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>
#include <fmt/format.h>
#include <relay/types/inferencer.h>

namespace baton::relay::transform {

namespace {

/// Parameters may leave their type to their uses, and a rewrite may put something between the two (a cast, another
/// layout) that says less. If the type of a parameter was known and can no longer be inferred, it is annotated.
/// Otherwise inference would fail on the printed result.
BaseFunc StateHiddenParams(const BaseFunc& result, const IRModule& mod) {
  if (!result->IsInstance<FunctionNode>()) return result;
  const Function made = Downcast<Function>(result);
  bool any = false;
  for (const Var& p : made->params) any = any || (!p->type_annotation.defined() && p->checked_type_.defined());
  if (!any) return made;
  const int64_t before = InferenceWork::OfThread().expressions;
  DiagnosticList errors;
  TypePool pool;
  inference::Inferencer infer(mod, inference::Mode::kAll, &errors, &pool);
  try {
    infer.Walk(made);
    infer.Solve();
  } catch (const runtime::Error&) {
    // Its faults are said where it is checked.
    InferenceWork::OfThread().expressions = before;
    return made;
  }
  InferenceWork::OfThread().expressions = before;
  Map<Var, Expr> stated;
  Array<Var> params;
  for (const Var& p : made->params) {
    params.push_back(p);
    if (p->type_annotation.defined() || !p->checked_type_.defined() || !infer.IsOpen(p.get())) continue;
    auto n = make_object<VarNode>(*p.get());
    n->type_annotation = runtime::RefCast<Type>(p->checked_type_);
    params.Set(params.size() - 1, Var(n));
    stated.Set(p, params[params.size() - 1]);
  }
  if (stated.empty()) return made;
  auto n = make_object<FunctionNode>(*made.get());
  n->params = params;
  n->body = Bind(made->body, stated);
  n->checked_type_ = ObjectRef();
  return Function(n);
}

[[maybe_unused]] const bool statement_set = (baton::transform::SetParamStatement(StateHiddenParams), true);

}  // namespace

Pass CreateFunctionPass(const TypedPackedFunc<Function(Function, IRModule, PassContext)>& pass_func, int opt_level,
                        String name, Array<String> required) {
  auto n = make_object<FunctionPassNode>();
  baton::transform::InitFunctionPass(n.get(), pass_func.packed(), opt_level, name, required,
                                     FunctionNode::RuntimeTypeIndex());
  return Pass(ObjectPtr<Object>(n));
}

namespace {
const RegisterNodes<FunctionPassNode> registered_transform;
}

/// For measuring what the manager costs.
BATON_REGISTER_GLOBAL("relay.testing.EmptyFunctionPass").set_body_typed([] {
  return CreateFunctionPass(
      TypedPackedFunc<Function(Function, IRModule, PassContext)>([](Function f, IRModule, PassContext) { return f; }),
      0, "Empty", {});
});
BATON_REGISTER_GLOBAL("relay._transform.MakeFunctionPass")
    .set_body_typed([](TypedPackedFunc<Function(Function, IRModule, PassContext)> f, PassInfo info) {
      Pass pass = CreateFunctionPass(f, info->opt_level, info->name, info->required);
      auto* n = const_cast<baton::transform::FunctionPassNode*>(pass.as<baton::transform::FunctionPassNode>());
      n->pass_info = info;
      n->types_after = true;
      return pass;
    });

}  // namespace baton::relay::transform
