// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/progress.h>
#include <baton/ir/rewrite_limit.h>
#include <baton/relay/functor.h>
#include <baton/support/pages.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/expr_index.h>

#include <algorithm>

namespace baton::relay {
namespace {

/// Children of a default visit; of calls, tuples and tuple accesses whose operands have been visited; and children that
/// a default rebuild may change.
using Visited = Family<Expr, Type, Clause, Span>;
using VisitedBeside = Family<Type, Span>;
using Rebuilt = Family<Expr, Type, Clause>;

bool IsDataflow(const Object* n) {
  return n->IsInstance<CallNode>() || n->IsInstance<TupleNode>() || n->IsInstance<TupleGetItemNode>();
}

/// Calls `leaf` for each call, tuple and tuple access below `root` that is not `done`, inputs first, and for nodes of
/// other kinds when they are reached. `done` is checked again before `leaf`.
template <class Done, class Leaf>
void ExpandDataflow(const Expr& root, Done done, Leaf leaf) {
  if (done(root)) return;
  if (!root.defined() || !IsDataflow(root.get())) {
    leaf(root);
    return;
  }
  struct Item {
    const Expr* expr;  // lives in its parent, which the root keeps
    bool expanded;
  };
  std::vector<Item> stack{{&root, false}};
  auto push = [&](const Expr& e) { stack.push_back({&e, false}); };
  while (!stack.empty()) {
    Item& top = stack.back();
    const Expr& e = *top.expr;
    if (done(e)) {
      stack.pop_back();
    } else if (top.expanded || !e.defined() || !IsDataflow(e.get())) {
      leaf(e);
      stack.pop_back();
    } else {
      top.expanded = true;
      if (const auto* call = e.as<CallNode>()) {
        for (size_t i = call->args.size(); i-- > 0;) push(call->args[i]);
        if (!call->op.defined() || !call->op->IsInstance<OpNode>() || !done(call->op)) push(call->op);
      } else if (const auto* tuple = e.as<TupleNode>()) {
        for (size_t i = tuple->fields.size(); i-- > 0;) push(tuple->fields[i]);
      } else {
        push(static_cast<const TupleGetItemNode*>(e.get())->tuple);
      }
    }
  }
}

}  // namespace

// ---- ExprVisitor

namespace {
/// Clears the visited set when the outermost visit ends, so that no address outlives its node.
struct VisitScope {
  size_t* depth;
  VisitCounter* visited;
  VisitScope(size_t* d, VisitCounter* v) : depth(d), visited(v) { ++*depth; }
  ~VisitScope() {
    if (--*depth == 0) visited->clear();
  }
};
}  // namespace

void ExprVisitor::VisitExpr(const Expr& expr) {
  VisitScope scope(&depth_, &visit_counter_);
  if (++visit_counter_[expr.get()] == 1) ExprFunctor::VisitExpr(expr);
}

namespace {
template <class Fam, class N>
void VisitChildren(ExprVisitor* v, const N* op) {
  ForEachChildOf<Fam>(op, [v]<class T>(const T& child) {
    if constexpr (std::is_base_of_v<Expr, T>) {
      v->VisitExpr(child);
    } else if constexpr (std::is_base_of_v<Type, T>) {
      if (child.defined()) v->VisitType(child);
    } else if constexpr (std::is_same_v<T, Clause>) {
      v->VisitPattern(child->lhs);
      v->VisitExpr(child->rhs);
    } else {
      v->VisitSpan(child);
    }
  });
}
}  // namespace

// Operators are shared by all programs and are not visited.
#define BATON_VISIT(N)                                                          \
  void ExprVisitor::VisitExpr_(const N* op) {                                   \
    if constexpr (!std::is_same_v<N, OpNode>) VisitChildren<Visited>(this, op); \
  }
BATON_RELAY_EXPR_KINDS(BATON_VISIT)
#undef BATON_VISIT

void ExprVisitor::VisitPattern(const Pattern& p) {
  ForEachPatternChild(p.get(), [&](const Var& v) { VisitExpr(v); }, [&](const Constructor& c) { VisitExpr(c); });
}

// ---- ExprMutator

Expr ExprMutator::VisitExpr(const Expr& expr) {
  auto it = memo_.find(expr);
  if (it != memo_.end()) return it->second;
  baton::transform::progress::AtExpr(expr);
  Expr out = ExprFunctor::VisitExpr(expr);
  memo_[expr] = out;
  return out;
}

namespace {
/// Operators and constructors are shared by all programs; a mutator does not change them.
template <class N>
Expr RebuildChildren(ExprMutator* m, const N* op) {
  if constexpr (std::is_same_v<N, OpNode> || std::is_same_v<N, ConstructorNode>) return GetRef<Expr>(op);
  auto copy = MapChildren<Rebuilt>(op, [m]<class T>(const T& child) {
    if constexpr (std::is_base_of_v<Expr, T>) {
      return m->VisitExpr(child);
    } else if constexpr (std::is_base_of_v<Type, T>) {
      return m->VisitType(child);
    } else {
      return m->VisitClause(child);
    }
  });
  return copy.get() ? Expr(copy) : GetRef<Expr>(op);
}
}  // namespace

#define BATON_REBUILD(N) \
  Expr ExprMutator::VisitExpr_(const N* op) { return RebuildChildren(this, op); }
BATON_RELAY_EXPR_KINDS(BATON_REBUILD)
#undef BATON_REBUILD

Clause ExprMutator::VisitClause(const Clause& c) {
  Pattern lhs = VisitPattern(c->lhs);
  Expr rhs = VisitExpr(c->rhs);
  return lhs.same_as(c->lhs) && rhs.same_as(c->rhs) ? c : Clause(lhs, rhs);
}

Pattern ExprMutator::VisitPattern(const Pattern& p) {
  return support::WithStack([&]() -> Pattern {
    Pattern out = p;
    if (!p.defined()) return out;
    DispatchKind<PatternVarNode, PatternConstructorNode, PatternTupleNode>(p.get(), [&](const auto* n) {
      auto copy = MapChildren<Family<Expr, Pattern>>(n, [this]<class T>(const T& child) {
        if constexpr (std::is_base_of_v<Expr, T>) {
          return VisitExpr(child);
        } else {
          return VisitPattern(child);
        }
      });
      if (copy.get()) out = Pattern(copy);
    });
    return out;
  });
}

// ---- Mixed mode

void MixedModeVisitor::VisitExpr(const Expr& root) {
  VisitScope scope(&depth_, &visit_counter_);
  ExpandDataflow(
      root, [&](const Expr& e) { return visit_counter_.count(e.get()) != 0; },
      [&](const Expr& e) {
        visit_counter_[e.get()] = 1;
        baton::transform::progress::AtExpr(e);
        VisitLeaf(e);
      });
}

void MixedModeVisitor::VisitExpr_(const CallNode* op) { VisitChildren<VisitedBeside>(this, op); }
void MixedModeVisitor::VisitExpr_(const TupleNode* op) { VisitChildren<VisitedBeside>(this, op); }
void MixedModeVisitor::VisitExpr_(const TupleGetItemNode* op) { VisitChildren<VisitedBeside>(this, op); }

void MixedModeVisitor::VisitExpr_(const LetNode* op) {
  for (;;) {
    VisitSpan(op->span);
    VisitExpr(op->value);
    VisitExpr(op->var);
    const auto* next = op->body.as<LetNode>();
    if (!next || visit_counter_.count(next)) {
      VisitExpr(op->body);
      return;
    }
    visit_counter_[next] = 1;
    op = next;
  }
}

/// The rewritten nodes of one root, by id. Unchanged nodes, which are the majority, are kept without reference counts.
class MixedModeMutator::Results {
 public:
  enum State : uint8_t { kNew, kOpen, kSame, kChanged };

