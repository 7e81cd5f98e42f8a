// SPDX-License-Identifier: Apache-2.0
// Programs are run as far as they are known. Each value has a part that is known (a tensor, the fields of a tuple or of
// data, a closure, a reference's contents) and a variable or constant that stands for it in what is left to compute.
// Effects stay where they were: reads and writes of references that are not known, and calls of functions that are not,
// are left in their order.
#include <baton/relay/transform.h>
#include <baton/support/stack.h>
#include <relay/expr/call_graph.h>
#include <relay/transform/partial_evaluation.h>
#include <relay/types/type_solver.h>

#include <unordered_map>
#include <unordered_set>

namespace baton::relay::transform {
namespace partial {

PValue Evaluation::Eval(const Expr& expr, EvalFrame* frame, LetBlock* block) {
  return support::WithStack([&] {
    Expr e = expr;
    while (const auto* let = e.as<LetNode>()) {
      baton::runtime::PollInterrupt();
      PValue v;
      if (const auto* f = let->value.as<FunctionNode>()) {
        v = MakeClosure(GetRef<Function>(f), let->var, frame, block);
      } else {
        v = EvalValue(let->value, frame, block);
      }
      frame->env.Set(let->var.get(), v);
      e = let->body;
    }
    return EvalValue(e, frame, block);
  });
}

PValue Evaluation::Atom(const Expr& e, EvalFrame* frame) {
  if (e->IsInstance<VarNode>()) {
    const PValue* known = frame->env.Find(e.get());
    if (!known) throw CompileError("`%" + Downcast<Var>(e)->name_hint().str() + "` has no value here");
    return *known;
  }
  if (const auto* c = e.as<ConstantNode>()) return Tensor(c->data, e);
  if (const auto* g = e.as<GlobalVarNode>()) {
    auto v = std::make_shared<PartialValue>();
    v->left = e;
    const GlobalVar name = GetRef<GlobalVar>(g);
    if (mod_->functions.count(name) || mod_->ContainGlobalVar(g->name_hint.view())) {
      BaseFunc f = mod_->Lookup(name);
      const auto* fn = Expr(f).as<FunctionNode>();
      if (fn && !Opaque(fn)) {
        v->kind = PartialValue::kClosure;
        v->closure = std::make_shared<Closure>();
        v->closure->func = GetRef<Function>(fn);
        v->closure->recursive = recursive_.count(fn) != 0;
      }
    }
    return v;
  }
  return Unknown(e);  // operators, constructors
}

PValue Evaluation::Tensor(const NDArray& data, const Expr& left) {
  auto v = std::make_shared<PartialValue>();
  v->kind = PartialValue::kTensor;
  v->tensor = data;
  v->left = left;
  return v;
}

bool Evaluation::Opaque(const FunctionNode* f) {
  return f->HasNonzeroAttr(attr::kPrimitive) || f->HasNonzeroAttr("SkipOptimization") ||
         (f->attrs.defined() && f->attrs->dict.count("Compiler"));
}

Type Evaluation::In(const Type& type, const EvalFrame* frame) {
  if (!frame->typed || !type.defined()) return Type();
  return frame->types.empty() ? type : TypeSolver::Substitute(type, frame->types);
}

Type Evaluation::TypeFor(const ExprNode* e, const EvalFrame* frame) {
  return e->checked_type_.defined() ? In(Downcast<Type>(e->checked_type_), frame) : Type();
}

Expr Evaluation::Push(const ExprNode* original, Expr value, EvalFrame* frame, LetBlock* block) {
  --budget_;
  value->span = original->span;
  return block->Push(std::move(value), TypeFor(original, frame), original->span);
}

PValue Evaluation::EvalValue(const Expr& e, EvalFrame* frame, LetBlock* block) {
  if (const auto* c = e.as<CallNode>()) return EvalCall(c, frame, block);
  if (const auto* t = e.as<TupleNode>()) {
    auto v = std::make_shared<PartialValue>();
    v->kind = PartialValue::kTuple;
    Array<Expr> left;
    for (const Expr& f : t->fields) {
      v->fields.push_back(Atom(f, frame));
      v->size += v->fields.back()->size;
      left.push_back(v->fields.back()->left);
    }
    v->left = Push(t, Tuple(left), frame, block);
    return v;
  }
  if (const auto* g = e.as<TupleGetItemNode>()) {
    PValue tuple = Atom(g->tuple, frame);
    if (tuple->kind == PartialValue::kTuple) return tuple->fields[static_cast<size_t>(g->index)];
    return Unknown(Push(g, TupleGetItem(tuple->left, g->index), frame, block));
  }
  if (const auto* i = e.as<IfNode>()) return EvalIf(i, frame, block);
  if (const auto* m = e.as<MatchNode>()) return EvalMatch(m, frame, block);
  if (const auto* f = e.as<FunctionNode>()) return MakeClosure(GetRef<Function>(f), Var(), frame, block);
  if (const auto* r = e.as<RefCreateNode>()) {
    PValue held = Atom(r->value, frame);
    auto v = std::make_shared<PartialValue>();
    v->kind = PartialValue::kRef;
    v->ref = next_ref_++;
    v->left = Push(r, RefCreate(held->left), frame, block);
    store_[v->ref] = held;
    return v;
  }
  if (const auto* r = e.as<RefReadNode>()) {
    PValue ref = Atom(r->ref, frame);
    if (ref->kind == PartialValue::kRef) {
      if (auto it = store_.find(ref->ref); it != store_.end()) return it->second;
    }
    PValue v = Unknown(Push(r, RefRead(ref->left), frame, block));
    if (ref->kind == PartialValue::kRef) store_[ref->ref] = v;
    return v;
  }
  if (const auto* w = e.as<RefWriteNode>()) {
    PValue ref = Atom(w->ref, frame), held = Atom(w->value, frame);
    // A reference that is not known may be any.
    if (ref->kind == PartialValue::kRef) {
      store_[ref->ref] = held;
    } else {
      store_.clear();
    }
    auto v = std::make_shared<PartialValue>();
    v->kind = PartialValue::kTuple;
    v->left = Push(w, RefWrite(ref->left, held->left), frame, block);
    return v;
  }
  return Atom(e, frame);
}

namespace {

/// The functions of a module that call themselves, also by way of others; adds how many nodes there are to `nodes`.
std::unordered_set<const Object*> FindRecursive(const IRModule& mod, int64_t* nodes) {
  std::unordered_set<const Object*> recursive;
  std::vector<const Object*> names;
  std::unordered_map<std::string_view, size_t> number;
  for (const auto& [var, func] : mod->functions) {
    number[var->name_hint.view()] = names.size();
    names.push_back(func.get());
  }
  std::vector<std::vector<size_t>> calls(names.size());
  size_t i = 0;
  for (const auto& [var, func] : mod->functions) {
    if (Expr(func)->IsInstance<FunctionNode>()) {
      for (const ExprNode* n : PostOrderNodes(func)) {
        ++*nodes;
        if (!n->IsInstance<GlobalVarNode>()) continue;
        auto it = number.find(static_cast<const GlobalVarNode*>(n)->name_hint.view());
        if (it == number.end()) continue;
        calls[i].push_back(it->second);
        if (it->second == i) recursive.insert(names[i]);
      }
    }
    ++i;
  }
  for (const auto& group : CallGroups(calls)) {
    if (group.size() < 2) continue;
    for (size_t g : group) recursive.insert(names[g]);
  }
  return recursive;
}

/// Releases a module whose functions may have no other owner. Bindings are released one by one, so that an interrupt
/// does not have to wait for the last.
void Release(IRModule mod) {
  std::vector<Expr> chain;
  for (const auto& [var, func] : mod->functions) {
    if (const auto* f = Expr(func).as<FunctionNode>()) {
      for (Expr e = f->body; e.as<LetNode>(); e = e.as<LetNode>()->body) chain.push_back(e);
    }
  }
  mod = IRModule();
  for (Expr& e : chain) {
    baton::runtime::PollInterrupt();
    e = Expr();
  }
}

IRModule Evaluated(IRModule mod) {
  {
    IRModule normal = ToANormalForm()(mod);
    mod = InferType()(normal);
    Release(std::move(normal));
  }
  IRModule out = mod;
  int64_t nodes = 0;
  const std::unordered_set<const Object*> recursive = FindRecursive(mod, &nodes);
  for (const auto& [var, func] : mod->functions) {
    const auto* f = Expr(func).as<FunctionNode>();
    if (!f || f->HasNonzeroAttr(attr::kPrimitive) || f->HasNonzeroAttr("SkipOptimization")) continue;
    out.CopyOnWrite()->Update(var, Evaluation(mod, nodes, recursive).Run(GetRef<Function>(f)));
  }
  Release(std::move(mod));
  return out;
}

}  // namespace
}  // namespace partial

Pass PartialEvaluate() {
  return MakePass<PartialEvaluate>({
      .doc = "Runs the program as far as it is known: calls of known functions, branches, matches, references and "
             "operators on constants. Bindings that are no longer used stay; DeadCodeElimination drops them. Recursion "
             "is followed while an argument that is known counts down.",
      .opt_level = 1,
      .required = {"InferType"},
      .run = [](IRModule mod, PassContext) { return partial::Evaluated(mod); },
  });
}

namespace {
const RegisterPass<PartialEvaluate> registered_partial_evaluate;
}

}  // namespace baton::relay::transform
