// SPDX-License-Identifier: Apache-2.0
// Convolutions over plain images (NCHW, NCW, NCDHW), in groups or not, of one channel each or more: for channels that
// no blocks divide, and weights that are not known before. A register tile is some output channels by some vectors of
// neighbouring pixels; each step of the sum reads those pixels of one input channel and broadcasts a weight for each
// output channel. Each output adds in one order: input channel, then window.
#include <baton/relay/op.h>
#include <baton/relay/op/nn.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "conv.h"
#include "generators.h"
#include "plan.h"

namespace baton::relay::kernel {
namespace {

/// Extents as (depth, height, width); fewer dimensions have 1 in front.
struct Extents {
  int64_t d[3] = {1, 1, 1};
  int64_t& operator[](int i) { return d[i]; }
  int64_t operator[](int i) const { return d[i]; }
  int64_t all() const { return d[0] * d[1] * d[2]; }
};

struct PlainConv {
  PrimExpr images;  ///< where their number is open: the kernel is one for `batch` = 1, run for each
  int64_t rank, batch, groups;
  int64_t ins, outs;  ///< channels of a group
  Extents in, out, window, step, dilation, before{{0, 0, 0}};
  int64_t flops() const { return 2 * batch * groups * ins * outs * out.all() * window.all(); }
  int64_t padded(int i) const { return (out[i] - 1) * step[i] + (window[i] - 1) * dilation[i] + 1; }
  /// An image is one row, read where it is.
  bool flat() const {
    for (int i = 0; i < 3; ++i) {
      if (window[i] != 1 || step[i] != 1 || before[i] != 0 || in[i] != out[i]) return false;
    }
    return true;
  }
};

template <int N>
bool ReadPlainConv(const Group& g, const ConvAttrs<N>& a, PlainConv* c) {
  const char *images = ForSpace<N>("NCW", "NCHW", "NCDHW"), *weights = ForSpace<N>("OIW", "OIHW", "OIDHW");
  if (!(a.data_layout == images) || !(a.kernel_layout == weights) ||
      (!a.out_layout.empty() && !(a.out_layout == images)) || a.groups < 1)
    return false;
  std::vector<int64_t> x, w, o;
  if (!ShapesOfImages(g, &x, &w, &o, &c->images)) return false;
  if (x.size() != N + 2 || w.size() != N + 2 || o.size() != N + 2) return false;
  for (const auto* s : {&x, &w, &o}) {
    if (std::count(s->begin(), s->end(), 0)) return false;
  }
  c->rank = N, c->batch = x[0], c->groups = a.groups, c->ins = w[1], c->outs = w[0] / a.groups;
  for (int d = 0; d < N; ++d) {
    auto number = [&](const Array<int64_t>& v, int64_t default_value) {
      return !v.defined() || v.empty() ? default_value : v.size() > 1 ? v[d] : v[0];
    };
    int i = 3 - N + d;
    c->in[i] = x[d + 2], c->out[i] = o[d + 2], c->window[i] = w[d + 2];
    c->step[i] = number(a.strides, 1), c->dilation[i] = number(a.dilation, 1), c->before[i] = number(a.padding, 0);
  }
  return x[1] == c->ins * c->groups && o[1] == c->outs * c->groups;
}

/// A register tile: output channels by vectors, the vectors being some rows of pixels or parts of one.
struct Plan {
  int64_t channels = 1, rows = 1, vectors = 1;  ///< vectors: of a row
  double cycles = HUGE_VAL;
};

class PlainConvWriter {
 public:
  PlainConvWriter(const Group& g, const PlainConv& c, const Machine& mc)
      : g_(g), c_(c), mc_(mc), dtype_(g.anchor_dtype()), lanes_(mc.lanes), input_(g.arg(0)), weight_(g.arg(1)) {
    flat_ = c_.flat();
    width_ = flat_ ? c_.out.all() : c_.out[2];
    height_ = flat_ ? 1 : c_.out[1];
    slices_ = flat_ ? 1 : c_.out[0];
    // Short rows fill half a vector of 512 bits: one of 256 costs no more anywhere, and half as much where such are
    // split.
    if (lanes_ * dtype_.bytes() == 64 && width_ <= lanes_ / 2) mc_.lanes = lanes_ = lanes_ / 2;
    row_vectors_ = CeilDiv(width_, lanes_);
    plan_ = Choose();
    if (flat_) {
      pitch_ = width_, row_ = width_, plane_ = width_, volume_ = width_;
    } else {
      // A row of the padded input is kept in parts, one for each remainder of the column by the step, so that the
      // pixels of a vector lie side by side; behind it there is room for whole vectors.
      pitch_ = row_vectors_ * lanes_ + (c_.window[2] - 1) * c_.dilation[2] / c_.step[2];
      row_ = pitch_ * c_.step[2];
      plane_ = row_ * c_.padded(1);
      volume_ = plane_ * c_.padded(0);
    }
    parallel_ = static_cast<double>(c_.flops()) > kParallelFlops && mc.cores > 1;
    // A small group of inputs is padded where it is used.
    pad_in_unit_ = !flat_ && c_.groups > 1 && c_.ins * volume_ * dtype_.bytes() <= (64 << 10);
    int64_t tiles = flat_ ? CeilDiv(row_vectors_, plan_.vectors) : CeilDiv(height_, plan_.rows);
    items_ = c_.batch * c_.groups * (pad_in_unit_ ? 1 : slices_);
    chunk_ = tiles;
    if (parallel_ && !pad_in_unit_) {
      for (int64_t n = 1; n <= tiles && Imbalance(items_ * CeilDiv(tiles, chunk_), mc.cores) > 1.05; ++n)
        chunk_ = CeilDiv(tiles, n);
    }
    chunks_ = CeilDiv(tiles, chunk_);
    if (parallel_ && Imbalance(items_ * chunks_, mc.cores) > 1.3) strips_ = CeilDiv(c_.outs, plan_.channels);
  }

