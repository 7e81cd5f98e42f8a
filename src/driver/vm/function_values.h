// SPDX-License-Identifier: Apache-2.0
// The values of one Relay function: what expressions stand for, which blocks they are in, what reads them.
#pragma once

#include <baton/relay/op.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/expr_index.h>

#include <memory>
#include <string>
#include <vector>

#include "driver/vm/compile.h"

namespace baton::driver {

/// The node as an N; null where it is none.
template <class N>
const N* As(const relay::ExprNode* n) {
  return n->IsInstance<N>() ? static_cast<const N*>(n) : nullptr;
}

/// A function to translate: its parameters are what it captures, then its own.
struct VmLambda {
  std::string name;
  relay::Function func;
  std::vector<const relay::ExprNode*> captured;
  int32_t index = 0;
  /// The function as an expression of the function around it: a use of it inside is recursion.
  const relay::ExprNode* self = nullptr;
  /// The values of variables that lets bind, in the global function that this is, or is in: two of them may bind the
  /// same.
  std::shared_ptr<PointerMap<relay::Expr>> alias;
  /// Values of enclosing functions that unused lets refer to: no code is made for them.
  std::vector<const relay::ExprNode*> elsewhere = {};
  std::vector<Type> captured_types = {};  ///< with symbols of the function around it
};

class ProgramBuilder;

/// Returns whether a call is a device annotation: its value is its argument's.
bool IsAnnotation(const relay::CallNode* call);
/// Returns the expression inside of annotations.
const relay::ExprNode* Bare(const relay::ExprNode* n);

/// Analyses of a function that translation needs before it makes any code. Refers to both arguments of its constructor.
class FunctionValues {
 public:
  using Expr = relay::Expr;
  using Node = const relay::ExprNode;

  FunctionValues(const ProgramBuilder* program, const VmLambda& lambda);

  const ProgramBuilder* program() const { return program_; }
  const VmLambda& lambda() const { return lambda_; }
  const relay::ExprIndex& index() const { return index_; }
  /// Returns the expression that computes the value of `e`: behind variables, lets and annotations.
  Expr Resolve(Expr e) const;
  Node* Resolve(Node* n) const { return Resolve(GetRef<Expr>(n)).get(); }
  /// For several devices: returns the constant that an annotation, or a copy, puts on a device. Null for other
  /// expressions.
  const relay::ConstantNode* PlacedConstant(Node* n) const;
  /// Returns the expression whose value the function returns.
  Node* result() const { return result_; }
  /// Returns the expressions that read a value; null if none does.
  const std::vector<Node*>* UsersOf(Node* n) const { return users_.Find(n); }
  /// Returns the expressions of a block, with those of its lets, in the order of evaluation.
  const std::vector<Node*>& block(int32_t block) const { return lists_[static_cast<size_t>(block)]; }
  /// Whether an enclosing function has the value, which the function only names.
  bool IsElsewhere(Node* n) const { return elsewhere_.Has(n); }

 private:
  void FindNeeded();
  void FindUsers();
  bool IsComputed(Node* n) const;
  bool Moves(Node* n) const;
  void GatherDevices(std::vector<Node*>* list);
  void GatherDevices(Node** list, size_t count);

  const ProgramBuilder* program_;
  const VmLambda& lambda_;
  relay::ExprIndex index_;
  PointerSet given_, elsewhere_, needed_;  // given_: parameters and what is captured
  PointerMap<std::vector<Node*>> users_;
  std::vector<std::vector<Node*>> lists_;
  mutable PointerMap<Expr> tails_;  // the ends of chains of lets, by the first
  Node* result_ = nullptr;
};

}  // namespace baton::driver
