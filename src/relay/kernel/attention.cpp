// SPDX-License-Identifier: Apache-2.0
// Attention as one kernel. Queries of all heads that share keys are rows of one matrix, which is cut into chunks; a
// chunk goes through the keys once, in blocks that are turned round into a panel. For a tile of rows a block gives
// scores, their largest element so far, weights and their share of the result; what was summed up before is scaled when
// the largest element grows. Blocks begin at multiples of kKeys, and sums within them run in one order, so that a row's
// bits depend neither on other rows nor on keys that it does not see.
#include <baton/relay/op/nn.h>
#include <tir/parallel_if.h>

#include <algorithm>
#include <limits>

#include "generators.h"
#include "matmul.h"

namespace baton::relay::kernel {
namespace {

constexpr int64_t kKeys = 64;       ///< of a block
constexpr int64_t kTileRows = 6;    ///< of a register tile
constexpr int64_t kChunkRows = 96;  ///< of a unit of parallel work
constexpr double kLowest = std::numeric_limits<float>::lowest();

/// Extents and steps of an operand's dimensions, in the order batch, head, place, element.
struct Operand {
  Buffer buffer;
  PrimExpr extent[4], step[4];
  Operand(const Buffer& b, const Array<PrimExpr>& shape, const String& layout) : buffer(b) {
    constexpr std::string_view letters = "BHSD";
    PrimExpr step_of = I(1);
    for (int64_t d = 3; d >= 0; --d) {
      const size_t at = letters.find(layout.view()[static_cast<size_t>(d)]);
      extent[at] = shape[d];
      step[at] = step_of;
      step_of = step_of * shape[d];
    }
  }
  bool elements_adjacent() const { return tir::is_one(step[3]); }
};

/// Of numbers that are not negative, without the tests of floordiv.
PrimExpr Quotient(const PrimExpr& a, const PrimExpr& b) {
  if (tir::is_one(b)) return a;
  return Known(b) >= 0 ? floordiv(a, b) : truncdiv(a, max(b, I(1)));
}
PrimExpr Remainder(const PrimExpr& a, const PrimExpr& b) {
  if (tir::is_one(b)) return I(0);
  return Known(b) >= 0 ? floormod(a, b) : truncmod(a, max(b, I(1)));
}
PrimExpr RoundUp(const PrimExpr& a, int64_t b) { return floordiv(a + I(b - 1), I(b)); }

PrimExpr Hold(Steps* steps, const char* name, const PrimExpr& value) {
  return Known(value) >= 0 ? value : steps->Let(name, value);
}
/// The first `count` elements, whole vectors.
Stmt Fill(const Buffer& b, int64_t count, int64_t lanes, double value) {
  const PrimExpr all = tir::broadcast_to(tir::make_const(b->dtype, value), static_cast<int>(lanes));
  return Loop("i", I(count / lanes), [&](const PrimExpr& i) { return Store(b, Span(i * I(lanes), lanes), all); });
}
/// f(element, mask) for each vector of a row of `width` elements; the last may be in part.
template <class F>
Stmt EachVector(int64_t width, int64_t lanes, F f) {
  Steps s;
  for (int64_t at = 0; at < width; at += lanes) s.Add(f(at, FirstLanes(width - at, lanes)));
  return s.Done();
}
/// The first `live` of `all` vectors, joined in pairs as all of them would be: others change nothing.
template <class Get, class F>
PrimExpr Joined(int64_t live, int64_t all, Get get, F f) {
  std::vector<PrimExpr> x(static_cast<size_t>(all));
  for (int64_t v = 0; v < live; ++v) x[static_cast<size_t>(v)] = get(v);
  for (; x.size() > 1; x.resize(x.size() / 2)) {
    for (size_t i = 0; i < x.size() / 2; ++i) {
      const PrimExpr& other = x[i + x.size() / 2];
      if (other.defined()) x[i] = f(x[i], other);
    }
  }
  return x[0];
}

/// Keys of a block into `panel`, [element][key]: `there` keys from offset `from` of `k` on. Lanes behind the last key
/// get any numbers.
Stmt PackKeys(const Operand& k, const PrimExpr& from, const PrimExpr& there, int64_t depth, int64_t lanes,
              const Buffer& panel) {
  if (tir::is_one(k.step[2])) {
    return Loop("d", I(depth), [&](const PrimExpr& d) {
      return Loop("v", RoundUp(there, lanes), [&](const PrimExpr& v) {
        PrimExpr left = there - v * I(lanes), mask;
        if (Known(left) < lanes) mask = tir::Ramp(I(0), I(1), lanes) < PrimExpr(tir::Broadcast(left, lanes));
        PrimExpr x = ReadMasked(k.buffer, from + d * k.step[3] + v * I(lanes), lanes, mask);
        return Store(panel, Span(d * I(kKeys) + v * I(lanes), lanes), x);
      });
    });
  }
  const int64_t squares = k.elements_adjacent() && lanes > 1 ? depth / lanes : 0, done = squares * lanes;
  return Loop("v", RoundUp(there, lanes), [&](const PrimExpr& v) {
    Steps all;
    std::vector<PrimExpr> line;
    for (int64_t i = 0; i < lanes; ++i) {
      PrimExpr key = v * I(lanes) + I(i);
      if (Known(there) != kKeys) key = min(key, there - I(1));
      line.push_back(all.Let("line", from + key * k.step[2]));
    }
    all.Add(Loop("square", I(squares), [&](const PrimExpr& q) {
      Steps steps;
      std::vector<PrimExpr> x;
      for (const PrimExpr& l : line) x.push_back(steps.Let("x", Read(k.buffer, l + q * I(lanes), lanes)));
      TransposeSquare(&x, &steps);
      for (size_t i = 0; i < x.size(); ++i) {
        const PrimExpr d = q * I(lanes) + I(static_cast<int64_t>(i));
        steps.Add(Store(panel, Span(d * I(kKeys) + v * I(lanes), lanes), x[i]));
      }
      return steps.Done();
    }));
    all.Add(Loop("d", I(depth - done), [&](const PrimExpr& d0) {
      Steps steps;
      PrimExpr d = d0 + I(done);
      for (int64_t i = 0; i < lanes; ++i) {
        PrimExpr x = Read(k.buffer, line[static_cast<size_t>(i)] + d * k.step[3]);
        steps.Add(Store(panel, d * I(kKeys) + v * I(lanes) + I(i), x));
      }
      return steps.Done();
    }));
    return all.Done();
  });
}

Buffer Places(const char* name) { return Buffer::Make({I(kChunkRows)}, DataType::Int(64), name); }
/// Whether a row has weights, where it is guarded (AttentionAttrs::guard). The sum of exponentials is 0 where all
/// scores are -inf, and NaN where one is not finite otherwise.
PrimExpr HasWeights(int64_t guard, const PrimExpr& sum, const PrimExpr& zero) {
  return guard == 1 ? not_equal(sum, zero) : sum > zero;
}

class AttentionWriter {
 public:
  AttentionWriter(const AttentionAttrs& a, const Operand& q, const Operand& k, const Operand& v, const Operand& out,
                  const Machine& mc)
      : a_(a), q_(q), k_(k), v_(v), out_(out), mc_(mc), lanes_(mc.lanes), t_(q.buffer->dtype) {
    depth_ = Known(q.extent[3]), width_ = Known(v.extent[3]);
    vectors_ = mc.registers >= 32 ? 4 : 2;
    wide_ = CeilDiv(width_, lanes_) * lanes_;
    pad_ = CeilDiv(kTileRows, lanes_) * lanes_;
  }
  /// `mask`: flat, with steps that are 0 where it broadcasts.
  void AddMask(const Buffer& mask, const PrimExpr (&step)[4]) {
    mask_ = mask;
    std::copy(step, step + 4, mask_step_);
  }

