// SPDX-License-Identifier: Apache-2.0
// Matrix products whose extents are not all literals. Register tiles, panels and blocks of the sum have literal sizes;
// rows are shared out evenly over tiles, columns that end within a panel are masked, and what is parallel depends on
// the work of the call.
#include <tir/parallel_if.h>

#include <algorithm>

#include "matmul.h"

namespace baton::relay::kernel {
namespace {

/// A value that is used more than once: bound, unless it is a literal.
PrimExpr Hold(Steps* steps, const char* name, const PrimExpr& value) {
  return Known(value) >= 0 ? value : steps->Let(name, value);
}
/// Of numbers that are not negative, without the tests of floordiv.
PrimExpr Quotient(const PrimExpr& a, const PrimExpr& b) {
  return Known(b) >= 0 ? floordiv(a, b) : truncdiv(a, max(b, I(1)));
}
PrimExpr Remainder(const PrimExpr& a, const PrimExpr& b) {
  return Known(b) >= 0 ? floormod(a, b) : truncmod(a, max(b, I(1)));
}
PrimExpr RoundUp(const PrimExpr& a, const PrimExpr& b) {
  return Known(b) >= 0 ? floordiv(a + (b - I(1)), b) : truncdiv(a + (b - I(1)), max(b, I(1)));
}

class OpenMatmulWriter : public MatmulTiles {
 public:
  OpenMatmulWriter(const Group& g, const Matmul& p, const OpenMatmulPlan& plan, const Machine& mc, bool in_place)
      : MatmulTiles(g, p, mc, plan.vectors), plan_(plan), mc_(mc) {
    pack_ = !in_place && !p.packed && (!tir::is_one(p.b.column) || Known(p.b.row) < 0 || Known(p.b.row) > 256);
  }

  /// Null where a panel would need workspace without bound.
  Stmt Write() {
    const int64_t k = Known(p_.k);
    if (tir::is_zero(p_.batch) || tir::is_zero(p_.m) || tir::is_zero(p_.n)) return Effect(I(0));
    const bool may_block = g_.out_holds_partials();
    if (k < 0 && pack_ && !may_block) return Stmt();
    Steps steps;
    // The sum in blocks: always where they are copied, else with many rows.
    if (may_block && (k < 0 || k > plan_.k_block)) {
      int64_t block = k < 0 ? plan_.k_block : (CeilDiv(k, CeilDiv(k, plan_.k_block)) + 7) / 8 * 8;
      partial_ = true;
      k_block_ = block_limit_ = I(block);
      if (!pack_) k_block_ = steps.Let("k_block", tir::Select(p_.m < I(plan_.many_rows), max(p_.k, I(1)), I(block)));
      k_blocks_ = Hold(&steps, "k_blocks", max(RoundUp(p_.k, k_block_), I(1)));
    } else {
      k_block_ = block_limit_ = p_.k;
      k_blocks_ = I(1);
    }
    last_kb_ = k_blocks_ - I(1);
    rest_of_k_ = k <= 0 || k % 8 != 0;
    m_ = Hold(&steps, "m", p_.m);
    tiles_ = Hold(&steps, "tiles", RoundUp(m_, I(plan_.rows)));
    low_ = Hold(&steps, "low", Quotient(m_, tiles_));
    high_ = Hold(&steps, "high", Remainder(m_, tiles_));
    panels_ = Hold(&steps, "panels", RoundUp(p_.n, I(width_)));
    PrimExpr columns = Hold(&steps, "all_panels", p_.batch * panels_);
    // Rows are cut too where panels are few or cannot be shared out evenly.
    const int64_t known = Known(columns);
    if (known > 0 && known % mc_.cores == 0) {
      chunks_ = I(1);
    } else {
      chunks_ = steps.Let("chunks", max(min(tiles_, RoundUp(I(8 * mc_.cores), columns)), I(1)));
    }
    per_ = Hold(&steps, "per", RoundUp(tiles_, chunks_));
    if (Known(chunks_) != 1) chunks_ = steps.Let("chunks", RoundUp(tiles_, per_));
    // Flops in units that cannot overflow where the operands exist.
    PrimExpr worth = I(static_cast<int64_t>(kParallelFlops / 2)) < (p_.batch * m_) * (p_.n * max(p_.k, I(1)));
    Stmt units = Loop(
        "unit", columns * chunks_, [&](const PrimExpr& unit) { return Unit(unit); },
        mc_.cores > 1 ? ForKind::kParallel : ForKind::kSerial);
    if (!units.defined()) return Effect(I(0));
    steps.Add(tir::ParallelIf(worth, units));
    return steps.Done();
  }

