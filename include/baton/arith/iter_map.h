// SPDX-License-Identifier: Apache-2.0
// Indices as independent mixed-radix digits of loop variables.
#pragma once

#include <baton/arith/int_set.h>

namespace baton::arith {

/// An iterator that takes each value from 0 to extent - 1.
struct IterMarkNode : Node<IterMarkNode, Object> {
  static constexpr const char* _type_key = "arith.IterMark";
  ObjectRef source;
  PrimExpr extent;
  static constexpr void Describe(auto& d) {
    d(F<&IterMarkNode::source>, "An expression of a loop variable, or an IterSumExpr.");
    d(F<&IterMarkNode::extent>, "Number of its values.");
  }
};
class IterMark : public RefTo<IterMarkNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

/// A term of a sum of iterators.
struct IterMapExprNode : Node<IterMapExprNode, Object> {
  static constexpr const char* _type_key = "arith.IterMapExpr";
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr uint32_t _type_child_slots = 3;
  static constexpr void Describe(auto&) {}
};
class IterMapExpr : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(IterMapExpr, ObjectRef, IterMapExprNode)
};

/// source / lower_factor % extent * scale
struct IterSplitExprNode : Node<IterSplitExprNode, IterMapExprNode> {
  static constexpr const char* _type_key = "arith.IterSplitExpr";
  IterMark source;
  PrimExpr lower_factor;
  PrimExpr extent;
  PrimExpr scale;
  static constexpr void Describe(auto& d) {
    d(F<&IterSplitExprNode::source>, "What is split.");
    d(F<&IterSplitExprNode::lower_factor>, "Number of the source's values that it is the same for.");
    d(F<&IterSplitExprNode::extent>, "Number of its values before they are scaled.");
    d(F<&IterSplitExprNode::scale>, "Factor of its values.");
  }
};
class IterSplitExpr : public RefTo<IterSplitExprNode, IterMapExpr> {
 public:
  using RefTo::RefTo;
};

/// base plus splits.
struct IterSumExprNode : Node<IterSumExprNode, IterMapExprNode> {
  static constexpr const char* _type_key = "arith.IterSumExpr";
  Array<IterSplitExpr> args;
  PrimExpr base;
  static constexpr void Describe(auto& d) {
    d(F<&IterSumExprNode::args>, "The splits.");
    d(F<&IterSumExprNode::base>, "The term without loop variables.");
  }
};
class IterSumExpr : public RefTo<IterSumExprNode, IterMapExpr> {
 public:
  using RefTo::RefTo;
};

/// Indices as iterators that are independent of each other: together they take each combination of their values. Each
/// is one split of one mark, scaled and shifted. Empty if they are none. Extents of loops, factors and what they are
/// divided by must be numbers. `predicate`: comparisons `sum of loop variables < number` joined by `and`, outside of
/// which the loops do nothing. `bijective`: no two iterations have the same indices.
BATON_DLL Array<IterSumExpr> DetectIterMap(const Array<PrimExpr>& indices, const Map<tir::Var, Range>& iters,
                                           const PrimExpr& predicate, bool bijective);
/// The expression that it stands for.
BATON_DLL PrimExpr NormalizeIterMapToExpr(const IterMapExpr& e);

}  // namespace baton::arith
