// SPDX-License-Identifier: Apache-2.0
// A product with a weight of 2, 4 or 8 bits that is packed in bytes, and stays so.
#include <baton/relay/op/nn.h>
#include <baton/topi/elemwise.h>

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

Tensor LowerMatmulNBits(const MatmulNBitsAttrs& a, const Tensors& in, const Type& out_type) {
  const Tensor &x = in[0], &w = in[1], &scale = in[2], &zero = in[3];
  const int64_t each = 8 / a.bits, rows = a.block / each;
  const Shape& out = AsTensor(out_type)->shape;
  const int64_t last = static_cast<int64_t>(out.size()) - 1;
  const DataType i32 = DataType::Int(32);
  auto number = [&](int64_t v) { return cast(i32, PrimExpr(v)); };
  Array<te::IterVar> k{te::ReduceAxis(0, w.shape()[0], "k")};
  return te::Compute(
      out,
      [&](Indices i) {
        const PrimExpr byte = k[0]->var, n = i[last], block = floordiv(byte, PrimExpr(rows));
        const PrimExpr packed = cast(i32, w(Shape{byte, n})), z = zero(Shape{block, n});
        PrimExpr sum;
        for (int64_t part = 0; part < each; ++part) {
          Shape at;
          for (int64_t d = 0; d < last; ++d) at.push_back(i[d]);
          at.push_back(byte * PrimExpr(each) + PrimExpr(part));
          PrimExpr bits = packed;
          if (part > 0) bits = shift_right(bits, number(part * a.bits));
          if (part + 1 < each) bits = bitwise_and(bits, number((int64_t{1} << a.bits) - 1));
          const PrimExpr term = x(at) * (cast(x.dtype(), bits) - z);
          sum = part == 0 ? term : sum + term;
        }
        return te::Sum(sum * scale(Shape{block, n}), k);
      },
      "matmul_nbits", "matmul_nbits");
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
        "a column. The weight is not unpacked but in the registers of the product.",
    .inputs = {{"data", "(..., K). R1: floating. R2: rank 1 or more."}, kWeight, kScale, kZero},
    .output = "(..., N).",
    .attrs = TypeOf<MatmulNBitsAttrs>,
    .type_rel = Rel<"nn.contrib_matmul_nbits", MatmulNBitsType>,
    .lower = LowerMatmulNBits,
    .gradient = NoGradient("its weight is integers"),
    .pattern = OpPattern::kOutEWiseFusable,
    .source = "Baton",
    .traits = {.flops = MatmulFlops},
});

}  // namespace
}  // namespace baton::relay
