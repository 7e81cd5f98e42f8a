// SPDX-License-Identifier: Apache-2.0
// Matrix products. The result is cut into register tiles of rows x (vectors * lanes); a panel of B that wide is used
// for all rows of a unit of parallel work while it lies in the caches. Constant panels are packed at compile time
// (nn.contrib_dense_pack); others are packed on the fly, or read in place when their rows are short.
#include <baton/relay/op.h>
#include <baton/relay/op/nn.h>

#include "generators.h"
#include "group.h"
#include "plan.h"

namespace baton::relay::kernel {
namespace {

/// Where element (i, j) of a matrix lies: base of the batch + i * row + j * column.
struct Strides {
  int64_t row = 0, column = 0;
};

struct Matmul {
  MatmulShape shape;
  std::vector<int64_t> batch_dims;        ///< their product is shape.batch
  std::vector<int64_t> batch_a, batch_b;  ///< strides of the batch's dimensions, in elements
  Strides a, b;                           ///< of A[m, k], B[k, n]; b is unused when panels are packed
  int64_t panel_columns = 0;              ///< of packed panels
  Buffer a_buffer, b_buffer;
};

/// Offset of an operand for a batch number.
PrimExpr BatchOffset(const PrimExpr& number, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
  PrimExpr at = I(0), rest = number;
  // Neighbouring dimensions that the operand has densely are one.
  for (size_t i = dims.size(); i-- > 0;) {
    int64_t extent = dims[i], stride = strides[i];
    while (i > 0 && strides[i - 1] == stride * dims[i]) extent *= dims[--i];
    if (extent == 1) continue;
    bool last = true;
    for (size_t j = 0; j < i; ++j) last &= dims[j] == 1;
    PrimExpr index = last ? rest : floormod(rest, I(extent));
    if (stride) at = at + index * I(stride);
    if (!last) rest = floordiv(rest, I(extent));
  }
  return at;
}

class MatmulWriter {
 public:
  MatmulWriter(const Group& g, const Matmul& p, const MatmulPlan& plan, const Machine& mc)
      : g_(g), p_(p), plan_(plan), lanes_(mc.lanes), width_(plan.vectors * mc.lanes), dtype_(g.anchor_dtype()) {
    const MatmulShape& s = p.shape;
    k_blocks_ = g.out_holds_partials() && s.k > 0 ? CeilDiv(s.k, plan.k_block) : 1;
    k_block_ = k_blocks_ == 1 ? s.k : plan.k_block;
    panels_ = CeilDiv(s.n, width_);
    full_panels_ = s.n / width_;
    pack_ = !p.shape.packed && (p.b.column != 1 || (p.b.row * 4 > 1024 && s.m > 2 * plan.rows));
  }

  Stmt Write() {
    const MatmulShape& s = p_.shape;
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
    const MatmulShape& s = p_.shape;
    vectors_ = CeilDiv(columns, lanes_);
    columns_ = columns;
    n0_ = panel * I(width_);
    int64_t full_tiles = s.m / plan_.rows, tail_rows = s.m % plan_.rows;
    int64_t tiles = full_tiles + (tail_rows ? 1 : 0), chunks = CeilDiv(tiles, plan_.row_tiles);
    auto block = [&](const PrimExpr& kb, int64_t k_count) {
      Steps steps;
      PrimExpr k0 = kb * I(k_block_);
      Buffer packed;
      if (p_.shape.packed) {
        panel_buffer_ = p_.b_buffer;
        panel_row_ = p_.panel_columns;
        panel_base_ = panel * I(s.k * p_.panel_columns) + k0 * I(p_.panel_columns);
      } else if (pack_) {
        packed = Buffer::Make({I(k_count * vectors_ * lanes_)}, dtype_, "packed");
        steps.Add(Pack(packed, k0, k_count));
        panel_buffer_ = packed;
        panel_row_ = vectors_ * lanes_;
        panel_base_ = I(0);
      } else {
        panel_buffer_ = p_.b_buffer;
        panel_row_ = p_.b.row;
        panel_base_ = b_base_ + k0 * I(p_.b.row) + n0_;
      }
      kb_ = kb;
      k0_ = k0;
      auto rows_at = [&](const PrimExpr& tile, int64_t rows) { return Tile(tile * I(plan_.rows), rows, k_count); };
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
    };
    Steps steps;
    int64_t last = s.k - (k_blocks_ - 1) * k_block_;
    if (last == k_block_) {
      steps.Add(Loop("kb", I(k_blocks_), [&](const PrimExpr& kb) { return block(kb, k_block_); }));
    } else {
      steps.Add(Loop("kb", I(k_blocks_ - 1), [&](const PrimExpr& kb) { return block(kb, k_block_); }));
      steps.Add(block(I(k_blocks_ - 1), last));
    }
    return steps.Done();
  }

