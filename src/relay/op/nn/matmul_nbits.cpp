// SPDX-License-Identifier: Apache-2.0
// A product with a weight of 2, 4 or 8 bits that is packed in bytes, and stays so.
#include <baton/relay/op/nn.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>
#include <relay/kernel/byte_blocks.h>
#include <tir/parallel_if.h>

#include <numeric>

#include "../common.h"
#include "flops.h"

namespace baton::relay {
namespace {

/// Requirements of weight, scale and zero, which are operands `first` and the two behind it. Elements of a byte.
int64_t CheckWeight(const MatmulNBitsAttrs& a, const TypeArgs& in, int first) {
  in.Floating(first + 1, "R1");
  if (in.dtype(first + 2) != DataType::UInt(8)) in.SameDtype(first + 1, first + 2, "R1");
  const int64_t rank = a.panel > 0 ? 3 : 2, line = rank - 2;
  for (int i = first; i < first + 3; ++i) in.Rank(i, static_cast<int>(rank), "R2");
  if (a.bits != 2 && a.bits != 4 && a.bits != 8) in.Fail("R3", "bits is " + Str(a.bits) + "; it is 2, 4 or 8");
  const int64_t each = 8 / a.bits;
  if (a.block % each != 0) in.Fail("R3", "block is " + Str(a.block) + ", where a byte has " + Str(each) + " elements");
  const Shape &w = in.shape(first), &s = in.shape(first + 1), &z = in.shape(first + 2);
  if (a.activations != 0 && a.activations != 8)
    in.Fail("R3", "activations is " + Str(a.activations) + "; it is 0 or 8");
  const bool dots = a.terms == 4 && a.panel > 0 && a.panel % 2 == 0 && a.bits != 2 && a.block % (4 * each) == 0;
  if (a.terms != 1 && !dots)
    in.Fail("R3",
            "terms is " + Str(a.terms) + "; it is 1, or 4 in panels of 4 or 8 bits and an even number of columns");
  // Lines of the weight that share a scale.
  const int64_t lines = a.block / each / a.terms;
  const PrimExpr blocks = floordiv(w[line] + PrimExpr(lines - 1), PrimExpr(lines));
  bool fits = in.dtype(first) == DataType::UInt(8) && in.Same(s[line], z[line]) && in.Same(s[line], blocks);
  for (int64_t i = 0; i < rank; ++i)
    fits = fits && (i == line || (in.Same(w[i], i == 2 ? s[i] * PrimExpr(a.terms) : s[i]) && in.Same(s[i], z[i])));
  if (a.panel > 0)
    fits = fits && in.Same(s[2], PrimExpr(a.panel)) && in.Same(w[0], PrimExpr((a.units + a.panel - 1) / a.panel));
  if (!fits) in.Fail("R4", in.Show(first) + " does not fit " + in.Show(first + 1) + " and " + in.Show(first + 2));
  return each * a.terms;
}

Type MatmulNBitsType(const MatmulNBitsAttrs& a, const TypeArgs& in) {
  if (in.dtype(2) != DataType::Float(16)) in.SameDtype(0, 2, "R1");
  in.MinRank(0, 1, "R2");
  const int64_t each = CheckWeight(a, in, 1), line = a.panel > 0 ? 1 : 0;
  Shape out = in.shape(0);
  const int64_t last = static_cast<int64_t>(out.size()) - 1;
  if (!in.Same(out[last], in.shape(1)[line] * PrimExpr(each)))
    in.Fail("R4", in.Show(0) + " and " + in.Show(1) + ": the sum runs over other numbers of elements");
  out.Set(last, a.panel > 0 ? PrimExpr(a.units) : in.shape(1)[1]);
  return TensorType(out, in.dtype(0));
}

Type UnpackNBitsType(const MatmulNBitsAttrs& a, const TypeArgs& in) {
  const int64_t each = CheckWeight(a, in, 0), line = a.panel > 0 ? 1 : 0;
  return TensorType(Shape{in.shape(0)[line] * PrimExpr(each), a.panel > 0 ? PrimExpr(a.units) : in.shape(0)[1]},
                    in.dtype(1) == DataType::Float(16) ? DataType::Float(32) : in.dtype(1));
}

Tensor LowerUnpackNBits(const MatmulNBitsAttrs& a, const Tensors& in, const Type& out_type) {
  const Tensor &w = in[0], &scale = in[1], &zero = in[2];
  const int64_t each = 8 / a.bits;
  const DataType i32 = DataType::Int(32), t = AsTensor(out_type)->dtype;
  auto at = [&](const Tensor& from, const PrimExpr& row, const PrimExpr& n) {
    if (a.panel == 0) return from(Shape{row, n});
    return from(Shape{floordiv(n, PrimExpr(a.panel)), row, floormod(n, PrimExpr(a.panel))});
  };
  return te::Compute(
      AsTensor(out_type)->shape,
      [&](Indices i) {
        const PrimExpr block = floordiv(i[0], PrimExpr(a.block)), n = i[1];
        // A line has `terms` elements of each part of its bytes.
        const PrimExpr line = floordiv(i[0], PrimExpr(each * a.terms));
        const PrimExpr part = floormod(floordiv(i[0], PrimExpr(a.terms)), PrimExpr(each));
        PrimExpr bits;
        if (a.terms == 1) {
          bits = cast(i32, at(w, line, n));
        } else {
          const PrimExpr column = floormod(n, PrimExpr(a.panel)) * PrimExpr(a.terms);
          bits = cast(i32, w(Shape{floordiv(n, PrimExpr(a.panel)), line, column + floormod(i[0], PrimExpr(a.terms))}));
        }
        if (each > 1) {
          bits = shift_right(bits, cast(i32, part * PrimExpr(a.bits)));
          bits = bitwise_and(bits, cast(i32, PrimExpr((int64_t{1} << a.bits) - 1)));
        }
        return (cast(t, bits) - cast(t, at(zero, block, n))) * cast(t, at(scale, block, n));
      },
      "unpack_nbits", "injective");
}

/// The loops of a product: so many columns at a time, and of them a step of rows of the weight, which has one scale.
/// Few rows of data are multiplied by numbers that are unpacked in registers; for more, a step is unpacked once into
/// memory of the first cache. Either way an element is the same sum of the same numbers: of each step, over k in order,
/// less the zero point times the sum of the step's data, times the scale, added in order.
/// Of 4 bits a byte is low + 16 * high, which needs no shift: x0 * low + x1 * high is (x0 - x1 / 16) * low + (x1 / 16)
/// * byte, and the two factors are made once.
class NBitsLoops {
 public:
  NBitsLoops(const MatmulNBitsAttrs& a, const Array<tir::Buffer>& in, const tir::Buffer& out)
      : x_(in[0]),
        w_(in[1]),
        scale_(in[2]),
        zero_(in[3]),
        out_(out),
        type_(out->dtype),
        bits_(a.bits),
        each_(8 / a.bits),
        block_(a.block),
        panel_(a.panel),
        rounds_(a.activations == 8) {
    lead_ = Shape(out->shape.begin(), out->shape.end() - 1);
    rows_ = topi::Product(lead_);
    // Longer blocks are split: so many rows of the weight are unpacked at a time.
    step_ = block_ <= kMostRows ? block_ : std::gcd(block_, kMostRows);
    step_ = std::max(step_, each_);
    depth_ = w_->shape[panel_ > 0 ? 1 : 0] * PrimExpr(each_);
    const PrimExpr steps = floordiv(depth_ + PrimExpr(step_ - 1), PrimExpr(step_));
    less_ = tir::Buffer::Make({rows_, steps}, type_, "less");
    if (rounds_ || bits_ == 4) factors_ = tir::Buffer::Make({rows_, depth_}, type_, "factors");
  }

