// SPDX-License-Identifier: Apache-2.0
// Data becomes bytes once, a scale for each block of a row. A step multiplies four or eight terms of two vectors of
// columns; a block's whole sum becomes a float once. Up to four rows share what is unpacked.
#include "byte_blocks.h"

#include <tir/parallel_if.h>

#include <algorithm>
#include <cmath>

namespace baton::relay::kernel {
namespace {

constexpr int64_t kByteTerms = 4, kMostByte = 127, kPanelVectors = 2, kMostBlockRows = 4, kSharedWork = 1 << 16;
/// A block whose elements are all smaller counts as 0: 127 over it might be infinite.
constexpr double kLeastBlock = 1e-30;
const DataType kSumType = DataType::Int(32), kRealType = DataType::Float(32), kByteType = DataType::Int(8);

PrimExpr RealNumber(double v, int64_t lanes = 1) {
  return tir::broadcast_to(tir::make_const(kRealType, v), static_cast<int>(lanes));
}

class ByteBlocksWriter {
 public:
  explicit ByteBlocksWriter(const ByteBlocks& p)
      : p_(p),
        lanes_(p.panel / kPanelVectors),
        each_(8 / p.bits),
        step_(kByteTerms * each_),
        blocks_((p.depth + p.block - 1) / p.block) {}

  Stmt Write() {
    whole_ = Buffer::Make({p_.rows * I(p_.depth)}, kByteType, "whole");
    scales_ = Buffer::Make({p_.rows * I(blocks_)}, kRealType, "scales");
    sums_ = Buffer::Make({p_.rows * I(blocks_)}, kRealType, "less");
    Steps s;
    s.Add(Loop("m", p_.rows, [&](const PrimExpr& m) {
      Steps row;
      const int64_t full = p_.depth / p_.block, rest = p_.depth % p_.block;
      row.Add(Loop("b", I(full), [&](const PrimExpr& b) { return Quantize(m, b, p_.block); }));
      if (rest > 0) row.Add(Quantize(m, I(full), rest));
      return row.Done();
    }));
    const int64_t panels = (p_.units + p_.panel - 1) / p_.panel;
    const PrimExpr work = p_.rows * I(p_.depth * p_.units);
    s.Add(Panels(panels, I(kSharedWork) <= work));
    return With(whole_, With(scales_, With(sums_, s.Done())));
  }

 private:
  Stmt Panels(int64_t panels, const PrimExpr& shared) {
    tir::Var at("panel");
    tir::ForNode loop;
    loop.loop_var = at, loop.min = I(0), loop.extent = I(panels), loop.kind = ForKind::kParallel;
    loop.body = Rows(at);
    return tir::ParallelIf(shared, tir::For(std::move(loop)));
  }

