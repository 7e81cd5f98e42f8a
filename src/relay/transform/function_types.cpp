// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/named.h>
#include <fmt/format.h>
#include <relay/expr/children.h>
#include <relay/text/type_text.h>
#include <relay/transform/anf_blocks.h>
#include <relay/transform/function_types.h>
#include <relay/types/type_solver.h>

namespace baton::relay {

FreshNames::FreshNames(const IRModule& mod) {
  for (const auto& [var, f] : mod->functions) taken_.insert(var->name_hint.str());
  for (const auto& [var, data] : mod->type_definitions) {
    taken_.insert(var->name_hint.str());
    for (const Constructor& k : data->constructors) taken_.insert(k->name_hint.str());
  }
}

std::string FreshNames::Fresh(const std::string& wanted) {
  std::string name = wanted;
  for (int& i = next_[wanted]; !taken_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

const TypeDataNode* FunctionTypes::Definition(const Type& header) const {
  const auto* name = header.as<GlobalTypeVarNode>();
  const auto* e = name ? runtime::FindNamed(mod_->type_definitions.get(), name->name_hint.view()) : nullptr;
  return e ? runtime::SlotAs<TypeData>(e->value).get() : nullptr;
}

namespace {
/// Calls f for each part of a type; true as soon as it does not want the parts of one, which is found.
template <class F>
bool AnyChild(const Type& t, F found) {
  PointerSet seen;
  std::vector<const TypeNode*> stack{t.get()};
  while (!stack.empty()) {
    const TypeNode* n = stack.back();
    stack.pop_back();
    if (!n || !seen.Add(n)) continue;
    if (found(n)) return true;
    if (n->IsInstance<TupleTypeNode>()) {
      for (const Type& f : static_cast<const TupleTypeNode*>(n)->fields) stack.push_back(f.get());
    } else if (n->IsInstance<RelayRefTypeNode>()) {
      stack.push_back(static_cast<const RelayRefTypeNode*>(n)->value.get());
    } else if (n->IsInstance<TypeCallNode>()) {
      for (const Type& a : static_cast<const TypeCallNode*>(n)->args) stack.push_back(a.get());
    }
  }
  return false;
}
}  // namespace

bool FunctionTypes::DefinitionHasFunction(const Type& header) {
  const TypeDataNode* data = Definition(header);
  if (!data) return false;
  if (const bool* known = definitions_.Find(data)) return *known;
  // All that the definition reaches.
  bool has = false;
  PointerSet seen;
  std::vector<const TypeDataNode*> rest{data};
  seen.Add(data);
  while (!rest.empty() && !has) {
    const TypeDataNode* d = rest.back();
    rest.pop_back();
    for (const Constructor& k : d->constructors) {
      for (const Type& t : k->inputs) {
        has = has || AnyChild(t, [&](const TypeNode* n) {
                if (n->IsInstance<TypeCallNode>()) {
                  const TypeDataNode* other = Definition(static_cast<const TypeCallNode*>(n)->func);
                  if (other && seen.Add(other)) rest.push_back(other);
                }
                return n->IsInstance<FuncTypeNode>();
              });
      }
    }
  }
  definitions_[data] = has;
  return has;
}

bool FunctionTypes::HasFunction(const Type& t) {
  if (const bool* known = has_.Find(t.get())) return *known;
  keep_.push_back(t);
  struct Entry {
    const TypeNode* n;
    bool children_known;
  };
  std::vector<Entry> stack{{t.get(), false}};
  std::vector<const TypeNode*> children;
  while (!stack.empty()) {
    const auto [n, children_known] = stack.back();
    if (has_.Has(n)) {
      stack.pop_back();
      continue;
    }
    const bool own =
        n->IsInstance<FuncTypeNode>() ||
        (n->IsInstance<TypeCallNode>() && DefinitionHasFunction(static_cast<const TypeCallNode*>(n)->func));
    children.clear();
    if (!own && n->IsInstance<TupleTypeNode>()) {
      for (const Type& f : static_cast<const TupleTypeNode*>(n)->fields) children.push_back(f.get());
    } else if (!own && n->IsInstance<RelayRefTypeNode>()) {
      children.push_back(static_cast<const RelayRefTypeNode*>(n)->value.get());
    } else if (!own && n->IsInstance<TypeCallNode>()) {
      for (const Type& a : static_cast<const TypeCallNode*>(n)->args) children.push_back(a.get());
    }
    if (children_known || children.empty()) {
      bool has = own;
      for (const TypeNode* p : children) has = has || (p && *has_.Find(p));
      has_[n] = has;
      stack.pop_back();
      continue;
    }
    stack.back().children_known = true;
    for (const TypeNode* p : children) {
      if (p && !has_.Has(p)) stack.push_back({p, false});
    }
  }
  return *has_.Find(t.get());
}

Type FunctionTypes::VisitType(const Type& t) {
  if (const auto* known = known_.Find(t.get())) return known->second;
  Type out = TypeMutator::VisitType(t);
  known_[t.get()] = {t, out};
  return out;
}

Type FunctionTypes::VisitType_(const FuncTypeNode* t) { return TypeCall(Of(GetRef<Type>(t))->name, Array<Type>()); }
Type FunctionTypes::VisitType_(const TypeCallNode* t) {
  if (DefinitionHasFunction(t->func)) return TypeCall(CopyOf(t).name, Array<Type>());
  return TypeMutator::VisitType_(t);
}
Type FunctionTypes::VisitType_(const TypeVarNode* t) {
  FailAt(nullptr, fmt::format("a type parameter {} is left in the type of a value", t->name_hint.view()),
         "functions with type parameters are bound by lets or global");
}

FunctionData* FunctionTypes::Of(const Type& function) {
  auto& entry = functions_[function];
  if (entry) return entry.get();
  entry = std::make_unique<FunctionData>();
  FunctionData* data = entry.get();
  const auto* type = function.as<FuncTypeNode>();
  if (!type->type_params.empty()) {
    FailAt(nullptr, fmt::format("a function with type parameters is a value: {}", TypeText(function)),
           "pass it where a function without type parameters is expected");
  }
  // Named before its parts, which may lead here again.
  data->type = Downcast<FuncType>(function);
  data->name = GlobalTypeVar(String(names_->Fresh("Fn")), TypeKind::kAdtHandle);
  data->apply = GlobalVar{String(names_->Fresh("apply_" + data->name->name_hint.str()))};
  function_order_.push_back(data);
  data->self = Var("f", TypeCall(data->name, Array<Type>()));
  for (const Type& a : type->arg_types) data->params.push_back(Var("a", Data(a)));
  data->result = Data(type->ret_type);
  return data;
}

size_t FunctionTypes::AddCase(FunctionData* data, const std::string& hint, const Array<Type>& fields) {
  const size_t at = data->cases.size();
  ConstructorNode k;
  k.name_hint = String(names_->Fresh(data->name->name_hint.str() + "_" + hint));
  k.inputs = fields, k.belong_to = data->name;
  data->cases.push_back(Constructor(std::move(k)));
  std::vector<Var> vars;
  for (const Type& t : fields) vars.push_back(Var("c", t));
  data->patterns.push_back(std::move(vars));
  data->bodies.push_back(Expr());
  return at;
}

Array<Type> FunctionTypes::FieldsOf(const ConstructorNode* k, const Type& type) {
  const auto* at = type.as<TypeCallNode>();
  const TypeDataNode* data = Definition(k->belong_to);
  std::vector<std::pair<const Object*, Type>> with;
  for (size_t i = 0; i < data->type_vars.size(); ++i) with.push_back({data->type_vars[i].get(), at->args[i]});
  // As the definition has it: a node may be of a copy of the module.
  Array<Type> inputs = k->inputs;
  for (const Constructor& c : data->constructors) {
    if (c->name_hint == k->name_hint) inputs = c->inputs;
  }
  Array<Type> out;
  for (const Type& t : inputs) out.push_back(TypeSolver::Substitute(t, with));
  return out;
}

Constructor FunctionTypes::DataConstructor(const Constructor& k, const Type& type) {
  if (!DefinitionHasFunction(k->belong_to)) return k;
  const Array<Constructor>& own = Definition(k->belong_to)->constructors;
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[static_cast<int64_t>(i)]->name_hint == k->name_hint) return CopyOf(type.as<TypeCallNode>()).constructors[i];
  }
  throw InternalError("a constructor is not of its data type");
}

FunctionTypes::Copy& FunctionTypes::CopyOf(const TypeCallNode* t) {
  auto& entry = copies_[GetRef<Type>(t)];
  if (entry) return *entry;
  constexpr size_t kMaxCopies = 1000;
  if (copies_.size() > kMaxCopies) {
    FailAt(nullptr,
           fmt::format("the data type {} is used at more than {} types",
                       t->func.as<GlobalTypeVarNode>()->name_hint.view(), kMaxCopies),
           "a data type whose fields name it at a type made of its parameters has no end of them");
  }
  entry = std::make_unique<Copy>();
  Copy* copy = entry.get();
  copy_order_.push_back(copy);
  const TypeDataNode* data = Definition(t->func);
  copy->name = GlobalTypeVar(String(names_->Fresh(data->header->name_hint.str() + "_inst")), TypeKind::kAdtHandle);
  for (const Constructor& c : data->constructors) {
    auto k = make_object<ConstructorNode>();
    k->name_hint = String(names_->Fresh(c->name_hint.str() + "_inst"));
    k->belong_to = copy->name;
    copy->constructors.push_back(Constructor(k));
  }
  for (size_t i = 0; i < data->constructors.size(); ++i) {
    Array<Type> inputs;
    for (const Type& f : FieldsOf(data->constructors[i].get(), GetRef<Type>(t))) inputs.push_back(Data(f));
    const_cast<ConstructorNode*>(copy->constructors[i].get())->inputs = inputs;
  }
  return *copy;
}

void FunctionTypes::AddTo(IRModuleNode* mod) {
  for (const Copy* c : copy_order_) mod->AddTypeDef(c->name, TypeData(c->name, Array<TypeVar>(), c->constructors));
  for (const FunctionData* d : function_order_) {
    mod->AddTypeDef(d->name, TypeData(d->name, Array<TypeVar>(), d->cases));
    Array<Var> params{d->self};
    Array<Expr> args{d->self};
    for (const Var& p : d->params) params.push_back(p), args.push_back(p);
    Expr body;
    if (d->cases.empty()) {
      // There is no such function: it is never called.
      CallNode again;
      again.op = d->apply, again.args = args;
      body = Call(std::move(again));
    } else {
      Array<Clause> clauses;
      for (size_t i = 0; i < d->cases.size(); ++i) {
        Array<Pattern> fields;
        for (const Var& v : d->patterns[i]) fields.push_back(PatternVar(v));
        clauses.push_back(Clause(PatternConstructor(d->cases[static_cast<int64_t>(i)], fields), d->bodies[i]));
      }
      body = Match(d->self, clauses, true);
    }
    mod->Add(d->apply, Function(params, body, d->result));
  }
}

bool HigherGlobals::Own(const Function& f, std::vector<std::string>* callees) {
  transform::InferTypeOf(f, mod_);
  bool higher = false;
  const auto is_name = [](const ExprNode* n) {
    return n->IsInstance<GlobalVarNode>() || n->IsInstance<ConstructorNode>();
  };
  PointerMap<bool> known;
  for (const ExprNode* n : PostOrderNodes(f)) {
    if (n->IsInstance<GlobalVarNode>()) callees->push_back(static_cast<const GlobalVarNode*>(n)->name_hint.str());
    if (higher || is_name(n) || n->IsInstance<OpNode>() || n == f.get()) continue;
    const ExprNode* callee = n->IsInstance<CallNode>() ? static_cast<const CallNode*>(n)->op.get() : nullptr;
    // Patterns name constructors and do not use them.
    if (!n->IsInstance<MatchNode>()) {
      ForEachChild(n, [&](const ExprNode* child) {
        if (child && child != callee && is_name(child)) higher = true;
      });
    }
    if (n->IsInstance<FunctionNode>() && IsPrimitiveFunction(GetRef<Expr>(n))) continue;
    if (!n->checked_type_.defined()) continue;
    bool fresh = false;
    bool& has = known.Insert(n->checked_type_.get(), &fresh);
    if (fresh) has = types_->HasFunction(runtime::RefCast<Type>(n->checked_type_));
    higher = higher || has;
  }
  return higher;
}

bool HigherGlobals::IsHigher(const Function& root) {
  const std::string start = "";  // no function of a module has this name
  std::unordered_map<std::string, std::vector<std::string>> callers;
  std::unordered_set<std::string> seen{start};
  std::vector<std::pair<std::string, Function>> rest{{start, root}};
  std::vector<std::string> found;
  while (!rest.empty()) {
    const auto [name, f] = std::move(rest.back());
    rest.pop_back();
    std::vector<std::string> callees;
    if (Own(f, &callees)) found.push_back(name);
    for (const std::string& callee : callees) {
      callers[callee].push_back(name);
      if (!seen.insert(callee).second) continue;
      if (const FunctionNode* g = OpenFunction(mod_, callee)) rest.push_back({callee, GetRef<Function>(g)});
    }
  }
  while (!found.empty()) {
    const std::string name = std::move(found.back());
    found.pop_back();
    if (!higher_.insert(name).second) continue;
    for (const std::string& caller : callers[name]) found.push_back(caller);
  }
  return higher_.count(start) != 0;
}

namespace {
bool IsClosed(const Type& t) {
  PointerSet seen;
  std::vector<const TypeNode*> stack{t.get()};
  while (!stack.empty()) {
    const TypeNode* n = stack.back();
    stack.pop_back();
    if (!n || !seen.Add(n)) continue;
    if (n->IsInstance<TypeVarNode>()) return false;
    if (n->IsInstance<TupleTypeNode>()) {
      for (const Type& f : static_cast<const TupleTypeNode*>(n)->fields) stack.push_back(f.get());
    } else if (n->IsInstance<RelayRefTypeNode>()) {
      stack.push_back(static_cast<const RelayRefTypeNode*>(n)->value.get());
    } else if (n->IsInstance<TypeCallNode>()) {
      for (const Type& a : static_cast<const TypeCallNode*>(n)->args) stack.push_back(a.get());
    } else if (n->IsInstance<FuncTypeNode>()) {
      const auto* f = static_cast<const FuncTypeNode*>(n);
      for (const Type& a : f->arg_types) stack.push_back(a.get());
      stack.push_back(f->ret_type.get());
    }
  }
  return true;
}
}  // namespace

void BindTypes(const Array<TypeVar>& params, std::vector<std::pair<Type, Type>> pairs, PointerMap<Type>* bound) {
  PointerSet wanted;
  for (const TypeVar& v : params) wanted.Add(v.get());
  const auto both = [&](const Array<Type>& a, const Array<Type>& b) {
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) pairs.push_back({a[i], b[i]});
  };
  while (!pairs.empty()) {
    const auto [with, to] = std::move(pairs.back());
    pairs.pop_back();
    if (!to.defined() || !with.defined()) continue;
    if (wanted.Has(with.get())) {
      if (!bound->Has(with.get()) && IsClosed(to)) (*bound)[with.get()] = to;
    } else if (const auto* tuple = with.as<TupleTypeNode>()) {
      if (const auto* other = to.as<TupleTypeNode>()) both(tuple->fields, other->fields);
    } else if (const auto* f = with.as<FuncTypeNode>()) {
      const auto* other = to.as<FuncTypeNode>();
      if (!other || !other->type_params.empty() || !f->type_params.empty()) continue;
      both(f->arg_types, other->arg_types);
      pairs.push_back({f->ret_type, other->ret_type});
    } else if (const auto* ref = with.as<RelayRefTypeNode>()) {
      if (const auto* other = to.as<RelayRefTypeNode>()) pairs.push_back({ref->value, other->value});
    } else if (const auto* call = with.as<TypeCallNode>()) {
      if (const auto* other = to.as<TypeCallNode>()) both(call->args, other->args);
    }
  }
}

void BindTypes(const Array<TypeVar>& params, std::vector<std::pair<Type, Type>> pairs,
               const std::vector<std::pair<Type, FuncType>>& open, PointerMap<Type>* bound) {
  BindTypes(params, std::move(pairs), bound);
  for (size_t known = 0; !open.empty();) {
    std::vector<std::pair<const Object*, Type>> with;
    for (const TypeVar& v : params) {
      if (Type* t = bound->Find(v.get())) with.push_back({v.get(), *t});
    }
    if (with.size() == params.size() || (known != 0 && with.size() < known)) return;
    known = with.size() + 1;  // at least one more is bound in each round
    for (const auto& [place, type] : open) {
      const Type plain = FuncType(Array<TypeVar>(), type->arg_types, type->ret_type, Array<TypeConstraint>());
      PointerMap<Type> own;
      BindTypes(type->type_params, {{plain, TypeSolver::Substitute(place, with)}}, &own);
      std::vector<std::pair<const Object*, Type>> said;
      for (const TypeVar& v : type->type_params) {
        if (Type* t = own.Find(v.get())) said.push_back({v.get(), *t});
      }
      BindTypes(params, {{place, TypeSolver::Substitute(plain, said)}}, bound);
    }
  }
}

}  // namespace baton::relay
