// SPDX-License-Identifier: Apache-2.0
// Types of functions as data types: what Defunctionalization knows of types.
#pragma once

#include <baton/ir/module.h>
#include <baton/ir/structural.h>
#include <baton/relay/type_functor.h>
#include <baton/support/pointer_map.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace baton::relay {

/// Names that no function, data type or constructor of a module has.
class FreshNames {
 public:
  explicit FreshNames(const IRModule& mod);
  std::string Fresh(const std::string& wanted);

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> next_;
};

/// Functions of one type, as data.
struct FunctionData {
  FuncType type;
  GlobalTypeVar name;
  GlobalVar apply;  ///< takes the data, then the arguments
  Var self;         ///< parameters of `apply`
  Array<Var> params;
  Type result;
  Array<Constructor> cases;
  std::vector<std::vector<Var>> patterns;  ///< fields of a case
  std::vector<Expr> bodies;                ///< in terms of `self`, `params` and the case's fields
};

/// Maps types to rewritten types. Arguments have no free type parameters.
class FunctionTypes : private TypeMutator {
 public:
  FunctionTypes(const IRModule& mod, FreshNames* names) : mod_(mod), names_(names) {}
  /// Whether a value of the type has a function in it; type parameters have none.
  bool HasFunction(const Type& t);
  /// The type with data types in place of those of functions.
  Type Data(const Type& t) { return VisitType(t); }
  FunctionData* Of(const Type& function);
  /// Its number.
  size_t AddCase(FunctionData* data, const std::string& hint, const Array<Type>& fields);
  /// The types of a constructor's fields in data of type `type`.
  Array<Type> FieldsOf(const ConstructorNode* k, const Type& type);
  /// The constructor of `Data(type)`.
  Constructor DataConstructor(const Constructor& k, const Type& type);
  /// Adds data types and the functions that apply them.
  void AddTo(IRModuleNode* mod);

 private:
  using TypeMutator::VisitType_;
  Type VisitType(const Type& t) final;
  Type VisitType_(const FuncTypeNode* t) final;
  Type VisitType_(const TypeCallNode* t) final;
  Type VisitType_(const TypeVarNode* t) final;
  const TypeDataNode* Definition(const Type& header) const;
  bool DefinitionHasFunction(const Type& header);
  struct Copy {
    GlobalTypeVar name;
    Array<Constructor> constructors;
  };
  /// The copy of a data type with functions in its fields, at its arguments.
  Copy& CopyOf(const TypeCallNode* t);

  IRModule mod_;
  FreshNames* names_;
  PointerMap<std::pair<Type, Type>> known_;
  PointerMap<bool> definitions_, has_;
  std::vector<Type> keep_;  ///< types that `has_` knows
  std::unordered_map<Type, std::unique_ptr<FunctionData>, StructuralHasher, StructuralEq> functions_;
  std::unordered_map<Type, std::unique_ptr<Copy>, StructuralHasher, StructuralEq> copies_;
  std::vector<FunctionData*> function_order_;
  std::vector<Copy*> copy_order_;
};

/// Which functions have to do with functions as values, themselves or in what they call.
class HigherGlobals {
 public:
  HigherGlobals(const IRModule& mod, FunctionTypes* types) : mod_(mod), types_(types) {}
  bool IsHigher(const Function& root);
  /// The same for a function that a root reaches.
  bool IsHigher(const GlobalVarNode* g) const { return higher_.count(g->name_hint.str()) != 0; }

 private:
  /// Whether it has, by itself; adds the names of what it calls to `callees`.
  bool Own(const Function& f, std::vector<std::string>* callees);
  IRModule mod_;
  FunctionTypes* types_;
  std::unordered_set<std::string> higher_;
};

/// Binds type parameters to what they stand for, by pairs of types with them and without. A second that is null, and a
/// part of one that has type parameters, say nothing.
void BindTypes(const Array<TypeVar>& params, std::vector<std::pair<Type, Type>> pairs, PointerMap<Type>* bound);
/// The same, with functions with their own type parameters in places of types: each says what follows from what the
/// others said.
void BindTypes(const Array<TypeVar>& params, std::vector<std::pair<Type, Type>> pairs,
               const std::vector<std::pair<Type, FuncType>>& open, PointerMap<Type>* bound);

}  // namespace baton::relay
