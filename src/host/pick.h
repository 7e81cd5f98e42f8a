// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/arrays.h"

namespace baton::host {

inline constexpr char kZeros[16] = {};

/// The element at (i, j, ...) of a result is that of x at (from[0][i], from[1][j], ...), or `fill` where one is -1.
/// `place(d, i)` gives from[d][i].
template <class Place>
NDArray Pick(const NDArray& x, const Ints& shape, const void* fill, Place place) {
  NDArray out = NDArray::Empty(shape, x.dtype());
  if (out.numel() == 0) return out;
  const size_t rank = shape.size(), bytes = static_cast<size_t>(x.dtype().bytes());
  std::vector<Ints> from(rank);  // in elements of x
  int64_t stride = 1;
  for (size_t d = rank; d-- > 0; stride *= x.shape()[d]) {
    for (int64_t i = 0; i < shape[d]; ++i) {
      const int64_t at = place(d, i);
      from[d].push_back(at < 0 ? -1 : at * stride);
    }
  }
  const auto* src = static_cast<const char*>(x.data());
  auto* dst = static_cast<char*>(out.data());
  if (rank == 0) {
    __builtin_memcpy(dst, src, bytes);
    return out;
  }
  const Ints& last = from[rank - 1];
  bool run = last[0] >= 0;  // whether a row is one piece
  for (size_t i = 1; run && i < last.size(); ++i) run = last[i] == last[i - 1] + 1;
  const int64_t rows = out.numel() / shape[rank - 1];
  Ints at(rank - 1);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t base = 0;
    bool inside = true;
    for (size_t d = 0; d + 1 < rank; ++d) {
      const int64_t o = from[d][static_cast<size_t>(at[d])];
      inside = inside && o >= 0;
      base += o;
    }
    if (inside && run) {
      __builtin_memcpy(dst, src + static_cast<size_t>(base + last[0]) * bytes, last.size() * bytes);
      dst += last.size() * bytes;
    } else {
      for (int64_t o : last) {
        __builtin_memcpy(
            dst, inside && o >= 0 ? src + static_cast<size_t>(base + o) * bytes : static_cast<const char*>(fill),
            bytes);
        dst += bytes;
      }
    }
    for (size_t d = rank - 1; d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
  return out;
}

}  // namespace baton::host