  /// A block of a row as bytes, its scale, and the sum of the bytes, negative.
  Stmt Quantize(const PrimExpr& m, const PrimExpr& b, int64_t count) {
    Steps s;
    const PrimExpr at = s.Let("at", m * I(p_.depth) + b * I(p_.block));
    const int64_t lanes = std::min<int64_t>(lanes_, count), whole = count / lanes * lanes;
    Buffer most = Buffer::Make({I(lanes)}, kRealType, "most", "local");
    Buffer sum = Buffer::Make({I(lanes)}, kRealType, "sum", "local");
    auto each = [&](auto body) {  // in vectors; what is left one by one, in the first lane
      Steps all;
      all.Add(Loop("i", I(whole / lanes), [&](const PrimExpr& i) { return body(at + i * I(lanes), lanes); }));
      all.Add(Loop("i", I(count - whole), [&](const PrimExpr& i) { return body(at + I(whole) + i, 1); }));
      return all.Done();
    };
    Steps of_block;
    of_block.Add(Store(most, Span(I(0), lanes), RealNumber(0, lanes)));
    of_block.Add(Store(sum, Span(I(0), lanes), RealNumber(0, lanes)));
    of_block.Add(each([&](const PrimExpr& from, int64_t n) {
      Steps one;
      PrimExpr x = one.Let("x", Read(p_.data, from, n));
      one.Add(Store(most, Span(I(0), n), max(Read(most, I(0), n), abs(x))));
      one.Add(Store(sum, Span(I(0), n), Read(sum, I(0), n) + x));
      return one.Done();
    }));
    const PrimExpr largest = of_block.Let("largest", tir::vector_max(Read(most, I(0), lanes)));
    const PrimExpr finite = of_block.Let("finite", isfinite(tir::vector_sum(Read(sum, I(0), lanes))));
    const PrimExpr some = of_block.Let("some", finite && largest > RealNumber(kLeastBlock));
    const PrimExpr times = of_block.Let("times", tir::Select(some, RealNumber(kMostByte) / largest, RealNumber(0)));
    const PrimExpr place = of_block.Let("place", m * I(blocks_) + b);
    const PrimExpr step =
        tir::Select(some, largest * RealNumber(1.0 / kMostByte), tir::Select(finite, RealNumber(0), RealNumber(NAN)));
    of_block.Add(Store(scales_, place, step));
    of_block.Add(Store(sum, Span(I(0), lanes), RealNumber(0, lanes)));
    of_block.Add(each([&](const PrimExpr& from, int64_t n) {
      Steps one;
      PrimExpr q = one.Let("q", nearbyint(Read(p_.data, from, n) * tir::broadcast_to(times, static_cast<int>(n))));
      one.Add(Store(sum, Span(I(0), n), Read(sum, I(0), n) - q));
      one.Add(Store(whole_, Span(from, n), As(kByteType, As(kSumType, q))));
      return one.Done();
    }));
    of_block.Add(Store(sums_, place, tir::vector_sum(Read(sum, I(0), lanes))));
    s.Add(With(most, With(sum, of_block.Done())));
    return s.Done();
  }

  /// All rows of a panel's columns, four at a time.
  Stmt Rows(const PrimExpr& panel) {
    Steps s;
    const PrimExpr many = s.Let("many", floordiv(p_.rows, I(kMostBlockRows)));
    const PrimExpr done = many * I(kMostBlockRows);
    if (Known(p_.rows) != 1)
      s.Add(Loop("tile", many, [&](const PrimExpr& i) { return Tile(panel, i * I(kMostBlockRows), kMostBlockRows); }));
    s.Add(Loop("row", p_.rows - done, [&](const PrimExpr& i) { return Tile(panel, done + i, 1); }));
    return s.Done();
  }

  Stmt Tile(const PrimExpr& panel, const PrimExpr& row, int64_t rows) {
    Steps s;
    const PrimExpr m0 = s.Let("m0", row);
    Buffer sums = Buffer::Make({I(rows * p_.panel)}, kRealType, "sums", "local");
    Buffer parts = Buffer::Make({I(rows * p_.panel)}, kSumType, "parts", "local");
    Steps body;
    auto each = [&](auto f) {  // (row, vector, where it is in a tile)
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t v = 0; v < kPanelVectors; ++v) body.Add(f(r, v, I((r * kPanelVectors + v) * lanes_)));
      }
    };
    each([&](int64_t, int64_t, const PrimExpr& at) { return Store(sums, Span(at, lanes_), RealNumber(0, lanes_)); });
    const int64_t full = p_.depth / p_.block, rest = p_.depth % p_.block;
    body.Add(Loop("b", I(full), [&](const PrimExpr& b) { return Block(panel, m0, rows, b, p_.block, sums, parts); }));
    if (rest > 0) body.Add(Block(panel, m0, rows, I(full), rest, sums, parts));
    each([&](int64_t r, int64_t v, const PrimExpr& at) {
      const PrimExpr column = panel * I(p_.panel) + I(v * lanes_);
      PrimExpr mask;
      if (p_.units % p_.panel)
        mask = tir::Ramp(I(0), I(1), lanes_) < PrimExpr(tir::Broadcast(I(p_.units) - column, lanes_));
      return WriteMasked(p_.out, (m0 + I(r)) * I(p_.units) + column, lanes_, Read(sums, at, lanes_), mask);
    });
    s.Add(With(sums, With(parts, body.Done())));
    return s.Done();
  }

