// SPDX-License-Identifier: Apache-2.0
// The commonest operators over float32 in plain loops, for the guard: they share nothing with the compiler's kernels.
// Sums are made in double. Operands are dense, on the host and not empty; a null result means that they are not
// supported.
#pragma once

#include <baton/relay/op.h>

#include <vector>

namespace baton::relay::reference {

using runtime::NDArray;
using Shape = std::vector<int64_t>;

/// Elements from one index of a dimension to the next, 0 where the dimension is repeated; for a result of this rank.
Shape BroadcastStrides(const NDArray& a, const Shape& out);
/// False where they do not broadcast.
bool Broadcast(const NDArray& a, const NDArray& b, Shape* out);
/// Whether all have dtype float32.
bool Floats(const std::vector<NDArray>& in);

/// Calls `row(offset in out, offset in a, offset in b)` for each run along the last dimension.
template <class Row>
void ForRows(const Shape& shape, const Shape& sa, const Shape& sb, Row row) {
  Shape index(shape.size(), 0);
  int64_t out = 0, a = 0, b = 0;
  for (;;) {
    row(out, a, b);
    out += shape.back();
    size_t d = shape.size() - 1;
    for (;;) {
      if (d-- == 0) return;
      a += sa[d], b += sb[d];
      if (++index[d] < shape[d]) break;
      a -= sa[d] * shape[d], b -= sb[d] * shape[d];
      index[d] = 0;
    }
  }
}

/// out[i] = kF(in[i])
template <auto kF>
NDArray Map(const Attrs&, const std::vector<NDArray>& in) {
  if (!Floats(in)) return NDArray();
  const NDArray& a = in[0];
  NDArray out = NDArray::Empty(a.shape(), a.dtype());
  const float* pa = a.ptr<float>();
  float* po = out.ptr<float>();
  for (int64_t i = 0; i < a.numel(); ++i) po[i] = kF(pa[i]);
  return out;
}

/// The same of two operands, which broadcast.
template <auto kF>
NDArray Zip(const Attrs&, const std::vector<NDArray>& in) {
  if (!Floats(in)) return NDArray();
  const NDArray &a = in[0], &b = in[1];
  Shape shape;
  if (!Broadcast(a, b, &shape)) return NDArray();
  NDArray out = NDArray::Empty(shape, a.dtype());
  float* po = out.ptr<float>();
  const float *pa = a.ptr<float>(), *pb = b.ptr<float>();
  if (shape.empty()) {
    *po = kF(*pa, *pb);
    return out;
  }
  const Shape sa = BroadcastStrides(a, shape), sb = BroadcastStrides(b, shape);
  const int64_t n = shape.back(), ia = sa.back(), ib = sb.back();
  ForRows(shape, sa, sb, [&](int64_t o, int64_t x, int64_t y) {
    for (int64_t i = 0; i < n; ++i) po[o + i] = kF(pa[x + i * ia], pb[y + i * ib]);
  });
  return out;
}

NDArray Transpose(const Attrs& attrs, const std::vector<NDArray>& in);
NDArray Softmax(const Attrs& attrs, const std::vector<NDArray>& in);
NDArray LayerNorm(const Attrs& attrs, const std::vector<NDArray>& in);
NDArray Dense(const Attrs& attrs, const std::vector<NDArray>& in);
NDArray DensePack(const Attrs& attrs, const std::vector<NDArray>& in);
NDArray BatchMatmul(const Attrs& attrs, const std::vector<NDArray>& in);
NDArray Sum(const Attrs& attrs, const std::vector<NDArray>& in);
NDArray Take(const Attrs& attrs, const std::vector<NDArray>& in);
NDArray StridedSlice(const Attrs& attrs, const std::vector<NDArray>& in);

}  // namespace baton::relay::reference