  Stmt Write() {
    Steps s;
    rows_ = Hold(&s, "rows", q_.extent[2]), keys_ = Hold(&s, "keys", k_.extent[2]);
    groups_ = Hold(&s, "groups", k_.extent[1]);
    each_ = tir::ExprDeepEqual(q_.extent[1], k_.extent[1]) ? I(1) : Hold(&s, "each", Quotient(q_.extent[1], groups_));
    total_ = Hold(&s, "total", each_ * rows_);
    blocks_ = Hold(&s, "blocks", RoundUp(keys_, kKeys));
    chunks_ = Hold(&s, "chunks", RoundUp(total_, kChunkRows));
    per_ = Hold(&s, "per", RoundUp(Quotient(total_ + max(chunks_, I(1)) - I(1), chunks_), kTileRows) * I(kTileRows));
    chunks_ = Known(per_) > 0 ? RoundUp(total_, Known(per_)) : chunks_;
    Stmt units = Loop(
        "unit", q_.extent[0] * groups_ * chunks_, [&](const PrimExpr& unit) { return Unit(unit); },
        mc_.cores > 1 ? ForKind::kParallel : ForKind::kSerial);
    if (!units.defined()) return Effect(I(0));
    // A weight takes about as long as eight products. Rows are few where keys are many: threads pay later than
    // elsewhere.
    PrimExpr worth = I(static_cast<int64_t>(2 * kParallelFlops)) <
                     q_.extent[0] * groups_ * total_ * (keys_ * I(depth_ + width_ + 8));
    s.Add(tir::ParallelIf(worth, units));
    return s.Done();
  }

