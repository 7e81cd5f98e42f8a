// SPDX-License-Identifier: Apache-2.0
// ONNX's nodes that make elements for a shape that comes as a value.
#include "host/functions.h"
#include "host/onnx_node.h"

namespace baton::host {
namespace {

/// The parameter `value` is the only element of the node's tensor.
Arrays OnnxConstantOfShape(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  NDArray out = NDArray::Empty(node.IntsOf(0), node.ResultType(0));
  const bool whole = p.Find("value") && p.At("value").is_int();
  for (int64_t i = 0; i < out.numel(); ++i) {
    if (whole) {
      out.SetInt(i, p.Int("value"));
    } else {
      out.SetDouble(i, p.Find("value") ? p.Double("value") : 0);
    }
  }
  return {out};
}

Arrays OnnxAffineGrid(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray& theta = node.Get(0);
  const Ints size = node.IntsOf(1);
  const bool corners = node.Int("align_corners", 0) != 0;
  const auto rank = static_cast<int64_t>(size.size()) - 2;
  if (rank != 2 && rank != 3) node.Fail("`size` needs 4 or 5 numbers");
  if (theta.shape() != Ints{size[0], rank, rank + 1})
    node.Fail(Cat("`theta` is ", Show(theta), " for ", ShowInts(size)));
  Ints shape{size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(rank);
  NDArray out = NDArray::Empty(shape, theta.dtype());
  const std::vector<double> m = ToDoubles(theta);
  Ints at(size.size() - 2);
  for (int64_t i = 0, n = out.numel() / rank; i < n; ++i) {
    int64_t rest = i;
    for (size_t d = at.size(); d-- > 0; rest /= size[d + 2]) at[d] = rest % size[d + 2];
    for (int64_t row = 0; row < rank; ++row) {
      const double* of = m.data() + (rest * rank + row) * (rank + 1);
      double sum = of[rank];
      for (int64_t k = rank - 1; k >= 0; --k) {  // coordinate k (x, y, z) runs along the last, the one before, ...
        const auto d = static_cast<size_t>(rank - 1 - k);
        const auto e = static_cast<double>(size[d + 2]), x = static_cast<double>(at[d]);
        sum += of[k] * (!corners ? (2 * x + 1) / e - 1 : e > 1 ? x * (2 / (e - 1)) - 1 : 0);
      }
      out.SetDouble(i * rank + row, sum);
    }
  }
  return {out};
}

const Register kFills[] = {{"onnx.ConstantOfShape", -1, OnnxConstantOfShape}, {"onnx.AffineGrid", -1, OnnxAffineGrid}};

}  // namespace
}  // namespace baton::host
