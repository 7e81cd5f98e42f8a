// SPDX-License-Identifier: Apache-2.0
// Calls whose shape-like operands are extents, said by operators that take expressions. Null where that cannot be.
#pragma once

#include <baton/relay/expr.h>

#include <vector>

namespace baton::relay {

using ExtentList = Array<PrimExpr>;

/// Whether nothing says that an extent is not negative.
bool MayBeNegative(const ExtentList& values);
/// reshape by numbers that may turn out to be 0 (data's extent, unless `allowzero`) or -1 (what is left).
Expr SymbolicReshape(const Expr& data, const ExtentList& codes, bool allowzero);
/// A slice between bounds that count from the end where they are negative, and are clipped. `axes` null: the first
/// ones; `strides` null: 1.
Expr SymbolicSlice(const Expr& data, const ExtentList& begin, const ExtentList& end, const ExtentList* axes,
                   const ExtentList* strides);
Expr SymbolicTile(const Expr& data, const ExtentList& reps);
Expr SymbolicOneHot(const Expr& indices, const Expr& on, const Expr& off, const PrimExpr& depth, int64_t axis,
                    DataType dtype);
/// The parts of an axis, a tuple: of these sizes, which are all of it.
Expr SymbolicSplit(const Expr& data, const ExtentList& sizes, int64_t axis);
/// The same by a number of parts that are equal but the last ones, which are smaller or empty.
Expr SymbolicSplit(const Expr& data, int64_t parts, int64_t axis);
/// Elements around data: `widths` has (before, after) of each dimension; with mode "constant", negative ones cut.
/// `value` null: 0.
Expr SymbolicPad(const Expr& data, const ExtentList& widths, const Expr& value, const String& mode);

}  // namespace baton::relay