  tir::Stmt Loops() const {
    Array<tir::Stmt> all;
    if (rounds_) all.push_back(topi::Loops({rows_}, [&](const Shape& r) { return Round(r[0]); }));
    all.push_back(topi::Loops({rows_}, [&](const Shape& r) { return Prepare(r[0]); }));
    all.push_back(Products());
    Array<tir::Buffer> made{less_};
    if (factors_.defined()) made.push_back(factors_);
    return With(made, tir::SeqStmt::Flatten(all));
  }

 private:
  /// A row's data, as it is multiplied before factors are made of it.
  PrimExpr Data(const PrimExpr& row, const PrimExpr& k) const {
    return rounds_ ? Load(factors_, {row, k}) : Load(x_, At(row, k));
  }
  /// Sums of a row's data, negative, a step each, and its factors.
  tir::Stmt Prepare(const PrimExpr& row) const {
    constexpr int64_t kLanes = 8;
    const tir::Buffer sum = Local("sum", 1, kLanes);
    return Steps([&](const PrimExpr& at, const PrimExpr& count) {
      auto take = [&](const PrimExpr& lane, const PrimExpr& k) {
        return topi::Store(sum, {0, lane}, Load(sum, {0, lane}) - Data(row, k));
      };
      const PrimExpr whole = floordiv(count, PrimExpr(kLanes)), done = whole * PrimExpr(kLanes);
      Array<tir::Stmt> all{Clear(sum, 1, kLanes)};
      all.push_back(topi::Loops({whole}, [&](const Shape& i) {
        return Columns(kLanes, [&](const PrimExpr& c) { return take(c, at + i[0] * PrimExpr(kLanes) + c); });
      }));
      if (!tir::is_const_int(floormod(count, PrimExpr(kLanes)), 0))
        all.push_back(topi::Loops({count - done}, [&](const Shape& i) { return take(PrimExpr(0), at + done + i[0]); }));
      PrimExpr total = Load(sum, {0, 0});
      for (int64_t i = 1; i < kLanes; ++i) total = total + Load(sum, {0, PrimExpr(i)});
      all.push_back(topi::Store(less_, {row, floordiv(at, PrimExpr(step_))}, total));
      if (bits_ == 4) {
        const tir::Buffer high = Local("high", 1, 1);
        all.push_back(topi::Loops({floordiv(count, PrimExpr(2))}, [&](const Shape& i) {
          const PrimExpr k = at + i[0] * PrimExpr(2), k1 = k + PrimExpr(1);
          return With({high}, tir::SeqStmt::Flatten(
                                  Array<tir::Stmt>{topi::Store(high, {0, 0}, Data(row, k1) * Lit(0.0625, type_)),
                                                   topi::Store(factors_, {row, k}, Data(row, k) - Load(high, {0, 0})),
                                                   topi::Store(factors_, {row, k1}, Load(high, {0, 0}))}));
        }));
      }
      return With({sum}, tir::SeqStmt::Flatten(all));
    });
  }
  /// A row's data as what whole numbers of 8 bits stand for, a scale for each block.
  tir::Stmt Round(const PrimExpr& row) const {
    const tir::Buffer most = Local("most", 1, 1);
    const PrimExpr blocks = floordiv(depth_ + PrimExpr(block_ - 1), PrimExpr(block_));
    return topi::Loops({blocks}, [&](const Shape& b) {
      const PrimExpr at = b[0] * PrimExpr(block_), count = min(PrimExpr(block_), depth_ - at);
      auto each = [&](auto body) {
        return topi::Loops({count}, [&](const Shape& i) { return body(At(row, at + i[0]), at + i[0]); });
      };
      const PrimExpr largest = Load(most, {0, 0}), none = Lit(0, type_);
      tir::Stmt clear = topi::Store(most, {0, 0}, none);
      tir::Stmt find = each([&](const Shape& from, const PrimExpr&) {
        return topi::Store(most, {0, 0}, max(Load(most, {0, 0}), abs(Load(x_, from))));
      });
      tir::Stmt make = each([&](const Shape& from, const PrimExpr& k) {
        const PrimExpr x = Load(x_, from), step = largest * Lit(1.0 / 127, type_);
        const PrimExpr whole = nearbyint(x * (Lit(127, type_) / largest));
        // Infinities and NaN give NaN.
        return topi::Store(factors_, {row, k},
                           tir::Select(largest > Lit(1e-30, type_) && isfinite(x), whole * step, x - x));
      });
      return With({most}, tir::SeqStmt::Flatten(Array<tir::Stmt>{clear, find, make}));
    });
  }

