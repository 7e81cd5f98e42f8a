// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "plan.h"

namespace baton::relay::kernel {

ConvPlan PlanConv(const Machine& mc, const ConvShape& s) {
  ConvPlan best;
  best.cycles = HUGE_VAL;
  for (int64_t v = 1; v <= std::min<int64_t>(s.out_blocks, 8); ++v) {
    // Weights of a group of channels that do not fit the first cache stream from the second for each tile.
    double slice = static_cast<double>(s.weight_bytes) / static_cast<double>(s.out_blocks) * static_cast<double>(v);
    double stream = slice > 0.75 * static_cast<double>(mc.l1)
                        ? 0.5 * static_cast<double>(v * mc.lanes * 4) / mc.l2_bytes_per_cycle
                        : 0;
    auto tile_cycles = [&](int64_t elements, int64_t vectors) {
      double step = TileStep(mc, elements, vectors) + stream * static_cast<double>(vectors) / static_cast<double>(v);
      return step * static_cast<double>(s.steps) + 20 + 2.0 * static_cast<double>(elements * vectors);
    };
    for (int64_t t = 1; t <= std::min<int64_t>(s.width, 28); ++t) {
      for (int64_t r = 1; r <= (t == s.width && !s.flat ? std::min<int64_t>(s.height, s.width == 1 ? 28 : 8) : 1);
           ++r) {
        int64_t acc = r * t * v;
        if (acc + v + 1 > mc.registers) continue;
        auto strip = [&](int64_t rows, int64_t vectors) {
          double c = static_cast<double>(s.width / t) * tile_cycles(rows * t, vectors);
          if (s.width % t) c += tile_cycles(rows * (s.width % t), vectors);
          return c;
        };
        auto plane = [&](int64_t vectors) {
          double c = static_cast<double>(s.height / r) * strip(r, vectors);
          if (s.height % r) c += strip(s.height % r, vectors);
          return c;
        };
        double c = static_cast<double>(s.out_blocks / v) * plane(v);
        if (s.out_blocks % v) c += plane(s.out_blocks % v);
        if (c < best.cycles * 0.9999) best.cycles = c, best.rows = r, best.columns = t, best.vectors = v;
      }
    }
  }
  best.cycles *= static_cast<double>(s.batch);
  int64_t tiles = s.flat ? CeilDiv(s.width, best.columns) : CeilDiv(s.height, best.rows),
          groups = CeilDiv(s.out_blocks, best.vectors);
  double flops =
      2.0 * static_cast<double>(s.batch * s.out_blocks * mc.lanes * s.height * s.width) * static_cast<double>(s.steps);
  best.parallel = flops > kParallelFlops && mc.cores > 1;
  best.channels_first = s.weight_bytes >= s.input_bytes;
  best.chunk = tiles;
  if (!best.parallel) return best;
  // Few chunks when cores share images, so that a group's weights are used for a whole image; else chunks whose part of
  // the input stays in the second cache while all weights pass over it.
  double input = static_cast<double>(s.input_bytes) / static_cast<double>(std::max<int64_t>(s.batch, 1));
  int64_t wish =
      best.channels_first
          ? 1
          : std::max<int64_t>(mc.cores, static_cast<int64_t>(std::ceil(input / (0.25 * static_cast<double>(mc.l2)))));
  double least = HUGE_VAL;
  for (int64_t chunks = std::min(wish, tiles); chunks <= std::min(tiles, wish + 8 * mc.cores); ++chunks) {
    int64_t per = CeilDiv(tiles, chunks);
    if (CeilDiv(tiles, per) != chunks) continue;
    // A short last chunk unbalances too.
    double c = Imbalance(s.batch * chunks * groups, mc.cores) *
               (1 + 0.3 * (static_cast<double>(per * chunks) / static_cast<double>(tiles) - 1)) *
               (1 + 0.005 * static_cast<double>(chunks - wish));
    if (c < least - 1e-9) least = c, best.chunk = per;
  }
  best.cycles *= least;
  return best;
}

}  // namespace baton::relay::kernel
