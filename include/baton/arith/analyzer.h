// SPDX-License-Identifier: Apache-2.0
// Analysis of integer expressions: bounds, canonical sums, proofs, simplification.
#pragma once

#include <baton/tir/stmt.h>

#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::arith {

/// `[min, max]`, both included; kNegInf and kPosInf say that nothing is known.
struct ConstIntBound {
  static constexpr int64_t kPosInf = INT64_MAX;
  static constexpr int64_t kNegInf = -kPosInf;
  int64_t min = kNegInf;
  int64_t max = kPosInf;
  bool IsConst() const { return min == max; }
};

/// A sum of products: constant + sum of coeff * atom; an atom is a variable, or an expression other than a sum.
struct LinearForm {
  struct Term {
    PrimExpr atom;
    int64_t coeff;
  };
  std::vector<Term> terms;  ///< no two atoms equal, no coefficient zero, in order of first sight
  int64_t constant = 0;
  /// Coefficient of an atom that is this variable; 0 if there is none.
  int64_t CoeffOf(const tir::VarNode* var) const;
};

/// Knows the ranges of variables, and from them simplifies and proves. Cheap to make; not to be shared by threads.
class BATON_DLL Analyzer {
 public:
  /// `var` is in the range. Bounds of the range that are expressions count by their own bounds.
  void Bind(const tir::Var& var, const Range& range);
  void Bind(const tir::Var& var, const PrimExpr& min, const PrimExpr& extent);
  void Unbind(const tir::Var& var);
  /// Takes a condition (conjunction of comparisons) as given; returns a mark for `Forget`.
  size_t Assume(const PrimExpr& condition);
  /// Drops assumptions made since the mark.
  void Forget(size_t mark);

  ConstIntBound Bound(const PrimExpr& e);
  /// Equal in value and at most as costly. Integers canonically, everything below recursively, floats only exactly.
  PrimExpr Simplify(const PrimExpr& e);
  bool CanProve(const PrimExpr& condition);
  bool CanProveEqual(const PrimExpr& a, const PrimExpr& b);
  bool CanProveGreaterEqual(const PrimExpr& e, int64_t value);
  bool CanProveLess(const PrimExpr& e, int64_t value);
  /// The expression as a sum; every integer expression is one (at worst one atom).
  LinearForm Linear(const PrimExpr& e);
  PrimExpr FromLinear(const LinearForm& f, DataType dtype);

 private:
  friend class Simplifier;
  struct Fact {
    LinearForm form;  ///< without its constant
    ConstIntBound bound;
  };
  ConstIntBound BoundOfForm(const LinearForm& f);
  ConstIntBound BoundOfAtom(const PrimExpr& e);
  ConstIntBound FindBound(const PrimExpr& e);
  /// Clears the caches, after what is known has changed.
  void Changed() {
    if (!sums_.empty()) sums_.clear();
    if (!bounds_.empty()) bounds_.clear();
  }
  std::unordered_map<const Object*, ConstIntBound> vars_;
  std::vector<Fact> facts_;
  // Sums and bounds by expression, which is kept alive: each is computed once, since others are made of it.
  std::unordered_map<const Object*, std::pair<PrimExpr, LinearForm>> sums_;
  std::unordered_map<const Object*, std::pair<PrimExpr, ConstIntBound>> bounds_;
};

/// Simplifies all expressions of a statement under the ranges of its loops and the conditions around them.
/// Branches that cannot be taken, loops without iterations and empty statements go.
BATON_DLL tir::Stmt SimplifyStmt(const tir::Stmt& s, Analyzer* analyzer = nullptr);

}  // namespace baton::arith
