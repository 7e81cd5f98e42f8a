// SPDX-License-Identifier: Apache-2.0
// Continuation-passing style and back. A function gets one more parameter, the continuation, which it calls with what
// it would have returned; what comes of that, the answer, is a type parameter. Calls of functions, branches and matches
// are passed on; operators, tuples and references are bound by lets, which is passing them to a continuation that is
// known.
#include <baton/relay/transform.h>
#include <baton/relay/type_functor.h>
#include <baton/runtime/interrupt.h>
#include <baton/support/pointer_map.h>
#include <fmt/format.h>
#include <relay/expr/children.h>
#include <relay/text/type_text.h>
#include <relay/transform/anf_blocks.h>
#include <relay/types/type_solver.h>

#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::relay {
namespace {

Type FullTypeOf(const Expr& e) { return e->checked_type(); }
Expr CpsCall(const Expr& f, const Array<Expr>& args) {
  CallNode n;
  n.op = f, n.args = args;
  return Call(std::move(n));
}
FuncType Arrow(const Array<Type>& args, const Type& result) {
  return FuncType(Array<TypeVar>(), args, result, Array<TypeConstraint>());
}

/// The type that a value of a type has among functions with continuations: function types within it take one.
class WithContinuation : public TypeMutator {
 public:
  using TypeMutator::VisitType_;
  TypeVar answer;
  /// Remembered: types of functions within functions are parts of each other.
  Type VisitType(const Type& t) final {
    if (const auto* known = known_.Find(t.get())) return known->second;
    Type out = TypeMutator::VisitType(t);
    if (t->IsInstance<TupleTypeNode>() || t->IsInstance<FuncTypeNode>()) known_[t.get()] = {t, out};
    return out;
  }
  Type VisitType_(const FuncTypeNode* t) final {
    Array<Type> args;
    for (const Type& a : t->arg_types) args.push_back(VisitType(a));
    args.push_back(Arrow({VisitType(t->ret_type)}, answer));
    return FuncType(t->type_params, args, answer, t->type_constraints);
  }

 private:
  PointerMap<std::pair<Type, Type>> known_;
};

class NamesFunction : public TypeVisitor {
 public:
  bool found = false;
  using TypeVisitor::VisitType_;
  void VisitType_(const FuncTypeNode*) final { found = true; }
};

class Converter {
 public:
  explicit Converter(IRModule* mod) : mod_(mod) {}

  Function Convert(const Function& func) {
    const Function f = TypedNormalForm(func, *mod_);
    types_ = WithContinuation();
    types_.answer = TypeVar("Answer", TypeKind::kType);
    vars_.Clear();
    blocks_ = NormalBlocks(f->body, true);
    to_.assign(blocks_.size(), Var());
    made_.assign(blocks_.size(), Expr());
    Array<Var> params = DeclareParams(f.get(), 0);
    for (size_t b = 0; b < blocks_.size(); ++b) Declare(b);
    for (size_t b = blocks_.size(); b-- > 0;) made_[b] = Build(b);
    Array<TypeVar> type_params = f->type_params;
    type_params.push_back(types_.answer);
    return Function(params, made_[0], types_.answer, type_params, f->attrs);
  }
  /// The global functions reachable by calls from converted functions.
  void ConvertGlobals() {
    for (size_t i = 0; i < queue_.size(); ++i) {
      const auto [var, func] = queue_[i];
      Function made = Convert(func);
      mod_->CopyOnWrite()->Update(var, made);
    }
    queue_.clear();
  }

 private:
  Type Convert(const Type& t) { return types_.Mutate(t); }
  Var Continuation(const char* name, const Type& result) { return Var(name, Arrow({Convert(result)}, types_.answer)); }
  Array<Var> DeclareParams(const FunctionNode* f, size_t body) {
    Array<Var> params;
    for (const Var& p : f->params) {
      Var own(p->vid, Convert(FullTypeOf(p)));
      vars_[p.get()] = own;
      params.push_back(own);
    }
    to_[body] = Continuation("k", FullTypeOf(GetRef<Expr>(f)).as<FuncTypeNode>()->ret_type);
    params.push_back(to_[body]);
    return params;
  }

