// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <relay/expr/with_body.h>
#include <relay/transform/let_inserter.h>

#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace baton::relay::transform {
namespace {

bool IsForCompiler(const FunctionNode* f) { return f->attrs.defined() && f->attrs->dict.count(attr::kCompiler); }

using Bodies = std::unordered_map<std::string_view, Function>;

/// The program with tuples of the arguments in place of calls that are inlined and give nothing but a value: what may
/// do more is then the same as after inlining.
class WithoutCalls : public MixedModeMutator {
 public:
  explicit WithoutCalls(const Bodies& bodies) : bodies_(bodies) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr Rewrite_(const CallNode*, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const auto* g = call ? call->op.as<GlobalVarNode>() : nullptr;
    auto it = g ? bodies_.find(g->name_hint.view()) : bodies_.end();
    if (it == bodies_.end()) return post;
    auto [known, fresh] = impure_.try_emplace(it->first);
    if (fresh) known->second = ImpureNodes(it->second->body).Has(it->second->body.get());
    return known->second ? post : Expr(Tuple(call->args));
  }
  const Bodies& bodies_;
  std::unordered_map<std::string_view, bool> impure_;
};

class CompilerFunctionInliner : public MixedModeMutator {
 public:
  explicit CompilerFunctionInliner(const Bodies& bodies) : bodies_(bodies), plain_(bodies) {}

  Function Inline(const Function& f) {
    impure_ = ImpureNodes(plain_.Mutate(f));
    return WithBody(f, VisitExpr(f->body));
  }

 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const FunctionNode* f = call ? call->op.as<FunctionNode>() : nullptr;
    if (f && !(f->attrs.defined() && f->attrs->dict.count("Composite"))) f = nullptr;
    if (const auto* g = call ? call->op.as<GlobalVarNode>() : nullptr) {
      auto it = bodies_.find(g->name_hint.view());
      if (it != bodies_.end()) f = it->second.get();
    }
    if (!f || f->params.size() != call->args.size() || !f->type_params.empty()) return post;
    const Function own = Downcast<Function>(RenewVars(GetRef<Function>(f)));
    Map<Var, Expr> binds;
    for (size_t i = 0; i < own->params.size(); ++i) {
      if (!impure_.Has(plain_.Mutate(pre->args[i]).get())) binds.Set(own->params[i], call->args[i]);
    }
    Expr out = binds.empty() ? own->body : Bind(own->body, binds);
    // Expressions with effects are evaluated first, and once.
    for (size_t i = own->params.size(); i-- > 0;) {
      if (!binds.count(own->params[i])) out = Let(own->params[i], call->args[i], out);
    }
    return out;
  }
  const Bodies& bodies_;
  WithoutCalls plain_;
  PointerSet impure_;
};

}  // namespace

Pass InlineCompilerFunctions(const InlineCompilerFunctionsOptions& options) {
  return MakePass<InlineCompilerFunctions>(
      options,
      {
          .doc =
              "Calls of functions that PartitionGraph made for other compilers become their bodies, and composites in "
              "all functions too; functions that nothing calls any more are dropped. `names`: just these functions.",
          .opt_level = 0,
          .run =
              [names = options.names](IRModule mod, PassContext) {
                const Bodies none;
                std::unordered_set<std::string_view> only;
                for (const String& n : names) only.insert(n.view());
                Bodies bodies;
                for (const auto& [var, func] : mod->functions) {
                  const auto* f = func.as<FunctionNode>();
                  if (!f || !IsForCompiler(f) || (!only.empty() && !only.count(var->name_hint.view()))) continue;
                  bodies[var->name_hint.view()] = CompilerFunctionInliner(none).Inline(GetRef<Function>(f));
                }
                if (bodies.empty()) return mod;
                std::unordered_map<const Object*, Function> others;
                std::unordered_set<std::string_view> used{"main"};
                for (const auto& [var, func] : mod->functions) {
                  const auto* f = func.as<FunctionNode>();
                  if (!f || bodies.count(var->name_hint.view())) continue;
                  const Function made = CompilerFunctionInliner(bodies).Inline(GetRef<Function>(f));
                  others[var.get()] = made;
                  for (const ExprNode* n : PostOrderNodes(made)) {
                    if (n->IsInstance<GlobalVarNode>())
                      used.insert(static_cast<const GlobalVarNode*>(n)->name_hint.view());
                  }
                }
                Map<GlobalVar, BaseFunc> functions;
                for (const auto& [var, func] : mod->functions) {
                  if (auto it = others.find(var.get()); it != others.end()) {
                    functions.Set(var, it->second);
                  } else if (!bodies.count(var->name_hint.view()) || used.count(var->name_hint.view())) {
                    functions.Set(var, func);
                  }
                }
                IRModule out = mod.Copy();
                out.CopyOnWrite()->functions = functions;
                return out;
              },
      });
}

namespace {
const RegisterPass<InlineCompilerFunctions> registered_inline_compiler_functions;
}  // namespace

}  // namespace baton::relay::transform
