// SPDX-License-Identifier: Apache-2.0
// Type inference: operator relations and unification, with an explicit stack. A node that carries a type is trusted,
// since its parts cannot change: after a rewrite only what is new is inferred.
#include <baton/ir/diagnostic.h>
#include <baton/ir/structural.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/support/stack.h>
#include <baton/tir/op.h>

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace baton::relay::transform {
namespace {

/// Types with holes (IncompleteType) that fill as facts come in.
class Unifier {
 public:
  /// What a hole stands for so far, at the outermost level.
  Type Find(Type t) const {
    while (t.as<IncompleteTypeNode>()) {
      auto it = bound_.find(t.get());
      if (it == bound_.end()) break;
      t = it->second;
    }
    return t;
  }

  /// Makes two types equal; false if they cannot be. `?` agrees with any dimension.
  bool Unify(const Type& x, const Type& y) {
    return support::WithStack([&]() -> bool {
      Type a = Find(x), b = Find(y);
      if (a.same_as(b)) return true;
      if (a.as<IncompleteTypeNode>()) return Bind(a, b);
      if (b.as<IncompleteTypeNode>()) return Bind(b, a);
      if (a.get()->type_index() != b.get()->type_index()) return false;
      if (const auto* s = a.as<TensorTypeNode>()) {
        const auto* t = b.as<TensorTypeNode>();
        if (!(s->dtype == t->dtype) || s->shape.size() != t->shape.size()) return false;
        for (size_t i = 0; i < s->shape.size(); ++i) {
          const auto *m = s->shape[i].as<IntImmNode>(), *n = t->shape[i].as<IntImmNode>();
          if (m && n && m->value != n->value) return false;
        }
        return true;
      }
      if (const auto* s = a.as<TupleTypeNode>()) return UnifyAll(s->fields, b.as<TupleTypeNode>()->fields);
      if (const auto* s = a.as<FuncTypeNode>()) {
        const auto* t = b.as<FuncTypeNode>();
        return UnifyAll(s->arg_types, t->arg_types) && Unify(s->ret_type, t->ret_type);
      }
      if (const auto* s = a.as<RelayRefTypeNode>()) return Unify(s->value, b.as<RelayRefTypeNode>()->value);
      if (const auto* s = a.as<TypeCallNode>()) {
        const auto* t = b.as<TypeCallNode>();
        return Unify(s->func, t->func) && UnifyAll(s->args, t->args);
      }
      if (const auto* s = a.as<GlobalTypeVarNode>()) return s->name_hint == b.as<GlobalTypeVarNode>()->name_hint;
      return StructuralEqual(a, b);
    });
  }
  bool UnifyAll(const Array<Type>& a, const Array<Type>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!Unify(a[i], b[i])) return false;
    }
    return true;
  }

  /// The type with its holes filled; holes that are left stay.
  Type Resolve(const Type& type) {
    return support::WithStack([&]() -> Type {
      Type t = Find(type);
      if (const auto* s = t.as<TupleTypeNode>()) {
        Array<Type> f = ResolveAll(s->fields);
        return f.same_as(s->fields) ? t : Type(TupleType(f));
      }
      if (const auto* s = t.as<FuncTypeNode>()) {
        Array<Type> args = ResolveAll(s->arg_types);
        Type ret = Resolve(s->ret_type);
        if (args.same_as(s->arg_types) && ret.same_as(s->ret_type)) return t;
        return FuncType(s->type_params, args, ret, s->type_constraints);
      }
      if (const auto* s = t.as<RelayRefTypeNode>()) {
        Type v = Resolve(s->value);
        return v.same_as(s->value) ? t : Type(RelayRefType(v));
      }
      if (const auto* s = t.as<TypeCallNode>()) {
        Array<Type> args = ResolveAll(s->args);
        return args.same_as(s->args) ? t : Type(TypeCall(s->func, args));
      }
      return t;
    });
  }
  Array<Type> ResolveAll(const Array<Type>& types) {
    Array<Type> out;
    bool same = true;
    for (const Type& t : types) {
      out.push_back(Resolve(t));
      same &= out.back().same_as(t);
    }
    return same ? types : out;
  }
  bool HasHole(const Type& type) const {
    std::vector<Type> work{type};
    while (!work.empty()) {
      Type t = Find(work.back());
      work.pop_back();
      if (!t.defined() || t.as<IncompleteTypeNode>()) return true;
      if (const auto* s = t.as<TupleTypeNode>()) work.insert(work.end(), s->fields.begin(), s->fields.end());
      if (const auto* s = t.as<FuncTypeNode>()) {
        work.insert(work.end(), s->arg_types.begin(), s->arg_types.end());
        work.push_back(s->ret_type);
      }
      if (const auto* s = t.as<RelayRefTypeNode>()) work.push_back(s->value);
      if (const auto* s = t.as<TypeCallNode>()) work.insert(work.end(), s->args.begin(), s->args.end());
    }
    return false;
  }

 private:
  bool Bind(const Type& hole, const Type& t) {
    // A hole inside its own value would be an infinite type.
    std::vector<Type> work{t};
    while (!work.empty()) {
      Type x = Find(work.back());
      work.pop_back();
      if (x.same_as(hole)) return false;
      if (const auto* s = x.as<TupleTypeNode>()) work.insert(work.end(), s->fields.begin(), s->fields.end());
      if (const auto* s = x.as<FuncTypeNode>()) {
        work.insert(work.end(), s->arg_types.begin(), s->arg_types.end());
        work.push_back(s->ret_type);
      }
      if (const auto* s = x.as<RelayRefTypeNode>()) work.push_back(s->value);
      if (const auto* s = x.as<TypeCallNode>()) work.insert(work.end(), s->args.begin(), s->args.end());
    }
    bound_[hole.get()] = t;
    keep_.push_back(hole);
    return true;
  }
  std::unordered_map<const Object*, Type> bound_;
  std::vector<Type> keep_;
};