  // ---- Names first: a value may be used by blocks that are built before the one that binds it.
  void Declare(size_t b) {
    const NormalBlock& block = blocks_[b];
    for (size_t i = 0; i < block.steps.size(); ++i) {
      runtime::PollInterrupt();
      const NormalBlock::Step& s = block.steps[i];
      const bool last = block.EndsInLast() && i + 1 == block.steps.size();
      const auto* f = s.value.as<FunctionNode>();
      if (f && s.first < 0) primitive_.Add(s.var.get());
      const bool passed = IsPassed(s.value);
      Type type = passed ? Convert(FullTypeOf(s.value)) : s.var->type_annotation;
      if (!passed && type.defined()) type = Convert(type);
      vars_[s.var.get()] = Var(s.var->vid, primitive_.Has(s.var.get()) ? s.var->type_annotation : type);
      if (f && s.first >= 0) {
        params_[f] = DeclareParams(f, s.first);
      } else if (s.first >= 0) {
        const Var join = last ? to_[b] : Continuation("join", FullTypeOf(s.value));
        size_t own = 2;
        if (const auto* m = s.value.as<MatchNode>()) {
          own = m->clauses.size();
          Array<Pattern> patterns;
          for (const Clause& c : m->clauses) patterns.push_back(Own(c->lhs, m));
          patterns_[m] = patterns;
        }
        for (size_t k = 0; k < own; ++k) to_[s.first + k] = join;
      }
    }
  }
  Pattern Own(const Pattern& p, const MatchNode* at) {
    if (const auto* v = p.as<PatternVarNode>()) {
      const Type& stated = v->var->type_annotation;
      Var own(v->var->vid, stated.defined() ? Convert(stated) : stated);
      vars_[v->var.get()] = own;
      return PatternVar(own);
    }
    const auto all = [&](const Array<Pattern>& in) {
      Array<Pattern> out;
      for (const Pattern& q : in) out.push_back(support::WithStack([&] { return Own(q, at); }));
      return out;
    };
    if (const auto* c = p.as<PatternConstructorNode>()) {
      CheckConstructor(c->constructor.get(), at);
      return PatternConstructor(c->constructor, all(c->patterns));
    }
    if (const auto* t = p.as<PatternTupleNode>()) return PatternTuple(all(t->patterns));
    return p;
  }
  void CheckConstructor(const ConstructorNode* k, const BaseExprNode* at) {
    if (!checked_.Add(k)) return;
    NamesFunction names;
    for (const Type& t : k->inputs) names.VisitType(t);
    if (!names.found) return;
    FailAt(at, fmt::format("the constructor `{}` has a field whose type names a function", k->name_hint.view()),
           "make the function's type a parameter of the data type");
  }

