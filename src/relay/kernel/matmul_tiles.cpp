// SPDX-License-Identifier: Apache-2.0
// Parts of matrix products. Each element of a result adds its products one after the other in the order of k, whatever
// the tiles and blocks, so that its bits do not depend on how the rest of the matrix is cut.
#include <algorithm>

#include "matmul.h"

namespace baton::relay::kernel {

PrimExpr BatchOffset(const PrimExpr& number, const std::vector<PrimExpr>& dims, const std::vector<PrimExpr>& strides) {
  PrimExpr at = I(0), rest = number;
  // Neighbouring dimensions that the operand has densely are one.
  for (size_t i = dims.size(); i-- > 0;) {
    PrimExpr extent = dims[i], stride = strides[i];
    while (i > 0 && tir::ExprDeepEqual(strides[i - 1], stride * dims[i])) extent = dims[--i] * extent;
    if (tir::is_one(extent)) continue;
    bool last = true;
    for (size_t j = 0; j < i; ++j) last &= tir::is_one(dims[j]);
    PrimExpr index = last ? rest : floormod(rest, extent);
    if (!tir::is_zero(stride)) at = at + index * stride;
    if (!last) rest = floordiv(rest, extent);
  }
  return at;
}

Stmt MatmulTiles::Choose(const PrimExpr& condition, const Stmt& yes, const Stmt& no) {
  if (tir::is_zero(condition)) return no;
  return Known(condition) == 1 ? yes : If(condition, yes, no);
}

PrimExpr MatmulTiles::Mask(int64_t v) const {
  int64_t columns = Known(columns_);
  if (columns >= 0) return FirstLanes(columns - v * lanes_, lanes_);
  return tir::Ramp(I(0), I(1), lanes_) < PrimExpr(tir::Broadcast(columns_ - I(v * lanes_), lanes_));
}

PrimExpr MatmulTiles::PanelVector(int64_t v) const {
  const int64_t in_panel = p_.packed ? std::max<int64_t>(1, p_.panel_columns / lanes_) : vectors_;
  return I(v / in_panel) * p_.k * panel_row_ + I(v % in_panel * PanelLine(lanes_));
}

Stmt MatmulTiles::Pack(const Buffer& packed, const PrimExpr& k0, const PrimExpr& count) {
  const PrimExpr &along_k = p_.b.row, &across = p_.b.column;
  PrimExpr from = b_base_ + k0 * along_k + n0_ * across;
  int64_t row = vectors_ * lanes_;
  if (tir::is_one(across)) {
    return Loop("k", count, [&](const PrimExpr& k) {
      Steps steps;
      for (int64_t v = 0; v < vectors_; ++v) {
        PrimExpr x = ReadMasked(p_.b_buffer, from + k * along_k + I(v * lanes_), lanes_, Mask(v));
        steps.Add(Store(packed, Span(k * I(row) + I(v * lanes_), lanes_), x));
      }
      return steps.Done();
    });
  }
  // Lines of B run along k: squares of lanes x lanes are turned round in registers.
  if (Known(columns_) < 0) {
    return Loop("v", I(vectors_), [&](const PrimExpr& v) { return PackLines(packed, from, count, v); });
  }
  Steps all;
  for (int64_t v = 0; v < vectors_; ++v) all.Add(PackLines(packed, from, count, I(v)));
  return all.Done();
}

Stmt MatmulTiles::PackLines(const Buffer& packed, const PrimExpr& from, const PrimExpr& count, const PrimExpr& v) {
  const PrimExpr &along_k = p_.b.row, &across = p_.b.column;
  const int64_t row = vectors_ * lanes_, columns = Known(columns_);
  PrimExpr lines = columns >= 0 ? I(std::min(lanes_, columns - Known(v) * lanes_)) : columns_ - v * I(lanes_);
  PrimExpr line0 = from + v * I(lanes_) * across;
  if (!tir::is_one(along_k) || lanes_ == 1) return PackByElement(packed, line0, I(0), count, v, lines, row);
  auto line = [&](int64_t i) {
    if (columns >= 0) return line0 + I(i) * across;
    // The last line stands for those that are not there; a vector without any has the panel's last line.
    return from + min(v * I(lanes_) + I(i), columns_ - I(1)) * across;
  };
  Steps all;
  PrimExpr squares = floordiv(count, I(lanes_)), rest = floormod(count, I(lanes_));
  all.Add(Loop("square", squares, [&](const PrimExpr& q) {
    Steps steps;
    std::vector<PrimExpr> x;
    for (int64_t i = 0; i < lanes_; ++i) {
      x.push_back(columns < 0 || i < Known(lines) ? steps.Let("x", Read(p_.b_buffer, line(i) + q * I(lanes_), lanes_))
                                                  : PrimExpr(tir::Broadcast(tir::make_const(dtype_, 0), lanes_)));
    }
    TransposeSquare(&x, &steps);
    for (int64_t i = 0; i < lanes_; ++i)
      steps.Add(
          Store(packed, Span((q * I(lanes_) + I(i)) * I(row) + v * I(lanes_), lanes_), x[static_cast<size_t>(i)]));
    return steps.Done();
  }));
  if (!tir::is_zero(rest)) all.Add(PackByElement(packed, line0, squares * I(lanes_), rest, v, lines, row));
  return all.Done();
}

Stmt MatmulTiles::PackByElement(const Buffer& packed, const PrimExpr& line0, const PrimExpr& first,
                                const PrimExpr& count, const PrimExpr& v, const PrimExpr& lines, int64_t row) {
  return Loop("k", count, [&](const PrimExpr& k) {
    return Loop("line", I(lanes_), [&](const PrimExpr& i) {
      PrimExpr x = Read(p_.b_buffer, line0 + i * p_.b.column + (k + first) * p_.b.row);
      if (Known(lines) < lanes_) x = if_then_else(i < lines, x, tir::make_const(dtype_, 0));
      return Store(packed, (k + first) * I(row) + v * I(lanes_) + i, x);
    });
  });
}

/// Blocks of 2, 4, ... lanes change places.
void TransposeSquare(std::vector<PrimExpr>* x, Steps* steps) {
  size_t n = x->size();
  for (size_t half = 1; half < n; half *= 2) {
    std::vector<PrimExpr> y(n);
    for (size_t i = 0; i < n; ++i) {
      if (i & half) continue;
      const PrimExpr &a = (*x)[i], &b = (*x)[i + half];
      Array<int64_t> low, high;
      for (size_t j = 0; j < n; ++j) {
        // Element (i, j + half) and (i + half, j) change places, for j without the bit.
        low.push_back(static_cast<int64_t>(j & half ? n + j - half : j));
        high.push_back(static_cast<int64_t>(j & half ? n + j : j + half));
      }
      y[i] = steps->Let("x", tir::Shuffle({a, b}, low));
      y[i + half] = steps->Let("x", tir::Shuffle({a, b}, high));
    }
    *x = std::move(y);
  }
}

MatmulTiles::TileSums MatmulTiles::Sums(const PrimExpr& m0, int64_t rows, const PrimExpr& k_count, int64_t unroll,
                                        Steps* steps) {
  TileSums out;
  PrimExpr a0 = steps->Let("a0", a_base_ + m0 * p_.a.row + k0_ * p_.a.column);
  PrimExpr b0 = Known(panel_base_) >= 0 ? panel_base_ : steps->Let("b0", panel_base_);
  PrimExpr c0 = out.c0 = steps->Let("c0", (batch_ * p_.m + m0) * p_.n + n0_);
  Buffer acc = out.acc = Buffer::Make({I(rows * vectors_ * lanes_)}, dtype_, "acc", "local");
  auto at = [&](int64_t r, int64_t v) { return Span(I((r * vectors_ + v) * lanes_), lanes_); };
  auto value = [&](int64_t r, int64_t v) -> PrimExpr { return tir::BufferLoad(acc, {at(r, v)}); };
  auto each = [&](auto f) {
    Steps s;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t v = 0; v < vectors_; ++v) s.Add(f(r, v));
    }
    return s.Done();
  };
  PrimExpr zero = tir::broadcast_to(tir::make_const(dtype_, 0), static_cast<int>(lanes_));
  auto place = [&](int64_t r, int64_t v) { return c0 + (I(r) * p_.n + I(v * lanes_)); };
  Stmt clear = each([&](int64_t r, int64_t v) { return Store(acc, at(r, v), zero); });
  if (partial_) {
    Stmt load = each(
        [&](int64_t r, int64_t v) { return Store(acc, at(r, v), ReadMasked(g_.out(), place(r, v), lanes_, Mask(v))); });
    out.body.Add(Choose(equal(kb_, I(0)), clear, load));
  } else {
    out.body.Add(clear);
  }
  if (g_.out_holds_partials()) {
    out.save =
        each([&](int64_t r, int64_t v) { return WriteMasked(g_.out(), place(r, v), lanes_, value(r, v), Mask(v)); });
  }
  auto step = [&](const PrimExpr& k) {
    Steps s;
    std::vector<PrimExpr> b;
    // A panel's lines are padded; B in place is not.
    bool in_place = !p_.packed && !pack_;
    for (int64_t v = 0; v < vectors_; ++v) {
      PrimExpr at = b0 + k * panel_row_ + PanelVector(v);
      PrimExpr x = p_.terms > 1 ? Read(panel_buffer_, at, PanelLine(lanes_))
                                : As(dtype_, ReadMasked(panel_buffer_, at, lanes_, in_place ? Mask(v) : PrimExpr()));
      b.push_back(s.Let("b", x));
    }
    for (int64_t r = 0; r < rows; ++r) {
      PrimExpr x = s.Let("a", Repeat(p_.a_buffer, a0 + I(r) * p_.a.row + k * p_.a.column, p_.terms, lanes_));
      for (int64_t v = 0; v < vectors_; ++v)
        s.Add(Store(acc, at(r, v), AddTerms(fma_, p_.terms, x, b[static_cast<size_t>(v)], value(r, v))));
    }
    return s.Done();
  };
  int64_t count = Known(k_count), u = std::max<int64_t>(1, count >= 0 ? std::min(unroll, count) : unroll);
  // Blocks of whole rounds are never empty: sums need no second way around the loop.
  PrimExpr times = floordiv(k_count, I(u));
  if (count < 0 && !rest_of_k_) times = max(times, I(1));
  out.body.Add(Loop("k", times, [&](const PrimExpr& k) {
    Steps s;
    for (int64_t i = 0; i < u; ++i) s.Add(step(k * I(u) + I(i)));
    return s.Done();
  }));
  if (count >= 0) {
    for (int64_t k = count / u * u; k < count; ++k) out.body.Add(step(I(k)));
  } else if (rest_of_k_ && u > 1) {
    PrimExpr done = floordiv(k_count, I(u)) * I(u);
    out.body.Add(Loop("k", k_count - done, [&](const PrimExpr& k) { return step(done + k); }));
  }
  return out;
}

