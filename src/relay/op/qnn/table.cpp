// SPDX-License-Identifier: Apache-2.0
// Any function of a byte, by its 256 results.
#include "qnn.h"

namespace baton::relay {
namespace {

using namespace qnn;  // NOLINT: what these operators share

constexpr int64_t kBytes = 256;

Type TableType(const TypeArgs& in) {
  in.Integral(0, "R1");
  if (in.dtype(0).bits() != 8) in.Fail("R1", in.Show(0) + ", where int8 or uint8 is wanted");
  if (in.ndim(1) != 1 || !in.Same(in.shape(1)[0], PrimExpr(kBytes)))
    in.Fail("R2", in.Show(1) + ", where 256 elements are wanted");
  return TensorType(in.shape(0), in.dtype(1));
}

Tensor LowerTable(const Tensors& in) {
  return te::Compute(
      in[0]->shape,
      [&](const Indices& i) {
        PrimExpr byte = in[0](i);
        if (byte.dtype().is_int()) byte = cast(DataType::UInt(8), byte);
        return in[1](cast(DataType::Int(64), byte));
      },
      "table");
}

}  // namespace

const Op op::qnn::table = DefineOp({
    .name = "qnn.table",
    .doc = "out[i] = table[data[i]], where a negative number n selects row n + 256: any function of a byte.",
    .inputs = {{"data", "Any shape. R1: int8 or uint8."}, {"table", "R2: 256 elements."}},
    .output = "Shape of `data`, dtype of `table`.",
    .type_rel = Rel<"qnn.table", TableType>,
    .lower = LowerTable,
    .gradient = NoGradient("its operand is whole numbers"),
    .pattern = OpPattern::kBroadcast,
    .source = "Baton",
    .support_level = 11,
    .traits = {.layout = LayoutRule::kKeeps},
});

}  // namespace baton::relay