/// Replaces type parameters.
Type Substitute(const Type& type, const std::unordered_map<const Object*, Type>& map) {
  return support::WithStack([&]() -> Type {
    if (auto it = map.find(type.get()); it != map.end()) return it->second;
    auto all = [&](const Array<Type>& types) {
      Array<Type> out;
      for (const Type& t : types) out.push_back(Substitute(t, map));
      return out;
    };
    if (const auto* s = type.as<TupleTypeNode>()) return TupleType(all(s->fields));
    if (const auto* s = type.as<FuncTypeNode>()) return FuncType(s->type_params, all(s->arg_types), Substitute(s->ret_type, map), s->type_constraints);
    if (const auto* s = type.as<RelayRefTypeNode>()) return RelayRefType(Substitute(s->value, map));
    if (const auto* s = type.as<TypeCallNode>()) return TypeCall(s->func, all(s->args));
    return type;
  });
}

class Inferencer {
 public:
  explicit Inferencer(IRModule mod) : mod_(std::move(mod)) {}

  /// Types of global functions known before: annotations, or what inference found.
  void SetGlobal(const std::string& name, Type type) { globals_[name] = std::move(type); }

  /// Infers and writes the types down; throws with all diagnostics found.
  Type Infer(const Expr& root) {
    Visit(root);
    Solve();
    if (diags_.empty()) CheckComplete();
    diags_.ThrowIfAny();
    for (const Expr& e : order_) e->checked_type_ = solver_.Resolve(types_.at(e.get()));
    return solver_.Resolve(types_.at(root.get()));
  }

 private:
  struct Item {
    Expr expr;
    int stage;
  };
  struct Relation {
    Expr call;
    const OpDef* def;
    Array<Type> types;  // arguments, result
  };

  Type Hole() { return IncompleteType(TypeKind::kType); }
  bool Has(const Expr& e) const { return types_.count(e.get()) != 0; }
  const Type& TypeOfExpr(const Expr& e) const { return types_.at(e.get()); }
  void Put(const Expr& e, Type t) {
    types_[e.get()] = std::move(t);
    order_.push_back(e);
  }
  std::string Text(const Type& t) { return AsText(solver_.Resolve(t)); }
  void Unify(const Type& a, const Type& b, const Expr& where, const char* what) {
    if (!solver_.Unify(a, b)) diags_.Error(where->span, std::string(what) + ": " + Text(a) + " and " + Text(b) + " differ");
  }

