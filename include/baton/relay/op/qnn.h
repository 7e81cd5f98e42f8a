// SPDX-License-Identifier: Apache-2.0
// Operators on quantized tensors.
#pragma once

#include <baton/relay/op/nn.h>

namespace baton::relay {

struct QuantizeAttrs : AttrsNode<QuantizeAttrs> {
  static constexpr auto _type_key = "relay.attrs.QuantizeAttrs";
  int64_t axis = -1;
  DataType out_dtype = DataType::Int(8);
  static constexpr void Describe(auto& d) {
    d(F<&QuantizeAttrs::axis>, "Axis that a scale or zero point of rank 1 runs along. R4: one of data.");
    d(F<&QuantizeAttrs::out_dtype>, "Dtype of the result. R5: one of integers.");
  }
};
struct DequantizeAttrs : AttrsNode<DequantizeAttrs> {
  static constexpr auto _type_key = "relay.attrs.DequantizeAttrs";
  int64_t axis = -1;
  static constexpr void Describe(auto& d) {
    d(F<&DequantizeAttrs::axis>, "Axis that a scale or zero point of rank 1 runs along. R4: one of data.");
  }
};
struct RequantizeAttrs : AttrsNode<RequantizeAttrs> {
  static constexpr auto _type_key = "relay.attrs.RequantizeAttrs";
  int64_t axis = -1;
  String rounding = "UPWARD";
  String compute_dtype = "None";
  DataType out_dtype = DataType::Int(8);
  static constexpr void Describe(auto& d) {
    d(F<&RequantizeAttrs::axis>, "Axis that a scale or zero point of rank 1 runs along. R4: one of data.");
    d(F<&RequantizeAttrs::rounding>,
      "Where halves go: \"UPWARD\" (also \"None\"), or \"TONEAREST\", away from zero. R6: one of these.");
    d(F<&RequantizeAttrs::compute_dtype>, "Kept for older programs; ratios of scales are taken exactly.");
    d(F<&RequantizeAttrs::out_dtype>, "Dtype of the result. R5: one of integers.");
  }
};
struct BroadcastAttrs : AttrsNode<BroadcastAttrs> {
  static constexpr auto _type_key = "relay.attrs.BroadcastAttrs";
  int64_t lhs_axis = -1;
  int64_t rhs_axis = -1;
  static constexpr void Describe(auto& d) {
    d(F<&BroadcastAttrs::lhs_axis>, "Axis of lhs that its scale of rank 1 runs along. R4: one of lhs.");
    d(F<&BroadcastAttrs::rhs_axis>, "Axis of rhs that its scale of rank 1 runs along. R4: one of rhs.");
  }
};

namespace op::qnn {
extern BATON_DLL const Op quantize, dequantize, requantize, simulated_quantize, simulated_dequantize, conv2d,
    conv2d_transpose, dense, batch_matmul, add, subtract, mul, concatenate, tanh, exp, sqrt, rsqrt, erf, sigmoid, table;
}  // namespace op::qnn

}  // namespace baton::relay
