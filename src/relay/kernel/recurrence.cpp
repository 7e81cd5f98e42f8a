// SPDX-License-Identifier: Apache-2.0
// A step is a product of the states with panels of weights; a panel holds all gates of some units, so that the gates'
// sums meet in one place and the cell's arithmetic follows at once. Panels are shared out among threads. States of the
// last step and of this one lie side by side and change places.
#include "recurrence.h"

#include <algorithm>

#include "plan.h"

namespace baton::relay::kernel {
namespace {

/// Arithmetic of a step from which it is worth sharing out.
constexpr double kParallelStepFlops = 200e3;
constexpr int64_t kMostRows = 8;

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
      : r_(r), mc_(mc), lanes_(mc.lanes), gates_(GatesOf(r.cell)), state_size_(r.batch * I(r.hidden)) {}

  Stmt Write() {
    state_ = Buffer::Make({I(2) * state_size_}, r_.dtype, "state");
    Steps s;
    s.Add(Copy(state_, I(0), r_.h0, I(0)));
    if (r_.c.defined()) s.Add(Copy(r_.c, I(0), r_.c0, I(0)));
    s.Add(Loop("t", r_.steps, [&](const PrimExpr& t) { return Step(t); }));
    s.Add(Copy(r_.h, I(0), state_, floormod(r_.steps, I(2)) * state_size_));
    Stmt body = With(state_, s.Done());
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

  Stmt Run(const Phase& p) {
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
    const int64_t vectors = p.units / lanes_, line = p.gates * p.units, count = r_.hidden;
    Steps s;
    PrimExpr m0 = Known(m0_expr) >= 0 ? m0_expr : s.Let("m0", m0_expr);
    PrimExpr w0 = s.Let("w0", panel * I(count * line)), x0 = s.Let("x0", p.from_at + m0 * I(count));
    Buffer acc = Buffer::Make({I(rows * line)}, r_.dtype, "acc", "local");
    Buffer tile = Buffer::Make({I(rows * line)}, r_.dtype, "tile");
    PrimExpr zero = tir::broadcast_to(tir::make_const(r_.dtype, 0), static_cast<int>(lanes_));
    Steps body;
    for (int64_t i = 0; i < rows * line; i += lanes_) body.Add(Store(acc, Span(I(i), lanes_), zero));
    auto step = [&](const PrimExpr& k) {
      Steps one;
      std::vector<PrimExpr> w;
      for (int64_t i = 0; i < line; i += lanes_)
        w.push_back(one.Let("w", As(r_.dtype, Read(p.weight, w0 + k * I(line) + I(i), lanes_))));
      for (int64_t r = 0; r < rows; ++r) {
        PrimExpr x = one.Let("x", tir::broadcast_to(Read(p.from, x0 + I(r * count) + k), static_cast<int>(lanes_)));
        for (size_t i = 0; i < w.size(); ++i) {
          PrimExpr at = I(r * line + static_cast<int64_t>(i) * lanes_);
          one.Add(Store(acc, Span(at, lanes_), MultiplyAdd(mc_.fma, x, w[i], Read(acc, at, lanes_))));
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
    auto sum = [&](int64_t gate) { return Read(tile, sums + I((gate - p.first) * p.units), lanes_); };
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
  int64_t lanes_, gates_;
  PrimExpr state_size_;
  Buffer state_, update_, reset_;  // reset_: the state times its reset gate
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