 private:
  PrimExpr Splat(double value) const { return tir::broadcast_to(tir::make_const(t_, value), static_cast<int>(lanes_)); }
  PrimExpr Spread(const PrimExpr& scalar) const { return tir::broadcast_to(scalar, static_cast<int>(lanes_)); }
  Buffer Floats(int64_t n, const char* name) const { return Buffer::Make({I(n)}, t_, name); }
  /// A chunk of rows of one group of heads.
  Stmt Unit(PrimExpr unit) {
    Steps s;
    PrimExpr chunk = I(0);
    if (Known(chunks_) != 1) {
      chunk = s.Let("chunk", Remainder(unit, chunks_));
      unit = s.Let("rest", Quotient(unit, chunks_));
    }
    group_ = I(0), batch_ = unit;
    if (Known(groups_) != 1) {
      group_ = s.Let("group", Remainder(unit, groups_));
      batch_ = s.Let("batch", Quotient(unit, groups_));
    }
    first_ = Known(chunks_) == 1 ? I(0) : s.Let("first", chunk * per_);
    const int64_t all = Known(total_), per = Known(per_);
    count_ = Known(chunks_) == 1 ? total_ : all >= 0 && per > 0 && all % per == 0 ? per_ : PrimExpr();
    if (!count_.defined()) count_ = s.Let("count", min(per_, total_ - first_));
    last_ = Known(count_) >= 0 ? Known(count_) % kTileRows : all >= 0 && per > 0 ? all % per % kTileRows : -1;
    k0_base_ = Hold(&s, "k_base", batch_ * k_.step[0] + group_ * k_.step[1]);
    v0_base_ = Hold(&s, "v_base", batch_ * v_.step[0] + group_ * v_.step[1]);
    const int64_t most = Known(count_) >= 0 ? Known(count_)
                         : per > 0          ? per
                                            : kChunkRows,
                  tiles = CeilDiv(most, kTileRows);
    queries_ = Floats(most * depth_, "queries"), sums_ = Floats(most * wide_, "mixed");
    panel_ = Floats(depth_ * kKeys, "panel"), scores_ = Floats(kTileRows * kKeys, "scores");
    totals_ = Floats(most * lanes_, "totals"), tops_ = Floats(tiles * pad_, "tops");
    new_tops_ = Floats(pad_, "new_tops"), factors_ = Floats(pad_, "factors");
    out_at_ = Places("out_at"), place_ = Places("place"), mask_at_ = Places("mask_at");
    s.Add(Loop("row", count_, [&](const PrimExpr& r) { return Begin(r); }));
    s.Add(Fill(new_tops_, pad_, lanes_, kLowest));
    s.Add(Fill(tops_, tiles * pad_, lanes_, kLowest));
    PrimExpr blocks = blocks_;
    if (a_.causal) {
      // Rows behind the chunk's last place see no later keys, unless it goes on with another head.
      PrimExpr last = s.Let("last", EdgePlace(I(0), count_, true));
      blocks = s.Let("seen", min(blocks_, floordiv(last + I(kKeys), I(kKeys))));
    }
    s.Add(Blocks(blocks));
    s.Add(Loop("row", count_, [&](const PrimExpr& r) { return End(r); }));
    Stmt body = s.Done();
    for (const Buffer& b : {queries_, sums_, panel_, scores_, totals_, tops_, new_tops_, factors_, out_at_})
      body = With(b, body);
    if (a_.causal) body = With(place_, body);
    if (mask_.defined()) body = With(mask_at_, body);
    return body;
  }

