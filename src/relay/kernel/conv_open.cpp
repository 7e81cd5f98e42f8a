// SPDX-License-Identifier: Apache-2.0
// Convolutions over images in blocks of channels whose height and width are known at run time alone. A register tile is
// a run of neighbouring pixels of the result, across the ends of rows, by some blocks of output channels: the places of
// its pixels in the input are values. The last tile of an image overlaps the one before it. Sums are those of
// conv_blocked.cpp, in its order.
#include <baton/relay/op.h>
#include <baton/relay/op/nn.h>
#include <baton/topi/layout.h>
#include <tir/parallel_if.h>

#include <algorithm>

#include "conv.h"
#include "plan.h"

namespace baton::relay::kernel {
namespace {

struct OpenConv {
  PrimExpr images, in_height, in_width, height, width;
  int64_t in_blocks = 1, in_lanes = 1, out_blocks = 1, lanes = 1;
  int64_t window_h = 1, window_w = 1, step_h = 1, step_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  bool rows = true;        ///< images have a dimension of rows
  bool depthwise = false;  ///< see conv_depthwise.cpp
  int64_t terms = 1;       ///< input channels of a step: 4 of bytes, 2 of bfloat16
  bool padded() const { return top || left || bottom || right; }
  /// The result's pixels are those of the input.
  bool flat() const { return !padded() && window_h * window_w * step_h * step_w == 1; }
};

bool IsLayout(const String& layout, std::string_view whole, std::string_view parts) {
  std::vector<topi::LayoutDim> d = topi::ParseLayout(layout.view(), "nn.contrib_conv2d_NCHWc");
  if (d.size() != whole.size() + parts.size()) return false;
  for (size_t i = 0; i < d.size(); ++i) {
    const bool part = i >= whole.size();
    if (d[i].axis != (part ? parts[i - whole.size()] : whole[i]) || (!part && d[i].factor)) return false;
  }
  return true;
}

template <int N>
bool ReadOpenConv(const Group& g, const ConvAttrs<N>& a, OpenConv* c) {
  constexpr const char *kImages = N == 1 ? "NCW" : "NCHW", *kWeights = N == 1 ? "OIW" : "OIHW";
  const int64_t terms = TermsOf(g);
  const bool dots = terms > 1 && IsLayout(a.kernel_layout, kWeights, "OI");
  if (!IsLayout(a.data_layout, kImages, "C") || (!dots && !IsLayout(a.kernel_layout, kWeights, "IO"))) return false;
  if (!a.out_layout.empty() && !IsLayout(a.out_layout, kImages, "C")) return false;
  const Array<PrimExpr>&x = g.arg_extents(0), &w = g.arg_extents(1), &o = g.out_extents();
  c->rows = N > 1;
  c->images = x[0], c->in_height = N > 1 ? x[2] : I(1), c->in_width = x[N + 1];
  c->height = N > 1 ? o[2] : I(1), c->width = o[N + 1];
  c->in_blocks = Known(x[1]), c->in_lanes = Known(x[N + 2]);
  c->out_blocks = Known(o[1]), c->lanes = Known(o[N + 2]);
  c->window_h = N > 1 ? Known(w[2]) : 1, c->window_w = Known(w[N + 1]);
  for (int64_t d : {c->in_blocks, c->in_lanes, c->out_blocks, c->lanes, c->window_h, c->window_w}) {
    if (d < 1) return false;
  }
  auto number = [](const Array<int64_t>& v, int64_t i) { return v.size() > 1 ? v[i] : v[0]; };
  c->step_w = number(a.strides, N - 1), c->dilation_w = number(a.dilation, N - 1);
  const bool both = a.padding.size() == 2 * N;
  c->left = number(a.padding, N - 1), c->right = both ? a.padding[2 * N - 1] : c->left;
  if constexpr (N > 1) {
    c->step_h = number(a.strides, 0), c->dilation_h = number(a.dilation, 0);
    c->top = number(a.padding, 0), c->bottom = both ? a.padding[2] : c->top;
  }
  if (dots) {
    c->terms = terms;
    return a.groups == 1 && c->in_lanes % terms == 0 && Known(w[0]) == c->out_blocks &&
           Known(w[1]) * terms == c->in_blocks * c->in_lanes && Known(w[N + 2]) == c->lanes && Known(w[N + 3]) == terms;
  }
  const int64_t fan = Known(w[1]), in_part = Known(w[N + 2]), out_part = Known(w[N + 3]);
  c->depthwise = a.groups > 1 && fan == 1 && in_part == 1;
  if (c->depthwise)
    return a.groups == c->in_blocks * c->in_lanes && c->in_lanes == c->lanes && c->in_blocks == c->out_blocks &&
           out_part == c->lanes && Known(w[0]) == c->out_blocks;
  return a.groups == 1 && Known(w[0]) == c->out_blocks && fan == c->in_blocks && in_part == c->in_lanes &&
         out_part == c->lanes;
}

class OpenConvWriter {
 public:
  OpenConvWriter(const Group& g, OpenConv c, const Machine& mc)
      : g_(g), c_(std::move(c)), mc_(mc), dtype_(g.anchor_dtype()), input_(g.arg(0)), weight_(g.arg(1)) {
    const bool threes = c_.out_blocks % 2 != 0 && c_.out_blocks % 3 == 0;
    vectors_ = threes ? 3 : std::min<int64_t>(2, c_.out_blocks);
    // A call takes the width that wastes the least: tiles at the end overlap others. More of them save
    // a few hundredths of the time, and each is separate code.
    if (mc.registers == 32)
      widths_ = threes ? std::vector<int64_t>{9, 7} : std::vector<int64_t>{14, 10};
    else
      widths_ = threes ? std::vector<int64_t>{4, 3} : std::vector<int64_t>{6, 5};
  }

