// SPDX-License-Identifier: Apache-2.0
// Matrix products. The result is cut into register tiles of rows x (vectors * lanes); a panel of B that wide is used
// for all rows of a unit of parallel work while it is in the caches. Constant panels are packed at compile time
// (nn.contrib_dense_pack); others are packed on the fly, or read in place when their rows are short.
#include "matmul.h"

#include <baton/relay/op.h>
#include <baton/relay/op/nn.h>

#include <algorithm>

#include "generators.h"

namespace baton::relay::kernel {
namespace {

/// From so many tiles on that read a narrow panel, it is widened once for all of them.
constexpr int64_t kTilesToWiden = 3;

/// A product of literal extents: tiles, panels and chunks are planned for them.
class MatmulWriter : public MatmulTiles {
 public:
  MatmulWriter(const Group& g, const Matmul& p, const MatmulShape& s, const MatmulPlan& plan, const Machine& mc)
      : MatmulTiles(g, p, mc, plan.vectors), s_(s), plan_(plan) {
    k_blocks_ = g.out_holds_partials() && s.k > 0 ? CeilDiv(s.k, plan.k_block) : 1;
    k_block_ = k_blocks_ == 1 ? s.k : plan.k_block;
    panels_ = CeilDiv(s.n, width_);
    full_panels_ = s.n / width_;
    pack_ = !p.packed && (!tir::is_one(p.b.column) || (Known(p.b.row) * 4 > 1024 && s.m > 2 * plan.rows));
    partial_ = k_blocks_ > 1;
    last_kb_ = I(k_blocks_ - 1);
  }

  Stmt Write() {
    const MatmulShape& s = s_;
    if (s.batch * s.m * s.n == 0) return Effect(I(0));
    int64_t tiles = CeilDiv(s.m, plan_.rows), chunks = CeilDiv(tiles, plan_.row_tiles);
    return Loop(
        "unit", I(s.batch * panels_ * chunks),
        [&](PrimExpr unit) {
          Steps steps;
          PrimExpr chunk = I(0), panel = I(0), batch = I(0);
          if (chunks > 1) chunk = steps.Let("chunk", floormod(unit, I(chunks))), unit = floordiv(unit, I(chunks));
          if (panels_ > 1) panel = s.batch > 1 ? steps.Let("panel", floormod(unit, I(panels_))) : unit;
          if (s.batch > 1) batch = steps.Let("batch", panels_ > 1 ? floordiv(unit, I(panels_)) : unit);
          a_base_ = BatchOffset(batch, p_.batch_dims, p_.batch_a);
          b_base_ = BatchOffset(batch, p_.batch_dims, p_.batch_b);
          batch_ = batch;
          Stmt full = full_panels_ > 0 ? Panel(panel, chunk, width_) : Stmt();
          Stmt tail = s.n % width_ ? Panel(panel, chunk, s.n % width_) : Stmt();
          if (full.defined() && tail.defined()) {
            steps.Add(If(panel < I(full_panels_), full, tail));
          } else {
            steps.Add(full.defined() ? full : tail);
          }
          return steps.Done();
        },
        plan_.parallel ? ForKind::kParallel : ForKind::kSerial);
  }

 private:
  /// One panel of `columns` for a chunk of rows.
  Stmt Panel(const PrimExpr& panel, const PrimExpr& chunk, int64_t columns) {
    vectors_ = CeilDiv(columns, lanes_);
    columns_ = I(columns);
    n0_ = panel * I(width_);
    Steps steps;
    int64_t last = s_.k - (k_blocks_ - 1) * k_block_;
    if (last == k_block_) {
      steps.Add(Loop("kb", I(k_blocks_), [&](const PrimExpr& kb) { return Block(panel, chunk, kb, k_block_); }));
    } else {
      steps.Add(Loop("kb", I(k_blocks_ - 1), [&](const PrimExpr& kb) { return Block(panel, chunk, kb, k_block_); }));
      steps.Add(Block(panel, chunk, I(k_blocks_ - 1), last));
    }
    return steps.Done();
  }

