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

class Blocks {
 public:
  struct Info {
    int32_t block = -1;   ///< that computes the node
    int32_t first = -1;   ///< the node's own first block; others follow
    int32_t number = -1;  ///< for whoever numbers nodes
    uint32_t uses = 0;
    bool in_place = false;  ///< its one use is as the value of a block or of a let
  };
  explicit Blocks(const Expr& root);
  Info& Of(const ExprNode* n) { return *info_.Find(n); }
  Info* Find(const ExprNode* n) { return info_.Find(n); }
  /// All nodes, inputs first.
  const std::vector<const ExprNode*>& order() const { return order_; }
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
  std::vector<const ExprNode*> order_;
  std::vector<Block> blocks_;
  PointerMap<Info> info_;
};

}  // namespace baton::relay
