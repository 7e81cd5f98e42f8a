// SPDX-License-Identifier: Apache-2.0
// Parts of an expression, for traversals with a stack of their own.
#pragma once

#include <baton/relay/expr.h>

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
