// SPDX-License-Identifier: Apache-2.0
// An expression as a graph with numbers for nodes: who uses what, and through whom all that a node feeds goes.
#pragma once

#include <baton/relay/expr.h>
#include <baton/support/pointer_map.h>

#include <vector>

namespace baton::relay {

/// Nodes are numbered inputs first; the last one is the root. What depends on more than the expression is made when it
/// is first asked for.
class DataflowGraph {
 public:
  explicit DataflowGraph(const Expr& root);

  int32_t size() const { return static_cast<int32_t>(nodes_.size()); }
  const ExprNode* node(int32_t i) const { return nodes_[i]; }
  /// The number of a node; -1 for one outside.
  int32_t Find(const ExprNode* n) const {
    const int32_t* i = index_.Find(n);
    return i ? *i : -1;
  }

  struct Range {
    const int32_t* first;
    const int32_t* last;
    const int32_t* begin() const { return first; }
    const int32_t* end() const { return last; }
    bool empty() const { return first == last; }
  };
  /// Parts of a node, in order; a called operator is one of them.
  Range Inputs(int32_t i) const { return {&inputs_[in_begin_[i]], &inputs_[in_begin_[i + 1]]}; }
  /// Nodes that a node is a part of.
  Range Users(int32_t i);
  /// Whether all ways from `inner` to the root go through `outer`.
  bool PostDominates(int32_t outer, int32_t inner);

 private:
  void MakeUsers();
  void MakeDominators();

  Expr root_;
  std::vector<const ExprNode*> nodes_;
  PointerMap<int32_t> index_;
  std::vector<int32_t> in_begin_, inputs_, out_begin_, users_;
  std::vector<int32_t> enter_, leave_;  // of a walk over the tree of post-dominators
};

}  // namespace baton::relay