  /// The largest place of `count` rows from `r` on, or the least one. Rows of two heads have places from end to end.
  PrimExpr EdgePlace(const PrimExpr& r, const PrimExpr& count, bool largest) const {
    const PrimExpr a = Read(place_, r), b = Read(place_, r + count - I(1)), one_head = equal(b - a, count - I(1));
    return largest ? tir::Select(one_head, b, keys_ - I(1)) : tir::Select(one_head, a, keys_ - rows_);
  }

  /// Row `r` of the chunk: its query is copied, and scaled.
  Stmt Begin(const PrimExpr& r) {
    Steps s;
    PrimExpr row = s.Let("row", first_ + r), head = group_ * each_, i = row;
    if (Known(rows_) == 1) {
      head = s.Let("head", head + row), i = I(0);
    } else if (!tir::is_one(each_)) {
      head = s.Let("head", head + Quotient(row, rows_));
      i = s.Let("i", Remainder(row, rows_));
    }
    auto at = [&](const PrimExpr* step) { return batch_ * step[0] + head * step[1] + i * step[2]; };
    PrimExpr from = s.Let("from", at(q_.step));
    auto copy = [&](const PrimExpr& d, int64_t lanes) {
      const PrimExpr scale = tir::broadcast_to(tir::make_const(t_, a_.scale), static_cast<int>(lanes));
      return Store(queries_, Span(r * I(depth_) + d, lanes), Read(q_.buffer, from + d, lanes) * scale);
    };
    s.Add(Loop("d", I(depth_ / lanes_), [&](const PrimExpr& d) { return copy(d * I(lanes_), lanes_); }));
    const int64_t done = depth_ / lanes_ * lanes_;
    if (depth_ > done) s.Add(Loop("d", I(depth_ - done), [&](const PrimExpr& d) { return copy(I(done) + d, 1); }));
    s.Add(Store(out_at_, r, at(out_.step)));
    if (a_.causal) s.Add(Store(place_, r, i + (keys_ - rows_)));
    if (mask_.defined()) s.Add(Store(mask_at_, r, at(mask_step_)));
    s.Add(Store(totals_, Span(r * I(lanes_), lanes_), Splat(0)));
    s.Add(EachVector(width_, lanes_, [&](int64_t v, const PrimExpr&) {
      return Store(sums_, Span(r * I(wide_) + I(v), lanes_), Splat(0));
    }));
    return s.Done();
  }

  Stmt End(const PrimExpr& r) {
    Steps s;
    PrimExpr sum = s.Let("sum", tir::vector_sum(Read(totals_, r * I(lanes_), lanes_)));
    PrimExpr one = tir::make_const(t_, 1) / sum;
    if (Known(keys_) < 1) one = tir::Select(keys_ > I(0), one, tir::make_const(t_, 0));
    PrimExpr share = s.Let("share", Spread(one)), to = s.Let("to", Read(out_at_, r)), shown;
    if (a_.guard > 0) shown = s.Let("shown", HasWeights(a_.guard, Spread(sum), Splat(0)));
    s.Add(EachVector(width_, lanes_, [&](int64_t v, const PrimExpr& mask) {
      const PrimExpr y = Read(sums_, r * I(wide_) + I(v), lanes_) * share;
      const PrimExpr x = shown.defined() ? PrimExpr(tir::Select(shown, y, Splat(0))) : y;
      return WriteMasked(out_.buffer, to + I(v), lanes_, x, mask);
    }));
    return s.Done();
  }