  tir::Stmt Products() const {
    const PrimExpr n = out_->shape[out_->shape.size() - 1], work = (rows_ + PrimExpr(2)) * depth_ * n;
    auto in_parallel = [&](const PrimExpr& count, auto body) {
      tir::Var at("tile");
      tir::ForNode loop;
      loop.loop_var = at, loop.min = 0, loop.extent = count, loop.kind = tir::ForKind::kParallel, loop.body = body(at);
      return tir::ParallelIf(PrimExpr(kParallelWork) <= work, tir::For(std::move(loop)));
    };
    if (panel_ > 0) {
      return in_parallel(w_->shape[0], [&](const PrimExpr& p) {
        const Place at{p * PrimExpr(panel_), p, panel_};
        if (tir::is_const_int(floormod(n, PrimExpr(panel_)), 0)) return Tile(at);
        return tir::Stmt(tir::IfThenElse(at.begin + PrimExpr(panel_) <= n, Tile(at), InRegisters(at, n - at.begin)));
      });
    }
    Array<tir::Stmt> all{in_parallel(floordiv(n, PrimExpr(kColumns)), [&](const PrimExpr& p) {
      return Tile({p * PrimExpr(kColumns), PrimExpr(), kColumns});
    })};
    // The remaining columns: a tile of each power of two below.
    for (int64_t width = kColumns / 2; width >= 1; width /= 2) {
      const PrimExpr begin = floordiv(n, PrimExpr(2 * width)) * PrimExpr(2 * width);
      const PrimExpr there = floormod(floordiv(n, PrimExpr(width)), PrimExpr(2));
      if (tir::is_const_int(there, 0)) continue;
      all.push_back(topi::Loops({there}, [&](const Shape&) { return Tile({begin, PrimExpr(), width}); }));
    }
    return tir::SeqStmt::Flatten(all);
  }