  /// Copies a block of a narrow panel into one of the kernel's dtype, which is the panel from then on.
  Stmt Widen(const Buffer& packed, int64_t k_count) {
    Stmt copy = Loop("k", I(k_count), [&](const PrimExpr& k) {
      Steps line;
      for (int64_t c = 0; c < p_.panel_columns; c += lanes_) {
        PrimExpr at = k * I(p_.panel_columns) + I(c);
        line.Add(Store(packed, Span(at, lanes_), As(dtype_, Read(p_.b_buffer, panel_base_ + at, lanes_))));
      }
      return line.Done();
    });
    panel_buffer_ = packed;
    panel_base_ = I(0);
    return copy;
  }

  /// A block of the sum for a chunk of rows.
  Stmt Block(const PrimExpr& panel, const PrimExpr& chunk, const PrimExpr& kb, int64_t k_count) {
    int64_t full_tiles = s_.m / plan_.rows, tail_rows = s_.m % plan_.rows;
    int64_t tiles = full_tiles + (tail_rows ? 1 : 0), chunks = CeilDiv(tiles, plan_.row_tiles);
    Steps steps;
    PrimExpr k0 = kb * I(k_block_);
    Buffer packed;
    if (p_.packed) {
      panel_buffer_ = p_.b_buffer;
      panel_row_ = I(PanelLine(p_.panel_columns));
      panel_base_ = panel * I(s_.k * PanelLine(p_.panel_columns)) + k0 * panel_row_;
      if (p_.terms == 1 && !(p_.b_buffer->dtype == dtype_) && std::min(tiles, plan_.row_tiles) >= kTilesToWiden) {
        packed = Buffer::Make({I(k_count * p_.panel_columns)}, dtype_, "packed");
        steps.Add(Widen(packed, k_count));
      }
    } else if (pack_) {
      packed = Buffer::Make({I(k_count * vectors_ * lanes_)}, dtype_, "packed");
      steps.Add(Pack(packed, k0, I(k_count)));
      panel_buffer_ = packed;
      panel_row_ = I(vectors_ * lanes_);
      panel_base_ = I(0);
    } else {
      panel_buffer_ = p_.b_buffer;
      panel_row_ = p_.b.row;
      panel_base_ = b_base_ + k0 * p_.b.row + n0_;
    }
    kb_ = kb;
    k0_ = k0;
    auto rows_at = [&](const PrimExpr& tile, int64_t rows) {
      return Tile(
          tile * I(plan_.rows), rows, I(k_count), plan_.unroll,
          [&](const Buffer& acc, const PrimExpr& m0, const PrimExpr& c0) { return FinishTile(acc, rows, m0, c0); });
    };
    if (chunks == 1) {
      steps.Add(Loop("tile", I(full_tiles), [&](const PrimExpr& t) { return rows_at(t, plan_.rows); }));
      if (tail_rows) steps.Add(rows_at(I(full_tiles), tail_rows));
    } else {
      // The last chunk may be shorter, and ends with the tail.
      PrimExpr first = chunk * I(plan_.row_tiles);
      PrimExpr count =
          tiles % plan_.row_tiles || tail_rows ? min(I(plan_.row_tiles), I(full_tiles) - first) : I(plan_.row_tiles);
      steps.Add(Loop("tile", count, [&](const PrimExpr& t) { return rows_at(first + t, plan_.rows); }));
      if (tail_rows) steps.Add(If(equal(chunk, I(chunks - 1)), rows_at(I(full_tiles), tail_rows)));
    }
    Stmt body = steps.Done();
    return packed.defined() ? With(packed, body) : body;
  }

