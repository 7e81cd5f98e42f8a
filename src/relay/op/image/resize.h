// SPDX-License-Identifier: Apache-2.0
// image.resize1d, 2d, 3d and nn.upsampling said as image.resize.
#pragma once

#include <baton/relay/op.h>

namespace baton::relay {

template <int N>
Expr ResizeAsND(const Call& call, const Array<Expr>& args);
extern template Expr ResizeAsND<1>(const Call&, const Array<Expr>&);
extern template Expr ResizeAsND<2>(const Call&, const Array<Expr>&);
extern template Expr ResizeAsND<3>(const Call&, const Array<Expr>&);
Expr UpsamplingAsND(const Call& call, const Array<Expr>& args);
Expr Upsampling3DAsND(const Call& call, const Array<Expr>& args);

}  // namespace baton::relay