  /// Adds a block's products to the sums.
  Stmt Block(const PrimExpr& panel, const PrimExpr& m0, int64_t rows, const PrimExpr& b, int64_t count,
             const Buffer& sums, const Buffer& parts) {
    Steps s;
    const int64_t line = p_.panel * kByteTerms;
    const PrimExpr none = tir::broadcast_to(tir::make_const(kSumType, 0), static_cast<int>(lanes_));
    auto at = [&](int64_t r, int64_t v) { return I((r * kPanelVectors + v) * lanes_); };
    for (int64_t i = 0; i < rows * kPanelVectors; ++i) s.Add(Store(parts, Span(I(i * lanes_), lanes_), none));
    const PrimExpr w0 = s.Let("w0", (panel * I(p_.depth / step_) + b * I(p_.block / step_)) * I(line));
    const PrimExpr x0 = s.Let("x0", m0 * I(p_.depth) + b * I(p_.block));
    auto step = [&](const PrimExpr& k) {
      Steps one;
      for (int64_t v = 0; v < kPanelVectors; ++v) {
        const PrimExpr bytes =
            one.Let("bytes", Read(p_.weight, w0 + k * I(line) + I(v * lanes_ * kByteTerms), lanes_ * kByteTerms));
        for (int64_t e = 0; e < each_; ++e) {
          const PrimExpr numbers = one.Let("numbers", Half(bytes, e));
          for (int64_t r = 0; r < rows; ++r) {
            const PrimExpr x = Repeat(whole_, x0 + I(r * p_.depth + e * kByteTerms) + k * I(step_), kByteTerms, lanes_);
            one.Add(Store(parts, Span(at(r, v), lanes_), dot4(numbers, x, Read(parts, at(r, v), lanes_))));
          }
        }
      }
      return one.Done();
    };
    const int64_t steps = count / step_, unroll = std::min<int64_t>(steps, rows == 1 ? 4 : 2);
    s.Add(Loop("k", I(steps / unroll), [&](const PrimExpr& k) {
      Steps some;
      for (int64_t i = 0; i < unroll; ++i) some.Add(step(k * I(unroll) + I(i)));
      return some.Done();
    }));
    for (int64_t k = steps / unroll * unroll; k < steps; ++k) s.Add(step(I(k)));
    for (int64_t v = 0; v < kPanelVectors; ++v) {
      const PrimExpr of = (panel * I(blocks_) + b) * I(p_.panel) + I(v * lanes_);
      const PrimExpr scale = s.Let("scale", As(kRealType, Read(p_.scale, of, lanes_)));
      const PrimExpr zero = s.Let("zero", As(kRealType, Read(p_.zero, of, lanes_)));
      for (int64_t r = 0; r < rows; ++r) {
        const PrimExpr place = (m0 + I(r)) * I(blocks_) + b;
        auto all = [&](const Buffer& from) { return tir::broadcast_to(Read(from, place), static_cast<int>(lanes_)); };
        const PrimExpr part = fma(zero, all(sums_), As(kRealType, Read(parts, at(r, v), lanes_)));
        s.Add(Store(sums, Span(at(r, v), lanes_), fma(part, scale * all(scales_), Read(sums, at(r, v), lanes_))));
      }
    }
    return s.Done();
  }

  /// The numbers of one of a byte's parts.
  PrimExpr Half(const PrimExpr& bytes, int64_t part) const {
    if (each_ == 1) return bytes;
    auto all = [&](int64_t v) {
      return tir::broadcast_to(tir::make_const(DataType::UInt(8), v), bytes.dtype().lanes());
    };
    return part == 0 ? bitwise_and(bytes, all(15)) : shift_right(bytes, all(4));
  }

  const ByteBlocks& p_;
  int64_t lanes_, each_, step_, blocks_;
  Buffer whole_, scales_, sums_;  // of the data: bytes (M, K), a scale and a negative sum for each block
};

}  // namespace

Stmt WriteByteBlocks(const ByteBlocks& p) { return ByteBlocksWriter(p).Write(); }

}  // namespace baton::relay::kernel
