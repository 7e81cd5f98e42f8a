// SPDX-License-Identifier: Apache-2.0
// Convolutions over images in blocks of channels in which each channel stands alone.
#include "conv.h"
#include "windows.h"

namespace baton::relay::kernel {

Stmt WriteDepthwise(const Group& g, const Windows& c, const Machine& mc) {
  const DataType t = g.anchor_dtype();
  WindowFold fold;
  fold.start = tir::make_const(t, 0);
  fold.weight = [&](const PrimExpr& block, const PrimExpr& kh, const PrimExpr& kw) {
    const PrimExpr place = (block * I(c.window_h) + kh) * I(c.window_w) + kw;
    return As(t, Read(g.arg(1), place * I(c.lanes), c.lanes));
  };
  fold.add = [&](const PrimExpr& acc, const PrimExpr& element, const PrimExpr& weight) {
    return MultiplyAdd(mc.fma && t.is_floating(), As(t, element), weight, acc);
  };
  return WriteWindows(g, c, fold, mc);
}

}  // namespace baton::relay::kernel
