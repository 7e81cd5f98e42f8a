// SPDX-License-Identifier: Apache-2.0
// Type inference.
//
// One walk over an expression, inputs before users and values before the bodies that see them, gives each node a type
// that may have holes. Calls of operators ask the operator's relation, at once if it can decide, else when a hole that
// it waits for gets filled. Functions of a module are taken by groups that call each other, callees first.
//
// Types that are there from an earlier run are not found again. A typed node is the root of a typed graph, and nodes do
// not change, so its type stands as long as that of each variable and global in it does. Hence three ways of work:
// - kNew: take typed nodes as they are; if a variable or a global turns out to have another type than before:
// - kParts: go through everything; a node whose parts kept their types keeps its own;
// - kAll: find every type anew; also tried before an error is reported.
// Equal types are one object, those that were there before among them.
#include <baton/ir/diagnostic.h>
#include <baton/ir/progress.h>
#include <baton/ir/structural.h>
#include <baton/relay/analysis.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/text.h>
#include <baton/relay/transform.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/named.h>
#include <baton/runtime/registry.h>
#include <baton/support/nearest.h>
#include <fmt/format.h>
#include <relay/call_graph.h>
#include <relay/children.h>
#include <relay/type_pool.h>
#include <relay/type_solver.h>
#include <relay/type_text.h>

namespace baton::relay {
namespace {

enum class Mode { kNew, kParts, kAll };
/// Thrown inside to start again in the next mode.
struct Again {};

struct Info {
  Type type;
  bool changed = false;  ///< differs from the type that the node has, or it has none
};
/// What is known of nodes, in the order in which it was found: what goes through all of them looks nothing up.
class InfoTable {
 public:
  struct Entry {
    const ExprNode* node;
    Info info;
  };
  Info* Find(const ExprNode* n) {
    const uint32_t* i = numbers_.Find(n);
    return i ? &entries_[*i].info : nullptr;
  }
  bool Has(const ExprNode* n) const { return numbers_.Has(n); }
  /// Until the next is made.
  Info& operator[](const ExprNode* n) { return entries_[Number(n)].info; }
  /// The node's place among the entries, which it gets if it has none.
  uint32_t Number(const ExprNode* n) {
    bool fresh = false;
    uint32_t& i = numbers_.Insert(n, &fresh);
    if (fresh) {
      i = static_cast<uint32_t>(entries_.size());
      entries_.push_back({n, {}});
    }
    return i;
  }
  Entry& At(uint32_t number) { return entries_[number]; }

 private:
  PointerMap<uint32_t> numbers_;
  std::vector<Entry> entries_;
};

/// A callee or value in a few words.
std::string Name(const ExprNode* e) {
  if (e->IsInstance<VarNode>()) return fmt::format("%{}", static_cast<const VarNode*>(e)->name_hint().view());
  if (e->IsInstance<GlobalVarNode>()) return fmt::format("@{}", static_cast<const GlobalVarNode*>(e)->name_hint.view());
  if (e->IsInstance<OpNode>()) return static_cast<const OpNode*>(e)->name.str();
  if (e->IsInstance<ConstructorNode>()) return static_cast<const ConstructorNode*>(e)->name_hint.str();
  if (e->IsInstance<FunctionNode>()) return "fn";
  return "";
}
/// The same in backticks, as the beginning of a sentence.
std::string Named(const ExprNode* e) {
  const std::string name = Name(e);
  return name.empty() ? "what is called here" : "`" + name + "`";
}
const char* Plural(size_t n) { return n == 1 ? "" : "s"; }

/// Types of the functions of a module; a null type is not known (yet).
class GlobalTypes {
 public:
  explicit GlobalTypes(const IRModule& mod) : functions_(mod->functions.get()), types_(mod->functions.size()) {}
  /// By the function's place among those of the module.
  Type& operator[](size_t entry) { return types_[entry]; }
  /// By name; null if the module has no such function.
  const Type* Find(std::string_view name) const {
    const auto* e = runtime::FindNamed(functions_, name);
    return e ? &types_[static_cast<size_t>(e - functions_->entries.data())] : nullptr;
  }
  size_t EntryOf(const Type* type) const { return static_cast<size_t>(type - types_.data()); }