  Stmt Write() {
    if (!c_.images.defined()) return OneRun();
    return EachImage(c_.images, mc_, static_cast<double>(c_.flops()), [&](const PrimExpr& image) {
      run_image_ = image;
      return OneRun();
    });
  }

 private:
  Stmt OneRun() {
    if (flat_ || pad_in_unit_) return Units();
    Buffer padded = Buffer::Make({I(c_.batch * c_.groups * c_.ins * volume_)}, dtype_, "padded");
    Steps s;
    s.Add(Pad(padded, run_image_ * I(c_.groups * c_.ins), c_.batch * c_.groups * c_.ins,
              parallel_ ? ForKind::kParallel : ForKind::kSerial));
    input_ = padded;
    s.Add(Units());
    input_ = g_.arg(0);
    return With(padded, s.Done());
  }

  Plan Choose() const {
    Plan best;
    double steps = static_cast<double>(c_.ins * c_.window.all());
    auto tile = [&](int64_t channels, int64_t vectors) {
      return TileStep(mc_, channels, vectors) * steps + 20 + 2.0 * static_cast<double>(channels * vectors);
    };
    for (int64_t v = 1; v <= std::min<int64_t>(row_vectors_, 12); ++v) {
      for (int64_t r = 1; r <= (v == row_vectors_ ? std::min<int64_t>(height_, 12) : 1); ++r) {
        for (int64_t o = 1; o <= std::min<int64_t>(c_.outs, 16); ++o) {
          if (o * r * v + r * v + 1 > mc_.registers) break;
          auto strip = [&](int64_t channels, int64_t rows) {
            double c = static_cast<double>(row_vectors_ / v) * tile(channels, rows * v);
            if (row_vectors_ % v) c += tile(channels, rows * (row_vectors_ % v));
            return c;
          };
          auto plane = [&](int64_t channels) {
            double c = static_cast<double>(height_ / r) * strip(channels, r);
            if (height_ % r) c += strip(channels, height_ % r);
            return c;
          };
          double c = static_cast<double>(c_.outs / o) * plane(o);
          if (c_.outs % o) c += plane(c_.outs % o);
          if (c < best.cycles * 0.9999) best = {o, r, v, c};
        }
      }
    }
    return best;
  }

