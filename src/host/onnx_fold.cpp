// SPDX-License-Identifier: Apache-2.0
// ONNX's nodes that put elements back where windows took them from, in images whose extents come as values.
#include <algorithm>

#include "host/onnx_node.h"

namespace baton::host {
namespace {

int64_t Add(const OnnxNode& node, int64_t a, int64_t b) {
  if (__builtin_add_overflow(a, b, &a)) node.Fail("an extent overflows");
  return a;
}
int64_t Times(const OnnxNode& node, int64_t a, int64_t b) {
  if (__builtin_mul_overflow(a, b, &a)) node.Fail("an extent overflows");
  return a;
}

/// An attribute of `count` numbers of at least `least`.
Ints Numbers(const OnnxNode& node, const char* name, size_t count, int64_t otherwise, int64_t least) {
  Ints v = node.params().Find(name) ? node.params().Ints(name) : Ints(count, otherwise);
  if (v.size() != count || std::any_of(v.begin(), v.end(), [&](int64_t n) { return n < least; }))
    node.Fail(Cat("`", name, "` is ", ShowInts(v)));
  return v;
}

Arrays OnnxCol2Im(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray& x = node.Get(0);
  const Ints image = node.IntsOf(1), block = node.IntsOf(2);
  const size_t n = image.size();
  if (n == 0 || block.size() != n) node.Fail("`image_shape` and `block_shape` differ in length");
  const Ints strides = Numbers(node, "strides", n, 1, 1), dilations = Numbers(node, "dilations", n, 1, 1),
             pads = Numbers(node, "pads", 2 * n, 0, 0);
  int64_t window = 1, count = 1;
  Ints counts, shape{0, 0};
  for (size_t d = 0; d < n; ++d) {
    if (image[d] < 1 || block[d] < 1)
      node.Fail(Cat("`image_shape` is ", ShowInts(image), ", `block_shape` ", ShowInts(block)));
    const int64_t reach = Add(node, Times(node, dilations[d], block[d] - 1), 1);
    const int64_t room = Add(node, Add(node, Add(node, image[d], pads[d]), pads[d + n]), -reach);
    counts.push_back(room < 0 ? 0 : room / strides[d] + 1);
    window = Times(node, window, block[d]);
    count = Times(node, count, counts[d]);
    shape.push_back(image[d]);
  }
  if (x->ndim != 3 || x.shape()[1] % window != 0 || x.shape()[2] != count)
    node.Fail(Cat(Show(x), " holds no (N, C * ", window, ", ", count, ") elements of blocks"));
  shape[0] = x.shape()[0], shape[1] = x.shape()[1] / window;
  NDArray out = NDArray::Empty(shape, x.dtype());
  const std::vector<double> from = ToDoubles(x);
  int64_t plane = 1;
  for (int64_t d : image) plane *= d;
  std::vector<double> sums(static_cast<size_t>(plane));
  for (int64_t c = 0; c < shape[0] * shape[1]; ++c) {
    std::fill(sums.begin(), sums.end(), 0);
    for (int64_t w = 0; w < window; ++w) {
      for (int64_t k = 0; k < count; ++k) {
        int64_t to = 0, scale = 1, in_window = w, in_count = k;
        bool inside = true;
        for (size_t d = n; d-- > 0; scale *= image[d]) {
          const int64_t at = in_count % counts[d] * strides[d] + in_window % block[d] * dilations[d] - pads[d];
          inside = inside && at >= 0 && at < image[d];
          to += at * scale;
          in_window /= block[d], in_count /= counts[d];
        }
        if (inside) sums[static_cast<size_t>(to)] += from[static_cast<size_t>((c * window + w) * count + k)];
      }
    }
    for (int64_t i = 0; i < plane; ++i) out.SetDouble(c * plane + i, sums[static_cast<size_t>(i)]);
  }
  return {out};
}

Arrays OnnxMaxUnpool(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray &x = node.Get(0), &places = node.Get(1);
  if (x->ndim < 3 || places.shape() != x.shape() || !places.dtype().is_integral())
    node.Fail(Cat(Show(places), " holds no places for ", Show(x)));
  const Ints have = x.shape();
  const size_t n = have.size() - 2;
  const Ints kernel = Numbers(node, "kernel_shape", n, 1, 1), strides = Numbers(node, "strides", n, 1, 1),
             pads = Numbers(node, "pads", 2 * n, 0, 0);
  Ints pooled{have[0], have[1]};  // the shape that the places count in
  for (size_t d = 0; d < n; ++d) {
    const int64_t full = Add(node, Times(node, have[d + 2] - 1, strides[d]), kernel[d]);
    pooled.push_back(Add(node, full, -Add(node, pads[d], pads[d + n])));
    if (pooled.back() < 0) node.Fail("`pads` are larger than the data");
  }
  const Ints shape = node.Has(2) ? node.IntsOf(2) : pooled;
  bool fits = shape.size() == have.size() && shape[0] == have[0] && shape[1] == have[1];
  int64_t all = 1, area = 1;
  for (size_t d = 0; fits && d < shape.size(); ++d) {
    fits = shape[d] >= 0;
    all = Times(node, all, pooled[d]), area = Times(node, area, shape[d]);
  }
  if (!fits || area < all) node.Fail(Cat("`output_shape` is ", ShowInts(shape), ", less than ", ShowInts(pooled)));
  NDArray out = NDArray::Zeros(shape, x.dtype());
  for (int64_t i = 0; i < x.numel(); ++i) {
    int64_t rest = places.GetInt(i), to = 0, scale = 1;
    bool inside = rest >= 0 && rest < all;
    for (size_t d = shape.size(); inside && d-- > 0; scale *= shape[d], rest /= pooled[d]) {
      inside = rest % pooled[d] < shape[d];
      to += rest % pooled[d] * scale;
    }
    if (inside) CopyElement(x, i, out, to);
  }
  return {out};
}

const Register kFolds[] = {{"onnx.Col2Im", -1, OnnxCol2Im}, {"onnx.MaxUnpool", -1, OnnxMaxUnpool}};

}  // namespace
}  // namespace baton::host
