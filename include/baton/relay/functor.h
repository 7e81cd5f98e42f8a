// SPDX-License-Identifier: Apache-2.0
// Traversal of Relay: ExprFunctor, ExprVisitor, ExprMutator and their iterative forms.
// Depth: MixedModeVisitor/MixedModeMutator expand calls, tuples, tuple accesses and let chains with an explicit stack;
// any functor that nears the end of its stack goes on on a fresh one, so a naive recursive visitor survives too.
#pragma once

#include <baton/relay/expr.h>
#include <baton/relay/node_list.h>
#include <baton/support/pointer_map.h>
#include <baton/support/stack.h>

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace baton::relay {

/// Expression kinds, in the order of the dispatch table.
// clang-format off: it never settles on this list
#define BATON_RELAY_EXPR_KINDS(X)                                                                     \
  X(ConstantNode)                                                                                     \
  X(TupleNode) X(VarNode) X(GlobalVarNode) X(FunctionNode) X(CallNode) X(LetNode) X(IfNode) X(OpNode) \
      X(TupleGetItemNode) X(RefCreateNode) X(RefReadNode) X(RefWriteNode) X(ConstructorNode) X(MatchNode)
// clang-format on

template <class FType>
class ExprFunctor;

#define EXPR_FUNCTOR_DEFAULT                                   \
  {                                                            \
    return VisitExprDefault_(op, std::forward<Args>(args)...); \
  }

/// Dispatch on the kind of expression by a separate table, indexed by runtime type.
template <class R, class... Args>
class ExprFunctor<R(const Expr& n, Args...)> {
 public:
  using result_type = R;
  virtual ~ExprFunctor() = default;
  R operator()(const Expr& n, Args... args) { return VisitExpr(n, std::forward<Args>(args)...); }
  virtual R VisitExpr(const Expr& n, Args... args) {
    if (!n.defined()) throw CompileError("a null expression cannot be visited");
    return support::WithStack([&]() -> R { return Table()(n, this, std::forward<Args>(args)...); });
  }
#define BATON_DECLARE(N) virtual R VisitExpr_(const N* op, Args... args) EXPR_FUNCTOR_DEFAULT
  BATON_RELAY_EXPR_KINDS(BATON_DECLARE)
#undef BATON_DECLARE
  virtual R VisitExprDefault_(const Object* op, Args...) {
    throw InternalError("no handler for expression of type `" + op->GetTypeKey() + "`");
  }

 private:
  using Self = ExprFunctor<R(const Expr& n, Args...)>;
  struct VTable {
    using Fn = R (*)(const Object* n, Self* self, Args... args);
    std::vector<Fn> fns;
    VTable() {
#define BATON_ENTRY(N)                                                              \
  Set(N::RuntimeTypeIndex(), [](const Object* n, Self* self, Args... args) -> R {   \
    return self->VisitExpr_(static_cast<const N*>(n), std::forward<Args>(args)...); \
  });
      BATON_RELAY_EXPR_KINDS(BATON_ENTRY)
#undef BATON_ENTRY
    }
    void Set(uint32_t i, Fn f) {
      if (fns.size() <= i) fns.resize(i + 1);
      fns[i] = f;
    }
    R operator()(const ObjectRef& n, Self* self, Args... args) const {
      uint32_t i = n.get()->type_index();
      if (i < fns.size() && fns[i]) return fns[i](n.get(), self, std::forward<Args>(args)...);
      return self->VisitExprDefault_(n.get(), std::forward<Args>(args)...);
    }
  };
  static const VTable& Table() {
    static const VTable table;
    return table;
  }
};

/// How often each node was visited, by its address.
class VisitCounter {
 public:
  size_t& operator[](const Object* n) { return counts_[n]; }
  size_t count(const Object* n) const { return counts_.Has(n) ? 1 : 0; }
  size_t size() const { return counts_.size(); }
  void clear() { counts_.Clear(); }

 private:
  PointerMap<size_t> counts_;
};

/// The results by expression. Used like a std::unordered_map whose keys are compared as objects, which it keeps
/// alive; it has no order to go through, and a reference into it holds until the next insertion.
class ExprMemo {
 public:
  struct value_type {
    using ZeroIsDefault = void;
    const void* Key() const { return first.get(); }
    void SetKey(const void* e) {
      first = GetRef<Expr>(static_cast<const BaseExprNode*>(static_cast<const Object*>(e)));
    }
    Expr first, second;
  };
  using iterator = value_type*;
  using const_iterator = const value_type*;

  iterator find(const Expr& e) { return map_.Find(e.get()); }
  const_iterator find(const Expr& e) const { return map_.Find(e.get()); }
  static constexpr std::nullptr_t end() { return nullptr; }
  size_t count(const Expr& e) const { return map_.Has(e.get()) ? 1 : 0; }
  bool contains(const Expr& e) const { return map_.Has(e.get()); }
  Expr& operator[](const Expr& e) { return Entry(e)->second; }
  /// Throws InternalError where there is none.
  Expr& at(const Expr& e) {
    if (value_type* v = map_.Find(e.get())) return v->second;
    throw InternalError("the expression has not been visited");
  }
  /// Leaves what is there.
  std::pair<iterator, bool> emplace(const Expr& e, Expr value) {
    value_type* v = Entry(e);
    const bool fresh = !v->second.defined();
    if (fresh) v->second = std::move(value);
    return {v, fresh};
  }
  size_t erase(const Expr& e) { return map_.Erase(e.get()) ? 1 : 0; }
  size_t size() const { return map_.size(); }
  bool empty() const { return map_.size() == 0; }
  void clear() { map_.Clear(); }

 private:
  value_type* Entry(const Expr& e) {
    if (!e.defined()) throw InternalError("a null expression is not a key");
    return &map_.Insert(e.get());
  }
  PointerMap<value_type> map_;
};

/// Read-only traversal. A visit handles shared nodes once (and forgets them at its end, so that a visitor can be used
/// again); an override of VisitExpr sees every edge. If: cond, true, false; Let: value, var, body.
class BATON_DLL ExprVisitor : public ExprFunctor<void(const Expr&)> {
 public:
  void VisitExpr(const Expr& expr) override;
  void VisitExpr_(const ConstantNode*) override;
  void VisitExpr_(const TupleNode*) override;
  void VisitExpr_(const VarNode*) override;
  void VisitExpr_(const GlobalVarNode*) override;
  void VisitExpr_(const FunctionNode*) override;
  void VisitExpr_(const CallNode*) override;
  void VisitExpr_(const LetNode*) override;
  void VisitExpr_(const IfNode*) override;
  void VisitExpr_(const OpNode*) override;
  void VisitExpr_(const TupleGetItemNode*) override;
  void VisitExpr_(const RefCreateNode*) override;
  void VisitExpr_(const RefReadNode*) override;
  void VisitExpr_(const RefWriteNode*) override;
  void VisitExpr_(const ConstructorNode*) override;
  void VisitExpr_(const MatchNode*) override;
  virtual void VisitType(const Type&) {}
  virtual void VisitSpan(const Span&) {}
  virtual void VisitPattern(const Pattern& p);

 protected:
  VisitCounter visit_counter_;
  size_t depth_ = 0;  ///< of VisitExpr within each other
};

/// Rewriting traversal. A node without changed children is returned unchanged; shared nodes are rewritten once.
class BATON_DLL ExprMutator : public ExprFunctor<Expr(const Expr&)> {
 public:
  Expr Mutate(const Expr& expr) { return VisitExpr(expr); }
  Function Mutate(const Function& f) { return Downcast<Function>(VisitExpr(f)); }
  Expr VisitExpr(const Expr& expr) override;
  Expr VisitExpr_(const ConstantNode*) override;
  Expr VisitExpr_(const TupleNode*) override;
  Expr VisitExpr_(const VarNode*) override;
  Expr VisitExpr_(const GlobalVarNode*) override;
  Expr VisitExpr_(const FunctionNode*) override;
  Expr VisitExpr_(const CallNode*) override;
  Expr VisitExpr_(const LetNode*) override;
  Expr VisitExpr_(const IfNode*) override;
  Expr VisitExpr_(const OpNode*) override;
  Expr VisitExpr_(const TupleGetItemNode*) override;
  Expr VisitExpr_(const RefCreateNode*) override;
  Expr VisitExpr_(const RefReadNode*) override;
  Expr VisitExpr_(const RefWriteNode*) override;
  Expr VisitExpr_(const ConstructorNode*) override;
  Expr VisitExpr_(const MatchNode*) override;
  virtual Type VisitType(const Type& t) { return t; }
  virtual Clause VisitClause(const Clause& c);
  virtual Pattern VisitPattern(const Pattern& p);

 protected:
  ExprMemo memo_;
};

/// ExprVisitor that expands dataflow (calls, tuples, tuple accesses) and let chains iteratively.
/// Each VisitExpr_ is called after those of the node's dataflow inputs, once a node.
class BATON_DLL MixedModeVisitor : public ExprVisitor {
 public:
  void VisitExpr(const Expr& expr) override;
  void VisitExpr_(const CallNode*) override;
  void VisitExpr_(const TupleNode*) override;
  void VisitExpr_(const TupleGetItemNode*) override;
  void VisitExpr_(const LetNode*) override;
  /// Called once for each call, tuple and tuple access, after its inputs.
  virtual void VisitLeaf(const Expr& expr) { ExprFunctor::VisitExpr(expr); }
};

class ExprIndex;
/// ExprMutator that expands dataflow and let chains iteratively. Override Rewrite_(pre, post): `post` already has its
/// children rewritten and is the same object as `pre` when none changed.
/// Results are kept by the numbers of nodes, where that is quicker than the memo. The memo has what was put there
/// for nodes to come; to change what has been visited, or to look at it, there are Put and Known.
class BATON_DLL MixedModeMutator : public ExprMutator {
 public:
  MixedModeMutator();
  ~MixedModeMutator() override;
  Expr VisitExpr(const Expr& expr) override;
  Expr VisitExpr_(const TupleNode* op) final { return RewriteCore(op); }
  Expr VisitExpr_(const CallNode* op) final { return RewriteCore(op); }
  Expr VisitExpr_(const TupleGetItemNode* op) final { return RewriteCore(op); }
  Expr VisitExpr_(const LetNode* op) override;
  using ExprMutator::VisitExpr_;
  virtual Expr Rewrite_(const TupleNode*, const Expr& post) { return post; }
  virtual Expr Rewrite_(const CallNode*, const Expr& post) { return post; }
  virtual Expr Rewrite_(const TupleGetItemNode*, const Expr& post) { return post; }
  /// Called for each binding of a chain, outermost first, before its body; may give another value to bind.
  virtual void PreVisitLet_(const LetNode* op);
  /// Called on the way back; the default rebuilds the let if something changed.
  virtual Expr PostVisitLet_(const LetNode* op, const Expr& value, const Expr& body);

 protected:
  /// Called with each node that is built anew since something below it changed: calls and tuples before Rewrite_ sees
  /// them, other nodes when they are done. Nodes that Rewrite_ makes are not visited.
  virtual void Replaced(const ExprNode*, const Expr&) {}
  /// Returns the result for `expr`, or null if it has not been visited.
  Expr Known(const Expr& expr) const;
  /// From now on it becomes `out`, visited or not.
  void Put(const Expr& expr, const Expr& out);
  /// The nodes of the first root; null where they were not numbered.
  const ExprIndex* graph() const;

 private:
  template <class N>
  Expr RewriteCore(const N* op);
  bool Done(const Expr& expr) const;
  bool Same(const Expr& expr) const;
  Expr VisitNew(const Expr& expr);
  class Results;
  std::unique_ptr<Results> results_;  ///< the nodes of the first root
};

/// Calls f on each node, inputs first, once a node.
BATON_DLL void PostOrderVisit(const Expr& expr, const TypedPackedFunc<void(Expr)>& f);
/// The same as a list; `expr` keeps the nodes alive.
BATON_DLL NodeList PostOrderNodes(const Expr& expr);
/// The same with any callable.
template <class F>
void PostOrder(const Expr& expr, F f) {
  for (const ExprNode* n : PostOrderNodes(expr)) f(GetRef<Expr>(n));
}

/// Free variables in order of first use; all variables; bound ones.
BATON_DLL Array<Var> FreeVars(const Expr& expr);
BATON_DLL Array<Var> BoundVars(const Expr& expr);
BATON_DLL Array<Var> AllVars(const Expr& expr);
/// Replaces free variables.
BATON_DLL Expr Bind(const Expr& expr, const Map<Var, Expr>& binds);

}  // namespace baton::relay