  /// Copies B[k0 .. k0 + count, columns of the panel] into rows side by side; columns that are not there become 0.
  Stmt Pack(const Buffer& packed, const PrimExpr& k0, int64_t count) {
    PrimExpr from = b_base_ + k0 * I(p_.b.row) + n0_ * I(p_.b.column);
    int64_t row = vectors_ * lanes_;
    if (p_.b.column == 1) {
      return Loop("k", I(count), [&](const PrimExpr& k) {
        Steps steps;
        for (int64_t v = 0; v < vectors_; ++v) {
          PrimExpr x = ReadMasked(p_.b_buffer, from + k * I(p_.b.row) + I(v * lanes_), lanes_, Mask(v));
          steps.Add(Store(packed, Span(k * I(row) + I(v * lanes_), lanes_), x));
        }
        return steps.Done();
      });
    }
    // Lines of B run along k: squares of lanes x lanes are turned round in registers.
    Steps all;
    for (int64_t v = 0; v < vectors_; ++v) {
      int64_t lines = std::min(lanes_, columns_ - v * lanes_);
      PrimExpr line0 = from + I(v * lanes_ * p_.b.column);
      if (p_.b.row == 1 && lanes_ > 1) {
        all.Add(Loop("square", I(count / lanes_), [&](const PrimExpr& q) {
          Steps steps;
          std::vector<PrimExpr> x;
          for (int64_t i = 0; i < lanes_; ++i) {
            x.push_back(i < lines
                            ? steps.Let("x", Read(p_.b_buffer, line0 + I(i * p_.b.column) + q * I(lanes_), lanes_))
                            : PrimExpr(tir::Broadcast(tir::make_const(dtype_, 0), lanes_)));
          }
          Transpose(&x, &steps);
          for (int64_t i = 0; i < lanes_; ++i)
            steps.Add(Store(packed, Span((q * I(lanes_) + I(i)) * I(row) + I(v * lanes_), lanes_),
                            x[static_cast<size_t>(i)]));
          return steps.Done();
        }));
        if (count % lanes_)
          all.Add(PackByElement(packed, line0, count / lanes_ * lanes_, count % lanes_, v, lines, row));
      } else {
        all.Add(PackByElement(packed, line0, 0, count, v, lines, row));
      }
    }
    return all.Done();
  }
  Stmt PackByElement(const Buffer& packed, const PrimExpr& line0, int64_t first, int64_t count, int64_t v,
                     int64_t lines, int64_t row) {
    return Loop("k", I(count), [&](const PrimExpr& k) {
      return Loop("line", I(lanes_), [&](const PrimExpr& i) {
        PrimExpr x = Read(p_.b_buffer, line0 + i * I(p_.b.column) + (k + I(first)) * I(p_.b.row));
        if (lines < lanes_) x = if_then_else(i < I(lines), x, tir::make_const(dtype_, 0));
        return Store(packed, (k + I(first)) * I(row) + I(v * lanes_) + i, x);
      });
    });
  }
  /// Rows of a square become its columns: blocks of 2, 4, ... lanes change places.
  static void Transpose(std::vector<PrimExpr>* x, Steps* steps) {
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

  PrimExpr Mask(int64_t v) const { return FirstLanes(columns_ - v * lanes_, lanes_); }

  /// `rows` rows from m0 of the panel, over a block of the sum.
  Stmt Tile(const PrimExpr& m0_expr, int64_t rows, int64_t k_count) {
    Steps steps;
    PrimExpr m0 = Known(m0_expr) >= 0 ? m0_expr : steps.Let("m0", m0_expr);
    PrimExpr a0 = steps.Let("a0", a_base_ + m0 * I(p_.a.row) + k0_ * I(p_.a.column));
    PrimExpr b0 = Known(panel_base_) >= 0 ? panel_base_ : steps.Let("b0", panel_base_);
    PrimExpr c0 = steps.Let("c0", (batch_ * I(p_.shape.m) + m0) * I(p_.shape.n) + n0_);
    Buffer acc = Buffer::Make({I(rows * vectors_ * lanes_)}, dtype_, "acc", "local");
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
    auto place = [&](int64_t r, int64_t v) { return c0 + I(r * p_.shape.n + v * lanes_); };
    Steps body;
    Stmt clear = each([&](int64_t r, int64_t v) { return Store(acc, at(r, v), zero); });
    bool partial = k_blocks_ > 1;
    if (partial) {
      Stmt load = each([&](int64_t r, int64_t v) {
        return Store(acc, at(r, v), ReadMasked(g_.out(), place(r, v), lanes_, Mask(v)));
      });
      body.Add(Known(kb_) == 0 ? clear : Known(kb_) > 0 ? load : If(equal(kb_, I(0)), clear, load));
    } else {
      body.Add(clear);
    }
    auto step = [&](const PrimExpr& k) {
      Steps s;
      std::vector<PrimExpr> b;
      // A panel's lines are padded; B in place is not.
      bool in_place = !p_.shape.packed && !pack_;
      for (int64_t v = 0; v < vectors_; ++v) {
        b.push_back(s.Let("b", ReadMasked(panel_buffer_, b0 + k * I(panel_row_) + I(v * lanes_), lanes_,
                                          in_place ? Mask(v) : PrimExpr())));
      }
      for (int64_t r = 0; r < rows; ++r) {
        PrimExpr x = s.Let("a", tir::broadcast_to(Read(p_.a_buffer, a0 + I(r * p_.a.row) + k * I(p_.a.column)),
                                                  static_cast<int>(lanes_)));
        for (int64_t v = 0; v < vectors_; ++v)
          s.Add(Store(acc, at(r, v), fma(x, b[static_cast<size_t>(v)], value(r, v))));
      }
      return s.Done();
    };
    int64_t u = std::max<int64_t>(1, std::min(plan_.unroll, k_count));
    body.Add(Loop("k", I(k_count / u), [&](const PrimExpr& k) {
      Steps s;
      for (int64_t i = 0; i < u; ++i) s.Add(step(k * I(u) + I(i)));
      return s.Done();
    }));
    for (int64_t k = k_count / u * u; k < k_count; ++k) body.Add(step(I(k)));
    Stmt finish = FinishTile(acc, rows, m0, c0);
    if (partial) {
      Stmt save =
          each([&](int64_t r, int64_t v) { return WriteMasked(g_.out(), place(r, v), lanes_, value(r, v), Mask(v)); });
      int64_t kb = Known(kb_);
      body.Add(kb == k_blocks_ - 1 ? finish : kb >= 0 ? save : If(equal(kb_, I(k_blocks_ - 1)), finish, save));
    } else {
      body.Add(finish);
    }
    steps.Add(With(acc, body.Done()));
    return steps.Done();
  }

  /// The tile's results through the epilogue. A long epilogue is a loop over the rows of a copy of the tile in memory,
  /// so that it is not written out for each register.
  Stmt FinishTile(const Buffer& acc, int64_t rows, const PrimExpr& m0, const PrimExpr& c0) {
    auto store = [&](const PrimExpr& r, int64_t v, PrimExpr value) {
      Site site;
      site.at = At(m0 + r, n0_ + I(v * lanes_));
      site.offset = c0 + r * I(p_.shape.n) + I(v * lanes_);
      site.lanes = lanes_;
      site.mask = Mask(v);
      return g_.Finish(site, std::move(value));
    };
    auto read = [&](const Buffer& b, const PrimExpr& r, int64_t v) {
      return Read(b, r * I(vectors_ * lanes_) + I(v * lanes_), lanes_);
    };
    if (g_.epilogue_size() * rows * vectors_ <= 160 || rows == 1) {
      Steps s;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t v = 0; v < vectors_; ++v) s.Add(store(I(r), v, read(acc, I(r), v)));
      }
      return s.Done();
    }
    Buffer tile = Buffer::Make({I(rows * vectors_ * lanes_)}, dtype_, "tile");
    Steps s;
    for (int64_t i = 0; i < rows * vectors_; ++i)
      s.Add(Store(tile, Span(I(i * lanes_), lanes_), Read(acc, I(i * lanes_), lanes_)));
    s.Add(Loop("row", I(rows), [&](const PrimExpr& r) {
      Steps line;
      for (int64_t v = 0; v < vectors_; ++v) line.Add(store(r, v, read(tile, r, v)));
      return line.Done();
    }));
    return With(tile, s.Done());
  }

