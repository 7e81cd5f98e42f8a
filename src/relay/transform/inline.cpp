// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/keep_functions.h>
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <relay/expr/call_graph.h>
#include <relay/transform/let_inserter.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace baton::relay::transform {
namespace {

class Inliner : public MixedModeMutator {
 public:
  explicit Inliner(const std::unordered_map<std::string_view, Function>& bodies) : bodies_(bodies) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr Rewrite_(const CallNode*, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const auto* g = call ? call->op.as<GlobalVarNode>() : nullptr;
    if (!g) return post;
    auto it = bodies_.find(g->name_hint.view());
    if (it == bodies_.end() || it->second->params.size() != call->args.size() || !it->second->type_params.empty())
      return post;
    // Arguments are evaluated before the body, whatever they do.
    Function own = Downcast<Function>(RenewVars(it->second));
    // A function for another compiler stays one, called in place.
    if (!own->GetAttr<String>(attr::kCompiler, String()).empty()) {
      auto n = make_object<CallNode>(*call);
      n->op = own;
      n->checked_type_ = ObjectRef();
      return Call(n);
    }
    Map<Var, Expr> binds;
    for (size_t i = 0; i < own->params.size(); ++i) {
      const Expr& arg = call->args[i];
      if (arg.as<VarNode>() || arg.as<ConstantNode>() || arg.as<GlobalVarNode>()) binds.Set(own->params[i], arg);
    }
    Expr out = binds.empty() ? own->body : Bind(own->body, binds);
    for (size_t i = own->params.size(); i-- > 0;) {
      if (!binds.count(own->params[i])) out = Let(own->params[i], call->args[i], out);
    }
    return out;
  }
  const std::unordered_map<std::string_view, Function>& bodies_;
};

/// Without the functions that had calls, all of which became bodies.
IRModule WithoutUncalled(IRModule mod, const std::unordered_map<std::string_view, Function>& bodies,
                         const std::unordered_set<std::string_view>& called) {
  std::unordered_set<std::string_view> used;
  for (const auto& [var, func] : mod->functions) {
    if (!func.as<FunctionNode>() || (bodies.count(var->name_hint.view()) && called.count(var->name_hint.view())))
      continue;
    for (const ExprNode* n : PostOrderNodes(Downcast<Function>(func))) {
      if (n->IsInstance<GlobalVarNode>()) used.insert(static_cast<const GlobalVarNode*>(n)->name_hint.view());
    }
  }
  return KeepFunctions(mod, [&](const GlobalVar& var, const BaseFunc&) {
    const std::string_view name = var->name_hint.view();
    return name == "main" || !bodies.count(name) || !called.count(name) || used.count(name);
  });
}

}  // namespace

Pass Inline() {
  return MakePass<Inline>({
      .doc = "Calls of global functions with the attribute Inline become their bodies; recursive ones stay "
             "calls, and functions for another compiler are called where they stand. A function without a call left is "
             "dropped.",
      .opt_level = 1,
      .run =
          [](IRModule mod, PassContext) {
            std::vector<std::pair<GlobalVar, Function>> funcs;
            std::unordered_map<std::string_view, size_t> index_of;
            for (const auto& [var, func] : mod->functions) {
              if (!func.as<FunctionNode>()) continue;
              index_of[var->name_hint.view()] = funcs.size();
              funcs.push_back({var, Downcast<Function>(func)});
            }
            const auto inlined = [](const auto& f) { return f.second->HasNonzeroAttr(attr::kInline); };
            if (std::none_of(funcs.begin(), funcs.end(), inlined)) return mod;
            std::vector<std::vector<size_t>> calls(funcs.size());
            for (size_t i = 0; i < funcs.size(); ++i) {
              for (const ExprNode* n : PostOrderNodes(funcs[i].second)) {
                if (!n->IsInstance<GlobalVarNode>()) continue;
                auto it = index_of.find(static_cast<const GlobalVarNode*>(n)->name_hint.view());
                if (it != index_of.end()) calls[i].push_back(it->second);
              }
            }
            IRModule out = mod;
            std::unordered_map<std::string_view, Function> bodies;
            std::unordered_set<std::string_view> called;
            for (const auto& row : calls) {
              for (size_t c : row) called.insert(funcs[c].first->name_hint.view());
            }
            for (const auto& group : CallGroups(calls)) {
              for (size_t i : group) {
                Function f = Inliner(bodies).Mutate(funcs[i].second);
                if (!f.same_as(funcs[i].second)) out.CopyOnWrite()->Update(funcs[i].first, f);
                bool recursive = group.size() > 1;
                for (size_t c : calls[i]) recursive = recursive || c == i;
                if (f->HasNonzeroAttr(attr::kInline) && !recursive) bodies[funcs[i].first->name_hint.view()] = f;
              }
            }
            return WithoutUncalled(out, bodies, called);
          },
  });
}

namespace {
const RegisterPass<Inline> registered_inline;
}  // namespace

}  // namespace baton::relay::transform