  explicit Results(const Expr& root) : root_(root), graph_(root) {
    states_.Fill(graph_.size(), kNew);
    changed_.Fill(graph_.size(), nullptr);
  }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
  ~Results() {
    for (size_t i = 0; i < graph_.size(); ++i) {
      if (changed_[i]) runtime::ObjectAccess::DecRef(changed_[i]);
    }
  }

  const ExprIndex& graph() const { return graph_; }
  /// kNone if it is none of them.
  uint32_t Find(const Expr& e) const {
    if (e.same_as(root_)) return static_cast<uint32_t>(graph_.size() - 1);
    return graph_.IdOf(static_cast<const ExprNode*>(e.get()));
  }
  /// The id of the node that `leaf` may be processing.
  uint32_t Find(const ExprNode* n) const { return at_ < graph_.size() && graph_[at_] == n ? at_ : graph_.IdOf(n); }
  bool Done(uint32_t i) const { return states_[i] >= kSame; }
  /// The result of a node that is done.
  Expr Result(uint32_t i) const {
    return Expr(ObjectPtr<Object>(states_[i] == kSame ? const_cast<ExprNode*>(graph_[i]) : changed_[i]));
  }
  bool Same(uint32_t i) const { return states_[i] == kSame; }
  std::span<const uint32_t> Operands(uint32_t i) const { return graph_.Operands(i); }
  bool SameOperands(uint32_t i) const {
    return std::ranges::all_of(Operands(i), [&](uint32_t child) { return states_[child] == kSame; });
  }
  /// False too if one is missing.
  bool DoneOperands(uint32_t i) const {
    return std::ranges::all_of(Operands(i), [&](uint32_t child) { return child != ExprIndex::kNone && Done(child); });
  }
  void Set(uint32_t i, Expr out) {
    Object* const before = changed_[i];
    if (out.get() == graph_[i]) {
      states_[i] = kSame;
      changed_[i] = nullptr;
    } else {
      states_[i] = kChanged;
      changed_[i] = runtime::ObjectAccess::Steal(out);
    }
    if (before) runtime::ObjectAccess::DecRef(before);
  }

