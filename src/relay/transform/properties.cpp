// SPDX-License-Identifier: Apache-2.0
// Properties of modules that passes over Relay need, establish, keep or destroy.
#include <baton/ir/pipeline.h>
#include <baton/relay/analysis.h>
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <baton/support/pointer_map.h>
#include <baton/tir/stmt.h>
#include <baton/tir/verify.h>
#include <relay/expr/expr_index.h>

namespace baton::relay {
namespace {

using baton::transform::RegisterProperty;

/// Returns the first answer other than "" of a function over nodes.
template <class F>
std::string FirstProblem(const IRModule& mod, const F& problem) {
  for (const auto& [var, f] : mod->functions) {
    Expr func(f);
    if (!func->IsInstance<FunctionNode>()) continue;
    std::string wrong;
    PostOrder(func, [&](const Expr& e) {
      if (wrong.empty()) wrong = problem(e);
    });
    if (!wrong.empty()) return "@" + var->name_hint.str() + ": " + wrong;
  }
  return "";
}

std::string Where(const Expr& e) {
  std::string text = e.get()->GetTypeKey();
  if (const auto* call = e.as<CallNode>()) {
    if (const auto* op = call->op.as<OpNode>()) text = "call of " + op->name.str();
  }
  if (e->span.defined() && e->span->source_name.defined()) {
    text += " at " + e->span->source_name->name.str();
    if (e->span->line > 0) text += ":" + std::to_string(e->span->line);
  }
  return text;
}

std::string CheckWellFormed(const IRModule& mod) {
  std::string problems;
  WellFormed(mod, &problems);
  for (const auto& [var, func] : mod->functions) {
    if (!func.as<tir::PrimFuncNode>()) continue;
    std::string wrong = tir::CheckWellFormed(Downcast<tir::PrimFunc>(func));
    if (!wrong.empty()) problems += (problems.empty() ? "@" : "\n@") + var->name_hint.str() + ": " + wrong;
  }
  return problems;
}

std::string CheckTyped(const IRModule& mod) {
  return FirstProblem(mod, [](const Expr& e) -> std::string {
    if (e->checked_type_.defined() || e.as<OpNode>() || e.as<ConstructorNode>()) return "";
    return Where(e) + " has no type";
  });
}

std::string CheckAnf(const IRModule& mod) {
  // Bodies of kernels are what code is made of, in no form of lets.
  PointerSet kernels;
  for (const auto& [var, f] : mod->functions) {
    if (!Expr(f)->IsInstance<FunctionNode>()) continue;
    PostOrder(Expr(f), [&](const Expr& e) {
      const auto* fn = e.as<FunctionNode>();
      if (!fn || !fn->HasNonzeroAttr(attr::kPrimitive)) return;
      for (const ExprNode* n : PostOrderNodes(fn->body)) kernels.Add(n);
    });
  }
  return FirstProblem(mod, [&](const Expr& e) -> std::string {
    std::string wrong;
    if (e.as<LetNode>() || e.as<FunctionNode>() || e.as<MatchNode>() || kernels.Has(e.get())) return "";
    if (const auto* i = e.as<IfNode>()) {
      return IsAtom(i->cond.get()) ? "" : Where(e) + " has a condition that is no variable and no constant";
    }
    ForEachChild(e.get(), [&](const ExprNode* p) {
      if (wrong.empty() && !IsAtom(p) && !p->IsInstance<FunctionNode>()) {
        wrong = Where(e) + " has a part that is no variable and no constant";
      }
    });
    return wrong;
  });
}

const struct RegisterProperties {
  RegisterProperties() {
    RegisterProperty("WellFormed",
                     {"Variables are bound once and used in their scope, no part is missing, names exist.", nullptr,
                      CheckWellFormed});
    RegisterProperty("Typed", {"Every expression has its type.", "InferType", CheckTyped});
    RegisterProperty(
        "ANF", {"Arguments are variables or constants; everything else is bound by `let`.", "ToANormalForm", CheckAnf});
  }
} registered_properties;

}  // namespace
}  // namespace baton::relay