 private:
  const runtime::MapObj* functions_;
  std::vector<Type> types_;
};

class Inferencer;
/// Whether a function says the types of all its parameters and its result, and the type that it says; where it does
/// not, with holes of `holes`.
bool Declared(const FunctionNode* f);
Type DeclaredType(const FunctionNode* f, Inferencer* holes);

class Inferencer final : private TypeReporter {
 public:
  Inferencer(const IRModule& mod, Mode mode, DiagnosticList* errors, TypePool* pool)
      : mod_(mod), mode_(mode), errors_(errors), pool_(pool) {
    scratch_ = solver_.NewHole();
  }

  /// Types of globals that this run has to go by; null: those that the module says, each looked up where it is used,
  /// since expressions are small beside their modules.
  GlobalTypes* globals = nullptr;
  std::string_view where;  ///< name of the function, for errors without a place

  void Walk(const Expr& root);
  /// Asks the relations that wait, until none gets further; what is left is an error.
  void Solve();
  Type TypeOf(const ExprNode* e) {
    const Info* i = info_.Find(e);
    return i ? i->type : Type();
  }
  Type FinalType(const Expr& e) { return solver_.Resolve(TypeOf(e.get())); }
  bool Unify(const Type& a, const Type& b) { return solver_.Unify(a, b); }
  Type NewHole() { return solver_.NewHole(); }
  /// Every type is known: an error for those that are not.
  void CheckComplete();
  /// Writes the types into the nodes. The expression itself, or a copy where a node had another type.
  Expr Write(const Expr& root, bool may_copy = true);

 private:
  struct Frame {
    const ExprNode* n;
    uint32_t phase;
  };
  struct Wait {
    const CallNode* call;  ///< a call whose relation waits, or
    const TupleGetItemNode* item;
    Type result;
    bool done = false;
  };

  void Step();
  /// The node whose part is looked at: the innermost that waits for its parts.
  const ExprNode* User() const {
    for (size_t i = stack_.size() - 1; i-- > 0;) {
      if (stack_[i].phase > 0) return stack_[i].n;
    }
    return nullptr;
  }
  /// Where a part stands: a variable or a constructor has the place of its definition, so what it is a part of.
  static const BaseExprNode* Place(const ExprNode* part, const ExprNode* whole) {
    const bool own = part->span.defined() && !part->IsInstance<VarNode>() && !part->IsInstance<ConstructorNode>();
    return own ? part : whole;
  }
  bool Enter(const ExprNode* n);
  void Done(const ExprNode* n, Type type);
  void Need(const Expr& part) {
    if (!part.defined()) throw CompileError("a part of an expression is missing (null)");
    if (!info_.Has(part.get())) stack_.push_back({part.get(), 0});
  }
  bool Changed(const Expr& e) {
    const Info* i = info_.Find(e.get());
    return !i || i->changed;
  }
  /// The type that the node has, if it may be kept.
  bool Keep(const ExprNode* n) {
    if (mode_ == Mode::kAll || !n->checked_type_.defined()) return false;
    bool kept = true;
    ForEachPart(n, [&](const ExprNode* p) {
      if (p->IsInstance<OpNode>()) return;
      const Info* i = info_.Find(p);
      kept = kept && i && !i->changed;
    });
    if (kept) {
      Trust(n);
      order_.push_back(info_.Number(n));
    }
    return kept;
  }
  static Type Existing(const ExprNode* n) { return runtime::RefCast<Type>(n->checked_type_); }
  /// Takes a typed node as it is: what is made of it has its type where that is equal.
  void Trust(const ExprNode* n) {
    Type type = Existing(n);
    pool_->Share(type);
    info_[n] = {std::move(type), false};
  }

  void DefineVar(const Var& var, const Type& type);
  Type VarType(const VarNode* var);
  Type GlobalType(const GlobalVarNode* var);
  Type ConstructorType(const ConstructorNode* c);
  const TypeDataNode* DataType_(const GlobalTypeVar& header, const ObjectRef& at);
  void BindLet(const LetNode* let);
  void BindPattern(const PatternNode* pattern, const Type& type, const MatchNode* match);
  void CheckCovered(const MatchNode* match);
  void FinishCall(const CallNode* call);
  bool ArgumentsDecide(const FuncTypeNode* sig);
  bool Relation(const CallNode* call, const Type& result, bool last);
  void FinishTupleGetItem(const TupleGetItemNode* item);
  bool Project(const TupleGetItemNode* item, const Type& result);
  Type Instantiate(const FuncTypeNode* f, const Array<Type>& type_args);
  void Await(Wait w);