  const MatmulShape& s_;
  const MatmulPlan& plan_;
  int64_t k_blocks_ = 1, k_block_ = 1, panels_ = 1, full_panels_ = 1;
};

bool Floats(const Group& g) {
  DataType t = g.anchor_dtype();
  if (t != DataType::Float(32) && t != DataType::Float(64)) return false;
  for (size_t i = 0; i < g.num_args(); ++i) {
    if (g.arg_dtype(i) != t) return false;
  }
  return true;
}
/// The same with panels that may be narrower.
bool FloatRows(const Group& g) {
  DataType t = g.anchor_dtype();
  return t == g.arg_dtype(0) && (t == DataType::Float(32) || t == DataType::Float(64)) && Widens(g.arg_dtype(1), t);
}
PrimExpr Count(const Array<PrimExpr>& shape, size_t begin, size_t end) {
  PrimExpr n = I(1);
  for (size_t i = begin; i < end; ++i) n = n * shape[static_cast<int64_t>(i)];
  return n;
}

Stmt WriteMatmul(const Group& g, Matmul p, const Target& target) {
  Machine mc = MachineOf(target, g.anchor_dtype());
  p.a_buffer = g.arg(0);
  p.b_buffer = g.arg(1);
  if (!p.literal()) return WriteOpenMatmul(g, p, mc);
  MatmulShape s{Known(p.batch), Known(p.m), Known(p.n), Known(p.k), p.packed};
  MatmulPlan plan = PlanMatmul(mc, s, p.panel_columns);
  return MatmulWriter(g, p, s, plan, mc).Write();
}

}  // namespace

/// data (..., K) x weight (N, K)
tir::PrimFunc GenerateDense(const Function& func, const Call& anchor, const String&, const Target& target) {
  return GenerateOpen(func, anchor, [&](const Group& g) {
    if (!Floats(g)) return Stmt();
    const Array<PrimExpr>&x = g.arg_extents(0), &w = g.arg_extents(1);
    Matmul p;
    p.m = Count(x, 0, x.size() - 1), p.n = w[0], p.k = w[1];
    p.a = {w[1], I(1)};
    p.b = {I(1), w[1]};
    return WriteMatmul(g, p, target);
  });
}

/// data (..., K) x panels (N / columns, K, columns), or (N / columns, K / terms, columns, terms) of narrow numbers
tir::PrimFunc GenerateDensePack(const Function& func, const Call& anchor, const String&, const Target& target) {
  return GenerateOpen(func, anchor, [&](const Group& g) {
    const Array<PrimExpr>&x = g.arg_extents(0), &w = g.arg_extents(1);
    Machine mc = MachineOf(target, g.anchor_dtype());
    Matmul p;
    p.panel_columns = Known(w[2]);
    if (w.size() == 4) p.terms = Known(w[3]);
    if (p.panel_columns < 0 || p.panel_columns % mc.lanes) return Stmt();
    if (p.terms == 1 ? !FloatRows(g) : p.terms != TermsOf(g)) return Stmt();
    p.m = Count(x, 0, x.size() - 1), p.n = g.out_extents().back(), p.k = w[1];
    p.packed = true;
    p.a = {w[1] * I(p.terms), I(p.terms)};
    return WriteMatmul(g, p, target);
  });
}

namespace {

/// Matrices (..., M, K) x (..., K, N), batches broadcasting, either transposed. Vectors are left to the general
/// schedule. `axes`: the dimensions of the second operand in the order in which the product takes them; empty: as they
/// are.
Stmt WriteBatched(const Group& g, bool transpose_a, bool transpose_b, const std::vector<int64_t>& axes,
                  const Target& target) {
  if (!Floats(g)) return Stmt();
  const Array<PrimExpr>&x = g.arg_extents(0), &y = g.arg_extents(1), &o = g.out_extents();
  if (x.size() < 2 || y.size() < 2) return Stmt();
  Matmul p;
  const int64_t rank = static_cast<int64_t>(o.size()), of_x = static_cast<int64_t>(x.size()),
                of_y = static_cast<int64_t>(y.size());
  p.batch = Count(o, 0, o.size() - 2);
  p.m = o[rank - 2], p.n = o.back(), p.k = x[of_x - (transpose_a ? 2 : 1)];
  p.a = transpose_a ? MatrixStrides{I(1), p.m} : MatrixStrides{p.k, I(1)};
  // Extents and steps of an operand's dimensions, in the order of the product.
  struct Dims {
    std::vector<PrimExpr> extents, steps;
  };
  auto dims = [](const Array<PrimExpr>& s, const std::vector<int64_t>& order) {
    std::vector<PrimExpr> dense(s.size(), I(1));
    for (size_t d = s.size() - 1; d-- > 0;) dense[d] = dense[d + 1] * s[static_cast<int64_t>(d) + 1];
    Dims out;
    for (size_t d = 0; d < s.size(); ++d) {
      const size_t at = order.empty() ? d : static_cast<size_t>(order[d]);
      out.extents.push_back(s[static_cast<int64_t>(at)]), out.steps.push_back(dense[at]);
    }
    return out;
  };
  auto strides = [&](const Dims& s) {
    std::vector<PrimExpr> out(o.size() - 2, I(0));
    for (size_t d = s.extents.size() - 2; d-- > 0;) {
      const size_t at = d + o.size() - s.extents.size();
      const PrimExpr &own = s.extents[d], &all = o[static_cast<int64_t>(at)];
      // Whether an extent that is not the result's is 1 may be known at run time alone.
      out[at] = tir::is_one(own)               ? I(0)
                : tir::ExprDeepEqual(own, all) ? s.steps[d]
                                               : tir::Select(equal(own, I(1)), I(0), s.steps[d]);
    }
    return out;
  };
  p.batch_dims.assign(o.begin(), o.end() - 2);
  const Dims of_b = dims(y, axes);
  p.batch_a = strides(dims(x, {}));
  p.batch_b = strides(of_b);
  p.few_rows = !axes.empty();
  p.b = {of_b.steps[static_cast<size_t>(of_y) - 2], of_b.steps[static_cast<size_t>(of_y) - 1]};
  if (transpose_b) std::swap(p.b.row, p.b.column);
  bool shared = true, dense_a = !transpose_a;
  for (const PrimExpr& s : p.batch_b) shared &= tir::is_zero(s);
  for (int64_t d = 0; d + 2 < rank; ++d) {
    const int64_t own = d - (rank - of_x);
    dense_a &= own >= 0 ? tir::ExprDeepEqual(x[own], o[d]) : tir::is_one(o[d]);
  }
  if (shared && dense_a && !tir::is_one(p.batch)) {
    // One matrix for all: the rows of the whole batch in one product.
    p.m = p.m * p.batch;
    p.batch = I(1);
    p.batch_dims.clear(), p.batch_a.clear(), p.batch_b.clear();
  }
  return WriteMatmul(g, p, target);
}

}  // namespace

tir::PrimFunc GenerateMatmul(const Function& func, const Call& anchor, const String&, const Target& target) {
  const auto* a = anchor->attrs.as<MatmulAttrs>();
  return GenerateOpen(func, anchor, [&](const Group& g) {
    return WriteBatched(g, a && a->transpose_a, a && a->transpose_b, {}, target);
  });
}
tir::PrimFunc GenerateBatchMatmul(const Function& func, const Call& anchor, const String&, const Target& target) {
  const auto* a = anchor->attrs.as<BatchMatmulAttrs>();
  return GenerateOpen(func, anchor, [&](const Group& g) {
    return WriteBatched(g, a && a->transpose_a, !a || a->transpose_b, {}, target);
  });
}
tir::PrimFunc GenerateMatmulPermuted(const Function& func, const Call& anchor, const String&, const Target& target) {
  const Array<int64_t>& axes = AttrsAs<MatmulPermutedAttrs>(anchor->attrs).axes;
  return GenerateOpen(
      func, anchor, [&](const Group& g) { return WriteBatched(g, false, false, {axes.begin(), axes.end()}, target); });
}

}  // namespace baton::relay::kernel
