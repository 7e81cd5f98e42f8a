// SPDX-License-Identifier: Apache-2.0
// The nodes of an expression by number, inputs first. What goes through a program several times reads arrays of numbers
// then: nodes of large programs are far apart in memory, and each look at one costs a miss of the cache.
#pragma once

#include <baton/relay/functor.h>
#include <baton/support/pages.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/children.h>

#include <span>
#include <utility>

namespace baton::relay {

/// What stands for itself wherever it is used: variables, constants, names, the empty tuple.
inline bool IsAtom(const ExprNode* n) {
  return n->IsInstance<VarNode>() || n->IsInstance<ConstantNode>() || n->IsInstance<OpNode>() ||
         n->IsInstance<GlobalVarNode>() || n->IsInstance<ConstructorNode>() ||
         (n->IsInstance<TupleNode>() && static_cast<const TupleNode*>(n)->fields.empty());
}

class BATON_DLL NodeGraph {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;  ///< the number of a part that is missing
  enum Kind : uint8_t { kDataflow, kAtom, kLet, kFunction, kIf, kMatch, kRef };  // kDataflow: calls, tuples, fields

  /// Takes any depth. `root` keeps the nodes alive; it may be null.
  explicit NodeGraph(const Expr& root);

  size_t size() const { return nodes_.size(); }
  /// In order of their numbers, the order of PostOrderNodes.
  const NodeList& nodes() const { return nodes_; }
  /// The same, for who needs no more than that; leaves a graph without nodes.
  NodeList TakeNodes() { return std::move(nodes_); }
  const ExprNode* operator[](size_t i) const { return nodes_[i]; }
  Kind kind(size_t i) const { return kinds_[i]; }
  bool atom(size_t i) const { return kinds_[i] == kAtom; }
  /// The numbers of its parts, in the order of ForEachPart.
  std::span<const uint32_t> Parts(size_t i) const {
    return {parts_.begin() + first_[i], parts_.begin() + first_[i + 1]};
  }
  /// kNone if the node is not among them.
  uint32_t NumberOf(const ExprNode* n) const {
    const uint32_t* found = ids_.Find(n);
    return found ? number_[*found] : kNone;
  }
  /// Calls f(part, own, tail) for the parts that are evaluated, by number. `own` is -1 for a part that is evaluated
  /// where the node stands, else the number of the node's own block that it is the value of. `tail`: the part is the
  /// value of a block or of a let. Variables that the node binds are no parts here.
  template <class F>
  void ForEachEdge(size_t i, F f) const {
    const std::span<const uint32_t> p = Parts(i);
    switch (kinds_[i]) {
      case kAtom:
        break;
      case kDataflow:
      case kRef:
        for (uint32_t part : p) f(part, -1, false);
        break;
      case kLet:
        f(p[0], -1, true);
        f(p[2], 0, true);
        break;
      case kFunction:
        f(p.back(), 0, true);
        break;
      case kIf:
        f(p[0], -1, false);
        f(p[1], 0, true);
        f(p[2], 1, true);
        break;
      case kMatch: {
        f(p[0], -1, false);
        size_t at = 1;
        int own = 0;
        ForEachClause(static_cast<const MatchNode*>(nodes_[i]), [&](const Clause& c) {
          if (c.defined()) {
            const auto skip = [&](const auto&) { ++at; };
            ForEachPatternPart(c->lhs.get(), skip, skip);
          }
          f(c.defined() ? p[at++] : kNone, own++, true);
        });
        break;
      }
    }
  }

 private:
  NodeList nodes_;
  support::PageStack<Kind> kinds_;
  support::PageStack<uint32_t> first_, parts_;  // places in parts_, one more than nodes; numbers
  PointerMap<uint32_t> ids_;                    // in the order in which nodes were found
  support::PageStack<uint32_t> number_;         // of those
};

}  // namespace baton::relay
