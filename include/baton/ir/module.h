// SPDX-License-Identifier: Apache-2.0
// IRModule: functions by name. Passes map modules to modules.
#pragma once

#include <baton/ir/function.h>

namespace baton {

/// One constructor of an algebraic data type.
struct ConstructorNode : Node<ConstructorNode, RelayExprNode> {
  static constexpr const char* _type_key = "relay.Constructor";
  static constexpr bool _type_is_value = true;
  String name_hint;
  Array<Type> inputs;
  GlobalTypeVar belong_to;
  mutable int64_t tag = -1;
  static constexpr void Describe(auto& d) {
    d(F<&ConstructorNode::name_hint>, "Name.");
    d(F<&ConstructorNode::inputs>, "Types of its fields, in terms of the data type's parameters.");
    d(F<&ConstructorNode::belong_to>, "The data type.");
    d(F<&ConstructorNode::tag>,
      "Number, which no other constructor of the module has; given when the type is added to one.", runtime::kIgnored);
  }
};
class Constructor : public RefTo<ConstructorNode, RelayExpr> {
 public:
  using RefTo::RefTo;
};

/// Definition of an algebraic data type.
struct TypeDataNode : Node<TypeDataNode, TypeNode> {
  static constexpr const char* _type_key = "relay.TypeData";
  GlobalTypeVar header;
  Array<TypeVar> type_vars;
  Array<Constructor> constructors;
  static constexpr void Describe(auto& d) {
    d(F<&TypeDataNode::header>, "Its name.");
    d(F<&TypeDataNode::type_vars>, "Its parameters.", runtime::kBinds);
    d(F<&TypeDataNode::constructors>, "Its constructors.");
  }
};
class TypeData : public RefTo<TypeDataNode, Type> {
 public:
  using RefTo::RefTo;
};

/// Functions (Relay and TIR together) and data types. Immutable in effect: change goes through CopyOnWrite.
struct BATON_DLL IRModuleNode : Node<IRModuleNode, Object> {
  static constexpr const char* _type_key = "IRModule";
  Map<GlobalVar, BaseFunc> functions;
  Map<GlobalTypeVar, TypeData> type_definitions;
  DictAttrs attrs;
  static constexpr void Describe(auto& d) {
    d(F<&IRModuleNode::functions>, "Functions by global variable; one variable a name.");
    d(F<&IRModuleNode::type_definitions>, "Data types by name.");
    d(F<&IRModuleNode::attrs>, "Attributes of the whole; null is none.", kNullable);
  }
  /// Looks a function up by name; an unknown name is an error that lists the known ones.
  GlobalVar GetGlobalVar(std::string_view name) const;
  bool ContainGlobalVar(std::string_view name) const;
  BaseFunc Lookup(const GlobalVar& var) const;
  BaseFunc Lookup(std::string_view name) const;
  GlobalTypeVar GetGlobalTypeVar(std::string_view name) const;
  TypeData LookupTypeDef(const GlobalTypeVar& var) const;
  /// Adds a function; a name that exists is an error unless `update`.
  void Add(const GlobalVar& var, const BaseFunc& func, bool update = false);
  void Update(const GlobalVar& var, const BaseFunc& func) { Add(var, func, true); }
  void Remove(const GlobalVar& var);
  void AddTypeDef(const GlobalTypeVar& var, const TypeData& type, bool update = false);
  /// Adds all functions and types of `mod`, replacing those of equal name.
  void Update(const ObjectRef& mod);
};
class BATON_DLL IRModule : public RefTo<IRModuleNode, ObjectRef> {
 public:
  using RefTo::RefTo;
  explicit IRModule(Map<GlobalVar, BaseFunc> functions, Map<GlobalTypeVar, TypeData> types = {});
  /// A module whose `main` is `expr` (wrapped in a function of its free variables if it is not one).
  static IRModule FromExpr(const RelayExpr& expr, const Map<GlobalVar, BaseFunc>& more = {});
  /// A shallow copy to change.
  IRModule Copy() const { return IRModule(ObjectPtr<Object>(make_object<IRModuleNode>(*get()))); }
};

}  // namespace baton
