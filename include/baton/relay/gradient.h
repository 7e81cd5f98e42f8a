// SPDX-License-Identifier: Apache-2.0
// How operators are differentiated. A rule is the operator's attribute FPrimalGradient, whoever sets it; an operator
// without one may be restated in terms of operators that have rules; the others say why they have none.
#pragma once

#include <baton/relay/op.h>

namespace baton::relay {

struct GradientRow {
  const char* op;
  /// Adjoints of the arguments. One that is null is zero. An adjoint of a tuple argument is an expression of tuple
  /// type. `call` and its arguments have types; `call` itself stands for the result's value.
  GradientFn gradient;
};
struct RestateRow {
  const char* op;
  /// The call in terms of other operators, as OpDef.decompose; null if these attributes cannot be said so.
  DecomposeFn restate;
};
struct NoGradientRow {
  const char* op;
  const char* reason;  ///< "it sorts on the host"
};
BATON_DLL void DefineGradients(std::initializer_list<GradientRow> rows);
BATON_DLL void DefineGradient(const char* op, TypedPackedFunc<Array<Expr>(Call, Expr)> gradient);
BATON_DLL void DefineRestatements(std::initializer_list<RestateRow> rows);
BATON_DLL void DefineNoGradients(std::initializer_list<NoGradientRow> rows);

/// The rule of an operator: what FPrimalGradient holds; null if it has none.
BATON_DLL PackedFunc GradientOf(const Op& op);
/// Its restatement, or the decomposition of an operator without a rule; null if it has neither.
BATON_DLL DecomposeFn RestatementOf(const Op& op);
/// Why there is no gradient; "" if nobody said.
BATON_DLL String NoGradientReason(const Op& op);

/// Reverse-mode differentiation. The result takes what `func` takes and gives (result, (an adjoint a parameter)), the
/// adjoint of each result being ones. Throws CompileError for what cannot be differentiated.
/// First order: dataflow and lets of tensors and tuples; as many operators as the rules of `func`'s ask for.
BATON_DLL Function FirstOrderGradient(const Function& func, const IRModule& mod);
/// All of Relay: each tensor travels with a reference to its adjoint, and a reference holds the chain of closures that
/// go back. `mod` is given the forms of global functions that are called.
BATON_DLL Function HigherOrderGradient(const Function& func, IRModule* mod);

}  // namespace baton::relay
