// SPDX-License-Identifier: Apache-2.0
// Convolutions of images in channel blocks, written directly. A register tile is `columns` neighbouring pixels of a row
// times `vectors` blocks of output channels; a step of the sum loads one vector of weights a block and broadcasts one
// element of the image a pixel. Nothing is padded: rows of the window that lie outside are left out by the loop's bounds,
// columns by leaving the products out of the tiles at the edges. Every output channel adds in the same order.
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/relay/op/nn.h>

#include <algorithm>
#include <cmath>

#include "group.h"
#include "plan.h"

namespace baton::relay::kernel {
namespace {

struct Conv {
  int64_t n, ib_count, h, w, ib;  ///< image: batch, blocks, height, width, channels of a block
  int64_t ob_count, oh, ow, ob;   ///< result
  int64_t kh, kw, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
  bool depthwise;
};

struct ConvPlan {
  int64_t columns = 1, vectors = 1;
  double cycles = HUGE_VAL;
};

/// Estimated cycles of one row by tiles of this width, for one step of the sum.
double RowCycles(const Machine& m, const Conv& c, int64_t columns, int64_t vectors) {
  auto tile = [&](int64_t n) {
    double fma = static_cast<double>(n * vectors) / m.fma_per_cycle;
    double loads = static_cast<double>(c.depthwise ? n + 1 : n + vectors) / m.loads_per_cycle;
    return std::max({fma, loads, m.fma_latency}) + 0.25;
  };
  double steps = static_cast<double>(c.depthwise ? c.kh * c.kw : c.ib_count * c.ib * c.kh * c.kw);
  double overhead = (12 + 2.0 * static_cast<double>(columns * vectors)) / steps;
  double cycles = static_cast<double>(c.ow / columns) * (tile(columns) + overhead);
  if (c.ow % columns) cycles += tile(c.ow % columns) + overhead;
  return cycles * static_cast<double>(c.ob_count / vectors);
}

ConvPlan PlanConv(const Machine& m, const Conv& c) {
  ConvPlan best;
  for (int64_t v : {1, 2, 3, 4}) {
    if (c.ob_count % v || (c.depthwise && v > 1)) continue;
    // Accumulators, a vector of weights a block, one element of the image (a vector each where channels do not mix).
    int64_t most = c.depthwise ? (m.registers - 3) / 2 : (m.registers - 1 - v) / v;
    for (int64_t w = 1; w <= std::min(most, c.ow); ++w) {
      double cycles = RowCycles(m, c, w, v);
      if (cycles < best.cycles * 0.999) best = {w, v, cycles};
    }
  }
  return best;
}

class ConvWriter {
 public:
  ConvWriter(const Group& g, const Conv& c, const ConvPlan& plan) : g_(g), c_(c), plan_(plan), dtype_(g.anchor_dtype()) {}

  Stmt Write() {
    int64_t groups = c_.ob_count / plan_.vectors;
    double flops = 2.0 * static_cast<double>(c_.n * c_.ob_count * c_.ob * c_.oh * c_.ow * c_.kh * c_.kw * (c_.depthwise ? 1 : c_.ib_count * c_.ib));
    ForKind kind = flops > kParallelFlops ? ForKind::kParallel : ForKind::kSerial;
    if (c_.oh == 1 && Interior(0, c_.ow)) return WriteLine(groups, kind);
    // A unit of work is one row of one group of channels; neighbouring units share their weights.
    return Loop("unit", I(c_.n * groups * c_.oh), [&](PrimExpr unit) {
      Steps s;
      PrimExpr y = I(0), group = I(0), batch = I(0);
      if (c_.oh > 1) {
        y = s.Let("y", floormod(unit, I(c_.oh)));
        unit = floordiv(unit, I(c_.oh));
      }
      if (groups > 1) group = s.Let("group", c_.n > 1 ? floormod(unit, I(groups)) : unit);
      if (c_.n > 1) batch = s.Let("batch", groups > 1 ? floordiv(unit, I(groups)) : unit);
      Row row = MakeRow(&s, batch, group, y);
      int64_t tiles = c_.ow / plan_.columns, t = 0;
      while (t < tiles) {
        int64_t end = t;
        while (end < tiles && Interior(end * plan_.columns, plan_.columns)) ++end;
        if (end > t) {
          int64_t first = t;
          s.Add(Loop("tile", I(end - t), [&](const PrimExpr& i) { return Tile(row, (i + I(first)) * I(plan_.columns), plan_.columns, false, 0); }));
          t = end;
        } else {
          s.Add(Tile(row, I(t * plan_.columns), plan_.columns, true, t * plan_.columns));
          ++t;
        }
      }
      if (int64_t rest = c_.ow % plan_.columns) s.Add(Tile(row, I(tiles * plan_.columns), rest, true, tiles * plan_.columns));
      return s.Done();
    }, kind);
  }

