// SPDX-License-Identifier: Apache-2.0
// Functions as values become data: a data type for each type of functions, a constructor of it for each function
// expression, whose fields are what it captures, and a global function that applies such data to arguments. Functions
// of the module are cloned for the types that they are called at. Reynolds, Definitional interpreters for higher-order
// programming languages, 1972; typed as in Bell, Bellegarde and Hook, Type-driven defunctionalization, 1997.
#include <baton/ir/structural.h>
#include <baton/relay/transform.h>
#include <baton/runtime/interrupt.h>
#include <baton/support/pointer_map.h>
#include <fmt/format.h>
#include <relay/expr/captured_vars.h>
#include <relay/text/type_text.h>
#include <relay/transform/anf_blocks.h>
#include <relay/transform/function_types.h>
#include <relay/types/type_solver.h>

#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::relay {
namespace {

/// Bindings of type parameters, outermost first.
using TypeEnv = std::vector<std::pair<const Object*, Type>>;

/// A function without a value where it is bound, but one for each type it is used at: of type parameters,
/// or primitive.
struct Template {
  Expr what;  ///< a function, a global one or a constructor
  Var self;   ///< by which it calls itself; may be null
  size_t env = 0;
  std::vector<Var> captured;
};

/// A function that is to be written: in place of a global one, or as a case of those that are values.
struct Job {
  const FunctionNode* source;
  TypeEnv env;
  PointerMap<Expr> vars;
  GlobalVar global;
  FunctionData* data = nullptr;
  size_t at = 0;
};

class Defunctionalizer {
 public:
  explicit Defunctionalizer(IRModule* mod) : mod_(mod), names_(*mod), types_(*mod, &names_) {}

  Function Run(const Function& func);

 private:
  void CheckInterface(const Function& func, const FuncTypeNode* type);
  Function Normal(const Function& func);
  const std::vector<NormalBlock>& BlocksOf(const FunctionNode* f);

  // ---- Types: `Concrete` without type parameters, `Data` without functions as well.
  Type Concrete(const Type& t) const { return env_.empty() ? t : TypeSolver::Substitute(t, env_); }
  Type ConcreteOf(const Expr& e);
  Type Data(const Type& concrete) { return types_.Data(concrete); }
  Array<Type> TypeArgs(const Array<Type>& in);

  // ---- A function.
  Function Write(const Job& job);
  void Declare(size_t b);
  Pattern Own(const Pattern& p, const Type& type);
  Template TemplateOf(const NormalBlock::Step& s);
  /// Variables with values that a function names: of templates, what they capture.
  std::vector<Var> Captured(const FunctionNode* f, const Var& self);

  Expr Build(size_t b);
  Expr Value(const NormalBlock::Step& s);
  Expr Variable(const VarNode* v);
  /// `wanted`: the type that it has there, for what has many; may be null for what has one.
  Expr Atom(const Expr& e, const Type& wanted = Type());

  // ---- Functions as values.
  /// The data that stands for a function of this type.
  Expr Instance(const Template& t, const Type& wanted, const BaseExprNode* at);
  static std::string HintOf(const Template& t);
  static FuncType PlainType(const Array<Type>& args, const Type& result) {
    return FuncType(Array<TypeVar>(), args, result, Array<TypeConstraint>());
  }
  static Expr CallOf(const Expr& f, const Array<Expr>& args);
  /// The function to call for a global function, a constructor or a primitive function of that type.
  Expr NameAt(const Expr& what, const Array<Type>& type_args, const Type& type, const BaseExprNode* at);
  /// Binds the type parameters of `f` by types that parts of it have. Parts are concrete.
  Array<Type> Bindings(const FuncType& f, std::vector<std::pair<Type, Type>> parts, const BaseExprNode* at,
                       const std::vector<std::pair<Type, FuncType>>& open = {}, const Array<Type>& given = {});

  // ---- Calls.
  Expr CallValue(const CallNode* c);
  /// With type parameters for what takes its type from where it is used.
  Type ArgType(const Expr& e);
  Expr Applied(const CallNode* c, const Type& type, const Expr& value);
  Expr OperatorCall(const CallNode* c);
  /// A global function at its type arguments: itself where it has nothing to do with functions as values.
  Expr GlobalAt(const GlobalVarNode* g, const Array<Type>& type_args, const BaseExprNode* at);

