// SPDX-License-Identifier: Apache-2.0
// Operators of images and of boxes in them.
#pragma once

#include <baton/relay/op/tensor.h>

namespace baton::relay {

/// Attributes of image.resize1d, image.resize2d, image.resize3d.
template <int N>
struct ResizeAttrs : AttrsNode<ResizeAttrs<N>> {
  static constexpr auto _type_key = N == 1   ? "relay.attrs.Resize1DAttrs"
                                    : N == 2 ? "relay.attrs.Resize2DAttrs"
                                             : "relay.attrs.Resize3DAttrs";
  Array<int64_t> size;
  Array<double> roi = {};
  String layout = N == 1 ? "NCW" : N == 2 ? "NCHW" : "NCDHW";
  String method = "linear";
  String coordinate_transformation_mode = "half_pixel";
  String rounding_method = "";
  double cubic_alpha = -0.5;
  int64_t cubic_exclude = 0;
  double extrapolation_value = 0;
  DataType out_dtype;
  static constexpr void Describe(auto& d) {
    d(F<&ResizeAttrs::size>, "Spatial extents of the result.", kRequired, AtLeast(0));
    d(F<&ResizeAttrs::roi>, "For tf_crop_and_resize: begins, then ends, as shares of data's extents.");
    d(F<&ResizeAttrs::layout>, "Layout of data: N, C and the spatial letters.");
    d(F<&ResizeAttrs::method>, "\"nearest_neighbor\", \"linear\" or \"cubic\".");
    d(F<&ResizeAttrs::coordinate_transformation_mode>,
      "Where an element of the result lies in data; the names are ONNX's.");
    d(F<&ResizeAttrs::rounding_method>,
      "Of nearest_neighbor: \"\" or \"round_prefer_floor\", \"round_prefer_ceil\" or \"round\", \"floor\", \"ceil\".");
    d(F<&ResizeAttrs::cubic_alpha>, "Shape of the cubic.");
    d(F<&ResizeAttrs::cubic_exclude>, "Whether elements outside data count nothing; else the edge repeats.");
    d(F<&ResizeAttrs::extrapolation_value>, "For tf_crop_and_resize: what lies outside data.");
    d(F<&ResizeAttrs::out_dtype>, "Dtype of the result; not given: that of data.");
  }
};

namespace op {
extern BATON_DLL const Op yolo_reorg;
extern BATON_DLL const Op crop_and_resize, dilation2d, upsampling3d, get_valid_counts, non_max_suppression,
    multibox_prior, multibox_transform_loc;
extern BATON_DLL const Op resize1d, resize2d, resize3d, resize_nd, grid_sample, affine_grid, roi_align, roi_pool,
    all_class_nms;
}  // namespace op

}  // namespace baton::relay
