// SPDX-License-Identifier: Apache-2.0
// Convolutions over images in blocks of channels in which each channel stands alone. A register tile is a run of
// neighbouring pixels of one row of the result; a row is cut into tiles of two widths that differ by one, so that no
// pixel is computed twice, whatever its length. Nothing is copied for the borders: rows outside of the image are left
// out, and what a tile reads beyond the ends of a row is masked. Each output adds rows and columns of the window in
// order.
#include <tir/parallel_if.h>

#include <algorithm>

#include "conv.h"
#include "plan.h"

namespace baton::relay::kernel {
namespace {

class DepthwiseWriter {
 public:
  DepthwiseWriter(const Group& g, const DepthwiseConv& c, const Machine& mc)
      : g_(g),
        c_(c),
        fma_(mc.fma),
        dtype_(g.anchor_dtype()),
        kind_(mc.cores > 1 ? ForKind::kParallel : ForKind::kSerial) {
    widest_ = mc.registers == 32 ? 8 : 6;
    // Rows are shared out too where blocks of channels are few.
    const int64_t planes = std::max<int64_t>(1, Known(c_.images)) * c_.blocks;
    while (wanted_ < 64 && Imbalance(planes * wanted_, mc.cores) > 1.05) ++wanted_;
  }

  Stmt Write() {
    Steps steps;
    auto hold = [&](const char* name, const PrimExpr& v) { return Known(v) >= 0 ? v : steps.Let(name, v); };
    row_ = hold("row", c_.in_width * I(c_.lanes));
    per_ = hold("per", max(truncdiv(c_.height + I(wanted_ - 1), I(wanted_)), I(1)));
    chunks_ = hold("chunks", truncdiv(c_.height + per_ - I(1), per_));
    tiles_ = hold("tiles", truncdiv(c_.width + I(widest_ - 1), I(widest_)));
    narrow_ = hold("narrow", truncdiv(c_.width, max(tiles_, I(1))));
    wide_ = hold("wide", c_.width - tiles_ * narrow_);
    const PrimExpr planes = c_.images * I(c_.blocks);
    const PrimExpr products = planes * c_.height * c_.width * I(c_.lanes * c_.window_h * c_.window_w);
    Stmt loop = Loop("unit", planes * chunks_, [&](const PrimExpr& unit) { return Unit(unit); }, kind_);
    if (!loop.defined()) return Effect(I(0));
    steps.Add(tir::ParallelIf(I(static_cast<int64_t>(kParallelFlops / 2)) < products, loop));
    return steps.Done();
  }

 private:
  static constexpr int64_t kBand = 8;  ///< rows that a tile's columns go down at once

  /// Some rows of a plane, in bands: what a tile's columns ask for is asked once a band.
  Stmt Unit(const PrimExpr& unit) {
    Steps s;
    plane_ = Known(chunks_) == 1 ? unit : s.Let("plane", truncdiv(unit, chunks_));
    image_ = s.Let("image", truncdiv(plane_, I(c_.blocks))), block_ = s.Let("block", plane_ - image_ * I(c_.blocks));
    weights_ = s.Let("weights", block_ * I(c_.window_h * c_.window_w * c_.lanes));
    const PrimExpr first = Known(chunks_) == 1 ? I(0) : s.Let("first", (unit - plane_ * chunks_) * per_);
    const PrimExpr end = s.Let("end", min(first + per_, c_.height));
    s.Add(Loop("band", truncdiv(end - first + I(kBand - 1), I(kBand)), [&](const PrimExpr& band) {
      Steps one;
      begin_ = one.Let("begin", first + band * I(kBand)), lines_ = one.Let("lines", min(end - begin_, I(kBand)));
      one.Add(Tiles());
      return one.Done();
    }));
    return s.Done();
  }

  /// The tiles of a band.
  Stmt Tiles() {
    const int64_t narrow = Known(narrow_), wide = Known(wide_);
    if (narrow >= 0 && wide >= 0) {
      Steps s;
      s.Add(Loop("tile", wide_, [&](const PrimExpr& t) { return Columns(t * I(narrow + 1), narrow + 1); }));
      s.Add(Loop("tile", tiles_ - wide_,
                 [&](const PrimExpr& t) { return Columns((t + wide_) * I(narrow) + wide_, narrow); }));
      return s.Done();
    }
    return Loop("tile", tiles_, [&](const PrimExpr& t) {
      Steps s;
      const PrimExpr x = s.Let("x", t * narrow_ + min(t, wide_));
      const PrimExpr columns = s.Let("columns", narrow_ + tir::Select(t < wide_, I(1), I(0)));
      // Rows that are longer than a tile have tiles of half the widest or more.
      Stmt any = Loop("pixel", columns, [&](const PrimExpr& p) { return Columns(x + p, 1); });
      for (int64_t n = (widest_ + 1) / 2; n <= widest_; ++n) any = If(equal(columns, I(n)), Columns(x, n), any);
      s.Add(any);
      return s.Done();
    });
  }

  /// Tiles of these columns, one a row of the band.
  Stmt Columns(const PrimExpr& first, int64_t columns) {
    Steps s;
    const PrimExpr x = s.Let("x", first);
    s.Add(Loop("line", lines_, [&](const PrimExpr& line) { return Tile(begin_ + line, x, columns); }));
    return s.Done();
  }

