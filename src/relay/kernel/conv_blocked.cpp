// SPDX-License-Identifier: Apache-2.0
// Convolutions over images in blocks of channels (NCHW16c, NCW16c, NCDHW16c), in groups or not. A register tile is some
// neighbouring elements of the image by some blocks of output channels; each step of the sum broadcasts an input
// element to a vector of weights. Each output adds in one order: blocks of input channels, rows and columns of the
// window, channels of the block.
#include <baton/relay/op.h>
#include <baton/relay/op/nn.h>
#include <baton/topi/layout.h>

#include <algorithm>
#include <utility>

#include "conv.h"
#include "generators.h"
#include "plan.h"

namespace baton::relay::kernel {
namespace {

/// A convolution over volumes of rows of pixels; one over fewer dimensions has extents of 1.
struct Conv {
  PrimExpr images;  ///< where their number is open: the kernel is one for `batch` = 1, run for each
  int64_t batch, groups = 1;
  int64_t in_blocks, in_lanes, in_depth = 1, in_height = 1, in_width = 1;  ///< blocks of channels: a group's
  int64_t out_blocks, lanes, depth = 1, height = 1, width = 1;
  int64_t window_d = 1, window_h = 1, window_w = 1, step_d = 1, step_h = 1, step_w = 1;
  int64_t dilation_d = 1, dilation_h = 1, dilation_w = 1, front = 0, top = 0, left = 0;
  int64_t rank = 2;        ///< spatial dimensions
  bool in_columns = true;  ///< the only spatial dimension is the width, else the height
  bool depthwise = false;
  int64_t terms =
      1;  ///< input channels that one step of the sum takes: 4 of bytes (tir::dot4), 2 of bfloat16 (tir::dot2)
  /// Planes, rows and columns of the input that the window touches, padding included.
  int64_t padded_depth() const { return (depth - 1) * step_d + (window_d - 1) * dilation_d + 1; }
  int64_t padded_height() const { return (height - 1) * step_h + (window_h - 1) * dilation_h + 1; }
  int64_t padded_width() const { return (width - 1) * step_w + (window_w - 1) * dilation_w + 1; }
  bool needs_padding() const {
    return front > 0 || top > 0 || left > 0 || padded_depth() > in_depth || padded_height() > in_height ||
           padded_width() > in_width;
  }
  int64_t all_in() const { return groups * in_blocks; }
  int64_t all_out() const { return groups * out_blocks; }
  int64_t pixels() const { return depth * height * width; }
  int64_t window() const { return window_d * window_h * window_w; }
};

/// Reads layouts "NCHW<b>c", kernel "OIHW<i>i<o>o" and those of other dimensions; false for others.
template <int N>
bool ReadConv(const Group& g, const ConvAttrs<N>& a, Conv* c) {
  auto split = [](const String& layout, std::string_view whole, size_t parts) {
    std::vector<topi::LayoutDim> d = topi::ParseLayout(layout.view(), "nn.contrib_conv2d_NCHWc");
    if (d.size() != whole.size() + parts) return false;
    for (size_t i = 0; i < whole.size(); ++i) {
      if (d[i].axis != whole[i] || d[i].factor) return false;
    }
    return true;
  };
  const char *images = ForSpace<N>("NCW", "NCHW", "NCDHW"), *weights = ForSpace<N>("OIW", "OIHW", "OIDHW");
  String out_layout = a.out_layout.empty() ? a.data_layout : a.out_layout;
  if (!split(a.data_layout, images, 1) || !split(out_layout, images, 1) || !split(a.kernel_layout, weights, 2))
    return false;
  std::vector<topi::LayoutDim> k = topi::ParseLayout(a.kernel_layout.view(), "");
  const int64_t terms = TermsOf(g);
  const bool dots = terms > 1 && k[N + 2].axis == 'O' && k[N + 3].axis == 'I' && k[N + 3].factor == terms;
  if (!dots && (k[N + 2].axis != 'I' || k[N + 3].axis != 'O')) return false;
  std::vector<int64_t> x, w, o;
  if (!ShapesOfImages(g, &x, &w, &o, &c->images)) return false;
  if (x.size() != N + 3 || w.size() != N + 4 || o.size() != N + 3) return false;
  c->rank = N;
  c->batch = x[0], c->in_lanes = x[N + 2], c->lanes = o[N + 2];
  int64_t in_blocks = x[1], out_blocks = o[1];
  if (a.groups < 1) return false;
  c->depthwise = a.groups > 1 && w[1] == 1 && w[N + 2] == 1;
  // A row of pixels as a column lets the tile cut it anywhere; where each channel stands alone rows are what is cut.
  c->in_columns = N > 1 || c->depthwise;
  for (int64_t d = 0; d < N; ++d) {
    auto number = [&](const Array<int64_t>& v) { return v.size() > 1 ? v[d] : v[0]; };
    int64_t in = x[d + 2], out = o[d + 2], window = w[d + 2], step = number(a.strides), dilation = number(a.dilation),
            before = number(a.padding);
    switch (c->in_columns ? N - 1 - d : 1) {
      case 0:
        c->in_width = in, c->width = out, c->window_w = window, c->step_w = step, c->dilation_w = dilation;
        c->left = before;
        break;
      case 1:
        c->in_height = in, c->height = out, c->window_h = window, c->step_h = step, c->dilation_h = dilation;
        c->top = before;
        break;
      default:
        c->in_depth = in, c->depth = out, c->window_d = window, c->step_d = step, c->dilation_d = dilation;
        c->front = before;
    }
  }
  if (c->depthwise) {
    c->in_blocks = in_blocks, c->out_blocks = out_blocks;
    return N < 3 && a.groups == in_blocks * c->in_lanes && c->in_lanes == c->lanes && in_blocks == out_blocks &&
           w[N + 3] == c->lanes && w[0] == out_blocks;
  }
  if (in_blocks % a.groups || out_blocks % a.groups) return false;
  c->groups = a.groups, c->in_blocks = in_blocks / a.groups, c->out_blocks = out_blocks / a.groups;
  if (dots) {
    c->terms = terms;
    return c->in_lanes % terms == 0 && w[0] == out_blocks && w[1] * terms == c->in_blocks * c->in_lanes &&
           w[N + 2] == c->lanes;
  }
  return w[0] == out_blocks && w[1] == c->in_blocks && w[N + 2] == c->in_lanes && w[N + 3] == c->lanes;
}

class ConvWriter {
 public:
  ConvWriter(const Group& g, Conv c, const Machine& mc)
      : g_(g), c_(c), mc_(mc), dtype_(g.anchor_dtype()), fma_(mc.fma), input_(g.arg(0)), weight_(g.arg(1)) {
    pad_ = c_.needs_padding();
    row_ = (pad_ ? c_.padded_width() : c_.in_width) * c_.in_lanes;
    rows_ = pad_ ? c_.padded_height() : c_.in_height;
    planes_ = pad_ ? c_.padded_depth() : c_.in_depth;
    slices_ = c_.depth;
    ConvShape s;
    s.out_blocks = c_.out_blocks, s.height = c_.height, s.width = c_.width;
    const int64_t products = c_.in_blocks * c_.in_lanes * c_.window();
    s.steps = products / c_.terms;
    s.input_bytes =
        c_.batch * c_.all_in() * c_.in_lanes * c_.in_depth * c_.in_height * c_.in_width * input_->dtype.bytes();
    s.weight_bytes = products * c_.all_out() * c_.lanes * weight_->dtype.bytes();
    s.flat = !pad_ && c_.window() == 1 && c_.step_d == 1 && c_.step_h == 1 && c_.step_w == 1;
    if (s.flat) s.width = c_.pixels(), s.height = 1, slices_ = 1;
    s.batch = items();
    plan_ = PlanConv(mc, s);
    flat_ = s.flat;
    height_ = flat_ ? 1 : c_.height;
    width_ = flat_ ? c_.pixels() : c_.width;
  }

