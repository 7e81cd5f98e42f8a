// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/relay/expr.h>
#include <baton/runtime/interrupt.h>
#include <baton/support/pages.h>

#include <vector>

namespace baton::relay {

/// Nodes in the order of a traversal. Its iterator brings each into the cache before its turn, since nodes of large
/// programs are far apart in memory, and polls for interrupts.
class BATON_DLL NodeList {
 public:
  using value_type = const ExprNode*;
  class Walk {
   public:
    Walk(const ExprNode* const* at, const ExprNode* const* end) : at_(at), end_(end) {}
    const ExprNode* operator*() const {
      if (end_ - at_ > kPrefetchDistance) {
        __builtin_prefetch(at_[kPrefetchDistance]);
        const ExprNode* near = at_[kPrefetchDistance / 2];  // has arrived
        if (near->IsInstance<CallNode>()) __builtin_prefetch(static_cast<const CallNode*>(near)->args.get());
      }
      return *at_;
    }
    Walk& operator++() {
      runtime::PollInterrupt();
      ++at_;
      return *this;
    }
    bool operator!=(const Walk& o) const { return at_ != o.at_; }

   private:
    static constexpr std::ptrdiff_t kPrefetchDistance = 16;
    const ExprNode *const *at_, *const *end_;
  };
  size_t size() const { return nodes_.size(); }
  bool empty() const { return nodes_.empty(); }
  const ExprNode* operator[](size_t i) const { return nodes_[i]; }
  const ExprNode* back() const { return nodes_[size() - 1]; }
  Walk begin() const { return {nodes_.begin(), nodes_.end()}; }
  Walk end() const { return {nodes_.end(), nodes_.end()}; }
  operator std::vector<const ExprNode*>() const { return {nodes_.begin(), nodes_.end()}; }  // NOLINT

 private:
  friend class ExprIndex;
  support::PageStack<const ExprNode*> nodes_;
};

}  // namespace baton::relay
