// SPDX-License-Identifier: Apache-2.0
// How programs are differentiated. An operator's gradient is part of its definition, OpDef.gradient.
#pragma once

#include <baton/relay/op.h>

namespace baton::relay {

/// The rule of an operator, which is its attribute FPrimalGradient: what a program has registered, else that of the
/// definition; null if it has none.
BATON_DLL PackedFunc GradientOf(const Op& op);
/// Returns the substitute of a missing rule: the decomposition for gradients, else that before lowering; null if
/// there is neither.
BATON_DLL DecomposeFn GradientDecompositionOf(const Op& op);
/// Why there is no gradient; "" where no reason is given.
BATON_DLL const char* NoGradientReason(const Op& op);

/// Reverse-mode differentiation. The result takes what `func` takes and gives (result, (an adjoint a parameter)), the
/// adjoint of each result being ones. Throws CompileError for what cannot be differentiated.
/// First order: dataflow and lets of tensors and tuples; as many operators as the rules of `func`'s ask for.
BATON_DLL Function FirstOrderGradient(const Function& func, const IRModule& mod);
/// All of Relay: each tensor travels with a reference to its adjoint, and a reference holds the chain of closures that
/// go back. `mod` is given the forms of global functions that are called.
BATON_DLL Function HigherOrderGradient(const Function& func, IRModule* mod);

}  // namespace baton::relay