  static constexpr int64_t kColumns = 32, kRows = 4, kMostRows = 64, kFewRows = 8, kParallelWork = 1 << 16;

  /// Columns `begin` to `begin + width` of the result, which are panel `panel` of the weight where it has panels.
  struct Place {
    PrimExpr begin, panel;
    int64_t width;
  };

  static PrimExpr Load(const tir::Buffer& b, const Shape& at) { return tir::BufferLoad(b, at); }
  /// A store for each of `width` columns, side by side.
  template <class Body>
  static tir::Stmt Columns(int64_t width, Body body) {
    tir::Var c("c");
    if (width == 1) return body(PrimExpr(0));
    tir::ForNode n;
    n.loop_var = c, n.min = 0, n.extent = PrimExpr(width), n.kind = tir::ForKind::kVectorized, n.body = body(c);
    return tir::For(std::move(n));
  }
  static tir::Stmt With(const Array<tir::Buffer>& buffers, tir::Stmt body) {
    for (const tir::Buffer& b : buffers) {
      tir::AllocateNode n;
      n.buffer = b, n.body = std::move(body);
      body = tir::Allocate(std::move(n));
    }
    return body;
  }
  tir::Buffer Local(const char* name, int64_t rows, int64_t width) const {
    return tir::Buffer::Make({rows, width}, type_, name, "local");
  }
  PrimExpr Fma(const PrimExpr& a, const PrimExpr& b, const PrimExpr& c) const {
    return type_.bits() >= 32 ? fma(a, b, c) : c + a * b;
  }
  /// The index of a row's element.
  Shape At(const PrimExpr& row, const PrimExpr& last) const {
    Shape at = lead_.size() == 1 ? Shape{row} : topi::Unravel(row, lead_);
    at.push_back(last);
    return at;
  }
  /// An element of the weight, of scales or of zero points, at a row of them.
  PrimExpr OfColumn(const tir::Buffer& b, const Place& p, const PrimExpr& row, const PrimExpr& c) const {
    return panel_ > 0 ? Load(b, {p.panel, row, c}) : Load(b, {row, p.begin + c});
  }
  PrimExpr Scale(const Place& p, const PrimExpr& at, const PrimExpr& c) const {
    return cast(type_, OfColumn(scale_, p, floordiv(at, PrimExpr(block_)), c));
  }

