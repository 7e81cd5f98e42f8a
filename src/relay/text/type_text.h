// SPDX-License-Identifier: Apache-2.0
// Text of types: `Tensor[(1, ?), float32]`, `(float32, List[int64])`, `fn (bool) -> ref(float32)`.
#pragma once

#include <baton/ir/module.h>

#include <string>

namespace baton::relay {

/// Appends types to a text. Printers of whole programs override the virtual functions.
class TypePrinter {
 public:
  explicit TypePrinter(std::string* out) : out_(out) {}
  virtual ~TypePrinter() = default;
  void Print(const Type& type);
  void PrintDim(const PrimExpr& dim);

 protected:
  virtual std::string NameOf(const TypeVarNode* var) { return var->name_hint.str(); }
  /// The text of a dimension variable.
  virtual std::string DimName(const Object*, const std::string& hint) { return hint; }
  virtual void Other(const ObjectRef& obj);
  /// Whether a type that has parts is left to Other.
  virtual bool Apart(const Type&) { return false; }
  std::string* out_;

 private:
  void List(const Array<Type>& types, const char* open, const char* close);
};

/// Whether a dimension other than a literal is written as arithmetic on names.
bool IsExtentText(const PrimExpr& e);
/// One type on one line; "?" for null.
std::string TypeText(const Type& type);

}  // namespace baton::relay
