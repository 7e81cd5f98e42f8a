// SPDX-License-Identifier: Apache-2.0
// Where values live, as equations between unknowns: a value of a first-order type has one device, a function has a
// device for each parameter and for its result. Equations are solved as they come (union-find); each is kept with its
// reason, so that the annotation behind a placement, or the two behind a contradiction, can be named.
//
// A function's unknowns are made on demand: types of nested functions are as deep as the program, and a node of each
// depth has one. Functions of one type that must agree share them from then on.
#pragma once

#include <baton/relay/expr.h>

#include <cstdint>
#include <deque>
#include <vector>

namespace baton::relay {

class DeviceDomains {
 public:
  /// An unknown: a leaf if >= 0, a function if < 0.
  using Id = int32_t;
  static constexpr int64_t kUnknown = -1;

  struct Source {
    Id leaf;
    int64_t device;
    const ExprNode* by;  ///< the annotation, or the function with the attribute
    const char* what;
  };
  struct Edge {
    Id a, b;
    const ExprNode* by;  ///< the expression that wants both equal
    const char* rule;
  };
  /// Two sources that cannot both hold, and the expression between them.
  struct Conflict {
    Source first, second;
    Edge at;
  };
  struct Cause {
    int32_t source = -1;  ///< in sources(); -1: the default
    int32_t edge = -1;    ///< in edges(): the last step from the source; -1: the source itself
  };

  Id Leaf() {
    parent_.push_back(static_cast<Id>(parent_.size()));
    device_.push_back(default_);
    return parent_.back();
  }
  Id OfType(const Type& type);
  static bool IsFunction(Id id) { return id < 0; }
  /// The function that stands for all that share their unknowns with this one.
  Id FindFunction(Id function);
  /// Parameters, then the result.
  const std::vector<Id>& SignatureOf(Id function);
  Id Find(Id leaf) {
    while (parent_[leaf] != leaf) leaf = parent_[leaf] = parent_[parent_[leaf]];
    return leaf;
  }
  int64_t DeviceOf(Id leaf) { return device_[Find(leaf)]; }
  void Leaves(Id id, std::vector<Id>* out);
  /// The leaf itself; of a function that of its result.
  Id ResultOf(Id id);

  /// Equations; a contradiction is noted and left out.
  void Unify(Id a, Id b, const ExprNode* by, const char* rule);
  void Set(Id id, int64_t device, const ExprNode* by, const char* what);
  /// The same if nothing contradicts it; else false and no equation, for two leaves.
  bool Try(Id a, Id b, const ExprNode* by, const char* rule);
  /// The default device for undetermined unknowns, also for those made later.
  void Default(int64_t device);

  const std::vector<Conflict>& conflicts() const { return conflicts_; }
  const std::vector<Source>& sources() const { return sources_; }
  const std::vector<Edge>& edges() const { return edges_; }
  /// For each leaf the nearest source of its device. Linear; call it once, at the end.
  std::vector<Cause> Causes() const;

 private:
  void Merge(Id a, Id b, const ExprNode* by, const char* rule);
  size_t ArityOf(Id function) const { return functions_[-function - 1].type->arg_types.size(); }
  /// Makes two functions of one arity share their unknowns, or notes which of their parts must agree.
  void Share(Id x, Id y, std::vector<std::pair<Id, Id>>* work);
  /// The source nearest to a leaf.
  Source Nearest(Id leaf) const;
  struct Adjacency {
    std::vector<int32_t> first, edge;
  };
  Adjacency Adjacent() const;

  std::vector<Id> parent_;
  std::vector<int64_t> device_;
  int64_t default_ = kUnknown;
  static constexpr Id kNoResult = -1;
  struct Func {
    const FuncTypeNode* type;
    Id same = 0;                ///< the function that it shares its unknowns with; 0: itself
    std::vector<Id> signature;  ///< empty until they are asked for: a function has a result
    Id result = kNoResult;      ///< the leaf of what it gives in the end, once it was asked for
  };
  std::deque<Func> functions_;  ///< places that stay
  std::vector<Type> keep_;
  std::vector<Source> sources_;
  std::vector<Edge> edges_;
  std::vector<Conflict> conflicts_;
};

}  // namespace baton::relay
