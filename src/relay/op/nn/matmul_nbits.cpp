// SPDX-License-Identifier: Apache-2.0
// A product with a weight of 2, 4 or 8 bits that is packed in bytes, and stays so.
#include <baton/relay/op/nn.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>
#include <tir/parallel_if.h>

#include <numeric>

#include "../common.h"
#include "flops.h"

namespace baton::relay {
namespace {

struct MatmulNBitsAttrs : AttrsNode<MatmulNBitsAttrs> {
  static constexpr auto _type_key = "relay.attrs.MatmulNBitsAttrs";
  int64_t bits = 4;
  int64_t block = 32;
  static constexpr void Describe(auto& d) {
    d(F<&MatmulNBitsAttrs::bits>, "Bits of an element of the weight. R3: 2, 4 or 8.", AtLeast(2));
    d(F<&MatmulNBitsAttrs::block>, "Rows of the weight with one scale. R3: a multiple of the elements of a byte.",
      AtLeast(1));
  }
};

/// What is asked of weight, scale and zero, which are operands `first` and the two behind it. Elements of a byte.
int64_t CheckWeight(const MatmulNBitsAttrs& a, const TypeArgs& in, int first) {
  in.Floating(first + 1, "R1");
  in.SameDtype(first + 1, first + 2, "R1");
  for (int i = first; i < first + 3; ++i) in.Rank(i, 2, "R2");
  if (a.bits != 2 && a.bits != 4 && a.bits != 8) in.Fail("R3", "bits is " + Str(a.bits) + "; it is 2, 4 or 8");
  const int64_t each = 8 / a.bits;
  if (a.block % each != 0) in.Fail("R3", "block is " + Str(a.block) + ", where a byte has " + Str(each) + " elements");
  const Shape &w = in.shape(first), &s = in.shape(first + 1), &z = in.shape(first + 2);
  const PrimExpr blocks = floordiv(w[0] + PrimExpr(a.block / each - 1), PrimExpr(a.block / each));
  if (in.dtype(first) != DataType::UInt(8) || !in.Same(w[1], s[1]) || !in.Same(s[1], z[1]) || !in.Same(s[0], z[0]) ||
      !in.Same(s[0], blocks)) {
    in.Fail("R4", in.Show(first) + " does not fit " + in.Show(first + 1) + " and " + in.Show(first + 2));
  }
  return each;
}

Type MatmulNBitsType(const MatmulNBitsAttrs& a, const TypeArgs& in) {
  in.SameDtype(0, 2, "R1");
  in.MinRank(0, 1, "R2");
  const int64_t each = CheckWeight(a, in, 1);
  Shape out = in.shape(0);
  const int64_t last = static_cast<int64_t>(out.size()) - 1;
  if (!in.Same(out[last], in.shape(1)[0] * PrimExpr(each)))
    in.Fail("R4", in.Show(0) + " and " + in.Show(1) + ": the sum runs over other numbers of elements");
  out.Set(last, in.shape(1)[1]);
  return TensorType(out, in.dtype(0));
}

Type UnpackNBitsType(const MatmulNBitsAttrs& a, const TypeArgs& in) {
  const int64_t each = CheckWeight(a, in, 0);
  return TensorType(Shape{in.shape(0)[0] * PrimExpr(each), in.shape(0)[1]}, in.dtype(1));
}

Tensor LowerUnpackNBits(const MatmulNBitsAttrs& a, const Tensors& in, const Type& out_type) {
  const Tensor &w = in[0], &scale = in[1], &zero = in[2];
  const int64_t each = 8 / a.bits;
  const DataType i32 = DataType::Int(32);
  return te::Compute(
      AsTensor(out_type)->shape,
      [&](Indices i) {
        const PrimExpr block = floordiv(i[0], PrimExpr(a.block)), n = i[1];
        PrimExpr bits = cast(i32, w(Shape{floordiv(i[0], PrimExpr(each)), n}));
        if (each > 1) {
          bits = shift_right(bits, cast(i32, floormod(i[0], PrimExpr(each)) * PrimExpr(a.bits)));
          bits = bitwise_and(bits, cast(i32, PrimExpr((int64_t{1} << a.bits) - 1)));
        }
        return (cast(scale.dtype(), bits) - zero(Shape{block, n})) * scale(Shape{block, n});
      },
      "unpack_nbits", "injective");
}

/// The loops of a product: a tile of columns at a time, and of it a block of the weight, which is unpacked once into
/// memory of the first cache for all rows. An element's sum runs over k in order, whatever the number of rows is.
class NBitsLoops {
 public:
  NBitsLoops(const MatmulNBitsAttrs& a, const Array<tir::Buffer>& in, const tir::Buffer& out)
      : x_(in[0]),
        w_(in[1]),
        scale_(in[2]),
        zero_(in[3]),
        out_(out),
        bits_(a.bits),
        each_(8 / a.bits),
        block_(a.block) {
    lead_ = Shape(out->shape.begin(), out->shape.end() - 1);
    rows_ = topi::Product(lead_);
    // Of a longer block, parts: so many rows of the weight are unpacked at a time.
    step_ = block_ <= kMostRows ? block_ : std::gcd(block_, kMostRows);
    step_ = std::max(step_, each_);
  }