  void Visit(const Expr& root) {
    std::vector<Item> stack{{root, 0}};
    while (!stack.empty()) {
      Expr e = stack.back().expr;
      int stage = stack.back().stage++;
      if (!e.defined()) throw CompileError("a null expression has no type");
      if (stage == 0 && Has(e)) {
        stack.pop_back();
        continue;
      }
      // Parts of a typed node are typed, and neither can change.
      if (stage == 0 && e->checked_type_.defined() && !e.as<GlobalVarNode>()) {
        types_[e.get()] = Downcast<Type>(e->checked_type_);
        stack.pop_back();
        continue;
      }
      auto push = [&](const Expr& c) {
        if (!c.defined()) throw CompileError("an expression of type " + e.get()->GetTypeKey() + " has a null part");
        if (!Has(c)) stack.push_back({c, 0});
      };
      if (const auto* l = e.as<LetNode>()) {
        if (stage == 0) {
          if (!Has(l->var)) Put(l->var, l->var->type_annotation.defined() ? l->var->type_annotation : Hole());
          push(l->value);
        } else if (stage == 1) {
          Unify(TypeOfExpr(l->var), TypeOfExpr(l->value), e, "the binding's variable and value");
          // A function of type parameters keeps them for its uses.
          if (TypeOfExpr(l->value).as<FuncTypeNode>() && solver_.Find(TypeOfExpr(l->var)).as<IncompleteTypeNode>()) types_[l->var.get()] = TypeOfExpr(l->value);
          push(l->body);
        } else {
          Put(e, TypeOfExpr(l->body));
          stack.pop_back();
        }
      } else if (const auto* f = e.as<FunctionNode>()) {
        if (stage == 0) {
          for (const Var& p : f->params) {
            if (Has(p)) continue;
            Put(p, p->checked_type_.defined() ? Downcast<Type>(p->checked_type_)
                                              : p->type_annotation.defined() ? p->type_annotation : Hole());
          }
          push(f->body);
        } else {
          Type ret = TypeOfExpr(f->body);
          if (f->ret_type.defined()) Unify(f->ret_type, ret, e, "the function's declared result and its body");
          Array<Type> args;
          for (const Var& p : f->params) args.push_back(TypeOfExpr(p));
          Put(e, FuncType(f->type_params, args, f->ret_type.defined() ? f->ret_type : ret, Array<TypeConstraint>()));
          stack.pop_back();
        }
      } else if (const auto* m = e.as<MatchNode>()) {
        if (stage == 0) {
          push(m->data);
        } else if (stage == 1) {
          for (const Clause& c : m->clauses) BindPattern(c->lhs, TypeOfExpr(m->data), e);
          for (size_t i = m->clauses.size(); i-- > 0;) push(m->clauses[static_cast<int64_t>(i)]->rhs);
        } else {
          if (m->clauses.empty()) {
            diags_.Error(e->span, "a match has no clause");
            Put(e, Hole());
          } else {
            Type t = TypeOfExpr(m->clauses[0]->rhs);
            for (const Clause& c : m->clauses) Unify(t, TypeOfExpr(c->rhs), c->rhs, "the clauses of a match");
            Put(e, t);
          }
          stack.pop_back();
        }
      } else if (stage == 0) {
        if (const auto* c = e.as<CallNode>()) {
          for (size_t i = c->args.size(); i-- > 0;) push(c->args[static_cast<int64_t>(i)]);
          if (!c->op.as<OpNode>()) push(c->op);
        } else if (const auto* t = e.as<TupleNode>()) {
          for (size_t i = t->fields.size(); i-- > 0;) push(t->fields[static_cast<int64_t>(i)]);
        } else if (const auto* g = e.as<TupleGetItemNode>()) {
          push(g->tuple);
        } else if (const auto* i = e.as<IfNode>()) {
          push(i->false_branch), push(i->true_branch), push(i->cond);
        } else if (const auto* r = e.as<RefCreateNode>()) {
          push(r->value);
        } else if (const auto* r = e.as<RefReadNode>()) {
          push(r->ref);
        } else if (const auto* w = e.as<RefWriteNode>()) {
          push(w->value), push(w->ref);
        }
      } else {
        Put(e, Compute(e));
        stack.pop_back();
      }
    }
  }