  bool IsPoison(const Type& t) {
    Type f = solver_.Find(t);
    return f.defined() && poison_.Has(f.get());
  }
  Type Poison() {
    Type t = solver_.NewHole();
    poison_.Add(t.get());
    return t;
  }
  std::string Text(const Type& t) { return TypeText(solver_.Resolve(t)); }
  void Error(const BaseExprNode* at, std::string message, std::string label = "", std::string help = "") {
    Span span = at ? at->span : Span();
    if ((!span.defined() || span->line == 0) && !where.empty()) {
      label += fmt::format("{}in @{}", label.empty() ? "" : "; ", where);
    }
    errors_->Error(span, std::move(message), std::move(label), std::move(help));
    if (errors_->full()) errors_->ThrowIfAny(baton::transform::PassContext::Current()->diag_ctx);
  }
  std::string ArgsLabel(const CallNode* call);

  // TypeReporter
  void Assign(const Type& dst, const Type& src) override {
    if (dst.same_as(scratch_) && !scratch_value_.defined()) {
      scratch_value_ = src;
    } else if (!solver_.Unify(dst.same_as(scratch_) ? scratch_value_ : dst, src)) {
      throw CompileError(fmt::format("its type would be {}, where {} is wanted", Text(src), Text(dst)));
    }
  }
  bool AssertEQ(const PrimExpr& a, const PrimExpr& b) override { return TypeSolver::MayBeSame(a, b); }
  ObjectRef Callee() override { return call_ ? ObjectRef(call_->op) : ObjectRef(); }
  const runtime::NDArray* ConstantArg(int i) override {
    if (i < 0 || i >= static_cast<int>(call_->args.size())) return nullptr;
    const Expr& a = call_->args[i];
    if (const auto* c = a.as<ConstantNode>()) return &c->data;
    const ConstantNode* const* bound = let_constants_.Find(a.get());
    return bound ? &(*bound)->data : nullptr;
  }

