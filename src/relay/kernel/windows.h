// SPDX-License-Identifier: Apache-2.0
// Loops over windows in which each channel stands alone: depthwise convolutions and pools.
#pragma once

#include <functional>

#include "group.h"
#include "machine.h"

namespace baton::relay::kernel {

/// Windows over images whose channels are planes, or planes of blocks. Extents may be literals or not.
struct Windows {
  PrimExpr images, in_height, in_width, height, width;  ///< the last two: of the result
  int64_t blocks = 1, lanes = 1;                        ///< of channels; lanes 1: images are plain
  int64_t window_h = 1, window_w = 1, step_h = 1, step_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t top = 0, left = 0, bottom = 0, right = 0;  ///< how far windows may reach out of the image
  bool rows = true;                                  ///< images have a dimension of rows
  PrimExpr outside;                                  ///< the value beyond the ends of a row; null: 0
};

/// The reduction of the elements of a window. All values are vectors.
struct WindowFold {
  PrimExpr start;  ///< one lane of the value before the first element
  /// What row `kh` and column `kw` of the window have for block `block`; null: nothing.
  std::function<PrimExpr(const PrimExpr& block, const PrimExpr& kh, const PrimExpr& kw)> weight;
  std::function<PrimExpr(const PrimExpr& acc, const PrimExpr& element, const PrimExpr& weight)> add;
  bool any_order = false;  ///< elements may be added to each other, in any order
  /// The result, of the sum and the number of elements that the window has within the image; null: the sum.
  std::function<PrimExpr(const PrimExpr& acc, const PrimExpr& count)> result;
};

/// The loops. A vector is a block of channels; of plain images it is neighbouring columns, and the step along the rows
/// is 1 and the window at most kWidestWindow columns wide.
Stmt WriteWindows(const Group& g, const Windows& w, const WindowFold& fold, const Machine& mc);

/// Columns of a window up to which its loop over them is unrolled.
inline constexpr int64_t kWidestWindow = 7;

}  // namespace baton::relay::kernel