  Type Compute(const Expr& e) {
    if (const auto* c = e.as<CallNode>()) return ComputeCall(c, e);
    if (const auto* c = e.as<ConstantNode>()) return c->tensor_type();
    if (const auto* t = e.as<TupleNode>()) {
      Array<Type> fields;
      for (const Expr& f : t->fields) fields.push_back(TypeOfExpr(f));
      return TupleType(fields);
    }
    if (const auto* v = e.as<VarNode>()) return v->type_annotation.defined() ? v->type_annotation : Hole();
    if (const auto* g = e.as<TupleGetItemNode>()) {
      Type t = solver_.Find(TypeOfExpr(g->tuple));
      if (t.as<IncompleteTypeNode>()) {
        SolveRound();
        t = solver_.Find(t);
      }
      const auto* tuple = t.as<TupleTypeNode>();
      if (!tuple) {
        diags_.Error(e->span, "field " + std::to_string(g->index) + " is taken of a value that is no tuple: " + Text(t));
        return Hole();
      }
      if (g->index < 0 || g->index >= static_cast<int64_t>(tuple->fields.size())) {
        diags_.Error(e->span, "field " + std::to_string(g->index) + " is taken of a tuple of " + std::to_string(tuple->fields.size()));
        return Hole();
      }
      return tuple->fields[g->index];
    }
    if (const auto* i = e.as<IfNode>()) {
      Unify(TypeOfExpr(i->cond), TensorType::Scalar(DataType::Bool()), i->cond, "the condition of an if is a scalar bool");
      Unify(TypeOfExpr(i->true_branch), TypeOfExpr(i->false_branch), e, "the branches of an if");
      return TypeOfExpr(i->true_branch);
    }
    if (const auto* r = e.as<RefCreateNode>()) return RelayRefType(TypeOfExpr(r->value));
    if (const auto* r = e.as<RefReadNode>()) {
      Type v = Hole();
      Unify(TypeOfExpr(r->ref), RelayRefType(v), e, "what is read is a reference");
      return v;
    }
    if (const auto* w = e.as<RefWriteNode>()) {
      Unify(TypeOfExpr(w->ref), RelayRefType(TypeOfExpr(w->value)), e, "what is written is a reference of the value's type");
      return TupleType::Empty();
    }
    if (const auto* g = e.as<GlobalVarNode>()) {
      auto it = globals_.find(g->name_hint.str());
      if (it != globals_.end()) return it->second;
      diags_.Error(e->span, "the module has no function @" + g->name_hint.str());
      return Hole();
    }
    if (const auto* c = e.as<ConstructorNode>()) return ConstructorType(c);
    if (const auto* o = e.as<OpNode>()) {
      diags_.Error(e->span, "operator `" + o->name.str() + "` stands as a value; wrap it in a function");
      return Hole();
    }
    throw InternalError("no type rule for " + e.get()->GetTypeKey());
  }

  Type ConstructorType(const ConstructorNode* c) {
    TypeData data = mod_->LookupTypeDef(c->belong_to);
    Array<Type> params;
    for (const TypeVar& v : data->type_vars) params.push_back(v);
    Type result = params.empty() ? Type(TypeCall(c->belong_to, params)) : Type(TypeCall(c->belong_to, params));
    return FuncType(data->type_vars, c->inputs, result, Array<TypeConstraint>());
  }

