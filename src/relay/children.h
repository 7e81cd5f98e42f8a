// SPDX-License-Identifier: Apache-2.0
// Parts of an expression, for traversals with a stack of their own.
#pragma once

#include <baton/relay/functor.h>
#include <baton/runtime/interrupt.h>
#include <baton/support/pages.h>
#include <baton/support/pointer_map.h>

#include <vector>

namespace baton::relay {

/// Calls `var` and `constructor` for those in a pattern, outermost and leftmost first.
template <class OnVar, class OnConstructor>
void ForEachPatternPart(const PatternNode* pattern, OnVar var, OnConstructor constructor) {
  std::vector<const PatternNode*> stack{pattern};
  while (!stack.empty()) {
    const PatternNode* p = stack.back();
    stack.pop_back();
    if (!p) continue;
    const Array<Pattern>* parts = nullptr;
    if (p->IsInstance<PatternVarNode>()) {
      var(static_cast<const PatternVarNode*>(p)->var);
    } else if (p->IsInstance<PatternConstructorNode>()) {
      constructor(static_cast<const PatternConstructorNode*>(p)->constructor);
      parts = &static_cast<const PatternConstructorNode*>(p)->patterns;
    } else if (p->IsInstance<PatternTupleNode>()) {
      parts = &static_cast<const PatternTupleNode*>(p)->patterns;
    }
    if (parts) {
      for (size_t i = parts->size(); i-- > 0;) stack.push_back((*parts)[i].get());
    }
  }
}

/// Brings nodes into the cache before a traversal asks for them, since those of large programs are far apart in memory.
/// A guess that is wrong costs next to nothing.
class Ahead {
 public:
  /// `n` will be looked at soon; it may be null.
  static void Soon(const Object* n) { __builtin_prefetch(n); }
  /// The list of the parts of `n` will be, which has been announced before.
  static void PartsSoon(const Object* n) {
    if (const Object* list = Parts(n)) __builtin_prefetch(list);
  }
  /// `n` is looked at now. Programs are made in regular order: the next nodes on the way down lie as far from this one
  /// as this one from the last. Their places in `table` are on their way, too.
  template <class Table>
  void At(const Object* n, const Table& table) {
    table.Prefetch(Guess(n, &node_));
    if (const Object* list = Parts(n)) Guess(list, &list_);
  }

