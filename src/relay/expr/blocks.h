// SPDX-License-Identifier: Apache-2.0
// The blocks of an expression (bodies of functions and lets, branches, clauses), and for each node the innermost block
// that holds all its uses: where its value is computed.
#pragma once

#include <baton/relay/expr.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/node_graph.h>

#include <vector>

namespace baton::relay {

class Blocks {
 public:
  struct Info {
    int32_t block = -1;  ///< that computes the node
    int32_t first = -1;  ///< the node's own first block; others follow
    uint32_t uses = 0;
    bool in_place = false;  ///< its one use is as the value of a block or of a let
  };
  explicit Blocks(const Expr& root);
  const NodeGraph& graph() const { return graph_; }
  /// All nodes, inputs first.
  const NodeList& order() const { return graph_.nodes(); }
  /// By number in the graph; of an atom it says nothing.
  Info& At(size_t i) { return info_[i]; }
  const Info& At(size_t i) const { return info_[i]; }
  Info& Of(const ExprNode* n) { return info_[graph_.NumberOf(n)]; }
  Info* Find(const ExprNode* n) {
    const uint32_t i = graph_.NumberOf(n);
    return i == NodeGraph::kNone ? nullptr : &info_[i];
  }
  size_t size() const { return blocks_.size(); }
  /// Whether block a is b or lies within it.
  bool Within(int32_t a, int32_t b) const { return Common(a, b) == b; }
  /// Innermost block around both; logarithmic.
  int32_t Common(int32_t a, int32_t b) const;

 private:
  struct Block {
    int32_t parent, depth, jump;
  };
  int32_t Make(int32_t parent);
  NodeGraph graph_;
  std::vector<Block> blocks_;
  support::PageStack<Info> info_;  // by number
};

}  // namespace baton::relay