  static constexpr size_t kMaxClones = 1000;
  using ByTypes = std::unordered_map<Type, size_t, StructuralHasher, StructuralEq>;
  struct CaseKey {
    const Object* what;
    const FunctionData* data;
    bool operator==(const CaseKey&) const = default;
  };
  struct CaseHash {
    size_t operator()(const CaseKey& k) const {
      return std::hash<const void*>()(k.what) * 31 + std::hash<const void*>()(k.data);
    }
  };

  IRModule* mod_;
  FreshNames names_;
  FunctionTypes types_;
  std::unique_ptr<HigherGlobals> higher_;
  CapturedVars captured_;
  std::vector<runtime::ObjectRef> keep_;
  PointerMap<std::unique_ptr<std::vector<NormalBlock>>> blocks_of_;
  PointerMap<Function> sources_;
  PointerMap<Template> templates_;  ///< by variable
  std::unordered_map<CaseKey, ByTypes, CaseHash> cases_;
  std::unordered_map<std::string, std::unordered_map<Type, GlobalVar, StructuralHasher, StructuralEq>> clones_of_;
  std::vector<std::pair<GlobalVar, Function>> clones_;
  std::deque<Job> jobs_;
  // State of the function that is written.
  TypeEnv env_;
  const std::vector<NormalBlock>* blocks_ = nullptr;
  PointerMap<Expr> vars_;
  PointerMap<Array<Pattern>> patterns_;
  std::vector<Type> wanted_;
  std::vector<Expr> made_;
};

Function Defunctionalizer::Run(const Function& func) {
  const auto* type = transform::InferTypeOf(func, *mod_).as<FuncTypeNode>();
  CheckInterface(func, type);
  higher_ = std::make_unique<HigherGlobals>(*mod_, &types_);
  if (!higher_->IsHigher(func)) return func;
  const Function source = Normal(func);
  Job root{.source = source.get()};
  Function made = Write(root);
  for (; !jobs_.empty(); jobs_.pop_front()) {
    const Job& job = jobs_.front();
    Function f = Write(job);
    if (job.data) {
      job.data->bodies[job.at] = f->body;
    } else {
      clones_.push_back({job.global, f});
    }
  }
  IRModuleNode* grown = mod_->CopyOnWrite();
  types_.AddTo(grown);
  for (const auto& [var, f] : clones_) grown->Add(var, f);
  return made;
}

void Defunctionalizer::CheckInterface(const Function& func, const FuncTypeNode* type) {
  if (!type->type_params.empty()) {
    FailAt(func.get(), fmt::format("the function has type parameters: {}", TypeText(GetRef<Type>(type))),
           "defunctionalize a function that calls it at the types it is used at");
  }
  const auto check = [&](const Type& t, const BaseExprNode* at, const char* what) {
    if (!types_.HasFunction(t)) return;
    FailAt(at, fmt::format("{} has type {}, which has functions in it", what, TypeText(t)),
           "they would be data that the caller cannot make: wrap it in a function without them");
  };
  for (size_t i = 0; i < func->params.size(); ++i) {
    check(type->arg_types[i], func->params[i].get(),
          fmt::format("the parameter %{}", func->params[i]->name_hint().view()).c_str());
  }
  check(type->ret_type, func.get(), "the result");
}

Function Defunctionalizer::Normal(const Function& func) {
  Function f = TypedNormalForm(func, *mod_);
  captured_.Of(f.get());
  keep_.push_back(f);
  return f;
}

const std::vector<NormalBlock>& Defunctionalizer::BlocksOf(const FunctionNode* f) {
  auto& known = blocks_of_[f];
  if (!known) known = std::make_unique<std::vector<NormalBlock>>(NormalBlocks(f->body, false));
  return *known;
}

Type Defunctionalizer::ConcreteOf(const Expr& e) {
  if (e.as<GlobalVarNode>() || e.as<ConstructorNode>()) return TypeOfName(e, *mod_);
  return Concrete(e->checked_type());
}

Array<Type> Defunctionalizer::TypeArgs(const Array<Type>& in) {
  Array<Type> out;
  for (const Type& t : in) out.push_back(Data(Concrete(t)));
  return out;
}

Function Defunctionalizer::Write(const Job& job) {
  env_ = job.env;
  vars_ = job.vars;
  blocks_ = &BlocksOf(job.source);
  made_.assign(blocks_->size(), Expr());
  wanted_.assign(blocks_->size(), Type());
  Array<Var> params;
  for (size_t i = 0; i < job.source->params.size(); ++i) {
    const Var& p = job.source->params[i];
    Var own = job.data ? job.data->params[i] : Var(p->vid, Data(ConcreteOf(p)));
    vars_[p.get()] = own;
    params.push_back(own);
  }
  const Type type = Concrete(job.source->checked_type());
  wanted_[0] = type.as<FuncTypeNode>()->ret_type;
  for (size_t b = 0; b < blocks_->size(); ++b) Declare(b);
  for (size_t b = blocks_->size(); b-- > 0;) made_[b] = Build(b);
  return Function(params, made_[0], Data(wanted_[0]), {}, job.source->attrs);
}

void Defunctionalizer::Declare(size_t b) {
  for (const NormalBlock::Step& s : (*blocks_)[b].steps) {
    runtime::PollInterrupt();
    if (Template t = TemplateOf(s); t.what.defined()) {
      templates_[s.var.get()] = std::move(t);
      continue;
    }
    const Type type = ConcreteOf(s.value);
    vars_[s.var.get()] = Var(s.var->vid, Data(type));
    if (s.first < 0) continue;
    size_t own = 2;
    if (const auto* m = s.value.as<MatchNode>()) {
      own = m->clauses.size();
      const Type data = ConcreteOf(m->data);
      Array<Pattern> patterns;
      for (const Clause& c : m->clauses) patterns.push_back(Own(c->lhs, data));
      patterns_[m] = patterns;
    }
    for (size_t k = 0; k < own; ++k) wanted_[s.first + k] = type;
  }
}

Pattern Defunctionalizer::Own(const Pattern& p, const Type& type) {
  if (const auto* v = p.as<PatternVarNode>()) {
    Var own(v->var->vid, Data(type));
    vars_[v->var.get()] = own;
    return PatternVar(own);
  }
  if (const auto* c = p.as<PatternConstructorNode>()) {
    Array<Type> fields = types_.FieldsOf(c->constructor.get(), type);
    Array<Pattern> parts;
    for (size_t i = 0; i < fields.size(); ++i)
      parts.push_back(support::WithStack([&] { return Own(c->patterns[i], fields[i]); }));
    return PatternConstructor(types_.DataConstructor(c->constructor, type), parts);
  }
  if (const auto* t = p.as<PatternTupleNode>()) {
    Array<Pattern> parts;
    for (size_t i = 0; i < t->patterns.size(); ++i) {
      const Type& field = type.as<TupleTypeNode>()->fields[i];
      parts.push_back(support::WithStack([&] { return Own(t->patterns[i], field); }));
    }
    return PatternTuple(parts);
  }
  return p;
}

Template Defunctionalizer::TemplateOf(const NormalBlock::Step& s) {
  Template t;
  const Expr& e = s.value;
  if (const auto* v = e.as<VarNode>()) {
    if (const Template* known = templates_.Find(v)) t = *known;
  } else if (e.as<GlobalVarNode>() || e.as<ConstructorNode>()) {
    if (!TypeOfName(e, *mod_)->type_params.empty()) t.what = e;
  } else if (const auto* f = e.as<FunctionNode>()) {
    if (f->type_params.empty() && !IsPrimitiveFunction(e)) return t;
    t = Template{e, s.var, env_.size(), {}};
    t.captured = Captured(f, s.var);
  }
  return t;
}

std::vector<Var> Defunctionalizer::Captured(const FunctionNode* f, const Var& self) {
  std::vector<Var> out;
  PointerSet seen;
  const auto add = [&](const Var& v) {
    if (seen.Add(v.get())) out.push_back(v);
  };
  for (const Var& v : captured_.Of(f)) {
    if (v.same_as(self)) continue;
    if (const Template* known = templates_.Find(v.get())) {
      for (const Var& inner : known->captured) add(inner);
    } else {
      add(v);
    }
  }
  return out;
}

Expr Defunctionalizer::Build(size_t b) {
  const NormalBlock& block = (*blocks_)[b];
  std::vector<std::pair<Var, Expr>> lets;
  for (const NormalBlock::Step& s : block.steps) {
    runtime::PollInterrupt();
    if (templates_.Has(s.var.get())) continue;
    Expr value = Value(s);
    if (!value->span.defined()) value->span = s.value->span;
    lets.push_back({Downcast<Var>(*vars_.Find(s.var.get())), value});
  }
  Expr out;
  if (block.EndsInLast() && !lets.empty() && !templates_.Has(block.tail.get())) {
    out = lets.back().second;  // so that a call that is last stays last
    lets.pop_back();
  } else {
    out = Atom(block.tail, wanted_[b]);
  }
  for (size_t i = lets.size(); i-- > 0;) out = Let(lets[i].first, lets[i].second, out);
  return out;
}

Expr Defunctionalizer::Value(const NormalBlock::Step& s) {
  const Expr& e = s.value;
  if (const auto* f = e.as<FunctionNode>()) {
    Template t{e, s.var, env_.size(), Captured(f, s.var)};
    return Instance(t, ConcreteOf(e), f);
  }
  if (const auto* c = e.as<CallNode>()) return CallValue(c);
  if (const auto* i = e.as<IfNode>()) return If(Atom(i->cond), made_[s.first], made_[s.first + 1]);
  if (const auto* m = e.as<MatchNode>()) {
    const Array<Pattern>& patterns = *patterns_.Find(m);
    Array<Clause> clauses;
    for (size_t k = 0; k < patterns.size(); ++k) clauses.push_back(Clause(patterns[k], made_[s.first + k]));
    return Match(Atom(m->data), clauses, m->complete);
  }
  if (const auto* t = e.as<TupleNode>()) {
    const Type type = ConcreteOf(e);
    Array<Expr> fields;
    for (size_t i = 0; i < t->fields.size(); ++i)
      fields.push_back(Atom(t->fields[i], type.as<TupleTypeNode>()->fields[i]));
    return Tuple(fields);
  }
  if (const auto* g = e.as<TupleGetItemNode>())
    return TupleGetItem(TupleGetItemNode{.tuple = Atom(g->tuple), .index = g->index});
  if (const auto* r = e.as<RefCreateNode>()) {
    const Type type = ConcreteOf(e);
    return RefCreate(RefCreateNode{.value = Atom(r->value, type.as<RelayRefTypeNode>()->value)});
  }
  if (const auto* r = e.as<RefReadNode>()) return RefRead(RefReadNode{.ref = Atom(r->ref)});
  if (const auto* w = e.as<RefWriteNode>()) {
    const Type type = ConcreteOf(w->ref);
    return RefWrite(RefWriteNode{.ref = Atom(w->ref), .value = Atom(w->value, type.as<RelayRefTypeNode>()->value)});
  }
  return Atom(e, ConcreteOf(e));
}

Expr Defunctionalizer::Variable(const VarNode* v) {
  if (const Expr* own = vars_.Find(v)) return *own;
  FailAt(v, fmt::format("the variable %{} is free", v->name_hint().view()), "make it a parameter of the function");
}

Expr Defunctionalizer::Atom(const Expr& e, const Type& wanted) {
  if (const auto* v = e.as<VarNode>()) {
    const Template* known = templates_.Find(v);
    return known ? Instance(*known, wanted, v) : Variable(v);
  }
  if (e.as<GlobalVarNode>() || e.as<ConstructorNode>()) return Instance(Template{e, Var(), 0, {}}, wanted, e.get());
  return e;
}

Expr Defunctionalizer::Instance(const Template& t, const Type& wanted, const BaseExprNode* at) {
  TypeEnv env(env_.begin(), env_.begin() + static_cast<ptrdiff_t>(t.env));
  const auto* f = t.what.as<FunctionNode>();
  const FuncType own =
      f ? Downcast<FuncType>(TypeSolver::Substitute(f->checked_type(), env)) : TypeOfName(t.what, *mod_);
  const auto* as = wanted.as<FuncTypeNode>();
  if (!as || !as->type_params.empty()) {
    FailAt(at, fmt::format("a function with type parameters is a value here: {}", TypeText(own)),
           "pass it where a function without type parameters is expected");
  }
  const Array<Type> type_args = Bindings(own, {{PlainType(own->arg_types, own->ret_type), wanted}}, at);
  FunctionData* data = types_.Of(wanted);
  Array<Type> key;
  for (const auto& [var, type] : env) key.push_back(type);
  for (const Type& type : type_args) key.push_back(type);
  auto& cases = cases_[{t.what.get(), data}];
  const auto [it, fresh] = cases.emplace(TupleType(key), cases.size());
  if (fresh) {
    Array<Type> fields;
    for (const Var& v : t.captured) fields.push_back(Data(TypeSolver::Substitute(v->checked_type(), env)));
    it->second = types_.AddCase(data, HintOf(t), fields);
    keep_.push_back(t.what);
    if (f && !IsPrimitiveFunction(t.what)) {
      Job job{.source = f, .env = env, .data = data, .at = it->second};
      for (size_t i = 0; i < own->type_params.size(); ++i) job.env.push_back({f->type_params[i].get(), type_args[i]});
      for (size_t i = 0; i < t.captured.size(); ++i) job.vars[t.captured[i].get()] = data->patterns[it->second][i];
      if (t.self.defined() && !templates_.Has(t.self.get())) job.vars[t.self.get()] = data->self;
      jobs_.push_back(std::move(job));
    } else {
      Array<Expr> args(data->params.begin(), data->params.end());
      data->bodies[it->second] = CallOf(NameAt(t.what, type_args, wanted, at), args);
    }
  }
  Array<Expr> args;
  for (const Var& v : t.captured) args.push_back(Variable(v.get()));
  return CallOf(data->cases[it->second], args);
}

std::string Defunctionalizer::HintOf(const Template& t) {
  if (t.self.defined()) return t.self->name_hint().str();
  if (const auto* g = t.what.as<GlobalVarNode>()) return g->name_hint.str();
  if (const auto* k = t.what.as<ConstructorNode>()) return k->name_hint.str();
  return "fn";
}

Expr Defunctionalizer::CallOf(const Expr& f, const Array<Expr>& args) {
  CallNode n;
  n.op = f, n.args = args;
  return Call(std::move(n));
}

Expr Defunctionalizer::NameAt(const Expr& what, const Array<Type>& type_args, const Type& type,
                              const BaseExprNode* at) {
  if (const auto* g = what.as<GlobalVarNode>()) return GlobalAt(g, type_args, at);
  if (what.as<ConstructorNode>())
    return types_.DataConstructor(Downcast<Constructor>(what), type.as<FuncTypeNode>()->ret_type);
  return what;
}

Array<Type> Defunctionalizer::Bindings(const FuncType& f, std::vector<std::pair<Type, Type>> parts,
                                       const BaseExprNode* at, const std::vector<std::pair<Type, FuncType>>& open,
                                       const Array<Type>& given) {
  Array<Type> out;
  if (f->type_params.empty()) return out;
  if (!given.empty()) {
    for (const Type& t : given) out.push_back(Concrete(t));
    return out;
  }
  PointerMap<Type> bound;
  BindTypes(f->type_params, std::move(parts), open, &bound);
  for (const TypeVar& v : f->type_params) {
    Type* t = bound.Find(v.get());
    if (!t) {
      FailAt(at,
             fmt::format("the type parameter {} of a function of type {} cannot be told from this use",
                         v->name_hint.view(), TypeText(f)),
             "say the type arguments");
    }
    out.push_back(*t);
  }
  return out;
}

Expr Defunctionalizer::CallValue(const CallNode* c) {
  if (c->op.as<OpNode>()) return OperatorCall(c);
  Expr callee = c->op;
  const Template* t = nullptr;
  if (const auto* v = callee.as<VarNode>()) {
    t = templates_.Find(v);
    if (!t) return Applied(c, ConcreteOf(callee), Variable(v));
    callee = t->what;
  }
  const auto* f = callee.as<FunctionNode>();
  TypeEnv env(env_.begin(), env_.begin() + static_cast<ptrdiff_t>(t ? t->env : 0));
  const FuncType own =
      f ? Downcast<FuncType>(TypeSolver::Substitute(f->checked_type(), env)) : TypeOfName(callee, *mod_);
  std::vector<std::pair<Type, Type>> parts{{own->ret_type, ConcreteOf(GetRef<Expr>(c))}};
  std::vector<std::pair<Type, FuncType>> open;
  for (size_t i = 0; i < c->args.size(); ++i) {
    const Type type = ArgType(c->args[i]);
    if (const auto* arg = type.as<FuncTypeNode>(); arg && !arg->type_params.empty()) {
      open.push_back({own->arg_types[i], GetRef<FuncType>(arg)});
    } else {
      parts.push_back({own->arg_types[i], type});
    }
  }
  const Array<Type> type_args = Bindings(own, parts, c, open, c->type_args);
  TypeEnv with;
  for (size_t i = 0; i < type_args.size(); ++i) with.push_back({own->type_params[i].get(), type_args[i]});
  Array<Type> arg_types;
  for (const Type& a : own->arg_types) arg_types.push_back(TypeSolver::Substitute(a, with));
  const Type at = PlainType(arg_types, TypeSolver::Substitute(own->ret_type, with));
  if (f && !IsPrimitiveFunction(callee)) {
    const Template copy = *t;  // Instance may add templates' cases
    return Applied(c, at, Instance(copy, at, c));
  }
  CallNode n;
  n.op = NameAt(callee, type_args, at, c);
  for (size_t i = 0; i < c->args.size(); ++i) n.args.push_back(Atom(c->args[i], arg_types[i]));
  n.attrs = c->attrs;
  if (n.op.same_as(callee)) n.type_args = TypeArgs(c->type_args);
  return Call(std::move(n));
}

Type Defunctionalizer::ArgType(const Expr& e) {
  const auto* v = e.as<VarNode>();
  const Template* t = v ? templates_.Find(v) : nullptr;
  if (!t) return ConcreteOf(e);
  const Expr& what = t->what;
  if (!what.as<FunctionNode>()) return TypeOfName(what, *mod_);
  TypeEnv env(env_.begin(), env_.begin() + static_cast<ptrdiff_t>(t->env));
  return TypeSolver::Substitute(what->checked_type(), env);
}

Expr Defunctionalizer::Applied(const CallNode* c, const Type& type, const Expr& value) {
  const auto* f = type.as<FuncTypeNode>();
  if (!f || !f->type_params.empty()) {
    FailAt(c, fmt::format("what is called is a value of type {}", TypeText(type)),
           "bind the function by a let, so that it is known where it is used");
  }
  Array<Expr> args{value};
  for (size_t i = 0; i < c->args.size(); ++i) args.push_back(Atom(c->args[i], f->arg_types[i]));
  return CallOf(types_.Of(type)->apply, args);
}

Expr Defunctionalizer::OperatorCall(const CallNode* c) {
  auto n = make_object<CallNode>(*c);
  n->checked_type_ = CheckedType();
  for (size_t i = 0; i < c->args.size(); ++i) {
    const Type type = ArgType(c->args[i]);
    if (types_.HasFunction(type)) {
      FailAt(c, fmt::format("the operator `{}` takes a function", c->op.as<OpNode>()->name.view()),
             "operators compute on tensors; put it on what the function gives");
    }
    n->args.Set(static_cast<int64_t>(i), Atom(c->args[i]));
  }
  n->type_args = TypeArgs(c->type_args);
  return Call(n);
}

Expr Defunctionalizer::GlobalAt(const GlobalVarNode* g, const Array<Type>& type_args, const BaseExprNode* at) {
  bool functions = false;
  for (const Type& t : type_args) functions = functions || types_.HasFunction(t);
  if (!functions && !higher_->IsHigher(g)) return GetRef<Expr>(g);
  const FunctionNode* f = OpenFunction(*mod_, g->name_hint.view());
  if (!f) {
    FailAt(at, fmt::format("@{} takes functions and is compiled elsewhere", g->name_hint.view()));
  }
  auto& clones = clones_of_[g->name_hint.str()];
  const auto [it, fresh] = clones.emplace(TupleType(type_args), GlobalVar());
  if (!fresh) return it->second;
  // A function that calls itself at ever larger types would be cloned for ever.
  if (clones.size() > kMaxClones) {
    FailAt(at, fmt::format("@{} is called at more than {} types", g->name_hint.view(), kMaxClones),
           "a function that calls itself at a type made of its parameters has no end of them");
  }
  it->second = GlobalVar{String(names_.Fresh(g->name_hint.str() + "_inst"))};
  Function& source = sources_[f];
  if (!source.defined()) source = Normal(GetRef<Function>(f));
  Job job{.source = source.get(), .global = it->second};
  for (size_t i = 0; i < type_args.size(); ++i) job.env.push_back({source->type_params[i].get(), type_args[i]});
  jobs_.push_back(std::move(job));
  return it->second;
}

}  // namespace

namespace transform {

Pass Defunctionalization() {
  return MakePass<Defunctionalization>({
      .doc = "Functions as values become data of the module: a data type for each type of functions, and a function "
             "that applies it. What @main calls is cloned for the types it is called at; @main itself is first-order.",
      .opt_level = 1,
      .required = {"InferType"},
      .run =
          [](IRModule mod, PassContext) {
            return RewriteMain(mod, [](const Function& f, IRModule* out) { return Defunctionalizer(out).Run(f); });
          },
  });
}

namespace {
const RegisterPass<Defunctionalization> registered_defunctionalization;

/// (the function, the module with what it needs)
BATON_REGISTER_GLOBAL("relay._transform.defunctionalized").set_body_typed([](Function func, IRModule mod) {
  IRModule grown = mod.Copy();
  Function made = Defunctionalizer(&grown).Run(func);
  return Array<runtime::ObjectRef>{made, grown};
});
}  // namespace
}  // namespace transform
}  // namespace baton::relay
