// SPDX-License-Identifier: Apache-2.0
// The copy of elements between tensors with strides; apart, because it is the part of NDArray that has to be fast.
#include <baton/runtime/ndarray.h>

#include <cstring>

namespace baton::runtime {

constexpr int kMaxRank = 64;

/// The tensors have the same shape and type, and at least one element.
void CopyStrided(const DLTensor* from, DLTensor* to) {
  // Byte strides of both; trailing dimensions that are dense in both make one block.
  const int64_t width = int64_t((from->dtype.bits + 7) / 8) * from->dtype.lanes;
  int64_t extent[kMaxRank], step_from[kMaxRank], step_to[kMaxRank], block = width;
  int rank = 0;
  int64_t dense = 1;
  for (int i = from->ndim - 1; i >= 0; --i) {
    const int64_t sf = from->strides ? from->strides[i] : dense, st = to->strides ? to->strides[i] : dense;
    dense *= from->shape[i];
    if (from->shape[i] == 1) continue;
    if (rank == 0 && sf * width == block && st * width == block) {
      block *= from->shape[i];
      continue;
    }
    extent[rank] = from->shape[i], step_from[rank] = sf * width, step_to[rank] = st * width;
    ++rank;
  }
  const char* f = static_cast<const char*>(from->data) + from->byte_offset;
  char* t = static_cast<char*>(to->data) + to->byte_offset;
  if (rank == 0) {
    std::memmove(t, f, static_cast<size_t>(block));
    return;
  }
  // Rank 0 here is the innermost; the others count like an odometer.
  int64_t at[kMaxRank] = {};
  for (;;) {
    const char* p = f;
    char* q = t;
    switch (block) {
      case 4:
        for (int64_t i = 0; i < extent[0]; ++i, p += step_from[0], q += step_to[0]) std::memcpy(q, p, 4);
        break;
      case 1:
        for (int64_t i = 0; i < extent[0]; ++i, p += step_from[0], q += step_to[0]) *q = *p;
        break;
      default:
        for (int64_t i = 0; i < extent[0]; ++i, p += step_from[0], q += step_to[0]) {
          std::memcpy(q, p, static_cast<size_t>(block));
        }
    }
    int d = 1;
    for (; d < rank; ++d) {
      f += step_from[d], t += step_to[d];
      if (++at[d] < extent[d]) break;
      f -= step_from[d] * extent[d], t -= step_to[d] * extent[d];
      at[d] = 0;
    }
    if (d == rank) return;
  }
}

}  // namespace baton::runtime
