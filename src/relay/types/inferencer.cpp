// SPDX-License-Identifier: Apache-2.0
// The walk, variables and globals, and relations that wait for types.
#include <baton/runtime/interrupt.h>
#include <baton/support/nearest.h>
#include <fmt/format.h>
#include <relay/types/inferencer.h>

namespace baton::relay::inference {
std::string Name(const ExprNode* e) {
  if (e->IsInstance<VarNode>()) return fmt::format("%{}", static_cast<const VarNode*>(e)->name_hint().view());
  if (e->IsInstance<GlobalVarNode>()) return fmt::format("@{}", static_cast<const GlobalVarNode*>(e)->name_hint.view());
  if (e->IsInstance<OpNode>()) return static_cast<const OpNode*>(e)->name.str();
  if (e->IsInstance<ConstructorNode>()) return static_cast<const ConstructorNode*>(e)->name_hint.str();
  if (e->IsInstance<FunctionNode>()) return "fn";
  return "";
}
std::string Named(const ExprNode* e) {
  const std::string name = Name(e);
  return name.empty() ? "what is called here" : "`" + name + "`";
}

bool Declared(const FunctionNode* f) {
  if (!f->ret_type.defined()) return false;
  for (const Var& p : f->params) {
    if (!p->type_annotation.defined()) return false;
  }
  return true;
}

Type DeclaredType(const FunctionNode* f, Inferencer* inferencer) {
  Array<Type> params;
  for (const Var& p : f->params)
    params.push_back(p->type_annotation.defined() || !inferencer ? p->type_annotation : inferencer->NewVariable());
  return FuncType(f->type_params, params,
                  f->ret_type.defined() || !inferencer ? f->ret_type : inferencer->NewVariable(),
                  Array<TypeConstraint>());
}

void Inferencer::Walk(const Expr& root) {
  Need(root);
  while (!stack_.empty()) {
    runtime::PollInterrupt();
    Step();
  }
}

void Inferencer::Done(const ExprNode* n, Type type) {
  const uint32_t id = info_.IdOf(n);
  Info& i = info_.At(id).info;
  i.type = pool_->Share(std::move(type));
  i.changed = true;
  if (n->checked_type_.defined() &&
      (n->checked_type_.same_as(i.type) ||
       (!solver_.FirstUnbound(i.type) && pool_->Equal(Existing(n), solver_.Resolve(i.type))))) {
    i.type = Existing(n);
    i.changed = false;
  }
  order_.push_back(id);
}

/// Handles what has no parts, or is taken as it is; true if that was all.
bool Inferencer::Enter(const ExprNode* n) {
  if (n->IsInstance<VarNode>()) {
    VarType(static_cast<const VarNode*>(n));
    return true;
  }
  if (n->IsInstance<GlobalVarNode>()) {
    info_[n] = {GlobalType(static_cast<const GlobalVarNode*>(n)), true};
    return true;
  }
  if (mode_ == Mode::kNew && n->checked_type_.defined()) {
    Trust(n);
    return true;
  }
  if (n->IsInstance<ConstantNode>()) {
    if (mode_ != Mode::kAll && n->checked_type_.defined()) {
      Trust(n);
    } else {
      const auto* c = static_cast<const ConstantNode*>(n);
      if (!c->data.defined()) throw CompileError("a constant has no data");
      Done(n, c->tensor_type());
    }
    return true;
  }
  if (n->IsInstance<ConstructorNode>()) {
    Done(n, ConstructorType(static_cast<const ConstructorNode*>(n)));
    return true;
  }
  if (n->IsInstance<OpNode>()) {
    const std::string_view name = static_cast<const OpNode*>(n)->name.view();
    Error(User(), fmt::format("the operator `{}` is used as a value", name), "",
          fmt::format("wrap it in a function: fn (%x) {{ {}(%x) }}", name));
    info_[n] = {Poison(), true};
    return true;
  }
  return false;
}

void Inferencer::Step() {
  Frame& f = stack_.back();
  const ExprNode* n = f.n;
  const uint32_t phase = f.phase++;
  if (phase == 0) {
    bool known = info_.Has(n);
    if (!known) {
      ++InferenceWork::OfThread().expressions;
      baton::transform::progress::AtExpr(GetRef<Expr>(n));
    }
    if (known || Enter(n)) {
      stack_.pop_back();
      return;
    }
  }
  if (n->IsInstance<CallNode>()) {
    const auto* c = static_cast<const CallNode*>(n);
    if (phase == 0) {
      for (size_t i = c->args.size(); i-- > 0;) Need(c->args[i]);
      if (!c->op.as<OpNode>()) Need(c->op);
      return;
    }
    stack_.pop_back();
    if (!Keep(n)) FinishCall(c);
  } else if (n->IsInstance<TupleNode>()) {
    const auto* t = static_cast<const TupleNode*>(n);
    if (phase == 0) {
      for (size_t i = t->fields.size(); i-- > 0;) Need(t->fields[i]);
      return;
    }
    stack_.pop_back();
    if (Keep(n)) return;
    Array<Type> types;
    types.reserve(t->fields.size());
    for (const Expr& e : t->fields) types.push_back(TypeOf(e.get()));
    Done(n, TupleType(types));
  } else if (n->IsInstance<TupleGetItemNode>()) {
    const auto* g = static_cast<const TupleGetItemNode*>(n);
    if (phase == 0) {
      Need(g->tuple);
      return;
    }
    stack_.pop_back();
    if (!Keep(n)) FinishTupleGetItem(g);
  } else if (n->IsInstance<LetNode>()) {
    const auto* l = static_cast<const LetNode*>(n);
    if (phase == 0) {
      Need(l->value);
    } else if (phase == 1) {
      BindLet(l);
      Need(l->body);
    } else {
      stack_.pop_back();
      if (!Keep(n)) Done(n, TypeOf(l->body.get()));
    }
  } else if (n->IsInstance<FunctionNode>()) {
    StepFunction(static_cast<const FunctionNode*>(n), phase);
  } else if (n->IsInstance<IfNode>()) {
    StepIf(static_cast<const IfNode*>(n), phase);
  } else if (n->IsInstance<MatchNode>()) {
    StepMatch(static_cast<const MatchNode*>(n), phase);
  } else if (n->IsInstance<RefCreateNode>()) {
    const auto* r = static_cast<const RefCreateNode*>(n);
    if (phase == 0) {
      Need(r->value);
      return;
    }
    stack_.pop_back();
    if (!Keep(n)) Done(n, RelayRefType(TypeOf(r->value.get())));
  } else if (n->IsInstance<RefReadNode>() || n->IsInstance<RefWriteNode>()) {
    StepReference(n, phase);
  } else {
    throw CompileError("`" + n->GetTypeKey() + "` is no Relay expression that has a type");
  }
}

void Inferencer::StepFunction(const FunctionNode* fn, uint32_t phase) {
  if (phase == 0) {
    for (const Var& p : fn->params) {
      if (!p.defined()) throw CompileError("a parameter of a function is missing (null)");
      VarType(p.get());
    }
    Need(fn->body);
    return;
  }
  stack_.pop_back();
  if (Keep(fn)) return;
  Type ret = TypeOf(fn->body.get());
  if (fn->ret_type.defined() && !IsPoison(Sensible(fn->ret_type, fn))) {
    if (!IsPoison(ret) && !Agree(fn->ret_type, ret)) {
      Error(Place(fn->body.get(), fn),
            fmt::format("the function is declared to return {}, its body has type {}", Text(fn->ret_type), Text(ret)));
    }
    ret = fn->ret_type;
  }
  Array<Type> params;
  for (const Var& p : fn->params) params.push_back(TypeOf(p.get()));
  Done(fn, FuncType(fn->type_params, params, ret, Array<TypeConstraint>()));
}

void Inferencer::StepIf(const IfNode* i, uint32_t phase) {
  if (phase == 0) {
    Need(i->false_branch), Need(i->true_branch), Need(i->cond);
    return;
  }
  stack_.pop_back();
  if (Keep(i)) return;
  Type cond = TypeOf(i->cond.get()), t = TypeOf(i->true_branch.get()), e = TypeOf(i->false_branch.get());
  // An integer is a condition too, which holds where it is not 0.
  const auto* known = solver_.Find(cond).as<TensorTypeNode>();
  const bool integer = known && known->shape.empty() && known->dtype.lanes() == 1 && known->dtype.is_integral();
  if (!IsPoison(cond) && !integer && !solver_.Unify(cond, TensorType::Scalar(DataType::Bool()))) {
    Error(
        Place(i->cond.get(), i),
        fmt::format("the condition of `if` has type {}, must be bool or an integer", Text(cond)), "",
        solver_.Find(cond).as<TensorTypeNode>() ? "reduce a tensor with `all` or `any`, compare a number with 0" : "");
  }
  if (IsPoison(t) || IsPoison(e)) {
    Done(i, IsPoison(t) ? e : t);
  } else if (!Agree(t, e)) {
    Error(i, fmt::format("the branches of `if` have types {} and {}, must be equal", Text(t), Text(e)));
    Done(i, Poison());
  } else {
    Done(i, solver_.Join(t, e));
  }
}

void Inferencer::StepMatch(const MatchNode* m, uint32_t phase) {
  if (phase == 0) {
    Need(m->data);
    return;
  }
  if (phase <= m->clauses.size()) {
    const Clause& c = m->clauses[phase - 1];
    BindPattern(c->lhs.get(), TypeOf(m->data.get()), m);
    Need(c->rhs);
    return;
  }
  stack_.pop_back();
  if (Keep(m)) return;
  CheckCovered(m);
  Type type;
  for (const Clause& c : m->clauses) {
    Type t = TypeOf(c->rhs.get());
    if (!type.defined() || IsPoison(type)) {
      type = t;
    } else if (!IsPoison(t)) {
      if (!Agree(type, t)) {
        Error(Place(c->rhs.get(), m),
              fmt::format("this clause of `match` has type {}, those before have {}", Text(t), Text(type)));
      } else {
        type = solver_.Join(type, t);
      }
    }
  }
  Done(m, type.defined() ? type : solver_.NewVariable());
}

void Inferencer::StepReference(const ExprNode* n, uint32_t phase) {
  const auto* w = n->IsInstance<RefWriteNode>() ? static_cast<const RefWriteNode*>(n) : nullptr;
  const Expr& ref = w ? w->ref : static_cast<const RefReadNode*>(n)->ref;
  if (phase == 0) {
    if (w) Need(w->value);
    Need(ref);
    return;
  }
  stack_.pop_back();
  if (Keep(n)) return;
  Type value = w ? TypeOf(w->value.get()) : solver_.NewVariable(), type = TypeOf(ref.get());
  if (IsPoison(type)) {
    value = type;
  } else if (!solver_.Unify(type, RelayRefType(value))) {
    const auto* r = solver_.Find(type).as<RelayRefTypeNode>();
    Error(n,
          r ? fmt::format("a value of type {} is written to a reference of {}", Text(value), Text(r->value))
            : fmt::format("a reference is wanted, this has type {}", Text(type)),
          "", r ? "" : "`ref(value)` makes one");
    value = Poison();
  }
  Done(n, w ? Type(TupleType::Empty()) : value);
}

// ---- Variables and globals

Type Inferencer::Sensible(const Type& type, const ExprNode* at) {
  if (!HasTypeChildren(type.get()) || sensible_.Has(type.get())) return type;
  keep_.push_back(Any(type));
  // A program does not write larger types; those that passes write down for each of many nested functions were
  // inferred.
  constexpr int64_t kMostParts = 256;
  const std::string problem = KindProblem(type, mod_, &sensible_, kMostParts);
  if (problem.empty()) return type;
  Error(at, fmt::format("the type {} makes no sense: {}", TypeText(type), problem));
  return Poison();
}

Type Inferencer::VarType(const VarNode* var) {
  if (const Info* i = info_.Find(var)) return i->type;
  const bool stands = (mode_ != Mode::kAll || variables_stand) && var->checked_type_.defined();
  Type type = var->type_annotation.defined() ? Sensible(var->type_annotation, var)
              : stands                       ? Existing(var)
                                             : solver_.NewVariable();
  Done(var, type);
  return TypeOf(var);
}

void Inferencer::BindLet(const LetNode* let) {
  const VarNode* var = let->var.get();
  if (!var) throw CompileError("a let has no variable");
  Type value = TypeOf(let->value.get());
  if (const auto* c = let->value.as<ConstantNode>()) let_constants_[var] = c;
  if (var->type_annotation.defined()) {
    Type want = VarType(var);
    if (!IsPoison(value) && !Agree(want, value)) {
      Error(var->span.defined() ? static_cast<const BaseExprNode*>(var) : let->value.get(),
            fmt::format("`%{}` is declared as {}, its value has type {}", var->name_hint().view(), Text(want),
                        Text(value)));
    }
    return;
  }
  if (const Info* i = info_.Find(var)) {  // seen in its own value: recursion
    if (!IsPoison(value) && !Agree(i->type, value)) {
      if (mode_ != Mode::kAll) throw Again();
      if (solver_.Find(i->type)->IsInstance<IncompleteTypeNode>()) {
        Error(let->value.get(), fmt::format("the type of `%{}` would contain itself: its value has type {}",
                                            var->name_hint().view(), Text(value)));
      } else {
        Error(let->value.get(), fmt::format("`%{}` is used as {} in its own value, which has type {}",
                                            var->name_hint().view(), Text(i->type), Text(value)));
      }
    }
    return;
  }
  Done(var, value);
  // Its uses were typed with the old type.
  if (mode_ == Mode::kNew && var->checked_type_.defined() && info_.Find(var)->changed) throw Again();
}

Type Inferencer::GlobalType(const GlobalVarNode* var) {
  if (globals) {
    const Type* known = globals->Find(var->name_hint.view());
    if (known && known->defined()) return *known;
  }
  if (mod_.defined() && mod_->ContainGlobalVar(var->name_hint.view())) {
    // A function of another IR: the calls declare its result type.
    BaseFunc f = mod_->Lookup(var->name_hint.view());
    if (const auto* own = globals ? nullptr : f.as<FunctionNode>()) {
      if (own->checked_type_.defined()) return runtime::RefCast<Type>(own->checked_type_);
      if (Declared(own)) return DeclaredType(own, nullptr);
    }
    if (var->checked_type_.defined()) return Existing(var);
    if (f->checked_type_.defined()) return Existing(f.get());
    Error(var, fmt::format("the type of @{}, a {}, is not known to Relay", var->name_hint.view(), f->GetTypeKey()));
    return Poison();
  }
  if (!mod_.defined() && var->checked_type_.defined()) return Existing(var);
  std::vector<std::string> names;
  if (mod_.defined()) {
    for (const auto& [g, f] : mod_->functions) names.push_back(g->name_hint.str());
  }
  Error(var, fmt::format("there is no function @{}{}", var->name_hint.view(),
                         support::DidYouMean(var->name_hint.view(), names)));
  return Poison();
}

const TypeDataNode* Inferencer::DataType_(const GlobalTypeVar& header, const ObjectRef& at) {
  const auto* site = at.as<BaseExprNode>();
  if (header.defined() && mod_.defined()) {
    if (const auto* e = runtime::FindNamed(mod_->type_definitions.get(), header->name_hint.view()))
      return runtime::SlotAs<TypeData>(e->value).get();
  }
  Error(site, fmt::format("the module has no data type `{}`", header.defined() ? header->name_hint.view() : ""));
  return nullptr;
}

Type Inferencer::ConstructorType(const ConstructorNode* c) {
  const TypeDataNode* data = DataType_(c->belong_to, GetRef<ObjectRef>(c));
  if (!data) return Poison();
  // Mostly as far from the first as its number says: a data type may have many.
  const int64_t at = data->constructors.empty() ? -1 : c->tag - data->constructors[0]->tag;
  const bool there = at >= 0 && static_cast<size_t>(at) < data->constructors.size() &&
                     data->constructors[at]->name_hint == c->name_hint;
  for (size_t i = there ? static_cast<size_t>(at) : 0; i < data->constructors.size(); ++i) {
    const Constructor& k = data->constructors[static_cast<int64_t>(i)];
    if (!(k->name_hint == c->name_hint)) continue;
    Array<Type> params(data->type_vars.begin(), data->type_vars.end());
    return FuncType(data->type_vars, k->inputs, TypeCall(data->header, params), Array<TypeConstraint>());
  }
  Error(c,
        fmt::format("the data type `{}` has no constructor `{}`", data->header->name_hint.view(), c->name_hint.view()));
  return Poison();
}

// ---- Waiting relations

void Inferencer::Await(Wait w) {
  const uint32_t i = static_cast<uint32_t>(waiting_.size());
  auto on = [&](const Expr& e) {
    // One type variable of each argument: when it is bound the next one is looked for.
    if (const Object* variable = solver_.FirstUnbound(TypeOf(e.get()))) watch_[variable].push_back(i);
  };
  if (w.call) {
    for (const Expr& a : w.call->args) on(a);
    // Some relations follow an argument's type from the result's.
    if (const Object* variable = solver_.FirstUnbound(w.result)) watch_[variable].push_back(i);
  } else {
    on(w.item->tuple);
  }
  waiting_.push_back(std::move(w));
}

void Inferencer::Solve() {
  for (;;) {
    for (const Object* variable : solver_.TakeBound()) {
      if (auto* list = watch_.Find(variable)) {
        for (uint32_t i : *list) ready_.push_back(i);
        list->clear();
      }
    }
    if (ready_.empty()) break;
    std::vector<uint32_t> now = std::move(ready_);
    ready_.clear();
    for (uint32_t i : now) {
      Wait w = waiting_[i];
      if (w.done) continue;
      const size_t before = errors_->size();
      bool done = w.call ? Relation(w.call, w.result, false) : Project(w.item, w.result);
      if (done || errors_->size() != before) {
        waiting_[i].done = true;
      } else {
        auto on = [&](const Expr& e) {
          if (const Object* variable = solver_.FirstUnbound(TypeOf(e.get()))) watch_[variable].push_back(i);
        };
        if (w.call) {
          for (const Expr& a : w.call->args) on(a);
          if (const Object* variable = solver_.FirstUnbound(w.result)) watch_[variable].push_back(i);
        } else {
          on(w.item->tuple);
        }
      }
    }
  }
}

void Inferencer::GuessRest() {
  guessing_ = true;
  for (uint32_t i = 0; i < waiting_.size(); ++i) {
    const Wait w = waiting_[i];
    if (w.done || !w.call) continue;
    const size_t before = errors_->size();
    if (Relation(w.call, w.result, false) || errors_->size() != before) waiting_[i].done = true;
    Solve();
  }
  guessing_ = false;
}

void Inferencer::CheckComplete() {
  if (errors_->empty()) GuessRest();
  if (!errors_->empty()) return;
  // Undetermined types: variables first, since the types of their uses follow from them; then functions.
  for (const bool functions : {false, true}) {
    for (uint32_t at : order_) {
      runtime::PollInterrupt();
      const ExprNode* n = info_.At(at).node;
      if (!solver_.FirstUnbound(info_.At(at).info.type) || !n->IsInstance<VarNode>()) continue;
      const Type found = solver_.Find(TypeOf(n));
      const auto* f = found.as<FuncTypeNode>();
      if ((f != nullptr) != functions) continue;
      const std::string_view name = static_cast<const VarNode*>(n)->name_hint().view();
      if (f && solver_.FirstUnbound(f->ret_type)) {
        Error(n, fmt::format("what `%{}` returns does not follow from its body", name), Text(TypeOf(n)),
              "a function that only calls itself returns nothing: give it a case that ends, or write `-> type`");
      } else {
        Error(n, fmt::format("the type of `%{}` does not follow from its use", name), "",
              fmt::format("write it down: %{}: Tensor[(1, 3), float32]", name));
      }
    }
    if (!errors_->empty()) return;
  }
  for (Wait& w : waiting_) {
    if (w.done) continue;
    if (w.call) {
      Relation(w.call, w.result, true);
    } else {
      Error(w.item, "the type of the tuple does not follow from its use");
    }
  }
  if (!errors_->empty()) return;
  for (uint32_t at : order_) {
    runtime::PollInterrupt();
    if (!solver_.FirstUnbound(info_.At(at).info.type)) continue;
    const ExprNode* n = info_.At(at).node;
    const auto* call = n->IsInstance<CallNode>() ? static_cast<const CallNode*>(n) : nullptr;
    const auto* callee = call ? call->op.as<GlobalVarNode>() : nullptr;
    if (callee) {
      Error(n, fmt::format("what @{} returns does not follow from its body", callee->name_hint.view()), "",
            "functions that only call each other return nothing: give them a case that ends, or write `-> type`");
    } else {
      Error(n, fmt::format("the type of this expression is not fully known: {}", Text(TypeOf(n))), "",
            "`_` is what nothing decides: bind it to a variable with a type, `let %x: type = ...`");
    }
    return;
  }
}

}  // namespace baton::relay::inference