  /// Row `m` of the batch, column n, as an index of the output.
  Array<PrimExpr> At(const PrimExpr& m, const PrimExpr& n) const {
    std::vector<PrimExpr> at(g_.out_shape().size());
    size_t rank = at.size();
    at[rank - 1] = n;
    PrimExpr rest = p_.batch_dims.empty() ? m : batch_ * I(p_.shape.m) + m;
    if (rank >= 2 && p_.shape.m == g_.out_shape()[rank - 2] && !p_.batch_dims.empty()) {
      at[rank - 2] = m;
      rest = batch_;
      --rank;
    }
    for (size_t d = rank - 1; d-- > 0;) {
      bool last = true;
      for (size_t j = 0; j < d; ++j) last &= g_.out_shape()[j] == 1;
      int64_t extent = g_.out_shape()[d];
      if (extent == 1) {
        at[d] = I(0);
      } else if (last) {
        at[d] = rest;
        rest = I(0);
      } else {
        at[d] = floormod(rest, I(extent));
        rest = floordiv(rest, I(extent));
      }
    }
    return Array<PrimExpr>(at.begin(), at.end());
  }

  const Group& g_;
  const Matmul& p_;
  const MatmulPlan& plan_;
  int64_t lanes_, width_;
  DataType dtype_;
  int64_t k_blocks_ = 1, k_block_ = 1, panels_ = 1, full_panels_ = 1;
  bool pack_ = false;
  // Of what is being written:
  PrimExpr a_base_, b_base_, batch_, n0_, kb_, k0_, panel_base_;
  Buffer panel_buffer_;
  int64_t panel_row_ = 0, vectors_ = 0, columns_ = 0;
};

bool Floats(const Group& g) {
  DataType t = g.anchor_dtype();
  if (t != DataType::Float(32) && t != DataType::Float(64)) return false;
  for (size_t i = 0; i < g.num_args(); ++i) {
    if (g.arg_dtype(i) != t) return false;
  }
  return true;
}
int64_t Count(const std::vector<int64_t>& shape, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t i = begin; i < end; ++i) n *= shape[i];
  return n;
}