  /// How many tiles of a row are written out for themselves because a window column lies outside.
  static int64_t EdgeTiles(const Conv& c, int64_t columns) {
    int64_t edges = 0;
    for (int64_t x = 0; x + columns <= c.ow; x += columns) edges += !Inside(c, x, columns);
    return edges;
  }

 private:
  struct Row {
    PrimExpr batch, group, y;
    PrimExpr first, count;  ///< rows of the window that lie inside
    PrimExpr top;           ///< image row of the window's first row
  };

  static bool Inside(const Conv& c, int64_t x, int64_t columns) {
    return x * c.stride_w - c.pad_left >= 0 && (x + columns - 1) * c.stride_w - c.pad_left + (c.kw - 1) * c.dilation_w < c.w;
  }
  bool Interior(int64_t x, int64_t columns) const { return Inside(c_, x, columns); }

  /// A single line without edges (1 x 1 windows, the image seen as one row): a unit of work is one tile.
  Stmt WriteLine(int64_t groups, ForKind kind) {
    int64_t full = c_.ow / plan_.columns, rest = c_.ow % plan_.columns, tiles = full + (rest ? 1 : 0);
    return Loop("unit", I(c_.n * groups * tiles), [&](PrimExpr unit) {
      Steps s;
      PrimExpr tile = I(0), group = I(0), batch = I(0);
      if (tiles > 1) {
        tile = s.Let("tile", floormod(unit, I(tiles)));
        unit = floordiv(unit, I(tiles));
      }
      if (groups > 1) group = s.Let("group", c_.n > 1 ? floormod(unit, I(groups)) : unit);
      if (c_.n > 1) batch = s.Let("batch", groups > 1 ? floordiv(unit, I(groups)) : unit);
      Row row = MakeRow(&s, batch, group, I(0));
      Stmt whole = full ? Tile(row, tile * I(plan_.columns), plan_.columns, false, 0) : Stmt();
      Stmt part = rest ? Tile(row, I(full * plan_.columns), rest, false, 0) : Stmt();
      s.Add(whole.defined() && part.defined() ? If(tile < I(full), whole, part) : whole.defined() ? whole : part);
      return s.Done();
    }, kind);
  }

  Row MakeRow(Steps* s, PrimExpr batch, PrimExpr group, PrimExpr y) {
    Row r;
    r.batch = batch, r.group = group, r.y = y;
    r.top = s->Let("top", y * I(c_.stride_h) - I(c_.pad_top));
    bool above = c_.pad_top > 0;
    bool below = (c_.oh - 1) * c_.stride_h - c_.pad_top + (c_.kh - 1) * c_.dilation_h >= c_.h;
    // first = ceil(-top / dilation), end = floor((h - 1 - top) / dilation) + 1, within the window.
    r.first = above ? s->Let("first", max(I(0), floordiv(I(c_.dilation_h - 1) - r.top, I(c_.dilation_h)))) : I(0);
    PrimExpr end = below ? s->Let("end", min(I(c_.kh), floordiv(I(c_.h - 1) - r.top, I(c_.dilation_h)) + I(1))) : I(c_.kh);
    r.count = above || below ? end - r.first : I(c_.kh);
    return r;
  }