  /// `count` channels from channel `first` on, with zeros around them.
  Stmt Pad(const Buffer& to, const PrimExpr& first, int64_t count, ForKind kind) {
    int64_t rows = c_.padded(1), planes = c_.padded(0), step = c_.step[2];
    auto line = [&](const PrimExpr& index) {
      Steps s;
      PrimExpr y = s.Let("y", floormod(index, I(rows)) - I(c_.before[1])), rest = floordiv(index, I(rows)), there;
      if (c_.before[1] > 0 || rows > c_.in[1]) there = I(0) <= y && y < I(c_.in[1]);
      PrimExpr plane = first + rest;
      if (c_.rank > 2) {
        PrimExpr z = s.Let("z", floormod(rest, I(planes)) - I(c_.before[0]));
        plane = (first + floordiv(rest, I(planes))) * I(c_.in[0]) + z;
        PrimExpr in_volume = I(0) <= z && z < I(c_.in[0]);
        there = there.defined() ? there && in_volume : in_volume;
      }
      PrimExpr from = s.Let("from", (plane * I(c_.in[1]) + y) * I(c_.in[2]));
      PrimExpr at = s.Let("to", index * I(row_));
      Steps inside, outside;
      for (int64_t phase = 0; phase < step; ++phase) {
        // Element q is the input's q * step + phase - before.
        int64_t shift = phase - c_.before[2];
        int64_t low = std::clamp<int64_t>(CeilDiv(std::max<int64_t>(0, -shift), step), 0, pitch_);
        int64_t high = std::clamp<int64_t>(c_.in[2] - shift <= 0 ? 0 : CeilDiv(c_.in[2] - shift, step), low, pitch_);
        PrimExpr part = at + I(phase * pitch_);
        inside.Add(Zero(to, part, low));
        inside.Add(Copy(to, part + I(low), from + I(low * step + shift), step, high - low));
        inside.Add(Zero(to, part + I(high), pitch_ - high));
      }
      if (!there.defined()) {
        s.Add(inside.Done());
      } else {
        outside.Add(Zero(to, at, row_));
        s.Add(If(there, inside.Done(), outside.Done()));
      }
      return s.Done();
    };
    return Loop("line", I(count * planes * rows), line, kind);
  }
  template <class F>
  Stmt Vectors(int64_t count, F f) {
    Steps s;
    s.Add(Loop("i", I(count / lanes_), [&](const PrimExpr& i) { return f(i * I(lanes_), lanes_); }));
    if (count % lanes_) s.Add(f(I(count / lanes_ * lanes_), count % lanes_));
    return s.Done();
  }
  Stmt Zero(const Buffer& to, const PrimExpr& at, int64_t count) {
    return Vectors(count, [&](const PrimExpr& i, int64_t n) {
      PrimExpr zero = tir::broadcast_to(tir::make_const(dtype_, 0), static_cast<int>(lanes_));
      return WriteMasked(to, at + i, lanes_, zero, FirstLanes(n, lanes_));
    });
  }
  Stmt Copy(const Buffer& to, const PrimExpr& at, const PrimExpr& from, int64_t step, int64_t count) {
    if (step != 1)
      return Loop("i", I(count),
                  [&](const PrimExpr& i) { return Store(to, at + i, Read(input_, from + i * I(step))); });
    return Vectors(count, [&](const PrimExpr& i, int64_t n) {
      PrimExpr mask = FirstLanes(n, lanes_);
      return WriteMasked(to, at + i, lanes_, ReadMasked(input_, from + i, lanes_, mask), mask);
    });
  }