  FuncType Instantiate(const FuncTypeNode* f, const Array<Type>& given) {
    if (f->type_params.empty()) return GetRef<FuncType>(f);
    std::unordered_map<const Object*, Type> map;
    for (size_t i = 0; i < f->type_params.size(); ++i) {
      map[f->type_params[static_cast<int64_t>(i)].get()] = i < given.size() && given[static_cast<int64_t>(i)].defined() ? given[static_cast<int64_t>(i)] : Hole();
    }
    Array<Type> args;
    for (const Type& t : f->arg_types) args.push_back(Substitute(t, map));
    return FuncType(Array<TypeVar>(), args, Substitute(f->ret_type, map), f->type_constraints);
  }

  Type ComputeCall(const CallNode* c, const Expr& e) {
    if (const auto* op = c->op.as<OpNode>()) {
      const OpDef* def = DefOf(c->op);
      if (!def || !def->type_rel) {
        diags_.Error(e->span, "operator `" + op->name.str() + "` has no type relation");
        return Hole();
      }
      if (def->num_inputs >= 0 && static_cast<int>(c->args.size()) != def->num_inputs) {
        diags_.Error(e->span, "[" + op->name.str() + "] takes " + std::to_string(def->num_inputs) + " arguments, got " + std::to_string(c->args.size()));
        return Hole();
      }
      if (def->attrs && !c->attrs.defined()) {
        diags_.Error(e->span, "[" + op->name.str() + "] needs its attributes (" + std::string(def->attrs()) + ")");
        return Hole();
      }
      Relation r{e, def, {}};
      for (const Expr& a : c->args) r.types.push_back(TypeOfExpr(a));
      Type result = Hole();
      r.types.push_back(result);
      if (!Try(&r)) pending_.push_back(r);
      return result;
    }
    Type callee = solver_.Find(TypeOfExpr(c->op));
    Array<Type> args;
    for (const Expr& a : c->args) args.push_back(TypeOfExpr(a));
    if (callee.as<IncompleteTypeNode>()) {
      Type result = Hole();
      Unify(callee, FuncType(Array<TypeVar>(), args, result, Array<TypeConstraint>()), e, "the callee");
      return result;
    }
    const auto* f = callee.as<FuncTypeNode>();
    if (!f) {
      diags_.Error(e->span, "a value of type " + Text(callee) + " is called");
      return Hole();
    }
    if (f->arg_types.size() != args.size()) {
      diags_.Error(e->span, "the function takes " + std::to_string(f->arg_types.size()) + " arguments, got " + std::to_string(args.size()));
      return Hole();
    }
    FuncType inst = Instantiate(f, c->type_args);
    for (size_t i = 0; i < args.size(); ++i) {
      int64_t k = static_cast<int64_t>(i);
      Unify(inst->arg_types[k], args[k], c->args[k], ("argument " + std::to_string(i) + " of the call").c_str());
    }
    return inst->ret_type;
  }

  void BindPattern(const Pattern& pattern, const Type& type, const Expr& where) {
    std::vector<std::pair<Pattern, Type>> work{{pattern, type}};
    while (!work.empty()) {
      auto [p, t] = work.back();
      work.pop_back();
      if (const auto* v = p.as<PatternVarNode>()) {
        if (!Has(v->var)) Put(v->var, v->var->type_annotation.defined() ? v->var->type_annotation : Hole());
        Unify(TypeOfExpr(v->var), t, where, "a pattern's variable");
      } else if (const auto* c = p.as<PatternConstructorNode>()) {
        Type ct = ConstructorType(c->constructor.get());
        FuncType inst = Instantiate(ct.as<FuncTypeNode>(), {});
        Unify(inst->ret_type, t, where, "a pattern's constructor and the matched value");
        if (inst->arg_types.size() != c->patterns.size()) {
          diags_.Error(where->span, "constructor " + c->constructor->name_hint.str() + " has " + std::to_string(inst->arg_types.size()) +
                                        " fields, the pattern " + std::to_string(c->patterns.size()));
          continue;
        }
        for (size_t i = 0; i < c->patterns.size(); ++i) work.push_back({c->patterns[static_cast<int64_t>(i)], inst->arg_types[static_cast<int64_t>(i)]});
      } else if (const auto* tp = p.as<PatternTupleNode>()) {
        Array<Type> fields;
        for (size_t i = 0; i < tp->patterns.size(); ++i) fields.push_back(Hole());
        Unify(TupleType(fields), t, where, "a tuple pattern and the matched value");
        for (size_t i = 0; i < tp->patterns.size(); ++i) work.push_back({tp->patterns[static_cast<int64_t>(i)], fields[static_cast<int64_t>(i)]});
      }
    }
  }

