// SPDX-License-Identifier: Apache-2.0
// Index arithmetic of slices and of padding.
#pragma once

#include <baton/tir/op.h>

namespace baton::topi {

/// Elements begin, begin + stride, ... of a dimension, `extent` of them.
struct Window {
  PrimExpr begin;
  PrimExpr extent;
  int64_t stride = 1;
};
/// Python's slice begin:end:stride of a dimension of `n` elements; INT64_MAX and INT64_MIN serve as "to the end".
BATON_DLL Window MakeWindow(const PrimExpr& n, int64_t begin, int64_t end, int64_t stride);
/// A window whose begin or end is an expression, within the dimension. Negative numbers count from the end; `size`:
/// `end` is a number of elements, -1 for all.
BATON_DLL Window OpenWindow(const PrimExpr& n, const PrimExpr& begin, const PrimExpr& end, bool size, int64_t stride);

enum class Border { kEdge, kWrap, kReflect, kSymmetric };
/// An index of any distance outside [0, n) as one inside: the edge's, wrapped around, or mirrored without (kReflect) or
/// with (kSymmetric) the edge element repeated.
BATON_DLL PrimExpr MirrorIndex(PrimExpr i, const PrimExpr& n, Border border);

}  // namespace baton::topi