  Stmt Write() {
    Steps steps;
    auto hold = [&](const char* name, const PrimExpr& v) { return Known(v) >= 0 ? v : steps.Let(name, v); };
    rows_ = hold("rows", c_.in_height + I(c_.top + c_.bottom));
    row_ = hold("row", (c_.in_width + I(c_.left + c_.right)) * I(c_.in_lanes));
    plane_ = hold("plane", rows_ * row_);
    width_ = hold("width", max(c_.width, I(1)));
    pixels_ = hold("pixels", c_.height * c_.width);
    columns_ = I(widths_[0]);
    PrimExpr cost = Cost(pixels_, widths_[0]);
    for (size_t i = 1; i < widths_.size(); ++i) {
      PrimExpr other = Cost(pixels_, widths_[i]);
      columns_ = tir::Select(other < cost, I(widths_[i]), columns_);
      cost = min(other, cost);
    }
    columns_ = hold("columns", columns_);
    tiles_ = hold("tiles", truncdiv(pixels_ + columns_ - I(1), columns_));
    groups_ = CeilDiv(c_.out_blocks, vectors_);
    // Pixels are shared out too where groups of channels are few.
    const int64_t wanted = groups_ % mc_.cores == 0 ? 1 : CeilDiv(8 * mc_.cores, groups_);
    per_ = hold("per", max(floordiv(tiles_ + I(wanted - 1), I(wanted)), I(1)));
    chunks_ = hold("chunks", truncdiv(tiles_ + per_ - I(1), per_));
    const int64_t terms = c_.in_blocks * c_.in_lanes * c_.window_h * c_.window_w;
    worth_ = I(static_cast<int64_t>(kParallelFlops / 2)) < pixels_ * I(c_.out_blocks * c_.lanes * terms);
    if (!c_.padded()) {
      steps.Add(EachImage(c_.images, mc_, -1, [&](const PrimExpr& image) {
        in_image_ = image_ = image;
        return Units();
      }));
      return steps.Done();
    }
    Buffer padded = Buffer::Make({I(c_.in_blocks) * plane_}, input_->dtype, "padded");
    Stmt each = EachImage(c_.images, mc_, -1, [&](const PrimExpr& image) {
      Steps s;
      image_ = image, in_image_ = I(0), input_ = g_.arg(0);
      s.Add(Pad(padded));
      input_ = padded;
      s.Add(Units());
      return s.Done();
    });
    if (!each.defined()) return Effect(I(0));
    steps.Add(With(padded, each));
    return steps.Done();
  }

 private:
  Stmt Parallel(const Stmt& loop) const { return loop.defined() ? tir::ParallelIf(worth_, loop) : loop; }
  ForKind Kind() const { return mc_.cores > 1 ? ForKind::kParallel : ForKind::kSerial; }

  /// Of `pixels` in tiles of `columns`; too many for an image that is smaller than such a tile.
  static PrimExpr Cost(const PrimExpr& pixels, int64_t columns) {
    PrimExpr tiles = floordiv(pixels + I(columns - 1), I(columns));
    return tir::Select(I(columns) <= pixels, tiles * I(columns + 1), pixels * I(columns * 8));
  }

