// SPDX-License-Identifier: Apache-2.0
// The operator registry: one Op object for each name, with attributes by name.
#pragma once

#include <baton/ir/function.h>

#include <vector>

namespace baton {

struct OpArgNode : Node<OpArgNode, Object> {
  static constexpr const char* _type_key = "relay.OpArg";
  static constexpr const char* _doc = "An argument of an operator, described.";
  String name;
  String type_info;
  String description;
  static constexpr void Describe(auto& d) {
    d(F<&OpArgNode::name>, "Name of the argument.");
    d(F<&OpArgNode::type_info>, "Its type, in words.");
    d(F<&OpArgNode::description>, "What it is; its requirements as R1, R2.");
  }
};
class OpArg : public RefTo<OpArgNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

/// A primitive operator or intrinsic. There is one object for each name, so equality is identity.
struct OpNode : Node<OpNode, RelayExprNode> {
  static constexpr const char* _type_key = "Op";
  static constexpr bool _type_is_value = true;
  static constexpr bool _type_identity = true;
  String name;
  mutable String description;
  mutable Array<OpArg> arguments;
  mutable String attrs_type_key;
  mutable int64_t num_inputs = -1;
  mutable int64_t support_level = 10;
  mutable uint64_t def = 0;  // address of the relay::OpDef, or 0
  mutable int64_t index = 0;
  static constexpr void Describe(auto& d) {
    d(F<&OpNode::name>, "Name, as \"nn.conv2d\".");
    d(F<&OpNode::description>, "What it computes.");
    d(F<&OpNode::arguments>, "Its arguments.");
    d(F<&OpNode::attrs_type_key>, "Type key of its attributes, or \"\".");
    d(F<&OpNode::num_inputs>, "Number of arguments; -1 for any.");
    d(F<&OpNode::support_level>, "Documentation level.");
    d(F<&OpNode::def>, "Internal.", runtime::kIgnored);
    d(F<&OpNode::index>, "Number in order of registration.", runtime::kIgnored);
  }
};

template <class T>
class OpAttrMap;

class BATON_DLL Op : public RefTo<OpNode, RelayExpr> {
 public:
  using RefTo::RefTo;
  /// The operator; an unknown name is an error that lists the nearest known ones.
  static const Op& Get(std::string_view name);
  /// The same, null for an unknown name.
  static const Op* Find(std::string_view name);
  /// The operator of this name, made if there is none.
  static Op GetOrCreate(std::string_view name);
  static std::vector<std::string> ListNames();
  template <class T>
  static OpAttrMap<T> GetAttr(const char* key) {
    return OpAttrMap<T>(key);
  }
  template <class T>
  static OpAttrMap<T> GetAttrMap(const char* key) {
    return OpAttrMap<T>(key);
  }
  /// The value that a program has set, else the one of the operator's definition; a null value if there is neither.
  Any GetAttrValue(const char* key) const;
  void SetAttrValue(const char* key, Any value) const;
  /// Registers an attribute that is stored in operator definitions: `get` reads it, and gives a null value where it is
  /// not set. Holds for the whole process.
  static void DefineSlot(const char* key, Any (*get)(const Op& op));
};

/// Values of one attribute over all operators.
template <class T>
class OpAttrMap {
 public:
  explicit OpAttrMap(const char* key) : key_(key) {}
  T get(const ObjectRef& op, T default_value) const {
    const auto* n = op.as<OpNode>();
    Any v = n ? GetRef<Op>(n).GetAttrValue(key_) : Any();
    return v.is_null() ? default_value : v.As<T>();
  }
  bool count(const ObjectRef& op) const {
    const auto* n = op.as<OpNode>();
    return n && !GetRef<Op>(n).GetAttrValue(key_).is_null();
  }
  T operator[](const Op& op) const { return op.GetAttrValue(key_).template As<T>(); }

 private:
  const char* key_;
};

}  // namespace baton
