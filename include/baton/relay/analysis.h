// SPDX-License-Identifier: Apache-2.0
// What can be asked of Relay programs.
#pragma once

#include <baton/relay/expr.h>
#include <baton/support/pointer_map.h>

#include <string>

namespace baton::relay {

/// The module with every expression typed: what the pass InferType does.
BATON_DLL IRModule InferModuleTypes(const IRModule& mod);

/// Checks the invariants that every pass may rely on: each variable is bound once and used in its scope, no child is
/// missing, functions and data types that are named exist, calls of operators carry their attributes. Adds to
/// `problems` (if given) a line for each fault.
BATON_DLL bool WellFormed(const Expr& expr, std::string* problems = nullptr);
BATON_DLL bool WellFormed(const IRModule& mod, std::string* problems = nullptr);

/// Type variables in an expression and its annotations, in order of first sight: free, bound, all.
BATON_DLL Array<TypeVar> FreeTypeVars(const ObjectRef& expr_or_type);
BATON_DLL Array<TypeVar> BoundTypeVars(const ObjectRef& expr_or_type);
BATON_DLL Array<TypeVar> AllTypeVars(const ObjectRef& expr_or_type);
/// Patterns of values that no clause covers; empty for an exhaustive match. `mod` gives the constructors.
BATON_DLL Array<Pattern> UnmatchedCases(const Match& match, const IRModule& mod);
/// The kind of a type; a CompileError says what makes no sense. `mod` (may be null) has the data types.
BATON_DLL TypeKind CheckKind(const Type& type, const IRModule& mod);
/// The first fault of that kind, or "". Types in `seen`, which live on, are not looked at again: they are parts of one
/// another.
std::string KindProblem(const Type& type, const IRModule& mod, PointerSet* seen);
/// Whether each value that several blocks use (bodies, branches, clauses) is bound by a let in the block around them.
BATON_DLL bool IsBasicBlockNormalForm(const Expr& expr);
/// Number of nodes of an expression; shared ones count once.
BATON_DLL int64_t CountNodes(const Expr& expr);
/// Names of the operators that are called, with how often, in order of first call.
BATON_DLL Map<String, int64_t> CountOps(const IRModule& mod);

}  // namespace baton::relay
