// SPDX-License-Identifier: Apache-2.0
#include "matrix_product.h"

#include <baton/runtime/threading.h>

#include <algorithm>

namespace baton::relay::reference {
namespace {

constexpr int64_t kRows = 6, kColumns = 8;
constexpr int64_t kParallelWork = 1 << 20;  // multiplications from which another thread is worth waking
typedef double Lanes __attribute__((vector_size(64), aligned(8)));  // kColumns of them

/// Six rows times eight columns, k by k. `rows` has six numbers for each k, `columns` eight.
[[gnu::always_inline]] inline void Block(const double* rows, const double* columns, int64_t depth, double* out) {
  Lanes sum[kRows] = {};
  for (int64_t k = 0; k < depth; ++k) {
    const Lanes column = *reinterpret_cast<const Lanes*>(columns + k * kColumns);
    const double* row = rows + k * kRows;
#pragma GCC unroll 6
    for (int64_t r = 0; r < kRows; ++r) sum[r] += column * row[r];
  }
#pragma GCC unroll 6
  for (int64_t r = 0; r < kRows; ++r) *reinterpret_cast<Lanes*>(out + r * kColumns) = sum[r];
}

using BlockFunction = void (*)(const double* rows, const double* columns, int64_t depth, double* out);
#if defined(__x86_64__)
__attribute__((target("avx512f"))) void Block512(const double* rows, const double* columns, int64_t depth,
                                                 double* out) {
  Block(rows, columns, depth, out);
}
__attribute__((target("avx2,fma"))) void Block256(const double* rows, const double* columns, int64_t depth,
                                                  double* out) {
  Block(rows, columns, depth, out);
}
#endif
void BlockPlain(const double* rows, const double* columns, int64_t depth, double* out) {
  Block(rows, columns, depth, out);
}

BlockFunction Fastest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return Block512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Block256;
#endif
  return BlockPlain;
}

/// kBy lines from `first` on, interleaved: their numbers for k = 0, then for k = 1; zeros for lines beyond the last.
template <int64_t kBy>
void Interleave(const Lines& lines, int64_t first, int64_t depth, double* out) {
  const int64_t count = std::min<int64_t>(kBy, static_cast<int64_t>(lines.begin.size()) - first);
  if (count == kBy) {
    const float* line[kBy];
    for (int64_t j = 0; j < kBy; ++j) line[j] = lines.begin[static_cast<size_t>(first + j)];
    for (int64_t k = 0; k < depth; ++k, out += kBy) {
#pragma GCC unroll 8
      for (int64_t j = 0; j < kBy; ++j) out[j] = line[j][k * lines.step];
    }
    return;
  }
  for (int64_t j = 0; j < kBy; ++j) {
    const float* line = j < count ? lines.begin[static_cast<size_t>(first + j)] : nullptr;
    for (int64_t k = 0; k < depth; ++k) out[k * kBy + j] = line ? line[k * lines.step] : 0.0;
  }
}

}  // namespace

void ReferenceProduct(const Lines& rows, const Lines& columns, int64_t depth, float* out) {
  const int64_t m = static_cast<int64_t>(rows.begin.size()), n = static_cast<int64_t>(columns.begin.size());
  static const BlockFunction block = Fastest();
  std::vector<double> left(static_cast<size_t>((m + kRows - 1) / kRows * kRows * depth));
  for (int64_t i = 0; i < m; i += kRows) Interleave<kRows>(rows, i, depth, left.data() + i * depth);
  auto panels = [&](int64_t begin, int64_t end) {
    std::vector<double> right(static_cast<size_t>(kColumns * depth));
    double sums[kRows * kColumns];
    for (int64_t j = begin * kColumns; j < std::min(n, end * kColumns); j += kColumns) {
      Interleave<kColumns>(columns, j, depth, right.data());
      for (int64_t i = 0; i < m; i += kRows) {
        block(left.data() + i * depth, right.data(), depth, sums);
        for (int64_t r = 0; r < std::min(kRows, m - i); ++r) {
          float* line = out + (i + r) * n + j;
          for (int64_t c = 0; c < std::min(kColumns, n - j); ++c) line[c] = static_cast<float>(sums[r * kColumns + c]);
        }
      }
    }
  };
  // Each element is computed by one thread in one order, so results do not depend on the number of threads.
  const int64_t grain = kParallelWork / std::max<int64_t>(1, m * depth * kColumns) + 1;
  runtime::threading::ParallelFor((n + kColumns - 1) / kColumns, grain, panels);
}

}  // namespace baton::relay::reference
