// SPDX-License-Identifier: Apache-2.0
// Unification of types. Type variables (IncompleteType; not type parameters, which are TypeVar) are bound as
// constraints come in.
#pragma once

#include <baton/ir/module.h>
#include <baton/support/pointer_map.h>
#include <relay/types/type_pool.h>

#include <vector>

namespace baton::relay {

class TypeSolver {
 public:
  /// `pool` knows types without type variables, also those that solvers before this one met.
  explicit TypeSolver(TypePool* pool) : pool_(pool) {}
  Type NewVariable();
  /// The type that `t` stands for: follows bound type variables at the outermost level only.
  Type Find(const Type& t);
  /// Makes both equal, binding type variables; false if they are not. A dimension `?` agrees with any.
  bool Unify(const Type& a, const Type& b);
  /// Extents that are taken to be equal.
  using Assumed = std::vector<std::pair<PrimExpr, PrimExpr>>;
  /// The same where extents agree too that may be equal when the program runs: these are appended to `assumed`.
  bool UnifyAssuming(const Type& a, const Type& b, Assumed* assumed);
  /// `t` with bound type variables replaced at every depth; the same object if there was none.
  Type Resolve(const Type& t);
  /// The first unbound type variable in `t`, or null.
  const Object* FirstUnbound(const Type& t);
  /// The type of both of two unified ones: a dimension that differs becomes `?`; of functions the one with fewer type
  /// parameters.
  Type Join(const Type& a, const Type& b);
  /// Replaces type parameters, those of `t` itself too; what a function within `t` binds anew stays.
  static Type Substitute(const Type& t, const std::vector<std::pair<const Object*, Type>>& with);
  /// Type variables bound since the last call.
  std::vector<const Object*> TakeBound() { return std::move(bound_now_); }

 private:
  /// The type parameters of `q` in the order of those of `p` that they correspond to, where they do so one to one; else
  /// as they are. Looks at what is known, binds nothing.
  Array<TypeVar> InOrderOf(const FuncTypeNode* p, const FuncTypeNode* q);
  bool SameDim(const PrimExpr& a, const PrimExpr& b);
  bool Bind(const Type& variable, const Type& to);
  /// Unify; `noted` receives its entries in agreed_, which are invalid if unification fails.
  bool UnifyChildren(const Type& x, const Type& y, std::vector<const Object*>* noted);
  /// Whether `t` is known to have no type variable but bound ones; looks at nothing else. Such types live as long as
  /// this.
  bool Closed(const Type& t) { return pool_->Plain(t) || closed_.Has(t.get()); }
  TypePool* pool_;
  PointerMap<Type> bound_;
  PointerSet closed_;                 ///< types with type variables, all of which are bound
  PointerMap<Type> resolved_;         ///< of those: with what their type variables were bound to
  PointerMap<const Object*> agreed_;  ///< of types without unbound type variables: what they were found to agree with
  std::vector<Type> keep_;
  std::vector<const Object*> bound_now_;
  Assumed* assumed_ = nullptr;  ///< null: what is not known to be equal differs
};

}  // namespace baton::relay
