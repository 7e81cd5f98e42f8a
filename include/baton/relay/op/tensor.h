// SPDX-License-Identifier: Apache-2.0
// Elementwise operators and reductions.
#pragma once

#include <baton/ir/attrs.h>
#include <baton/ir/op.h>

namespace baton::relay {

/// An attribute that may be None: `Array<int64_t> axis = NoInts();`
inline Array<int64_t> NoInts() { return Array<int64_t>(runtime::ObjectPtr<runtime::Object>()); }

struct ClipAttrs : AttrsNode<ClipAttrs> {
  static constexpr auto _type_key = "relay.attrs.ClipAttrs";
  double a_min = 0;
  double a_max = 0;
  static constexpr void Describe(auto& d) {
    d(F<&ClipAttrs::a_min>, "Smallest value of the result.", kRequired);
    d(F<&ClipAttrs::a_max>, "Largest value of the result.", kRequired);
  }
};
struct CastAttrs : AttrsNode<CastAttrs> {
  static constexpr auto _type_key = "relay.attrs.CastAttrs";
  DataType dtype;
  static constexpr void Describe(auto& d) { d(F<&CastAttrs::dtype>, "Dtype of the result.", kRequired); }
};
struct BiasAddAttrs : AttrsNode<BiasAddAttrs> {
  static constexpr auto _type_key = "relay.attrs.BiasAddAttrs";
  int64_t axis = 1;
  static constexpr void Describe(auto& d) { d(F<&BiasAddAttrs::axis>, "Axis of data that bias runs along."); }
};
struct ReduceAttrs : AttrsNode<ReduceAttrs> {
  static constexpr auto _type_key = "relay.attrs.ReduceAttrs";
  Array<int64_t> axis = NoInts();
  bool keepdims = false;
  bool exclude = false;
  static constexpr void Describe(auto& d) {
    d(F<&ReduceAttrs::axis>, "Axes to reduce, each in [-rank, rank); None: all.");
    d(F<&ReduceAttrs::keepdims>, "Whether reduced axes stay, with extent 1.");
    d(F<&ReduceAttrs::exclude>, "Whether `axis` names the axes that stay.");
  }
};
struct ScanopAttrs : AttrsNode<ScanopAttrs> {
  static constexpr auto _type_key = "relay.attrs.ScanopAttrs";
  PrimExpr axis;
  DataType dtype;
  bool exclusive = false;
  bool reverse = false;
  static constexpr void Describe(auto& d) {
    d(F<&ScanopAttrs::axis>, "Axis to run along; None: over the flattened tensor.");
    d(F<&ScanopAttrs::dtype>, "Dtype of the result; not given: that of data.");
    d(F<&ScanopAttrs::exclusive>, "Whether an element leaves itself out.");
    d(F<&ScanopAttrs::reverse>, "Whether to run from the end.");
  }
};

// Operators that other files name.
namespace op {
// One input.
extern BATON_DLL const Op abs, negative, sign, exp, exp2, log, log2, log10, log1p, expm1, sqrt, rsqrt, sigmoid, tanh,
    erf, sin, cos, tan, sinh, cosh, asin, acos, atan, asinh, acosh, atanh, floor, ceil, trunc, round, isnan, isinf,
    isfinite, logical_not, bitwise_not, popcount, copy, identity, reciprocal, relu, softplus, softsign, silu, mish,
    hard_swish, gelu, elu, celu, selu, hard_sigmoid, thresholded_relu, shrink, swish, clip, cast, cast_like,
    reinterpret, prelu, fast_exp, fast_tanh, fast_erf;
// Two inputs, and where.
extern BATON_DLL const Op add, subtract, multiply, divide, floor_divide, mod, floor_mod, power, maximum, minimum, atan2,
    equal, not_equal, less, less_equal, greater, greater_equal, logical_and, logical_or, logical_xor, bitwise_and,
    bitwise_or, bitwise_xor, left_shift, right_shift, where, bias_add;
// Reductions and scans.
extern BATON_DLL const Op sum, prod, max, min, mean, all, any, argmax, argmin, variance, std, logsumexp, sum_squares,
    norm_l1, norm_l2, log_sum, cumprod;
}  // namespace op

}  // namespace baton::relay