  /// `count` elements from `at` become value(offset, lanes).
  template <class F>
  Stmt Fill(const Buffer& b, const PrimExpr& at, const PrimExpr& count, F value) {
    constexpr int64_t kWide = 16;
    Steps s;
    PrimExpr whole = floordiv(count, I(kWide));
    s.Add(Loop("x", whole, [&](const PrimExpr& i) {
      return Store(b, Span(at + i * I(kWide), kWide), value(i * I(kWide), kWide));
    }));
    s.Add(Loop("x", count - whole * I(kWide), [&](const PrimExpr& i) {
      PrimExpr x = whole * I(kWide) + i;
      return Store(b, at + x, value(x, 1));
    }));
    return s.Done();
  }

  /// The image with zeros around it.
  Stmt Pad(const Buffer& padded) {
    int64_t il = c_.in_lanes;
    auto zero = [&](const PrimExpr&, int64_t lanes) {
      return tir::broadcast_to(tir::make_const(padded->dtype, 0), static_cast<int>(lanes));
    };
    auto line = [&](const PrimExpr& index) {
      Steps s;
      PrimExpr block = s.Let("block", truncdiv(index, rows_)), y = s.Let("y", index - block * rows_ - I(c_.top));
      PrimExpr to = s.Let("to", index * row_), count = s.Let("count", c_.in_width * I(il));
      PrimExpr from = s.Let("from", ((image_ * I(c_.in_blocks) + block) * c_.in_height + y) * count);
      Steps inside;
      if (c_.left) inside.Add(Fill(padded, to, I(c_.left * il), zero));
      inside.Add(Fill(padded, to + I(c_.left * il), count,
                      [&](const PrimExpr& i, int64_t lanes) { return Read(input_, from + i, lanes); }));
      if (c_.right) inside.Add(Fill(padded, to + I(c_.left * il) + count, I(c_.right * il), zero));
      s.Add(If(I(0) <= y && y < c_.in_height, inside.Done(), Fill(padded, to, row_, zero)));
      return s.Done();
    };
    return Parallel(Loop("line", I(c_.in_blocks) * rows_, line, Kind()));
  }

  Stmt Units() {
    return Parallel(Loop(
        "unit", chunks_ * I(groups_),
        [&](const PrimExpr& unit) {
          Steps s;
          PrimExpr group = groups_ == 1 ? I(0) : s.Let("group", floormod(unit, I(groups_)));
          PrimExpr chunk = groups_ == 1 ? unit : s.Let("chunk", floordiv(unit, I(groups_)));
          int64_t full = c_.out_blocks / vectors_, tail = c_.out_blocks % vectors_;
          Stmt a = full ? Chunk(chunk, group, vectors_) : Stmt(), b = tail ? Chunk(chunk, group, tail) : Stmt();
          s.Add(a.defined() && b.defined() ? If(group < I(full), a, b) : a.defined() ? a : b);
          return s.Done();
        },
        Kind()));
  }

  Stmt Chunk(const PrimExpr& chunk, const PrimExpr& group, int64_t vectors) {
    Steps s;
    block0_ = s.Let("block", group * I(vectors_));
    PrimExpr first = s.Let("first", chunk * per_), count = min(per_, tiles_ - first);
    auto tiles = [&](int64_t columns) {
      return Loop("tile", count, [&](const PrimExpr& t) {
        return Tile(min((first + t) * I(columns), pixels_ - I(columns)), columns, vectors);
      });
    };
    // Remainders below any tile are done pixel by pixel.
    Stmt all = Loop("pixel", pixels_, [&](const PrimExpr& p) { return Tile(p, 1, vectors); });
    all = If(I(widths_.back()) <= pixels_, tiles(widths_.back()), all);
    for (size_t i = widths_.size() - 1; i-- > 0;)
      all = If(equal(columns_, I(widths_[i])) && I(widths_[i]) <= pixels_, tiles(widths_[i]), all);
    s.Add(all);
    return s.Done();
  }