  /// Calls `leaf(id, expr)` for each call, tuple and tuple access below the node `root` that is not done, inputs first,
  /// and for nodes of other kinds when they are reached. `leaf` sets their results and may reenter this function.
  template <class Leaf>
  void Expand(uint32_t root, Leaf leaf) {
    const size_t base = stack_.size();
    stack_.push_back(root);
    while (stack_.size() > base) {
      const uint32_t i = stack_.back();
      if (states_[i] >= kSame) {
        stack_.pop_back();
      } else if (states_[i] == kOpen || graph_.kind(i) != ExprIndex::kDataflow) {
        Expr borrowed = runtime::ObjectAccess::Adopt<Expr>(const_cast<ExprNode*>(graph_.Visit(i)));
        const struct Return {
          Expr* e;
          Results* self;
          size_t size;
          ~Return() {
            runtime::ObjectAccess::Steal(*e);
            while (self->stack_.size() > size) self->stack_.pop_back();  // an error left them
          }
        } give_back{&borrowed, this, stack_.size()};
        at_ = i;
        leaf(i, borrowed);
        stack_.pop_back();
      } else {
        states_[i] = kOpen;
        const std::span<const uint32_t> operands = graph_.Operands(i);
        for (size_t k = operands.size(); k-- > 0;) {
          if (operands[k] != ExprIndex::kNone && states_[operands[k]] < kSame) stack_.push_back(operands[k]);
        }
      }
    }
  }

