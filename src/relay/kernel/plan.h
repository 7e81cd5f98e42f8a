// SPDX-License-Identifier: Apache-2.0
// The cost model: register tiles and loop orders from shapes. Cycles are estimates of one core; only their order matters.
#pragma once

#include "machine.h"

namespace baton::relay::kernel {

/// C[m, n] = sum over k of A[m, k] * B[k, n], for each of a batch.
struct MatmulShape {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool packed = false;  ///< B is a constant in panels: [n / columns][k][columns]
  double Flops() const { return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

struct MatmulPlan {
  int64_t rows = 1;      ///< of a register tile
  int64_t vectors = 1;   ///< of a register tile, side by side: columns = vectors * lanes
  int64_t k_block = 1;   ///< of the sum, taken at once: what of a panel stays in the first cache
  int64_t unroll = 1;    ///< of the loop over k
  int64_t row_tiles = 1; ///< of a unit of parallel work
  bool parallel = false;
  double cycles = 0;
  int64_t columns(const Machine& m) const { return vectors * m.lanes; }
};

/// `columns` > 0: the panels' width is given.
BATON_DLL MatmulPlan PlanMatmul(const Machine& m, const MatmulShape& s, int64_t columns = 0);

/// Rounds that the busiest of `cores` has, over the mean.
inline double Imbalance(int64_t units, int64_t cores) {
  if (units <= 0) return 1;
  return static_cast<double>((units + cores - 1) / cores * cores) / static_cast<double>(units);
}
inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Arithmetic below this is not worth waking a second thread.
constexpr double kParallelFlops = 60e3;

}  // namespace baton::relay::kernel