Stmt MatmulTiles::SumTile(const PrimExpr& m0, int64_t rows, const PrimExpr& k_count, int64_t unroll,
                          const Buffer& copy) {
  Steps steps;
  TileSums t = Sums(m0, rows, k_count, unroll, &steps);
  t.body.Add(copy.defined() ? CopyTile(copy, t.acc, rows) : t.save);
  steps.Add(With(t.acc, t.body.Done()));
  return steps.Done();
}

Stmt MatmulTiles::FinishRow(const Buffer& b, const PrimExpr& r, const PrimExpr& m0, const PrimExpr& c0) const {
  Steps s;
  for (int64_t v = 0; v < vectors_; ++v) {
    Site site;
    site.at = At(m0 + r, n0_ + I(v * lanes_));
    site.offset = c0 + r * p_.n + I(v * lanes_);
    site.lanes = lanes_;
    site.mask = Mask(v);
    PrimExpr sum = b.defined() ? Read(b, r * I(vectors_ * lanes_) + I(v * lanes_), lanes_)
                               : ReadMasked(g_.out(), site.offset, lanes_, site.mask);
    s.Add(g_.Finish(site, sum));
  }
  return s.Done();
}

Stmt MatmulTiles::CopyTile(const Buffer& tile, const Buffer& acc, int64_t rows) const {
  Steps s;
  for (int64_t i = 0; i < rows * vectors_; ++i)
    s.Add(Store(tile, Span(I(i * lanes_), lanes_), Read(acc, I(i * lanes_), lanes_)));
  return s.Done();
}

