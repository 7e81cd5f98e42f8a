// SPDX-License-Identifier: Apache-2.0
// Children of a Relay expression, for traversals with an explicit stack.
#pragma once

#include <baton/relay/functor.h>
#include <baton/support/pointer_map.h>
#include <ir/node/children.h>
#include <relay/expr/frontier.h>

#include <algorithm>
#include <vector>

namespace baton::relay {

/// Calls `var` and `constructor` for those in a pattern, outermost and leftmost first.
template <class OnVar, class OnConstructor>
void ForEachPatternChild(const PatternNode* pattern, OnVar var, OnConstructor constructor) {
  std::vector<const PatternNode*> stack;  // patterns within patterns may be deep
  const PatternNode* p = pattern;
  for (;;) {
    const size_t base = stack.size();
    if (p) {
      DispatchKind<PatternVarNode, PatternConstructorNode, PatternTupleNode>(p, [&](const auto* n) {
        ForEachChildOf<Family<Expr, Pattern>>(n, [&]<class T>(const T& child) {
          if constexpr (std::is_base_of_v<Var, T>) {
            var(child);
          } else if constexpr (std::is_base_of_v<Constructor, T>) {
            constructor(child);
          } else {
            stack.push_back(child.get());
          }
        });
      });
    }
    std::reverse(stack.begin() + static_cast<std::ptrdiff_t>(base), stack.end());
    if (stack.empty()) return;
    p = stack.back();
    stack.pop_back();
  }
}

/// Calls `f(const Clause&)` for each clause of `m`, missing ones too.
template <class F>
void ForEachClause(const MatchNode* m, F f) {
  for (const Clause& c : m->clauses) f(c);
}

/// Calls `f(const ExprNode*)` for each child of `n` that is an expression, in the order of the default visits. A child
/// may be null in a program that was not made by Baton.
template <class F>
void ForEachChild(const ExprNode* n, F f) {
  DispatchKind<CallNode, TupleNode, TupleGetItemNode, LetNode, FunctionNode, IfNode, RefCreateNode, RefReadNode,
               RefWriteNode, MatchNode>(n, [&](const auto* node) {
    ForEachChildOf<Family<Expr, Clause>>(node, [&]<class T>(const T& child) {
      if constexpr (std::is_same_v<T, Clause>) {
        if (!child.defined()) return;
        ForEachPatternChild(
            child->lhs.get(), [&](const Var& v) { f(v.get()); }, [&](const Constructor& k) { f(k.get()); });
        f(child->rhs.get());
      } else {
        f(child.get());
      }
    });
  });
}

/// Whether `p(const ExprNode*)` holds for some node of `e`; stops at the first. A pass that looks for something rare
/// calls it before its own walk. The order of nodes is deterministic but unspecified.
template <class P>
bool AnyNode(const Expr& e, P p) {
  PointerSet seen;
  Frontier frontier;
  auto add = [&](const ExprNode* n) {
    if (n && seen.Add(n)) frontier.Add(n);
  };
  add(e.get());
  while (const ExprNode* n = frontier.Next()) {
    if (p(n)) return true;
    ForEachChild(n, add);
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
/// Whether `e` calls an operator for which `p(const OpNode*)` holds; `p` is called once for each operator.
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
  const auto binders = [&](const auto* node) { ForEachChildOf<FamilyOfBinders<Var>>(node, f); };
  if (DispatchKind<LetNode, FunctionNode>(n, binders) || !n->IsInstance<MatchNode>()) return;
  for (const Clause& c : static_cast<const MatchNode*>(n)->clauses) {
    if (c.defined()) ForEachPatternChild(c->lhs.get(), f, [](const Constructor&) {});
  }
}

}  // namespace baton::relay