  struct Reporter : TypeReporter {
    Inferencer* self;
    const Relation* rel;
    void Assign(const Type& dst, const Type& src) override {
      if (!self->solver_.Unify(dst, src)) {
        throw CompileError(std::string("[") + rel->def->name + "] a value of type " + self->Text(dst) + " stands where " +
                           self->Text(src) + " is needed");
      }
    }
    bool AssertEQ(const PrimExpr& a, const PrimExpr& b) override {
      const auto *x = a.as<IntImmNode>(), *y = b.as<IntImmNode>();
      return !(x && y && x->value != y->value);
    }
    const NDArray* ConstantArg(int i) override {
      const auto* call = rel->call.as<CallNode>();
      if (i < 0 || i >= static_cast<int>(call->args.size())) return nullptr;
      const auto* c = call->args[i].as<ConstantNode>();
      return c ? &c->data : nullptr;
    }
  };

  /// True if the relation is done with (also when it failed).
  bool Try(Relation* r) {
    Array<Type> types = solver_.ResolveAll(r->types);
    Reporter reporter;
    reporter.self = this;
    reporter.rel = r;
    try {
      const auto* call = r->call.as<CallNode>();
      return r->def->type_rel(types, static_cast<int>(types.size()) - 1, call->attrs, reporter);
    } catch (const Error& err) {
      if (err.kind() == "InternalError" || err.kind() == "MemoryError") throw;
      std::string text = err.message();
      // Relations that several operators share do not know which one they speak of.
      if (text.rfind("[R", 0) == 0) text = "[" + std::string(r->def->name) + " " + text.substr(1);
      diags_.Error(r->call->span, text, ArgumentTypes(*r));
      return true;
    }
  }
  std::string ArgumentTypes(const Relation& r) {
    std::string s;
    for (size_t i = 0; i + 1 < r.types.size() && i < 6; ++i) s += (i ? ", " : "") + Text(r.types[static_cast<int64_t>(i)]);
    return s;
  }

  /// One look at each open relation; true if one was decided.
  bool SolveRound() {
    bool progress = false;
    std::vector<Relation> open;
    for (Relation& r : pending_) {
      if (Try(&r)) {
        progress = true;
      } else {
        open.push_back(r);
      }
    }
    pending_ = std::move(open);
    return progress;
  }
  void Solve() {
    while (!pending_.empty() && diags_.empty() && SolveRound()) {
    }
  }

  void CheckComplete() {
    for (const Relation& r : pending_) {
      diags_.Error(r.call->span, std::string("the type of `") + r.def->name + "` cannot be decided from its arguments", ArgumentTypes(r),
                   "annotate the variables that it uses with their types");
      if (diags_.full()) return;
    }
    if (!diags_.empty()) return;
    for (const Expr& e : order_) {
      if (!solver_.HasHole(types_.at(e.get()))) continue;
      const auto* v = e.as<VarNode>();
      diags_.Error(e->span, (v ? "the type of %" + v->name_hint().str() : "the type of an expression (" + e.get()->GetTypeKey() + ")") +
                                " cannot be inferred",
                   "", "annotate it: %x: Tensor[(1, 3), float32]");
      if (diags_.size() >= 5) return;
    }
  }

  IRModule mod_;
  Unifier solver_;
  std::unordered_map<const Object*, Type> types_;
  std::vector<Expr> order_;
  std::vector<Relation> pending_;
  std::unordered_map<std::string, Type> globals_;
  DiagnosticList diags_;
};