  Stmt Write() {
    if (c_.batch * c_.all_out() * c_.pixels() == 0) return Effect(I(0));
    if (!c_.images.defined()) return OneRun();
    const double products = static_cast<double>(c_.in_blocks * c_.in_lanes * c_.window());
    const double flops = 2 * products * static_cast<double>(c_.all_out() * c_.lanes * c_.pixels());
    return EachImage(c_.images, mc_, flops, [&](const PrimExpr& image) {
      run_image_ = image;
      return OneRun();
    });
  }

 private:
  Stmt OneRun() {
    Steps steps;
    Buffer padded;
    if (pad_) {
      padded = Buffer::Make({I(c_.batch * c_.all_in() * planes_ * rows_ * row_)}, input_->dtype, "padded");
      steps.Add(Pad(padded));
      input_ = padded;
    }
    steps.Add(Units());
    input_ = g_.arg(0);
    return pad_ ? With(padded, steps.Done()) : steps.Done();
  }

  /// Images of a group each, or planes of them, that units are parts of.
  int64_t items() const { return c_.batch * c_.groups * slices_; }
  ForKind Kind() const { return plan_.parallel ? ForKind::kParallel : ForKind::kSerial; }

  /// count elements from `at` become value(offset, lanes, mask).
  template <class F>
  Stmt Span_(const Buffer& b, const PrimExpr& at, int64_t count, F value) {
    constexpr int64_t kWide = 16;
    int64_t wide = std::min<int64_t>(kWide, c_.lanes * 2);
    Steps s;
    s.Add(Loop("x", I(count / wide), [&](const PrimExpr& i) {
      return Store(b, kernel::Span(at + i * I(wide), wide), value(i * I(wide), wide));
    }));
    for (int64_t i = count / wide * wide; i < count; ++i) s.Add(Store(b, at + I(i), value(I(i), 1)));
    return s.Done();
  }

