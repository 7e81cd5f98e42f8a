// SPDX-License-Identifier: Apache-2.0
// A step is a product of the states with panels of weights; a panel holds all gates of some units, so that the gates'
// sums meet in one place and the cell's arithmetic follows at once. Panels are shared out among threads. States of the
// last step and of this one lie side by side and change places. Where weights are bytes, a step first makes bytes of
// the states: a sequence has its own scale, so that its bits do not depend on the others.
#include "recurrence.h"

#include <algorithm>
#include <cmath>

#include "plan.h"

namespace baton::relay::kernel {
namespace {

/// Arithmetic of a step from which it is worth sharing out.
constexpr double kParallelStepFlops = 200e3;
constexpr int64_t kMostRows = 8;
constexpr int64_t kTerms = 4;
/// Whole numbers of a state run from -127 to 127; kernels take them unsigned, behind this.
constexpr int64_t kToUnsigned = 128, kMostWhole = 127;
/// A state whose elements are all smaller counts as 0: 127 over it might be infinite.
constexpr double kLeastState = 1e-30;
const DataType kInt32 = DataType::Int(32), kUInt8 = DataType::UInt(8);

PrimExpr Splat(double value, const PrimExpr& like) {
  return tir::broadcast_to(tir::make_const(like.dtype().with_lanes(1), value), like.dtype().lanes());
}

PrimExpr Apply(const Activation& a, const PrimExpr& x) {
  auto lit = [&](double v) { return Splat(v, x); };
  const PrimExpr alpha = lit(a.alpha), beta = lit(a.beta);
  if (a.name == "sigmoid") return sigmoid(x);
  if (a.name == "tanh") return tanh(x);
  if (a.name == "relu") return max(x, lit(0));
  if (a.name == "affine") return alpha * x + beta;
  if (a.name == "scaledtanh") return alpha * tanh(beta * x);
  if (a.name == "hardsigmoid") return max(min(alpha * x + beta, lit(1)), lit(0));
  if (a.name == "softsign") return x / (abs(x) + lit(1));
  if (a.name == "leakyrelu") return tir::Select(x < lit(0), alpha * x, x);
  if (a.name == "thresholdedrelu") return tir::Select(x > alpha, x, lit(0));
  if (a.name == "elu") return tir::Select(x < lit(0), alpha * (exp(x) - lit(1)), x);
  if (a.name == "softplus") return log(exp(x) + lit(1));
  throw CompileError("there is no activation \"" + a.name.str() + "\" for a recurrent layer");
}

class RecurrenceWriter {
 public:
  RecurrenceWriter(const Recurrence& r, const Machine& mc)
      : r_(r),
        mc_(mc),
        lanes_(mc.lanes),
        gates_(GatesOf(r.cell)),
        terms_(r.bytes ? kTerms : 1),
        depth_(CeilDiv(r.hidden, terms_)),
        state_size_(r.batch * I(r.hidden)) {}

  Stmt Write() {
    state_ = Buffer::Make({I(2) * state_size_}, r_.dtype, "state");
    if (r_.bytes) {
      whole_ = Buffer::Make({r_.batch * I(depth_ * kTerms)}, kUInt8, "whole");
      row_scale_ = Buffer::Make({r_.batch}, r_.dtype, "row_scale");
      if (r_.zero.defined()) row_sum_ = Buffer::Make({r_.batch}, kInt32, "row_sum");
    }
    Steps s;
    s.Add(Copy(state_, I(0), r_.h0, I(0)));
    if (r_.c.defined()) s.Add(Copy(r_.c, I(0), r_.c0, I(0)));
    s.Add(Loop("t", r_.steps, [&](const PrimExpr& t) { return Step(t); }));
    s.Add(Copy(r_.h, I(0), state_, floormod(r_.steps, I(2)) * state_size_));
    Stmt body = With(state_, s.Done());
    for (const Buffer& b : {whole_, row_scale_, row_sum_}) {
      if (b.defined()) body = With(b, body);
    }
    if (r_.cell != Cell::kGru) return body;
    return With(update_, With(reset_, body));
  }

 private:
  /// One product of a step and what follows it.
  struct Phase {
    Buffer weight, from;
    PrimExpr from_at;
    int64_t first, gates, units;  ///< of the gates
    bool last;
  };