  const IRModule& mod_;
  Mode mode_;
  DiagnosticList* errors_;
  TypePool* pool_;
  TypeSolver solver_;
  InfoTable info_;
  std::vector<uint32_t> order_;  ///< places in it
  std::vector<Frame> stack_;
  std::vector<Wait> waiting_;
  PointerMap<std::vector<uint32_t>> watch_;
  std::vector<uint32_t> ready_;
  PointerSet poison_;
  PointerMap<const ConstantNode*> let_constants_;
  PointerMap<uint32_t> attrs_index_;
  std::vector<Any> keep_;
  const CallNode* call_ = nullptr;
  PointerMap<bool> arguments_decide_;  // by signature
  PointerMap<Array<Type>> type_args_;  // of calls that did not state them and whose arguments do not say them
  Type scratch_, scratch_value_;
};

thread_local int64_t visited = 0;

void Inferencer::Walk(const Expr& root) {
  Need(root);
  while (!stack_.empty()) {
    runtime::PollInterrupt();
    Step();
  }
}

void Inferencer::Done(const ExprNode* n, Type type) {
  const uint32_t number = info_.Number(n);
  Info& i = info_.At(number).info;
  i.type = pool_->Share(std::move(type));
  i.changed = true;
  if (n->checked_type_.defined() &&
      (n->checked_type_.same_as(i.type) ||
       (!solver_.FirstHole(i.type) && StructuralEqual(n->checked_type_, solver_.Resolve(i.type))))) {
    i.type = Existing(n);
    i.changed = false;
  }
  order_.push_back(number);
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
      ++visited;
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
    const auto* fn = static_cast<const FunctionNode*>(n);
    if (phase == 0) {
      for (const Var& p : fn->params) {
        if (!p.defined()) throw CompileError("a parameter of a function is missing (null)");
        VarType(p.get());
      }
      Need(fn->body);
      return;
    }
    stack_.pop_back();
    if (Keep(n)) return;
    Type ret = TypeOf(fn->body.get());
    if (fn->ret_type.defined()) {
      if (!IsPoison(ret) && !solver_.Unify(fn->ret_type, ret)) {
        Error(Place(fn->body.get(), fn), fmt::format("the function is declared to return {}, its body has type {}",
                                                     Text(fn->ret_type), Text(ret)));
      }
      ret = fn->ret_type;
    }
    Array<Type> params;
    for (const Var& p : fn->params) params.push_back(TypeOf(p.get()));
    Done(n, FuncType(fn->type_params, params, ret, Array<TypeConstraint>()));
  } else if (n->IsInstance<IfNode>()) {
    const auto* i = static_cast<const IfNode*>(n);
    if (phase == 0) {
      Need(i->false_branch), Need(i->true_branch), Need(i->cond);
      return;
    }
    stack_.pop_back();
    if (Keep(n)) return;
    Type cond = TypeOf(i->cond.get()), t = TypeOf(i->true_branch.get()), e = TypeOf(i->false_branch.get());
    if (!IsPoison(cond) && !solver_.Unify(cond, TensorType::Scalar(DataType::Bool()))) {
      Error(Place(i->cond.get(), i), fmt::format("the condition of `if` has type {}, must be bool", Text(cond)), "",
            solver_.Find(cond).as<TensorTypeNode>() ? "reduce a tensor with `all` or `any`, compare a number with 0"
                                                    : "");
    }
    if (IsPoison(t) || IsPoison(e)) {
      Done(n, IsPoison(t) ? e : t);
    } else if (!solver_.Unify(t, e)) {
      Error(n, fmt::format("the branches of `if` have types {} and {}, must be equal", Text(t), Text(e)));
      Done(n, Poison());
    } else {
      Done(n, solver_.Join(t, e));
    }
  } else if (n->IsInstance<MatchNode>()) {
    const auto* m = static_cast<const MatchNode*>(n);
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
    if (Keep(n)) return;
    CheckCovered(m);
    Type type;
    for (const Clause& c : m->clauses) {
      Type t = TypeOf(c->rhs.get());
      if (!type.defined() || IsPoison(type)) {
        type = t;
      } else if (!IsPoison(t)) {
        if (!solver_.Unify(type, t)) {
          Error(Place(c->rhs.get(), m),
                fmt::format("this clause of `match` has type {}, those before have {}", Text(t), Text(type)));
        } else {
          type = solver_.Join(type, t);
        }
      }
    }
    Done(n, type.defined() ? type : solver_.NewHole());
  } else if (n->IsInstance<RefCreateNode>()) {
    const auto* r = static_cast<const RefCreateNode*>(n);
    if (phase == 0) {
      Need(r->value);
      return;
    }
    stack_.pop_back();
    if (!Keep(n)) Done(n, RelayRefType(TypeOf(r->value.get())));
  } else if (n->IsInstance<RefReadNode>() || n->IsInstance<RefWriteNode>()) {
    const auto* w = n->IsInstance<RefWriteNode>() ? static_cast<const RefWriteNode*>(n) : nullptr;
    const Expr& ref = w ? w->ref : static_cast<const RefReadNode*>(n)->ref;
    if (phase == 0) {
      if (w) Need(w->value);
      Need(ref);
      return;
    }
    stack_.pop_back();
    if (Keep(n)) return;
    Type value = w ? TypeOf(w->value.get()) : solver_.NewHole(), type = TypeOf(ref.get());
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
  } else {
    throw CompileError("`" + n->GetTypeKey() + "` is no Relay expression that has a type");
  }
}

// ---- Variables and globals

Type Inferencer::VarType(const VarNode* var) {
  if (const Info* i = info_.Find(var)) return i->type;
  Type type = var->type_annotation.defined()                        ? var->type_annotation
              : mode_ != Mode::kAll && var->checked_type_.defined() ? Existing(var)
                                                                    : solver_.NewHole();
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
    if (!IsPoison(value) && !solver_.Unify(want, value)) {
      Error(var->span.defined() ? static_cast<const BaseExprNode*>(var) : let->value.get(),
            fmt::format("`%{}` is declared as {}, its value has type {}", var->name_hint().view(), Text(want),
                        Text(value)));
    }
    return;
  }
  if (const Info* i = info_.Find(var)) {  // seen in its own value: recursion
    if (!IsPoison(value) && !solver_.Unify(i->type, value)) {
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
  // Its uses were typed by what it was.
  if (mode_ == Mode::kNew && var->checked_type_.defined() && info_.Find(var)->changed) throw Again();
}

Type Inferencer::GlobalType(const GlobalVarNode* var) {
  if (globals) {
    const Type* known = globals->Find(var->name_hint.view());
    if (known && known->defined()) return *known;
  }
  if (mod_.defined() && mod_->ContainGlobalVar(var->name_hint.view())) {
    // A function of another IR: its callers know what it gives.
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
  // Mostly at its number: a data type may have many.
  const auto tag = static_cast<size_t>(c->tag);
  const bool there = c->tag >= 0 && tag < data->constructors.size() &&
                     data->constructors[static_cast<int64_t>(tag)]->name_hint == c->name_hint;
  for (size_t i = there ? tag : 0; i < data->constructors.size(); ++i) {
    const Constructor& k = data->constructors[static_cast<int64_t>(i)];
    if (!(k->name_hint == c->name_hint)) continue;
    Array<Type> params(data->type_vars.begin(), data->type_vars.end());
    return FuncType(data->type_vars, k->inputs, TypeCall(data->header, params), Array<TypeConstraint>());
  }
  Error(c,
        fmt::format("the data type `{}` has no constructor `{}`", data->header->name_hint.view(), c->name_hint.view()));
  return Poison();
}

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
      const auto& parts = static_cast<const PatternTupleNode*>(p)->patterns;
      Array<Type> types;
      for (size_t i = 0; i < parts.size(); ++i) types.push_back(IsPoison(t) ? t : solver_.NewHole());
      if (!IsPoison(t) && !solver_.Unify(t, TupleType(types))) {
        Error(&at, fmt::format("the pattern is a tuple of {}, it is matched with {}", parts.size(), Text(t)));
        continue;
      }
      for (size_t i = parts.size(); i-- > 0;) stack.push_back({parts[i].get(), types[i]});
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
    with.push_back({f->type_params[i].get(), i < type_args.size() ? type_args[i] : solver_.NewHole()});
  }
  // Type variables stand within bound holes, too.
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

/// Whether the arguments' types say what the type parameters are, whatever stands around the call.
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
      if (!call->attrs.defined() || call->attrs->type_index() != want) {
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
      Type result = scratch_value_.defined() ? scratch_value_ : solver_.NewHole();
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
    Type result = solver_.NewHole();
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
    for (size_t i = 0; i < sig->type_params.size(); ++i) type_args.push_back(solver_.NewHole());
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
    if (!solver_.Unify(sig->arg_types[i], got)) {
      Error(Place(call->args[i].get(), call), fmt::format("argument {} of {} has type {}, must be {}", i,
                                                          Named(call->op.get()), Text(got), Text(sig->arg_types[i])));
    }
  }
  Done(call, sig->ret_type);
}

/// Asks the operator; true if it decided. An error is reported here.
bool Inferencer::Relation(const CallNode* call, const Type& result, bool last) {
  const auto* op = call->op.as<OpNode>();
  const OpDef* def = DefOf(call->op);
  auto n = make_object<runtime::ArrayObj>();
  n->items.reserve(call->args.size() + 1);
  for (const Expr& a : call->args) n->items.push_back(Any(solver_.Resolve(TypeOf(a.get()))));
  n->items.push_back(Any(result));
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
      if (solver_.FirstHole(TypeOf(call->args[i].get()))) return false;  // reported where it comes from
    }
    Error(call, fmt::format("[{}] the result's type does not follow from the arguments", op->name.view()),
          ArgsLabel(call));
  }
  return decided;
}

