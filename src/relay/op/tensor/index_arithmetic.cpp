// SPDX-License-Identifier: Apache-2.0
// Index arithmetic (unravel_index) and fixed-point multiplication.
#include <baton/relay/op/make.h>
#include <baton/relay/op/transform.h>
#include <baton/topi/elemwise.h>

#include "../common.h"

namespace baton::relay {
namespace {

struct FixedPointMultiplyAttrs : AttrsNode<FixedPointMultiplyAttrs> {
  static constexpr auto _type_key = "relay.attrs.FixedPointMultiplyAttrs";
  int64_t multiplier = 0;
  int64_t shift = 0;
  static constexpr void Describe(auto& d) {
    d(F<&FixedPointMultiplyAttrs::multiplier>, "Fraction with 31 bits behind the point: 2 ** 30 is a half.", kRequired);
    d(F<&FixedPointMultiplyAttrs::shift>, "Power of two that it is multiplied by.", kRequired);
  }
};

// ---- unravel_index
Type UnravelIndexType(const TypeArgs& in) {
  in.Integral(0, "R1");
  in.Integral(1, "R1");
  in.Rank(1, 1, "R1");
  int64_t n = in.dim(1, 0);
  if (n > 64) in.Fail("R2", in.Show(1) + ", where 64 extents are the most");
  Shape out = in.shape(0);
  out.insert(0, in.shape(1)[0]);
  return TensorType(out, in.dtype(0));
}
/// indices // strides % shape, the strides being the product of the extents behind each.
Expr DecomposeUnravelIndex(const Call& call, const Array<Expr>& args) {
  DataType i64 = DataType::Int(64);
  const auto* indices = AsTensor(call->args[0]->checked_type());
  Array<int64_t> column{-1};
  for (size_t d = 0; d < indices->shape.size(); ++d) column.push_back(1);
  Expr shape = Cast(args[1], i64);
  Expr strides = MakeCall<ScanopAttrs>(
      op::cumprod, {shape}, [](ScanopAttrs* a) { a->axis = PrimExpr(0), a->exclusive = true, a->reverse = true; });
  Expr at = MakeCall(op::floor_divide, {ExpandDims(Cast(args[0], i64), 0), Reshape(strides, column)});
  return Cast(MakeCall(op::floor_mod, {at, Reshape(shape, column)}), indices->dtype);
}

// ---- fixed_point_multiply
Type FixedPointMultiplyType(const FixedPointMultiplyAttrs& a, const TypeArgs& in) {
  if (!(in.dtype(0) == DataType::Int(32))) in.Fail("R1", in.Show(0) + ", where int32 is wanted");
  if (a.multiplier < INT32_MIN || a.multiplier > INT32_MAX || a.shift < -31 || a.shift > 30) {
    in.Fail("R2", "multiplier is " + Str(a.multiplier) + " and shift " + Str(a.shift) +
                      ", where 32 bits and -31 to 30 are wanted");
  }
  return in.type(0);
}
Tensor LowerFixedPointMultiply(const FixedPointMultiplyAttrs& a, const Tensors& in) {
  int64_t right = 31 - a.shift;
  return topi::Map(
      in[0],
      [&](PrimExpr v) {
        PrimExpr wide = cast(DataType::Int(64), v) * PrimExpr(a.multiplier) + PrimExpr(int64_t{1} << (right - 1));
        return cast(DataType::Int(32), shift_right(wide, PrimExpr(right)));
      },
      "fixed_point_multiply");
}

}  // namespace

const Op op::unravel_index = DefineOp({
    .name = "unravel_index",
    .doc = "Row-major places as index tuples.",
    .inputs = {{"indices", "Places in a tensor of this shape. R1: integers."},
               {"shape", "Its extents. R1: integers, rank 1. R2: 64 at most."}},
    .output = "(number of extents, shape of `indices`), dtype of `indices`.",
    .type_rel = Rel<"unravel_index", UnravelIndexType>,
    .decompose = DecomposeUnravelIndex,
    .gradient = NoGradient("its result is whole numbers"),
    .source = "NumPy",
});
const Op op::fixed_point_multiply = DefineOp({
    .name = "fixed_point_multiply",
    .doc = "data * multiplier / 2 ** 31 * 2 ** shift, rounded half up.",
    .inputs = {{"data", "R1: int32."}},
    .output = "Shape and dtype of `data`. R2: multiplier has 32 bits, shift lies in [-31, 30].",
    .attrs = TypeOf<FixedPointMultiplyAttrs>,
    .type_rel = Rel<"fixed_point_multiply", FixedPointMultiplyType>,
    .lower = LowerFixedPointMultiply,
    .gradient = NoGradient("it works on integers"),
    .pattern = OpPattern::kElemWise,
    .source = "Relay",
});

}  // namespace baton::relay
