// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/keep_functions.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/runtime/interrupt.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/children.h>
#include <relay/expr/impure.h>

#include <unordered_set>
#include <vector>

namespace baton::relay::transform {
namespace {

/// The live bindings of a function: those whose value has an effect or is used by a live binding.
struct Needs {
  /// Nodes whose evaluation may do something besides giving a value: state, references, calls of unknown code.
  PointerSet effects;
  PointerSet lets;
  PointerMap<int64_t> uses;  ///< of variables, by what is needed

  Needs(const Expr& root, bool ignore_impurity) {
    if (!ignore_impurity) FindEffects(root);
    // Dead values are not visited, so values used only by dead ones are dead too, for chains of any length.
    PointerMap<const LetNode*> bound;
    PointerSet seen;
    std::vector<const ExprNode*> work{root.get()};
    auto need = [&](const LetNode* let) {
      if (lets.Add(let)) work.push_back(let->value.get());
    };
    while (!work.empty()) {
      baton::runtime::PollInterrupt();
      const ExprNode* n = work.back();
      work.pop_back();
      if (n->IsInstance<VarNode>()) {
        ++uses[n];
        if (const LetNode* const* let = bound.Find(n)) need(*let);
        continue;
      }
      if (!seen.Add(n)) continue;
      if (n->IsInstance<LetNode>()) {
        const auto* let = static_cast<const LetNode*>(n);
        bound[let->var.get()] = let;
        if (uses.Find(let->var.get()) || effects.Has(let->value.get())) need(let);
        work.push_back(let->body.get());
      } else if (n->IsInstance<FunctionNode>()) {
        work.push_back(static_cast<const FunctionNode*>(n)->body.get());
      } else if (n->IsInstance<MatchNode>()) {
        const auto* match = static_cast<const MatchNode*>(n);
        work.push_back(match->data.get());
        for (const Clause& c : match->clauses) work.push_back(c->rhs.get());
      } else {
        ForEachChild(n, [&](const ExprNode* child) { work.push_back(child); });
      }
    }
  }

 private:
  static bool OwnEffect(const ExprNode* n) {
    if (!n->IsInstance<CallNode>()) return n->IsInstance<RefWriteNode>();
    const Expr& op = static_cast<const CallNode*>(n)->op;
    if (const OpDef* def = DefOf(op)) return def->stateful;
    if (op.as<OpNode>() || op.as<ConstructorNode>()) return false;
    const auto* f = op.as<FunctionNode>();
    return !(f && f->HasNonzeroAttr(attr::kPrimitive));  // a callee may loop for ever or write a reference
  }
  void FindEffects(const Expr& root) {
    for (const ExprNode* n : PostOrderNodes(root)) {
      bool found = OwnEffect(n);
      // A closure that is not called has no effect.
      if (!n->IsInstance<FunctionNode>()) ForEachChild(n, [&](const ExprNode* p) { found = found || effects.Has(p); });
      if (found) effects.Add(n);
    }
  }
};

/// Removes unused bindings.
class Eliminator : public MixedModeMutator {
 public:
  Eliminator(const Expr& root, bool inline_once, bool ignore_impurity)
      : needs_(root, ignore_impurity), inline_once_(inline_once) {
    if (inline_once) impure_ = ImpureNodes(root);
  }

 private:
  using MixedModeMutator::VisitExpr_;
  bool Inlined(const LetNode* op) {
    return inline_once_ && needs_.uses[op->var.get()] == 1 && !op->value.as<FunctionNode>() &&
           !impure_.Has(op->value.get());  // what a reference holds depends on when it is read
  }
  void PreVisitLet_(const LetNode* op) final {
    if (!needs_.lets.Has(op)) return;
    if (Inlined(op)) {
      Put(op->var, VisitExpr(op->value));
    } else {
      MixedModeMutator::PreVisitLet_(op);
    }
  }
  Expr PostVisitLet_(const LetNode* op, const Expr& value, const Expr& body) final {
    if (!needs_.lets.Has(op) || Inlined(op)) return body;
    return MixedModeMutator::PostVisitLet_(op, value, body);
  }
  Needs needs_;
  PointerSet impure_;
  bool inline_once_;
};

}  // namespace

namespace {

/// Functions that nothing reaches from those of these names are removed.
IRModule RemoveUnreached(const IRModule& mod, const Array<String>& entries) {
  std::unordered_set<std::string> reached;
  std::vector<GlobalVar> work;
  auto reach = [&](const GlobalVar& v) {
    if (mod->ContainGlobalVar(v->name_hint.view()) && reached.insert(v->name_hint.str()).second) work.push_back(v);
  };
  for (const String& n : entries) {
    reach(mod->GetGlobalVar(n.view()));  // an error where there is none
  }
  while (!work.empty()) {
    baton::runtime::PollInterrupt();
    BaseFunc f = mod->Lookup(work.back());
    work.pop_back();
    if (f.as<FunctionNode>()) {
      AnyNode(f, [&](const ExprNode* n) {
        if (n->IsInstance<GlobalVarNode>()) reach(GetRef<GlobalVar>(static_cast<const GlobalVarNode*>(n)));
        return false;
      });
    }
  }
  return KeepFunctions(mod, [&](const GlobalVar& var, const BaseFunc& func) {
    return !func.as<FunctionNode>() || reached.count(var->name_hint.str());
  });
}

}  // namespace

Pass DeadCodeElimination(const DeadCodeEliminationOptions& options) {
  return MakePass<DeadCodeElimination>(
      options, {
                   .doc = "Drops bindings that are never used and have no effect, with ignore_impurity those with "
                          "effects too; with "
                          "inline_once also those used once, into their use, unless they read or write state. In a "
                          "module that has a "
                          "`main`, drops functions that it does not reach.",
                   .opt_level = 1,
                   .run =
                       [inline_once = options.inline_once, ignore_impurity = options.ignore_impurity](IRModule mod,
                                                                                                      PassContext) {
                         IRModule out = mod;
                         for (const auto& [var, func] : mod->functions) {
                           if (!func.as<FunctionNode>() || func->HasNonzeroAttr(attr::kSkipOptimization)) continue;
                           Function f = Downcast<Function>(func);
                           if (!AnyNode(f, [](const ExprNode* n) { return n->IsInstance<LetNode>(); })) continue;
                           f = Downcast<Function>(Eliminator(f, inline_once, ignore_impurity).Mutate(f));
                           if (!f.same_as(func)) out.CopyOnWrite()->functions.Set(var, f);
                         }
                         return mod->ContainGlobalVar("main") && mod->functions.size() > 1
                                    ? RemoveUnreached(out, {"main"})
                                    : out;
                       },
               });
}

Pass RemoveUnusedFunctions(const RemoveUnusedFunctionsOptions& options) {
  return MakePass<RemoveUnusedFunctions>(
      options, {
                   .doc = "Drops functions that no entry function reaches.",
                   .opt_level = 1,
                   .run = [entries = options.entry_functions](IRModule mod,
                                                              PassContext) { return RemoveUnreached(mod, entries); },
               });
}

namespace {
const RegisterPass<DeadCodeElimination> registered_dead_code_elimination;
const RegisterPass<RemoveUnusedFunctions> registered_remove_unused_functions;
}  // namespace

}  // namespace baton::relay::transform