  tir::Stmt Loops() const {
    const PrimExpr n = out_->shape[out_->shape.size() - 1], tiles = floordiv(n, PrimExpr(kColumns));
    tir::Var tile("tile");
    tir::ForNode loop;
    loop.loop_var = tile, loop.min = 0, loop.extent = tiles, loop.kind = tir::ForKind::kParallel;
    loop.body = Tile(tile * PrimExpr(kColumns), kColumns);
    const PrimExpr work = (rows_ + PrimExpr(2)) * w_->shape[0] * n;
    Array<tir::Stmt> all{tir::ParallelIf(PrimExpr(kParallelWork) <= work, tir::For(std::move(loop)))};
    // What is left of the columns: a tile of each power of two below.
    for (int64_t width = kColumns / 2; width >= 1; width /= 2) {
      const PrimExpr begin = floordiv(n, PrimExpr(2 * width)) * PrimExpr(2 * width);
      const PrimExpr there = floormod(floordiv(n, PrimExpr(width)), PrimExpr(2));
      if (tir::is_const_int(there, 0)) continue;
      all.push_back(topi::Loops({there}, [&](const Shape&) { return Tile(begin, width); }));
    }
    return tir::SeqStmt::Flatten(all);
  }

 private:
  static constexpr int64_t kColumns = 32, kRows = 4, kMostRows = 64, kParallelWork = 1 << 16;

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
  static tir::Stmt With(const tir::Buffer& b, tir::Stmt body) {
    tir::AllocateNode n;
    n.buffer = b, n.body = std::move(body);
    return tir::Allocate(std::move(n));
  }
  /// The index of a row's element.
  Shape At(const PrimExpr& row, const PrimExpr& last) const {
    Shape at = lead_.size() == 1 ? Shape{row} : topi::Unravel(row, lead_);
    at.push_back(last);
    return at;
  }

  tir::Stmt Tile(const PrimExpr& begin, int64_t width) const {
    const DataType t = out_->dtype;
    tir::Stmt clear = topi::Loops({rows_}, [&](const Shape& r) {
      return Columns(width, [&](const PrimExpr& c) { return topi::Store(out_, At(r[0], begin + c), Lit(0, t)); });
    });
    const tir::Buffer tile = tir::Buffer::Make({step_, width}, t, "unpacked", "local");
    const PrimExpr k = w_->shape[0] * PrimExpr(each_), whole = floordiv(k, PrimExpr(step_));
    auto part = [&](const PrimExpr& at, const PrimExpr& count) {
      return tir::SeqStmt::Flatten({Unpack(tile, at, count, begin, width), Multiply(tile, at, count, begin, width)});
    };
    tir::Stmt body =
        topi::Loops({whole}, [&](const Shape& b) { return part(b[0] * PrimExpr(step_), PrimExpr(step_)); });
    const PrimExpr rest = k - whole * PrimExpr(step_);
    if (!tir::is_const_int(rest, 0)) body = tir::SeqStmt::Flatten({body, part(whole * PrimExpr(step_), rest)});
    return tir::SeqStmt::Flatten({clear, With(tile, body)});
  }

  /// Rows `at` to `at + count` of the weight, which have one scale, into `tile`.
  tir::Stmt Unpack(const tir::Buffer& tile, const PrimExpr& at, const PrimExpr& count, const PrimExpr& begin,
                   int64_t width) const {
    const DataType i32 = DataType::Int(32), t = tile->dtype;
    auto number = [&](int64_t v) { return cast(i32, PrimExpr(v)); };
    const PrimExpr block = floordiv(at, PrimExpr(block_)), first = floordiv(at, PrimExpr(each_));
    return topi::Loops({floordiv(count, PrimExpr(each_))}, [&](const Shape& byte) {
      Array<tir::Stmt> parts;
      for (int64_t p = 0; p < each_; ++p) {
        parts.push_back(Columns(width, [&](const PrimExpr& c) {
          PrimExpr bits = cast(i32, Load(w_, {first + byte[0], begin + c}));
          if (p > 0) bits = shift_right(bits, number(p * bits_));
          if (p + 1 < each_) bits = bitwise_and(bits, number((int64_t{1} << bits_) - 1));
          const PrimExpr v = (cast(t, bits) - Load(zero_, {block, begin + c})) * Load(scale_, {block, begin + c});
          return topi::Store(tile, {byte[0] * PrimExpr(each_) + PrimExpr(p), c}, v);
        }));
      }
      return tir::SeqStmt::Flatten(parts);
    });
  }