  /// The pixels from `first` on.
  Stmt Tile(const PrimExpr& first, int64_t columns, int64_t vectors) {
    Steps s;
    const int64_t lanes = c_.lanes, il = c_.in_lanes;
    PrimExpr p0 = s.Let("p0", first), in0 = s.Let("in0", in_image_ * I(c_.in_blocks) * plane_);
    const int64_t weight_block = c_.in_blocks * il * c_.window_h * c_.window_w * lanes;
    PrimExpr w0 = s.Let("w0", block0_ * I(weight_block));
    PrimExpr out0 = s.Let("out0", ((image_ * I(c_.out_blocks) + block0_) * pixels_ + p0) * I(lanes));
    auto of_places = [&](const std::vector<PrimExpr>& from) {
      Buffer acc = Buffer::Make({I(columns * vectors * lanes)}, dtype_, "acc", "local");
      Steps body;
      PrimExpr zero = tir::broadcast_to(tir::make_const(dtype_, 0), static_cast<int>(lanes));
      for (int64_t i = 0; i < columns * vectors; ++i) body.Add(Store(acc, Span(I(i * lanes), lanes), zero));
      body.Add(Sums(acc, in0, w0, from, vectors, weight_block));
      body.Add(Finish(acc, p0, out0, columns, vectors));
      return With(acc, body.Done());
    };
    // Pixels side by side, from a place in the input on.
    auto in_a_row = [&](const PrimExpr& from0) {
      std::vector<PrimExpr> from;
      for (int64_t i = 0; i < columns; ++i) from.push_back(from0 + I(i * c_.step_w * il));
      return of_places(from);
    };
    if (c_.flat()) {
      s.Add(in_a_row(p0 * I(il)));
      return s.Done();
    }
    if (Known(c_.height) == 1) {  // no run goes beyond a row
      s.Add(in_a_row(p0 * I(c_.step_w * il)));
      return s.Done();
    }
    const PrimExpr y0 = s.Let("y", truncdiv(p0, width_)), x0 = s.Let("x", p0 - y0 * width_);
    auto place = [&](const PrimExpr& y, const PrimExpr& x) { return y * I(c_.step_h) * row_ + x * I(c_.step_w * il); };
    Steps across;
    PrimExpr y = y0, x = x0;
    std::vector<PrimExpr> from;
    for (int64_t i = 0; i < columns; ++i) {
      from.push_back(across.Let("from", place(y, x)));
      if (i + 1 == columns) break;
      PrimExpr end = across.Let("end", equal(x + I(1), width_));
      y = across.Let("y", tir::Select(end, y + I(1), y));
      x = across.Let("x", tir::Select(end, I(0), x + I(1)));
    }
    across.Add(of_places(from));
    // Most runs end within their row: one address and literal distances, where others have an address a pixel.
    Steps within;
    if (columns > 1) within.Add(in_a_row(within.Let("from", place(y0, x0))));
    s.Add(columns > 1 ? If(x0 + I(columns) <= width_, within.Done(), across.Done()) : across.Done());
    return s.Done();
  }

  Stmt Sums(const Buffer& acc, const PrimExpr& in0, const PrimExpr& w0, const std::vector<PrimExpr>& from,
            int64_t vectors, int64_t weight_block) {
    const int64_t lanes = c_.lanes, il = c_.in_lanes, fmas = static_cast<int64_t>(from.size()) * vectors;
    const int64_t steps = il / c_.terms, line = lanes * c_.terms, window = c_.window_h * c_.window_w;
    int64_t u = fmas >= 16 ? 2 : 4;
    while (steps % u) --u;
    if (steps <= 4) u = steps;
    // One by one: channels of a block within the window; else the window within the channels of a step.
    const int64_t next = c_.terms == 1 ? line : window * line;
    auto tap = [&](const PrimExpr& ic, const PrimExpr& kh, const PrimExpr& kw) {
      Steps t;
      PrimExpr in = t.Let("in", in0 + ic * plane_ + kh * I(c_.dilation_h) * row_ + kw * I(c_.dilation_w * il));
      const PrimExpr at_window = kh * I(c_.window_w) + kw;
      PrimExpr w = t.Let("w", w0 + (c_.terms == 1 ? (ic * I(window) + at_window) * I(steps * line)
                                                  : (ic * I(steps * window) + at_window) * I(line)));
      t.Add(Loop("i", I(steps / u), [&](const PrimExpr& i) {
        Steps k;
        for (int64_t j = 0; j < u; ++j) {
          PrimExpr step = i * I(u) + I(j);
          std::vector<PrimExpr> ws;
          for (int64_t v = 0; v < vectors; ++v) {
            PrimExpr x = Read(weight_, w + step * I(next) + I(v * weight_block), line);
            ws.push_back(k.Let("w", c_.terms == 1 ? As(dtype_, x) : x));
          }
          for (size_t p = 0; p < from.size(); ++p) {
            PrimExpr b = k.Let("x", Repeat(input_, in + step * I(c_.terms) + from[p], c_.terms, lanes));
            for (int64_t v = 0; v < vectors; ++v) {
              PrimExpr at = I((static_cast<int64_t>(p) * vectors + v) * lanes);
              k.Add(Store(acc, Span(at, lanes),
                          AddTerms(mc_.fma, c_.terms, b, ws[static_cast<size_t>(v)], Read(acc, at, lanes))));
            }
          }
        }
        return k.Done();
      }));
      return t.Done();
    };
    return Loop("ic", I(c_.in_blocks), [&](const PrimExpr& ic) {
      return Loop("kh", I(c_.window_h), [&](const PrimExpr& kh) {
        return Loop("kw", I(c_.window_w), [&](const PrimExpr& kw) { return tap(ic, kh, kw); });
      });
    });
  }

