// SPDX-License-Identifier: Apache-2.0
// Operators that run on the host: sorting, sets, random numbers, and others whose result's shape depends on values.
#pragma once

#include <baton/relay/op/tensor.h>

namespace baton::relay {

struct TopKAttrs : AttrsNode<TopKAttrs> {
  static constexpr auto _type_key = "relay.attrs.TopKAttrs";
  int64_t k = 1;
  int64_t axis = -1;
  String ret_type = "both";
  bool is_ascend = false;
  DataType dtype = DataType::Int(64);
  static constexpr void Describe(auto& d) {
    d(F<&TopKAttrs::k>, "How many; less than 1: all.");
    d(F<&TopKAttrs::axis>, "Dimension to choose along.");
    d(F<&TopKAttrs::ret_type>, "\"both\", \"values\" or \"indices\".");
    d(F<&TopKAttrs::is_ascend>, "Whether the smallest are wanted, not the largest. NaN counts as largest.");
    d(F<&TopKAttrs::dtype>, "Dtype of the indices.");
  }
};

namespace op {
extern BATON_DLL const Op sort, argsort, topk, unique, argwhere, compress, searchsorted, det, cofactor, random_uniform,
    random_normal, random_bernoulli, random_multinomial, threefry_generate, threefry_split;
}  // namespace op

}  // namespace baton::relay