  /// The input with zeros around it, as far as windows reach.
  Stmt Pad(const Buffer& padded) {
    int64_t il = c_.in_lanes, columns = row_ / il;
    int64_t left = std::min(c_.left, columns), copied = std::max<int64_t>(0, std::min(c_.in_width, columns - left)),
            right = columns - left - copied;
    auto zero = [&](const PrimExpr&, int64_t lanes) {
      return tir::broadcast_to(tir::make_const(padded->dtype, 0), static_cast<int>(lanes));
    };
    return Loop(
        "plane", I(c_.batch * c_.all_in() * planes_ * rows_),
        [&](const PrimExpr& line) {
          Steps s;
          PrimExpr at = s.Let("to", line * I(row_)), y = s.Let("y", floormod(line, I(rows_)) - I(c_.top));
          PrimExpr plane = floordiv(line, I(rows_)) + run_image_ * I(c_.all_in() * planes_), inside_volume;
          if (planes_ > 1 || c_.front > 0) {
            PrimExpr z = s.Let("z", floormod(plane, I(planes_)) - I(c_.front));
            plane = floordiv(plane, I(planes_)) * I(c_.in_depth) + z;
            inside_volume = I(0) <= z && z < I(c_.in_depth);
          }
          PrimExpr from = s.Let("from", (plane * I(c_.in_height) + y) * I(c_.in_width * il));
          Steps inside;
          if (left) inside.Add(Span_(padded, at, left * il, zero));
          inside.Add(Span_(padded, at + I(left * il), copied * il,
                           [&](const PrimExpr& i, int64_t lanes) { return Read(input_, from + i, lanes); }));
          if (right) inside.Add(Span_(padded, at + I((left + copied) * il), right * il, zero));
          PrimExpr there = I(0) <= y && y < I(c_.in_height);
          if (inside_volume.defined()) there = inside_volume && there;
          s.Add(If(there, inside.Done(), Span_(padded, at, row_, zero)));
          return s.Done();
        },
        Kind());
  }

