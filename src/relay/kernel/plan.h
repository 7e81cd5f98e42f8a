// SPDX-License-Identifier: Apache-2.0
// The cost model: register tiles and loop orders from shapes. Cycles are estimates of one core; only their order
// matters.
#pragma once

#include "machine.h"

namespace baton::relay::kernel {

/// C[m, n] = sum over k of A[m, k] * B[k, n], for each of a batch.
struct MatmulShape {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool packed = false;  ///< B is a constant in panels: [n / columns][k][columns]
  double Flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

struct MatmulPlan {
  int64_t rows = 1;       ///< of a register tile
  int64_t vectors = 1;    ///< of a register tile, side by side: columns = vectors * lanes
  int64_t k_block = 1;    ///< of the sum, taken at once: what of a panel stays in the first cache
  int64_t unroll = 1;     ///< of the loop over k
  int64_t row_tiles = 1;  ///< of a unit of parallel work
  bool parallel = false;
  double cycles = 0;
  int64_t columns(const Machine& m) const { return vectors * m.lanes; }
};

/// `columns` > 0: the panels' width is given.
BATON_DLL MatmulPlan PlanMatmul(const Machine& m, const MatmulShape& s, int64_t columns = 0);

/// Tiles of a product whose rows are counted at run time.
struct OpenMatmulPlan {
  int64_t rows = 1;        ///< of the highest register tile
  int64_t least_rows = 1;  ///< of the lowest one
  int64_t vectors = 1;     ///< of a panel
  int64_t k_block = 1;     ///< of the sum, where there are many rows: what of a panel stays in the first cache
  int64_t many_rows = 1;   ///< from so many rows on the sum is taken in blocks
};
/// `columns` > 0: the panels' width is given.
BATON_DLL OpenMatmulPlan PlanOpenMatmul(const Machine& m, int64_t columns = 0);

/// A convolution over images in blocks of channels. Where the window is one element and its step is one, an image is
/// one row (`height` 1).
struct ConvShape {
  int64_t batch = 1, out_blocks = 1, height = 1, width = 1;  ///< of the result, in blocks of channels and elements
  int64_t steps = 1;                                         ///< of the sum: input channels * window
  int64_t input_bytes = 0, weight_bytes = 0;
  bool flat = false;  ///< an image is one row
};
struct ConvPlan {
  int64_t rows = 1, columns = 1;  ///< of the register tile, in elements of the image
  int64_t vectors = 1;            ///< of the register tile, in blocks of channels
  int64_t chunk = 1;              ///< tiles (rows of tiles, unless flat) in a unit of parallel work
  bool channels_first = false;    ///< units of one group of channels follow each other: cores share images, not weights
  bool parallel = false;
  double cycles = 0;
};
BATON_DLL ConvPlan PlanConv(const Machine& m, const ConvShape& s);

/// Rounds that the busiest of `cores` has, over the mean.
inline double Imbalance(int64_t units, int64_t cores) {
  if (units <= 0) return 1;
  return static_cast<double>((units + cores - 1) / cores * cores) / static_cast<double>(units);
}
/// Cycles of one step of the sum in a register tile: as many multiply-adds as the ports take, or what hides their
/// latency; loads beside them cost a part of their time, because they contend with misses.
inline double TileStep(const Machine& m, int64_t rows, int64_t vectors) {
  double fma = static_cast<double>(rows * vectors) / m.fma_per_cycle;
  double loads = static_cast<double>(rows + vectors) / m.loads_per_cycle;
  double busy = fma > loads ? fma : loads;
  return (busy > m.fma_latency ? busy : m.fma_latency) + 0.3 * loads + 0.25;
}
inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Arithmetic below this is not worth waking a second thread.
constexpr double kParallelFlops = 60e3;

}  // namespace baton::relay::kernel