  /// `columns` pixels from x. `clip`: x is `at`, and products with pixels outside of the image are left out.
  Stmt Tile(const Row& row, const PrimExpr& x_expr, int64_t columns, bool clip, int64_t at) {
    Steps steps;
    int64_t vectors = plan_.vectors, ob = c_.ob;
    PrimExpr x = Known(x_expr) >= 0 ? x_expr : steps.Let("x", x_expr);
    Buffer acc = Buffer::Make({I(columns * vectors * ob)}, dtype_, "acc", "local");
    auto slot = [&](int64_t c, int64_t v) { return Span(I((c * vectors + v) * ob), ob); };
    auto value = [&](int64_t c, int64_t v) -> PrimExpr { return tir::BufferLoad(acc, {slot(c, v)}); };
    Steps body;
    PrimExpr zero = tir::broadcast_to(tir::make_const(dtype_, 0), static_cast<int>(ob));
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t v = 0; v < vectors; ++v) body.Add(Store(acc, slot(c, v), zero));
    }
    auto used = [&](int64_t c, int64_t kx) {
      if (!clip) return true;
      int64_t ix = (at + c) * c_.stride_w - c_.pad_left + kx * c_.dilation_w;
      return ix >= 0 && ix < c_.w;
    };
    int64_t window_step = c_.ib * ob;                       // weights of one (ky, kx) of one block of the image's channels
    int64_t block_step = c_.kh * c_.kw * window_step;       // of one block of the image's channels
    int64_t group_step = (c_.depthwise ? 1 : c_.ib_count) * block_step;
    if (c_.depthwise) window_step = ob, block_step = c_.kh * c_.kw * ob, group_step = block_step;
    PrimExpr left = x * I(c_.stride_w) - I(c_.pad_left);
    auto window_row = [&](const PrimExpr& channel_block, const PrimExpr& ky, const PrimExpr& weight_block) {
      Steps s;
      PrimExpr ix = s.Let("image", (((row.batch * I(c_.ib_count) + channel_block) * I(c_.h) + row.top + ky * I(c_.dilation_h)) * I(c_.w) + left) * I(c_.ib));
      PrimExpr w = s.Let("weight", weight_block + ky * I(c_.kw * window_step));
      if (c_.depthwise) {
        for (int64_t kx = 0; kx < c_.kw; ++kx) {
          PrimExpr k = s.Let("k", Read(g_.arg(1), w + I(kx * ob), ob));
          for (int64_t c = 0; c < columns; ++c) {
            if (!used(c, kx)) continue;
            PrimExpr px = Read(g_.arg(0), ix + I((c * c_.stride_w + kx * c_.dilation_w) * c_.ib), ob);
            s.Add(Store(acc, slot(c, 0), fma(px, k, value(c, 0))));
          }
        }
        return s.Done();
      }
      // As many channels at a time as keep the code of a tile small.
      int64_t unroll = 1;
      for (int64_t u : {2, 3, 4, 8, 16}) {
        if (c_.ib % u == 0 && u * c_.kw * columns * vectors <= 448) unroll = u;
      }
      s.Add(Loop("channels", I(c_.ib / unroll), [&](const PrimExpr& q) {
        Steps inner;
        for (int64_t kx = 0; kx < c_.kw; ++kx) {
          for (int64_t i = 0; i < unroll; ++i) {
            PrimExpr channel = q * I(unroll) + I(i);
            std::vector<PrimExpr> k;
            for (int64_t v = 0; v < vectors; ++v) {
              k.push_back(inner.Let("k", Read(g_.arg(1), w + I(kx * window_step + v * group_step) + channel * I(ob), ob)));
            }
            for (int64_t c = 0; c < columns; ++c) {
              if (!used(c, kx)) continue;
              PrimExpr px = inner.Let("px", tir::broadcast_to(Read(g_.arg(0), ix + I((c * c_.stride_w + kx * c_.dilation_w) * c_.ib) + channel), static_cast<int>(ob)));
              for (int64_t v = 0; v < vectors; ++v) inner.Add(Store(acc, slot(c, v), fma(px, k[static_cast<size_t>(v)], value(c, v))));
            }
          }
        }
        return inner.Done();
      }));
      return s.Done();
    };
    PrimExpr weights = steps.Let("weights", row.group * I(vectors * group_step));
    auto blocks = [&](const PrimExpr& b) {
      PrimExpr channel_block = c_.depthwise ? row.group : b;
      PrimExpr weight_block = weights + b * I(block_step);
      return Loop("ky", row.count, [&](const PrimExpr& k) { return window_row(channel_block, row.first + k, weight_block); });
    };
    body.Add(c_.depthwise ? blocks(I(0)) : Loop("block", I(c_.ib_count), blocks));
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t v = 0; v < vectors; ++v) {
        Site site;
        PrimExpr block = row.group * I(vectors) + I(v), px = x + I(c);
        site.at = {row.batch, block, PrimExpr(row.y), px, I(0)};
        if (line_width_) site.at = {row.batch, block, floordiv(px, I(line_width_)), floormod(px, I(line_width_)), I(0)};
        site.offset = (((row.batch * I(c_.ob_count) + block) * I(c_.oh) + row.y) * I(c_.ow) + px) * I(ob);
        site.lanes = ob;
        body.Add(g_.Finish(site, value(c, v)));
      }
    }
    steps.Add(With(acc, body.Done()));
    return steps.Done();
  }

 public:
  int64_t line_width_ = 0;  ///< > 0: the row is an image of this width

 private:
  const Group& g_;
  const Conv& c_;
  const ConvPlan& plan_;
  DataType dtype_;
};