  // ---- Values.
  /// Whether a value comes from a continuation's parameter.
  bool IsPassed(const Expr& value) {
    if (value.as<IfNode>() || value.as<MatchNode>()) return true;
    const auto* call = value.as<CallNode>();
    return call && !IsDirect(call->op);
  }
  /// Whether calls of it stay as they are.
  bool IsDirect(const Expr& callee) {
    if (callee.as<OpNode>() || callee.as<ConstructorNode>() || primitive_.Has(callee.get())) return true;
    const auto* g = callee.as<GlobalVarNode>();
    return g && !FunctionToConvert(g);
  }
  /// Null for functions that an external compiler takes.
  const FunctionNode* FunctionToConvert(const GlobalVarNode* g) {
    if (!(*mod_)->ContainGlobalVar(g->name_hint.view())) {
      FailAt(g, fmt::format("the module has no function @{}", g->name_hint.view()),
             "give the module that the function is of: to_cps(func, mod)");
    }
    return OpenFunction(*mod_, g->name_hint.view());
  }
  GlobalVar Global(const GlobalVarNode* g) {
    const std::string name = g->name_hint.str();
    if (auto it = globals_.find(name); it != globals_.end()) return it->second;
    GlobalVar var{String(FreshGlobalName(*mod_, name + "_cps"))};
    const Function func = GetRef<Function>(FunctionToConvert(g));
    globals_.emplace(name, var);
    mod_->CopyOnWrite()->Update(var, func);  // keeps the name
    queue_.push_back({var, func});
    return var;
  }
  Expr Variable(const Expr& e) {
    if (const Var* own = vars_.Find(e.get())) return *own;
    const auto* v = e.as<VarNode>();
    FailAt(v, fmt::format("the variable %{} is free", v->name_hint().view()), "make it a parameter of the function");
  }
  Expr Atom(const Expr& e) {
    if (const auto* v = e.as<VarNode>()) {
      Expr own = Variable(e);
      return primitive_.Has(v) ? Wrapped(own, FullTypeOf(e), true) : own;
    }
    if (const auto* g = e.as<GlobalVarNode>()) {
      const bool direct = IsDirect(e);
      return Wrapped(direct ? e : Expr(Global(g)), TypeOfName(e, *mod_), direct);
    }
    if (const auto* k = e.as<ConstructorNode>()) {
      CheckConstructor(k, k);
      return Wrapped(e, TypeOfName(e, *mod_), true);
    }
    return e;
  }
  /// A function that stands for `callee`, of that type, as a value.
  Expr Wrapped(const Expr& callee, const Type& type, bool direct) {
    const auto* f = type.as<FuncTypeNode>();
    std::vector<std::pair<const Object*, Type>> with;
    Array<TypeVar> type_params;
    for (const TypeVar& t : f->type_params) {
      type_params.push_back(TypeVar(t->name_hint, t->kind));
      with.push_back({t.get(), type_params.back()});
    }
    const auto own = [&](const Type& t) { return Convert(TypeSolver::Substitute(t, with)); };
    Array<Var> params;
    Array<Expr> args;
    for (const Type& t : f->arg_types) {
      params.push_back(Var("x", own(t)));
      args.push_back(params.back());
    }
    Var k("k", Arrow({own(f->ret_type)}, types_.answer));
    params.push_back(k);
    if (!direct) args.push_back(k);
    Expr called = CpsCall(callee, args);
    return Function(params, direct ? CpsCall(k, {called}) : called, types_.answer, type_params);
  }
  Array<Expr> Atoms(const Array<Expr>& in) {
    Array<Expr> out;
    for (const Expr& e : in) out.push_back(Atom(e));
    return out;
  }
  Array<Type> TypeArgs(const CallNode* c) {
    Array<Type> out;
    for (const Type& t : c->type_args) out.push_back(Convert(t));
    return out;
  }
  static Expr At(const Expr& from, Expr made) {
    made->span = from->span;
    return made;
  }
  /// The value bound by a let.
  Expr Direct(const Expr& value) {
    if (const auto* f = value.as<FunctionNode>()) {
      if (IsPrimitiveFunction(value)) return value;
      const Array<Var>& params = *params_.Find(f);
      Expr made = made_[*body_.Find(f)];
      return Function(params, made, types_.answer, f->type_params, f->attrs);
    }
    if (const auto* c = value.as<CallNode>()) {
      auto n = make_object<CallNode>(*c);
      n->checked_type_ = CheckedType();
      if (const auto* k = c->op.as<ConstructorNode>()) CheckConstructor(k, c);
      if (c->op.as<VarNode>()) n->op = Variable(c->op);
      n->args = Atoms(c->args), n->type_args = TypeArgs(c);
      return Call(n);
    }
    if (const auto* t = value.as<TupleNode>()) return Tuple(Atoms(t->fields));
    if (const auto* g = value.as<TupleGetItemNode>())
      return TupleGetItem(TupleGetItemNode{.tuple = Atom(g->tuple), .index = g->index});
    if (const auto* r = value.as<RefCreateNode>()) return RefCreate(RefCreateNode{.value = Atom(r->value)});
    if (const auto* r = value.as<RefReadNode>()) return RefRead(RefReadNode{.ref = Atom(r->ref)});
    if (const auto* w = value.as<RefWriteNode>())
      return RefWrite(RefWriteNode{.ref = Atom(w->ref), .value = Atom(w->value)});
    return Atom(value);
  }
  /// A value that goes to the continuation `k`: a variable, as a branch names it more than once.
  Expr Passed(const NormalBlock::Step& s, const Expr& k) {
    if (const auto* i = s.value.as<IfNode>()) return If(Atom(i->cond), made_[s.first], made_[s.first + 1]);
    if (const auto* m = s.value.as<MatchNode>()) {
      Array<Clause> clauses;
      const Array<Pattern>& patterns = *patterns_.Find(m);
      for (size_t c = 0; c < patterns.size(); ++c) clauses.push_back(Clause(patterns[c], made_[s.first + c]));
      return Match(Atom(m->data), clauses, m->complete);
    }
    const auto* c = s.value.as<CallNode>();
    CallNode n;
    n.args = Atoms(c->args), n.type_args = TypeArgs(c), n.attrs = c->attrs;
    n.args.push_back(k);
    if (const auto* g = c->op.as<GlobalVarNode>()) {
      n.op = Global(g);
      if (!n.type_args.empty()) n.type_args.push_back(types_.answer);
    } else {
      n.op = Variable(c->op);
    }
    return Call(std::move(n));
  }
  Expr Build(size_t b) {
    const NormalBlock& block = blocks_[b];
    size_t n = block.steps.size();
    Expr out;
    for (const NormalBlock::Step& s : block.steps) {
      if (s.first >= 0 && s.value.as<FunctionNode>()) body_[s.value.get()] = s.first;
    }
    if (block.EndsInLast() && IsPassed(block.steps.back().value)) {
      out = At(block.steps.back().value, Passed(block.steps.back(), to_[b]));
      --n;
    } else {
      out = CpsCall(to_[b], {Atom(block.tail)});
    }
    while (n-- > 0) {
      runtime::PollInterrupt();
      const NormalBlock::Step& s = block.steps[n];
      const Var var = *vars_.Find(s.var.get());
      if (!IsPassed(s.value)) {
        out = Let(var, IsPrimitiveFunction(s.value) ? s.value : At(s.value, Direct(s.value)), out);
        continue;
      }
      Function rest({var}, out, types_.answer);
      if (s.first < 0) {
        out = At(s.value, Passed(s, rest));
      } else {
        out = Let(to_[s.first], rest, At(s.value, Passed(s, rest)));
      }
    }
    return out;
  }

