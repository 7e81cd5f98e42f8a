// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/keep_functions.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/runtime/interrupt.h>
#include <baton/support/pointer_map.h>
#include <relay/blocks.h>

#include <unordered_set>
#include <vector>

namespace baton::relay::transform {
namespace {

/// Whether evaluating an expression may do something besides giving its value: state, references, calls of unknown
/// code.
class EffectFinder : public MixedModeVisitor {
 public:
  bool Find(const Expr& e) {
    found_ = false;
    VisitExpr(e);
    return found_;
  }

 private:
  using MixedModeVisitor::VisitExpr_;
  void VisitExpr_(const CallNode* call) final {
    if (const OpDef* def = DefOf(call->op)) {
      found_ |= def->stateful;
    } else if (!call->op.as<OpNode>() && !call->op.as<ConstructorNode>()) {
      const auto* f = call->op.as<FunctionNode>();
      found_ |= !(f && f->HasNonzeroAttr(attr::kPrimitive));  // a callee may loop for ever or write a reference
    }
  }
  void VisitExpr_(const FunctionNode*) final {}  // a closure that is not called has no effect
  void VisitExpr_(const RefWriteNode*) final { found_ = true; }
  void VisitExpr_(const RefReadNode* r) final { MixedModeVisitor::VisitExpr(r->ref); }
  bool found_ = false;
};

/// Counts uses of variables, then drops bindings that nobody uses and whose value has no effect.
class Eliminator : public MixedModeMutator {
 public:
  Eliminator(PointerMap<int64_t> uses, bool inline_once) : uses_(std::move(uses)), inline_once_(inline_once) {}

 private:
  using MixedModeMutator::VisitExpr_;
  bool Inlined(const LetNode* op) {
    return inline_once_ && uses_[op->var.get()] == 1 && !op->value.as<FunctionNode>() && !effects_.Find(op->value);
  }
  void PreVisitLet_(const LetNode* op) final {
    if (Inlined(op)) {
      memo_[op->var] = VisitExpr(op->value);
    } else {
      MixedModeMutator::PreVisitLet_(op);
    }
  }
  Expr PostVisitLet_(const LetNode* op, const Expr& value, const Expr& body) final {
    int64_t n = uses_[op->var.get()];
    if ((n == 0 && !effects_.Find(op->value)) || (n == 1 && Inlined(op))) return body;
    return MixedModeMutator::PostVisitLet_(op, value, body);
  }
  PointerMap<int64_t> uses_;
  EffectFinder effects_;
  bool inline_once_;
};

/// Of variables, what binds them apart.
PointerMap<int64_t> CountUses(const Expr& root) {
  PointerMap<int64_t> uses;
  for (const ExprNode* n : PostOrderNodes(root)) {
    ForEachEdge(n, [&](const ExprNode* part, int, bool) {
      if (part && part->IsInstance<VarNode>()) ++uses[part];
    });
  }
  return uses;
}

}  // namespace

namespace {

/// Functions that nothing reaches from those of these names are removed.
IRModule RemoveUnreached(const IRModule& mod, const Array<String>& entries) {
  std::unordered_set<std::string> reached;
  std::vector<GlobalVar> work;
  auto reach = [&](const GlobalVar& v) {
    if (mod->ContainGlobalVar(v->name_hint.view()) && reached.insert(v->name_hint.str()).second) work.push_back(v);
  };
  for (const String& n : entries) reach(GlobalVar(n));
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

Pass DeadCodeElimination(bool inline_once) {
  return MakePass<DeadCodeElimination>({
      .doc = "Drops bindings that are never used and have no effect; with inline_once also those used once, into their "
             "use. In a module that has a `main`, drops functions that it does not reach.",
      .opt_level = 1,
      .run =
          [inline_once](IRModule mod, PassContext) {
            IRModule out = mod;
            for (const auto& [var, func] : mod->functions) {
              if (!func.as<FunctionNode>() || func->HasNonzeroAttr(attr::kSkipOptimization)) continue;
              Function f = Downcast<Function>(func);
              // Dropping a binding may free others: each round is linear, and few are needed.
              for (int round = 0; round < 16; ++round) {
                if (!AnyNode(f, [](const ExprNode* n) { return n->IsInstance<LetNode>(); })) break;
                Function next = Eliminator(CountUses(f), inline_once).Mutate(f);
                if (next.same_as(f)) break;
                f = next;
              }
              if (!f.same_as(func)) out.CopyOnWrite()->functions.Set(var, f);
            }
            return mod->ContainGlobalVar("main") && mod->functions.size() > 1 ? RemoveUnreached(out, {"main"}) : out;
          },
  });
}

Pass RemoveUnusedFunctions(Array<String> entry_functions) {
  return MakePass<RemoveUnusedFunctions>({
      .doc = "Drops functions that no entry function reaches.",
      .opt_level = 1,
      .run = [entry_functions](IRModule mod, PassContext) { return RemoveUnreached(mod, entry_functions); },
  });
}

namespace {
const struct Registered {
  Registered() {
    using runtime::Args;
    using runtime::RetValue;
    baton::transform::RegisterPassGlobal("relay._transform.DeadCodeElimination", PackedFunc([](Args a, RetValue* rv) {
                                           *rv = DeadCodeElimination(a.size() > 0 && a[0].As<bool>());
                                         }));
    baton::transform::RegisterPassGlobal(
        "relay._transform.RemoveUnusedFunctions", PackedFunc([](Args a, RetValue* rv) {
          *rv = RemoveUnusedFunctions(a.size() > 0 ? a[0].As<Array<String>>() : Array<String>{"main"});
        }));
    baton::transform::RegisterPassParams("DeadCodeElimination", {"inline_once=false"});
    baton::transform::RegisterPassParams("RemoveUnusedFunctions", {"entry_functions=[\"main\"]"});
  }
} registered;
}  // namespace

}  // namespace baton::relay::transform
