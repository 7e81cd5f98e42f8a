// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/relay/expr.h>
#include <baton/runtime/interrupt.h>
#include <baton/support/pages.h>

namespace baton::relay {

/// Brings a node into the cache, before a traversal asks for it: nodes of large programs are far apart in memory.
inline void PrefetchNode(const ExprNode* n) { __builtin_prefetch(n); }
/// The same for the list of its operands; the node itself has arrived.
inline void PrefetchOperandList(const ExprNode* n) {
  if (n->IsInstance<CallNode>()) {
    __builtin_prefetch(static_cast<const CallNode*>(n)->args.get());
  } else if (n->IsInstance<TupleNode>()) {
    __builtin_prefetch(static_cast<const TupleNode*>(n)->fields.get());
  }
}

/// The nodes of an expression in the order in which they are found, users before operands. That is mostly against the
/// order in which they were made, so it follows memory, and several nodes are known ahead. Polls for interrupts.
class Frontier {
 public:
  /// The caller adds each node once.
  void Add(const ExprNode* n) { found_.push_back(n); }
  /// The node whose turn it is, whose operands are to be added then; null at the end.
  const ExprNode* Next() {
    constexpr size_t kAhead = 16;
    runtime::PollInterrupt();
    if (next_ == found_.size()) return nullptr;
    if (next_ + kAhead < found_.size()) {
      PrefetchNode(found_[next_ + kAhead]);
      PrefetchOperandList(found_[next_ + kAhead / 2]);
    }
    return found_[next_++];
  }
  size_t size() const { return found_.size(); }
  const ExprNode* operator[](size_t i) const { return found_[i]; }

 private:
  support::PageStack<const ExprNode*> found_;
  size_t next_ = 0;
};

}  // namespace baton::relay