 private:
  Stmt Unit(PrimExpr unit) {
    Steps steps;
    PrimExpr chunk = I(0), panel = I(0), batch = I(0);
    auto take = [&](const char* name, const PrimExpr& extent) {
      if (Known(extent) == 1) return I(0);
      PrimExpr v = steps.Let(name, Remainder(unit, extent));
      unit = steps.Let("rest", Quotient(unit, extent));
      return v;
    };
    chunk = take("chunk", chunks_);
    panel = Known(p_.batch) == 1 ? unit : take("panel", panels_);
    batch_ = Known(p_.batch) == 1 ? I(0) : unit;
    a_base_ = Hold(&steps, "a_base", BatchOffset(batch_, p_.batch_dims, p_.batch_a));
    b_base_ = Hold(&steps, "b_base", BatchOffset(batch_, p_.batch_dims, p_.batch_b));
    first_ = Hold(&steps, "first", chunk * per_);
    end_ = Hold(&steps, "end", min(first_ + per_, tiles_));
    n0_ = Hold(&steps, "n0", panel * I(width_));
    panel_ = panel;
    const int64_t n = Known(p_.n), of_tail = n < 0 ? plan_.vectors : CeilDiv(n % width_, lanes_);
    // Panels have whole vectors, wherever the matrix ends: code for the last one serves for all that are as wide.
    const bool padded = p_.packed || pack_, shared = padded && of_tail == plan_.vectors;
    Stmt full = shared || (n >= 0 && n < width_) ? Stmt() : Panel(plan_.vectors, I(width_)), tail;
    if (n < 0 || (shared && n > width_)) {
      PrimExpr left = p_.n - n0_;
      left = steps.Let("columns", shared ? min(left, I(width_)) : left);
      tail = Panel(plan_.vectors, left);
      // One vector for few columns. Widths between would take no part of the time that their code takes to compile.
      if (n < 0 && plan_.vectors > 1) tail = If(left <= I(lanes_), Panel(1, left), tail);
    } else if (n % width_) {
      tail = Panel(of_tail, I(n % width_));
    }
    if (full.defined() && tail.defined()) {
      steps.Add(If(n0_ + I(width_) <= p_.n, full, tail));
    } else {
      steps.Add(full.defined() ? full : tail);
    }
    return steps.Done();
  }

  /// The first `columns` columns of a panel for a chunk of rows.
  Stmt Panel(int64_t vectors, const PrimExpr& columns) {
    vectors_ = vectors;
    columns_ = columns;
    return Loop("kb", k_blocks_, [&](const PrimExpr& kb) { return Block(kb); });
  }

  Stmt Block(const PrimExpr& kb) {
    Steps steps;
    kb_ = kb;
    k0_ = Hold(&steps, "k0", kb * k_block_);
    PrimExpr count = partial_ ? steps.Let("k_count", min(k_block_, p_.k - k0_)) : p_.k;
    Buffer packed;
    if (p_.packed) {
      panel_buffer_ = p_.b_buffer;
      panel_row_ = I(PanelLine(p_.panel_columns));
      panel_base_ = (panel_ * I(width_ / p_.panel_columns) * p_.k + k0_) * panel_row_;
    } else if (pack_) {
      packed = Buffer::Make({block_limit_ * I(vectors_ * lanes_)}, dtype_, "packed");
      steps.Add(Pack(packed, k0_, count));
      panel_buffer_ = packed;
      panel_row_ = I(vectors_ * lanes_);
      panel_base_ = I(0);
    } else {
      panel_buffer_ = p_.b_buffer;
      panel_row_ = p_.b.row;
      panel_base_ = b_base_ + k0_ * p_.b.row + n0_;
    }
    steps.Add(Rows(count));
    Stmt body = steps.Done();
    return packed.defined() ? With(packed, body) : body;
  }

