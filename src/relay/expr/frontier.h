// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/relay/expr.h>
#include <baton/runtime/interrupt.h>
#include <baton/support/pages.h>

namespace baton::relay {

/// Prefetches a node for a traversal: nodes of large programs are far apart in memory.
inline void PrefetchNode(const ExprNode* n) { __builtin_prefetch(n); }
/// The same for the list of its operands; the node itself has arrived.
inline void PrefetchOperandList(const ExprNode* n) {
  if (n->IsInstance<CallNode>()) {
    __builtin_prefetch(static_cast<const CallNode*>(n)->args.get());
  } else if (n->IsInstance<TupleNode>()) {
    __builtin_prefetch(static_cast<const TupleNode*>(n)->fields.get());
  }
}

/// The nodes of an expression in order of discovery, users before operands. This is mostly the reverse of the order in
/// which they were made, so accesses are sequential in memory, and several nodes are known in advance for prefetching.
/// Polls for interrupts.
class Frontier {
 public:
  /// The caller adds each node once.
  void Add(const ExprNode* n) { found_.push_back(n); }
  /// The next node, whose operands the caller then adds; null at the end.
  const ExprNode* Next() {
    constexpr size_t kPrefetchDistance = 16;
    runtime::PollInterrupt();
    if (next_ == found_.size()) return nullptr;
    if (next_ + kPrefetchDistance < found_.size()) {
      PrefetchNode(found_[next_ + kPrefetchDistance]);
      PrefetchOperandList(found_[next_ + kPrefetchDistance / 2]);
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