  IRModule* mod_;
  WithContinuation types_;
  std::vector<NormalBlock> blocks_;
  std::vector<Var> to_;     ///< where a block's value goes
  std::vector<Expr> made_;  ///< of blocks
  PointerMap<Var> vars_;
  PointerMap<Array<Var>> params_;
  PointerMap<Array<Pattern>> patterns_;
  PointerMap<size_t> body_;
  PointerSet primitive_;  ///< variables that are bound to primitive functions
  PointerSet checked_;
  std::unordered_map<std::string, GlobalVar> globals_;
  std::vector<std::pair<GlobalVar, Function>> queue_;
};

Function ToCps(const Function& func, IRModule* mod) {
  Converter converter(mod);
  Function out = converter.Convert(func);
  converter.ConvertGlobals();
  return out;
}

/// Returns the parameter type of the continuation; null if it is not a function of one.
Type ResultThroughContinuation(const Type& type) {
  const auto* f = type.as<FuncTypeNode>();
  if (!f || f->arg_types.empty() || f->type_params.empty()) return Type();
  const auto* k = f->arg_types.back().as<FuncTypeNode>();
  const bool fits =
      k && k->arg_types.size() == 1 && k->ret_type.same_as(f->ret_type) && f->ret_type.same_as(f->type_params.back());
  return fits ? k->arg_types[0] : Type();
}

Function UnCps(const Function& func, const IRModule& mod) {
  const Type type = transform::InferTypeOf(func, mod);
  const Type result = ResultThroughContinuation(type);
  if (!result.defined()) {
    FailAt(func.get(),
           fmt::format("un_cps takes a function whose last parameter is a continuation, this one has type {}",
                       TypeText(type)),
           "fn [.., Answer](.., fn (T) -> Answer) -> Answer is what to_cps makes");
  }
  // The answer is the result itself, and the continuation gives back what it gets.
  std::vector<std::pair<const Object*, Type>> with;
  Array<TypeVar> type_params;
  for (size_t i = 0; i + 1 < func->type_params.size(); ++i) {
    type_params.push_back(TypeVar(func->type_params[i]->name_hint, func->type_params[i]->kind));
    with.push_back({func->type_params[i].get(), type_params.back()});
  }
  const Type ret = TypeSolver::Substitute(result, with);
  with.push_back({func->type_params.back().get(), ret});
  Array<Var> params;
  CallNode call;
  call.op = func;
  for (size_t i = 0; i + 1 < func->params.size(); ++i) {
    const Var& p = func->params[i];
    params.push_back(Var(p->name_hint(), TypeSolver::Substitute(FullTypeOf(p), with)));
    call.args.push_back(params.back());
  }
  Var x("x", ret);
  call.args.push_back(Function({x}, x, ret));
  for (const auto& [var, to] : with) call.type_args.push_back(to);
  auto plain = make_object<FunctionNode>(*func.get());
  plain->attrs = DictAttrs(), plain->checked_type_ = CheckedType();
  call.op = Function(plain);
  return Function(params, Call(std::move(call)), ret, type_params, func->attrs);
}

}  // namespace

namespace transform {

Pass ToCPS() {
  return MakePass<ToCPS>({
      .doc = "@main gets a continuation, which it calls with its result; functions that it calls get forms that take "
             "one too, beside what they are.",
      .opt_level = 0,
      .required = {"InferType"},
      .changes_results = true,
      .run = [](IRModule mod, PassContext) { return RewriteMain(mod, ToCps); },
  });
}
Pass UnCPS() {
  return MakePass<UnCPS>({
      .doc = "@main gives its result instead of calling a continuation with it: what ToCPS did, taken back.",
      .opt_level = 0,
      .required = {"InferType"},
      .run =
          [](IRModule mod, PassContext) {
            return RewriteMain(mod, [&](const Function& f, IRModule*) {
              const bool open = ResultThroughContinuation(runtime::RefCast<Type>(f->checked_type_)).defined();
              return open ? UnCps(f, mod) : f;
            });
          },
  });
}

namespace {
const RegisterPass<ToCPS> registered_to_cps;
const RegisterPass<UnCPS> registered_back;

/// (the function, the module with what it calls)
BATON_REGISTER_GLOBAL("relay._transform.to_cps").set_body_typed([](Function func, IRModule mod) {
  IRModule grown = mod.Copy();
  Function made = ToCps(func, &grown);
  return Array<runtime::ObjectRef>{made, grown};
});
BATON_REGISTER_GLOBAL("relay._transform.un_cps").set_body_typed([](Function func, IRModule mod) {
  return UnCps(func, mod);
});
}  // namespace
}  // namespace transform
}  // namespace baton::relay
