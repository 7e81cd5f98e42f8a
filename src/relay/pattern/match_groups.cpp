// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <relay/pattern/match_groups.h>

namespace baton::relay {
namespace {

using Kind = PatternTable::Kind;

bool IsLeaf(const ExprNode* e) {
  return e->IsInstance<VarNode>() || e->IsInstance<ConstantNode>() || e->IsInstance<GlobalVarNode>() ||
         e->IsInstance<ConstructorNode>() || e->IsInstance<OpNode>();
}

/// Nodes of functions that are the result of a partition.
std::vector<bool> Partitioned(const ExprIndex& graph) {
  std::vector<bool> out(graph.size(), false);
  for (int32_t i = 0; i < static_cast<int32_t>(graph.size()); ++i) {
    if (!graph[i]->IsInstance<FunctionNode>() || out[i]) continue;
    const auto* f = static_cast<const FunctionNode*>(graph[i]);
    if (!f->attrs.defined() || !f->attrs->dict.count(kPartitionedFromPattern)) continue;
    for (const ExprNode* n : PostOrderNodes(GetRef<Expr>(f))) {
      if (!IsLeaf(n)) out[graph.IdOf(n)] = true;
    }
  }
  return out;
}

}  // namespace

std::vector<MatchGroup> FindGroups(const PatternTable& table, ExprIndex* graph, const Expr& expr, const IRModule& mod,
                                   std::vector<int32_t>* of_root) {
  std::vector<MatchGroup> groups;
  of_root->assign(graph->size(), -1);
  std::vector<bool> out = Partitioned(*graph);
  std::vector<int32_t> taken_by(graph->size(), -1);
  PatternMatcher matcher(table, expr, graph, mod);
  for (auto i = static_cast<int32_t>(graph->size()); i-- > 0;) {
    if (out[i] || taken_by[i] >= 0 || !table.CanMatch((*graph)[i]) || !matcher.Match((*graph)[i])) continue;
    const int32_t id = static_cast<int32_t>(groups.size());
    MatchGroup g;
    g.root = i;
    std::vector<int32_t> taken;
    bool free = true;
    auto take = [&](const ExprNode* n) {
      const int32_t k = graph->IdOf(n);
      if (k < 0 || taken_by[k] == id) return;
      if (taken_by[k] >= 0 || out[k]) {
        free = false;
        return;
      }
      taken_by[k] = id;
      taken.push_back(k);
      g.inner.push_back(n);
    };
    take((*graph)[i]);
    for (int32_t p = 0; p < table.size() && free; ++p) {
      const ExprNode* n = matcher.Bound(p);
      if (!n) continue;
      g.bound.emplace_back(p, n);
      switch (table.row(p).kind) {
        case Kind::kCall:
        case Kind::kLet:
        case Kind::kIf:
        case Kind::kTuple:
        case Kind::kTupleGetItem:
          take(n);
          break;
        case Kind::kFunction:
          for (const ExprNode* x : PostOrderNodes(GetRef<Expr>(n))) {
            if (!IsLeaf(x)) take(x);
          }
          break;
        case Kind::kDominator: {
          std::vector<const ExprNode*> path;
          for (const ExprNode* x : matcher.OnPath(p)) {
            if (IsLeaf(x)) continue;
            path.push_back(x);
            take(x);
          }
          g.paths.emplace_back(table.row(p).children[1], std::move(path));
          break;
        }
        default:
          break;
      }
    }
    for (size_t k = 0; k < taken.size() && free; ++k) {
      if (taken[k] == i) continue;
      for (uint32_t user : graph->Users(taken[k])) free &= taken_by[user] == id;
    }
    if (!free) {
      for (int32_t k : taken) taken_by[k] = -1;
      continue;
    }
    (*of_root)[i] = id;
    groups.push_back(std::move(g));
  }
  return groups;
}

}  // namespace baton::relay