  /// The tiles of a chunk. The first `high_` of all tiles have a row more than the others.
  Stmt Rows(const PrimExpr& count) {
    return Loop("tile", end_ - first_, [&](const PrimExpr& t) {
      Steps steps;
      PrimExpr tile = Hold(&steps, "tile", first_ + t);
      PrimExpr rows = Hold(&steps, "rows", low_ + tir::Select(tile < high_, I(1), I(0)));
      PrimExpr m0 = Hold(&steps, "m0", tile * low_ + min(tile, high_));
      int64_t lowest = plan_.least_rows, highest = plan_.rows;
      if (const int64_t m = Known(p_.m); m >= 0) {
        lowest = m / CeilDiv(m, plan_.rows);
        highest = lowest + (m % CeilDiv(m, plan_.rows) ? 1 : 0);
      }
      // The epilogue is written once, for rows of sums in the result, or in a copy of the tile.
      const bool in_place = g_.out_holds_partials();
      Buffer copy;
      if (!in_place) copy = Buffer::Make({I(highest * vectors_ * lanes_)}, dtype_, "tile");
      Stmt all;
      for (int64_t r = lowest; r <= highest; ++r) {
        // Few multiply-adds a round are worth a second one in the loop; so are those of the tile that most rows are in.
        Stmt one = SumTile(m0, r, count, r == 1 || r == plan_.rows ? 2 : 1, copy);
        all = all.defined() ? If(equal(rows, I(r)), one, all) : one;
      }
      steps.Add(all);
      if (in_place && g_.ends_with_anchor()) return steps.Done();
      PrimExpr c0 = steps.Let("c0", (batch_ * p_.m + m0) * p_.n + n0_);
      Stmt finish = Loop("row", rows, [&](const PrimExpr& r) { return FinishRow(copy, r, m0, c0); });
      steps.Add(partial_ ? Choose(equal(kb_, last_kb_), finish, Stmt()) : finish);
      return in_place ? steps.Done() : With(copy, steps.Done());
    });
  }

  const OpenMatmulPlan plan_;
  const Machine& mc_;
  PrimExpr k_block_, block_limit_, k_blocks_;                // of the sum; `block_limit_` bounds what is copied
  PrimExpr m_, tiles_, low_, high_, panels_, chunks_, per_;  // rows of a tile: low_, or one more in the first high_
  PrimExpr first_, end_, panel_;
};

}  // namespace

/// Panels of a product of one row that are added side by side: a multiply-add waits for the one before it in the same
/// vector, so that the vectors of one panel alone leave the processor idle.
int64_t PanelsOfARow(const Matmul& p, const OpenMatmulPlan& plan, const Machine& mc) {
  constexpr int64_t kVectors = 8;  // two multiply-adds a cycle, which take four
  if (!p.packed || Known(p.n) < 0 || Known(p.k) < 0 || Known(p.m) >= 0) return 1;
  const int64_t panels = CeilDiv(Known(p.n), p.panel_columns);
  int64_t side = std::min(panels, kVectors / plan.vectors);
  while (side > 1 && CeilDiv(panels, side) < std::min<int64_t>(panels, mc.cores)) --side;
  return std::max<int64_t>(side, 1);
}

Stmt WriteOpenMatmul(const Group& g, const Matmul& p, const Machine& mc) {
  OpenMatmulPlan plan = PlanOpenMatmul(mc, p.panel_columns);
  if (const int64_t side = PanelsOfARow(p, plan, mc); side > 1) {
    OpenMatmulPlan of_row = plan;
    of_row.rows = 1, of_row.vectors *= side;
    plan.least_rows = 2;  // only a product of one row has tiles of one row
    Matmul row = p;
    row.m = I(1);
    const Stmt one = OpenMatmulWriter(g, row, of_row, mc, false).Write();
    const Stmt more = OpenMatmulWriter(g, p, plan, mc, false).Write();
    return If(equal(p.m, I(1)), one, more);
  }
  const Stmt many = OpenMatmulWriter(g, p, plan, mc, false).Write();
  // One tile of rows reads each element of B once: a copy of it would only cost.
  if (!p.few_rows || !tir::is_one(p.b.column)) return many;
  const Stmt few = OpenMatmulWriter(g, p, plan, mc, true).Write();
  return many.defined() && few.defined() ? If(p.m <= I(plan.rows), few, many) : many;
}

}  // namespace baton::relay::kernel
