// SPDX-License-Identifier: Apache-2.0
// What integers stand for: a real number is scale * (q - zero_point).
#pragma once

#include <baton/relay/expr.h>

namespace baton::relay {

/// How values of an expression stand for real numbers.
struct AffineTypeNode : Node<AffineTypeNode, Object> {
  static constexpr const char* _type_key = "AffineType";
  static constexpr const char* _doc = "How values of an expression stand for real numbers.";
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr uint32_t _type_child_slots = 2;
  static constexpr void Describe(auto&) {}
};
class AffineType : public RefTo<AffineTypeNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};
/// A tensor's: scale * (q - zero_point).
struct TensorAffineTypeNode : Node<TensorAffineTypeNode, AffineTypeNode> {
  static constexpr const char* _type_key = "TensorAffineType";
  static constexpr const char* _doc = "A tensor of integers q that stand for scale * (q - zero_point).";
  Expr scale;
  Expr zero_point;
  DataType dtype;
  int64_t axis = -1;
  static constexpr void Describe(auto& d) {
    d(F<&TensorAffineTypeNode::scale>, "Step between neighbours, float32: a scalar, or a vector along the axis.");
    d(F<&TensorAffineTypeNode::zero_point>, "What stands for 0, int32: a scalar, or a vector along the axis.");
    d(F<&TensorAffineTypeNode::dtype>, "Dtype of the integers.");
    d(F<&TensorAffineTypeNode::axis>, "Axis of vectors.");
  }
};
class TensorAffineType : public RefTo<TensorAffineTypeNode, AffineType> {
 public:
  using RefTo::RefTo;
};
/// A tuple's: one for each field.
struct TupleAffineTypeNode : Node<TupleAffineTypeNode, AffineTypeNode> {
  static constexpr const char* _type_key = "TupleAffineType";
  static constexpr const char* _doc = "A tuple of tensors of integers.";
  Array<TensorAffineType> types;
  static constexpr void Describe(auto& d) { d(F<&TupleAffineTypeNode::types>, "Those of the fields."); }
};
class TupleAffineType : public RefTo<TupleAffineTypeNode, AffineType> {
 public:
  using RefTo::RefTo;
};

}  // namespace baton::relay