  /// The first `blocks` blocks of keys. A last one of a literal number of keys has its own code.
  Stmt Blocks(const PrimExpr& blocks) {
    live_ = kKeys / lanes_;
    const int64_t keys = Known(keys_), rest = keys % kKeys;
    if (keys < 0) {
      return Loop("block", blocks, [&](const PrimExpr& b) {
        Steps s;
        k0_ = s.Let("k0", b * I(kKeys));
        there_ = s.Let("there", min(I(kKeys), keys_ - k0_));
        s.Add(Block());
        return s.Done();
      });
    }
    Steps s;
    PrimExpr whole = Known(blocks) >= 0 ? I(keys / kKeys) : min(blocks, I(keys / kKeys));
    s.Add(Loop("block", whole, [&](const PrimExpr& b) {
      Steps one;
      k0_ = Hold(&one, "k0", b * I(kKeys)), there_ = I(kKeys);
      one.Add(Block());
      return one.Done();
    }));
    if (rest) {
      live_ = CeilDiv(rest, lanes_);
      k0_ = I(keys - rest), there_ = I(rest);
      s.Add(Known(blocks) >= 0 ? Block() : If(I(keys / kKeys) < blocks, Block()));
    }
    return s.Done();
  }

  /// A block of keys for all rows of the chunk.
  Stmt Block() {
    Steps s;
    s.Add(PackKeys(k_, k0_base_ + k0_ * k_.step[2], there_, depth_, lanes_, panel_));
    const int64_t count = Known(count_);
    if (count >= 0) {
      s.Add(Loop("tile", I(count / kTileRows), [&](const PrimExpr& t) { return Tile(t, I(kTileRows)); }));
      if (count % kTileRows) s.Add(Tile(I(count / kTileRows), I(count % kTileRows)));
    } else {
      s.Add(Loop("tile", RoundUp(count_, kTileRows), [&](const PrimExpr& t) { return Tile(t, PrimExpr()); }));
    }
    return s.Done();
  }

  /// f() for the vectors of the block that have keys: of an open number all, or the first alone where that is enough.
  template <class F>
  Stmt ByKeys(F f) {
    if (Known(there_) >= 0) return f();
    const int64_t all = live_;
    const Stmt many = f();
    live_ = 1;
    const Stmt few = f();
    live_ = all;
    return If(there_ <= I(lanes_), few, many);
  }

  /// The tile `t` of rows; `rows` of them, or as many as there are.
  Stmt Tile(const PrimExpr& t, PrimExpr rows) {
    Steps s;
    r0_ = Hold(&s, "r0", t * I(kTileRows));
    if (!rows.defined()) rows = s.Let("rows_here", min(I(kTileRows), count_ - r0_));
    s.Add(ByKeys([&] { return ByRows(rows, [&](int64_t n) { return Scores(n); }); }));
    s.Add(ByKeys([&] { return Loop("row", rows, [&](const PrimExpr& r) { return Top(t, r); }); }));
    for (int64_t i = 0; i < pad_; i += lanes_) {
      Steps one;
      PrimExpr at = t * I(pad_) + I(i), top = one.Let("top", Read(new_tops_, I(i), lanes_));
      one.Add(Store(factors_, Span(I(i), lanes_), exp(Read(tops_, at, lanes_) - top)));
      one.Add(Store(tops_, Span(at, lanes_), top));
      s.Add(one.Done());
    }
    s.Add(ByKeys([&] { return Loop("row", rows, [&](const PrimExpr& r) { return Weigh(r); }); }));
    s.Add(ByRows(rows, [&](int64_t n) { return Mix(n); }));
    Stmt all = s.Done();
    if (!a_.causal) return all;
    // Tiles that see no key of the block are left out.
    PrimExpr n = Known(rows) >= 0 ? rows : min(I(kTileRows), count_ - t * I(kTileRows)), r0 = t * I(kTileRows);
    PrimExpr sees = k0_ <= EdgePlace(r0, n, true);
    if (a_.window > 0) sees = sees && EdgePlace(r0, n, false) - I(a_.window) < k0_ + I(kKeys - 1);
    return If(sees, all);
  }

