// SPDX-License-Identifier: Apache-2.0
// Extents of tensors as expressions of symbols: one form for equal ones, and what holds for all sizes.
#pragma once

#include <baton/arith/analyzer.h>

namespace baton::arith {

/// Predicates of one extent or two that hold for all values of their symbols.
enum class Fact { kNo, kYes, kOpen };

/// The same extent in the one form that equal polynomials have: a sum of products of symbols and of parts that are not
/// sums (floordiv, min, max, select), in an order that depends on names alone. Symbols are not negative, but for
/// variables that are declared with the type of an integer (PrimType): values that a program reads. A remainder is
/// written by a quotient, a quotient that goes out even is divided. Literals, symbols and `?` are their own form, and
/// so is what this cannot read (other dtypes, other operations).
/// \throws CompileError where a coefficient is beyond int64.
BATON_DLL PrimExpr CanonicalExtent(const PrimExpr& e);
/// The same; false where this cannot read the expression, which then is as it was.
BATON_DLL bool ToCanonicalExtent(PrimExpr* e);
/// Whether two extents are equal for all values of their symbols; open also where one of them is `?`.
BATON_DLL Fact ExtentsEqual(const PrimExpr& a, const PrimExpr& b);
/// Least and largest value that an extent can have.
BATON_DLL ConstIntBound ExtentBound(const PrimExpr& e);
/// Whether the extent is at least so large.
BATON_DLL Fact ExtentAtLeast(const PrimExpr& e, int64_t least);
/// Whether a condition on extents holds: comparisons, joined by and, or, not.
BATON_DLL Fact ExtentCondition(const PrimExpr& condition);
/// Whether the expression has symbols, all parts of it are such as extents have, and none is `?`.
BATON_DLL bool IsSymbolicExtent(const PrimExpr& e);
/// Canonical, as text: "batch*12 + 1", "floordiv(n, 2)", "select(m == 1, n, m)".
BATON_DLL std::string ExtentText(const PrimExpr& e);
/// The same of an expression that is canonical, with names of symbols as `name(context, symbol)` gives them.
BATON_DLL std::string ExtentText(const PrimExpr& e, std::string (*name)(void*, const tir::VarNode*), void* context);

}  // namespace baton::arith
