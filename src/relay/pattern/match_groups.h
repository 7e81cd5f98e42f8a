// SPDX-License-Identifier: Apache-2.0
// The matches of a pattern in an expression that can all be acted upon.
#pragma once

#include <relay/pattern/matcher.h>

#include <utility>
#include <vector>

namespace baton::relay {

struct MatchGroup {
  int32_t root = -1;  ///< number of the node
  /// What each pattern matched, by number in the table.
  std::vector<std::pair<int32_t, const ExprNode*>> bound;
  /// Paths of dominators: number of the path's pattern, and its nodes.
  std::vector<std::pair<int32_t, std::vector<const ExprNode*>>> paths;
  /// Nodes that the match takes up: the root, and all between it and what its leaves stand for.
  std::vector<const ExprNode*> inner;
};

/// Matches from the root of the graph downwards that do not overlap and whose inner nodes have no users outside the
/// match. Nodes of functions made by an earlier partition are left out. `of_root` gives for each node the group whose
/// root it is, or -1.
std::vector<MatchGroup> FindGroups(const PatternTable& table, ExprIndex* graph, const Expr& expr, const IRModule& mod,
                                   std::vector<int32_t>* of_root);

/// Attribute of functions that a partition made: the operators in them.
constexpr const char* kPartitionedFromPattern = "PartitionedFromPattern";

}  // namespace baton::relay