Stmt MatmulTiles::FinishTile(const Buffer& acc, int64_t rows, const PrimExpr& m0, const PrimExpr& c0) const {
  Steps s;
  if (g_.epilogue_size() * rows * vectors_ <= 160 || rows == 1) {
    for (int64_t r = 0; r < rows; ++r) s.Add(FinishRow(acc, I(r), m0, c0));
    return s.Done();
  }
  Buffer tile = Buffer::Make({I(rows * vectors_ * lanes_)}, dtype_, "tile");
  s.Add(CopyTile(tile, acc, rows));
  s.Add(Loop("row", I(rows), [&](const PrimExpr& r) { return FinishRow(tile, r, m0, c0); }));
  return With(tile, s.Done());
}

Array<PrimExpr> MatmulTiles::At(const PrimExpr& m, const PrimExpr& n) const {
  const Array<PrimExpr>& shape = g_.out_extents();
  std::vector<PrimExpr> at(shape.size());
  size_t rank = at.size();
  at[rank - 1] = n;
  PrimExpr rest = p_.batch_dims.empty() ? m : batch_ * p_.m + m;
  if (rank >= 2 && tir::ExprDeepEqual(p_.m, shape[static_cast<int64_t>(rank) - 2]) && !p_.batch_dims.empty()) {
    at[rank - 2] = m;
    rest = batch_;
    --rank;
  }
  for (size_t d = rank - 1; d-- > 0;) {
    bool last = true;
    for (size_t j = 0; j < d; ++j) last &= tir::is_one(shape[static_cast<int64_t>(j)]);
    const PrimExpr& extent = shape[static_cast<int64_t>(d)];
    if (tir::is_one(extent)) {
      at[d] = I(0);
    } else if (last) {
      at[d] = rest;
      rest = I(0);
    } else {
      at[d] = floormod(rest, extent);
      rest = floordiv(rest, extent);
    }
  }
  return Array<PrimExpr>(at.begin(), at.end());
}

}  // namespace baton::relay::kernel
