// SPDX-License-Identifier: Apache-2.0
// An expression as a graph: ids of nodes, their operands and users, the scopes in which they are evaluated, and
// post-dominators. A pass that goes through a program several times can then read arrays of ids: nodes of large
// programs are far apart in memory, and each access is a cache miss.
#pragma once

#include <baton/relay/functor.h>
#include <baton/support/pages.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/children.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace baton::relay {

/// Atoms: variables, constants, names, the empty tuple.
inline bool IsAtom(const ExprNode* n) {
  return n->IsInstance<VarNode>() || n->IsInstance<ConstantNode>() || n->IsInstance<OpNode>() ||
         n->IsInstance<GlobalVarNode>() || n->IsInstance<ConstructorNode>() ||
         (n->IsInstance<TupleNode>() && static_cast<const TupleNode*>(n)->fields.empty());
}

/// Ids are in the order of PostOrderNodes, operands before users; the last node is the root. Users, scopes and
/// post-dominators are computed on first use. Not thread-safe.
class BATON_DLL ExprIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;                                  ///< the id of a node that is missing
  enum Kind : uint8_t { kDataflow, kAtom, kLet, kFunction, kIf, kMatch, kRef };  // kDataflow: calls, tuples, fields

  /// Takes any depth. `root` may be null.
  explicit ExprIndex(const Expr& root);
  ~ExprIndex();
  ExprIndex(const ExprIndex&) = delete;
  ExprIndex& operator=(const ExprIndex&) = delete;

  size_t size() const { return nodes_.size(); }
  const NodeList& nodes() const { return nodes_; }
  /// The nodes; leaves an index without.
  NodeList TakeNodes() { return std::move(nodes_); }
  const ExprNode* operator[](size_t id) const { return nodes_[id]; }
  Kind kind(size_t id) const { return kinds_[id]; }
  bool atom(size_t id) const { return kinds_[id] == kAtom; }
  /// kNone if the node is not part of the expression.
  uint32_t IdOf(const ExprNode* n) const {
    const uint32_t* found = found_.Find(n);
    return found ? id_of_found_[*found] : kNone;
  }

  // ---- Traversal

  /// Ids in order, or from the root on. Polls for interrupts.
  class Ids {
   public:
    struct Iterator {
      uint32_t id, step;
      uint32_t operator*() const { return id; }
      Iterator& operator++() {
        runtime::PollInterrupt();
        id += step;
        return *this;
      }
      bool operator!=(const Iterator& o) const { return id != o.id; }
    };
    Ids(uint32_t first, uint32_t end, uint32_t step) : first_(first), end_(end), step_(step) {}
    Iterator begin() const { return {first_, step_}; }
    Iterator end() const { return {end_, step_}; }

   private:
    uint32_t first_, end_, step_;
  };
  Ids ids() const { return {0, static_cast<uint32_t>(size()), 1}; }
  Ids ids_from_root() const { return {static_cast<uint32_t>(size()) - 1, kNone, kNone}; }
  /// The node, for a traversal roughly in the order of ids: prefetches the next nodes.
  const ExprNode* Visit(size_t id) const {
    constexpr size_t kPrefetchDistance = 16;
    if (id + kPrefetchDistance < size()) {
      PrefetchNode(nodes_[id + kPrefetchDistance]);
      const ExprNode* near = nodes_[id + kPrefetchDistance / 2];
      PrefetchOperandList(near);
      __builtin_prefetch(near->span.get());  // a rebuilt node shares it
    }
    return nodes_[id];
  }

  // ---- Operands and users

  /// In the order of ForEachChild; kNone for one that is missing.
  std::span<const uint32_t> Operands(size_t id) const {
    return {operands_.begin() + first_[id], operands_.begin() + first_[id + 1]};
  }
  /// The nodes that have the node as an operand, once for each time, in order.
  std::span<const uint32_t> Users(size_t id) const;
  /// The nearest node that is on every path from the node to the root; kNone for the root.
  uint32_t PostDominator(size_t id) const;
  /// Whether every path from `inner` to the root goes through `outer`.
  bool PostDominates(size_t outer, size_t inner) const;

  // ---- Scopes: the whole, and bodies of functions and lets, branches, clauses

  struct Placement {
    int32_t scope = -1;      ///< the innermost scope that holds all uses of the node: where it is evaluated
    int32_t own_scope = -1;  ///< the node's own first scope; others follow
    uint32_t uses = 0;
    bool in_place = false;  ///< its one use is as the value of a scope or of a let
  };
  /// Undefined for atoms.
  const Placement& placement(size_t id) const;
  const Placement& placement(const ExprNode* n) const { return placement(IdOf(n)); }
  size_t num_scopes() const;
  /// Whether a scope is another or within it.
  bool Within(int32_t inner, int32_t outer) const { return CommonScope(inner, outer) == outer; }
  /// The innermost scope around both; logarithmic.
  int32_t CommonScope(int32_t a, int32_t b) const;

  /// Calls f(operand, own, tail) for the operands that are evaluated. `own` is -1 for an operand that is evaluated
  /// where the node is, else it counts the node's own scopes. `tail`: the operand is the value of a scope or of a
  /// let. Variables that the node binds are left out.
  template <class F>
  void ForEachEdge(size_t id, F f) const {
    const std::span<const uint32_t> p = Operands(id);
    switch (kinds_[id]) {
      case kAtom:
        break;
      case kDataflow:
      case kRef:
        for (uint32_t operand : p) f(operand, -1, false);
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
        for (const Clause& c : static_cast<const MatchNode*>(nodes_[id])->clauses) {
          if (c.defined()) {
            const auto skip = [&](const auto&) { ++at; };
            ForEachPatternChild(c->lhs.get(), skip, skip);
          }
          f(c.defined() ? p[at++] : kNone, own++, true);
        }
        break;
      }
    }
  }

 private:
  struct JumpTree;
  struct UserLists;
  struct DominatorTree;
  struct ScopeTree;
  const UserLists& users() const;
  const DominatorTree& dominators() const;
  const ScopeTree& scopes() const;

  Expr root_;  // keeps the nodes
  NodeList nodes_;
  support::PageStack<Kind> kinds_;
  support::PageStack<uint32_t> first_, operands_;  // places in operands_, one more than nodes; ids
  PointerMap<uint32_t> found_;                     // in the order in which nodes were found
  support::PageStack<uint32_t> id_of_found_;
  mutable std::unique_ptr<UserLists> users_;
  mutable std::unique_ptr<DominatorTree> dominators_;
  mutable std::unique_ptr<ScopeTree> scopes_;
};

}  // namespace baton::relay