  /// All states from one place to another.
  Stmt Copy(const Buffer& to, const PrimExpr& to_at, const Buffer& from, const PrimExpr& from_at) {
    Steps s;
    PrimExpr whole = floordiv(state_size_, I(lanes_)), done = whole * I(lanes_);
    s.Add(Loop("i", whole, [&](const PrimExpr& i) {
      return Store(to, Span(to_at + i * I(lanes_), lanes_), Read(from, from_at + i * I(lanes_), lanes_));
    }));
    s.Add(Loop("i", state_size_ - done,
               [&](const PrimExpr& i) { return Store(to, to_at + done + i, Read(from, from_at + done + i)); }));
    return s.Done();
  }

  Stmt Step(const PrimExpr& t) {
    Steps s;
    old_ = s.Let("old", floormod(t, I(2)) * state_size_);
    new_ = s.Let("new", state_size_ - old_);
    at_ = s.Let("at", r_.backward ? r_.steps - I(1) - t : t);
    if (r_.cell == Cell::kGru) {
      if (!update_.defined()) {
        update_ = Buffer::Make({state_size_}, r_.dtype, "update");
        reset_ = Buffer::Make({state_size_}, r_.dtype, "reset");
      }
      s.Add(Run({r_.weight, state_, old_, 0, 2, r_.units, false}));
      s.Add(Run({r_.candidate_weight, reset_, I(0), 2, 1, r_.candidate_units, true}));
    } else {
      s.Add(Run({r_.weight, state_, old_, 0, gates_, r_.units, true}));
    }
    return s.Done();
  }

  /// The phase's states as bytes, where its weight has bytes.
  Stmt Run(const Phase& p) {
    if (!r_.bytes) return Products(p);
    Steps s;
    s.Add(Loop("m", r_.batch, [&](const PrimExpr& m) { return Quantize(p, m); }));
    s.Add(Products(p));
    return s.Done();
  }

  /// State `m` as whole numbers of its largest element's 127th part. One that is not finite gives a scale that is NaN.
  Stmt Quantize(const Phase& p, const PrimExpr& m_expr) {
    Steps s;
    PrimExpr m = s.Let("m", m_expr), from = s.Let("from", p.from_at + m * I(r_.hidden));
    PrimExpr to = s.Let("to", m * I(depth_ * kTerms));
    const int64_t whole = r_.hidden / lanes_ * lanes_;
    auto each = [&](auto body) {  // of the line, a vector at a time; elements behind its end are 0
      Steps all;
      all.Add(Loop("i", I(whole / lanes_), [&](const PrimExpr& i) { return body(i * I(lanes_), PrimExpr()); }));
      if (whole < r_.hidden) all.Add(body(I(whole), FirstLanes(r_.hidden - whole, lanes_)));
      return all.Done();
    };
    auto zero = [&](DataType t) { return tir::broadcast_to(tir::make_const(t, 0), static_cast<int>(lanes_)); };
    // The largest magnitude, and the sum of all, which shows what is not finite.
    Buffer most = Buffer::Make({I(lanes_)}, r_.dtype, "most", "local");
    Buffer sum = Buffer::Make({I(lanes_)}, r_.dtype, "sum", "local");
    Steps of_line;
    of_line.Add(Store(most, Span(I(0), lanes_), zero(r_.dtype)));
    of_line.Add(Store(sum, Span(I(0), lanes_), zero(r_.dtype)));
    of_line.Add(each([&](const PrimExpr& i, const PrimExpr& mask) {
      Steps one;
      PrimExpr x = one.Let("x", ReadMasked(p.from, from + i, lanes_, mask));
      one.Add(Store(most, Span(I(0), lanes_), max(Read(most, I(0), lanes_), abs(x))));
      one.Add(Store(sum, Span(I(0), lanes_), Read(sum, I(0), lanes_) + x));
      return one.Done();
    }));
    const PrimExpr largest = of_line.Let("largest", tir::vector_max(Read(most, I(0), lanes_)));
    const PrimExpr finite = of_line.Let("finite", isfinite(tir::vector_sum(Read(sum, I(0), lanes_))));
    const PrimExpr some = of_line.Let("some", finite && largest > Splat(kLeastState, largest));
    const PrimExpr none = Splat(0, largest);
    of_line.Add(Store(
        row_scale_, m,
        tir::Select(some, largest * Splat(1.0 / kMostWhole, largest), tir::Select(finite, none, Splat(NAN, largest)))));
    const PrimExpr times = of_line.Let("times", tir::Select(some, Splat(kMostWhole, largest) / largest, none));
    Buffer total = Buffer::Make({I(lanes_)}, kInt32, "total", "local");
    Steps made;
    if (row_sum_.defined()) made.Add(Store(total, Span(I(0), lanes_), zero(kInt32)));
    made.Add(each([&](const PrimExpr& i, const PrimExpr& mask) {
      Steps one;
      PrimExpr x = ReadMasked(p.from, from + i, lanes_, mask) * tir::broadcast_to(times, static_cast<int>(lanes_));
      PrimExpr q = one.Let("q", As(kInt32, nearbyint(x)));
      if (row_sum_.defined()) one.Add(Store(total, Span(I(0), lanes_), Read(total, I(0), lanes_) + q));
      one.Add(WriteMasked(whole_, to + i, lanes_, As(kUInt8, q + Splat(kToUnsigned, q)), mask));
      return one.Done();
    }));
    for (int64_t k = r_.hidden; k < depth_ * kTerms; ++k)
      made.Add(Store(whole_, to + I(k), tir::make_const(kUInt8, kToUnsigned)));
    if (row_sum_.defined()) made.Add(Store(row_sum_, m, tir::vector_sum(Read(total, I(0), lanes_))));
    of_line.Add(row_sum_.defined() ? With(total, made.Done()) : made.Done());
    s.Add(With(most, With(sum, of_line.Done())));
    return s.Done();
  }

