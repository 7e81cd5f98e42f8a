// SPDX-License-Identifier: Apache-2.0
// What strided_slice's attributes cut out.
#pragma once

#include <baton/arith/extent.h>
#include <baton/relay/op/transform.h>
#include <baton/topi/window.h>

#include "../common.h"

namespace baton::relay {

using topi::Window;

/// That windows of expressions are within their dimensions.
inline void AssumeInside(const StridedSliceAttrs& a, const TypeArgs& in) {
  for (size_t k = 0; k < a.begin.size(); ++k) {
    if (a.begin[k].is_literal() && a.end[k].is_literal()) continue;
    const PrimExpr& n =
        in.shape(0)[a.axes.defined() ? in.Axis(a.axes[k], in.ndim(0), "axes") : static_cast<int64_t>(k)];
    const Window w = topi::OpenWindow(n, a.begin[k].expr(), a.end[k].expr(), a.slice_mode == "size", 1);
    const PrimExpr end = w.begin + w.extent;
    const bool unknown = n.as<tir::AnyNode>();
    if (!in.AtLeast(w.begin, 0) || !in.AtLeast(w.extent, 0) || (!unknown && !in.AtLeast(n - end, 0))) {
      in.Fail("R5", "begin " + arith::ExtentText(w.begin) + " and end " + arith::ExtentText(end) +
                        " lie outside of an extent of " + arith::ExtentText(n));
    }
  }
}
/// The window of each dimension; dimensions that are not named stay whole.
template <class Fail>
std::vector<Window> Windows(const StridedSliceAttrs& a, const Shape& in, Fail fail) {
  int64_t ndim = in.size(), n = a.begin.size();
  if (a.end.size() != a.begin.size()) fail("R1", "begin has " + Str(n) + " numbers and end " + Str(a.end.size()));
  if (static_cast<int64_t>(a.strides.size()) != n && a.strides.size() > 1) {
    fail("R1", "begin has " + Str(n) + " numbers and strides " + Str(a.strides.size()));
  }
  if (a.slice_mode != "end" && a.slice_mode != "size")
    fail("R2", "slice_mode is \"" + a.slice_mode.str() + "\"; it is \"end\" or \"size\"");
  if (a.axes.defined() ? static_cast<int64_t>(a.axes.size()) != n : n > ndim) {
    fail("R3", "begin has " + Str(n) + " numbers, where " +
                   (a.axes.defined() ? "axes has " + Str(a.axes.size()) : "`data` has rank " + Str(ndim)));
  }
  std::vector<Window> out;
  for (const PrimExpr& d : in) out.push_back(Window{PrimExpr(0), d, 1});
  std::vector<bool> seen(ndim);
  for (int64_t k = 0; k < n; ++k) {
    int64_t d = a.axes.defined() ? NormalizeAxis(a.axes[k], ndim, "strided_slice", "axes") : k;
    if (seen[d]) fail("R3", "axes " + ShowInts(ToInts(a.axes)) + " names dimension " + Str(d) + " twice");
    seen[d] = true;
    int64_t stride = a.strides.empty() ? 1 : a.strides.size() == 1 ? a.strides[0] : a.strides[k];
    bool size = a.slice_mode == "size";
    if (size) stride = 1;
    if (stride == 0) fail("R4", "a stride is 0");
    if (!a.begin[k].is_literal() || !a.end[k].is_literal()) {
      if (stride < 0) fail("R4", "begin and end are numbers where a stride is negative");
      out[d] = topi::OpenWindow(in[d], a.begin[k].expr(), a.end[k].expr(), size, stride);
      continue;
    }
    int64_t end = a.end[k].literal();
    if (size) {
      if (end < -1) fail("R5", "a size is " + Str(end) + "; it is an extent, or -1 for all that remain");
      // begin + size, where a begin that counts from the end must not pass 0.
      int64_t sum = 0;
      const int64_t begin = a.begin[k].literal();
      bool far = __builtin_add_overflow(begin, end, &sum) || (begin < 0 && sum >= 0);
      end = end == -1 || far ? INT64_MAX : sum;
    }
    out[d] = topi::MakeWindow(in[d], a.begin[k].literal(), end, stride);
  }
  return out;
}

}  // namespace baton::relay
