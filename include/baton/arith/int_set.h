// SPDX-License-Identifier: Apache-2.0
// Sets of integers with symbolic ends, and what follows from them. Sums and products are taken not to overflow.
#pragma once

#include <baton/arith/analyzer.h>

namespace baton::arith {

/// A set of integers.
struct IntSetNode : Node<IntSetNode, Object> {
  static constexpr const char* _type_key = "arith.IntSet";
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr uint32_t _type_child_slots = 2;
  static constexpr void Describe(auto&) {}
};
class IntSet : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(IntSet, ObjectRef, IntSetNode)
};

/// The integers from one value to another, both included.
struct IntervalSetNode : Node<IntervalSetNode, IntSetNode> {
  static constexpr const char* _type_key = "arith.IntervalSet";
  PrimExpr min_value;
  PrimExpr max_value;
  static constexpr void Describe(auto& d) {
    d(F<&IntervalSetNode::min_value>, "The least; `neg_inf` if there is none, `pos_inf` in the empty set.");
    d(F<&IntervalSetNode::max_value>, "The largest; `pos_inf` if there is none, `neg_inf` in the empty set.");
  }
};
class BATON_DLL IntervalSet : public RefTo<IntervalSetNode, IntSet> {
 public:
  using RefTo::RefTo;
  static IntervalSet Nothing();
  static IntervalSet Everything();
  static IntervalSet Point(const PrimExpr& e) { return IntervalSet(e, e); }
};

/// The symbol of an end without a limit; the same object each time.
BATON_DLL PrimExpr PosInf();
BATON_DLL PrimExpr NegInf();

using Domains = Map<tir::Var, IntSet>;

/// Values that `e` can have while the variables of `domains` have values in their sets; other variables are constants,
/// whose bounds the analyzer knows. Never too small.
BATON_DLL IntervalSet EvalSet(const PrimExpr& e, const Domains& domains, Analyzer* analyzer);

/// Values of `var` for which a condition (comparisons joined by `and`) holds, whatever values the variables of `relax`
/// have in their sets; never too large, and nothing where none is found. `hint`: sets of other variables, for signs.
BATON_DLL IntervalSet DeduceBound(const tir::Var& var, const PrimExpr& condition, const Domains& hint,
                                  const Domains& relax);

/// `e` as a linear form in `vars`: their coefficients, then the constant term, all free of `vars`. Empty if it is not
/// linear.
BATON_DLL Array<PrimExpr> DetectLinearEquation(const PrimExpr& e, const Array<tir::Var>& vars);

/// For a condition (comparisons joined by `and`, each of one variable times a number): least and largest value of each
/// variable, null where there is none. Empty if it is none.
BATON_DLL Array<PrimExpr> DetectClipBound(const PrimExpr& e, const Array<tir::Var>& vars);

/// An interval within the union of intervals: those that neither overlap nor follow the ones before are left out.
BATON_DLL IntervalSet UnionLowerBound(const Array<IntSet>& sets);

}  // namespace baton::arith
