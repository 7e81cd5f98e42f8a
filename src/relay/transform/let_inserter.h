// SPDX-License-Identifier: Apache-2.0
// Binds values by lets, in the order in which they are evaluated: what the normal forms share.
#pragma once

#include <baton/relay/expr.h>
#include <relay/expr/impure.h>

namespace baton::relay {

enum class LetForm {
  kAll,    ///< every value but atoms; lets within values move out
  kBlocks  ///< values that several blocks (bodies, branches, clauses) use
};

/// The expression in that form; the same object if it is in it. References and state are read and written in the same
/// order as before. Takes any depth.
Expr InsertLets(const Expr& expr, LetForm form);
/// The module with all its functions in that form but primitive ones.
IRModule InsertLets(const IRModule& mod, LetForm form);

/// Returns the expression with new variables for all that it binds.
Expr RenewVars(const Expr& expr);

}  // namespace baton::relay
