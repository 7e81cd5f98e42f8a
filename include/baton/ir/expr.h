// SPDX-License-Identifier: Apache-2.0
// Bases of all expressions (Relay and TIR), number literals, GlobalVar, ranges.
#pragma once

#include <baton/ir/span.h>
#include <baton/runtime/data_type.h>

namespace baton {

class Type;

struct BaseExprNode : Node<BaseExprNode, Object> {
  static constexpr const char* _type_key = "BaseExpr";
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr uint32_t _type_child_slots = 160;
  mutable Span span;
  static constexpr void Describe(auto& d) {
    d(F<&BaseExprNode::span>, "Where it came from.", kIgnored, kNullable, kSource);
  }
};
class BaseExpr : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(BaseExpr, ObjectRef, BaseExprNode)
};

/// A scalar or vector expression of PrimFuncs (TIR), also used for dimensions in types.
struct PrimExprNode : Node<PrimExprNode, BaseExprNode> {
  static constexpr const char* _type_key = "PrimExpr";
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr uint32_t _type_child_slots = 60;
  DataType dtype;
  static constexpr void Describe(auto& d) { d(F<&PrimExprNode::dtype>, "Type of the value, with its lanes."); }
};
class BATON_DLL PrimExpr : public BaseExpr {
 public:
  PrimExpr() = default;
  PrimExpr(int32_t value);  // NOLINT: an int64 literal, the one index width
  PrimExpr(int64_t value);  // NOLINT
  PrimExpr(float value);    // NOLINT: a float32 literal
  explicit PrimExpr(ObjectPtr<Object> n) : BaseExpr(std::move(n)) {}
  using ContainerType = PrimExprNode;
  const PrimExprNode* operator->() const { return static_cast<const PrimExprNode*>(data_.get()); }
  const PrimExprNode* get() const { return operator->(); }
  DataType dtype() const { return (*this)->dtype; }
};

/// Integer literal; also bool.
struct IntImmNode : Node<IntImmNode, PrimExprNode> {
  static constexpr const char* _type_key = "IntImm";
  int64_t value = 0;
  static constexpr void Describe(auto& d) { d(F<&IntImmNode::value>, "The value."); }
};
class BATON_DLL IntImm : public RefTo<IntImmNode, PrimExpr> {
 public:
  using RefTo::RefTo;
  /// Throws for a value outside the range of `dtype`.
  IntImm(DataType dtype, int64_t value, Span span = Span(nullptr));
};
/// Floating literal of any floating dtype.
struct FloatImmNode : Node<FloatImmNode, PrimExprNode> {
  static constexpr const char* _type_key = "FloatImm";
  double value = 0;
  static constexpr void Describe(auto& d) { d(F<&FloatImmNode::value>, "The value, as a double."); }
};
class BATON_DLL FloatImm : public RefTo<FloatImmNode, PrimExpr> {
 public:
  using RefTo::RefTo;
  FloatImm(DataType dtype, double value, Span span = Span(nullptr));
};

/// `[min, min + extent)`.
struct RangeNode : Node<RangeNode, Object> {
  static constexpr const char* _type_key = "Range";
  PrimExpr min;
  PrimExpr extent;
  Span span;
  static constexpr void Describe(auto& d) {
    d(F<&RangeNode::min>, "First value.");
    d(F<&RangeNode::extent>, "Number of values.");
    d(F<&RangeNode::span>, "Where it came from.", kIgnored, kNullable, kSource);
  }
};
class Range : public RefTo<RangeNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

/// The inferred type of a node. A copy of the node starts without one, since copies are made to be changed; a type that
/// is present belongs to this very node.
class CheckedType : public ObjectRef {
 public:
  CheckedType() = default;
  explicit CheckedType(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {}
  CheckedType(const CheckedType&) : ObjectRef() {}
  CheckedType(CheckedType&&) = default;
  CheckedType& operator=(const CheckedType&) = default;
  CheckedType& operator=(const ObjectRef& type) {
    ObjectRef::operator=(type);
    return *this;
  }
};

/// A Relay expression: carries the type that inference found.
struct RelayExprNode : Node<RelayExprNode, BaseExprNode> {
  static constexpr const char* _type_key = "RelayExpr";
  static constexpr bool _type_is_value = false;  ///< sharing matters: one computation differs from two equal ones
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr uint32_t _type_child_slots = 80;
  mutable CheckedType checked_type_;
  static constexpr void Describe(auto& d) {
    d(F<&RelayExprNode::checked_type_>, "Type that inference found; null before.", kIgnored, kNullable);
  }
  /// The inferred type; an error that asks for InferType when there is none.
  BATON_DLL const Type& checked_type() const;
};
class RelayExpr : public BaseExpr {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(RelayExpr, BaseExpr, RelayExprNode)
};

/// A function of the module, by name.
struct GlobalVarNode : Node<GlobalVarNode, RelayExprNode> {
  static constexpr const char* _type_key = "GlobalVar";
  static constexpr bool _type_is_value = true;
  String name_hint;
  static constexpr void Describe(auto& d) { d(F<&GlobalVarNode::name_hint>, "Name, without the @."); }
};
class GlobalVar : public RefTo<GlobalVarNode, RelayExpr> {
 public:
  using RefTo::RefTo;
  explicit GlobalVar(const char* name) : GlobalVar(String(name)) {}
};

}  // namespace baton

namespace baton::runtime {
/// Numbers convert to literals where a PrimExpr is wanted: int64, float32, bool.
template <>
struct HasOwnTraits<PrimExpr> : std::true_type {};
template <>
struct BATON_DLL ValueTraits<PrimExpr> {
  static std::string Name() { return "PrimExpr"; }
  static bool Is(const BatonValue& v) {
    return v.type_code == kBatonNull ||
           (v.type_code == kBatonObject && reinterpret_cast<Object*>(v.v_obj)->IsInstance<PrimExprNode>());
  }
  static PrimExpr From(const BatonValue& v);
  static void To(const PrimExpr& x, BatonValue* v) { ValueTraits<ObjectRef>::To(x, v); }
};
}  // namespace baton::runtime