  /// f(at, count) for each step of the weight's rows, in order.
  template <class F>
  tir::Stmt Steps(F f) const {
    const PrimExpr whole = floordiv(depth_, PrimExpr(step_)), rest = depth_ - whole * PrimExpr(step_);
    tir::Stmt body = topi::Loops({whole}, [&](const Shape& b) { return f(b[0] * PrimExpr(step_), PrimExpr(step_)); });
    return tir::is_const_int(rest, 0) ? body : tir::SeqStmt::Flatten({body, f(whole * PrimExpr(step_), rest)});
  }
  /// f(row, count) for all rows of the data, four at a time.
  template <class F>
  tir::Stmt InRows(F f) const {
    Array<tir::Stmt> all;
    for (int64_t many = kRows; many >= 1; many /= 2) {
      const PrimExpr whole = floordiv(rows_, PrimExpr(many));
      const PrimExpr count = many == kRows ? whole : floormod(whole, PrimExpr(2));
      if (tir::is_const_int(count, 0)) continue;
      const PrimExpr first = many == kRows ? PrimExpr(0) : (whole - count) * PrimExpr(many);
      all.push_back(topi::Loops({count}, [&](const Shape& r) { return f(first + r[0] * PrimExpr(many), many); }));
    }
    return tir::SeqStmt::Flatten(all);
  }
  /// A store for each of `rows` rows and the columns.
  template <class F>
  static tir::Stmt Each(int64_t rows, int64_t width, F body) {
    Array<tir::Stmt> all;
    for (int64_t r = 0; r < rows; ++r)
      all.push_back(Columns(width, [&](const PrimExpr& c) { return body(PrimExpr(r), c); }));
    return tir::SeqStmt::Flatten(all);
  }

  tir::Stmt Tile(const Place& p) const {
    if (const int64_t* rows = tir::as_const_int(rows_)) return *rows <= kFewRows ? InRegisters(p) : InMemory(p);
    return tir::IfThenElse(rows_ <= PrimExpr(kFewRows), InRegisters(p), InMemory(p));
  }

  /// Writes factors of the data's into `to`, row by row: the numbers of a byte's rows, or of 4 bits the first number
  /// and the whole byte. f(p) after each.
  template <class F>
  tir::Stmt Unpack(const tir::Buffer& to, const Place& p, const PrimExpr& at, const PrimExpr& count, bool rows,
                   F f) const {
    const DataType i32 = DataType::Int(32);
    auto number = [&](int64_t v) { return cast(i32, PrimExpr(v)); };
    const PrimExpr first = floordiv(at, PrimExpr(each_));
    return topi::Loops({floordiv(count, PrimExpr(each_))}, [&](const Shape& byte) {
      Array<tir::Stmt> parts;
      for (int64_t k = 0; k < each_; ++k) {
        const PrimExpr row = byte[0] * PrimExpr(each_) + PrimExpr(k);
        parts.push_back(Columns(p.width, [&](const PrimExpr& c) {
          PrimExpr bits = cast(i32, OfColumn(w_, p, first + byte[0], c));
          if (k > 0 && bits_ != 4) bits = shift_right(bits, number(k * bits_));
          if (k + 1 < each_) bits = bitwise_and(bits, number((int64_t{1} << bits_) - 1));
          return topi::Store(to, {rows ? row : PrimExpr(0), c}, cast(type_, bits));
        }));
        parts.push_back(f(row));
      }
      return tir::SeqStmt::Flatten(parts);
    });
  }

  /// parts[r] += data[row + r, at] * numbers
  tir::Stmt Multiply(const tir::Buffer& parts, int64_t rows, int64_t width, const PrimExpr& row, const PrimExpr& at,
                     const tir::Buffer& numbers, const PrimExpr& line) const {
    return Each(rows, width, [&](const PrimExpr& r, const PrimExpr& c) {
      return topi::Store(parts, {r, c},
                         Fma(factors_.defined() ? Load(factors_, {row + r, at}) : Load(x_, At(row + r, at)),
                             Load(numbers, {line, c}), Load(parts, {r, c})));
    });
  }
  tir::Stmt Clear(const tir::Buffer& b, int64_t rows, int64_t width) const {
    return Each(rows, width,
                [&](const PrimExpr& r, const PrimExpr& c) { return topi::Store(b, {r, c}, Lit(0, type_)); });
  }
  /// sums += (parts - zero * the sum of the data) * scale
  tir::Stmt AddScaled(const tir::Buffer& sums, const tir::Buffer& parts, int64_t rows, const Place& p,
                      const PrimExpr& row, const PrimExpr& at) const {
    return Each(rows, p.width, [&](const PrimExpr& r, const PrimExpr& c) {
      const PrimExpr zero = cast(type_, OfColumn(zero_, p, floordiv(at, PrimExpr(block_)), c));
      const PrimExpr less = Load(less_, {row + r, floordiv(at, PrimExpr(step_))});
      return topi::Store(sums, {r, c}, Fma(Fma(zero, less, Load(parts, {r, c})), Scale(p, at, c), Load(sums, {r, c})));
    });
  }