  /// f(rows), with a literal number of rows.
  template <class F>
  Stmt ByRows(const PrimExpr& rows, F f) const {
    if (Known(rows) >= 0) return f(Known(rows));
    Stmt all;
    for (int64_t n = 1; n <= kTileRows; ++n) {
      if (n < kTileRows && last_ >= 0 && n != last_) continue;
      all = all.defined() ? If(equal(rows, I(n)), f(n), all) : f(n);
    }
    return all;
  }

  /// Products of the queries of a tile with the keys of the block.
  Stmt Scores(int64_t rows) {
    const int64_t vectors = std::min(vectors_, live_);
    return Loop("columns", I(CeilDiv(live_, vectors)), [&](const PrimExpr& c) {
      Buffer acc = Buffer::Make({I(rows * vectors * lanes_)}, t_, "acc", "local");
      auto at = [&](int64_t r, int64_t v) { return I((r * vectors + v) * lanes_); };
      Steps s;
      PrimExpr column = c * I(vectors * lanes_);
      for (int64_t i = 0; i < rows * vectors; ++i) s.Add(Store(acc, Span(I(i * lanes_), lanes_), Splat(0)));
      const int64_t unroll = depth_ % 2 == 0 ? 2 : 1;
      s.Add(Loop("d", I(depth_ / unroll), [&](const PrimExpr& d0) {
        Steps some;
        for (int64_t u = 0; u < unroll; ++u) {
          const PrimExpr d = d0 * I(unroll) + I(u);
          std::vector<PrimExpr> k;
          for (int64_t v = 0; v < vectors; ++v)
            k.push_back(some.Let("k", Read(panel_, d * I(kKeys) + column + I(v * lanes_), lanes_)));
          for (int64_t r = 0; r < rows; ++r) {
            PrimExpr q = some.Let("q", Spread(Read(queries_, (r0_ + I(r)) * I(depth_) + d)));
            for (int64_t v = 0; v < vectors; ++v) {
              const PrimExpr sum = Read(acc, at(r, v), lanes_);
              some.Add(Store(acc, Span(at(r, v), lanes_), MultiplyAdd(mc_.fma, q, k[static_cast<size_t>(v)], sum)));
            }
          }
        }
        return some.Done();
      }));
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t v = 0; v < vectors; ++v)
          s.Add(Store(scores_, Span(I(r * kKeys + v * lanes_) + column, lanes_), Read(acc, at(r, v), lanes_)));
      }
      return With(acc, s.Done());
    });
  }

