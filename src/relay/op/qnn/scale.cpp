// SPDX-License-Identifier: Apache-2.0
// Numbers to quantized ones and back, and from one scale to another.
#include "qnn.h"

namespace baton::relay {
namespace {

struct SimulatedQuantizeAttrs : AttrsNode<SimulatedQuantizeAttrs> {
  static constexpr auto _type_key = "relay.attrs.SimulatedQuantizeAttrs";
  int64_t axis = -1;
  DataType out_dtype = DataType::Int(8);
  static constexpr void Describe(auto& d) {
    d(F<&SimulatedQuantizeAttrs::axis>, "Axis that a scale or zero point of rank 1 runs along. R4: one of data.");
    d(F<&SimulatedQuantizeAttrs::out_dtype>, "Dtype that is simulated. R5: one of integers.");
  }
};

struct SimulatedDequantizeAttrs : AttrsNode<SimulatedDequantizeAttrs> {
  static constexpr auto _type_key = "relay.attrs.SimulatedDequantizeAttrs";
  int64_t axis = -1;
  DataType in_dtype = DataType::Int(8);
  static constexpr void Describe(auto& d) {
    d(F<&SimulatedDequantizeAttrs::axis>, "Axis that a scale or zero point of rank 1 runs along. R4: one of data.");
    d(F<&SimulatedDequantizeAttrs::in_dtype>, "Dtype that is simulated. R5: one of integers.");
  }
};

using namespace qnn;  // NOLINT: what these operators share

template <class A>
Type QuantizeType(const A& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  PrimExpr extent = AlongAxis(in, 0, a.axis, {1, 2}, "R4");
  CheckScale(in, 1, extent, "R2");
  CheckZeroPoint(in, 2, extent, "R3");
  return IntegerType(in, in.shape(0), a.out_dtype, "R5");
}
Expr Quantized8(const Call& call, const Array<Expr>& args, int64_t axis, DataType out) {
  return Quantize(args[0], TypeAt(call, 0), args[1], TypeAt(call, 1), args[2], TypeAt(call, 2), axis, out);
}
Expr DecomposeQuantize(const Call& call, const Array<Expr>& args) {
  const auto& a = AttrsOf<QuantizeAttrs>(call);
  return Quantized8(call, args, a.axis, a.out_dtype);
}

Type DequantizeType(const DequantizeAttrs& a, const TypeArgs& in) {
  in.Integral(0, "R1");
  PrimExpr extent = AlongAxis(in, 0, a.axis, {1, 2}, "R4");
  CheckScale(in, 1, extent, "R2");
  CheckZeroPoint(in, 2, extent, "R3");
  return TensorType(in.shape(0), DataType::Float(32));
}
Expr DecomposeDequantize(const Call& call, const Array<Expr>& args) {
  return Dequantize(At(call, args, 0, 1, 2, AttrsOf<DequantizeAttrs>(call).axis));
}

Type RequantizeType(const RequantizeAttrs& a, const TypeArgs& in) {
  in.Integral(0, "R1");
  PrimExpr extent = AlongAxis(in, 0, a.axis, {1, 2}, "R4");
  CheckScale(in, 1, extent, "R2");
  CheckZeroPoint(in, 2, extent, "R3");
  CheckScale(in, 3, PrimExpr(), "R2");
  CheckZeroPoint(in, 4, PrimExpr(), "R3");
  if (a.rounding != "UPWARD" && a.rounding != "TONEAREST" && a.rounding != "None")
    in.Fail("R6", "rounding is \"" + a.rounding.str() + "\"; it is \"UPWARD\" or \"TONEAREST\"");
  return IntegerType(in, in.shape(0), a.out_dtype, "R5");
}
Expr DecomposeRequantize(const Call& call, const Array<Expr>& args) {
  const auto& a = AttrsOf<RequantizeAttrs>(call);
  const auto *scale = TypeAt(call, 3), *zero = TypeAt(call, 4);
  Expr out_scale = scale->shape.empty() ? args[3] : Reshape(args[3], {});
  Expr out_zero = zero->shape.empty() ? args[4] : Reshape(args[4], {});
  return Requantize(At(call, args, 0, 1, 2, a.axis), out_scale, scale, out_zero, zero, a.rounding == "TONEAREST",
                    a.out_dtype);
}

Type SimulatedQuantizeType(const SimulatedQuantizeAttrs& a, const TypeArgs& in) {
  QuantizeType(a, in);
  return in.type(0);
}
Expr DecomposeSimulatedQuantize(const Call& call, const Array<Expr>& args) {
  const auto& a = AttrsOf<SimulatedQuantizeAttrs>(call);
  return Cast(Quantized8(call, args, a.axis, a.out_dtype), TypeAt(call, 0)->dtype);
}
Type SimulatedDequantizeType(const SimulatedDequantizeAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  PrimExpr extent = AlongAxis(in, 0, a.axis, {1, 2}, "R4");
  CheckScale(in, 1, extent, "R2");
  CheckZeroPoint(in, 2, extent, "R3");
  IntegerType(in, {}, a.in_dtype, "R5");
  return in.type(0);
}
Expr DecomposeSimulatedDequantize(const Call& call, const Array<Expr>& args) {
  const Quantized q = At(call, args, 0, 1, 2, AttrsOf<SimulatedDequantizeAttrs>(call).axis);
  return Multiply(q.Centred(q.type->dtype), q.Scale(q.type->dtype));
}

constexpr auto kFloatData = "Any shape. R1: floating dtype.", kIntData = "Any shape. R1: integers.",
               kStepDoc = "Step between neighbours. R2: floating, a scalar or a vector along the axis.",
               kZeroDoc = "What stands for 0. R3: integers, a scalar or a vector along the axis.",
               kScalarStepDoc = "Step between neighbours of the result. R2: floating, a scalar.",
               kScalarZeroDoc = "What stands for 0 in the result. R3: integers, a scalar.";

}  // namespace

const Op op::qnn::quantize = DefineOp({
    .name = "qnn.quantize",
    .doc = "round(data / output_scale) + output_zero_point, saturating; halves go to the even number.",
    .inputs = {{"data", kFloatData}, {"output_scale", kStepDoc}, {"output_zero_point", kZeroDoc}},
    .output = "Shape of `data`, out_dtype.",
    .attrs = TypeOf<QuantizeAttrs>,
    .type_rel = Rel<"qnn.quantize", QuantizeType<QuantizeAttrs>>,
    .decompose = DecomposeQuantize,
    .gradient = kWholeResult,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX QuantizeLinear-13",
    .support_level = 11,
    .traits = {.layout = LayoutRule::kAxis},
});
const Op op::qnn::dequantize = DefineOp({
    .name = "qnn.dequantize",
    .doc = "input_scale * (data - input_zero_point).",
    .inputs = {{"data", kIntData}, {"input_scale", kStepDoc}, {"input_zero_point", kZeroDoc}},
    .output = "Shape of `data`, float32.",
    .attrs = TypeOf<DequantizeAttrs>,
    .type_rel = Rel<"qnn.dequantize", DequantizeType>,
    .decompose = DecomposeDequantize,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX DequantizeLinear-13",
    .support_level = 11,
    .traits = {.layout = LayoutRule::kAxis},
});
const Op op::qnn::requantize = DefineOp({
    .name = "qnn.requantize",
    .doc = "A quantized tensor as one of another scale and zero point, saturating.",
    .inputs = {{"data", kIntData},
               {"input_scale", kStepDoc},
               {"input_zero_point", kZeroDoc},
               {"output_scale", kScalarStepDoc},
               {"output_zero_point", kScalarZeroDoc}},
    .output = "Shape of `data`, out_dtype.",
    .attrs = TypeOf<RequantizeAttrs>,
    .type_rel = Rel<"qnn.requantize", RequantizeType>,
    .decompose = DecomposeRequantize,
    .gradient = kWholeResult,
    .pattern = OpPattern::kOpaque,
    .source = "B. Jacob et al.: Quantization and Training of Neural Networks (2018), 2.2",
    .support_level = 11,
    .traits = {.layout = LayoutRule::kAxis},
});
const Op op::qnn::simulated_quantize = DefineOp({
    .name = "qnn.simulated_quantize",
    .doc = "qnn.quantize whose result stays floating.",
    .inputs = {{"data", kFloatData}, {"output_scale", kStepDoc}, {"output_zero_point", kZeroDoc}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<SimulatedQuantizeAttrs>,
    .type_rel = Rel<"qnn.simulated_quantize", SimulatedQuantizeType>,
    .decompose = DecomposeSimulatedQuantize,
    .pattern = OpPattern::kOpaque,
    .source = "B. Jacob et al.: Quantization and Training of Neural Networks (2018), 3",
    .support_level = 11,
});
const Op op::qnn::simulated_dequantize = DefineOp({
    .name = "qnn.simulated_dequantize",
    .doc = "qnn.dequantize of what qnn.simulated_quantize gives.",
    .inputs = {{"data", kFloatData}, {"input_scale", kStepDoc}, {"input_zero_point", kZeroDoc}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<SimulatedDequantizeAttrs>,
    .type_rel = Rel<"qnn.simulated_dequantize", SimulatedDequantizeType>,
    .decompose = DecomposeSimulatedDequantize,
    .pattern = OpPattern::kOpaque,
    .source = "B. Jacob et al.: Quantization and Training of Neural Networks (2018), 3",
    .support_level = 11,
});

}  // namespace baton::relay
