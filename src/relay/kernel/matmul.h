// SPDX-License-Identifier: Apache-2.0
// What products of literal and of run-time extents share: operands, packing, register tiles and their epilogue.
#pragma once

#include <baton/ir/target.h>

#include <vector>

#include "group.h"
#include "plan.h"

namespace baton::relay::kernel {

/// The place of element (i, j) of a matrix: base of the batch + i * row + j * column.
struct MatrixStrides {
  PrimExpr row = I(0), column = I(0);
};

/// C[m, n] = sum over k of A[m, k] * B[k, n], for each of a batch. Extents are literals or expressions of variables.
struct Matmul {
  PrimExpr batch = I(1), m = I(1), n = I(1), k = I(1);
  bool packed = false;                     ///< B is a constant in panels: [n / columns][k][columns]
  std::vector<PrimExpr> batch_dims;        ///< their product is `batch`
  std::vector<PrimExpr> batch_a, batch_b;  ///< strides of the batch's dimensions, in elements
  MatrixStrides a, b;                      ///< of A[m, k], B[k, n]; b is unused when panels are packed
  int64_t panel_columns = 0;               ///< of packed panels
  /// Terms of the sum that one step takes. With 4, A is uint8, B int8 in panels [n / columns][k][columns][4], the sum
  /// int32; with 2 both are bfloat16 and the sum float32. `k` and the strides of A count steps.
  int64_t terms = 1;
  bool few_rows = false;  ///< A has few rows as a rule: B is then read in place
  Buffer a_buffer, b_buffer;
  bool literal() const { return Known(batch) >= 0 && Known(m) >= 0 && Known(n) >= 0 && Known(k) >= 0; }
};

/// Offset of an operand for a batch number.
PrimExpr BatchOffset(const PrimExpr& number, const std::vector<PrimExpr>& dims, const std::vector<PrimExpr>& strides);

/// Turns a square of as many vectors as each has lanes round: rows become columns.
void TransposeSquare(std::vector<PrimExpr>* x, Steps* steps);

/// A product whose extents are not all literals: register tiles and panels have literal sizes, their numbers do not.
Stmt WriteOpenMatmul(const Group& g, const Matmul& p, const Machine& mc);

/// Writes parts of a product; what calls it makes the loops around them.
class MatmulTiles {
 protected:
  MatmulTiles(const Group& g, const Matmul& p, const Machine& mc, int64_t vectors)
      : g_(g), p_(p), lanes_(mc.lanes), width_(vectors * mc.lanes), dtype_(g.anchor_dtype()), fma_(mc.fma) {}

  /// Copies B[k0 .. k0 + count, columns of the panel] into rows side by side; columns that are not there become 0, or
  /// copies of the last one where their number is not a literal.
  Stmt Pack(const Buffer& packed, const PrimExpr& k0, const PrimExpr& count);
  /// `rows` rows from `m0` of the panel, over `k_count` rounds of the sum. `finish(acc, m0, c0)` writes what is done
  /// with the sums of the last block.
  template <class F>
  Stmt Tile(const PrimExpr& m0, int64_t rows, const PrimExpr& k_count, int64_t unroll, F finish) {
    Steps steps;
    PrimExpr m = Known(m0) >= 0 ? m0 : steps.Let("m0", m0);
    TileSums t = Sums(m, rows, k_count, unroll, &steps);
    Stmt last = finish(t.acc, m, t.c0);
    if (partial_) last = Choose(equal(kb_, last_kb_), last, t.save);
    t.body.Add(last);
    steps.Add(With(t.acc, t.body.Done()));
    return steps.Done();
  }
  /// The sums of `rows` rows from `m0`, in a copy of the tile; without one they are stored as the result.
  Stmt SumTile(const PrimExpr& m0, int64_t rows, const PrimExpr& k_count, int64_t unroll, const Buffer& copy);
  /// The tile's results through the epilogue. A long epilogue is a loop over the rows of a copy of the tile in memory,
  /// so that it is not written out for each register.
  Stmt FinishTile(const Buffer& acc, int64_t rows, const PrimExpr& m0, const PrimExpr& c0) const;
  /// The vectors of one row through the epilogue; row `r` of the tile is in `b`,
  /// without that in the result.
  Stmt FinishRow(const Buffer& b, const PrimExpr& r, const PrimExpr& m0, const PrimExpr& c0) const;
  Stmt CopyTile(const Buffer& tile, const Buffer& acc, int64_t rows) const;

  /// Elements of B in a line of a panel of `vectors` vectors.
  int64_t PanelLine(int64_t columns) const { return columns * p_.terms; }
  /// The place of vector `v` in a line, from the panel's; packed panels that are narrower than a tile follow each
  /// other.
  PrimExpr PanelVector(int64_t v) const;
  PrimExpr Mask(int64_t v) const;
  /// Row `m` of the batch, column n, as an index of the output.
  Array<PrimExpr> At(const PrimExpr& m, const PrimExpr& n) const;
  static Stmt Choose(const PrimExpr& condition, const Stmt& yes, const Stmt& no);

  const Group& g_;
  const Matmul& p_;
  int64_t lanes_, width_;
  DataType dtype_;
  bool fma_;
  bool pack_ = false, partial_ = false;
  bool rest_of_k_ = true;  ///< blocks of the sum may end within an unrolled round, where their length is not a literal
  // Of what is being written:
  PrimExpr a_base_, b_base_, batch_, n0_, kb_, k0_, last_kb_, panel_base_, panel_row_;
  Buffer panel_buffer_;
  int64_t vectors_ = 0;
  PrimExpr columns_;

 private:
  struct TileSums {
    Buffer acc;
    PrimExpr c0;
    Steps body;  ///< the sums, in `acc`
    Stmt save;   ///< stores them as the result; null where that has another dtype
  };
  TileSums Sums(const PrimExpr& m0, int64_t rows, const PrimExpr& k_count, int64_t unroll, Steps* steps);
  /// Vector `v` of a panel, of lines that run along k.
  Stmt PackLines(const Buffer& packed, const PrimExpr& from, const PrimExpr& count, const PrimExpr& v);
  Stmt PackByElement(const Buffer& packed, const PrimExpr& line0, const PrimExpr& first, const PrimExpr& count,
                     const PrimExpr& v, const PrimExpr& lines, int64_t row);
};

}  // namespace baton::relay::kernel