  /// Adds the mask to the scores of row `r` of the tile, hides keys that it does not see, and finds the largest one.
  Stmt Top(const PrimExpr& t, const PrimExpr& r) {
    Steps s;
    PrimExpr line = s.Let("line", r * I(kKeys)), end = there_, begin;
    if (a_.causal) {
      PrimExpr place = s.Let("place", Read(place_, r0_ + r));
      end = s.Let("end", min(there_, place + I(1) - k0_));
      if (a_.window > 0) begin = s.Let("begin", place + I(1 - a_.window) - k0_);
    }
    PrimExpr mask_at;
    if (mask_.defined()) mask_at = s.Let("mask_at", Read(mask_at_, r0_ + r) + k0_ * mask_step_[3]);
    auto score = [&](int64_t v) { return Read(scores_, line + I(v), lanes_); };
    Steps plain, cut;
    for (int64_t v = 0; v < live_ * lanes_; v += lanes_) {
      const bool each = mask_.defined() && tir::is_one(mask_step_[3]);
      auto masked = [&](const PrimExpr& lanes) {
        if (!mask_.defined()) return score(v);
        if (!each) return score(v) + Spread(Read(mask_, mask_at));
        return score(v) + ReadMasked(mask_, mask_at + I(v), lanes_, lanes);
      };
      if (mask_.defined()) plain.Add(Store(scores_, Span(line + I(v), lanes_), masked(PrimExpr())));
      Steps one;
      const PrimExpr lane = tir::Ramp(I(v), I(1), lanes_);
      PrimExpr there = one.Let("inside", lane < PrimExpr(tir::Broadcast(there_, static_cast<int>(lanes_)))),
               seen = there;
      if (a_.causal) seen = lane < PrimExpr(tir::Broadcast(end, static_cast<int>(lanes_)));
      if (begin.defined()) seen = seen && PrimExpr(tir::Broadcast(begin, static_cast<int>(lanes_))) <= lane;
      const PrimExpr never = Splat(-std::numeric_limits<double>::infinity());
      one.Add(Store(scores_, Span(line + I(v), lanes_), tir::Select(seen, masked(there), never)));
      cut.Add(one.Done());
    }
    PrimExpr whole = I(kKeys) <= end;
    if (begin.defined()) whole = whole && begin <= I(0);
    if (Known(end) >= kKeys) {
      s.Add(plain.Done());
    } else if (Known(end) >= 0 || live_ * lanes_ < kKeys) {
      s.Add(cut.Done());
    } else {
      const Stmt simple = plain.Done();
      s.Add(simple.defined() ? If(whole, simple, cut.Done()) : If(!whole, cut.Done()));
    }
    PrimExpr top = Joined(
        live_, kKeys / lanes_, [&](int64_t v) { return score(v * lanes_); },
        [](const PrimExpr& a, const PrimExpr& b) { return max(a, b); });
    top = s.Let("top", top);
    s.Add(Store(new_tops_, r, max(Read(tops_, t * I(pad_) + r), tir::vector_max(top))));
    return s.Done();
  }
  /// Scores of row `r` of the tile become weights.
  Stmt Weigh(const PrimExpr& r) {
    Steps s;
    PrimExpr line = s.Let("line", r * I(kKeys)), top = s.Let("top", Spread(Read(new_tops_, r)));
    std::vector<PrimExpr> e;
    for (int64_t v = 0; v < live_ * lanes_; v += lanes_)
      e.push_back(s.Let("e", exp(Read(scores_, line + I(v), lanes_) - top)));
    for (int64_t v = 0; v < live_ * lanes_; v += lanes_)
      s.Add(Store(scores_, Span(line + I(v), lanes_), e[static_cast<size_t>(v / lanes_)]));
    PrimExpr sum = Joined(
        live_, kKeys / lanes_, [&](int64_t v) { return e[static_cast<size_t>(v)]; },
        [](const PrimExpr& a, const PrimExpr& b) { return a + b; });
    PrimExpr at = s.Let("at", (r0_ + r) * I(lanes_));
    s.Add(Store(totals_, Span(at, lanes_), Read(totals_, at, lanes_) * Spread(Read(factors_, r)) + sum));
    return s.Done();
  }

