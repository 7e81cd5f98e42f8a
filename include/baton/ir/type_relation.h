// SPDX-License-Identifier: Apache-2.0
// A relation between types, itself a constraint in a function type: `Broadcast(A, B, C)`.
#pragma once

#include <baton/ir/env_func.h>
#include <baton/ir/type.h>

namespace baton {

struct TypeRelationNode : Node<TypeRelationNode, TypeConstraintNode> {
  static constexpr const char* _type_key = "TypeRelation";
  static constexpr const char* _doc =
      "A relation that types must be in: the first `num_inputs` are given, the others follow.";
  EnvFunc func;
  Array<Type> args;
  int64_t num_inputs = 0;
  Attrs attrs;
  static constexpr void Describe(auto& d) {
    d(F<&TypeRelationNode::func>,
      "Function (types, num_inputs, attrs, reporter) -> bool; null: it holds for all types.", kNullable);
    d(F<&TypeRelationNode::args>, "The types: inputs, then results.");
    d(F<&TypeRelationNode::num_inputs>, "How many of them are inputs.");
    d(F<&TypeRelationNode::attrs>, "Attributes that the relation reads; null for none.", kNullable);
  }
};
class TypeRelation : public RefTo<TypeRelationNode, TypeConstraint> {
 public:
  using RefTo::RefTo;
};

}  // namespace baton
