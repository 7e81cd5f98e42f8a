// SPDX-License-Identifier: Apache-2.0
// Operators that run on the host: sorting, sets, random numbers, and others whose result's shape depends on values.
#pragma once

#include <baton/relay/op/tensor.h>

namespace baton::relay {

struct SortAttrs : AttrsNode<SortAttrs> {
  static constexpr auto _type_key = "relay.attrs.SortAttrs";
  int64_t axis = -1;
  bool is_ascend = true;
  static constexpr void Describe(auto& d) {
    d(F<&SortAttrs::axis>, "Dimension to sort along.");
    d(F<&SortAttrs::is_ascend>, "Whether the smallest comes first. NaN counts as largest.");
  }
};
struct ArgsortAttrs : AttrsNode<ArgsortAttrs> {
  static constexpr auto _type_key = "relay.attrs.ArgsortAttrs";
  int64_t axis = -1;
  bool is_ascend = true;
  DataType dtype = DataType::Int(32);
  static constexpr void Describe(auto& d) {
    d(F<&ArgsortAttrs::axis>, "Dimension to sort along.");
    d(F<&ArgsortAttrs::is_ascend>, "Whether the smallest comes first. NaN counts as largest.");
    d(F<&ArgsortAttrs::dtype>, "Dtype of the result.");
  }
};
struct TopKAttrs : AttrsNode<TopKAttrs> {
  static constexpr auto _type_key = "relay.attrs.TopKAttrs";
  int64_t k = 1;
  int64_t axis = -1;
  String ret_type = "both";
  bool is_ascend = false;
  DataType dtype = DataType::Int(32);
  static constexpr void Describe(auto& d) {
    d(F<&TopKAttrs::k>, "How many; less than 1: all.");
    d(F<&TopKAttrs::axis>, "Dimension to choose along.");
    d(F<&TopKAttrs::ret_type>, "\"both\", \"values\" or \"indices\".");
    d(F<&TopKAttrs::is_ascend>, "Whether the smallest are wanted, not the largest. NaN counts as largest.");
    d(F<&TopKAttrs::dtype>, "Dtype of the indices.");
  }
};
struct UniqueAttrs : AttrsNode<UniqueAttrs> {
  static constexpr auto _type_key = "relay.attrs.UniqueAttrs";
  bool is_sorted = true;
  PrimExpr axis;
  static constexpr void Describe(auto& d) {
    d(F<&UniqueAttrs::is_sorted>, "Whether values rise; else they come as they first occur.");
    d(F<&UniqueAttrs::axis>, "Dimension whose slices are compared; None: the elements.");
  }
};
struct CompressAttrs : AttrsNode<CompressAttrs> {
  static constexpr auto _type_key = "relay.attrs.CompressAttrs";
  PrimExpr axis;
  static constexpr void Describe(auto& d) {
    d(F<&CompressAttrs::axis>, "Dimension to select along; None: of the flattened data.");
  }
};
struct SearchSortedAttrs : AttrsNode<SearchSortedAttrs> {
  static constexpr auto _type_key = "relay.attrs.SearchSortedAttrs";
  bool right = false;
  DataType dtype = DataType::Int(32);
  static constexpr void Describe(auto& d) {
    d(F<&SearchSortedAttrs::right>, "Whether equal values lie before the place.");
    d(F<&SearchSortedAttrs::dtype>, "Dtype of the result.");
  }
};
struct RandomAttrs : AttrsNode<RandomAttrs> {
  static constexpr auto _type_key = "relay.attrs.RandomAttrs";
  Array<int64_t> shape;
  DataType dtype = DataType::Float(32);
  double low = 0;
  double high = 1;
  double mean = 0;
  double scale = 1;
  PrimExpr seed;
  static constexpr void Describe(auto& d) {
    d(F<&RandomAttrs::shape>, "Extents of the result.", kRequired, AtLeast(0));
    d(F<&RandomAttrs::dtype>, "Dtype of the result, a floating one.");
    d(F<&RandomAttrs::low>, "Of uniform: smallest value.");
    d(F<&RandomAttrs::high>, "Of uniform: bound that is not reached.");
    d(F<&RandomAttrs::mean>, "Of normal: mean.");
    d(F<&RandomAttrs::scale>, "Of normal: standard deviation.");
    d(F<&RandomAttrs::seed>, "Makes every call give the same; None: each call goes on where the last ended.");
  }
};
struct ThreefryGenerateAttrs : AttrsNode<ThreefryGenerateAttrs> {
  static constexpr auto _type_key = "relay.attrs.ThreefryGenerateAttrs";
  Array<int64_t> out_shape;
  static constexpr void Describe(auto& d) {
    d(F<&ThreefryGenerateAttrs::out_shape>, "Extents of the numbers.", kRequired, AtLeast(0));
  }
};
struct BernoulliAttrs : AttrsNode<BernoulliAttrs> {
  static constexpr auto _type_key = "relay.attrs.BernoulliAttrs";
  DataType dtype;
  PrimExpr seed;
  static constexpr void Describe(auto& d) {
    d(F<&BernoulliAttrs::dtype>, "Dtype of the result; not given: that of data.");
    d(F<&BernoulliAttrs::seed>, "Makes every call give the same; None: each call goes on where the last ended.");
  }
};
struct MultinomialAttrs : AttrsNode<MultinomialAttrs> {
  static constexpr auto _type_key = "relay.attrs.MultinomialAttrs";
  int64_t sample_size = 1;
  DataType dtype = DataType::Int(32);
  PrimExpr seed;
  static constexpr void Describe(auto& d) {
    d(F<&MultinomialAttrs::sample_size>, "Number of samples of each row.", AtLeast(1));
    d(F<&MultinomialAttrs::dtype>, "Dtype of the result, an integer one.");
    d(F<&MultinomialAttrs::seed>, "Makes every call give the same; None: each call goes on where the last ended.");
  }
};

namespace op {
extern BATON_DLL const Op sort, argsort, topk, unique, argwhere, compress, searchsorted, det, cofactor, random_uniform,
    random_normal, random_bernoulli, random_multinomial, threefry_generate, threefry_split;
}  // namespace op

}  // namespace baton::relay
