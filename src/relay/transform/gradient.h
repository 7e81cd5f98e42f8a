// SPDX-License-Identifier: Apache-2.0
// Shared by both forms of gradient.
#pragma once

#include <baton/relay/gradient.h>
#include <baton/support/pointer_map.h>

namespace baton::relay {

/// The expression with the decompositions of operators that have no rule; typed again. `mod` has types.
Expr DecomposeForGradient(const Expr& expr, const IRModule& mod);
/// Whether a type holds a tensor that can have an adjoint.
bool HasFloating(const Type& type);
/// The same, remembered: types of tuples within tuples are parts of each other. They must outlive this.
class FloatingTypes {
 public:
  bool Has(const Type& type);

 private:
  PointerMap<bool> known_;
};
/// The rule's word for a call: an adjoint, or null for zero, an argument. A CompileError names an operator without one.
Array<Expr> AdjointsOf(const Call& call, const Expr& grad);
/// Zeros, or ones, of a tensor type; `like` has that type, for extents that are not known.
Expr FilledTensor(const TensorTypeNode* type, const Expr& like, bool ones);
[[noreturn]] void GradientError(const BaseExprNode* at, std::string message, std::string help = "");
/// `func` with types, checked: no free variables, no type parameters.
Function PrepareForGradient(const Function& func, const IRModule& mod);

}  // namespace baton::relay
