// SPDX-License-Identifier: Apache-2.0
// Types of what patterns bind, and of calls.
#include <baton/relay/analysis.h>
#include <baton/relay/text.h>
#include <baton/tir/functor.h>
#include <fmt/format.h>
#include <relay/types/extent_guards.h>
#include <relay/types/inferencer.h>

namespace baton::relay::inference {

void Inferencer::BindPattern(const PatternNode* root, const Type& type, const MatchNode* match) {
  std::vector<std::pair<const PatternNode*, Type>> stack{{root, type}};
  while (!stack.empty()) {
    auto [p, t] = stack.back();
    stack.pop_back();
    if (!p || p->IsInstance<PatternWildcardNode>()) continue;
    struct At : BaseExprNode {
    } at;
    at.span = p->span.defined() ? p->span : match->span;
    if (p->IsInstance<PatternVarNode>()) {
      const VarNode* v = static_cast<const PatternVarNode*>(p)->var.get();
      if (!v) throw CompileError("a pattern has no variable");
      if (v->type_annotation.defined()) {
        Type want = VarType(v);
        if (!IsPoison(t) && !solver_.Unify(want, t)) {
          Error(&at, fmt::format("`%{}` is declared as {}, it is matched with {}", v->name_hint().view(), Text(want),
                                 Text(t)));
        }
      } else if (!info_.Has(v)) {
        Done(v, t);
        if (mode_ == Mode::kNew && v->checked_type_.defined() && info_.Find(v)->changed) throw Again();
      }
    } else if (p->IsInstance<PatternTupleNode>()) {
      const auto& patterns = static_cast<const PatternTupleNode*>(p)->patterns;
      Array<Type> types;
      for (size_t i = 0; i < patterns.size(); ++i) types.push_back(IsPoison(t) ? t : solver_.NewVariable());
      if (!IsPoison(t) && !solver_.Unify(t, TupleType(types))) {
        Error(&at, fmt::format("the pattern is a tuple of {}, it is matched with {}", patterns.size(), Text(t)));
        continue;
      }
      for (size_t i = patterns.size(); i-- > 0;) stack.push_back({patterns[i].get(), types[i]});
    } else {
      const auto* k = static_cast<const PatternConstructorNode*>(p);
      if (!k->constructor.defined()) throw CompileError("a pattern has no constructor");
      Type ct = ConstructorType(k->constructor.get());
      std::vector<Type> inputs(k->patterns.size(), t);
      if (const auto* sig = ct.as<FuncTypeNode>()) {
        Type inst = Instantiate(sig, {});
        sig = inst.as<FuncTypeNode>();
        if (sig->arg_types.size() != k->patterns.size()) {
          Error(
              &at,
              fmt::format("the constructor `{}` has {} field{}, the pattern names {}", k->constructor->name_hint.view(),
                          sig->arg_types.size(), Plural(sig->arg_types.size()), k->patterns.size()),
              "", "`_` stands for a field that is not used");
          continue;
        }
        if (!IsPoison(t) && !solver_.Unify(t, sig->ret_type)) {
          Error(&at, fmt::format("the constructor `{}` makes {}, it is matched with {}",
                                 k->constructor->name_hint.view(), Text(sig->ret_type), Text(t)));
          continue;
        }
        inputs.assign(sig->arg_types.begin(), sig->arg_types.end());
      }
      for (size_t i = inputs.size(); i-- > 0;) stack.push_back({k->patterns[i].get(), inputs[i]});
    }
  }
}

/// `match` promises that its clauses cover every value.
void Inferencer::CheckCovered(const MatchNode* match) {
  if (match->clauses.empty()) {
    Error(match, "the match has no clause", "", "add one: `_ => ...`");
    return;
  }
  if (!match->complete || !mod_.defined() || !errors_->empty()) return;
  Array<Pattern> missing = UnmatchedCases(GetRef<Match>(match), mod_);
  if (missing.empty()) return;
  std::string text;
  for (size_t i = 0; i < missing.size() && i < 4; ++i)
    text += fmt::format("{}`{}`", i ? ", " : "", PrintText(missing[i], {.meta_data = false}));
  if (missing.size() > 4) text += fmt::format(" and {} more", missing.size() - 4);
  Error(match, fmt::format("the match does not cover {}", text), "",
        "add a clause (`_ => ...` takes what is left), or write `match?`, which fails when no clause fits");
}

// ---- Calls

Type Inferencer::Instantiate(const FuncTypeNode* f, const Array<Type>& type_args) {
  if (f->type_params.empty()) return GetRef<Type>(f);
  std::vector<std::pair<const Object*, Type>> with;
  for (size_t i = 0; i < f->type_params.size(); ++i) {
    with.push_back({f->type_params[i].get(), i < type_args.size() ? type_args[i] : solver_.NewVariable()});
  }
  // Type parameters also occur within bound type variables.
  Type open = solver_.Resolve(FuncType(Array<TypeVar>(), f->arg_types, f->ret_type, f->type_constraints));
  return TypeSolver::Substitute(open, with);
}

std::string Inferencer::ArgsLabel(const CallNode* call) {
  std::string s;
  const auto* op = call->op.as<OpNode>();
  for (size_t i = 0; i < call->args.size() && i < 6; ++i) {
    std::string name = op && i < op->arguments.size() ? op->arguments[i]->name.str() : fmt::format("argument {}", i);
    s += fmt::format("{}{}: {}", s.empty() ? "" : ", ", name, Text(TypeOf(call->args[i].get())));
  }
  return call->args.size() > 6 ? s + ", ..." : s;
}

/// Whether the types of the arguments determine the type parameters, independently of the context of the call.
bool Inferencer::ArgumentsDecide(const FuncTypeNode* sig) {
  bool fresh = false;
  bool& known = arguments_decide_.Insert(sig, &fresh);
  if (!fresh) return known;
  Array<TypeVar> found = FreeTypeVars(TupleType(sig->arg_types));
  known = true;
  for (const TypeVar& v : sig->type_params) {
    bool occurs = false;
    for (const TypeVar& f : found) occurs = occurs || f.same_as(v);
    known = known && occurs;
  }
  return known;
}

void Inferencer::FinishCall(const CallNode* call) {
  for (const Expr& a : call->args) {
    if (IsPoison(TypeOf(a.get()))) {
      Done(call, TypeOf(a.get()));
      return;
    }
  }
  const auto* op = call->op.as<OpNode>();
  if (op) {
    const OpDef* def = DefOf(call->op);
    std::string problem, help;
    if (!def || !def->type_rel) {
      problem = fmt::format("the operator `{}` has no type relation, so its result has no type", op->name.view());
    } else if (def->num_inputs >= 0 && static_cast<size_t>(def->num_inputs) != call->args.size()) {
      std::string names;
      for (const OpArg& a : op->arguments) names += fmt::format("{}{}", names.empty() ? "" : ", ", a->name.view());
      problem = fmt::format("[{}] takes {} argument{} ({}), got {}", op->name.view(), def->num_inputs,
                            def->num_inputs == 1 ? "" : "s", names, call->args.size());
    } else if (!op->attrs_type_key.empty()) {
      bool fresh = false;
      uint32_t& want = attrs_index_.Insert(op, &fresh);
      if (fresh) want = Object::TypeKey2Index(op->attrs_type_key.str());
      const bool left_out = !call->attrs.defined() && IsProgramsOwn(def);
      if (!left_out && (!call->attrs.defined() || call->attrs->type_index() != want)) {
        problem = fmt::format("[{}] needs attributes of type `{}`, got {}", op->name.view(), op->attrs_type_key.view(),
                              call->attrs.defined() ? "`" + call->attrs->GetTypeKey() + "`" : "none");
      }
    }
    if (!problem.empty()) {
      Error(call, problem, ArgsLabel(call), help);
      Done(call, Poison());
      return;
    }
    scratch_value_ = Type();
    const size_t before = errors_->size();
    if (Relation(call, scratch_, false)) {
      Done(call, scratch_value_);
    } else if (errors_->size() != before) {
      Done(call, Poison());
    } else {
      Type result = scratch_value_.defined() ? scratch_value_ : solver_.NewVariable();
      Done(call, result);
      Await({call, nullptr, result});
    }
    return;
  }
  Type callee = solver_.Find(TypeOf(call->op.get()));
  if (IsPoison(callee)) {
    Done(call, callee);
    return;
  }
  if (callee->IsInstance<IncompleteTypeNode>()) {
    Array<Type> args;
    for (const Expr& a : call->args) args.push_back(TypeOf(a.get()));
    Type result = solver_.NewVariable();
    if (!solver_.Unify(callee, FuncType(Array<TypeVar>(), args, result, Array<TypeConstraint>()))) {
      Error(call, fmt::format("{} is called with itself, which has no type", Named(call->op.get())));
      result = Poison();
    }
    Done(call, result);
    return;
  }
  const auto* sig = callee.as<FuncTypeNode>();
  if (!sig) {
    Error(call, fmt::format("{} is called but is no function: it has type {}", Named(call->op.get()), Text(callee)));
    Done(call, Poison());
    return;
  }
  if (!call->type_args.empty() && call->type_args.size() != sig->type_params.size()) {
    Error(call, fmt::format("{} has {} type parameter{}, got {} type argument{}", Named(call->op.get()),
                            sig->type_params.size(), Plural(sig->type_params.size()), call->type_args.size(),
                            Plural(call->type_args.size())));
    Done(call, Poison());
    return;
  }
  Array<Type> type_args = call->type_args;
  if (type_args.empty() && !sig->type_params.empty()) {
    for (size_t i = 0; i < sig->type_params.size(); ++i) type_args.push_back(solver_.NewVariable());
    if (!ArgumentsDecide(sig)) type_args_[call] = type_args;
  }
  Type inst = Instantiate(sig, type_args);
  sig = inst.as<FuncTypeNode>();
  if (sig->arg_types.size() != call->args.size()) {
    Error(call,
          fmt::format("{} takes {} argument{}, got {}", Named(call->op.get()), sig->arg_types.size(),
                      Plural(sig->arg_types.size()), call->args.size()),
          Text(callee));
    Done(call, sig->ret_type);
    return;
  }
  for (size_t i = 0; i < call->args.size(); ++i) {
    Type got = TypeOf(call->args[i].get());
    if (!Fits(call, sig->arg_types[i], got)) {
      Error(Place(call->args[i].get(), call), fmt::format("argument {} of {} has type {}, must be {}", i,
                                                          Named(call->op.get()), Text(got), Text(sig->arg_types[i])));
    }
  }
  Done(call, sig->ret_type);
}

void Inferencer::Assume(const PrimExpr& a, const PrimExpr& b) {
  std::string place = call_ ? Name(call_->op.get()) : std::string(where);
  if (call_ && call_->span.defined()) {
    const SourceName& source = call_->span->source_name;
    const std::string_view file = source.defined() ? source->name.view() : std::string_view();
    if (!file.empty()) place = call_->span->line > 0 ? fmt::format("{}:{}: {}", file, call_->span->line, place) : file;
  }
  AddExtentGuard(&guards_, a, b, place);
}

Function Inferencer::WithGuards(const Function& f) const {
  if (guards_.empty()) return f;
  Array<Any> all;
  all = f->GetAttr<Array<Any>>(kExtentGuards, all);
  const size_t before = all.size();
  for (const Any& g : guards_) {
    bool there = false;
    for (const Any& k : all) {
      const auto x = g.As<Array<Any>>(), y = k.As<Array<Any>>();
      there = there || (tir::ExprDeepEqual(x[0].As<PrimExpr>(), y[0].As<PrimExpr>()) &&
                        tir::ExprDeepEqual(x[1].As<PrimExpr>(), y[1].As<PrimExpr>()));
    }
    if (!there) all.push_back(g);
  }
  if (all.size() == before) return f;
  Function out = WithAttr(f, kExtentGuards, Any(all));
  out->checked_type_ = f->checked_type_;
  out->span = f->span;
  return out;
}

/// Asks the operator; true if it decided. An error is reported here.
bool Inferencer::Relation(const CallNode* call, const Type& result, bool last) {
  const auto* op = call->op.as<OpNode>();
  const OpDef* def = DefOf(call->op);
  auto n = make_object<runtime::ArrayObj>();
  n->items.reserve(call->args.size() + 1);
  for (const Expr& a : call->args) n->items.push_back(Any(solver_.Resolve(TypeOf(a.get()))));
  n->items.push_back(Any(result.same_as(scratch_) ? result : solver_.Resolve(result)));
  Array<Type> types{ObjectPtr<Object>(n)};
  call_ = call;
  bool decided = false;
  try {
    decided = def->type_rel(types, static_cast<int>(call->args.size()), call->attrs, *this);
  } catch (const runtime::InternalError&) {
    throw;
  } catch (const runtime::Error& e) {
    if (e.ends_work()) throw;
    std::string message = e.message();
    if (message.rfind("[R", 0) == 0)
      message = fmt::format("[{} {}", op->name.view(), message.substr(1));
    else if (message.empty() || message[0] != '[')
      message = fmt::format("[{}] {}", op->name.view(), message);
    Error(call, message, ArgsLabel(call));
    return false;
  }
  if (decided && result.same_as(scratch_) && !scratch_value_.defined()) {
    throw InternalError("the type relation of `" + op->name.str() + "` decided and gave no type");
  }
  if (!decided && last) {
    for (size_t i = 0; i < call->args.size(); ++i) {
      if (solver_.FirstUnbound(TypeOf(call->args[i].get()))) return false;  // reported where it comes from
    }
    Error(call, fmt::format("[{}] the result's type does not follow from the arguments", op->name.view()),
          ArgsLabel(call));
  }
  return decided;
}

void Inferencer::FinishTupleGetItem(const TupleGetItemNode* item) {
  Type result = solver_.NewVariable();
  Type t = solver_.Find(TypeOf(item->tuple.get()));
  if (const auto* tuple = t.as<TupleTypeNode>();
      tuple && item->index >= 0 && item->index < static_cast<int64_t>(tuple->fields.size())) {
    Done(item, tuple->fields[item->index]);
    return;
  }
  if (IsPoison(t)) {
    Done(item, t);
    return;
  }
  if (t->IsInstance<IncompleteTypeNode>()) {
    Done(item, result);
    Await({nullptr, item, result});
    return;
  }
  Project(item, result);
  Done(item, Poison());
}

bool Inferencer::Project(const TupleGetItemNode* item, const Type& result) {
  Type t = solver_.Find(TypeOf(item->tuple.get()));
  if (t->IsInstance<IncompleteTypeNode>()) return false;
  const auto* tuple = t.as<TupleTypeNode>();
  if (!tuple) {
    Error(item, fmt::format("part {} is taken of a value that is no tuple: it has type {}", item->index, Text(t)));
  } else if (item->index < 0 || item->index >= static_cast<int64_t>(tuple->fields.size())) {
    Error(item, fmt::format("part {} is taken of a tuple of {}", item->index, tuple->fields.size()), Text(t),
          tuple->fields.empty() ? "the empty tuple has no parts"
                                : fmt::format("its parts are numbered from 0 to {}", tuple->fields.size() - 1));
  } else {
    solver_.Unify(result, tuple->fields[item->index]);
  }
  return true;
}

}  // namespace baton::relay::inference