  Stmt Products(const Phase& p) {
    const int64_t vectors = p.units / lanes_, sums = p.gates * vectors, panels = CeilDiv(r_.hidden, p.units);
    int64_t rows = std::clamp<int64_t>((mc_.registers - 2 - sums) / sums, 1, kMostRows);
    const int64_t batch = Known(r_.batch);
    if (batch >= 0) rows = CeilDiv(batch, CeilDiv(batch, rows));
    const double flops =
        2.0 * static_cast<double>(std::max<int64_t>(batch, 1) * p.gates) * static_cast<double>(r_.hidden * r_.hidden);
    const bool parallel = flops > kParallelStepFlops && panels > 1 && mc_.cores > 1;
    return Loop(
        "panel", I(panels),
        [&](const PrimExpr& panel) {
          Steps s;
          PrimExpr tiles = floordiv(r_.batch, I(rows)), rest = r_.batch - tiles * I(rows);
          s.Add(Loop("tile", tiles, [&](const PrimExpr& i) { return Tile(p, panel, i * I(rows), rows); }));
          if (batch >= 0) {
            if (batch % rows) s.Add(Tile(p, panel, tiles * I(rows), batch % rows));
          } else if (rows > 1) {
            s.Add(Loop("row", rest, [&](const PrimExpr& i) { return Tile(p, panel, tiles * I(rows) + i, 1); }));
          }
          return s.Done();
        },
        parallel ? ForKind::kParallel : ForKind::kSerial);
  }