  Stmt Units() {
    return Loop(
        "unit", I(items_ * chunks_ * strips_),
        [&](PrimExpr unit) {
          Steps s;
          int64_t left = items_ * chunks_ * strips_;
          auto take = [&](const char* name, int64_t extent) {
            left /= extent;
            if (extent == 1) return I(0);
            if (left == 1) return unit;
            PrimExpr v = s.Let(name, floormod(unit, I(extent)));
            unit = s.Let("rest", floordiv(unit, I(extent)));
            return v;
          };
          PrimExpr strip = take("strip", strips_), chunk = take("chunk", chunks_);
          slice_ = take("slice", pad_in_unit_ ? 1 : slices_);
          PrimExpr group = take("group", c_.groups);
          image_ = take("image", c_.batch);
          first_out_ = s.Let("first_out", group * I(c_.outs));
          PrimExpr in_image = image_;
          if (c_.images.defined()) image_ = run_image_, in_image = flat_ || pad_in_unit_ ? run_image_ : I(0);
          PrimExpr channel = (in_image * I(c_.groups) + group) * I(c_.ins);
          Buffer padded;
          if (pad_in_unit_) {
            padded = Buffer::Make({I(c_.ins * volume_)}, dtype_, "padded");
            s.Add(Pad(padded, channel, c_.ins, ForKind::kSerial));
            std::swap(input_, padded);
            in_group_ = I(0);
            s.Add(Loop("slice", I(slices_), [&](const PrimExpr& z) {
              slice_ = z;
              return Chunk(chunk, strip);
            }));
            std::swap(input_, padded);
            return With(padded, s.Done());
          }
          in_group_ = s.Let("in_group", channel * I(volume_));
          s.Add(Chunk(chunk, strip));
          return s.Done();
        },
        parallel_ ? ForKind::kParallel : ForKind::kSerial);
  }

  /// Some tiles of an image, or of a plane of it.
  Stmt Chunk(const PrimExpr& chunk, const PrimExpr& strip) {
    Steps s;
    int64_t per = flat_ ? plan_.vectors : plan_.rows, extent = flat_ ? row_vectors_ : height_;
    int64_t full = extent / per, tail = extent % per;
    auto tile = [&](const PrimExpr& t, int64_t size) {
      return flat_ ? Channels(strip, I(0), t * I(per), 1, size) : Row(strip, t * I(per), size);
    };
    // The row's last vector is not whole: it has its own tile.
    if (flat_ && width_ % lanes_ && tail == 0) --full, tail = per;
    PrimExpr first = chunk * I(chunk_);
    if (chunks_ == 1) {
      s.Add(Loop("tile", I(full), [&](const PrimExpr& t) { return tile(t, per); }));
      if (tail) s.Add(tile(I(full), tail));
      return s.Done();
    }
    s.Add(Loop("tile", min(I(chunk_), I(full) - first), [&](const PrimExpr& t) { return tile(first + t, per); }));
    if (tail) s.Add(If(equal(chunk, I(chunks_ - 1)), tile(I(full), tail)));
    return s.Done();
  }
  Stmt Row(const PrimExpr& strip, const PrimExpr& y, int64_t rows) {
    int64_t full = row_vectors_ / plan_.vectors, tail = row_vectors_ % plan_.vectors;
    if (width_ % lanes_ && tail == 0) --full, tail = plan_.vectors;
    Steps s;
    s.Add(Loop("column", I(full),
               [&](const PrimExpr& t) { return Channels(strip, y, t * I(plan_.vectors), rows, plan_.vectors); }));
    if (tail) s.Add(Channels(strip, y, I(full * plan_.vectors), rows, tail));
    return s.Done();
  }
  /// All output channels, or those of a strip, at some rows and vectors from (y, v) on. The last vector of a row is the
  /// one whose tile begins at a known place.
  Stmt Channels(const PrimExpr& strip, const PrimExpr& y, const PrimExpr& v, int64_t rows, int64_t vectors) {
    bool last = Known(v) >= 0 && Known(v) + vectors == row_vectors_;
    int64_t full = c_.outs / plan_.channels, tail = c_.outs % plan_.channels;
    Steps s;
    auto tile = [&](const PrimExpr& t, int64_t channels) {
      return Tile(t * I(plan_.channels), channels, y, v, rows, vectors, last);
    };
    if (strips_ > 1) {
      Stmt whole = full ? tile(strip, plan_.channels) : Stmt(), rest = tail ? tile(I(full), tail) : Stmt();
      return whole.defined() && rest.defined() ? If(strip < I(full), whole, rest) : whole.defined() ? whole : rest;
    }
    s.Add(Loop("channels", I(full), [&](const PrimExpr& t) { return tile(t, plan_.channels); }));
    if (tail) s.Add(tile(I(full), tail));
    return s.Done();
  }

