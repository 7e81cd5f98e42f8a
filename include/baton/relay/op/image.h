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
struct ResizeNDAttrs : AttrsNode<ResizeNDAttrs> {
  static constexpr auto _type_key = "relay.attrs.ResizeNDAttrs";
  Array<int64_t> axes;
  Array<int64_t> size;
  Array<double> scales = {};
  Array<double> roi = {};
  String method = "linear";
  String coordinate_transformation_mode = "half_pixel";
  String rounding_method = "";
  double cubic_alpha = -0.75;
  int64_t cubic_exclude = 0;
  double extrapolation_value = 0;
  bool antialias = false;
  static constexpr void Describe(auto& d) {
    d(F<&ResizeNDAttrs::axes>, "Dimensions to resize.", kRequired);
    d(F<&ResizeNDAttrs::size>, "Their extents in the result.", kRequired, AtLeast(0));
    d(F<&ResizeNDAttrs::scales>, "Factors of the extents where they are not size / extent.");
    d(F<&ResizeNDAttrs::roi>, "For tf_crop_and_resize: begins, then ends, as shares of data's extents.");
    d(F<&ResizeNDAttrs::method>, "\"nearest_neighbor\", \"linear\" or \"cubic\".");
    d(F<&ResizeNDAttrs::coordinate_transformation_mode>,
      "Where an element of the result lies in data; the names are ONNX's.");
    d(F<&ResizeNDAttrs::rounding_method>,
      "Of nearest_neighbor: \"\" or \"round_prefer_floor\", \"round_prefer_ceil\" or \"round\", \"floor\", \"ceil\".");
    d(F<&ResizeNDAttrs::cubic_alpha>, "Shape of the cubic.");
    d(F<&ResizeNDAttrs::cubic_exclude>, "Whether elements outside data count nothing; else the edge repeats.");
    d(F<&ResizeNDAttrs::extrapolation_value>, "For tf_crop_and_resize: what lies outside data.");
    d(F<&ResizeNDAttrs::antialias>, "Whether shrinking takes all elements into account, not the nearest ones.");
  }
};
struct GridSampleAttrs : AttrsNode<GridSampleAttrs> {
  static constexpr auto _type_key = "relay.attrs.GridSampleAttrs";
  String method = "bilinear";
  String layout = "NCHW";
  String padding_mode = "zeros";
  bool align_corners = true;
  bool grid_last = false;
  static constexpr void Describe(auto& d) {
    d(F<&GridSampleAttrs::method>, "\"nearest\", \"bilinear\" (any rank) or \"bicubic\".");
    d(F<&GridSampleAttrs::layout>, "\"NCHW\" or \"NCDHW\".");
    d(F<&GridSampleAttrs::padding_mode>, "Outside data: \"zeros\", \"border\" or \"reflection\".");
    d(F<&GridSampleAttrs::align_corners>,
      "Whether -1 and 1 are the centres of the corner elements, not their outer edges.");
    d(F<&GridSampleAttrs::grid_last>, "Whether the last dimension of grid holds the coordinates, not the second.");
  }
};
struct AffineGridAttrs : AttrsNode<AffineGridAttrs> {
  static constexpr auto _type_key = "relay.attrs.AffineGridAttrs";
  Array<int64_t> target_shape;
  bool align_corners = true;
  static constexpr void Describe(auto& d) {
    d(F<&AffineGridAttrs::target_shape>, "Spatial extents, 2 or 3.", kRequired, AtLeast(0));
    d(F<&AffineGridAttrs::align_corners>,
      "Whether -1 and 1 are the centres of the corner elements, not their outer edges.");
  }
};
struct ROIAlignAttrs : AttrsNode<ROIAlignAttrs> {
  static constexpr auto _type_key = "relay.attrs.ROIAlignAttrs";
  Array<int64_t> pooled_size;
  double spatial_scale = 1;
  int64_t sample_ratio = -1;
  String layout = "NCHW";
  String mode = "avg";
  bool aligned = false;
  static constexpr void Describe(auto& d) {
    d(F<&ROIAlignAttrs::pooled_size>, "(height, width) of the result.", kRequired, AtLeast(1));
    d(F<&ROIAlignAttrs::spatial_scale>, "Elements of data a unit of a box.", kRequired);
    d(F<&ROIAlignAttrs::sample_ratio>, "Samples along each side of a bin; 0 or less: as many as elements.");
    d(F<&ROIAlignAttrs::layout>, "\"NCHW\".");
    d(F<&ROIAlignAttrs::mode>, "\"avg\" or \"max\" of the samples.");
    d(F<&ROIAlignAttrs::aligned>, "Whether elements' centres lie at halves (ONNX's half_pixel).");
  }
};
struct ROIPoolAttrs : AttrsNode<ROIPoolAttrs> {
  static constexpr auto _type_key = "relay.attrs.ROIPoolAttrs";
  Array<int64_t> pooled_size;
  double spatial_scale = 1;
  String layout = "NCHW";
  static constexpr void Describe(auto& d) {
    d(F<&ROIPoolAttrs::pooled_size>, "(height, width) of the result.", kRequired, AtLeast(1));
    d(F<&ROIPoolAttrs::spatial_scale>, "Elements of data a unit of a box.", kRequired);
    d(F<&ROIPoolAttrs::layout>, "\"NCHW\".");
  }
};
struct AllClassNMSAttrs : AttrsNode<AllClassNMSAttrs> {
  static constexpr auto _type_key = "relay.attrs.AllClassNonMaximumSuppressionAttrs";
  bool center_point_box = false;
  String output_format = "onnx";
  static constexpr void Describe(auto& d) {
    d(F<&AllClassNMSAttrs::center_point_box>,
      "Boxes are (x centre, y centre, width, height), not two corners (y1, x1, y2, x2).");
    d(F<&AllClassNMSAttrs::output_format>, "\"onnx\".");
  }
};

