// SPDX-License-Identifier: Apache-2.0
// Higher-order reverse-mode differentiation. A floating tensor travels as (value, reference to its adjoint). A
// reference holds the function that goes back: each call of an operator puts one before it that adds to its arguments'
// adjoints and then calls the one that was there. The result is Relay again, so it can be differentiated again.
#include <baton/relay/functor.h>
#include <baton/relay/op/make.h>
#include <baton/relay/transform.h>
#include <baton/relay/type_functor.h>
#include <baton/support/stack.h>
#include <fmt/format.h>
#include <relay/text/type_text.h>
#include <relay/transform/let_inserter.h>

#include <unordered_map>

#include "gradient.h"

namespace baton::relay {
namespace {

Type KnownType(const Expr& e) { return e->checked_type(); }
bool IsFloating(const Type& t) {
  const auto* tensor = t.as<TensorTypeNode>();
  return tensor && tensor->dtype.is_floating();
}

/// The type that a value of a type has on its way: floating tensors become pairs everywhere.
class Paired : public TypeMutator {
 public:
  using TypeMutator::VisitType_;
  /// Remembered: types of tuples within tuples are parts of each other.
  Type VisitType(const Type& t) final {
    if (const auto* known = known_.Find(t.get())) return known->second;
    Type out = TypeMutator::VisitType(t);
    if (!out.same_as(t) || t->IsInstance<TupleTypeNode>() || t->IsInstance<FuncTypeNode>()) known_[t.get()] = {t, out};
    return out;
  }
  Type VisitType_(const TensorTypeNode* t) final {
    Type self = GetRef<Type>(t);
    return t->dtype.is_floating() ? Type(TupleType(Array<Type>{self, RelayRefType(self)})) : self;
  }

 private:
  PointerMap<std::pair<Type, Type>> known_;
};

/// Whether a type names a floating tensor itself, not by a parameter.
class NamesTensor : public TypeVisitor {
 public:
  bool found = false;
  using TypeVisitor::VisitType_;
  void VisitType_(const TensorTypeNode* t) final { found = found || t->dtype.is_floating(); }
};

/// Names of variables; each name is one object.
struct Names {
  String value{"v"}, pair{"p"}, adjoint{"g"}, before{"before"}, back{"back"}, unused{"_"};
};

/// A chain of bindings under construction.
struct Chain {
  explicit Chain(const Names& n) : names(n) {}
  const Names& names;
  std::vector<std::pair<Var, Expr>> bindings;
  Expr Push(const Expr& value, const Type& type = Type(), String Names::* name = &Names::value) {
    Var v(names.*name, Type());
    if (type.defined()) v->checked_type_ = type;
    bindings.emplace_back(v, value);
    return v;
  }
  /// Takes the bindings.
  Expr Close(Expr body) {
    for (; !bindings.empty(); bindings.pop_back())
      body = Let(std::move(bindings.back().first), std::move(bindings.back().second), std::move(body));
    return body;
  }
};
Expr Item(const Expr& tuple, int64_t i, const Type& type = Type()) {
  Expr e = TupleGetItem(TupleGetItemNode{.tuple = tuple, .index = i});
  if (type.defined()) e->checked_type_ = type;
  return e;
}
Expr Read(const Expr& ref) { return RefRead(RefReadNode{.ref = ref}); }
Expr Write(const Expr& ref, const Expr& value) { return RefWrite(RefWriteNode{.ref = ref, .value = value}); }
Expr NewRef(const Expr& value) { return RefCreate(RefCreateNode{.value = value}); }
Expr CallOf(const Expr& f, const Array<Expr>& args) {
  CallNode n;
  n.op = f, n.args = args;
  return Call(std::move(n));
}
/// The type of the function that goes back: fn() -> ().
Type BackType() {
  return RelayRefType(FuncType(Array<TypeVar>(), Array<Type>(), TupleType::Empty(), Array<TypeConstraint>()));
}

/// One node put in the place of another.
class Replacer : public MixedModeMutator {
 public:
  Replacer(const Expr& from, const Expr& to) { Put(from, to); }
};

class HigherOrder {
 public:
  HigherOrder(IRModule* mod) : mod_(mod) {}  // NOLINT