 private:
  const Expr root_;  // keeps the nodes
  const ExprIndex graph_;
  support::PageStack<State> states_;
  support::PageStack<Object*> changed_;  // results of changed nodes, owned; null for the others
  support::PageStack<uint32_t> stack_;
  uint32_t at_ = ExprIndex::kNone;
};

const ExprIndex* MixedModeMutator::graph() const { return results_ ? &results_->graph() : nullptr; }
MixedModeMutator::MixedModeMutator() = default;
MixedModeMutator::~MixedModeMutator() = default;

Expr MixedModeMutator::Known(const Expr& e) const {
  if (results_) {
    const uint32_t i = results_->Find(e);
    if (i != ExprIndex::kNone && results_->Done(i)) return results_->Result(i);
  }
  const auto* put = memo_.find(e);
  return put ? put->second : Expr(ObjectPtr<Object>(nullptr));
}

bool MixedModeMutator::Done(const Expr& e) const {
  if (results_) {
    const uint32_t i = results_->Find(e);
    if (i != ExprIndex::kNone && results_->Done(i)) return true;
  }
  return memo_.count(e) != 0;
}

bool MixedModeMutator::Same(const Expr& e) const {
  if (results_) {
    const uint32_t i = results_->Find(e);
    if (i != ExprIndex::kNone && results_->Done(i)) return results_->Same(i);
  }
  const auto* seen = memo_.find(e);
  return seen && seen->second.same_as(e);
}

void MixedModeMutator::Put(const Expr& e, const Expr& out) {
  const uint32_t i = results_ ? results_->Find(e) : ExprIndex::kNone;
  if (i != ExprIndex::kNone) {
    results_->Set(i, out);
  } else {
    memo_[e] = out;
  }
}

Expr MixedModeMutator::VisitExpr(const Expr& root) {
  // A subclass that fills the memo first replaces subexpressions, and may need to visit only a little of what is below
  // `root`.
  if (!results_ && memo_.empty() && root.defined() && !IsAtom(static_cast<const ExprNode*>(root.get()))) {
    results_ = std::make_unique<Results>(root);
  }
  if (results_) {
    const uint32_t id = results_->Find(root);
    if (id != ExprIndex::kNone) {
      if (!results_->Done(id)) {
        results_->Expand(id, [&](uint32_t i, const Expr& e) {
          if (!memo_.empty()) {
            if (const auto* put = memo_.find(e)) return results_->Set(i, put->second);
          }
          baton::transform::progress::AtExpr(e);
          results_->Set(i, VisitNew(e));
        });
      }
      return results_->Result(id);
    }
  }
  ExpandDataflow(
      root, [&](const Expr& e) { return Done(e); },
      [&](const Expr& e) {
        baton::transform::progress::AtExpr(e);
        Put(e, VisitNew(e));
      });
  return Known(root);
}

Expr MixedModeMutator::VisitNew(const Expr& e) {
  Expr out = ExprFunctor::VisitExpr(e);
  const bool rewritten = e.as<CallNode>() || e.as<TupleNode>() || e.as<TupleGetItemNode>();  // told in RewriteCore
  if (!rewritten && !out.same_as(e)) Replaced(static_cast<const ExprNode*>(e.get()), out);
  return out;
}

template <class N>
Expr MixedModeMutator::RewriteCore(const N* op) {
  // Most nodes are unchanged, which is found without reference counting.
  const uint32_t id = results_ ? results_->Find(op) : ExprIndex::kNone;
  Expr post{ObjectPtr<Object>(nullptr)};
  if (id != ExprIndex::kNone && results_->DoneOperands(id)) {
    bool same = results_->SameOperands(id);
    [[maybe_unused]] Array<Type> type_args{ObjectPtr<Object>(nullptr)};
    if constexpr (std::is_same_v<N, CallNode>) {
      const auto visit = [this](const Type& t) { return VisitType(t); };
      type_args = op->type_args.empty() ? op->type_args : detail::MapArray(op->type_args, visit);
      same = same && type_args.same_as(op->type_args);
    }
    if (same) {
      post = GetRef<Expr>(op);
    } else {
      auto made = WithChildren<Family<Expr>>(
          op, [this, operand = results_->Operands(id).begin()]() mutable { return results_->Result(*operand++); });
      if constexpr (std::is_same_v<N, CallNode>) made->type_args = std::move(type_args);
      post = Expr(made);
    }
  } else {
    bool same = true;
    ForEachChildOf<Family<Expr, Type>>(op, [&]<class T>(const T& child) {
      if constexpr (std::is_base_of_v<Expr, T>) {
        same = same && Same(child);
      } else {
        same = false;
      }
    });
    post = same ? GetRef<Expr>(op) : ExprMutator::VisitExpr_(op);
  }
  if (post.get() != op) Replaced(op, post);
  Expr out = Rewrite_(op, post);
  // The bisection of rewrites limits how many a pass may make.
  return out.same_as(post) || baton::transform::RewriteAllowed() ? out : post;
}
template Expr MixedModeMutator::RewriteCore(const TupleNode*);
template Expr MixedModeMutator::RewriteCore(const CallNode*);
template Expr MixedModeMutator::RewriteCore(const TupleGetItemNode*);

void MixedModeMutator::PreVisitLet_(const LetNode* op) {
  VisitExpr(op->value);
  VisitExpr(op->var);
}

namespace {
Expr RebuildLet(const LetNode* op, const Expr& var, const Expr& value, const Expr& body) {
  if (var.same_as(op->var) && value.same_as(op->value) && body.same_as(op->body)) return GetRef<Expr>(op);
  auto n = make_object<LetNode>(*op);
  n->var = Downcast<Var>(var);
  n->value = value;
  n->body = body;
  return Let(n);
}
}  // namespace

Expr MixedModeMutator::PostVisitLet_(const LetNode* op, const Expr& value, const Expr& body) {
  return RebuildLet(op, VisitExpr(op->var), value, body);
}

Expr MixedModeMutator::VisitExpr_(const LetNode* op) {
  std::vector<std::pair<const LetNode*, Expr>> chain;
  for (;;) {
    PreVisitLet_(op);
    // Already in the memo, unless an override of PreVisitLet_ did not visit it; the value in the memo is bound.
    chain.emplace_back(op, VisitExpr(op->value));
    const auto* next = op->body.as<LetNode>();
    if (!next || Done(op->body)) break;
    op = next;
  }
  Expr body = VisitExpr(op->body);
  while (!chain.empty()) {
    auto& [let, value] = chain.back();
    body = PostVisitLet_(let, value, body);
    if (body.get() != let) Replaced(let, body);
    Put(GetRef<Expr>(let), body);
    chain.pop_back();
  }
  return body;
}

// ---- Lists of nodes and variables

NodeList PostOrderNodes(const Expr& expr) { return ExprIndex(expr).TakeNodes(); }

void PostOrderVisit(const Expr& expr, const TypedPackedFunc<void(Expr)>& f) {
  for (const ExprNode* n : PostOrderNodes(expr)) f(GetRef<Expr>(n));
}

namespace {
/// Variables in order of first sight: those bound somewhere, and all.
void CollectVars(const Expr& expr, std::vector<Var>* all, std::vector<Var>* bound, PointerSet* is_bound) {
  // In the order of the text, which lists the parameters of a function before what its body uses.
  auto bind = [&](const Var& v) {
    if (is_bound->Add(v.get())) bound->push_back(v);
  };
  for (const ExprNode* n : PostOrderNodes(expr)) {
    if (n->IsInstance<VarNode>()) {
      all->push_back(GetRef<Var>(static_cast<const VarNode*>(n)));
    } else {
      ForEachBoundVar(n, bind);
    }
  }
}
}  // namespace

Array<Var> FreeVars(const Expr& expr) {
  std::vector<Var> all, bound, free;
  PointerSet is_bound;
  CollectVars(expr, &all, &bound, &is_bound);
  for (const Var& v : all) {
    if (!is_bound.Has(v.get())) free.push_back(v);
  }
  return Array<Var>(free);
}

Array<Var> BoundVars(const Expr& expr) {
  std::vector<Var> all, bound, out;
  PointerSet is_bound;
  CollectVars(expr, &all, &bound, &is_bound);
  for (const Var& v : all) {
    if (is_bound.Has(v.get())) out.push_back(v);
  }
  return Array<Var>(out);
}

Array<Var> AllVars(const Expr& expr) {
  std::vector<Var> all, bound;
  PointerSet is_bound;
  CollectVars(expr, &all, &bound, &is_bound);
  return Array<Var>(all);
}

namespace {
class Binder : public MixedModeMutator {
 public:
  explicit Binder(const Map<Var, Expr>& binds) {
    for (const auto& [v, e] : binds) memo_[v] = e;
  }
};
}  // namespace

Expr Bind(const Expr& expr, const Map<Var, Expr>& binds) {
  if (binds.empty()) return expr;
  const auto* func = expr.as<FunctionNode>();
  if (!func) return Binder(binds).VisitExpr(expr);
  // Parameters that get a value go; variables that the values bring in become parameters.
  Expr body = Binder(binds).VisitExpr(func->body);
  Array<Var> params;
  for (const Var& p : func->params) {
    if (!binds.count(p)) params.push_back(p);
  }
  if (body.same_as(func->body) && params.size() == func->params.size()) return expr;
  PointerSet before;
  for (const Var& v : FreeVars(expr)) before.Add(v.get());
  auto n = make_object<FunctionNode>(*func);
  n->params = params;
  n->body = body;
  for (const Var& v : FreeVars(Function(n))) {
    if (!before.Has(v.get())) params.push_back(v);
  }
  n->params = params;
  return Function(n);
}

}  // namespace baton::relay