Stmt WriteMatmul(const Group& g, Matmul p, const Target& target) {
  Machine mc = MachineOf(target, g.anchor_dtype());
  p.a_buffer = g.arg(0);
  p.b_buffer = g.arg(1);
  MatmulPlan plan = PlanMatmul(mc, p.shape, p.panel_columns);
  return MatmulWriter(g, p, plan, mc).Write();
}

}  // namespace

/// data (..., K) x weight (N, K)
tir::PrimFunc GenerateDense(const Function& func, const Call& anchor, const String&, const Target& target) {
  return Generate(func, anchor, [&](const Group& g) {
    if (!Floats(g)) return Stmt();
    const auto &x = g.arg_shape(0), &w = g.arg_shape(1);
    Matmul p;
    p.shape = {1, Count(x, 0, x.size() - 1), w[0], w[1], false};
    p.a = {w[1], 1};
    p.b = {1, w[1]};
    return WriteMatmul(g, p, target);
  });
}

/// data (..., K) x panels (N / columns, K, columns)
tir::PrimFunc GenerateDensePack(const Function& func, const Call& anchor, const String&, const Target& target) {
  return Generate(func, anchor, [&](const Group& g) {
    const auto &x = g.arg_shape(0), &w = g.arg_shape(1);
    Machine mc = MachineOf(target, g.anchor_dtype());
    if (!Floats(g) || w[2] % mc.lanes) return Stmt();
    Matmul p;
    p.shape = {1, Count(x, 0, x.size() - 1), g.out_shape().back(), w[1], true};
    p.a = {w[1], 1};
    p.panel_columns = w[2];
    return WriteMatmul(g, p, target);
  });
}

