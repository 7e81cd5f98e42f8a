// SPDX-License-Identifier: Apache-2.0
// Looking for a statement: what a pass asks before it walks, or instead of it.
#pragma once

#include <baton/runtime/interrupt.h>
#include <baton/support/pages.h>
#include <baton/tir/functor.h>

#include <iterator>

namespace baton::tir {

/// Whether `p(const Object*)` holds for a statement within `root`, which is asked of each in the order of the program
/// until it does. Statements as deep as the program leave no trace on the stack, unlike a visitor's, whose frames of a
/// million levels are 200 MB that no cache holds.
template <class P>
bool AnyStmt(const Stmt& root, P p) {
  support::PageStack<const Object*> rest;
  rest.push_back(root.get());
  uintptr_t last[16] = {};  // statement of each kind, which have pages of their own
  while (!rest.empty()) {
    runtime::PollInterrupt();
    const Object* s = rest.back();
    rest.pop_back();
    const NodeKind kind = KindOf(s);
    // Programs are made in regular order: a later statement lies as far from this one as this one from the last, or at
    // least on the same side.
    uintptr_t& before = last[static_cast<size_t>(kind) % std::size(last)];
    const auto at = reinterpret_cast<uintptr_t>(s), step = at - before;
    constexpr uintptr_t kSide = 1024;
    __builtin_prefetch(reinterpret_cast<const void*>(at + 4 * step));
    __builtin_prefetch(reinterpret_cast<const void*>(at < before ? at - kSide : at + kSide));
    before = at;
    if (kind != NodeKind::kNone && p(s)) return true;
    switch (kind) {
      case NodeKind::kAllocate:
        rest.push_back(static_cast<const AllocateNode*>(s)->body.get());
        break;
      case NodeKind::kFor:
        rest.push_back(static_cast<const ForNode*>(s)->body.get());
        break;
      case NodeKind::kLetStmt:
        rest.push_back(static_cast<const LetStmtNode*>(s)->body.get());
        break;
      case NodeKind::kAttrStmt:
        rest.push_back(static_cast<const AttrStmtNode*>(s)->body.get());
        break;
      case NodeKind::kAssertStmt:
        if (const auto& body = static_cast<const AssertStmtNode*>(s)->body; body.defined()) rest.push_back(body.get());
        break;
      case NodeKind::kIfThenElse: {
        const auto* i = static_cast<const IfThenElseNode*>(s);
        if (i->else_case.defined()) rest.push_back(i->else_case.get());
        rest.push_back(i->then_case.get());
        break;
      }
      case NodeKind::kSeqStmt: {
        const auto& seq = static_cast<const SeqStmtNode*>(s)->seq;
        for (size_t i = seq.size(); i-- > 0;) rest.push_back(seq[i].get());
        break;
      }
      case NodeKind::kBufferStore:
      case NodeKind::kEvaluate:
        break;
      default:
        ThrowNoVisit(s);
    }
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
