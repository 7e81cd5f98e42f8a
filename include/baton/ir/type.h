// SPDX-License-Identifier: Apache-2.0
// Types of Relay and TIR.
#pragma once

#include <baton/ir/expr.h>

namespace baton {

struct TypeNode : Node<TypeNode, Object> {
  static constexpr const char* _type_key = "Type";
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr uint32_t _type_child_slots = 30;
  mutable Span span;
  static constexpr void Describe(auto& d) {
    d(F<&TypeNode::span>, "Where it came from.", kIgnored, kNullable, kSource);
  }
};
class Type : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(Type, ObjectRef, TypeNode)
};

/// Type of a scalar in TIR.
struct PrimTypeNode : Node<PrimTypeNode, TypeNode> {
  static constexpr const char* _type_key = "PrimType";
  DataType dtype;
  static constexpr void Describe(auto& d) { d(F<&PrimTypeNode::dtype>, "Type of the value."); }
};
class PrimType : public RefTo<PrimTypeNode, Type> {
 public:
  using RefTo::RefTo;
};

/// Pointer to elements, in TIR.
struct PointerTypeNode : Node<PointerTypeNode, TypeNode> {
  static constexpr const char* _type_key = "PointerType";
  Type element_type;
  String storage_scope;
  static constexpr void Describe(auto& d) {
    d(F<&PointerTypeNode::element_type>, "Type of what it points to.");
    d(F<&PointerTypeNode::storage_scope>, "\"\" for main memory, \"local\" for registers and stack.");
  }
};
class PointerType : public RefTo<PointerTypeNode, Type> {
 public:
  using RefTo::RefTo;
};

/// `Tensor[(d0, d1), dtype]`. A dimension is an IntImm, a tir Var, or tir Any (`?`). Rank 0 is a scalar.
struct TensorTypeNode : Node<TensorTypeNode, TypeNode> {
  static constexpr const char* _type_key = "relay.TensorType";
  Array<PrimExpr> shape;
  DataType dtype;
  static constexpr void Describe(auto& d) {
    d(F<&TensorTypeNode::shape>, "Dimensions, in elements.");
    d(F<&TensorTypeNode::dtype>, "Type of an element.");
  }
};
class BATON_DLL TensorType : public RefTo<TensorTypeNode, Type> {
 public:
  using RefTo::RefTo;
  static TensorType Scalar(DataType dtype) { return TensorType(Array<PrimExpr>(), dtype); }
};

enum class TypeKind : int32_t {
  kType = 0,
  kShapeVar = 1,
  kBaseType = 2,
  kConstraint = 4,
  kAdtHandle = 5,
  kTypeData = 6
};

/// A type parameter.
struct TypeVarNode : Node<TypeVarNode, TypeNode> {
  static constexpr const char* _type_key = "TypeVar";
  static constexpr bool _type_is_var = true;
  String name_hint;
  TypeKind kind = TypeKind::kType;
  static constexpr void Describe(auto& d) {
    d(F<&TypeVarNode::name_hint>, "Name in text; identity is the object's.", runtime::kIgnored);
    d(F<&TypeVarNode::kind>, "What it stands for.");
  }
};
class TypeVar : public RefTo<TypeVarNode, Type> {
 public:
  using RefTo::RefTo;
};

/// Name of an algebraic data type.
struct GlobalTypeVarNode : Node<GlobalTypeVarNode, TypeNode> {
  static constexpr const char* _type_key = "GlobalTypeVar";
  String name_hint;
  TypeKind kind = TypeKind::kAdtHandle;
  static constexpr void Describe(auto& d) {
    d(F<&GlobalTypeVarNode::name_hint>, "Name.");
    d(F<&GlobalTypeVarNode::kind>, "What it stands for.");
  }
};
class GlobalTypeVar : public RefTo<GlobalTypeVarNode, Type> {
 public:
  using RefTo::RefTo;
};

struct TupleTypeNode : Node<TupleTypeNode, TypeNode> {
  static constexpr const char* _type_key = "TupleType";
  Array<Type> fields;
  static constexpr void Describe(auto& d) {
    d(F<&TupleTypeNode::fields>, "Types of the fields; none is the unit type.");
  }
};
class TupleType : public RefTo<TupleTypeNode, Type> {
 public:
  using RefTo::RefTo;
  static TupleType Empty() { return TupleType(Array<Type>()); }
};

/// A constraint on types; its one kind is TypeRelation.
struct TypeConstraintNode : Node<TypeConstraintNode, TypeNode> {
  static constexpr const char* _type_key = "TypeConstraint";
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr uint32_t _type_child_slots = 2;
  static constexpr void Describe(auto&) {}
};
class TypeConstraint : public Type {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(TypeConstraint, Type, TypeConstraintNode)
};

/// `fn<T>(A, B) -> R where constraints`.
struct FuncTypeNode : Node<FuncTypeNode, TypeNode> {
  static constexpr const char* _type_key = "FuncType";
  Array<TypeVar> type_params;
  Array<Type> arg_types;
  Type ret_type;
  Array<TypeConstraint> type_constraints;
  static constexpr void Describe(auto& d) {
    d(F<&FuncTypeNode::type_params>, "Type parameters, bound in the rest.", runtime::kBinds);
    d(F<&FuncTypeNode::arg_types>, "Types of the arguments.");
    d(F<&FuncTypeNode::ret_type>, "Type of the result; null in a type that is not complete, which no program may have.",
      kNullable);
    d(F<&FuncTypeNode::type_constraints>, "What must hold of them.");
  }
};
class FuncType : public RefTo<FuncTypeNode, Type> {
 public:
  using RefTo::RefTo;
};

/// A type that is not known yet: a type variable, which inference binds.
struct IncompleteTypeNode : Node<IncompleteTypeNode, TypeNode> {
  static constexpr const char* _type_key = "IncompleteType";
  static constexpr bool _type_identity = true;
  TypeKind kind = TypeKind::kType;
  static constexpr void Describe(auto& d) { d(F<&IncompleteTypeNode::kind>, "What it stands for."); }
};
class IncompleteType : public RefTo<IncompleteTypeNode, Type> {
 public:
  using RefTo::RefTo;
};

/// `ref(T)`.
struct RelayRefTypeNode : Node<RelayRefTypeNode, TypeNode> {
  static constexpr const char* _type_key = "relay.RefType";
  Type value;
  static constexpr void Describe(auto& d) { d(F<&RelayRefTypeNode::value>, "Type of the value referred to."); }
};
class RelayRefType : public RefTo<RelayRefTypeNode, Type> {
 public:
  using RefTo::RefTo;
};

/// `List[A]`: an algebraic data type applied to arguments.
struct TypeCallNode : Node<TypeCallNode, TypeNode> {
  static constexpr const char* _type_key = "TypeCall";
  Type func;
  Array<Type> args;
  static constexpr void Describe(auto& d) {
    d(F<&TypeCallNode::func>, "A GlobalTypeVar.");
    d(F<&TypeCallNode::args>, "Its arguments.");
  }
};
class TypeCall : public RefTo<TypeCallNode, Type> {
 public:
  using RefTo::RefTo;
};

}  // namespace baton