  /// The gates of a panel for `rows` states from `m0` on.
  Stmt Tile(const Phase& p, const PrimExpr& panel, const PrimExpr& m0_expr, int64_t rows) {
    const int64_t vectors = p.units / lanes_, line = p.gates * p.units, count = depth_;
    const DataType sum_type = r_.bytes ? kInt32 : r_.dtype;
    const Buffer& states = r_.bytes ? whole_ : p.from;
    Steps s;
    PrimExpr m0 = Known(m0_expr) >= 0 ? m0_expr : s.Let("m0", m0_expr);
    PrimExpr w0 = s.Let("w0", panel * I(count * line * terms_));
    PrimExpr x0 = s.Let("x0", (r_.bytes ? I(0) : p.from_at) + m0 * I(count * terms_));
    Buffer acc = Buffer::Make({I(rows * line)}, sum_type, "acc", "local");
    Buffer tile = Buffer::Make({I(rows * line)}, sum_type, "tile");
    PrimExpr zero = tir::broadcast_to(tir::make_const(sum_type, 0), static_cast<int>(lanes_));
    Steps body;
    for (int64_t i = 0; i < rows * line; i += lanes_) body.Add(Store(acc, Span(I(i), lanes_), zero));
    auto step = [&](const PrimExpr& k) {
      Steps one;
      std::vector<PrimExpr> w;
      if (r_.bytes && lanes_ == 1) {  // not all targets have tir::dot4
        for (int64_t i = 0; i < rows * line * terms_; ++i) {
          const PrimExpr state = Read(states, x0 + (I(i / terms_ / line * count) + k) * I(terms_) + I(i % terms_));
          const PrimExpr weight = Read(p.weight, w0 + k * I(line * terms_) + I(i % (line * terms_)));
          const PrimExpr at = I(i / terms_);
          one.Add(Store(acc, at, Read(acc, at) + As(kInt32, state) * As(kInt32, weight)));
        }
        return one.Done();
      }
      for (int64_t i = 0; i < line; i += lanes_)
        w.push_back(one.Let("w", Weights(p.weight, w0 + (k * I(line) + I(i)) * I(terms_))));
      for (int64_t r = 0; r < rows; ++r) {
        PrimExpr x = one.Let("x", Repeat(states, x0 + (I(r * count) + k) * I(terms_), terms_, lanes_));
        for (size_t i = 0; i < w.size(); ++i) {
          PrimExpr at = I(r * line + static_cast<int64_t>(i) * lanes_);
          one.Add(Store(acc, Span(at, lanes_), AddTerms(mc_.fma, terms_, x, w[i], Read(acc, at, lanes_))));
        }
      }
      return one.Done();
    };
    const int64_t unroll = rows * p.gates * vectors >= 16 ? 2 : 4;
    body.Add(Loop("k", I(count / unroll), [&](const PrimExpr& k) {
      Steps some;
      for (int64_t i = 0; i < unroll; ++i) some.Add(step(k * I(unroll) + I(i)));
      return some.Done();
    }));
    for (int64_t k = count / unroll * unroll; k < count; ++k) body.Add(step(I(k)));
    for (int64_t i = 0; i < rows * line; i += lanes_)
      body.Add(Store(tile, Span(I(i), lanes_), Read(acc, I(i), lanes_)));
    Steps after;
    after.Add(With(acc, body.Done()));
    after.Add(Loop("row", I(rows), [&](const PrimExpr& row) {
      return Loop("vector", I(vectors), [&](const PrimExpr& v) { return Finish(p, tile, panel, m0 + row, row, v); });
    }));
    s.Add(With(tile, after.Done()));
    return s.Done();
  }

  PrimExpr Weights(const Buffer& weight, const PrimExpr& at) const {
    const PrimExpr w = Read(weight, at, lanes_ * terms_);
    return r_.bytes ? w : As(r_.dtype, w);
  }

  /// The cell's arithmetic for one vector of units of state `m`, which is `row` of the tile.
  Stmt Finish(const Phase& p, const Buffer& tile, const PrimExpr& panel, const PrimExpr& m_expr, const PrimExpr& row,
              const PrimExpr& v) {
    Steps s;
    PrimExpr m = s.Let("m", m_expr), unit = s.Let("unit", panel * I(p.units) + v * I(lanes_));
    PrimExpr place = s.Let("place", m * I(r_.hidden) + unit);
    mask_ = PrimExpr();
    if (r_.hidden % p.units)
      mask_ = s.Let("mask", tir::Ramp(I(0), I(1), lanes_) < PrimExpr(tir::Broadcast(I(r_.hidden) - unit, lanes_)));
    PrimExpr sums = s.Let("sums", row * I(p.gates * p.units) + v * I(lanes_));
    PrimExpr inputs = s.Let("inputs", (at_ * r_.batch + m) * I(gates_ * r_.hidden) + unit);
    auto sum = [&](int64_t gate) {
      PrimExpr x = Read(tile, sums + I((gate - p.first) * p.units), lanes_);
      if (!r_.bytes) return x;
      const PrimExpr at = unit + I(gate * r_.hidden);
      x = x - Load(r_.offset, at);
      if (r_.zero.defined()) x = x - Load(r_.zero, at) * tir::broadcast_to(Read(row_sum_, m), static_cast<int>(lanes_));
      return As(r_.dtype, x) * (Load(r_.scale, at) * tir::broadcast_to(Read(row_scale_, m), static_cast<int>(lanes_)));
    };
    auto input = [&](int64_t gate) { return Load(r_.projected, inputs + I(gate * r_.hidden)); };
    auto f = [&](size_t i, const PrimExpr& x) { return s.Let("f", Apply(r_.functions[i], Clipped(s.Let("x", x)))); };
    PrimExpr old = s.Let("h", Load(state_, old_ + place)), next, cell;
    if (r_.cell == Cell::kRnn) {
      next = f(0, input(0) + sum(0));
    } else if (r_.cell == Cell::kLstm) {
      next = Lstm(&s, sum, input, f, unit, place, &cell);
    } else if (!p.last) {
      s.Add(WriteMasked(update_, place, lanes_, f(0, input(0) + sum(0)), mask_));
      s.Add(WriteMasked(reset_, place, lanes_, f(0, input(1) + sum(1)) * old, mask_));
      return s.Done();
    } else {
      PrimExpr update, hidden;
      if (r_.cell == Cell::kGru) {
        update = s.Let("z", Load(update_, place));
        hidden = f(1, input(2) + sum(2));
      } else {
        update = f(0, input(0) + sum(0));
        PrimExpr reset = f(0, input(1) + sum(1));
        hidden = f(1, input(2) + reset * (sum(2) + Load(r_.inner_bias, unit)));
      }
      next = (Splat(1, update) - update) * hidden + update * old;
    }
    next = s.Let("next", next);
    s.Add(Keep(m, place, old, next, cell));
    return s.Done();
  }

