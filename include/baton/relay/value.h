// SPDX-License-Identifier: Apache-2.0
// Values of Relay at run time: NDArray, tuples (an Array of values), closures, references, data.
#pragma once

#include <baton/relay/expr.h>

#include <unordered_map>

namespace baton::relay {

/// A function and what it closes over: the values of its free variables, and not the scope that it was made in, which
/// may hold the closure itself. A recursive one is not among its own values either but known by `self`: no closure
/// keeps itself alive.
class ClosureObj : public Object {
 public:
  static constexpr const char* _type_key = "relay.Closure";
  Function func;
  std::unordered_map<const Object*, ObjectRef> captured;  ///< by variable
  Var self;                                               ///< what `let` calls it; null if it has no name
  BATON_DECLARE_FINAL_OBJECT_INFO(ClosureObj, Object)
};
class Closure : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(Closure, ObjectRef, ClosureObj)
};

/// A cell that can be read and written.
class RefValueObj : public Object {
 public:
  static constexpr const char* _type_key = "relay.RefValue";
  mutable ObjectRef value;
  BATON_DECLARE_FINAL_OBJECT_INFO(RefValueObj, Object)
};
class RefValue : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(RefValue, ObjectRef, RefValueObj)
};

/// A value of an algebraic data type.
struct ConstructorValueObj : Node<ConstructorValueObj, Object> {
  static constexpr const char* _type_key = "relay.ConstructorValue";
  static constexpr const char* _doc = "A value of an algebraic data type.";
  int64_t tag = 0;
  Array<ObjectRef> fields;
  Constructor constructor;
  static constexpr void Describe(auto& d) {
    d(F<&ConstructorValueObj::tag>, "Number of the constructor.");
    d(F<&ConstructorValueObj::fields>, "Values of its fields.");
    d(F<&ConstructorValueObj::constructor>, "The constructor.");
  }
};
class ConstructorValue : public RefTo<ConstructorValueObj, ObjectRef> {
 public:
  using RefTo::RefTo;
};

/// A constant expression of a value: Constant, or Tuple of such; null for closures, references and data.
BATON_DLL Expr ValueToExpr(const ObjectRef& value);

}  // namespace baton::relay
