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
struct IsInfAttrs : AttrsNode<IsInfAttrs> {
  static constexpr auto _type_key = "relay.attrs.IsInfAttrs";
  bool detect_negative = true;
  bool detect_positive = true;
  static constexpr void Describe(auto& d) {
    d(F<&IsInfAttrs::detect_negative>, "Whether -infinity counts.");
    d(F<&IsInfAttrs::detect_positive>, "Whether +infinity counts.");
  }
};
struct GeluAttrs : AttrsNode<GeluAttrs> {
  static constexpr auto _type_key = "relay.attrs.GeluAttrs";
  String approximate = "none";
  static constexpr void Describe(auto& d) { d(F<&GeluAttrs::approximate>, "\"none\" (by erf) or \"tanh\"."); }
};
struct LeakyReluAttrs : AttrsNode<LeakyReluAttrs> {
  static constexpr auto _type_key = "relay.attrs.LeakyReluAttrs";
  double alpha = 0.01;
  static constexpr void Describe(auto& d) {
    d(F<&LeakyReluAttrs::alpha>, "Slope where data <= 0. Unitless, any sign.");
  }
};
struct AlphaAttrs : AttrsNode<AlphaAttrs> {
  static constexpr auto _type_key = "relay.attrs.AlphaAttrs";
  double alpha = 1.0;
  static constexpr void Describe(auto& d) { d(F<&AlphaAttrs::alpha>, "The function's one parameter."); }
};
struct SeluAttrs : AttrsNode<SeluAttrs> {
  static constexpr auto _type_key = "relay.attrs.SeluAttrs";
  double alpha = 1.67326319217681884765625;
  double gamma = 1.05070102214813232421875;
  static constexpr void Describe(auto& d) {
    d(F<&SeluAttrs::alpha>, "Factor of exp(data) - 1.");
    d(F<&SeluAttrs::gamma>, "Factor of the whole.");
  }
};
struct HardSigmoidAttrs : AttrsNode<HardSigmoidAttrs> {
  static constexpr auto _type_key = "relay.attrs.HardSigmoidAttrs";
  double alpha = 0.2;
  double beta = 0.5;
  static constexpr void Describe(auto& d) {
    d(F<&HardSigmoidAttrs::alpha>, "Slope.");
    d(F<&HardSigmoidAttrs::beta>, "Value at 0.");
  }
};
struct ShrinkAttrs : AttrsNode<ShrinkAttrs> {
  static constexpr auto _type_key = "relay.attrs.ShrinkAttrs";
  double lambd = 0.5;
  double bias = 0;
  static constexpr void Describe(auto& d) {
    d(F<&ShrinkAttrs::lambd>, "Values of magnitude up to this become 0.");
    d(F<&ShrinkAttrs::bias>, "How far the others move towards 0.");
  }
};
struct PReluAttrs : AttrsNode<PReluAttrs> {
  static constexpr auto _type_key = "relay.attrs.PReluAttrs";
  int64_t axis = 1;
  static constexpr void Describe(auto& d) {
    d(F<&PReluAttrs::axis>, "Axis of data that an alpha of rank 1 runs along.");
  }
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
struct VarianceAttrs : AttrsNode<VarianceAttrs> {
  static constexpr auto _type_key = "relay.attrs.VarianceAttrs";
  Array<int64_t> axis = NoInts();
  bool keepdims = false;
  bool exclude = false;
  bool unbiased = false;
  static constexpr void Describe(auto& d) {
    d(F<&VarianceAttrs::axis>, "Axes to reduce, each in [-rank, rank); None: all.");
    d(F<&VarianceAttrs::keepdims>, "Whether reduced axes stay, with extent 1.");
    d(F<&VarianceAttrs::exclude>, "Whether `axis` names the axes that stay.");
    d(F<&VarianceAttrs::unbiased>, "Whether to divide by the count less 1.");
  }
};
struct ArgReduceAttrs : AttrsNode<ArgReduceAttrs> {
  static constexpr auto _type_key = "relay.attrs.ArgReduceAttrs";
  Array<int64_t> axis = NoInts();
  bool keepdims = false;
  bool exclude = false;
  bool select_last_index = false;
  DataType dtype = DataType::Int(64);
  static constexpr void Describe(auto& d) {
    d(F<&ArgReduceAttrs::axis>, "Axes to reduce; the index counts within them, row-major. None: all.");
    d(F<&ArgReduceAttrs::keepdims>, "Whether reduced axes stay, with extent 1.");
    d(F<&ArgReduceAttrs::exclude>, "Whether `axis` names the axes that stay.");
    d(F<&ArgReduceAttrs::select_last_index>, "Of equal values the last index, not the first.");
    d(F<&ArgReduceAttrs::dtype>, "Dtype of the indices.");
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

namespace op {
// One input.
extern BATON_DLL const Op abs, negative, sign, exp, exp2, log, log2, log10, log1p, expm1, sqrt, rsqrt, sigmoid, tanh,
    erf, sin, cos, tan, sinh, cosh, asin, acos, atan, asinh, acosh, atanh, floor, ceil, trunc, round, isnan, isinf,
    isfinite, logical_not, bitwise_not, popcount, copy, identity, reciprocal, relu, softplus, softsign, silu, mish,
    hard_swish, gelu, leaky_relu, elu, celu, selu, hard_sigmoid, thresholded_relu, shrink, swish, clip, cast, cast_like,
    reinterpret, prelu, fast_exp, fast_tanh, fast_erf;
// Two inputs, and where.
extern BATON_DLL const Op add, subtract, multiply, divide, floor_divide, mod, floor_mod, power, maximum, minimum, atan2,
    equal, not_equal, less, less_equal, greater, greater_equal, logical_and, logical_or, logical_xor, bitwise_and,
    bitwise_or, bitwise_xor, left_shift, right_shift, where, bias_add;
// Reductions and scans.
extern BATON_DLL const Op sum, prod, max, min, mean, all, any, argmax, argmin, variance, std, logsumexp, sum_squares,
    norm_l1, norm_l2, log_sum, cumsum, cumprod;
}  // namespace op

}  // namespace baton::relay