  template <class Sum, class Input, class F>
  PrimExpr Lstm(Steps* s, const Sum& sum, const Input& input, const F& f, const PrimExpr& unit, const PrimExpr& place,
                PrimExpr* cell) {
    PrimExpr old = s->Let("c", Load(r_.c, place));
    auto gate = [&](int64_t i, int64_t peephole, const PrimExpr& sees) {
      PrimExpr x = input(i) + sum(i);
      if (!r_.peepholes.defined() || peephole < 0) return x;
      return x + Load(r_.peepholes, unit + I(peephole * r_.hidden)) * sees;
    };
    PrimExpr in = f(0, gate(0, 0, old)), forget = f(0, gate(2, 2, old)), fresh = f(1, gate(3, -1, old));
    *cell = s->Let("cell", forget * old + in * fresh);
    PrimExpr out = f(0, gate(1, 1, *cell));
    return out * Apply(r_.functions[2], *cell);
  }

  /// Writes a state's vector. Past a sequence's end its states do not change and its output is 0.
  Stmt Keep(const PrimExpr& m, const PrimExpr& place, const PrimExpr& old, PrimExpr next, PrimExpr cell) {
    Steps s;
    PrimExpr out = next;
    if (r_.lengths.defined()) {
      PrimExpr inside = s.Let("inside", at_ < cast(DataType::Int(64), Read(r_.lengths, m)));
      PrimExpr all = tir::broadcast_to(inside, static_cast<int>(lanes_));
      out = tir::Select(all, next, Splat(0, next));
      next = tir::Select(all, next, old);
      if (cell.defined()) cell = tir::Select(all, cell, Load(r_.c, place));
    }
    s.Add(WriteMasked(r_.y, at_ * state_size_ + place, lanes_, out, mask_));
    s.Add(WriteMasked(state_, new_ + place, lanes_, next, mask_));
    if (cell.defined()) s.Add(WriteMasked(r_.c, place, lanes_, cell, mask_));
    return s.Done();
  }

  PrimExpr Load(const Buffer& b, const PrimExpr& at) const { return ReadMasked(b, at, lanes_, mask_); }
  PrimExpr Clipped(const PrimExpr& x) const {
    return r_.clip > 0 ? min(max(x, Splat(-r_.clip, x)), Splat(r_.clip, x)) : x;
  }

  const Recurrence& r_;
  const Machine& mc_;
  int64_t lanes_, gates_, terms_;
  int64_t depth_;  ///< steps of a sum, of so many terms
  PrimExpr state_size_;
  Buffer state_, update_, reset_;       // reset_: the state times its reset gate
  Buffer whole_, row_scale_, row_sum_;  // the states as bytes (batch, depth, 4), with a scale and a sum each
  PrimExpr old_, new_, at_, mask_;
};

}  // namespace

int64_t PanelVectors(int64_t gates, int64_t batch, int64_t hidden, int64_t lanes) {
  int64_t vectors = batch == 1 ? (gates >= 3 ? 2 : 4) : gates >= 3 ? 1 : 2;
  while (vectors > 1 && hidden < 2 * vectors * lanes) vectors /= 2;
  return vectors;
}

Stmt WriteRecurrence(const Recurrence& r, const Machine& mc) { return RecurrenceWriter(r, mc).Write(); }

}  // namespace baton::relay::kernel