  Stmt Units() {
    int64_t tiles = flat_ ? CeilDiv(width_, plan_.columns) : CeilDiv(height_, plan_.rows);
    chunks_ = CeilDiv(tiles, plan_.chunk);
    groups_ = CeilDiv(c_.out_blocks, plan_.vectors);
    return Loop(
        "unit", I(items() * chunks_ * groups_),
        [&](PrimExpr unit) {
          Steps s;
          PrimExpr chunk = I(0), group = I(0), image = I(0);
          // The faster index comes first.
          auto take = [&](const char* name, int64_t extent, bool last) {
            if (extent == 1) return I(0);
            if (last) return unit;
            PrimExpr v = s.Let(name, floormod(unit, I(extent)));
            unit = floordiv(unit, I(extent));
            return v;
          };
          if (plan_.channels_first) {
            chunk = take("chunk", chunks_, items() * groups_ == 1);
            image = take("image", items(), groups_ == 1);
            group = take("group", groups_, true);
          } else {
            group = take("group", groups_, items() * chunks_ == 1);
            chunk = take("chunk", chunks_, items() == 1);
            image = take("image", items(), true);
          }
          auto part = [&](const char* name, int64_t extent, int64_t rest) {
            if (extent == 1) return I(0);
            if (rest == 1) return std::exchange(image, I(0));
            PrimExpr v = s.Let(name, floormod(image, I(extent)));
            image = s.Let("item", floordiv(image, I(extent)));
            return v;
          };
          slice_ = part("slice", slices_, c_.batch * c_.groups);
          part_ = part("part", c_.groups, c_.batch);
          image_ = c_.images.defined() ? run_image_ : image;
          in_image_ = c_.images.defined() && pad_ ? I(0) : image_;
          int64_t full = c_.out_blocks / plan_.vectors, tail = c_.out_blocks % plan_.vectors;
          Stmt a = full ? Chunk(chunk, group, plan_.vectors) : Stmt(), b = tail ? Chunk(chunk, group, tail) : Stmt();
          s.Add(a.defined() && b.defined() ? If(group < I(full), a, b) : a.defined() ? a : b);
          return s.Done();
        },
        Kind());
  }

  /// One unit: some tiles of the image for `vectors` blocks of channels.
  Stmt Chunk(const PrimExpr& chunk, const PrimExpr& group, int64_t vectors) {
    Steps s;
    vectors_ = vectors;
    block0_ = s.Let("block", group * I(plan_.vectors));
    PrimExpr first = chunk * I(plan_.chunk);
    auto run = [&](int64_t full, bool tail, auto tile, auto last) {
      if (chunks_ == 1) {
        s.Add(Loop("tile", I(full), tile));
        if (tail) s.Add(last());
        return;
      }
      bool even = !tail && full % plan_.chunk == 0;
      PrimExpr count = even ? I(plan_.chunk) : min(I(plan_.chunk), I(full) - first);
      s.Add(Loop("tile", count, [&](const PrimExpr& t) { return tile(first + t); }));
      if (tail) s.Add(If(equal(chunk, I(chunks_ - 1)), last()));
    };
    if (flat_) {
      int64_t full = width_ / plan_.columns, tail = width_ % plan_.columns;
      run(
          full, tail > 0, [&](const PrimExpr& t) { return Tile(I(0), t * I(plan_.columns), 1, plan_.columns); },
          [&] { return Tile(I(0), I(full * plan_.columns), 1, tail); });
    } else {
      int64_t full = height_ / plan_.rows, tail = height_ % plan_.rows;
      run(
          full, tail > 0, [&](const PrimExpr& t) { return Row(t * I(plan_.rows), plan_.rows); },
          [&] { return Row(I(full * plan_.rows), tail); });
    }
    return s.Done();
  }

