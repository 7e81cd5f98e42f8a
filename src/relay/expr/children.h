// SPDX-License-Identifier: Apache-2.0
// Parts of an expression, for traversals with a stack of their own.
#pragma once

#include <baton/relay/functor.h>
#include <baton/runtime/interrupt.h>
#include <baton/support/pages.h>
#include <baton/support/pointer_map.h>
#include <support/address_stream.h>

#include <algorithm>
#include <vector>

namespace baton::relay {

/// Calls `var` and `constructor` for those in a pattern, outermost and leftmost first.
template <class OnVar, class OnConstructor>
void ForEachPatternPart(const PatternNode* pattern, OnVar var, OnConstructor constructor) {
  /// Calls for the pattern itself; its parts, if it has any.
  auto own = [&](const PatternNode* p) -> const Array<Pattern>* {
    if (p->IsInstance<PatternVarNode>()) {
      var(static_cast<const PatternVarNode*>(p)->var);
    } else if (p->IsInstance<PatternConstructorNode>()) {
      constructor(static_cast<const PatternConstructorNode*>(p)->constructor);
      return &static_cast<const PatternConstructorNode*>(p)->patterns;
    } else if (p->IsInstance<PatternTupleNode>()) {
      return &static_cast<const PatternTupleNode*>(p)->patterns;
    }
    return nullptr;
  };
  const Array<Pattern>* parts = pattern ? own(pattern) : nullptr;
  if (!parts) return;
  std::vector<const PatternNode*> stack;  // of patterns that have parts of their own, and what comes behind them
  for (const Pattern& p : *parts) {
    const bool nested = p.defined() && !p->IsInstance<PatternVarNode>() && !p->IsInstance<PatternWildcardNode>();
    if (nested || !stack.empty())
      stack.push_back(p.get());
    else if (p.defined())
      own(p.get());
  }
  std::reverse(stack.begin(), stack.end());
  while (!stack.empty()) {
    const PatternNode* p = stack.back();
    stack.pop_back();
    if (!p) continue;
    if (const Array<Pattern>* inner = own(p)) {
      for (size_t i = inner->size(); i-- > 0;) stack.push_back((*inner)[i].get());
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
  /// Each of its parts will be, too; their list has arrived.
  static void EachPartSoon(const Object* n) {
    const auto* list = static_cast<const runtime::ArrayObj*>(Parts(n));
    if (!list) return;
    for (const Any& part : list->items) Soon(part.object());
  }
  /// `n` is looked at now, and nobody knows what is next. Programs are made in regular order: what lies beside it, on
  /// the side to which the walk goes, will be asked for, or the next node lies as far from this one as this one from
  /// the last. Gives the place of the next but one in that case, for tables; else it may be null.
  const void* At(const Object* n) {
    const size_t stream = static_cast<size_t>(n->type_index()) % kStreams;
    if (const Object* list = Parts(n)) lists_[stream].At(list);
    return nodes_[stream].At(n);
  }

 private:
  static const Object* Parts(const Object* n) {
    if (n->IsInstance<CallNode>()) return static_cast<const CallNode*>(n)->args.get();
    return n->IsInstance<TupleNode>() ? static_cast<const TupleNode*>(n)->fields.get() : nullptr;
  }
  static constexpr size_t kStreams = 8;  // one a kind of node, mostly, since each kind has pages of its own
  support::AddressStream nodes_[kStreams], lists_[kStreams];
};

/// Calls `f(const Clause&)` for each clause of `m`, missing ones too. A clause is a chain of objects: while one is
/// looked at, those of the next ones come into the cache, link by link.
template <class F>
void ForEachClause(const MatchNode* m, F f) {
  constexpr size_t kLink = 3;
  const Array<Clause>& clauses = m->clauses;
  const size_t count = clauses.size();
  const auto pattern = [&](size_t i) -> const PatternNode* {
    return i < count && clauses[i].defined() ? clauses[i]->lhs.get() : nullptr;
  };
  const auto parts = [](const PatternNode* p) -> const Array<Pattern>* {
    if (!p) return nullptr;
    if (p->IsInstance<PatternTupleNode>()) return &static_cast<const PatternTupleNode*>(p)->patterns;
    return p->IsInstance<PatternConstructorNode>() ? &static_cast<const PatternConstructorNode*>(p)->patterns : nullptr;
  };
  for (size_t i = 0; i < count; ++i) {
    if (i + 4 * kLink < count) Ahead::Soon(clauses[i + 4 * kLink].get());
    if (const PatternNode* p = pattern(i + 3 * kLink)) {
      Ahead::Soon(p);
      Ahead::Soon(clauses[i + 3 * kLink]->rhs.get());
    }
    if (const auto* list = parts(pattern(i + 2 * kLink))) Ahead::Soon(list->get());
    if (const auto* list = parts(pattern(i + kLink)); list && list->size() <= 4) {
      for (const Pattern& p : *list) Ahead::Soon(p.get());
    }
    f(clauses[i]);
  }
}

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
    ForEachClause(m, [&](const Clause& c) {
      if (!c.defined()) return;
      ForEachPatternPart(c->lhs.get(), [&](const Var& v) { f(v.get()); }, [&](const Constructor& k) { f(k.get()); });
      f(c->rhs.get());
    });
  }
}

/// Whether `p(const ExprNode*)` holds for a node of `e`, which is asked of each until it does: a pass that looks for
/// something rare asks before it walks. Nodes come in an order that depends on `e` alone, but is none to rely on:
/// several are on their way to the cache while one is looked at.
template <class P>
bool AnyNode(const Expr& e, P p) {
  // What is found first is looked at first, users before inputs: mostly against the order in which it was made, so in
  // the order of memory, and what comes next is known long before.
  constexpr size_t kSoon = 16;
  PointerSet seen;
  support::PageStack<const ExprNode*> found;
  Ahead ahead;
  auto add = [&](const ExprNode* n) {
    if (n && seen.Add(n)) found.push_back(n);
  };
  add(e.get());
  for (size_t i = 0; i < found.size(); ++i) {
    runtime::PollInterrupt();
    if (i + kSoon < found.size()) {
      Ahead::Soon(found[i + kSoon]);
      Ahead::PartsSoon(found[i + kSoon / 2]);
    } else {
      ahead.At(found[i]);
    }
    const ExprNode* n = found[i];
    if (p(n)) return true;
    ForEachPart(n, add);
  }
  return false;
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
    ForEachClause(static_cast<const MatchNode*>(n), [&](const Clause& c) {
      if (c.defined()) ForEachPatternPart(c->lhs.get(), f, [](const Constructor&) {});
    });
  }
}

}  // namespace baton::relay