  /// Rows whose sums stay in registers. `there`: so many of the columns are of the result; all where it is null.
  tir::Stmt InRegisters(const Place& p, const PrimExpr& there = PrimExpr()) const {
    return InRows([&](const PrimExpr& row, int64_t rows) {
      const tir::Buffer sums = Local("sums", rows, p.width), parts = Local("parts", rows, p.width);
      const tir::Buffer numbers = Local("numbers", 1, p.width);
      tir::Stmt steps = Steps([&](const PrimExpr& at, const PrimExpr& count) {
        tir::Stmt add = Unpack(numbers, p, at, count, false, [&](const PrimExpr& k) {
          return Multiply(parts, rows, p.width, row, at + k, numbers, PrimExpr(0));
        });
        return With({parts, numbers}, tir::SeqStmt::Flatten({Clear(parts, rows, p.width), add,
                                                             AddScaled(sums, parts, rows, p, row, at)}));
      });
      auto store = [&](const PrimExpr& r, const PrimExpr& c) {
        return topi::Store(out_, At(row + r, p.begin + c), Load(sums, {r, c}));
      };
      tir::Stmt stores = there.defined()
                             ? topi::Loops({PrimExpr(rows), there}, [&](const Shape& i) { return store(i[0], i[1]); })
                             : Each(rows, p.width, store);
      return With({sums}, tir::SeqStmt::Flatten({Clear(sums, rows, p.width), steps, stores}));
    });
  }

  /// Many rows: a step's numbers are in memory for all of them, and sums in the result.
  tir::Stmt InMemory(const Place& p) const {
    tir::Stmt clear = topi::Loops({rows_}, [&](const Shape& r) {
      return Columns(p.width,
                     [&](const PrimExpr& c) { return topi::Store(out_, At(r[0], p.begin + c), Lit(0, type_)); });
    });
    const tir::Buffer tile = Local("unpacked", step_, p.width);
    tir::Stmt steps = Steps([&](const PrimExpr& at, const PrimExpr& count) {
      tir::Stmt unpack = Unpack(tile, p, at, count, true, [](const PrimExpr&) { return tir::SeqStmt::Flatten({}); });
      tir::Stmt add = InRows([&](const PrimExpr& row, int64_t rows) {
        const tir::Buffer sums = Local("sums", rows, p.width), parts = Local("parts", rows, p.width);
        tir::Stmt load = Each(rows, p.width, [&](const PrimExpr& r, const PrimExpr& c) {
          return topi::Store(sums, {r, c}, Load(out_, At(row + r, p.begin + c)));
        });
        tir::Stmt lines = topi::Loops(
            {count}, [&](const Shape& k) { return Multiply(parts, rows, p.width, row, at + k[0], tile, k[0]); });
        tir::Stmt store = Each(rows, p.width, [&](const PrimExpr& r, const PrimExpr& c) {
          return topi::Store(out_, At(row + r, p.begin + c), Load(sums, {r, c}));
        });
        return With({sums, parts}, tir::SeqStmt::Flatten({load, Clear(parts, rows, p.width), lines,
                                                          AddScaled(sums, parts, rows, p, row, at), store}));
      });
      return tir::SeqStmt::Flatten({unpack, add});
    });
    return tir::SeqStmt::Flatten({clear, With({tile}, steps)});
  }