void Inferencer::FinishTupleGetItem(const TupleGetItemNode* item) {
  Type result = solver_.NewHole();
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

void Inferencer::Await(Wait w) {
  const uint32_t i = static_cast<uint32_t>(waiting_.size());
  auto on = [&](const Expr& e) {
    // One hole of each argument: when it is filled the next one is looked for.
    if (const Object* hole = solver_.FirstHole(TypeOf(e.get()))) watch_[hole].push_back(i);
  };
  if (w.call) {
    for (const Expr& a : w.call->args) on(a);
  } else {
    on(w.item->tuple);
  }
  waiting_.push_back(std::move(w));
}

void Inferencer::Solve() {
  for (;;) {
    for (const Object* hole : solver_.TakeBound()) {
      if (auto* list = watch_.Find(hole)) {
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
          if (const Object* hole = solver_.FirstHole(TypeOf(e.get()))) watch_[hole].push_back(i);
        };
        if (w.call) {
          for (const Expr& a : w.call->args) on(a);
        } else {
          on(w.item->tuple);
        }
      }
    }
  }
}

void Inferencer::CheckComplete() {
  if (!errors_->empty()) return;
  // What nobody decided: variables first, since what they are used in follows from them; then functions.
  for (const bool functions : {false, true}) {
    for (uint32_t at : order_) {
      runtime::PollInterrupt();
      const ExprNode* n = info_.At(at).node;
      if (!solver_.FirstHole(info_.At(at).info.type) || !n->IsInstance<VarNode>()) continue;
      const Type found = solver_.Find(TypeOf(n));
      const auto* f = found.as<FuncTypeNode>();
      if ((f != nullptr) != functions) continue;
      const std::string_view name = static_cast<const VarNode*>(n)->name_hint().view();
      if (f && solver_.FirstHole(f->ret_type)) {
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
    if (!solver_.FirstHole(info_.At(at).info.type)) continue;
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

// ---- Writing

/// A function that does not say what it returns, and whose type does.
bool LacksReturnType(const ExprNode* n) {
  return n->IsInstance<FunctionNode>() && !static_cast<const FunctionNode*>(n)->ret_type.defined();
}
/// What a function states is checked: attributes of an operator may have asked for a dimension that there cannot be.
void CheckDimensions(const Type& type) {
  std::vector<Type> todo{type};
  while (!todo.empty()) {
    const Type t = todo.back();
    todo.pop_back();
    if (const auto* tuple = t.as<TupleTypeNode>()) {
      for (const Type& f : tuple->fields) todo.push_back(f);
    } else if (const auto* tensor = t.as<TensorTypeNode>()) {
      for (const PrimExpr& d : tensor->shape) {
        const auto* n = d.as<IntImmNode>();
        if (n && n->value < 0) {
          throw CompileError(
              fmt::format("the result of a function has type {}: a dimension is {}", TypeText(t), n->value));
        }
      }
    }
  }
}
/// The same function, saying what it returns.
Expr WithReturnType(const Expr& fn, const Type& type) {
  const auto* t = type.as<FuncTypeNode>();
  if (!t) return fn;
  CheckDimensions(t->ret_type);
  auto n = make_object<FunctionNode>(*fn.as<FunctionNode>());
  n->ret_type = t->ret_type;
  n->checked_type_ = type;
  return Function(n);
}

/// Rebuilds what had another type before, and what contains it.
class Retyper : public ExprMutator {
 public:
  void One(const ExprNode* n, const Type& type, const Array<Type>* type_args) {
    Expr old = GetRef<Expr>(n);
    Expr made = ExprFunctor::VisitExpr(old);
    if (type_args && !type_args->empty()) {
      auto call = make_object<CallNode>(*made.as<CallNode>());
      call->type_args = *type_args;
      made = Call(call);
    }
    if (made.same_as(old)) {
      if (!n->checked_type_.defined()) {
        n->checked_type_ = type;
      } else if (!n->checked_type_.same_as(type)) {
        made = Expr(runtime::TypeInfo::Get(n->type_index())->copy(n));
        made->checked_type_ = type;
      }
    } else {
      made->checked_type_ = type;
    }
    if (LacksReturnType(made.get())) made = WithReturnType(made, type);
    memo_[old] = made;
  }
  Expr Get(const Expr& e) {
    auto it = memo_.find(e);
    return it == memo_.end() ? e : it->second;
  }
  /// Parts that were taken as they are stay so.
  Expr VisitExpr(const Expr& e) override { return Get(e); }
};

Expr Inferencer::Write(const Expr& root, bool may_copy) {
  bool copies = false;
  for (uint32_t at : order_) {
    runtime::PollInterrupt();
    const ExprNode* n = info_.At(at).node;
    Info& i = info_.At(at).info;
    if (n != root.get() && LacksReturnType(n)) copies = true;
    if (Array<Type>* given = type_args_.Find(n)) {
      bool known = true;
      for (size_t k = 0; k < given->size(); ++k) {
        known = known && !solver_.FirstHole((*given)[k]);
        given->Set(k, solver_.Resolve((*given)[k]));
      }
      if (!known) *given = Array<Type>();  // of a parameter that nothing has the type of
      copies = copies || known;
    }
    if (!i.changed) continue;
    if (Type known = solver_.Resolve(i.type); !known.same_as(i.type)) i.type = pool_->Share(std::move(known));
    if (!n->checked_type_.defined()) continue;
    if (StructuralEqual(n->checked_type_, i.type))
      i.changed = false, i.type = Existing(n);
    else
      copies = true;
  }
  if (!copies || !may_copy) {
    for (uint32_t at : order_) {
      const ExprNode* n = info_.At(at).node;
      const Info& i = info_.At(at).info;
      if (i.changed && !n->checked_type_.defined()) n->checked_type_ = i.type;
    }
    return root;
  }
  Retyper retyper;
  for (uint32_t at : order_) {
    runtime::PollInterrupt();
    const ExprNode* n = info_.At(at).node;
    if (n->IsInstance<ConstructorNode>() || n->IsInstance<ConstantNode>()) {
      if (!n->checked_type_.defined() && n->IsInstance<ConstantNode>()) n->checked_type_ = info_.At(at).info.type;
      continue;
    }
    retyper.One(n, info_.At(at).info.type, type_args_.Find(n));
  }
  return retyper.Get(root);
}

// ---- Modules

bool Declared(const FunctionNode* f) {
  if (!f->ret_type.defined()) return false;
  for (const Var& p : f->params) {
    if (!p->type_annotation.defined()) return false;
  }
  return true;
}

Type DeclaredType(const FunctionNode* f, Inferencer* holes) {
  Array<Type> params;
  for (const Var& p : f->params)
    params.push_back(p->type_annotation.defined() || !holes ? p->type_annotation : holes->NewHole());
  return FuncType(f->type_params, params, f->ret_type.defined() || !holes ? f->ret_type : holes->NewHole(),
                  Array<TypeConstraint>());
}

struct Func {
  size_t entry;  ///< its place in the module
  GlobalVar var;
  Function func;
};

/// One attempt over all functions; fills `result` with the typed ones.
void InferAll(const IRModule& mod, const std::vector<Func>& funcs, Mode mode, DiagnosticList* errors, TypePool* pool,
              std::vector<Function>* result) {
  GlobalTypes globals(mod);
  std::vector<size_t> todo;
  bool order_matters = false;
  for (size_t i = 0; i < funcs.size(); ++i) {
    const Func& f = funcs[i];
    if (mode == Mode::kNew && f.func->checked_type_.defined()) {
      // Its callers were typed by the variable's type.
      if (f.var->checked_type_.defined() && !StructuralEqual(f.var->checked_type_, f.func->checked_type_))
        throw Again();
      globals[f.entry] = runtime::RefCast<Type>(f.func->checked_type_);
      (*result)[i] = f.func;
    } else {
      todo.push_back(i);
      if (Declared(f.func.get()))
        globals[f.entry] = DeclaredType(f.func.get(), nullptr);
      else
        order_matters = true;
    }
  }
  std::vector<std::vector<size_t>> groups;
  if (order_matters && todo.size() > 1) {
    std::vector<std::vector<size_t>> calls(todo.size());
    constexpr size_t kNone = SIZE_MAX;
    std::vector<size_t> local(mod->functions.size(), kNone);
    for (size_t k = 0; k < todo.size(); ++k) local[funcs[todo[k]].entry] = k;
    for (size_t k = 0; k < todo.size(); ++k) {
      for (const ExprNode* n : PostOrderNodes(funcs[todo[k]].func)) {
        if (!n->IsInstance<GlobalVarNode>()) continue;
        const Type* type = globals.Find(static_cast<const GlobalVarNode*>(n)->name_hint.view());
        if (!type || type->defined()) continue;
        if (const size_t callee = local[globals.EntryOf(type)]; callee != kNone) calls[k].push_back(callee);
      }
    }
    groups = CallGroups(calls);
    for (auto& g : groups) {
      for (size_t& k : g) k = todo[k];
    }
  } else {
    for (size_t i : todo) groups.push_back({i});
  }
  for (const auto& group : groups) {
    Inferencer infer(mod, mode, errors, pool);
    infer.globals = &globals;
    const size_t before = errors->size();
    for (size_t i : group) {
      Type& type = globals[funcs[i].entry];
      if (!type.defined()) type = DeclaredType(funcs[i].func.get(), &infer);
    }
    for (size_t i : group) {
      infer.where = funcs[i].var->name_hint.view();
      infer.Walk(funcs[i].func);
      Type type = infer.TypeOf(funcs[i].func.get());
      const Type used = globals[funcs[i].entry];
      if (!infer.Unify(used, type)) {
        errors->Error(funcs[i].func->span,
                      fmt::format("@{} is used as {}, its type is {}", infer.where, TypeText(used), TypeText(type)));
      }
    }
    infer.Solve();
    if (errors->size() == before) infer.CheckComplete();
    if (errors->size() != before) {
      // Callers go on with what is known.
      for (size_t i : group) globals[funcs[i].entry] = infer.FinalType(funcs[i].func);
      continue;
    }
    for (size_t i : group) {
      const Func& f = funcs[i];
      Type type = infer.FinalType(f.func);
      globals[f.entry] = type;
      if (mode == Mode::kNew && f.var->checked_type_.defined() && !StructuralEqual(f.var->checked_type_, type))
        throw Again();
    }
    if (!errors->empty()) continue;
    for (size_t i : group) (*result)[i] = Downcast<Function>(infer.Write(funcs[i].func));
  }
  if (!errors->empty()) return;
  for (const Func& f : funcs) {
    const Type& type = globals[f.entry];
    // The variable's type is a note of what its module says, not a part of its value: it follows the module.
    if (!f.var->checked_type_.defined() || !StructuralEqual(f.var->checked_type_, type)) f.var->checked_type_ = type;
  }
}

}  // namespace

IRModule InferModuleTypes(const IRModule& mod) {
  std::vector<Func> funcs;
  size_t entry = 0;
  for (const auto& [var, func] : mod->functions) {
    if (func.as<FunctionNode>()) funcs.push_back({entry, var, Downcast<Function>(func)});
    ++entry;
  }
  DiagnosticList errors;
  TypePool pool;
  std::vector<Function> result;
  for (Mode mode : {Mode::kNew, Mode::kParts, Mode::kAll}) {
    errors.Clear();
    result.assign(funcs.size(), Function());
    try {
      InferAll(mod, funcs, mode, &errors, &pool, &result);
    } catch (const Again&) {
      ICHECK(mode != Mode::kAll) << "inference starts over without an end";
      continue;
    }
    if (errors.empty()) break;
  }
  errors.ThrowIfAny(baton::transform::PassContext::Current()->diag_ctx);
  IRModule out = mod;
  for (size_t i = 0; i < funcs.size(); ++i) {
    if (LacksReturnType(result[i].get()) && result[i]->checked_type_.defined()) {
      result[i] = Downcast<Function>(WithReturnType(result[i], runtime::RefCast<Type>(result[i]->checked_type_)));
    }
    if (result[i].same_as(funcs[i].func)) continue;
    if (out.same_as(mod)) out = mod.Copy();
    out.CopyOnWrite()->Update(funcs[i].var, result[i]);
  }
  return out;
}

namespace transform {

Type InferTypeOf(const Expr& expr) { return InferTypeOf(expr, IRModule()); }

Type InferTypeOf(const Expr& expr, const IRModule& mod) {
  if (!expr.defined()) throw CompileError("a null expression has no type");
  DiagnosticList errors;
  TypePool pool;
  for (Mode mode : {Mode::kNew, Mode::kAll}) {
    errors.Clear();
    Inferencer infer(mod, mode, &errors, &pool);
    try {
      infer.Walk(expr);
    } catch (const Again&) {
      continue;
    }
    infer.Solve();
    infer.CheckComplete();
    if (!errors.empty()) continue;
    infer.Write(expr, false);
    return infer.FinalType(expr);
  }
  errors.ThrowIfAny(baton::transform::PassContext::Current()->diag_ctx);
  throw InternalError("inference ended without a type");
}

Pass InferType() {
  return MakePass<InferType>({
      .doc = "Gives every expression its type. Errors name the operator, what it requires and what it got.",
      .opt_level = 0,
      .establishes = {"Typed"},
      .keeps = {"*"},
      .run = [](IRModule mod, PassContext) { return InferModuleTypes(mod); },
  });
}

namespace {
const RegisterPass<InferType> registered;
}  // namespace

/// What the pass does, without being a pass: nothing observes it.
BATON_REGISTER_GLOBAL("relay.analysis.InferModuleTypes").set_body_typed([](IRModule mod) {
  return InferModuleTypes(mod);
});
BATON_REGISTER_GLOBAL("relay._transform.InferTypeLocal").set_body_typed([](Expr expr) { return InferTypeOf(expr); });
/// Expressions that inference visited on this thread so far, those included whose types it took as they are.
BATON_REGISTER_GLOBAL("relay.analysis.infer_type_work").set_body_typed([] { return visited; });
BATON_REGISTER_GLOBAL("relay.analysis.InferTypeOf").set_body_typed([](Expr expr, IRModule mod) {
  return InferTypeOf(expr, mod);
});

}  // namespace transform
}  // namespace baton::relay
