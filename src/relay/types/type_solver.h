// SPDX-License-Identifier: Apache-2.0
// Unification of types: holes (IncompleteType) get bound as constraints come in.
#pragma once

#include <baton/ir/module.h>
#include <baton/support/pointer_map.h>
#include <relay/types/type_pool.h>

#include <vector>

namespace baton::relay {

class TypeSolver {
 public:
  /// `pool` knows types without holes, also those that solvers before this one met.
  explicit TypeSolver(TypePool* pool) : pool_(pool) {}
  Type NewHole();
  /// What `t` stands for at its outermost: follows bound holes.
  Type Find(const Type& t);
  /// Makes both equal, binding holes; false if they are not. A dimension `?` agrees with any.
  bool Unify(const Type& a, const Type& b);
  /// With bound holes filled in at every depth; the same object if there was none.
  Type Resolve(const Type& t);
  /// Whether an unbound hole is left in it; the first one, for whoever waits.
  const Object* FirstHole(const Type& t);
  /// The more general of two unified types: a dimension that differs becomes `?`.
  Type Join(const Type& a, const Type& b);
  /// Replaces type parameters.
  static Type Substitute(const Type& t, const std::vector<std::pair<const Object*, Type>>& with);
  static bool SameDim(const PrimExpr& a, const PrimExpr& b);
  /// Whether two dimensions may have the same extent when the program runs: unless both are literals that differ.
  static bool MayBeSame(const PrimExpr& a, const PrimExpr& b);
  /// Holes bound since the last call.
  std::vector<const Object*> TakeBound() { return std::move(bound_now_); }

 private:
  bool Bind(const Type& hole, const Type& to);
  /// Unify; tells what it noted in agreed_, which does not hold if they do not agree.
  bool UnifyParts(const Type& x, const Type& y, std::vector<const Object*>* noted);
  /// Whether `t` is known to have no hole but bound ones; looks at nothing else. Such types live as long as this.
  bool Closed(const Type& t) { return pool_->Plain(t) || closed_.Has(t.get()); }
  TypePool* pool_;
  PointerMap<Type> bound_;
  PointerSet closed_;                 ///< types with holes, all of which are bound
  PointerMap<Type> resolved_;         ///< of those: with what their holes were bound to
  PointerMap<const Object*> agreed_;  ///< of types without unbound holes: what they were found to agree with
  std::vector<Type> keep_;
  std::vector<const Object*> bound_now_;
};

}  // namespace baton::relay