 private:
  static const Object* Parts(const Object* n) {
    if (n->IsInstance<CallNode>()) return static_cast<const CallNode*>(n)->args.get();
    return n->IsInstance<TupleNode>() ? static_cast<const TupleNode*>(n)->fields.get() : nullptr;
  }
  struct Walk {
    uintptr_t last = 0, step = 0, maybe = 0;  ///< a step that is seen twice in a row is believed
  };
  static const void* Guess(const Object* n, Walk* w) {
    const auto at = reinterpret_cast<uintptr_t>(n), step = at - w->last;
    w->last = at;
    if (step == w->maybe) w->step = step;
    w->maybe = step;
    __builtin_prefetch(reinterpret_cast<const void*>(at + w->step));
    __builtin_prefetch(reinterpret_cast<const void*>(at + 2 * w->step));
    return reinterpret_cast<const void*>(at + 2 * w->step);
  }
  Walk node_, list_;
};

/// Calls `f(const ExprNode*)` for each part of `n` in the order of the default visits. A part may be null in a program
/// that somebody else built.
template <class F>
void ForEachPart(const ExprNode* n, F f) {
  if (n->IsInstance<CallNode>()) {
    auto* c = static_cast<const CallNode*>(n);
    f(c->op.get());
    for (const Expr& a : c->args) f(a.get());
  } else if (n->IsInstance<TupleNode>()) {
    for (const Expr& a : static_cast<const TupleNode*>(n)->fields) f(a.get());
  } else if (n->IsInstance<TupleGetItemNode>()) {
    f(static_cast<const TupleGetItemNode*>(n)->tuple.get());
  } else if (n->IsInstance<LetNode>()) {
    auto* l = static_cast<const LetNode*>(n);
    f(l->value.get());
    f(l->var.get());
    f(l->body.get());
  } else if (n->IsInstance<FunctionNode>()) {
    auto* fn = static_cast<const FunctionNode*>(n);
    for (const Var& p : fn->params) f(p.get());
    f(fn->body.get());
  } else if (n->IsInstance<IfNode>()) {
    auto* i = static_cast<const IfNode*>(n);
    f(i->cond.get());
    f(i->true_branch.get());
    f(i->false_branch.get());
  } else if (n->IsInstance<RefCreateNode>()) {
    f(static_cast<const RefCreateNode*>(n)->value.get());
  } else if (n->IsInstance<RefReadNode>()) {
    f(static_cast<const RefReadNode*>(n)->ref.get());
  } else if (n->IsInstance<RefWriteNode>()) {
    f(static_cast<const RefWriteNode*>(n)->ref.get());
    f(static_cast<const RefWriteNode*>(n)->value.get());
  } else if (n->IsInstance<MatchNode>()) {
    auto* m = static_cast<const MatchNode*>(n);
    f(m->data.get());
    for (const Clause& c : m->clauses) {
      if (!c.defined()) continue;
      ForEachPatternPart(c->lhs.get(), [&](const Var& v) { f(v.get()); }, [&](const Constructor& k) { f(k.get()); });
      f(c->rhs.get());
    }
  }
}

/// Whether `p(const ExprNode*)` holds for a node of `e`, which is asked of each until it does: a pass that looks for
/// something rare asks before it walks. Nodes come in an order that depends on `e` alone, but is none to rely on:
/// several are on their way to the cache while one is looked at.
template <class P>
bool AnyNode(const Expr& e, P p) {
  constexpr size_t kAhead = 8;
  const ExprNode *nodes[kAhead], *lists[kAhead];  // whose memory was asked for, and those whose list of parts was
  size_t node_in = 0, node_out = 0, list_in = 0, list_out = 0;
  PointerSet seen;
  support::PageStack<const ExprNode*> rest;
  auto add = [&](const ExprNode* n) {
    if (n && seen.Add(n)) rest.push_back(n);
  };
  add(e.get());
  for (;;) {
    if (!rest.empty() && node_in - node_out < kAhead) {
      Ahead::Soon(rest.back());
      nodes[node_in++ % kAhead] = rest.back();
      rest.pop_back();
    } else if (node_in != node_out && list_in - list_out < kAhead) {
      const ExprNode* n = nodes[node_out++ % kAhead];
      Ahead::PartsSoon(n);
      lists[list_in++ % kAhead] = n;
    } else if (list_in != list_out) {
      runtime::PollInterrupt();
      const ExprNode* n = lists[list_out++ % kAhead];
      if (p(n)) return true;
      ForEachPart(n, add);
    } else {
      return false;
    }
  }
}
/// Whether `e` has a call of one of the operators.
template <class... Ops>
bool AnyCallOf(const Expr& e, const Ops&... ops) {
  return AnyNode(e, [&](const ExprNode* n) {
    if (!n->IsInstance<CallNode>()) return false;
    const Expr& op = static_cast<const CallNode*>(n)->op;
    return (op.same_as(ops) || ...);
  });
}
/// Whether `e` has a call of an operator for which `p(const OpNode*)` holds, which is asked of each operator once.
template <class P>
bool AnyCallWhere(const Expr& e, P p) {
  PointerMap<bool> known;
  return AnyNode(e, [&](const ExprNode* n) {
    const auto* op = n->IsInstance<CallNode>() ? static_cast<const CallNode*>(n)->op.as<OpNode>() : nullptr;
    if (!op) return false;
    bool fresh = false;
    bool& holds = known.Insert(op, &fresh);
    if (fresh) holds = p(op);
    return holds;
  });
}

/// Calls `f(const Var&)` for each variable that `n` itself binds.
template <class F>
void ForEachBoundVar(const ExprNode* n, F f) {
  if (n->IsInstance<LetNode>()) {
    f(static_cast<const LetNode*>(n)->var);
  } else if (n->IsInstance<FunctionNode>()) {
    for (const Var& p : static_cast<const FunctionNode*>(n)->params) f(p);
  } else if (n->IsInstance<MatchNode>()) {
    for (const Clause& c : static_cast<const MatchNode*>(n)->clauses) {
      if (!c.defined()) continue;
      ForEachPatternPart(c->lhs.get(), f, [](const Constructor&) {});
    }
  }
}

}  // namespace baton::relay