  const tir::Buffer &x_, &w_, &scale_, &zero_, &out_;
  DataType type_;
  int64_t bits_, each_, block_, panel_, step_;
  bool rounds_;
  tir::Buffer less_, factors_;  // of the data; no factors where it is multiplied as it is
  Shape lead_;
  PrimExpr rows_, depth_;
};

/// The product on bytes, by a weight in panels of four terms.
Tensor LowerByteBlocks(const MatmulNBitsAttrs& a, const Tensors& in, const Shape& shape) {
  te::ExternOpNode op;
  op.name = String("matmul_nbits"), op.tag = String("extern"), op.inputs = in;
  auto flat = [](const Shape& s, DataType t, const String& name) {
    return tir::Buffer::Make({topi::Product(s)}, t, name);
  };
  for (const Tensor& t : in) op.input_buffers.push_back(flat(t.shape(), t.dtype(), t->op->name));
  op.output_buffers.push_back(flat(shape, in[0].dtype(), "out"));
  const Array<tir::Buffer>& b = op.input_buffers;
  kernel::ByteBlocks p;
  p.rows = topi::Product(Shape(shape.begin(), shape.end() - 1));
  p.units = a.units, p.depth = DimOf(in[1].shape()[1]) * a.terms * (8 / a.bits), p.bits = a.bits, p.block = a.block;
  p.panel = a.panel;
  p.data = b[0], p.weight = b[1], p.scale = b[2], p.zero = b[3], p.out = op.output_buffers[0];
  op.body = kernel::WriteByteBlocks(p);
  te::TensorNode t;
  t.shape = shape, t.dtype = in[0].dtype(), t.op = te::ExternOp(std::move(op));
  return Tensor(std::move(t));
}

Tensor LowerMatmulNBits(const MatmulNBitsAttrs& a, const Tensors& in, const Type& out_type) {
  if (a.terms != 1) return LowerByteBlocks(a, in, AsTensor(out_type)->shape);
  return topi::Extern(
      AsTensor(out_type)->shape, in[0].dtype(), in,
      [&](const Array<tir::Buffer>& buf, const tir::Buffer& out) { return NBitsLoops(a, buf, out).Loops(); },
      "matmul_nbits");
}

const OpInput kWeight = {
    "weight",
    "(K * bits / 8, N). R2: rank 2 (3 in panels). R4: uint8, of that shape. Consecutive rows are in a byte, the "
    "first in its low bits."};
const OpInput kScale = {
    "scale",
    "(K / block, N), rounded up. R1: the dtype of data, or float16. R2: rank 2 (3 in panels). R4: of that shape."};
const OpInput kZero = {
    "zero", "Of the shape of scale. R1: dtype of scale, or uint8. R2: rank 2 (3 in panels). R4: of that shape."};

}  // namespace

const Op op::unpack_nbits = DefineOp({
    .name = "nn.contrib_unpack_nbits",
    .doc =
        "The matrix of a weight of few bits, (number - zero) * scale, made when it is used: it is not folded, so that "
        "artifacts keep the packed numbers.",
    .inputs = {kWeight, kScale, kZero},
    .output = "(K, N), the dtype of scale; float32 where that is float16.",
    .attrs = TypeOf<MatmulNBitsAttrs>,
    .type_rel = Rel<"nn.contrib_unpack_nbits", UnpackNBitsType>,
    .lower = LowerUnpackNBits,
    .gradient = NoGradient("its weight is integers"),
    .pattern = OpPattern::kInjective,
    .fold = Fold::kNever,
    .source = "Baton",
});

const Op op::matmul_nbits = DefineOp({
    .name = "nn.contrib_matmul_nbits",
    .doc =
        "data times a weight (K, N) of few bits: (number - zero) * scale, a scale and a zero point for each block of "
        "a column. The weight is unpacked block by block, for all rows at once.",
    .inputs = {{"data", "(..., K). R1: floating. R2: rank 1 or more."}, kWeight, kScale, kZero},
    .output = "(..., N).",
    .attrs = TypeOf<MatmulNBitsAttrs>,
    .type_rel = Rel<"nn.contrib_matmul_nbits", MatmulNBitsType>,
    .lower = LowerMatmulNBits,
    .gradient = NoGradient("its weight is integers"),
    .pattern = OpPattern::kOpaque,
    .source = "Baton",
    .traits = {.flops = MatmulFlops},
});

}  // namespace baton::relay