  Function Differentiate(const Function& func) {
    Function f = Normal(func);
    for (const Var& p : f->params) CheckData(p, "a parameter");
    Type ret = KnownType(f).as<FuncTypeNode>()->ret_type;
    CheckData(func, "the result", ret);
    Chain chain(var_names_);
    back_ = Downcast<Var>(
        chain.Push(NewRef(Function(Array<Var>(), Tuple(Array<Expr>()), TupleType::Empty())), BackType(), &Names::back));
    Array<Var> params;
    for (const Var& p : f->params) {
      Var own(p->name_hint(), KnownType(p));
      own->checked_type_ = KnownType(p);
      params.push_back(own);
      vars_[p.get()] = Pair(own, KnownType(p), &chain);
    }
    Expr out = Walk(f->body, &chain);
    Seed(out, ret, &chain);
    chain.Push(CallOf(Read(back_), {}), Type(), &Names::unused);
    Array<Expr> grads;
    for (const Var& p : f->params) grads.push_back(Adjoint(*vars_.Find(p.get()), KnownType(p), &chain));
    Expr result = Tuple(Array<Expr>{Primal(out, ret), Tuple(grads)});
    return Function(params, chain.Close(result), Type(), {}, func->attrs);
  }

 private:
  /// Types, decompositions, and every value bound.
  Function Normal(const Function& func) {
    Expr e = DecomposeForGradient(PrepareForGradient(func, *mod_), *mod_);
    e = InsertLets(e, LetForm::kAll);
    transform::InferTypeOf(e, *mod_);
    return Downcast<Function>(e);
  }
  void CheckData(const Expr& at, const char* what, Type type = Type()) {
    std::vector<Type> stack{type.defined() ? type : KnownType(at)};
    while (!stack.empty()) {
      Type t = stack.back();
      stack.pop_back();
      if (const auto* tuple = t.as<TupleTypeNode>()) {
        stack.insert(stack.end(), tuple->fields.begin(), tuple->fields.end());
      } else if (!t.as<TensorTypeNode>()) {
        GradientError(at.get(),
                      fmt::format("{} has type {}; gradients are by tensors and tuples of them, of tensors and "
                                  "tuples",
                                  what, TypeText(t)),
                      "wrap it in a function of tensors");
      }
    }
  }

