// SPDX-License-Identifier: Apache-2.0
// Type inference.
//
// One walk over an expression, inputs before users and values before the bodies that see them, gives each node a type
// that may have type variables. Calls of operators ask the operator's relation, at once if it can decide, else when a
// type variable that it waits for is bound. Functions of a module are taken by groups that call each other, callees
// first.
//
// Types from an earlier run are reused. A typed node is the root of a typed graph, and nodes do
// not change, so its type holds as long as that of each variable and global in it does. Hence three modes:
// - kNew: take typed nodes as they are; if a variable or a global turns out to have another type than before:
// - kParts: go through everything; a node whose children kept their types keeps its own;
// - kAll: find every type anew; also tried before an error is reported.
// Equal types are one object, including those from earlier runs.
#pragma once

#include <baton/arith/extent.h>
#include <baton/ir/diagnostic.h>
#include <baton/ir/progress.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/runtime/named.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/children.h>
#include <relay/text/type_text.h>
#include <relay/types/type_pool.h>
#include <relay/types/type_solver.h>

#include <string>
#include <string_view>
#include <vector>

namespace baton::relay::inference {

enum class Mode { kNew, kChildren, kAll };
/// Thrown internally to restart in the next mode.
struct Again {};

struct Info {
  Type type;
  bool changed = false;  ///< differs from the type that the node has, or it has none
};
/// State of nodes, in order of discovery, so that loops over all nodes need no look-ups.
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
  Info& operator[](const ExprNode* n) { return entries_[IdOf(n)].info; }
  /// The node's place among the entries, which it gets if it has none.
  uint32_t IdOf(const ExprNode* n) {
    bool fresh = false;
    uint32_t& i = numbers_.Insert(n, &fresh);
    if (fresh) {
      i = static_cast<uint32_t>(entries_.size());
      entries_.push_back({n, {}});
    }
    return i;
  }
  Entry& At(uint32_t id) { return entries_[id]; }

 private:
  PointerMap<uint32_t> numbers_;
  std::vector<Entry> entries_;
};

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
/// not, with type variables of `inferencer`.
bool Declared(const FunctionNode* f);
Type DeclaredType(const FunctionNode* f, Inferencer* inferencer);
class Inferencer final : private TypeReporter {
 public:
  Inferencer(const IRModule& mod, Mode mode, DiagnosticList* errors, TypePool* pool)
      : mod_(mod), mode_(mode), errors_(errors), pool_(pool), solver_(pool) {
    scratch_ = solver_.NewVariable();
  }

  /// Types of globals that this run has to go by; null: those that the module says, each looked up where it is used,
  /// since expressions are small beside their modules.
  GlobalTypes* globals = nullptr;
  /// Variables without a declared type have the one that was found for them before: from uses that may be gone.
  bool variables_stand = false;
  std::string_view where;  ///< name of the function, for errors without a place

  void Walk(const Expr& root);
  /// Asks the relations that wait, until none gets further; what is left is an error.
  void Solve();
  Type TypeOf(const ExprNode* e) {
    const Info* i = info_.Find(e);
    return i ? i->type : Type();
  }
  Type FinalType(const Expr& e) { return solver_.Resolve(TypeOf(e.get())); }
  /// Whether the type is unknown or incomplete.
  bool IsOpen(const ExprNode* e) { return solver_.FirstUnbound(TypeOf(e)) != nullptr; }
  bool Unify(const Type& a, const Type& b) { return solver_.Unify(a, b); }
  Type NewVariable() { return solver_.NewVariable(); }
  /// The function with what was assumed of extents in its attribute `extent_guards`, beside what is there.
  Function WithGuards(const Function& f) const;
  /// Reports an error for each type that is not known completely.
  void CheckComplete();
  /// Returns the first type of a node that contradicts the inferred one, or "". An extent that one of
  /// them leaves open contradicts nothing.
  std::string Contradiction();
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
  // A step of one node: phase 0 pushes its children, the last phase assigns its type.
  void StepFunction(const FunctionNode* fn, uint32_t phase);
  void StepIf(const IfNode* i, uint32_t phase);
  void StepMatch(const MatchNode* m, uint32_t phase);
  void StepReference(const ExprNode* n, uint32_t phase);
  /// The parent of the current node: the innermost node that waits for its children.
  const ExprNode* User() const {
    for (size_t i = stack_.size() - 1; i-- > 0;) {
      if (stack_[i].phase > 0) return stack_[i].n;
    }
    return nullptr;
  }
  /// The place of a part: a variable or a constructor has the place of its definition, so what it is a part of.
  static const BaseExprNode* Place(const ExprNode* operand, const ExprNode* whole) {
    const bool own =
        operand->span.defined() && !operand->IsInstance<VarNode>() && !operand->IsInstance<ConstructorNode>();
    return own ? operand : whole;
  }
  bool Enter(const ExprNode* n);
  void Done(const ExprNode* n, Type type);
  void Need(const Expr& operand) {
    if (!operand.defined()) throw CompileError("a part of an expression is missing (null)");
    if (!info_.Has(operand.get())) stack_.push_back({operand.get(), 0});
  }
  bool Changed(const Expr& e) {
    const Info* i = info_.Find(e.get());
    return !i || i->changed;
  }
  /// The type that the node has, if it may be kept.
  bool Keep(const ExprNode* n) {
    if (mode_ == Mode::kAll || !n->checked_type_.defined()) return false;
    bool kept = true;
    ForEachChild(n, [&](const ExprNode* p) {
      if (p->IsInstance<OpNode>()) return;
      const Info* i = info_.Find(p);
      kept = kept && i && !i->changed;
    });
    if (kept) {
      Trust(n);
      order_.push_back(info_.IdOf(n));
    }
    return kept;
  }
  static Type Existing(const ExprNode* n) { return runtime::RefCast<Type>(n->checked_type_); }
  /// Takes a typed node as it is: what is made of it has its type where that is equal.
  void Trust(const ExprNode* n) {
    trusted_ = trusted_ || !n->IsInstance<ConstantNode>();
    Type type = Existing(n);
    pool_->Share(type);
    info_[n] = {std::move(type), false};
  }