  /// All columns of `rows` rows.
  Stmt Row(const PrimExpr& y, int64_t rows) {
    int64_t full = width_ / plan_.columns, tail = width_ % plan_.columns;
    Steps s;
    s.Add(
        Loop("column", I(full), [&](const PrimExpr& t) { return Tile(y, t * I(plan_.columns), rows, plan_.columns); }));
    if (tail) s.Add(Tile(y, I(full * plan_.columns), rows, tail));
    return s.Done();
  }

  Stmt Tile(const PrimExpr& y_expr, const PrimExpr& x_expr, int64_t rows, int64_t columns) {
    Steps s;
    PrimExpr y = Known(y_expr) >= 0 ? y_expr : s.Let("y", y_expr), x = Known(x_expr) >= 0 ? x_expr : s.Let("x", x_expr);
    int64_t lanes = c_.lanes, volume = planes_ * rows_ * row_;
    int64_t pixels = rows * columns;
    PrimExpr first = in_image_ * I(c_.all_in()) + part_ * I(c_.in_blocks);
    PrimExpr in0 = s.Let("in0", first * I(volume) + slice_ * I(c_.step_d * rows_ * row_) + y * I(c_.step_h * row_) +
                                    x * I(c_.step_w * c_.in_lanes));
    int64_t weight_block = c_.in_blocks * c_.in_lanes * c_.window() * lanes;
    PrimExpr block = part_ * I(c_.out_blocks) + block0_;
    PrimExpr w0 = s.Let("w0", block * I(weight_block));
    PrimExpr out0 = s.Let("out0", ((image_ * I(c_.all_out()) + block) * I(c_.pixels()) +
                                   slice_ * I(c_.height * c_.width) + y * I(flat_ ? 0 : c_.width) + x) *
                                      I(lanes));
    Buffer acc = Buffer::Make({I(pixels * vectors_ * lanes)}, dtype_, "acc", "local");
    auto at = [&](int64_t p, int64_t v) { return kernel::Span(I((p * vectors_ + v) * lanes), lanes); };
    auto value = [&](int64_t p, int64_t v) -> PrimExpr { return tir::BufferLoad(acc, {at(p, v)}); };
    auto pixel = [&](int64_t p) { return p / columns * c_.step_h * row_ + p % columns * c_.step_w * c_.in_lanes; };
    Steps body;
    PrimExpr zero = tir::broadcast_to(tir::make_const(dtype_, 0), static_cast<int>(lanes));
    for (int64_t p = 0; p < pixels; ++p) {
      for (int64_t v = 0; v < vectors_; ++v) body.Add(Store(acc, at(p, v), zero));
    }
    const int64_t block_steps = c_.in_lanes / c_.terms, line = lanes * c_.terms;
    int64_t fmas = pixels * vectors_, u = fmas >= 16 ? 2 : 4;
    while (block_steps % u) --u;
    if (block_steps <= 4) u = block_steps;
    body.Add(Loop("ic", I(c_.in_blocks), [&](const PrimExpr& ic) {
      return Loop("kd", I(c_.window_d), [&](const PrimExpr& kd) {
        return Loop("kh", I(c_.window_h), [&](const PrimExpr& kh) {
          return Loop("kw", I(c_.window_w), [&](const PrimExpr& kw) {
            PrimExpr in = in0 + ic * I(volume) + kd * I(c_.dilation_d * rows_ * row_) + kh * I(c_.dilation_h * row_) +
                          kw * I(c_.dilation_w * c_.in_lanes);
            // One by one: channels of a block within the window; else the window within the channels of a step.
            const int64_t window = c_.window();
            PrimExpr at_window = (kd * I(c_.window_h) + kh) * I(c_.window_w) + kw;
            PrimExpr w = w0 + (c_.terms == 1 ? (ic * I(window) + at_window) * I(block_steps * line)
                                             : (ic * I(block_steps * window) + at_window) * I(line));
            const int64_t next = c_.terms == 1 ? line : window * line;
            return Loop("i", I(block_steps / u), [&](const PrimExpr& i) {
              Steps k;
              for (int64_t j = 0; j < u; ++j) {
                PrimExpr step = i * I(u) + I(j);
                std::vector<PrimExpr> ws;
                for (int64_t v = 0; v < vectors_; ++v) {
                  PrimExpr x = Read(weight_, w + step * I(next) + I(v * weight_block), line);
                  ws.push_back(k.Let("w", c_.terms == 1 ? As(dtype_, x) : x));
                }
                for (int64_t p = 0; p < pixels; ++p) {
                  PrimExpr b = k.Let("x", Repeat(input_, in + step * I(c_.terms) + I(pixel(p)), c_.terms, lanes));
                  for (int64_t v = 0; v < vectors_; ++v)
                    k.Add(Store(acc, at(p, v), AddTerms(fma_, c_.terms, b, ws[static_cast<size_t>(v)], value(p, v))));
                }
              }
              return k.Done();
            });
          });
        });
      });
    }));
    body.Add(Finish(acc, y, x, out0, rows, columns));
    s.Add(With(acc, body.Done()));
    return s.Done();
  }