  Stmt Tile(const PrimExpr& channel, int64_t channels, const PrimExpr& y_expr, const PrimExpr& v_expr, int64_t rows,
            int64_t vectors, bool last) {
    Steps s;
    PrimExpr o0 = s.Let("o0", first_out_ + channel), y = Known(y_expr) >= 0 ? y_expr : s.Let("y", y_expr);
    PrimExpr x = Known(v_expr) >= 0 ? v_expr * I(lanes_) : s.Let("x", v_expr * I(lanes_));
    int64_t per_out = c_.ins * c_.window.all(), pixels = rows * vectors;
    PrimExpr in0 = s.Let("in0", in_group_ + slice_ * I(c_.step[0] * plane_) + y * I(c_.step[1] * row_) + x);
    PrimExpr w0 = s.Let("w0", o0 * I(per_out));
    auto mask = [&](int64_t p) {
      bool cut = last && p % vectors == vectors - 1 && width_ % lanes_;
      return cut ? FirstLanes(width_ % lanes_, lanes_) : PrimExpr();
    };
    Buffer acc = Buffer::Make({I(channels * pixels * lanes_)}, dtype_, "acc", "local");
    auto at = [&](int64_t o, int64_t p) { return I((o * pixels + p) * lanes_); };
    Steps body;
    PrimExpr zero = tir::broadcast_to(tir::make_const(dtype_, 0), static_cast<int>(lanes_));
    for (int64_t i = 0; i < channels * pixels; ++i) body.Add(Store(acc, kernel::Span(I(i * lanes_), lanes_), zero));
    auto step = [&](Steps* k, const PrimExpr& in, const PrimExpr& w) {
      std::vector<PrimExpr> xs;
      for (int64_t p = 0; p < pixels; ++p) {
        PrimExpr from = in + I(p / vectors * c_.step[1] * row_ + p % vectors * lanes_);
        xs.push_back(k->Let("x", ReadMasked(input_, from, lanes_, flat_ ? mask(p) : PrimExpr())));
      }
      for (int64_t o = 0; o < channels; ++o) {
        PrimExpr f = k->Let("w", tir::broadcast_to(Read(weight_, w + I(o * per_out)), static_cast<int>(lanes_)));
        for (int64_t p = 0; p < pixels; ++p)
          k->Add(Store(acc, kernel::Span(at(o, p), lanes_),
                       MultiplyAdd(mc_.fma, f, xs[static_cast<size_t>(p)], Read(acc, at(o, p), lanes_))));
      }
    };
    body.Add(Loop("ic", I(c_.ins), [&](const PrimExpr& ic) {
      return Loop("kd", I(c_.window[0]), [&](const PrimExpr& kd) {
        return Loop("kh", I(c_.window[1]), [&](const PrimExpr& kh) {
          PrimExpr in = in0 + ic * I(volume_) + kd * I(c_.dilation[0] * plane_) + kh * I(c_.dilation[1] * row_);
          PrimExpr w = w0 + ((ic * I(c_.window[0]) + kd) * I(c_.window[1]) + kh) * I(c_.window[2]);
          auto column = [&](Steps* k, const PrimExpr& kw) {
            PrimExpr q = kw * I(c_.dilation[2]), from = q;
            if (c_.step[2] != 1) from = floormod(q, I(c_.step[2])) * I(pitch_) + floordiv(q, I(c_.step[2]));
            step(k, in + from, w + kw);
          };
          // Unrolled as far as the code stays short.
          if (c_.window[2] * channels * pixels > 96) {
            return Loop("kw", I(c_.window[2]), [&](const PrimExpr& kw) {
              Steps k;
              column(&k, kw);
              return k.Done();
            });
          }
          Steps k;
          for (int64_t kw = 0; kw < c_.window[2]; ++kw) column(&k, I(kw));
          return k.Done();
        });
      });
    }));
    body.Add(Finish(acc, channels, o0, y, x, rows, vectors, mask));
    s.Add(With(acc, body.Done()));
    return s.Done();
  }