  tir::Stmt Multiply(const tir::Buffer& tile, const PrimExpr& at, const PrimExpr& count, const PrimExpr& begin,
                     int64_t width) const {
    const PrimExpr fours = floordiv(rows_, PrimExpr(kRows)), rest = floormod(rows_, PrimExpr(kRows));
    tir::Stmt main = topi::Loops(
        {fours}, [&](const Shape& r) { return Rows(tile, r[0] * PrimExpr(kRows), kRows, at, count, begin, width); });
    tir::Stmt left = topi::Loops(
        {rest}, [&](const Shape& r) { return Rows(tile, fours * PrimExpr(kRows) + r[0], 1, at, count, begin, width); });
    return tir::SeqStmt::Flatten({main, left});
  }

  /// Adds the block's share to `rows` rows of the result, which are in registers meanwhile.
  tir::Stmt Rows(const tir::Buffer& tile, const PrimExpr& row, int64_t rows, const PrimExpr& at, const PrimExpr& count,
                 const PrimExpr& begin, int64_t width) const {
    const tir::Buffer sums = tir::Buffer::Make({rows, width}, out_->dtype, "sums", "local");
    auto each = [&](auto body) {
      Array<tir::Stmt> all;
      for (int64_t r = 0; r < rows; ++r)
        all.push_back(Columns(width, [&](const PrimExpr& c) { return body(PrimExpr(r), c); }));
      return tir::SeqStmt::Flatten(all);
    };
    tir::Stmt load = each([&](const PrimExpr& r, const PrimExpr& c) {
      return topi::Store(sums, {r, c}, Load(out_, At(row + r, begin + c)));
    });
    tir::Stmt add = topi::Loops({count}, [&](const Shape& k) {
      return each([&](const PrimExpr& r, const PrimExpr& c) {
        const PrimExpr sum = Load(sums, {r, c}), x = Load(x_, At(row + r, at + k[0])), w = Load(tile, {k[0], c});
        return topi::Store(sums, {r, c}, sum.dtype().bits() >= 32 ? fma(x, w, sum) : sum + x * w);
      });
    });
    tir::Stmt store = each([&](const PrimExpr& r, const PrimExpr& c) {
      return topi::Store(out_, At(row + r, begin + c), Load(sums, {r, c}));
    });
    return With(sums, tir::SeqStmt::Flatten({load, add, store}));
  }

  const tir::Buffer &x_, &w_, &scale_, &zero_, &out_;
  int64_t bits_, each_, block_, step_;
  Shape lead_;
  PrimExpr rows_;
};

Tensor LowerMatmulNBits(const MatmulNBitsAttrs& a, const Tensors& in, const Type& out_type) {
  return topi::Extern(
      AsTensor(out_type)->shape, in[0].dtype(), in,
      [&](const Array<tir::Buffer>& buf, const tir::Buffer& out) { return NBitsLoops(a, buf, out).Loops(); },
      "matmul_nbits");
}

const OpInput kWeight = {"weight",
                         "(K * bits / 8, N). R2: rank 2. R4: uint8, of that shape. Consecutive rows are in a byte, the "
                         "first in its low bits."};
const OpInput kScale = {"scale", "(K / block, N), rounded up. R1: floating. R2: rank 2. R4: of that shape."};
const OpInput kZero = {"zero", "Of the shape of scale. R1: dtype of scale. R2: rank 2. R4: of that shape."};

const Op unpack_nbits = DefineOp({
    .name = "nn.contrib_unpack_nbits",
    .doc =
        "The matrix of a weight of few bits, (number - zero) * scale, made when it is used: it is not folded, so that "
        "artifacts keep the packed numbers.",
    .inputs = {kWeight, kScale, kZero},
    .output = "(K, N), the dtype of scale.",
    .attrs = TypeOf<MatmulNBitsAttrs>,
    .type_rel = Rel<"nn.contrib_unpack_nbits", UnpackNBitsType>,
    .lower = LowerUnpackNBits,
    .gradient = NoGradient("its weight is integers"),
    .pattern = OpPattern::kInjective,
    .fold = Fold::kNever,
    .source = "Baton",
});

const Op matmul_nbits = DefineOp({
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

}  // namespace
}  // namespace baton::relay