  Stmt Finish(const Buffer& acc, const PrimExpr& p0, const PrimExpr& out0, int64_t columns, int64_t vectors) {
    const int64_t lanes = c_.lanes;
    auto store = [&](const PrimExpr& t, int64_t v, PrimExpr value) {
      Site site;
      PrimExpr p = p0 + t;
      site.at = {image_, block0_ + I(v)};
      if (c_.rows) site.at.push_back(truncdiv(p, width_));
      site.at.push_back(c_.rows ? truncmod(p, width_) : p);
      site.at.push_back(I(0));
      site.offset = out0 + (t + I(v) * pixels_) * I(lanes);
      site.lanes = lanes;
      return g_.Finish(site, std::move(value));
    };
    auto read = [&](const Buffer& b, const PrimExpr& t, int64_t v) {
      return Read(b, t * I(vectors * lanes) + I(v * lanes), lanes);
    };
    Steps s;
    if (g_.epilogue_size() * columns * vectors <= 130 || columns == 1) {
      for (int64_t t = 0; t < columns; ++t) {
        for (int64_t v = 0; v < vectors; ++v) s.Add(store(I(t), v, read(acc, I(t), v)));
      }
      return s.Done();
    }
    // A long epilogue is a loop over a copy of the tile in memory.
    Buffer tile = Buffer::Make({I(columns * vectors * lanes)}, dtype_, "tile");
    for (int64_t i = 0; i < columns * vectors; ++i)
      s.Add(Store(tile, Span(I(i * lanes), lanes), Read(acc, I(i * lanes), lanes)));
    s.Add(Loop("column", I(columns), [&](const PrimExpr& t) {
      Steps line;
      for (int64_t v = 0; v < vectors; ++v) line.Add(store(t, v, read(tile, t, v)));
      return line.Done();
    }));
    return With(tile, s.Done());
  }

  const Group& g_;
  OpenConv c_;
  Machine mc_;
  DataType dtype_;
  Buffer input_, weight_;
  int64_t vectors_ = 1, groups_ = 1;           // of a tile; of output channels
  std::vector<int64_t> widths_;                // of tiles, widest first
  PrimExpr rows_, row_, plane_;                // of the input as it is read; the last two in elements
  PrimExpr width_, pixels_, columns_, tiles_;  // of the result; of a tile; tiles of an image
  PrimExpr per_, chunks_, worth_;
  PrimExpr image_, in_image_, block0_;
};

}  // namespace

template <int N>
Stmt WriteOpenConv(const Group& g, const ConvAttrs<N>& a, const Machine& mc) {
  OpenConv c;
  if (g.arg_extents(0).size() != N + 3 || g.arg_extents(1).size() != N + 4 || g.out_extents().size() != N + 3)
    return Stmt();
  if (!ReadOpenConv(g, a, &c) || c.lanes > mc.lanes || (c.lanes & (c.lanes - 1))) return Stmt();
  // Floats are added one by one, narrow numbers in pairs or fours; bytes one by one where each channel is its own sum.
  if (TermsOf(g) == 1 ? c.terms != 1 : c.terms == 1 && !(c.depthwise && IsDot(g))) return Stmt();
  if (!c.depthwise) return OpenConvWriter(g, c, mc).Write();
  Windows d;
  d.images = c.images, d.in_height = c.in_height, d.in_width = c.in_width, d.height = c.height, d.width = c.width;
  d.blocks = c.out_blocks, d.lanes = c.lanes, d.window_h = c.window_h, d.window_w = c.window_w;
  d.step_h = c.step_h, d.step_w = c.step_w, d.dilation_h = c.dilation_h, d.dilation_w = c.dilation_w;
  d.top = c.top, d.left = c.left, d.bottom = c.bottom, d.right = c.right;
  d.rows = c.rows;
  return WriteDepthwise(g, d, mc);
}
template Stmt WriteOpenConv<1>(const Group&, const ConvAttrs<1>&, const Machine&);
template Stmt WriteOpenConv<2>(const Group&, const ConvAttrs<2>&, const Machine&);

}  // namespace baton::relay::kernel
