// SPDX-License-Identifier: Apache-2.0
// Shared by convolutions and pools: layouts of data, and windows that slide over its spatial dimensions.
#pragma once

#include <baton/runtime/checked.h>
#include <baton/topi/layout.h>

#include "../common.h"

namespace baton::relay {

/// Places of a tensor's dimensions: of a layout as NCHW, NHWC or NCHW16c.
struct ImageLayout {
  int64_t n = -1, c = -1, c_in = -1;  ///< c_in: the inner part of C; -1 if it is whole
  int64_t block = 1;                  ///< extent of c_in
  Ints space;                         ///< D, H, W as they are ordered in meaning
  int64_t rank = 0;
};
/// Reads a layout with the letters N, C and `letters` ("W", "HW", "DHW"); only C may be split. `what` is the
/// attribute's name.
ImageLayout ReadImageLayout(const String& layout, const char* letters, const char* op, const char* what);
inline const char* SpaceLetters(int n) { return n == 1 ? "W" : n == 2 ? "HW" : "DHW"; }

/// begins and ends of each of n dimensions, from 1, n or 2n numbers.
struct Margins {
  Ints begin, end;
};
Margins ReadPadding(const Array<int64_t>& padding, size_t n, const char* op);
/// n numbers from one or n.
Ints ReadPerDim(const Array<int64_t>& v, size_t n, int64_t default_value, const char* op, const char* what);

using runtime::Checked;

/// Elements from the first to the last tap of a window.
inline Checked WindowSpan(int64_t size, int64_t dilation) { return Checked(size - 1) * dilation + 1; }
/// How often a window of `size` elements, `dilation` apart, fits; -1 for an unknown extent. Fewer than 0 times gives 0.
int64_t WindowCount(int64_t extent, int64_t size, int64_t stride, int64_t dilation, int64_t begin, int64_t end,
                    bool ceil_mode);
/// The same for any extent, and for any size.
PrimExpr WindowCount(const PrimExpr& extent, int64_t size, int64_t stride, int64_t dilation, int64_t begin, int64_t end,
                     bool ceil_mode);
PrimExpr WindowCount(const PrimExpr& extent, const PrimExpr& size, int64_t stride, int64_t dilation, int64_t begin,
                     int64_t end);
PrimExpr WindowSpan(const PrimExpr& size, int64_t dilation);
/// 0 <= i < n, left out where the ranges say so.
PrimExpr InRange(const PrimExpr& i, const PrimExpr& n, bool may_be_before, bool may_be_behind);
inline PrimExpr AndAlso(const PrimExpr& a, const PrimExpr& b) { return !a.defined() ? b : !b.defined() ? a : a && b; }

}  // namespace baton::relay
