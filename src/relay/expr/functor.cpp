// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/progress.h>
#include <baton/ir/rewrite_limit.h>
#include <baton/relay/functor.h>
#include <baton/support/pages.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/blocks.h>
#include <relay/expr/node_graph.h>
#include <relay/expr/with_parts.h>

#include <algorithm>

namespace baton::relay {
namespace {

/// Maps the elements of an array; the same array if none changed.
template <class T, class F>
Array<T> MapArray(const Array<T>& in, F f) {
  if (in.empty()) return in;
  Array<T> out{ObjectPtr<Object>(nullptr)};
  bool changed = false;
  for (size_t i = 0; i < in.size(); ++i) {
    T x = f(in[i]);
    if (!changed && !x.same_as(in[i])) {
      changed = true;
      out = Array<T>();
      out.reserve(in.size());
      for (size_t j = 0; j < i; ++j) out.push_back(in[j]);
    }
    if (changed) out.push_back(x);
  }
  return changed ? out : in;
}

/// A copy of the node to change; like every copy it has no type yet.
template <class R>
auto Fresh(const typename R::ContainerType* op) {
  return make_object<typename R::ContainerType>(*op);
}

bool IsDataflow(const Object* n) {
  return n->IsInstance<CallNode>() || n->IsInstance<TupleNode>() || n->IsInstance<TupleGetItemNode>();
}

/// Hands each call, tuple and tuple access that `root` needs and that is not `done` to `leaf`, inputs first;
/// other kinds too, as they come. `done` is asked again before `leaf`; it asks `table`.
template <class Table, class Done, class Leaf>
void ExpandDataflow(const Expr& root, const Table& table, Done done, Leaf leaf) {
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
  Ahead ahead;
  auto push = [&](const Expr& e) {
    Ahead::Soon(e.get());
    stack.push_back({&e, false});
  };
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
      if (stack.size() > 3) {
        // The other part of the user's user: announced with its user, it has arrived.
        const Item& later = stack[stack.size() - 4];
        if (!later.expanded && later.expr->defined()) Ahead::PartsSoon(later.expr->get());
      }
      if (const void* next = ahead.At(e.get())) table.Prefetch(next);
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
/// Forgets what was visited when the outermost visit ends: the next visit starts anew, and no address outlives its
/// node.
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

void ExprVisitor::VisitExpr_(const ConstantNode* op) { VisitSpan(op->span); }
void ExprVisitor::VisitExpr_(const GlobalVarNode* op) { VisitSpan(op->span); }
void ExprVisitor::VisitExpr_(const OpNode*) {}

void ExprVisitor::VisitExpr_(const VarNode* op) {
  VisitSpan(op->span);
  if (op->type_annotation.defined()) VisitType(op->type_annotation);
}

void ExprVisitor::VisitExpr_(const TupleNode* op) {
  VisitSpan(op->span);
  for (const Expr& f : op->fields) VisitExpr(f);
}

void ExprVisitor::VisitExpr_(const FunctionNode* op) {
  VisitSpan(op->span);
  for (const Var& p : op->params) VisitExpr(p);
  VisitExpr(op->body);
  if (op->ret_type.defined()) VisitType(op->ret_type);
}

void ExprVisitor::VisitExpr_(const CallNode* op) {
  VisitSpan(op->span);
  VisitExpr(op->op);
  for (const Type& t : op->type_args) VisitType(t);
  for (const Expr& a : op->args) VisitExpr(a);
}

void ExprVisitor::VisitExpr_(const LetNode* op) {
  VisitSpan(op->span);
  VisitExpr(op->value);
  VisitExpr(op->var);
  VisitExpr(op->body);
}

void ExprVisitor::VisitExpr_(const IfNode* op) {
  VisitSpan(op->span);
  VisitExpr(op->cond);
  VisitExpr(op->true_branch);
  VisitExpr(op->false_branch);
}

void ExprVisitor::VisitExpr_(const TupleGetItemNode* op) {
  VisitSpan(op->span);
  VisitExpr(op->tuple);
}

void ExprVisitor::VisitExpr_(const RefCreateNode* op) {
  VisitSpan(op->span);
  VisitExpr(op->value);
}

void ExprVisitor::VisitExpr_(const RefReadNode* op) {
  VisitSpan(op->span);
  VisitExpr(op->ref);
}

void ExprVisitor::VisitExpr_(const RefWriteNode* op) {
  VisitSpan(op->span);
  VisitExpr(op->ref);
  VisitExpr(op->value);
}

void ExprVisitor::VisitExpr_(const ConstructorNode* op) {
  for (const Type& t : op->inputs) VisitType(t);
  if (op->belong_to.defined()) VisitType(op->belong_to);
}

void ExprVisitor::VisitExpr_(const MatchNode* op) {
  VisitSpan(op->span);
  VisitExpr(op->data);
  for (const Clause& c : op->clauses) {
    VisitPattern(c->lhs);
    VisitExpr(c->rhs);
  }
}

void ExprVisitor::VisitPattern(const Pattern& p) {
  ForEachPatternPart(p.get(), [&](const Var& v) { VisitExpr(v); }, [&](const Constructor& c) { VisitExpr(c); });
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

Expr ExprMutator::VisitExpr_(const ConstantNode* op) { return GetRef<Expr>(op); }
Expr ExprMutator::VisitExpr_(const GlobalVarNode* op) { return GetRef<Expr>(op); }
Expr ExprMutator::VisitExpr_(const OpNode* op) { return GetRef<Expr>(op); }
Expr ExprMutator::VisitExpr_(const ConstructorNode* op) { return GetRef<Expr>(op); }

Expr ExprMutator::VisitExpr_(const VarNode* op) {
  if (!op->type_annotation.defined()) return GetRef<Expr>(op);
  Type t = VisitType(op->type_annotation);
  if (t.same_as(op->type_annotation)) return GetRef<Expr>(op);
  auto n = Fresh<Var>(op);
  n->type_annotation = t;
  return Var(n);
}

Expr ExprMutator::VisitExpr_(const TupleNode* op) {
  Array<Expr> fields = MapArray(op->fields, [&](const Expr& f) { return VisitExpr(f); });
  if (fields.same_as(op->fields)) return GetRef<Expr>(op);
  auto n = Fresh<Tuple>(op);
  n->fields = fields;
  return Tuple(n);
}

Expr ExprMutator::VisitExpr_(const FunctionNode* op) {
  Array<TypeVar> type_params =
      MapArray(op->type_params, [&](const TypeVar& v) { return Downcast<TypeVar>(VisitType(v)); });
  Array<Var> params = MapArray(op->params, [&](const Var& v) { return Downcast<Var>(VisitExpr(v)); });
  Type ret_type = op->ret_type.defined() ? VisitType(op->ret_type) : op->ret_type;
  Expr body = VisitExpr(op->body);
  if (type_params.same_as(op->type_params) && params.same_as(op->params) && ret_type.same_as(op->ret_type) &&
      body.same_as(op->body)) {
    return GetRef<Expr>(op);
  }
  auto n = Fresh<Function>(op);
  n->type_params = type_params;
  n->params = params;
  n->ret_type = ret_type;
  n->body = body;
  return Function(n);
}

Expr ExprMutator::VisitExpr_(const CallNode* op) {
  Expr callee = VisitExpr(op->op);
  Array<Type> type_args = MapArray(op->type_args, [&](const Type& t) { return VisitType(t); });
  Array<Expr> args = MapArray(op->args, [&](const Expr& a) { return VisitExpr(a); });
  if (callee.same_as(op->op) && type_args.same_as(op->type_args) && args.same_as(op->args)) return GetRef<Expr>(op);
  auto n = Fresh<Call>(op);
  n->op = callee;
  n->type_args = type_args;
  n->args = args;
  return Call(n);
}

namespace {
Expr RebuildLet(const LetNode* op, const Expr& var, const Expr& value, const Expr& body) {
  if (var.same_as(op->var) && value.same_as(op->value) && body.same_as(op->body)) return GetRef<Expr>(op);
  auto n = Fresh<Let>(op);
  n->var = Downcast<Var>(var);
  n->value = value;
  n->body = body;
  return Let(n);
}
}  // namespace

Expr ExprMutator::VisitExpr_(const LetNode* op) {
  Expr value = VisitExpr(op->value);
  Expr var = VisitExpr(op->var);
  return RebuildLet(op, var, value, VisitExpr(op->body));
}

Expr ExprMutator::VisitExpr_(const IfNode* op) {
  Expr cond = VisitExpr(op->cond);
  Expr t = VisitExpr(op->true_branch);
  Expr f = VisitExpr(op->false_branch);
  if (cond.same_as(op->cond) && t.same_as(op->true_branch) && f.same_as(op->false_branch)) return GetRef<Expr>(op);
  auto n = Fresh<If>(op);
  n->cond = cond;
  n->true_branch = t;
  n->false_branch = f;
  return If(n);
}

Expr ExprMutator::VisitExpr_(const TupleGetItemNode* op) {
  Expr tuple = VisitExpr(op->tuple);
  if (tuple.same_as(op->tuple)) return GetRef<Expr>(op);
  auto n = Fresh<TupleGetItem>(op);
  n->tuple = tuple;
  return TupleGetItem(n);
}

Expr ExprMutator::VisitExpr_(const RefCreateNode* op) {
  Expr value = VisitExpr(op->value);
  if (value.same_as(op->value)) return GetRef<Expr>(op);
  auto n = Fresh<RefCreate>(op);
  n->value = value;
  return RefCreate(n);
}

Expr ExprMutator::VisitExpr_(const RefReadNode* op) {
  Expr ref = VisitExpr(op->ref);
  if (ref.same_as(op->ref)) return GetRef<Expr>(op);
  auto n = Fresh<RefRead>(op);
  n->ref = ref;
  return RefRead(n);
}

Expr ExprMutator::VisitExpr_(const RefWriteNode* op) {
  Expr ref = VisitExpr(op->ref);
  Expr value = VisitExpr(op->value);
  if (ref.same_as(op->ref) && value.same_as(op->value)) return GetRef<Expr>(op);
  auto n = Fresh<RefWrite>(op);
  n->ref = ref;
  n->value = value;
  return RefWrite(n);
}

Expr ExprMutator::VisitExpr_(const MatchNode* op) {
  Expr data = VisitExpr(op->data);
  Array<Clause> clauses = MapArray(op->clauses, [&](const Clause& c) { return VisitClause(c); });
  if (data.same_as(op->data) && clauses.same_as(op->clauses)) return GetRef<Expr>(op);
  auto n = Fresh<Match>(op);
  n->data = data;
  n->clauses = clauses;
  return Match(n);
}

Clause ExprMutator::VisitClause(const Clause& c) {
  Pattern lhs = VisitPattern(c->lhs);
  Expr rhs = VisitExpr(c->rhs);
  return lhs.same_as(c->lhs) && rhs.same_as(c->rhs) ? c : Clause(lhs, rhs);
}

Pattern ExprMutator::VisitPattern(const Pattern& p) {
  return support::WithStack([&]() -> Pattern {
    if (const auto* v = p.as<PatternVarNode>()) {
      Expr var = VisitExpr(v->var);
      if (var.same_as(v->var)) return p;
      auto n = make_object<PatternVarNode>(*v);
      n->var = Downcast<Var>(var);
      return PatternVar(n);
    }
    if (const auto* c = p.as<PatternConstructorNode>()) {
      Expr constructor = VisitExpr(c->constructor);
      Array<Pattern> parts = MapArray(c->patterns, [&](const Pattern& x) { return VisitPattern(x); });
      if (constructor.same_as(c->constructor) && parts.same_as(c->patterns)) return p;
      auto n = make_object<PatternConstructorNode>(*c);
      n->constructor = Downcast<Constructor>(constructor);
      n->patterns = parts;
      return PatternConstructor(n);
    }
    if (const auto* t = p.as<PatternTupleNode>()) {
      Array<Pattern> parts = MapArray(t->patterns, [&](const Pattern& x) { return VisitPattern(x); });
      if (parts.same_as(t->patterns)) return p;
      auto n = make_object<PatternTupleNode>(*t);
      n->patterns = parts;
      return PatternTuple(n);
    }
    return p;
  });
}

// ---- Mixed mode

void MixedModeVisitor::VisitExpr(const Expr& root) {
  VisitScope scope(&depth_, &visit_counter_);
  ExpandDataflow(
      root, visit_counter_, [&](const Expr& e) { return visit_counter_.count(e.get()) != 0; },
      [&](const Expr& e) {
        visit_counter_[e.get()] = 1;
        baton::transform::progress::AtExpr(e);
        VisitLeaf(e);
      });
}

void MixedModeVisitor::VisitExpr_(const CallNode* op) {
  VisitSpan(op->span);
  for (const Type& t : op->type_args) VisitType(t);
}
void MixedModeVisitor::VisitExpr_(const TupleNode* op) { VisitSpan(op->span); }
void MixedModeVisitor::VisitExpr_(const TupleGetItemNode* op) { VisitSpan(op->span); }

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

/// What the nodes of one root became, by number. Those that stay as they are, most of them, count no references.
class MixedModeMutator::Numbered {
 public:
  enum State : uint8_t { kNew, kOpen, kSame, kChanged };

  explicit Numbered(const Expr& root) : root_(root), graph_(root) {
    states_.Fill(graph_.size(), kNew);
    changed_.Fill(graph_.size(), nullptr);
  }
  Numbered(const Numbered&) = delete;
  Numbered& operator=(const Numbered&) = delete;
  ~Numbered() {
    for (size_t i = 0; i < graph_.size(); ++i) {
      if (i + kSoon < graph_.size()) __builtin_prefetch(changed_[i + kSoon], 1);
      if (changed_[i]) runtime::ObjectAccess::DecRef(changed_[i]);
    }
  }

  const NodeGraph& graph() const { return graph_; }
  /// kNone if it is none of them.
  uint32_t Find(const Expr& e) const {
    if (e.same_as(root_)) return static_cast<uint32_t>(graph_.size() - 1);
    return graph_.NumberOf(static_cast<const ExprNode*>(e.get()));
  }
  /// The number of a node that `leaf` may just be at.
  uint32_t Find(const ExprNode* n) const { return at_ < graph_.size() && graph_[at_] == n ? at_ : graph_.NumberOf(n); }
  bool Done(uint32_t i) const { return states_[i] >= kSame; }
  /// Of what is done.
  Expr Result(uint32_t i) const {
    return Expr(ObjectPtr<Object>(states_[i] == kSame ? const_cast<ExprNode*>(graph_[i]) : changed_[i]));
  }
  bool Same(uint32_t i) const { return states_[i] == kSame; }
  std::span<const uint32_t> Parts(uint32_t i) const { return graph_.Parts(i); }
  bool SameParts(uint32_t i) const {
    return std::ranges::all_of(Parts(i), [&](uint32_t part) { return states_[part] == kSame; });
  }
  /// False too if one is missing.
  bool DoneParts(uint32_t i) const {
    return std::ranges::all_of(Parts(i), [&](uint32_t part) { return part != NodeGraph::kNone && Done(part); });
  }
  void Set(uint32_t i, Expr out) {
    Object* const before = changed_[i];
    rebuilds_ = out.get() != graph_[i];
    if (!rebuilds_) {
      states_[i] = kSame;
      changed_[i] = nullptr;
    } else {
      states_[i] = kChanged;
      changed_[i] = runtime::ObjectAccess::Steal(out);
    }
    if (before) runtime::ObjectAccess::DecRef(before);
  }

  /// Hands each call, tuple and tuple access that number `root` needs and that is not done to `leaf(number, expr)`,
  /// inputs first; other kinds too, as they come. `leaf` sets them, and may come back here.
  template <class Leaf>
  void Expand(uint32_t root, Leaf leaf) {
    const size_t base = stack_.size();
    stack_.push_back(root);
    while (stack_.size() > base) {
      const uint32_t i = stack_.back();
      if (states_[i] >= kSame) {
        stack_.pop_back();
      } else if (states_[i] == kOpen || graph_.kind(i) != NodeGraph::kDataflow) {
        // Numbers are in the order of visits, so who comes next is known.
        if (i + kSoon < graph_.size()) {
          Ahead::Soon(graph_[i + kSoon]);
          const ExprNode* near = graph_[i + kSoon / 2];
          Ahead::PartsSoon(near);
          if (rebuilds_) Ahead::Soon(near->span.get());  // the copy counts it
        }
        Expr borrowed = runtime::ObjectAccess::Adopt<Expr>(const_cast<ExprNode*>(graph_[i]));
        const struct Return {
          Expr* e;
          Numbered* self;
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
        const std::span<const uint32_t> parts = graph_.Parts(i);
        for (size_t k = parts.size(); k-- > 0;) {
          if (parts[k] != NodeGraph::kNone && states_[parts[k]] < kSame) stack_.push_back(parts[k]);
        }
      }
    }
  }

 private:
  static constexpr size_t kSoon = 16;
  const Expr root_;  // keeps the nodes
  const NodeGraph graph_;
  support::PageStack<State> states_;
  support::PageStack<Object*> changed_;  // what those that changed became, counted; null for the others
  support::PageStack<uint32_t> stack_;
  uint32_t at_ = NodeGraph::kNone;
  bool rebuilds_ = false;  // the latest one did not stay the same
};

const NodeGraph* MixedModeMutator::graph() const { return numbered_ ? &numbered_->graph() : nullptr; }
MixedModeMutator::MixedModeMutator() = default;
MixedModeMutator::~MixedModeMutator() = default;

Expr MixedModeMutator::Known(const Expr& e) const {
  if (numbered_) {
    const uint32_t i = numbered_->Find(e);
    if (i != NodeGraph::kNone && numbered_->Done(i)) return numbered_->Result(i);
  }
  const auto* put = memo_.find(e);
  return put ? put->second : Expr(ObjectPtr<Object>(nullptr));
}

bool MixedModeMutator::Done(const Expr& e) const {
  if (numbered_) {
    const uint32_t i = numbered_->Find(e);
    if (i != NodeGraph::kNone && numbered_->Done(i)) return true;
  }
  return memo_.count(e) != 0;
}

bool MixedModeMutator::Same(const Expr& e) const {
  if (numbered_) {
    const uint32_t i = numbered_->Find(e);
    if (i != NodeGraph::kNone && numbered_->Done(i)) return numbered_->Same(i);
  }
  const auto* seen = memo_.find(e);
  return seen && seen->second.same_as(e);
}

void MixedModeMutator::Put(const Expr& e, const Expr& out) {
  const uint32_t i = numbered_ ? numbered_->Find(e) : NodeGraph::kNone;
  if (i != NodeGraph::kNone) {
    numbered_->Set(i, out);
  } else {
    memo_[e] = out;
  }
}

Expr MixedModeMutator::VisitExpr(const Expr& root) {
  // Who puts into the memo first replaces parts, and may want to see a little of what lies below `root`.
  if (!numbered_ && memo_.empty() && root.defined() && !IsAtom(static_cast<const ExprNode*>(root.get()))) {
    numbered_ = std::make_unique<Numbered>(root);
  }
  if (numbered_) {
    const uint32_t number = numbered_->Find(root);
    if (number != NodeGraph::kNone) {
      if (!numbered_->Done(number)) {
        numbered_->Expand(number, [&](uint32_t i, const Expr& e) {
          if (!memo_.empty()) {
            if (const auto* put = memo_.find(e)) return numbered_->Set(i, put->second);
          }
          baton::transform::progress::AtExpr(e);
          numbered_->Set(i, ExprFunctor::VisitExpr(e));
        });
      }
      return numbered_->Result(number);
    }
  }
  ExpandDataflow(
      root, memo_, [&](const Expr& e) { return Done(e); },
      [&](const Expr& e) {
        baton::transform::progress::AtExpr(e);
        Put(e, ExprFunctor::VisitExpr(e));
      });
  return Known(root);
}

template <class N>
Expr MixedModeMutator::RewriteCore(const N* op) {
  // Most nodes stay as they are, which is known without counting references.
  const uint32_t number = numbered_ ? numbered_->Find(op) : NodeGraph::kNone;
  Expr post{ObjectPtr<Object>(nullptr)};
  if (number != NodeGraph::kNone && numbered_->DoneParts(number)) {
    const std::span<const uint32_t> parts = numbered_->Parts(number);
    const auto part = [&](size_t i) { return numbered_->Result(parts[i]); };
    const bool same = numbered_->SameParts(number);
    if constexpr (std::is_same_v<N, CallNode>) {
      Array<Type> type_args = MapArray(op->type_args, [&](const Type& t) { return VisitType(t); });
      const bool unchanged = same && type_args.same_as(op->type_args);
      post = unchanged ? GetRef<Expr>(op) : WithParts(op, std::move(type_args), part);
    } else {
      post = same ? GetRef<Expr>(op) : WithParts(op, part);
    }
  } else {
    auto same = [&](const Expr& part) { return Same(part); };
    bool unchanged;
    if constexpr (std::is_same_v<N, CallNode>) {
      unchanged = op->type_args.empty() && same(op->op) && std::all_of(op->args.begin(), op->args.end(), same);
    } else if constexpr (std::is_same_v<N, TupleNode>) {
      unchanged = std::all_of(op->fields.begin(), op->fields.end(), same);
    } else {
      unchanged = same(op->tuple);
    }
    post = unchanged ? GetRef<Expr>(op) : ExprMutator::VisitExpr_(op);
  }
  Expr out = Rewrite_(op, post);
  // Who looks for the rewrite that goes wrong has a pass stop after some of them.
  return out.same_as(post) || baton::transform::RewriteAllowed() ? out : post;
}
template Expr MixedModeMutator::RewriteCore(const TupleNode*);
template Expr MixedModeMutator::RewriteCore(const CallNode*);
template Expr MixedModeMutator::RewriteCore(const TupleGetItemNode*);

void MixedModeMutator::PreVisitLet_(const LetNode* op) {
  VisitExpr(op->value);
  VisitExpr(op->var);
}

Expr MixedModeMutator::PostVisitLet_(const LetNode* op, const Expr& value, const Expr& body) {
  return RebuildLet(op, VisitExpr(op->var), value, body);
}

Expr MixedModeMutator::VisitExpr_(const LetNode* op) {
  std::vector<std::pair<const LetNode*, Expr>> chain;
  for (;;) {
    PreVisitLet_(op);
    // In the memo by now, unless an override of PreVisitLet_ left it to us; what it put there is what gets bound.
    chain.emplace_back(op, VisitExpr(op->value));
    const auto* next = op->body.as<LetNode>();
    if (!next || Done(op->body)) break;
    op = next;
  }
  Expr body = VisitExpr(op->body);
  while (!chain.empty()) {
    auto& [let, value] = chain.back();
    body = PostVisitLet_(let, value, body);
    Put(GetRef<Expr>(let), body);
    chain.pop_back();
  }
  return body;
}

// ---- Lists of nodes and variables

NodeList PostOrderNodes(const Expr& expr) { return NodeGraph(expr).TakeNodes(); }

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
  auto n = Fresh<Function>(func);
  n->params = params;
  n->body = body;
  for (const Var& v : FreeVars(Function(n))) {
    if (!before.Has(v.get())) params.push_back(v);
  }
  n->params = params;
  return Function(n);
}

}  // namespace baton::relay
