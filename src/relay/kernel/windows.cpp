// SPDX-License-Identifier: Apache-2.0
// A register tile is a run of neighbouring pixels of one row of the result; a row is cut into tiles of two widths that
// differ by one, so that no pixel is computed twice, whatever its length. Of plain images a tile is one vector, and the
// last one of a row is masked. Nothing is copied for the borders: rows outside of the image are left out, and what a
// tile reads beyond the ends of a row is masked. Each output takes rows and columns of the window in order.
#include "windows.h"

#include <tir/parallel_if.h>

#include <algorithm>

#include "plan.h"

namespace baton::relay::kernel {
namespace {

/// How a tile reads the columns of a window.
struct Reads {
  PrimExpr first;               ///< the place of column 0 for pixel 0
  std::vector<PrimExpr> mask;   ///< of plain images, by column of the window; empty: all are there
  PrimExpr stored;              ///< of plain images: the columns that exist; null: all
  std::vector<PrimExpr> count;  ///< by pixel, where they are asked for: columns of the window within the image
};

class WindowWriter {
 public:
  WindowWriter(const Group& g, const Windows& w, const WindowFold& fold, const Machine& mc)
      : g_(g),
        c_(w),
        fold_(fold),
        dtype_(g.anchor_dtype()),
        plain_(w.lanes == 1),
        lanes_(plain_ ? mc.lanes : w.lanes),
        kind_(mc.cores > 1 ? ForKind::kParallel : ForKind::kSerial) {
    widest_ = plain_ ? lanes_ : mc.registers == 32 ? 8 : 6;
    // Rows are shared out too where planes are few.
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
    if (!plain_) {
      narrow_ = hold("narrow", truncdiv(c_.width, max(tiles_, I(1))));
      wide_ = hold("wide", c_.width - tiles_ * narrow_);
    }
    const PrimExpr planes = c_.images * I(c_.blocks);
    const PrimExpr products = planes * c_.height * c_.width * I(c_.lanes * c_.window_h * c_.window_w);
    Stmt loop = Loop("unit", planes * chunks_, [&](const PrimExpr& unit) { return Unit(unit); }, kind_);
    if (!loop.defined()) return Effect(I(0));
    steps.Add(tir::ParallelIf(I(static_cast<int64_t>(kParallelFlops / 2)) < products, loop));
    return steps.Done();
  }

 private:
  static constexpr int64_t kBand = 8;  ///< rows that a tile's columns go down at once

  PrimExpr Vector(const PrimExpr& x) const { return tir::broadcast_to(x, static_cast<int>(lanes_)); }

