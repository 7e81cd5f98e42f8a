// SPDX-License-Identifier: Apache-2.0
// A stretch of tensor work whose shapes are expressions of the dimensions of what it reads, or of integers in it.
#pragma once

#include <baton/relay/expr.h>
#include <baton/support/pointer_map.h>
#include <baton/tir/expr.h>
#include <relay/op/known_values.h>

#include <optional>
#include <vector>

namespace baton::driver {

/// Operators that read the same values as calls of fused groups do, one by one, with operands that decide shapes moved
/// into attributes. Every extent is known, or the expression is refused.
class OpenRegion {
 public:
  OpenRegion();

  /// A value from outside.
  relay::Var Input(const relay::ExprNode* n, const Type& type);
  /// `call` with these arguments, which have types; null where a shape does not follow from them.
  relay::Expr Apply(const relay::CallNode* call, const Array<relay::Expr>& args);
  relay::Expr MakeTuple(const Array<relay::Expr>& fields) const;
  relay::Expr Field(const relay::Expr& tuple, int64_t index) const;

  struct Given {
    const relay::ExprNode* node;
    relay::Var var;
  };
  /// An element of an input that shapes may depend on.
  struct Value {
    tir::Var var;
    relay::Var input;
    int64_t element = 0;
    bool negative = false;  ///< whether it may be
  };
  const std::vector<Given>& inputs() const { return inputs_; }
  const std::vector<Value>& values() const { return values_; }
  /// Why a node was refused last.
  const std::string& why() const { return why_; }
  void Refuse(std::string why) { why_ = std::move(why); }
  /// What has been made of a node.
  PointerMap<relay::Expr> made;

 private:
  relay::Expr ApplyOp(const relay::CallNode* call, const Array<relay::Expr>& args);
  relay::Expr StaticForm(const relay::Call& call);
  /// `e` in terms of what `known` says of its parts.
  relay::Expr Rebuild(const relay::Expr& e, PointerMap<relay::Expr>* known);
  std::optional<relay::KnownValues::Elements> ElementsOf(const relay::Expr& e, bool negative);

  std::vector<Given> inputs_;
  std::vector<Value> values_;
  relay::KnownValues plain_, negative_;
  int depth_ = 0;
  std::string why_;
};

/// The region as the function that is compiled, optimised as a model is.
relay::Function OptimizeRegion(const relay::Function& region);
/// The same function with other variables in the types of its parameters and in attributes; it has no other types yet.
relay::Function WithSizeVars(const relay::Function& f, const PointerMap<tir::Var>& vars);
/// The variables in types and attributes of a function.
std::vector<tir::Var> SizeVarsOf(const relay::Function& f);

}  // namespace baton::driver
