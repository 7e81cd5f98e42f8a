// SPDX-License-Identifier: Apache-2.0
// Operators whose shape-like operands are tensors.
#pragma once

#include <baton/relay/op/algorithm.h>
#include <baton/relay/op/image.h>
#include <baton/relay/op/transform.h>

namespace baton::relay {

struct DynReshapeAttrs : AttrsNode<DynReshapeAttrs> {
  static constexpr auto _type_key = "relay.attrs.DynReshapeAttrs";
  bool allowzero = false;
  static constexpr void Describe(auto& d) { d(F<&DynReshapeAttrs::allowzero>, "Whether 0 means an extent of 0."); }
};
/// Attributes of dyn.full, dyn.zeros, dyn.ones.
struct DynInitAttrs : AttrsNode<DynInitAttrs> {
  static constexpr auto _type_key = "relay.attrs.DynInitOpAttrs";
  DataType dtype;
  static constexpr void Describe(auto& d) {
    d(F<&DynInitAttrs::dtype>, "Dtype of the result; not given: that of the operand, or float32.");
  }
};
struct DynExpandDimsAttrs : AttrsNode<DynExpandDimsAttrs> {
  static constexpr auto _type_key = "relay.attrs.DynExpandDimsAttrs";
  int64_t num_newaxis = 1;
  static constexpr void Describe(auto& d) {
    d(F<&DynExpandDimsAttrs::num_newaxis>, "How many dimensions a scalar axis begins.", AtLeast(0));
  }
};
struct DynStridedSliceAttrs : AttrsNode<DynStridedSliceAttrs> {
  static constexpr auto _type_key = "relay.attrs.DynStridedSliceAttrs";
  String slice_mode = "end";
  static constexpr void Describe(auto& d) {
    d(F<&DynStridedSliceAttrs::slice_mode>, "\"end\" or \"size\" (strides then count as 1).");
  }
};
struct DynTopKAttrs : AttrsNode<DynTopKAttrs> {
  static constexpr auto _type_key = "relay.attrs.DynTopKAttrs";
  int64_t axis = -1;
  String ret_type = "both";
  bool is_ascend = false;
  DataType dtype = DataType::Int(32);
  static constexpr void Describe(auto& d) {
    d(F<&DynTopKAttrs::axis>, "Dimension to choose along.");
    d(F<&DynTopKAttrs::ret_type>, "\"both\", \"values\" or \"indices\".");
    d(F<&DynTopKAttrs::is_ascend>, "Whether the smallest are wanted, not the largest. NaN counts as largest.");
    d(F<&DynTopKAttrs::dtype>, "Dtype of the indices.");
  }
};
struct DynOneHotAttrs : AttrsNode<DynOneHotAttrs> {
  static constexpr auto _type_key = "relay.attrs.DynOneHotAttrs";
  int64_t axis = -1;
  DataType dtype;
  static constexpr void Describe(auto& d) {
    d(F<&DynOneHotAttrs::axis>, "Place of the new dimension in the result.");
    d(F<&DynOneHotAttrs::dtype>, "Dtype of the result; not given: that of on_value.");
  }
};
struct DynPadAttrs : AttrsNode<DynPadAttrs> {
  static constexpr auto _type_key = "relay.attrs.DynPadAttrs";
  String pad_mode = "constant";
  static constexpr void Describe(auto& d) {
    d(F<&DynPadAttrs::pad_mode>, "\"constant\", \"edge\", \"reflect\" (without the edge itself), \"wrap\".");
  }
};
struct DynUpSamplingAttrs : AttrsNode<DynUpSamplingAttrs> {
  static constexpr auto _type_key = "relay.attrs.DynUpSamplingAttrs";
  String layout = "NCHW";
  String method = "nearest_neighbor";
  bool align_corners = false;
  static constexpr void Describe(auto& d) {
    d(F<&DynUpSamplingAttrs::layout>, "\"NCHW\" or \"NHWC\".");
    d(F<&DynUpSamplingAttrs::method>, "\"nearest_neighbor\", \"bilinear\" or \"bicubic\".");
    d(F<&DynUpSamplingAttrs::align_corners>, "Whether corner elements keep their place.");
  }
};
struct DynResize2DAttrs : AttrsNode<DynResize2DAttrs> {
  static constexpr auto _type_key = "relay.attrs.DynResize2DAttrs";
  String layout = "NCHW";
  String method = "linear";
  String coordinate_transformation_mode = "half_pixel";
  String rounding_method = "";
  double cubic_alpha = -0.5;
  int64_t cubic_exclude = 0;
  double extrapolation_value = 0;
  DataType out_dtype;
  static constexpr void Describe(auto& d) {
    d(F<&DynResize2DAttrs::layout>, "Layout of data: N, C and the spatial letters.");
    d(F<&DynResize2DAttrs::method>, "\"nearest_neighbor\", \"linear\" or \"cubic\".");
    d(F<&DynResize2DAttrs::coordinate_transformation_mode>,
      "Where an element of the result lies in data; the names are ONNX's.");
    d(F<&DynResize2DAttrs::rounding_method>,
      "Of nearest_neighbor: \"\" or \"round_prefer_floor\", \"round_prefer_ceil\" or \"round\", \"floor\", \"ceil\".");
    d(F<&DynResize2DAttrs::cubic_alpha>, "Shape of the cubic.");
    d(F<&DynResize2DAttrs::cubic_exclude>, "Whether elements outside data count nothing; else the edge repeats.");
    d(F<&DynResize2DAttrs::extrapolation_value>, "For tf_crop_and_resize: what lies outside data.");
    d(F<&DynResize2DAttrs::out_dtype>, "Dtype of the result; not given: that of data.");
  }
};

namespace op {
extern BATON_DLL const Op dyn_reshape, dyn_broadcast_to, dyn_tile, dyn_expand_dims, dyn_squeeze, dyn_full, dyn_zeros,
    dyn_ones;
extern BATON_DLL const Op dyn_strided_slice, dyn_topk, dyn_one_hot, dyn_sparse_to_dense, dyn_pad;
extern BATON_DLL const Op dyn_upsampling, dyn_resize2d;
}  // namespace op

}  // namespace baton::relay