/// "NCHW16c" -> 16; 0 for another kind of layout.
int64_t BlockOfLayout(const String& layout, std::string_view prefix, char letter) {
  std::string_view s = layout.view();
  if (!s.starts_with(prefix)) return 0;
  s.remove_prefix(prefix.size());
  int64_t n = 0;
  while (!s.empty() && s[0] >= '0' && s[0] <= '9') n = n * 10 + (s[0] - '0'), s.remove_prefix(1);
  return s.size() == 1 && s[0] == letter ? n : 0;
}

tir::PrimFunc GenerateConv(const Function& func, const Call& anchor, const Target& target, bool depthwise) {
  const auto* a = anchor->attrs.as<Conv2DAttrs>();
  if (!a || a->strides.size() != 2 || a->dilation.size() != 2) return tir::PrimFunc();
  return Generate(func, anchor, [&](const Group& g) {
    DataType t = g.anchor_dtype();
    if (!(t == DataType::Float(32)) || !(g.arg_dtype(0) == t) || !(g.arg_dtype(1) == t)) return Stmt();
    const auto &x = g.arg_shape(0), &w = g.arg_shape(1), &o = g.out_shape();
    if (x.size() != 5 || w.size() != 6 || o.size() != 5 || BlockOfLayout(a->data_layout, "NCHW", 'c') != x[4]) return Stmt();
    Machine m = MachineOf(target, t);
    Conv c;
    c.n = x[0], c.ib_count = x[1], c.h = x[2], c.w = x[3], c.ib = x[4];
    c.ob_count = o[1], c.oh = o[2], c.ow = o[3], c.ob = o[4];
    c.kh = w[2], c.kw = w[3];
    c.stride_h = a->strides[0], c.stride_w = a->strides[1];
    c.dilation_h = a->dilation[0], c.dilation_w = a->dilation[1];
    c.pad_top = a->padding[0];
    c.pad_left = a->padding.size() == 1 ? a->padding[0] : a->padding[1];
    c.depthwise = depthwise;
    for (int64_t d : {c.n, c.ib_count, c.h, c.w, c.ib, c.ob_count, c.oh, c.ow, c.ob, c.kh, c.kw}) {
      if (d <= 0) return Stmt();
    }
    if (c.ob > m.lanes || (c.ob & (c.ob - 1)) != 0 || w[5] != c.ob) return Stmt();
    if (depthwise ? (a->groups != c.ib_count * c.ib || c.ib != c.ob || c.ib_count != c.ob_count || w[4] != 1) : (a->groups != 1 || w[4] != c.ib || w[1] != c.ib_count)) return Stmt();
    int64_t line = 0;
    if (c.kh == 1 && c.kw == 1 && c.stride_h == 1 && c.stride_w == 1 && c.pad_top == 0 && c.pad_left == 0 && c.oh == c.h && c.ow == c.w) {
      line = c.w;  // rows follow each other without a seam
      c.w *= c.h, c.ow *= c.oh;
      c.h = c.oh = 1;
    }
    ConvPlan plan = PlanConv(m, c);
    if (ConvWriter::EdgeTiles(c, plan.columns) > 6) return Stmt();
    ConvWriter writer(g, c, plan);
    writer.line_width_ = line;
    return writer.Write();
  });
}

tir::PrimFunc GenerateDirect(const Function& func, const Call& anchor, const String&, const Target& target) {
  return GenerateConv(func, anchor, target, false);
}
tir::PrimFunc GenerateDepthwise(const Function& func, const Call& anchor, const String&, const Target& target) {
  return GenerateConv(func, anchor, target, true);
}

const bool registered = [] {
  RegisterKernelGenerator("nn.contrib_conv2d_NCHWc", GenerateDirect);
  RegisterKernelGenerator("nn.contrib_depthwise_conv2d_NCHWc", GenerateDepthwise);
  return true;
}();

}  // namespace
}  // namespace baton::relay::kernel