  // ---- Between values and values on their way. All take what may be written twice and give such: atoms and items.
  Expr Pair(const Expr& value, const Type& type, Chain* chain) {
    if (const auto* tensor = type.as<TensorTypeNode>()) {
      if (!tensor->dtype.is_floating()) return value;
      Expr ref = NewRef(FilledTensor(tensor, value, false));
      return chain->Push(Tuple(Array<Expr>{value, ref}), paired_.Mutate(type), &Names::pair);
    }
    const auto* tuple = type.as<TupleTypeNode>();
    if (!tuple || !HasFloating(type)) return value;
    Array<Expr> fields;
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      Expr field = Item(value, i, tuple->fields[i]);
      fields.push_back(support::WithStack([&] { return Pair(field, tuple->fields[i], chain); }));
    }
    return chain->Push(Tuple(fields), paired_.Mutate(type), &Names::pair);
  }
  Expr Primal(const Expr& pair, const Type& type) {
    if (IsFloating(type)) return Item(pair, 0, type);
    const auto* tuple = type.as<TupleTypeNode>();
    if (!tuple || !HasFloating(type)) return pair;
    Array<Expr> fields;
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      Expr field = Item(pair, i, paired_.Mutate(tuple->fields[i]));
      fields.push_back(support::WithStack([&] { return Primal(field, tuple->fields[i]); }));
    }
    Expr out = Tuple(fields);
    out->checked_type_ = type;
    return out;
  }
  /// The contents of the references. Fields without an adjoint give zeros.
  Expr Adjoint(const Expr& pair, const Type& type, Chain* chain) {
    if (IsFloating(type)) return chain->Push(Read(Item(pair, 1)), type, &Names::adjoint);
    if (const auto* tensor = type.as<TensorTypeNode>())
      return chain->Push(FilledTensor(tensor, pair, false), type, &Names::adjoint);
    const auto* tuple = type.as<TupleTypeNode>();
    Array<Expr> fields;
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      Expr field = Item(pair, i, paired_.Mutate(tuple->fields[i]));
      fields.push_back(support::WithStack([&] { return Adjoint(field, tuple->fields[i], chain); }));
    }
    return chain->Push(Tuple(fields), type, &Names::adjoint);
  }
  static void AddTo(const Expr& pair, const Expr& grad, Chain* chain) {
    chain->Push(Write(Item(pair, 1), Add(Read(Item(pair, 1)), grad)), Type(), &Names::unused);
  }
  void Seed(const Expr& pair, const Type& type, Chain* chain) {
    if (const auto* tensor = type.as<TensorTypeNode>()) {
      // The same tensor may occur twice in the result, so ones are added.
      if (tensor->dtype.is_floating()) AddTo(pair, FilledTensor(tensor, Item(pair, 0, type), true), chain);
      return;
    }
    const auto* tuple = type.as<TupleTypeNode>();
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      if (HasFloating(tuple->fields[i])) support::WithStack([&] { Seed(Item(pair, i), tuple->fields[i], chain); });
    }
  }
  void Accumulate(const Expr& pair, const Type& type, const Expr& grad, Chain* chain) {
    if (IsFloating(type)) return AddTo(pair, grad, chain);
    const auto* tuple = type.as<TupleTypeNode>();
    if (!tuple || !HasFloating(type)) return;
    const auto* literal = grad.as<TupleNode>();
    Expr whole = literal ? grad : chain->Push(grad);
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      if (!HasFloating(tuple->fields[i])) continue;
      Expr g = literal ? literal->fields[i] : Item(whole, i);
      if (g.defined()) support::WithStack([&] { Accumulate(Item(pair, i), tuple->fields[i], g, chain); });
    }
  }

  // ---- Expressions.
  Expr Block(const Expr& e) {
    Chain chain(var_names_);
    Expr out = support::WithStack([&] { return Walk(e, &chain); });
    return chain.Close(out);
  }
  /// A chain of lets, and the atom or value at its end.
  Expr Walk(Expr e, Chain* chain) {
    while (const auto* let = e.as<LetNode>()) {
      if (let->value.as<FunctionNode>()) {
        // It may call itself.
        Var own(let->var->name_hint());
        vars_[let->var.get()] = own;
        chain->bindings.push_back({own, Value(let->value, chain)});
      } else {
        vars_[let->var.get()] = Value(let->value, chain);
      }
      e = let->body;
    }
    return Value(e, chain);
  }
  Expr Atom(const Expr& e, Chain* chain) {
    if (e.as<VarNode>()) {
      const Expr* known = vars_.Find(e.get());
      if (!known) throw InternalError("a variable is used before it is bound");
      return *known;
    }
    return Value(e, chain);
  }
  /// A value's form on its way; what it needs is bound in `chain`.
  Expr Value(const Expr& e, Chain* chain) {
    if (e.as<VarNode>()) return Atom(e, chain);
    if (e.as<ConstantNode>()) return Pair(e, KnownType(e), chain);
    if (const auto* t = e.as<TupleNode>()) {
      Array<Expr> fields;
      for (const Expr& f : t->fields) fields.push_back(Atom(f, chain));
      return chain->Push(Tuple(fields));
    }
    if (const auto* g = e.as<TupleGetItemNode>()) return chain->Push(Item(Atom(g->tuple, chain), g->index));
    if (const auto* f = e.as<FunctionNode>()) return Closure(f);
    if (const auto* c = e.as<CallNode>()) return CallValue(c, chain);
    if (const auto* i = e.as<IfNode>()) {
      Expr cond = Atom(i->cond, chain);
      return chain->Push(If(cond, Block(i->true_branch), Block(i->false_branch)));
    }
    if (const auto* r = e.as<RefCreateNode>()) return chain->Push(NewRef(Atom(r->value, chain)));
    if (const auto* r = e.as<RefReadNode>()) return chain->Push(Read(Atom(r->ref, chain)));
    if (const auto* w = e.as<RefWriteNode>()) {
      Expr ref = Atom(w->ref, chain);
      return chain->Push(Write(ref, Atom(w->value, chain)));
    }
    if (const auto* m = e.as<MatchNode>()) return MatchValue(m, chain);
    if (const auto* k = e.as<ConstructorNode>()) {
      CheckConstructor(GetRef<Constructor>(k), e.get());
      return e;
    }
    if (const auto* g = e.as<GlobalVarNode>()) return Wrapped(g);
    GradientError(e.get(), "expressions of kind " + e.get()->GetTypeKey() + " have no gradient");
  }
  Expr Closure(const FunctionNode* f) {
    if (f->HasNonzeroAttr(attr::kPrimitive))
      GradientError(f, "a primitive function has no gradient", "differentiate before FuseOps, or run DefuseOps");
    Array<Var> params;
    for (const Var& p : f->params) {
      Var own(p->name_hint(), paired_.Mutate(KnownType(p)));
      params.push_back(own);
      vars_[p.get()] = own;
    }
    const auto* type = KnownType(GetRef<Expr>(f)).as<FuncTypeNode>();
    return Function(params, Block(f->body), paired_.Mutate(type->ret_type), f->type_params);
  }
  void CheckConstructor(const Constructor& k, const BaseExprNode* at) {
    NamesTensor names;
    for (const Type& t : k->inputs) names.VisitType(t);
    if (names.found) {
      GradientError(
          at, fmt::format("the constructor `{}` has a field whose type names a floating tensor", k->name_hint.view()),
          "make the tensor's type a parameter of the data type");
    }
  }
  Expr MatchValue(const MatchNode* m, Chain* chain) {
    Expr data = Atom(m->data, chain);
    Array<Clause> clauses;
    for (const Clause& c : m->clauses) {
      Pattern lhs = Own(c->lhs, m);
      clauses.push_back(Clause(lhs, Block(c->rhs)));
    }
    return chain->Push(Match(data, clauses, m->complete));
  }
  /// A pattern with variables of this program. Values of wildcards and variables are kept as they are.
  Pattern Own(const Pattern& p, const MatchNode* at) {
    if (const auto* v = p.as<PatternVarNode>()) {
      Var own(v->var->name_hint());
      vars_[v->var.get()] = own;
      return PatternVar(own);
    }
    if (const auto* c = p.as<PatternConstructorNode>()) {
      CheckConstructor(c->constructor, at);
      Array<Pattern> patterns;
      for (const Pattern& q : c->patterns) patterns.push_back(support::WithStack([&] { return Own(q, at); }));
      return PatternConstructor(c->constructor, patterns);
    }
    if (const auto* t = p.as<PatternTupleNode>()) {
      Array<Pattern> patterns;
      for (const Pattern& q : t->patterns) patterns.push_back(support::WithStack([&] { return Own(q, at); }));
      return PatternTuple(patterns);
    }
    return p;
  }

  Expr CallValue(const CallNode* c, Chain* chain) {
    if (c->op.as<OpNode>()) return OperatorValue(c, chain);
    Array<Expr> args;
    Expr callee;
    if (const auto* g = c->op.as<GlobalVarNode>()) {
      callee = Global(g);
      args.push_back(back_);
    } else if (const auto* f = c->op.as<FunctionNode>()) {
      callee = Closure(f);
    } else {
      callee = Atom(c->op, chain);
    }
    for (const Expr& a : c->args) args.push_back(Atom(a, chain));
    return chain->Push(CallOf(callee, args));
  }
  /// The form of a global function, which takes the reference to what goes back first; made once.
  GlobalVar Global(const GlobalVarNode* g) {
    std::string name = g->name_hint.str();
    if (auto it = globals_.find(name); it != globals_.end()) return it->second;
    const auto* func = (*mod_)->Lookup(name).as<FunctionNode>();
    if (!func) GradientError(g, fmt::format("@{} is no function of Relay", name));
    std::string fresh = name + "_grad";
    for (int i = 1; (*mod_)->ContainGlobalVar(fresh); ++i) fresh = fmt::format("{}_grad{}", name, i);
    GlobalVar var{String(fresh)};
    globals_.emplace(name, var);
    names_.push_back({var, GetRef<Function>(func)});
    return var;
  }
  Expr Wrapped(const GlobalVarNode* g) {
    GlobalVar callee = Global(g);
    BaseFunc func = (*mod_)->Lookup(g->name_hint.view());
    transform::InferTypeOf(func, *mod_);
    const auto* type = KnownType(func).as<FuncTypeNode>();
    Array<Var> params;
    Array<Expr> args{back_};
    for (const Type& t : type->arg_types) {
      Var v("x", paired_.Mutate(t));
      params.push_back(v);
      args.push_back(v);
    }
    return Function(params, CallOf(callee, args), paired_.Mutate(type->ret_type), type->type_params);
  }

 public:
  /// The global functions that the result calls, transformed; those that they call too.
  void AddGlobals() {
    for (size_t i = 0; i < names_.size(); ++i) {
      auto [var, func] = names_[i];
      transform::InferTypeOf(func, *mod_);
      Expr e = InsertLets(DecomposeForGradient(func, *mod_), LetForm::kAll);
      transform::InferTypeOf(e, *mod_);
      auto f = Downcast<Function>(e);
      Var back("back", BackType());
      Var outer = back_;
      back_ = back;
      auto made = Downcast<Function>(Closure(f.get()));
      back_ = outer;
      Array<Var> params{back};
      for (const Var& p : made->params) params.push_back(p);
      IRModule out = mod_->Copy();
      out.CopyOnWrite()->Add(var, Function(params, made->body, made->ret_type, made->type_params));
      *mod_ = out;
    }
    names_.clear();
  }

 private:
  Expr OperatorValue(const CallNode* c, Chain* chain) {
    Type out = runtime::RefCast<Type>(c->checked_type_);
    CallNode plain(*c);
    plain.args = Array<Expr>();
    std::vector<Expr> pairs;
    bool active = false;
    for (const Expr& a : c->args) {
      bool constant = a.as<ConstantNode>() != nullptr;
      Expr pair = constant ? Expr() : Atom(a, chain);
      pairs.push_back(pair);
      Expr value = constant ? a : Primal(pair, KnownType(a));
      // The same value on its way: a variable of ours.
      if (!value->checked_type_.defined()) value->checked_type_ = KnownType(a);
      plain.args.push_back(value);
      active = active || (!constant && HasFloating(KnownType(a)));
    }
    Call call{std::move(plain)};
    call->checked_type_ = out;
    call->span = c->span;
    Expr value = chain->Push(call, out);
    if (!HasFloating(out)) return value;
    Expr pair = Pair(value, out, chain);
    if (!active) return pair;
    Expr before = chain->Push(Read(back_), Type(), &Names::before);
    Chain inner(var_names_);
    Expr grad = Adjoint(pair, out, &inner);
    Array<Expr> grads = AdjointsOf(call, grad);
    Replacer replace(call, value);
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined() || !pairs[i].defined() || !HasFloating(KnownType(c->args[i]))) continue;
      Accumulate(pairs[i], KnownType(c->args[i]), Tidy(&replace, grads[i]), &inner);
    }
    chain->Push(Write(back_, Function(Array<Var>(), inner.Close(CallOf(before, {})), TupleType::Empty())), Type(),
                &Names::unused);
    return pair;
  }
  bool HasFloating(const Type& t) {
    if (!t->IsInstance<TupleTypeNode>()) return relay::HasFloating(t);
    keep_.push_back(t);
    return floating_.Has(t);
  }
  static Expr Tidy(Replacer* replace, const Expr& grad) {
    const auto* t = grad.as<TupleNode>();
    if (!t) return replace->Mutate(grad);
    Array<Expr> fields;
    for (const Expr& f : t->fields) fields.push_back(f.defined() ? replace->Mutate(f) : f);
    return Tuple(fields);
  }

  IRModule* mod_;
  Names var_names_;
  Paired paired_;
  FloatingTypes floating_;
  std::vector<Type> keep_;  ///< types that it has seen
  Var back_;
  PointerMap<Expr> vars_;
  std::unordered_map<std::string, GlobalVar> globals_;
  std::vector<std::pair<GlobalVar, Function>> names_;
};

}  // namespace

Function HigherOrderGradient(const Function& func, IRModule* mod) {
  HigherOrder pass(mod);
  Function out = pass.Differentiate(func);
  pass.AddGlobals();
  return out;
}

}  // namespace baton::relay