  void DefineVar(const Var& var, const Type& type);
  Type VarType(const VarNode* var);
  /// Reports a type of the program that makes no sense, such as a data type with too few arguments; each is looked at
  /// once. The type, or one that errors come from.
  Type Sensible(const Type& type, const ExprNode* at);
  Type GlobalType(const GlobalVarNode* var);
  Type ConstructorType(const ConstructorNode* c);
  const TypeDataNode* DataType_(const GlobalTypeVar& header, const ObjectRef& at);
  void BindLet(const LetNode* let);
  void BindPattern(const PatternNode* pattern, const Type& type, const MatchNode* match);
  void CheckCovered(const MatchNode* match);
  void FinishCall(const CallNode* call);
  bool ArgumentsDecide(const FuncTypeNode* sig);
  bool Relation(const CallNode* call, const Type& result, bool last);
  /// Lets relations that still wait for an argument say what it most likely is.
  void GuessRest();
  /// Adds the parameters that have no annotation and a type that is known; whether there is one.
  bool ParamsToAnnotate(PointerSet* out);
  void FinishTupleGetItem(const TupleGetItemNode* item);
  bool Project(const TupleGetItemNode* item, const Type& result);
  Type Instantiate(const FuncTypeNode* f, const Array<Type>& type_args);
  void Await(Wait w);
  /// Unifies types of which an extent may be named in one and known in the other; that they are equal is a guard.
  bool Agree(const Type& a, const Type& b) {
    TypeSolver::Assumed assumed;
    if (!solver_.UnifyAssuming(a, b, &assumed)) return false;
    for (const auto& [x, y] : assumed) Assume(x, y);
    return true;
  }
  /// Whether an argument has the type of a parameter. Names of another global function's extents are its own.
  bool Fits(const CallNode* call, const Type& parameter, const Type& argument) {
    return call->op.as<GlobalVarNode>() ? solver_.Unify(parameter, argument) : Agree(parameter, argument);
  }

  bool IsPoison(const Type& t) {
    Type f = solver_.Find(t);
    return f.defined() && poison_.Has(f.get());
  }
  Type Poison() {
    Type t = solver_.NewVariable();
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
  bool AssertEQ(const PrimExpr& a, const PrimExpr& b) override {
    if (a.same_as(b)) return true;
    const arith::Fact same = arith::ExtentsEqual(a, b);
    if (same == arith::Fact::kOpen) Assume(a, b);
    return same != arith::Fact::kNo;
  }
  void Assume(const PrimExpr& a, const PrimExpr& b) override;
  bool Guessing() override { return guessing_; }
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
  PointerSet poison_, sensible_;
  PointerMap<const ConstantNode*> let_constants_;
  PointerMap<uint32_t> attrs_index_;
  std::vector<Any> keep_;
  const CallNode* call_ = nullptr;
  bool trusted_ = false;               ///< typed nodes were taken as they are, unseen
  bool guessing_ = false;              ///< within GuessRest
  PointerMap<bool> arguments_decide_;  // by signature
  PointerMap<Array<Type>> type_args_;  // of calls that did not state them and whose arguments do not say them
  Type scratch_, scratch_value_;
  Array<Any> guards_;
};

/// A callee or value in a few words.
std::string Name(const ExprNode* e);
/// The same in backticks, as the beginning of a sentence.
std::string Named(const ExprNode* e);
inline const char* Plural(size_t n) { return n == 1 ? "" : "s"; }

/// A function that does not say what it returns, and whose type does.
inline bool LacksReturnType(const ExprNode* n) {
  return n->IsInstance<FunctionNode>() && !static_cast<const FunctionNode*>(n)->ret_type.defined();
}
/// The same function, saying what it returns. CompileError for a dimension that there cannot be; types in `checked`,
/// which are to live as long, have none.
Expr WithReturnType(const Expr& fn, const Type& type, PointerSet* checked);

}  // namespace baton::relay::inference
