// SPDX-License-Identifier: Apache-2.0
// Shared by the gradients of convolutions and pools.
#pragma once

#include <baton/relay/op/nn.h>

#include <string>

#include "../gradient.h"
#include "window.h"

namespace baton::relay::gradient {

template <int N>
const Op& TransposeOp() {
  return N == 1 ? op::conv1d_transpose : N == 2 ? op::conv2d_transpose : op::conv3d_transpose;
}
template <int N>
const Op& BackwardWeightOp() {
  return N == 1 ? op::conv1d_backward_weight : N == 2 ? op::conv2d_backward_weight : op::conv3d_backward_weight;
}
/// "NCHW", "OIHW": two letters before those of space.
inline String PlainLayout(const char* outer, int n) { return String(std::string(outer) + SpaceLetters(n)); }
inline Expr ToLayout(const Expr& e, const String& from, const String& to) {
  if (from == to) return e;
  return MakeCall<LayoutTransformAttrs>(op::layout_transform, {e},
                                        [&](LayoutTransformAttrs* a) { a->src_layout = from, a->dst_layout = to; });
}
/// Strides, dilation and padding of a convolution's window.
template <class A, int N>
struct ConvWindow {
  Ints strides, dilation;
  Margins pad;
  ConvWindow(const A& a, const char* op)
      : strides(ReadPerDim(a.strides, N, 1, op, "strides")),
        dilation(ReadPerDim(a.dilation, N, 1, op, "dilation")),
        pad(ReadPadding(a.padding, N, op)) {}
  Array<int64_t> Padding() const {
    Ints all = pad.begin;
    all.insert(all.end(), pad.end.begin(), pad.end.end());
    return ToArray(all);
  }
};
/// Extents of an image whose layout is `layout`, as N, C and space.
template <int N>
Ints PlainDims(const At& at, const Shape& shape, const String& layout) {
  ImageLayout l = ReadImageLayout(layout, SpaceLetters(N), at.op(), "layout");
  Ints dims = at.Known(shape), out{dims[l.n], dims[l.c] * l.block};
  for (int64_t s : l.space) out.push_back(dims[s]);
  return out;
}

}  // namespace baton::relay::gradient
