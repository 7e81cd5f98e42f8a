// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <relay/expr/children.h>
#include <relay/expr/dataflow_graph.h>

namespace baton::relay {

DataflowGraph::DataflowGraph(const Expr& root) : root_(root), nodes_(PostOrderNodes(root)) {
  for (int32_t i = 0; i < size(); ++i) index_[nodes_[i]] = i;
  in_begin_.reserve(nodes_.size() + 1);
  for (const ExprNode* n : nodes_) {
    in_begin_.push_back(static_cast<int32_t>(inputs_.size()));
    ForEachPart(n, [&](const ExprNode* part) {
      if (part) inputs_.push_back(Find(part));
    });
  }
  in_begin_.push_back(static_cast<int32_t>(inputs_.size()));
  inputs_.push_back(-1);  // so that an empty range at the end has an address
}

void DataflowGraph::MakeUsers() {
  out_begin_.assign(nodes_.size() + 2, 0);
  const size_t edges = inputs_.size() - 1;
  for (size_t e = 0; e < edges; ++e) ++out_begin_[inputs_[e] + 2];
  for (size_t i = 2; i < out_begin_.size(); ++i) out_begin_[i] += out_begin_[i - 1];
  users_.resize(edges + 1);
  for (int32_t i = 0; i < size(); ++i) {
    for (int32_t in : Inputs(i)) users_[out_begin_[in + 1]++] = i;
  }
}

DataflowGraph::Range DataflowGraph::Users(int32_t i) {
  if (out_begin_.empty()) MakeUsers();
  return {&users_[out_begin_[i]], &users_[out_begin_[i + 1]]};
}

void DataflowGraph::MakeDominators() {
  // The numbers order the graph, so one pass from the root gives each node's nearest post-dominator. A recursive
  // binding uses its own variable, which is a leaf: there are no cycles.
  const int32_t n = size();
  // The lowest common ancestor of two nodes takes logarithmic time by jumps, whose lengths grow as skew-binary numbers.
  std::vector<int32_t> idom(n, n - 1), depth(n, 0), jump(n, n - 1);
  auto common = [&](int32_t a, int32_t b) {
    if (depth[a] < depth[b]) std::swap(a, b);
    while (depth[a] > depth[b]) a = depth[jump[a]] >= depth[b] ? jump[a] : idom[a];
    while (a != b) {
      const bool far = jump[a] != jump[b];
      a = far ? jump[a] : idom[a];
      b = far ? jump[b] : idom[b];
    }
    return a;
  };
  for (int32_t i = n - 2; i >= 0; --i) {
    int32_t d = -1;
    for (int32_t user : Users(i)) d = d < 0 ? user : common(d, user);
    idom[i] = d;
    depth[i] = depth[d] + 1;
    const int32_t j = jump[d];
    jump[i] = depth[d] - depth[j] == depth[j] - depth[jump[j]] ? jump[j] : d;
  }
  // Times of entering and leaving: children have smaller numbers than their post-dominator, so sizes of subtrees add up
  // in order, and each child takes its place behind its elder brothers.
  std::vector<int32_t> count(n, 1), next(n, 0);
  for (int32_t i = 0; i + 1 < n; ++i) count[idom[i]] += count[i];
  enter_.assign(n, 0);
  leave_.assign(n, 0);
  for (int32_t i = n - 1; i >= 0; --i) {
    if (i == n - 1) {
      enter_[i] = 0;
    } else {
      enter_[i] = next[idom[i]];
      next[idom[i]] += count[i];
    }
    next[i] = enter_[i] + 1;
    leave_[i] = enter_[i] + count[i];
  }
}

bool DataflowGraph::PostDominates(int32_t outer, int32_t inner) {
  if (enter_.empty()) MakeDominators();
  return enter_[outer] <= enter_[inner] && leave_[inner] <= leave_[outer];
}

}  // namespace baton::relay
