// SPDX-License-Identifier: Apache-2.0
// Layouts by name: NCHW, NHWC, NCHW16c, OIHW16i16o.
#pragma once

#include <baton/te/tensor.h>

#include <string_view>
#include <vector>

namespace baton::topi {

/// One dimension of a layout: a whole or outer one (capital letter), or `factor` consecutive elements of it.
struct LayoutDim {
  char axis;           ///< capital letter
  int64_t factor = 0;  ///< 0: the outer dimension
};
/// The dimensions of a layout; throws CompileError with `op` for text that is none.
BATON_DLL std::vector<LayoutDim> ParseLayout(std::string_view layout, const char* op);
/// Place of a letter's outer dimension; -1 if it is not there.
BATON_DLL int64_t FindAxis(const std::vector<LayoutDim>& layout, char axis);
/// Shape in another layout; extents that a factor does not divide are rounded up.
BATON_DLL Array<PrimExpr> LayoutShape(const Array<PrimExpr>& shape, const std::vector<LayoutDim>& from,
                                      const std::vector<LayoutDim>& to);
/// The tensor in another layout; elements that it does not have are 0.
BATON_DLL te::Tensor ChangeLayout(const te::Tensor& x, const std::vector<LayoutDim>& from,
                                  const std::vector<LayoutDim>& to);

}  // namespace baton::topi
