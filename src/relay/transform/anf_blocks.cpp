// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/diagnostic.h>
#include <baton/relay/transform.h>
#include <baton/runtime/interrupt.h>
#include <relay/expr/children.h>
#include <relay/transform/anf_blocks.h>
#include <relay/transform/let_inserter.h>

#include <utility>

namespace baton::relay {

bool IsPrimitiveFunction(const Expr& e) {
  const auto* f = e.as<FunctionNode>();
  return f && f->HasNonzeroAttr(attr::kPrimitive);
}

const FunctionNode* OpenFunction(const IRModule& mod, std::string_view name) {
  if (!mod->ContainGlobalVar(name)) return nullptr;
  const BaseFunc func = mod->Lookup(name);
  const auto* f = func.as<FunctionNode>();
  const bool elsewhere = f && f->attrs.defined() && f->attrs->dict.count(attr::kCompiler);
  return f && !elsewhere && !f->HasNonzeroAttr(attr::kPrimitive) ? f : nullptr;
}

std::vector<NormalBlock> NormalBlocks(const Expr& body, bool functions) {
  std::vector<Expr> heads{body};
  std::vector<NormalBlock> blocks;
  for (size_t b = 0; b < heads.size(); ++b) {
    NormalBlock block;
    Expr e = heads[b];
    while (const auto* let = e.as<LetNode>()) {
      runtime::PollInterrupt();
      NormalBlock::Step step{let->var, let->value, static_cast<int32_t>(heads.size())};
      if (const auto* i = let->value.as<IfNode>()) {
        heads.push_back(i->true_branch);
        heads.push_back(i->false_branch);
      } else if (const auto* m = let->value.as<MatchNode>()) {
        for (const Clause& c : m->clauses) heads.push_back(c->rhs);
      } else if (const auto* f = let->value.as<FunctionNode>(); f && functions && !IsPrimitiveFunction(let->value)) {
        heads.push_back(f->body);
      } else {
        step.first = -1;
      }
      block.steps.push_back(std::move(step));
      Expr next = let->body;
      e = std::move(next);
    }
    block.tail = e;
    blocks.push_back(std::move(block));
  }
  return blocks;
}

Function TypedNormalForm(const Function& func, const IRModule& mod) {
  transform::InferTypeOf(func, mod);
  Expr normal = InsertLets(func, LetForm::kAll);
  transform::InferTypeOf(normal, mod);
  return Downcast<Function>(normal);
}

FuncType TypeOfName(const Expr& name, const IRModule& mod) {
  if (const auto* g = name.as<GlobalVarNode>())
    return Downcast<FuncType>(transform::InferTypeOf(mod->Lookup(g->name_hint.view()), mod));
  const auto* k = name.as<ConstructorNode>();
  const TypeData data = mod->LookupTypeDef(k->belong_to);
  Array<Type> params(data->type_vars.begin(), data->type_vars.end());
  return FuncType(data->type_vars, k->inputs, TypeCall(data->header, params), Array<TypeConstraint>());
}

IRModule RewriteMain(const IRModule& mod, const std::function<Function(const Function&, IRModule*)>& rewrite) {
  if (!mod->ContainGlobalVar("main")) return mod;
  const auto* f = mod->Lookup("main").as<FunctionNode>();
  if (!f) return mod;
  IRModule out = mod.Copy();
  Function made = rewrite(GetRef<Function>(f), &out);
  if (made.get() == f) return mod;
  out.CopyOnWrite()->Update(mod->GetGlobalVar("main"), made);
  return out;
}

std::string FreshGlobalName(const IRModule& mod, const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; mod->ContainGlobalVar(name); ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

void FailAt(const BaseExprNode* at, std::string message, std::string help) {
  DiagnosticList errors;
  errors.Error(at ? at->span : Span(), std::move(message), "", std::move(help));
  errors.ThrowIfAny(baton::transform::PassContext::Current()->diag_ctx);
  throw InternalError("an error did not end the pass");
}

}  // namespace baton::relay