  template <class M>
  Stmt Finish(const Buffer& acc, int64_t channels, const PrimExpr& o0, const PrimExpr& y, const PrimExpr& x,
              int64_t rows, int64_t vectors, M mask) {
    int64_t pixels = rows * vectors;
    auto store = [&](const PrimExpr& o, int64_t p, PrimExpr value) {
      Site site;
      PrimExpr yy = y + I(p / vectors), xx = x + I(p % vectors * lanes_);
      site.at = {image_, o0 + o};
      if (flat_) {
        site.merged = c_.rank;
        for (int64_t d = 1; d < c_.rank; ++d) site.at.push_back(tir::Var("merged"));
      } else {
        if (c_.rank > 2) site.at.push_back(slice_);
        if (c_.rank > 1) site.at.push_back(yy);
      }
      site.at.push_back(xx);
      PrimExpr plane = (image_ * I(c_.groups * c_.outs) + o0 + o) * I(c_.out.all());
      site.offset = plane + (flat_ ? xx : slice_ * I(c_.out[1] * c_.out[2]) + yy * I(c_.out[2]) + xx);
      site.lanes = lanes_;
      site.mask = mask(p);
      return g_.Finish(site, std::move(value));
    };
    Steps s;
    if (g_.epilogue_size() * channels * pixels <= 260) {
      for (int64_t o = 0; o < channels; ++o) {
        for (int64_t p = 0; p < pixels; ++p) s.Add(store(I(o), p, Read(acc, I((o * pixels + p) * lanes_), lanes_)));
      }
      return s.Done();
    }
    // A long epilogue is a loop over a copy of the tile in memory.
    Buffer tile = Buffer::Make({I(channels * pixels * lanes_)}, dtype_, "tile");
    for (int64_t i = 0; i < channels * pixels; ++i)
      s.Add(Store(tile, kernel::Span(I(i * lanes_), lanes_), Read(acc, I(i * lanes_), lanes_)));
    s.Add(Loop("o", I(channels), [&](const PrimExpr& o) {
      Steps line;
      for (int64_t p = 0; p < pixels; ++p)
        line.Add(store(o, p, Read(tile, (o * I(pixels) + I(p)) * I(lanes_), lanes_)));
      return line.Done();
    }));
    return With(tile, s.Done());
  }

  const Group& g_;
  PlainConv c_;
  Machine mc_;
  DataType dtype_;
  int64_t lanes_;
  Buffer input_, weight_;
  Plan plan_;
  bool flat_ = false, parallel_ = false, pad_in_unit_ = false;
  int64_t width_ = 1, height_ = 1, slices_ = 1, row_vectors_ = 1;  // of an output image as tiles cut it
  int64_t pitch_ = 1, row_ = 1, plane_ = 1, volume_ = 1;           // of an input as it is read, in elements
  int64_t items_ = 1, chunk_ = 1, chunks_ = 1, strips_ = 1;
  PrimExpr run_image_ = I(0);  // where the number of images is open
  PrimExpr image_, slice_, first_out_, in_group_;
};

template <int N>
Stmt WritePlainConv(const Group& g, const Call& anchor, const Target& target) {
  const auto* a = anchor->attrs.as<ConvAttrs<N>>();
  DataType t = g.anchor_dtype();
  if (!a || (t != DataType::Float(32) && t != DataType::Float(64)) || g.num_args() != 2 || g.arg_dtype(0) != t ||
      g.arg_dtype(1) != t)
    return Stmt();
  PlainConv c;
  if (!ReadPlainConv(g, *a, &c)) return Stmt();
  // Rows of a pixel or two would leave vectors empty.
  if ((c.flat() ? c.out.all() : c.out[2]) < 3) return Stmt();
  return PlainConvWriter(g, c, MachineOf(target, t)).Write();
}

}  // namespace

template <int N>
tir::PrimFunc GeneratePlainConv(const Function& func, const Call& anchor, const Target& target) {
  return GenerateOpen(func, anchor, [&](const Group& g) { return WritePlainConv<N>(g, anchor, target); });
}

template <int N>
tir::PrimFunc GenerateConv(const Function& func, const Call& anchor, const String&, const Target& target) {
  tir::PrimFunc f = GenerateBlockedConv<N>(func, anchor, target);
  return f.defined() ? f : GeneratePlainConv<N>(func, anchor, target);
}
template tir::PrimFunc GenerateConv<1>(const Function&, const Call&, const String&, const Target&);
template tir::PrimFunc GenerateConv<2>(const Function&, const Call&, const String&, const Target&);
template tir::PrimFunc GenerateConv<3>(const Function&, const Call&, const String&, const Target&);

}  // namespace baton::relay::kernel
