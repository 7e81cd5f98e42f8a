// SPDX-License-Identifier: Apache-2.0
// The blocks of an expression (bodies of functions and lets, branches, clauses), and for each node the innermost block
// that holds all its uses: where its value is computed.
#pragma once

#include <baton/relay/expr.h>
#include <baton/support/pointer_map.h>
#include <relay/children.h>

#include <vector>

namespace baton::relay {

/// What stands for itself wherever it is used: variables, constants, names, the empty tuple.
inline bool IsAtom(const ExprNode* n) {
  return n->IsInstance<VarNode>() || n->IsInstance<ConstantNode>() || n->IsInstance<OpNode>() ||
         n->IsInstance<GlobalVarNode>() || n->IsInstance<ConstructorNode>() ||
         (n->IsInstance<TupleNode>() && static_cast<const TupleNode*>(n)->fields.empty());
}

/// Calls f(part, own, tail): `own` is -1 for a part that is evaluated where the node stands, else the number of the
/// node's own block that it is the value of. `tail`: the part is the value of a block or of a let. Variables that the
/// node binds are no parts here.
template <class F>
void ForEachEdge(const ExprNode* n, F f) {
  if (n->IsInstance<LetNode>()) {
    const auto* l = static_cast<const LetNode*>(n);
    f(l->value.get(), -1, true);
    f(l->body.get(), 0, true);
  } else if (n->IsInstance<FunctionNode>()) {
    f(static_cast<const FunctionNode*>(n)->body.get(), 0, true);
  } else if (n->IsInstance<IfNode>()) {
    const auto* i = static_cast<const IfNode*>(n);
    f(i->cond.get(), -1, false);
    f(i->true_branch.get(), 0, true);
    f(i->false_branch.get(), 1, true);
  } else if (n->IsInstance<MatchNode>()) {
    const auto* m = static_cast<const MatchNode*>(n);
    f(m->data.get(), -1, false);
    for (size_t i = 0; i < m->clauses.size(); ++i) {
      const Clause& c = m->clauses[i];
      f(c.defined() ? c->rhs.get() : nullptr, static_cast<int>(i), true);
    }
  } else {
    ForEachPart(n, [&](const ExprNode* p) { f(p, -1, false); });
  }
}

/// The nodes of an expression, inputs first, each with a number of its own below their count.
class NodeOrder {
 public:
  explicit NodeOrder(const Expr& expr);
  std::vector<const ExprNode*> nodes;
  std::vector<uint32_t> ids;   ///< of `nodes`
  std::vector<uint8_t> atoms;  ///< whether they are, noted when they are in the cache
  /// The number of a node; null if it is not among them.
  const uint32_t* Find(const ExprNode* n) const { return ids_.Find(n); }
  void Prefetch(const ExprNode* n) const { ids_.Prefetch(n); }

 private:
  PointerMap<uint32_t> ids_;
};

class Blocks {
 public:
  struct Info {
    int32_t block = -1;   ///< that computes the node
    int32_t first = -1;   ///< the node's own first block; others follow
    int32_t number = -1;  ///< for whoever numbers nodes
    uint32_t uses = 0;
    bool in_place = false;  ///< its one use is as the value of a block or of a let
    bool atom = false;      ///< IsAtom; then the rest says nothing
  };
  explicit Blocks(const Expr& root);
  Info& Of(const ExprNode* n) { return info_[*order_.Find(n)]; }
  Info* Find(const ExprNode* n) {
    const uint32_t* id = order_.Find(n);
    return id ? &info_[*id] : nullptr;
  }
  /// Below the number of nodes.
  uint32_t NumberOf(const ExprNode* n) const { return *order_.Find(n); }
  /// All nodes, inputs first.
  const std::vector<const ExprNode*>& order() const { return order_.nodes; }
  /// Of the node at this place of the order, without a look-up.
  Info& At(size_t i) { return info_[order_.ids[i]]; }
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
  NodeOrder order_;
  std::vector<Block> blocks_;
  std::vector<Info> info_;  // by number
};

}  // namespace baton::relay