  Stmt Finish(const Buffer& acc, const PrimExpr& y, const PrimExpr& x, const PrimExpr& out0, int64_t rows,
              int64_t columns) {
    int64_t lanes = c_.lanes;
    auto store = [&](int64_t r, const PrimExpr& t, int64_t v, PrimExpr value) {
      Site site;
      PrimExpr yy = y + I(r), xx = x + t;
      PrimExpr zz = slice_;
      if (flat_) {
        zz = floordiv(xx, I(c_.height * c_.width)), xx = floormod(xx, I(c_.height * c_.width));
        yy = floordiv(xx, I(c_.width)), xx = floormod(xx, I(c_.width));
      }
      site.at = {image_, part_ * I(c_.out_blocks) + block0_ + I(v)};
      if (c_.rank > 2) site.at.push_back(zz);
      if (c_.rank > 1 || !c_.in_columns) site.at.push_back(yy);
      if (c_.in_columns) site.at.push_back(xx);
      site.at.push_back(I(0));
      site.offset = out0 + t * I(lanes) + I((v * c_.pixels() + r * c_.width) * lanes);
      site.lanes = lanes;
      return g_.Finish(site, std::move(value));
    };
    auto read = [&](const Buffer& b, const PrimExpr& p, int64_t v) {
      return Read(b, p * I(vectors_ * lanes) + I(v * lanes), lanes);
    };
    Steps s;
    if (g_.epilogue_size() * rows * columns * vectors_ <= 260) {
      for (int64_t p = 0; p < rows * columns; ++p) {
        for (int64_t v = 0; v < vectors_; ++v) s.Add(store(p / columns, I(p % columns), v, read(acc, I(p), v)));
      }
      return s.Done();
    }
    // A long epilogue is a loop over a copy of the tile in memory.
    Buffer tile = Buffer::Make({I(rows * columns * vectors_ * lanes)}, dtype_, "tile");
    for (int64_t i = 0; i < rows * columns * vectors_; ++i)
      s.Add(Store(tile, kernel::Span(I(i * lanes), lanes), Read(acc, I(i * lanes), lanes)));
    for (int64_t r = 0; r < rows; ++r) {
      s.Add(Loop("column", I(columns), [&](const PrimExpr& t) {
        Steps line;
        for (int64_t v = 0; v < vectors_; ++v) line.Add(store(r, t, v, read(tile, I(r * columns) + t, v)));
        return line.Done();
      }));
    }
    return With(tile, s.Done());
  }