namespace {

/// Matrices (..., M, K) x (..., K, N), batches broadcasting, either transposed. Vectors are left to the general
/// schedule.
Stmt WriteBatched(const Group& g, bool transpose_a, bool transpose_b, const Target& target) {
  if (!Floats(g)) return Stmt();
  const auto &x = g.arg_shape(0), &y = g.arg_shape(1), &o = g.out_shape();
  if (x.size() < 2 || y.size() < 2) return Stmt();
  Matmul p;
  int64_t m = o[o.size() - 2], n = o.back(), k = x[x.size() - (transpose_a ? 2 : 1)];
  p.shape = {Count(o, 0, o.size() - 2), m, n, k, false};
  p.a = transpose_a ? Strides{1, m} : Strides{k, 1};
  p.b = transpose_b ? Strides{1, k} : Strides{n, 1};
  auto strides = [&](const std::vector<int64_t>& s, int64_t matrix) {
    std::vector<int64_t> out(o.size() - 2);
    int64_t step = matrix;
    for (size_t d = s.size() - 2; d-- > 0;) {
      out[d + o.size() - s.size()] = s[d] == 1 ? 0 : step;
      step *= s[d];
    }
    return out;
  };
  p.batch_dims.assign(o.begin(), o.end() - 2);
  p.batch_a = strides(x, m * k);
  p.batch_b = strides(y, k * n);
  bool shared = true;
  for (int64_t s : p.batch_b) shared &= s == 0;
  bool dense_a = !transpose_a && Count(x, 0, x.size()) == p.shape.batch * m * k;
  if (shared && dense_a && p.shape.batch > 1) {
    // One matrix for all: the rows of the whole batch in one product.
    p.shape.m *= p.shape.batch;
    p.shape.batch = 1;
    p.batch_dims.clear(), p.batch_a.clear(), p.batch_b.clear();
  }
  return WriteMatmul(g, p, target);
}

}  // namespace

tir::PrimFunc GenerateMatmul(const Function& func, const Call& anchor, const String&, const Target& target) {
  const auto* a = anchor->attrs.as<MatmulAttrs>();
  return Generate(func, anchor,
                  [&](const Group& g) { return WriteBatched(g, a && a->transpose_a, a && a->transpose_b, target); });
}
tir::PrimFunc GenerateBatchMatmul(const Function& func, const Call& anchor, const String&, const Target& target) {
  const auto* a = anchor->attrs.as<BatchMatmulAttrs>();
  return Generate(func, anchor,
                  [&](const Group& g) { return WriteBatched(g, a && a->transpose_a, !a || a->transpose_b, target); });
}

}  // namespace baton::relay::kernel
