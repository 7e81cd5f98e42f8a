// SPDX-License-Identifier: Apache-2.0
// Search for a statement: what a pass asks before, or instead of, its own walk.
#pragma once

#include <baton/runtime/interrupt.h>
#include <baton/tir/functor.h>
#include <ir/node/children.h>

#include <algorithm>
#include <vector>

namespace baton::tir {

/// Calls `f(static_cast<const N*>(node))` for the class of statement that it is of.
template <class F>
void DispatchStmt(const Object* node, F f) {
  switch (KindOf(node)) {
#define BATON_TIR_CASE(Name) \
  case NodeKind::k##Name:    \
    return f(static_cast<const Name##Node*>(node));
    BATON_TIR_STMT_LIST(BATON_TIR_CASE)
#undef BATON_TIR_CASE
    default:
      ThrowNoVisit(node);
  }
}

/// Whether `p(const Object*)` holds for a statement within `root`, which is asked of each in the order of the program
/// until it does. Statements as deep as the program leave no trace on the stack, unlike a visitor's, whose frames of a
/// million levels are 200 MB that no cache holds.
template <class P>
bool AnyStmt(const Stmt& root, P p) {
  std::vector<const Object*> rest{root.get()};
  while (!rest.empty()) {
    runtime::PollInterrupt();
    const Object* s = rest.back();
    rest.pop_back();
    if (KindOf(s) != NodeKind::kNone && p(s)) return true;
    const auto base = static_cast<std::ptrdiff_t>(rest.size());
    DispatchStmt(s, [&](const auto* node) {
      ForEachChildOf<Family<Stmt>>(node, [&](const Stmt& child) { rest.push_back(child.get()); });
    });
    std::reverse(rest.begin() + base, rest.end());
  }
  return false;
}

/// Whether a statement of class N for which `p(const N*)` holds is within `root`.
template <class N, class P>
bool AnyStmtOf(const Stmt& root, P p) {
  return AnyStmt(root, [&](const Object* s) { return s->IsInstance<N>() && p(static_cast<const N*>(s)); });
}
template <class N>
bool AnyStmtOf(const Stmt& root) {
  return AnyStmtOf<N>(root, [](const N*) { return true; });
}

}  // namespace baton::tir