  const Group& g_;
  Conv c_;
  Machine mc_;
  DataType dtype_;
  bool fma_;
  Buffer input_, weight_;
  ConvPlan plan_;
  bool pad_ = false, flat_ = false;
  int64_t row_ = 0, rows_ = 0, planes_ = 1;  // of an input as it is read: elements of a row, rows, planes
  int64_t slices_ = 1;                       // planes of the output that are separate units
  int64_t height_ = 1, width_ = 1;           // of an output plane as tiles cut it
  int64_t chunks_ = 1, groups_ = 1, vectors_ = 1;
  PrimExpr run_image_ = I(0);                          // where the number of images is open
  PrimExpr image_, in_image_, part_, slice_, block0_;  // part: the group; in_image_: in the input as it is read
};

Windows ChannelsAlone(const Conv& c) {
  Windows d;
  d.images = c.images.defined() ? c.images : I(c.batch), d.blocks = c.out_blocks, d.lanes = c.lanes;
  d.in_height = I(c.in_height), d.in_width = I(c.in_width), d.height = I(c.height), d.width = I(c.width);
  d.window_h = c.window_h, d.window_w = c.window_w, d.step_h = c.step_h, d.step_w = c.step_w;
  d.dilation_h = c.dilation_h, d.dilation_w = c.dilation_w, d.top = c.top, d.left = c.left;
  d.bottom = std::max<int64_t>(0, c.padded_height() - c.in_height - c.top);
  d.right = std::max<int64_t>(0, c.padded_width() - c.in_width - c.left);
  d.rows = c.rank > 1;
  return d;
}

template <int N>
Stmt WriteConv(const Group& g, const Call& anchor, const Target& target) {
  const auto* a = anchor->attrs.as<ConvAttrs<N>>();
  DataType t = g.anchor_dtype();
  const bool floats = (t == DataType::Float(32) || t == DataType::Float(64)) && g.num_args() == 2 &&
                      g.arg_dtype(0) == t && Widens(g.arg_dtype(1), t);
  if (!a || (!floats && TermsOf(g) == 1)) return Stmt();
  Conv c;
  Machine mc = MachineOf(target, t);
  if constexpr (N < 3) {
    const Array<PrimExpr>& x = g.arg_extents(0);
    if (x.size() == N + 3 && (Known(x[2]) < 0 || Known(x[N + 1]) < 0)) return WriteOpenConv(g, *a, mc);
  }
  if (!ReadConv(g, *a, &c) || c.lanes > mc.lanes || (c.lanes & (c.lanes - 1))) return Stmt();
  // Floats are added one by one, narrow numbers in pairs or fours; bytes one by one where each channel is its own sum.
  if (floats ? c.terms != 1 : c.terms == 1 && !(c.depthwise && IsDot(g))) return Stmt();
  return c.depthwise ? WriteDepthwise(g, ChannelsAlone(c), mc) : ConvWriter(g, c, mc).Write();
}

}  // namespace

template <int N>
tir::PrimFunc GenerateBlockedConv(const Function& func, const Call& anchor, const Target& target) {
  return GenerateOpen(func, anchor, [&](const Group& g) { return WriteConv<N>(g, anchor, target); });
}
template tir::PrimFunc GenerateBlockedConv<1>(const Function&, const Call&, const Target&);
template tir::PrimFunc GenerateBlockedConv<2>(const Function&, const Call&, const Target&);
template tir::PrimFunc GenerateBlockedConv<3>(const Function&, const Call&, const Target&);

bool ShapesOfImages(const Group& g, std::vector<int64_t>* data, std::vector<int64_t>* weight,
                    std::vector<int64_t>* result, PrimExpr* images) {
  auto read = [&](const Array<PrimExpr>& shape, bool of_images, std::vector<int64_t>* out) {
    for (size_t k = 0; k < shape.size(); ++k) {
      const int64_t i = static_cast<int64_t>(k);
      int64_t d = kernel::Known(shape[i]);
      if (of_images && i == 0 && d < 0) *images = shape[i], d = 1;
      if (d < 0) return false;
      out->push_back(d);
    }
    return true;
  };
  return read(g.arg_extents(0), true, data) && read(g.arg_extents(1), false, weight) &&
         read(g.out_extents(), true, result);
}

tir::PrimFunc GenerateBlockedConv2D(const Function& func, const Call& anchor, const String&, const Target& target) {
  return GenerateBlockedConv<2>(func, anchor, target);
}

}  // namespace baton::relay::kernel