  /// What a tile reads of column `kw` of the window, for its pixel `p` of `columns`: zeros beyond the ends of the row.
  PrimExpr Pixel(const PrimExpr& row, const PrimExpr& x, int64_t p, int64_t columns, const PrimExpr& kw) const {
    const int64_t k = Known(kw);
    const int64_t before = c_.left - p * c_.step_w - (k < 0 ? 0 : k) * c_.dilation_w;
    const int64_t after = c_.right - (columns - 1 - p) * c_.step_w - (k < 0 ? 0 : c_.window_w - 1 - k) * c_.dilation_w;
    const PrimExpr at = x + kw * I(c_.dilation_w) + I(p * c_.step_w);
    if (before <= 0 && after <= 0) return Read(g_.arg(0), row + at * I(c_.lanes), c_.lanes);
    PrimExpr inside = before > 0 ? I(0) <= at : at < c_.in_width;
    if (before > 0 && after > 0) inside = inside && at < c_.in_width;
    const PrimExpr place = tir::Select(inside, at, I(0));
    return ReadMasked(g_.arg(0), row + place * I(c_.lanes), c_.lanes,
                      tir::broadcast_to(inside, static_cast<int>(c_.lanes)));
  }

  Stmt Tile(const PrimExpr& at, const PrimExpr& x, int64_t columns) {
    Steps s;
    const int64_t lanes = c_.lanes;
    y_ = s.Let("y", at);
    const PrimExpr in_y = s.Let("in_y", y_ * I(c_.step_h) - I(c_.top)), in_x = x * I(c_.step_w) - I(c_.left);
    PrimExpr above = I(0), taps = I(c_.window_h);
    if (c_.top || c_.bottom) {
      // The rows of the window that lie in the image.
      auto first_from = [&](const PrimExpr& y) { return floordiv(y - in_y + I(c_.dilation_h - 1), I(c_.dilation_h)); };
      above = s.Let("above", max(first_from(I(0)), I(0)));
      taps = s.Let("taps", max(min(first_from(c_.in_height), I(c_.window_h)) - above, I(0)));
    }
    const PrimExpr in = s.Let("in", (plane_ * c_.in_height + in_y) * row_);
    out_ = s.Let("out", (plane_ * c_.height + y_) * c_.width);
    Buffer acc = Buffer::Make({I(columns * lanes)}, dtype_, "acc", "local");
    const PrimExpr zero = tir::broadcast_to(tir::make_const(dtype_, 0), static_cast<int>(lanes));
    Steps body;
    for (int64_t p = 0; p < columns; ++p) body.Add(Store(acc, Span(I(p * lanes), lanes), zero));
    body.Add(Loop("kh", taps, [&](const PrimExpr& tap) {
      Steps line;
      const PrimExpr kh = line.Let("kh", above + tap);
      const PrimExpr row = line.Let("row", in + kh * I(c_.dilation_h) * row_);
      const PrimExpr weights = line.Let("weights", weights_ + kh * I(c_.window_w * lanes));
      auto column = [&](const PrimExpr& kw) {
        Steps k;
        const PrimExpr w = k.Let("w", As(dtype_, Read(g_.arg(1), weights + kw * I(lanes), lanes)));
        for (int64_t p = 0; p < columns; ++p) {
          const PrimExpr at = I(p * lanes);
          k.Add(Store(acc, Span(at, lanes),
                      MultiplyAdd(fma_, Pixel(row, in_x, p, columns, kw), w, Read(acc, at, lanes))));
        }
        return k.Done();
      };
      if (c_.window_w > 7) {
        line.Add(Loop("kw", I(c_.window_w), column));
      } else {
        for (int64_t kw = 0; kw < c_.window_w; ++kw) line.Add(column(I(kw)));
      }
      return line.Done();
    }));
    body.Add(Finish(acc, x, columns));
    s.Add(With(acc, body.Done()));
    return s.Done();
  }

  Stmt Finish(const Buffer& acc, const PrimExpr& x, int64_t columns) {
    const int64_t lanes = c_.lanes;
    auto store = [&](const PrimExpr& t, const Buffer& from) {
      Site site;
      site.at = {image_, block_};
      if (c_.rows) site.at.push_back(y_);
      site.at.push_back(x + t);
      site.at.push_back(I(0));
      site.offset = (out_ + x + t) * I(lanes);
      site.lanes = lanes;
      return g_.Finish(site, Read(from, t * I(lanes), lanes));
    };
    Steps s;
    if (g_.epilogue_size() * columns <= 130 || columns == 1) {
      for (int64_t t = 0; t < columns; ++t) s.Add(store(I(t), acc));
      return s.Done();
    }
    // A long epilogue is a loop over a copy of the tile in memory.
    Buffer tile = Buffer::Make({I(columns * lanes)}, dtype_, "tile");
    for (int64_t t = 0; t < columns; ++t) s.Add(Store(tile, Span(I(t * lanes), lanes), Read(acc, I(t * lanes), lanes)));
    s.Add(Loop("column", I(columns), [&](const PrimExpr& t) { return store(t, tile); }));
    return With(tile, s.Done());
  }

  const Group& g_;
  const DepthwiseConv& c_;
  bool fma_;
  DataType dtype_;
  ForKind kind_;
  int64_t widest_ = 1, wanted_ = 1;           // tile; chunks of a plane
  PrimExpr row_, per_, chunks_;               // elements of a row of the input; rows of a chunk, chunks of a plane
  PrimExpr tiles_, narrow_, wide_;            // of a row; the narrower width, and how many are wider by one
  PrimExpr plane_, image_, block_, weights_;  // of a unit
  PrimExpr begin_, lines_, y_, out_;          // of a band; of a row of the result
};

}  // namespace

Stmt WriteDepthwise(const Group& g, const DepthwiseConv& c, const Machine& mc) {
  return DepthwiseWriter(g, c, mc).Write();
}

}  // namespace baton::relay::kernel
