// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "plan.h"

namespace baton::relay::kernel {

namespace {

/// Cycles of one step of the sum in a tile of rows x vectors.
double StepCycles(const Machine& m, int64_t rows, int64_t vectors) { return TileStep(m, rows, vectors); }

/// The part of a panel that is used at once should fit the first cache beside a tile's rows.
int64_t KBlock(const Machine& mc, int64_t m, int64_t rows, int64_t vectors, int64_t k) {
  if (m < 3 * rows) return std::max<int64_t>(k, 1);
  int64_t fit = std::max<int64_t>(64, mc.l1 * 9 / 10 / (4 * (vectors * mc.lanes + rows)));
  if (k <= fit) return std::max<int64_t>(k, 1);
  return std::min(k, (CeilDiv(k, CeilDiv(k, fit)) + 7) / 8 * 8);
}

/// Cycles of all tiles in a strip of `m` rows, `vectors` wide.
double StripCycles(const Machine& mc, int64_t m, int64_t rows, int64_t vectors, int64_t k) {
  // The tile's results are stored, and between blocks loaded again.
  double tile_overhead = (14 + 2.5 * static_cast<double>(rows * vectors)) *
                         static_cast<double>(CeilDiv(k, KBlock(mc, m, rows, vectors, k)));
  double c = static_cast<double>(m / rows) * (StepCycles(mc, rows, vectors) * static_cast<double>(k) + tile_overhead);
  if (m % rows) c += StepCycles(mc, m % rows, vectors) * static_cast<double>(k) + tile_overhead;
  return c;
}

}  // namespace

MatmulPlan PlanMatmul(const Machine& mc, const MatmulShape& s, int64_t columns) {
  MatmulPlan best;
  best.cycles = HUGE_VAL;
  int64_t max_vectors =
      columns > 0 ? columns / mc.lanes : std::min<int64_t>(16, std::max<int64_t>(1, CeilDiv(s.n, mc.lanes)));
  for (int64_t v = columns > 0 ? max_vectors : 1; v <= max_vectors; ++v) {
    for (int64_t r = 1; r <= std::min<int64_t>(s.m, 28); ++r) {
      // Accumulators, a row of the panel, one broadcast element; with one or two rows the panel's are operands in
      // memory.
      if (r * v + (r > 1 ? v : 1) + 1 > mc.registers && !(r == 1 && v == 1)) continue;
      int64_t width = v * mc.lanes, panels = CeilDiv(s.n, width), full = s.n / width,
              tail = CeilDiv(s.n % width, mc.lanes);
      double strips = static_cast<double>(full) * StripCycles(mc, s.m, r, v, s.k);
      if (tail) strips += StripCycles(mc, s.m, r, tail, s.k);
      if (s.packed) {
        // Weights come from memory once.
        double bytes = static_cast<double>(s.k * panels * width * 4);
        strips = std::max(strips, bytes / 6.0) + 0.1 * (strips + bytes / 6.0);
      }
      double all = strips * static_cast<double>(s.batch);
      // Split over cores by panels, or by rows too.
      int64_t tiles = CeilDiv(s.m, r);
      double share = HUGE_VAL;
      int64_t row_tiles = tiles;
      for (int64_t chunks = 1; chunks <= std::min<int64_t>(tiles, 4 * mc.cores); ++chunks) {
        int64_t per = CeilDiv(tiles, chunks);
        if (CeilDiv(tiles, per) != chunks) continue;
        double c = Imbalance(s.batch * panels * chunks, mc.cores) * (1 + 0.01 * static_cast<double>(chunks - 1));
        if (c < share - 1e-9) share = c, row_tiles = per;
      }
      double cycles = all * share;
      if (cycles < best.cycles * 0.999) {
        best.cycles = cycles;
        best.rows = r, best.vectors = v, best.row_tiles = row_tiles;
      }
    }
  }
  best.parallel = s.Flops() > kParallelFlops && mc.cores > 1;
  if (!best.parallel) best.row_tiles = CeilDiv(std::max<int64_t>(s.m, 1), best.rows);
  best.k_block = KBlock(mc, s.m, best.rows, best.vectors, s.k);
  int64_t fmas = best.rows * best.vectors;
  best.unroll = fmas >= 16 ? 2 : fmas >= 8 ? 4 : 8;
  return best;
}

OpenMatmulPlan PlanOpenMatmul(const Machine& mc, int64_t columns) {
  OpenMatmulPlan p;
  // Six rows by four vectors keep 32 registers busy, six by two keep 16; row strides may be values of registers too,
  // which more rows would not fit.
  p.vectors = columns > 0 ? columns / mc.lanes : mc.registers >= 32 ? 4 : 2;
  while (p.rows < 6 && (p.rows + 1) * p.vectors + p.vectors + 1 <= mc.registers) ++p.rows;
  p.many_rows = 3 * p.rows;
  // Whole rounds of any unrolled loop.
  p.k_block = std::max<int64_t>(64, mc.l1 * 9 / 10 / (4 * (p.vectors * mc.lanes + p.rows))) / 8 * 8;
  return p;
}

}  // namespace baton::relay::kernel