  /// Some rows of a plane, in bands: what a tile's columns ask for is asked once a band.
  Stmt Unit(const PrimExpr& unit) {
    Steps s;
    plane_ = Known(chunks_) == 1 ? unit : s.Let("plane", truncdiv(unit, chunks_));
    image_ = s.Let("image", truncdiv(plane_, I(c_.blocks))), block_ = s.Let("block", plane_ - image_ * I(c_.blocks));
    const PrimExpr first = Known(chunks_) == 1 ? I(0) : s.Let("first", (unit - plane_ * chunks_) * per_);
    const PrimExpr end = s.Let("end", min(first + per_, c_.height));
    s.Add(Loop("band", truncdiv(end - first + I(kBand - 1), I(kBand)), [&](const PrimExpr& band) {
      Steps one;
      begin_ = one.Let("begin", first + band * I(kBand)), lines_ = one.Let("lines", min(end - begin_, I(kBand)));
      one.Add(plain_ ? Vectors() : Tiles());
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

  /// The tiles of a band of plain images: those within the row have no masks.
  Stmt Vectors() {
    return Loop("tile", tiles_, [&](const PrimExpr& t) {
      Steps s;
      const PrimExpr x = s.Let("x", t * I(lanes_));
      const PrimExpr last = x + I((c_.window_w - 1) * c_.dilation_w - c_.left + lanes_);
      const PrimExpr within = I(c_.left) <= x && last <= c_.in_width && x + I(lanes_) <= c_.width;
      const int64_t tiles = Known(tiles_), some = TilesWithin();
      Stmt masked = tiles < 0 || some < tiles ? Columns(x, 1, true) : Stmt();
      Stmt clean = some ? Columns(x, 1) : Stmt();
      s.Add(!clean.defined() ? masked : !masked.defined() ? clean : If(within, clean, masked));
      return s.Done();
    });
  }
  /// How many tiles of a row lie within it, as Vectors() asks; -1 where that is not known.
  int64_t TilesWithin() const {
    const int64_t in = Known(c_.in_width), out = Known(c_.width);
    if (in < 0 || out < 0) return -1;
    int64_t n = 0;
    for (int64_t x = 0; x + lanes_ <= out; x += lanes_) {
      n += c_.left <= x && x + (c_.window_w - 1) * c_.dilation_w - c_.left + lanes_ <= in;
    }
    return n;
  }

  /// Tiles of these columns, one a row of the band.
  Stmt Columns(const PrimExpr& first, int64_t columns, bool masked = false) {
    Steps s;
    const PrimExpr x = s.Let("x", first);
    Reads r;
    r.first = s.Let("in_x", x * I(c_.step_w) - I(c_.left));
    if (masked) {
      const PrimExpr lane = tir::Ramp(I(0), I(1), static_cast<int>(lanes_));
      for (int64_t kw = 0; kw < c_.window_w; ++kw) {
        const PrimExpr at = r.first + I(kw * c_.dilation_w);
        r.mask.push_back(s.Let("inside", Vector(I(0) - at) <= lane && lane < Vector(c_.in_width - at)));
      }
      r.stored = s.Let("stored", lane < Vector(c_.width - x));
    }
    if (fold_.result) {
      for (int64_t p = 0; p < columns; ++p) r.count.push_back(s.Let("count", Count(r, p, columns)));
    }
    joined_ = Buffer();
    if (plain_ && fold_.any_order && c_.step_h == 1 && c_.dilation_h == 1 && 1 < c_.window_h &&
        c_.window_h <= 4 * kBand)
      s.Add(Joined(&s, r));
    s.Add(Loop("line", lines_, [&](const PrimExpr& line) { return Tile(begin_ + line, x, r, columns); }));
    return joined_.defined() ? With(joined_, s.Done()) : s.Done();
  }
  /// Each row of the image that the band's windows have, joined once for all of them.
  Stmt Joined(Steps* s, const Reads& r) {
    joined_ = Buffer::Make({I((kBand + c_.window_h - 1) * lanes_)}, dtype_, "joined", "local");
    const PrimExpr top = begin_ - I(c_.top), end = min(top + lines_ + I(c_.window_h - 1), c_.in_height);
    joined_from_ = s->Let("from", max(top, I(0)));
    return Loop("row", max(end - joined_from_, I(0)), [&](const PrimExpr& i) {
      const PrimExpr row = (plane_ * c_.in_height + joined_from_ + i) * row_;
      return Store(joined_, Span(i * I(lanes_), lanes_), InPairs(row, r));
    });
  }

  /// Whether there is an element at `at`, of pixel `p` of `columns` and column `kw` of the window (-1: one of them).
  /// Null: there is.
  PrimExpr Inside(const PrimExpr& at, int64_t p, int64_t columns, int64_t kw) const {
    if (plain_) return PrimExpr();
    const int64_t before = c_.left - p * c_.step_w - std::max<int64_t>(kw, 0) * c_.dilation_w;
    const int64_t behind = kw < 0 ? 0 : c_.window_w - 1 - kw;
    const int64_t after = c_.right - (columns - 1 - p) * c_.step_w - behind * c_.dilation_w;
    if (before > 0 && after > 0) return I(0) <= at && at < c_.in_width;
    return before > 0 ? I(0) <= at : after > 0 ? at < c_.in_width : PrimExpr();
  }

  /// Columns of the window of pixel `p` that lie within the image, as vectors of its type.
  PrimExpr Count(const Reads& r, int64_t p, int64_t columns) const {
    PrimExpr one = tir::make_const(dtype_, 1), zero = tir::make_const(dtype_, 0), count = Vector(zero);
    for (int64_t kw = 0; kw < c_.window_w; ++kw) {
      PrimExpr inside = r.mask.empty() ? Inside(r.first + I(p * c_.step_w + kw * c_.dilation_w), p, columns, kw)
                                       : r.mask[static_cast<size_t>(kw)];
      PrimExpr more = !inside.defined() ? Vector(one)
                      : r.mask.empty()  ? Vector(tir::Select(inside, one, zero))
                                        : tir::Select(inside, Vector(one), Vector(zero));
      count = count + more;
    }
    return count;
  }

  /// Returns the element of pixel `p` of `columns` in column `kw` of the window.
  PrimExpr Element(const PrimExpr& row, const Reads& r, int64_t p, int64_t columns, const PrimExpr& kw) const {
    const int64_t k = Known(kw);
    const PrimExpr at = r.first + kw * I(c_.dilation_w) + I(p * c_.step_w);
    PrimExpr mask, place = at;
    if (!r.mask.empty()) {
      mask = r.mask[static_cast<size_t>(k)];
    } else if (PrimExpr inside = Inside(at, p, columns, k); inside.defined()) {
      mask = Vector(inside), place = tir::Select(inside, at, I(0));
    }
    const PrimExpr from = row + place * I(c_.lanes);
    // Not every processor has masked reads of bytes; where blocks are read, `place` is within the image anyway.
    PrimExpr element =
        mask.defined() && !plain_ && g_.arg(0)->dtype.bits() < 32
            ? tir::Select(mask, Read(g_.arg(0), from, lanes_), Vector(tir::make_const(g_.arg(0)->dtype, 0)))
            : ReadMasked(g_.arg(0), from, lanes_, mask);
    return mask.defined() && c_.outside.defined() ? tir::Select(mask, element, Vector(c_.outside)) : element;
  }

  /// A row of the window of plain images, joined pairwise: a chain is short where one vector has all of it.
  PrimExpr InPairs(const PrimExpr& row, const Reads& r) const {
    std::vector<PrimExpr> parts;
    for (int64_t kw = 0; kw < c_.window_w; ++kw) parts.push_back(Element(row, r, 0, 1, I(kw)));
    while (parts.size() > 1) {
      std::vector<PrimExpr> next;
      for (size_t i = 0; i + 1 < parts.size(); i += 2) next.push_back(fold_.add(parts[i], parts[i + 1], PrimExpr()));
      if (parts.size() % 2) next.push_back(parts.back());
      parts = next;
    }
    return parts[0];
  }

  Stmt Tile(const PrimExpr& line, const PrimExpr& x, const Reads& r, int64_t columns) {
    Steps s;
    y_ = s.Let("y", line);
    const PrimExpr in_y = s.Let("in_y", y_ * I(c_.step_h) - I(c_.top));
    PrimExpr above = I(0), taps = I(c_.window_h);
    if (c_.top || c_.bottom) {
      // The rows of the window that lie in the image.
      auto first_from = [&](const PrimExpr& y) { return floordiv(y - in_y + I(c_.dilation_h - 1), I(c_.dilation_h)); };
      above = s.Let("above", max(first_from(I(0)), I(0)));
      taps = s.Let("taps", max(min(first_from(c_.in_height), I(c_.window_h)) - above, I(0)));
    }
    const PrimExpr in = s.Let("in", (plane_ * c_.in_height + in_y) * row_);
    out_ = s.Let("out", (plane_ * c_.height + y_) * c_.width);
    Buffer acc = Buffer::Make({I(columns * lanes_)}, dtype_, "acc", "local");
    auto at = [&](int64_t p) { return Span(I(p * lanes_), lanes_); };
    Steps body;
    for (int64_t p = 0; p < columns; ++p) body.Add(Store(acc, at(p), Vector(fold_.start)));
    body.Add(Loop("kh", taps, [&](const PrimExpr& tap) {
      Steps one;
      const PrimExpr kh = one.Let("kh", above + tap), row = one.Let("row", in + kh * I(c_.dilation_h) * row_);
      auto column = [&](const PrimExpr& kw) {
        Steps k;
        const PrimExpr w = fold_.weight ? k.Let("w", fold_.weight(block_, kh, kw)) : PrimExpr();
        for (int64_t p = 0; p < columns; ++p) {
          k.Add(Store(acc, at(p), fold_.add(tir::BufferLoad(acc, {at(p)}), Element(row, r, p, columns, kw), w)));
        }
        return k.Done();
      };
      if (plain_ && fold_.any_order) {
        const PrimExpr joined =
            joined_.defined() ? Read(joined_, (in_y + kh - joined_from_) * I(lanes_), lanes_) : InPairs(row, r);
        one.Add(Store(acc, at(0), fold_.add(tir::BufferLoad(acc, {at(0)}), joined, PrimExpr())));
      } else if (c_.window_w > kWidestWindow) {
        one.Add(Loop("kw", I(c_.window_w), column));
      } else {
        for (int64_t kw = 0; kw < c_.window_w; ++kw) one.Add(column(I(kw)));
      }
      return one.Done();
    }));
    if (fold_.result) {
      const PrimExpr rows = body.Let("rows", Vector(cast(dtype_, taps)));
      for (int64_t p = 0; p < columns; ++p) {
        const PrimExpr sum = tir::BufferLoad(acc, {at(p)});
        body.Add(Store(acc, at(p), fold_.result(sum, r.count[static_cast<size_t>(p)] * rows)));
      }
    }
    body.Add(Finish(acc, x, r, columns));
    s.Add(With(acc, body.Done()));
    return s.Done();
  }

  Stmt Finish(const Buffer& acc, const PrimExpr& x, const Reads& r, int64_t columns) {
    auto store = [&](const PrimExpr& t, const Buffer& from) {
      Site site;
      site.at = {image_, block_};
      if (c_.rows) site.at.push_back(y_);
      site.at.push_back(x + t);
      if (!plain_) site.at.push_back(I(0));
      site.offset = (out_ + x + t) * I(c_.lanes);
      site.lanes = lanes_, site.mask = r.stored;
      return g_.Finish(site, Read(from, t * I(lanes_), lanes_));
    };
    Steps s;
    if (g_.epilogue_size() * columns <= 130 || columns == 1) {
      for (int64_t t = 0; t < columns; ++t) s.Add(store(I(t), acc));
      return s.Done();
    }
    // A long epilogue is a loop over a copy of the tile in memory.
    Buffer tile = Buffer::Make({I(columns * lanes_)}, dtype_, "tile");
    for (int64_t t = 0; t < columns; ++t)
      s.Add(Store(tile, Span(I(t * lanes_), lanes_), Read(acc, I(t * lanes_), lanes_)));
    s.Add(Loop("column", I(columns), [&](const PrimExpr& t) { return store(t, tile); }));
    return With(tile, s.Done());
  }

  const Group& g_;
  const Windows& c_;
  const WindowFold& fold_;
  DataType dtype_;
  bool plain_;
  int64_t lanes_;  // of a vector
  ForKind kind_;
  int64_t widest_ = 1, wanted_ = 1;  // tile; chunks of a plane
  PrimExpr row_, per_, chunks_;      // elements of a row of the input; rows of a chunk, chunks of a plane
  PrimExpr tiles_, narrow_, wide_;   // of a row; the narrower width, and how many are wider by one
  PrimExpr plane_, image_, block_;   // of a unit
  Buffer joined_;                    // rows of the image within a band, and the first of them
  PrimExpr joined_from_;
  PrimExpr begin_, lines_, y_, out_;  // of a band; of a row of the result
};

}  // namespace

Stmt WriteWindows(const Group& g, const Windows& w, const WindowFold& fold, const Machine& mc) {
  return WindowWriter(g, w, fold, mc).Write();
}

}  // namespace baton::relay::kernel