/// The type that a function's annotations give, if they are complete.
Type AnnotatedType(const Function& f) {
  if (!f->ret_type.defined()) return Type();
  Array<Type> args;
  for (const Var& p : f->params) {
    if (!p->type_annotation.defined()) return Type();
    args.push_back(p->type_annotation);
  }
  return FuncType(f->type_params, args, f->ret_type, Array<TypeConstraint>());
}

IRModule InferModule(IRModule mod) {
  // Callees before callers where annotations do not say the type; within a cycle annotations must.
  std::unordered_map<std::string, Type> known;
  std::vector<std::pair<GlobalVar, Function>> todo;
  for (const auto& [var, func] : mod->functions) {
    const auto* f = func.as<FunctionNode>();
    if (!f) {
      if (func->checked_type_.defined()) known[var->name_hint.str()] = Downcast<Type>(func->checked_type_);
      continue;
    }
    Function fn = GetRef<Function>(f);
    if (fn->checked_type_.defined()) {
      known[var->name_hint.str()] = Downcast<Type>(fn->checked_type_);
      continue;
    }
    if (Type t = AnnotatedType(fn); t.defined()) known[var->name_hint.str()] = t;
    todo.push_back({var, fn});
  }
  std::unordered_set<std::string> done, open;
  std::unordered_map<std::string, Function> by_name;
  for (const auto& [var, fn] : todo) by_name.emplace(var->name_hint.str(), fn);
  auto callees = [&](const Function& f) {
    std::vector<std::string> out;
    PostOrder(f, [&](const Expr& e) {
      if (const auto* g = e.as<GlobalVarNode>()) out.push_back(g->name_hint.str());
    });
    return out;
  };
  auto infer = [&](const std::string& name) {
    Inferencer in(mod);
    for (const auto& [n, t] : known) in.SetGlobal(n, t);
    known[name] = in.Infer(by_name.at(name));
    done.insert(name);
  };
  for (const auto& [var, fn] : todo) {
    std::vector<std::pair<std::string, bool>> stack{{var->name_hint.str(), false}};
    while (!stack.empty()) {
      auto [name, ready] = stack.back();
      stack.pop_back();
      if (done.count(name)) continue;
      if (ready) {
        infer(name);
        continue;
      }
      if (!open.insert(name).second) continue;
      stack.push_back({name, true});
      for (const std::string& c : callees(by_name.at(name))) {
        if (by_name.count(c) && !known.count(c) && !done.count(c)) {
          if (open.count(c)) {
            throw CompileError("@" + c + " calls itself, so its result's type must be written: fn(...) -> T");
          }
          stack.push_back({c, false});
        }
      }
    }
  }
  return mod;
}

}  // namespace

Pass InferType() {
  return MakePass<InferType>({
      .doc = "Infers and stores the type of each expression; nodes that have one are trusted.",
      .opt_level = 0,
      .run = [](IRModule mod, PassContext) { return InferModule(mod); },
  });
}

/// Type of an expression whose free variables are annotated; also stores the types.
Type InferTypeOf(const Expr& expr, const IRModule& mod) {
  if (expr->checked_type_.defined()) return Downcast<Type>(expr->checked_type_);
  Inferencer in(mod);
  for (const auto& [var, func] : mod->functions) {
    if (func->checked_type_.defined()) {
      in.SetGlobal(var->name_hint.str(), Downcast<Type>(func->checked_type_));
    } else if (const auto* f = func.as<FunctionNode>()) {
      if (Type t = AnnotatedType(GetRef<Function>(f)); t.defined()) in.SetGlobal(var->name_hint.str(), t);
    }
  }
  return in.Infer(expr);
}
Type InferTypeOf(const Expr& expr) { return InferTypeOf(expr, IRModule(Map<GlobalVar, BaseFunc>())); }

namespace {
const RegisterPass<InferType> registered;
}
BATON_REGISTER_GLOBAL("relay._transform.InferTypeLocal").set_body_typed([](Expr e) { return InferTypeOf(e); });

}  // namespace baton::relay::transform