struct CropAndResizeAttrs : AttrsNode<CropAndResizeAttrs> {
  static constexpr auto _type_key = "relay.attrs.CropAndResizeAttrs";
  Array<int64_t> crop_size;
  String layout = "NCHW";
  String method = "bilinear";
  double extrapolation_value = 0;
  DataType out_dtype;
  static constexpr void Describe(auto& d) {
    d(F<&CropAndResizeAttrs::crop_size>, "(height, width) of the result.", kRequired, AtLeast(0));
    d(F<&CropAndResizeAttrs::layout>, "\"NCHW\" or \"NHWC\".");
    d(F<&CropAndResizeAttrs::method>, "\"bilinear\" or \"nearest_neighbor\".");
    d(F<&CropAndResizeAttrs::extrapolation_value>, "What lies outside data.");
    d(F<&CropAndResizeAttrs::out_dtype>, "Dtype of the result; not given: that of data.");
  }
};
struct Dilation2DAttrs : AttrsNode<Dilation2DAttrs> {
  static constexpr auto _type_key = "relay.attrs.Dilation2DAttrs";
  Array<int64_t> strides = {1, 1};
  Array<int64_t> padding = {0, 0};
  Array<int64_t> dilations = {1, 1};
  String data_layout = "NCHW";
  String kernel_layout = "IHW";
  DataType out_dtype;
  static constexpr void Describe(auto& d) {
    d(F<&Dilation2DAttrs::strides>, "Steps of the window.", AtLeast(1));
    d(F<&Dilation2DAttrs::padding>, "1, 2 or 4 numbers: begins, then ends; what is added never is the largest.",
      AtLeast(0));
    d(F<&Dilation2DAttrs::dilations>, "Steps within the window.", AtLeast(1));
    d(F<&Dilation2DAttrs::data_layout>, "\"NCHW\" or \"NHWC\".");
    d(F<&Dilation2DAttrs::kernel_layout>, "\"IHW\" or \"HWI\".");
    d(F<&Dilation2DAttrs::out_dtype>, "Dtype of the result; not given: that of data.");
  }
};
struct UpSampling3DAttrs : AttrsNode<UpSampling3DAttrs> {
  static constexpr auto _type_key = "relay.attrs.UpSampling3DAttrs";
  double scale_d = 1;
  double scale_h = 1;
  double scale_w = 1;
  String layout = "NCDHW";
  String method = "nearest_neighbor";
  String coordinate_transformation_mode = "half_pixel";
  static constexpr void Describe(auto& d) {
    d(F<&UpSampling3DAttrs::scale_d>, "Factor of the depth.", AtLeast(0));
    d(F<&UpSampling3DAttrs::scale_h>, "Factor of the height.", AtLeast(0));
    d(F<&UpSampling3DAttrs::scale_w>, "Factor of the width.", AtLeast(0));
    d(F<&UpSampling3DAttrs::layout>, "\"NCDHW\" or \"NDHWC\".");
    d(F<&UpSampling3DAttrs::method>, "\"nearest_neighbor\" or \"trilinear\".");
    d(F<&UpSampling3DAttrs::coordinate_transformation_mode>,
      "Where an element of the result lies in data; the names are ONNX's.");
  }
};
struct GetValidCountsAttrs : AttrsNode<GetValidCountsAttrs> {
  static constexpr auto _type_key = "relay.attrs.GetValidCountsAttrs";
  int64_t id_index = 0;
  int64_t score_index = 1;
  static constexpr void Describe(auto& d) {
    d(F<&GetValidCountsAttrs::id_index>, "Place of the class among a box's numbers; negative: there is none.");
    d(F<&GetValidCountsAttrs::score_index>, "Place of the score.", AtLeast(0));
  }
};
struct NonMaximumSuppressionAttrs : AttrsNode<NonMaximumSuppressionAttrs> {
  static constexpr auto _type_key = "relay.attrs.NonMaximumSuppressionAttrs";
  bool force_suppress = false;
  int64_t top_k = -1;
  int64_t coord_start = 2;
  int64_t score_index = 1;
  int64_t id_index = 0;
  bool return_indices = true;
  bool invalid_to_bottom = false;
  static constexpr void Describe(auto& d) {
    d(F<&NonMaximumSuppressionAttrs::force_suppress>, "Whether boxes of other classes suppress each other, too.");
    d(F<&NonMaximumSuppressionAttrs::top_k>, "How many of the best are looked at; 0 or less: all.");
    d(F<&NonMaximumSuppressionAttrs::coord_start>, "Place of the first of four coordinates among a box's numbers.",
      AtLeast(0));
    d(F<&NonMaximumSuppressionAttrs::score_index>, "Place of the score.", AtLeast(0));
    d(F<&NonMaximumSuppressionAttrs::id_index>, "Place of the class; negative: there is none.");
    d(F<&NonMaximumSuppressionAttrs::return_indices>, "Whether places of boxes are wanted, not the boxes.");
    d(F<&NonMaximumSuppressionAttrs::invalid_to_bottom>, "Whether the boxes that stay come first.");
  }
};
struct MultiBoxPriorAttrs : AttrsNode<MultiBoxPriorAttrs> {
  static constexpr auto _type_key = "relay.attrs.MultiBoxPriorAttrs";
  Array<double> sizes = {1.0};
  Array<double> ratios = {1.0};
  Array<double> steps = {-1.0, -1.0};
  Array<double> offsets = {0.5, 0.5};
  bool clip = false;
  static constexpr void Describe(auto& d) {
    d(F<&MultiBoxPriorAttrs::sizes>, "Sizes of boxes, as shares of the image.");
    d(F<&MultiBoxPriorAttrs::ratios>, "Width to height; all but the first, with the first size.");
    d(F<&MultiBoxPriorAttrs::steps>, "(y, x) between boxes; not above 0: that of data's elements.");
    d(F<&MultiBoxPriorAttrs::offsets>, "(y, x) of the centres within a step.");
    d(F<&MultiBoxPriorAttrs::clip>, "Whether boxes end at the image.");
  }
};
struct MultiBoxTransformLocAttrs : AttrsNode<MultiBoxTransformLocAttrs> {
  static constexpr auto _type_key = "relay.attrs.MultiBoxTransformLocAttrs";
  bool clip = true;
  double threshold = 0.01;
  Array<double> variances = {0.1, 0.1, 0.2, 0.2};
  static constexpr void Describe(auto& d) {
    d(F<&MultiBoxTransformLocAttrs::clip>, "Whether boxes end at the image.");
    d(F<&MultiBoxTransformLocAttrs::threshold>, "Score below which a box is none.");
    d(F<&MultiBoxTransformLocAttrs::variances>, "Factors of the predicted x, y, width, height.");
  }
};
struct YoloReorgAttrs : AttrsNode<YoloReorgAttrs> {
  static constexpr auto _type_key = "relay.attrs.YoloReorgAttrs";
  int64_t stride = 1;
  static constexpr void Describe(auto& d) {
    d(F<&YoloReorgAttrs::stride>, "Side of a block, in pixels.", kRequired, AtLeast(1));
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
