// SPDX-License-Identifier: Apache-2.0
// Pools over images with two spatial dimensions, in blocks of channels or plain.
#include <baton/relay/op/nn.h>
#include <baton/topi/layout.h>

#include "generators.h"
#include "windows.h"

namespace baton::relay::kernel {
namespace {

/// Reads the windows of a pool; false where the loops do not fit.
template <class A>
bool ReadPool(const Group& g, const A& a, const Machine& mc, Windows* w) {
  const std::vector<topi::LayoutDim> layout = topi::ParseLayout(a.layout.view(), "nn.pool");
  const bool blocks = layout.size() == 5 && layout[4].axis == 'C';
  if (layout.size() != (blocks ? 5u : 4u)) return false;
  for (size_t i = 0; i < 4; ++i) {
    if (layout[i].axis != "NCHW"[i] || layout[i].factor) return false;
  }
  const Array<PrimExpr>&x = g.arg_extents(0), &o = g.out_extents();
  w->images = x[0], w->blocks = Known(x[1]), w->lanes = blocks ? Known(x[4]) : 1;
  w->in_height = x[2], w->in_width = x[3], w->height = o[2], w->width = o[3];
  auto number = [](const Array<int64_t>& v, int64_t i) { return v.size() > 1 ? v[i] : v[0]; };
  w->window_h = number(a.pool_size, 0), w->window_w = number(a.pool_size, 1);
  w->step_h = number(a.strides, 0), w->step_w = number(a.strides, 1);
  w->dilation_h = number(a.dilation, 0), w->dilation_w = number(a.dilation, 1);
  const bool both = a.padding.size() == 4;
  w->top = number(a.padding, 0), w->left = number(a.padding, 1);
  w->bottom = (both ? a.padding[2] : w->top) + (a.ceil_mode ? w->step_h - 1 : 0);
  w->right = (both ? a.padding[3] : w->left) + (a.ceil_mode ? w->step_w - 1 : 0);
  if (w->blocks < 1 || w->lanes < 1) return false;
  if (!blocks) return w->step_w == 1 && w->window_w <= kWidestWindow;
  return w->lanes > 1 && w->lanes <= mc.lanes && (w->lanes & (w->lanes - 1)) == 0;
}

/// `fold(windows)` says what is made of a window; null where the loops do not fit.
template <class A, class F>
tir::PrimFunc GeneratePool(const Function& func, const Call& anchor, const Target& target, F fold) {
  return GenerateOpen(func, anchor, [&](const Group& g) {
    const auto* a = anchor->attrs.as<A>();
    const DataType t = g.anchor_dtype();
    if (!a || (t != DataType::Float(32) && t != DataType::Float(64)) || g.num_args() != 1 || g.arg_dtype(0) != t)
      return Stmt();
    const Machine mc = MachineOf(target, t);
    Windows w;
    WindowFold f;
    if (!ReadPool(g, *a, mc, &w) || !fold(*a, t, &w, &f)) return Stmt();
    return WriteWindows(g, w, f, mc);
  });
}

}  // namespace

tir::PrimFunc GenerateMaxPool2D(const Function& func, const Call& anchor, const String&, const Target& target) {
  using Attrs = MaxPoolAttrs<2>;
  return GeneratePool<Attrs>(func, anchor, target, [](const Attrs&, DataType t, Windows* w, WindowFold* fold) {
    fold->start = w->outside = lowest(t), fold->any_order = true;
    fold->add = [](const PrimExpr& acc, const PrimExpr& element, const PrimExpr&) { return max(acc, element); };
    return true;
  });
}

tir::PrimFunc GenerateAvgPool2D(const Function& func, const Call& anchor, const String&, const Target& target) {
  using Attrs = AvgPoolAttrs<2>;
  return GeneratePool<Attrs>(func, anchor, target, [](const Attrs& a, DataType t, Windows* w, WindowFold* fold) {
    const bool counted = !a.count_include_pad && (w->top || w->left || w->bottom || w->right);
    if (a.count_include_pad && a.ceil_mode) return false;  // elements of the padding are counted, those behind it not
    const PrimExpr all = tir::make_const(t, static_cast<double>(w->window_h * w->window_w));
    fold->start = tir::make_const(t, 0);
    fold->add = [](const PrimExpr& acc, const PrimExpr& element, const PrimExpr&) { return acc + element; };
    fold->result = [counted, all](const PrimExpr& sum, const PrimExpr& count) {
      return sum / (counted ? count : tir::broadcast_to(all, sum.dtype().lanes()));
    };
    return true;
  });
}

}  // namespace baton::relay::kernel
