// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/arrays.h"

namespace baton::host {

inline constexpr char kZeros[16] = {};

/// A row of Pick: runs of neighbours of x, and elements of none.
struct PickedRun {
  int64_t from;  // -1: `fill`
  int64_t count;
};

/// The runs of a row by the places of its elements.
inline std::vector<PickedRun> RunsOf(const Ints& places) {
  std::vector<PickedRun> runs;
  for (const int64_t at : places) {
    if (!runs.empty()) {
      PickedRun& last = runs.back();
      if (last.from < 0 ? at < 0 : at == last.from + last.count) {
        ++last.count;
        continue;
      }
    }
    runs.push_back({at, 1});
  }
  return runs;
}

/// Copies `bytes` bytes, an element; the usual sizes without a call.
inline void CopyElement(char* to, const char* from, size_t bytes) {
  switch (bytes) {
    case 1:
      *to = *from;
      break;
    case 4:
      __builtin_memcpy(to, from, 4);
      break;
    case 8:
      __builtin_memcpy(to, from, 8);
      break;
    default:
      __builtin_memcpy(to, from, bytes);
  }
}

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
    from[d].reserve(static_cast<size_t>(shape[d]));
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
  const std::vector<PickedRun> runs = RunsOf(from[rank - 1]), none = {{-1, shape[rank - 1]}};
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
    for (const PickedRun& run : inside ? runs : none) {
      const auto size = static_cast<size_t>(run.count) * bytes;
      if (run.from < 0) {
        for (size_t i = 0; i < size; i += bytes) CopyElement(dst + i, static_cast<const char*>(fill), bytes);
      } else if (run.count == 1) {
        CopyElement(dst, src + static_cast<size_t>(base + run.from) * bytes, bytes);
      } else {
        __builtin_memcpy(dst, src + static_cast<size_t>(base + run.from) * bytes, size);
      }
      dst += size;
    }
    for (size_t d = rank - 1; d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
  return out;
}

}  // namespace baton::host