  /// Adds the block's values by their weights.
  Stmt Mix(int64_t rows) {
    Steps all;
    for (int64_t c = 0; c < wide_; c += vectors_ * lanes_) {
      const int64_t vectors = std::min(vectors_, (wide_ - c) / lanes_);
      Buffer acc = Buffer::Make({I(rows * vectors * lanes_)}, t_, "acc", "local");
      auto at = [&](int64_t r, int64_t v) { return I((r * vectors + v) * lanes_); };
      auto place = [&](int64_t r, int64_t v) { return (r0_ + I(r)) * I(wide_) + I(c + v * lanes_); };
      Steps s;
      for (int64_t r = 0; r < rows; ++r) {
        PrimExpr factor = s.Let("factor", Spread(Read(factors_, I(r))));
        for (int64_t v = 0; v < vectors; ++v)
          s.Add(Store(acc, Span(at(r, v), lanes_), Read(sums_, place(r, v), lanes_) * factor));
      }
      PrimExpr from = s.Let("from", v0_base_ + k0_ * v_.step[2] + I(c));
      auto step = [&](const PrimExpr& j) {
        Steps one;
        std::vector<PrimExpr> x;
        for (int64_t v = 0; v < vectors; ++v) {
          x.push_back(one.Let("x", ReadMasked(v_.buffer, from + j * v_.step[2] + I(v * lanes_), lanes_,
                                              FirstLanes(width_ - c - v * lanes_, lanes_))));
        }
        for (int64_t r = 0; r < rows; ++r) {
          PrimExpr p = one.Let("p", Spread(Read(scores_, I(r * kKeys) + j)));
          for (int64_t v = 0; v < vectors; ++v) {
            const PrimExpr sum = Read(acc, at(r, v), lanes_);
            one.Add(Store(acc, Span(at(r, v), lanes_), MultiplyAdd(mc_.fma, p, x[static_cast<size_t>(v)], sum)));
          }
        }
        return one.Done();
      };
      constexpr int64_t unroll = 2;
      PrimExpr pairs = Hold(&s, "pairs", floordiv(there_, I(unroll)));
      s.Add(Loop("key", pairs, [&](const PrimExpr& j) {
        Steps some;
        for (int64_t u = 0; u < unroll; ++u) some.Add(step(j * I(unroll) + I(u)));
        return some.Done();
      }));
      if (Known(there_) < 0 || Known(there_) % unroll)
        s.Add(Loop("key", there_ - pairs * I(unroll), [&](const PrimExpr& j) { return step(pairs * I(unroll) + j); }));
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t v = 0; v < vectors; ++v)
          s.Add(Store(sums_, Span(place(r, v), lanes_), Read(acc, at(r, v), lanes_)));
      }
      all.Add(With(acc, s.Done()));
    }
    return all.Done();
  }

  const AttentionAttrs& a_;
  const Operand &q_, &k_, &v_, &out_;
  const Machine& mc_;
  int64_t lanes_;
  DataType t_;
  int64_t depth_ = 0, width_ = 0;  ///< elements of a query, of a value
  int64_t wide_ = 0;               ///< `width_` in whole vectors
  int64_t vectors_ = 0;            ///< of a register tile
  int64_t pad_ = 0;                ///< rows of a tile in whole vectors
  Buffer mask_;
  PrimExpr mask_step_[4];
  PrimExpr rows_, keys_, groups_, each_, total_;  ///< rows of a head, keys; heads of a group, their rows
  PrimExpr blocks_, chunks_, per_;
  // The state of what is being written:
  PrimExpr batch_, group_, first_, count_, k0_base_, v0_base_, k0_, there_, r0_;
  int64_t last_ = -1;  ///< rows of a chunk's last tile where that is known; 0: as many as others
  int64_t live_ = 0;   ///< vectors of a block that have keys
  Buffer queries_, sums_, panel_, scores_, totals_, tops_, new_tops_, factors_, out_at_, place_, mask_at_;
};

}  // namespace

tir::PrimFunc GenerateAttention(const Function& func, const Call& anchor, const String&, const Target& target) {
  const auto& a = AttrsAs<AttentionAttrs>(anchor->attrs);
  return GenerateOpen(func, anchor, [&](const Group& g) {
    if (!g.ends_with_anchor() || g.anchor_dtype() != DataType::Float(32)) return Stmt();
    const Operand q(g.arg(0), g.arg_extents(0), a.query_layout), k(g.arg(1), g.arg_extents(1), a.key_layout),
        v(g.arg(2), g.arg_extents(2), a.value_layout), out(g.out(), g.out_extents(), a.out_layout);
    const Machine mc = MachineOf(target, g.anchor_dtype());
    const bool literal = Known(q.extent[3]) > 0 && Known(v.extent[3]) > 0 && Known(k.extent[1]) != 0;
    if (!literal || !q.elements_adjacent() || !v.elements_adjacent() || !out.elements_adjacent()) return Stmt();
    if (mc.lanes < 2 || kKeys % (mc.lanes * 4)) return Stmt();
    AttentionWriter w(a, q, k, v, out, mc);
    if (g.num_args() > 3) {
      const Operand mask(g.arg(3), g.arg_extents(3), "BHSD");
      const PrimExpr full[4] = {q.extent[0], q.extent[1], q.extent[2], k.extent[2]};
      PrimExpr step[4];
      for (int d = 0; d < 4; ++d) {
        const PrimExpr& own = mask.extent[d];
        step[d] = tir::is_one(own)                   ? I(0)
                  : tir::ExprDeepEqual(own, full[d]) ? mask.step[d]
                                                     : tir::Select(equal(own, I(1)), I(0), mask.step[d]);
      }
      if (!tir::is_zero(step[3]) && !tir::is_one(step[3])) return Stmt();
      w.AddMask(g.arg(3), step);
    }
    return w.Write();
  });
}

}  // namespace baton::relay::kernel
