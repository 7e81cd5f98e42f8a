// SPDX-License-Identifier: Apache-2.0
// Boxes: pooling their contents, and keeping the best of those that overlap. On the host: the extents of a box are
// known only at run time.
#include <baton/relay/op/image.h>
#include <host/functions.h>

#include "../common.h"
#include "../gradient.h"

namespace baton::relay {
namespace {

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
    d(F<&ROIAlignAttrs::layout>, "Of data and the result: \"NCHW\" or \"NHWC\".");
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

/// `kLast`: channels may come last, "NHWC".
template <class A, bool kLast = false>
Type RoiType(const A& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.SameDtype(0, 1, "R1");
  in.Rank(0, 4, "R2");
  in.Rank(1, 2, "R2");
  if (!in.Same(in.shape(1)[1], PrimExpr(5)))
    in.Fail("R2", in.Show(1) + ", where (number, 5) is wanted: (batch, x1, y1, x2, y2)");
  if (a.pooled_size.size() != 2)
    in.Fail("R3", "pooled_size has " + Str(a.pooled_size.size()) + " numbers, where (height, width) is wanted");
  const bool last = kLast && a.layout == "NHWC";
  if (a.layout != "NCHW" && !last)
    in.Fail("R3", "layout is \"" + a.layout.str() + (kLast ? "\"; it is \"NCHW\" or \"NHWC\"" : "\"; it is \"NCHW\""));
  const PrimExpr number = in.shape(1)[0], h(a.pooled_size[0]), w(a.pooled_size[1]);
  return TensorType(last ? Shape{number, h, w, in.shape(0)[3]} : Shape{number, in.shape(0)[1], h, w}, in.dtype(0));
}
Type RoiAlignType(const ROIAlignAttrs& a, const TypeArgs& in) {
  if (a.mode != "avg" && a.mode != "max") in.Fail("R3", "mode is \"" + a.mode.str() + "\"; it is \"avg\" or \"max\"");
  return RoiType<ROIAlignAttrs, true>(a, in);
}
// ---- non-max suppression
Type AllClassNMSType(const AllClassNMSAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.Floating(1, "R1");
  in.Rank(0, 3, "R2");
  in.Rank(1, 3, "R2");
  if (!in.Same(in.shape(0)[2], PrimExpr(4))) in.Fail("R2", in.Show(0) + ", where (batch, boxes, 4) is wanted");
  if (!in.Same(in.shape(0)[0], in.shape(1)[0]) || !in.Same(in.shape(0)[1], in.shape(1)[2])) {
    in.Fail("R2", in.Show(1) + ", where (batch, classes, boxes) is wanted for " + in.Show(0));
  }
  for (int i = 2; i < 5; ++i) {
    in.Number(i, "R3");
    int64_t n = ProductOf(Dims(in.shape(i)));
    if (n >= 0 && n != 1) in.Fail("R3", in.Show(i) + ", where one element is wanted");
  }
  if (a.output_format != "onnx")
    in.Fail("R4", "output_format is \"" + a.output_format.str() + "\"; \"onnx\" is supported");
  return TensorType(Shape{UnknownDim(), PrimExpr(3)}, DataType::Int(64));
}

}  // namespace

const Op op::roi_align = DefineOp({
    .name = "vision.roi_align",
    .doc = "The contents of boxes, sampled bilinearly on a grid and pooled.",
    .inputs = {{"data", "(N, C, H, W) or (N, H, W, C). R1: floating dtype."},
               {"rois", "(number, 5): (batch, x1, y1, x2, y2). R1: dtype of data. R2: its shape."}},
    .output = "(number, C, pooled_size), channels where data has them. R3: known layout and mode.",
    .attrs = TypeOf<ROIAlignAttrs>,
    .type_rel = Rel<"vision.roi_align", RoiAlignType>,
    .host = host::RoiAlign,
    .gradient = NoGradient(gradient::kNoRuleYet),
    .source = "ONNX RoiAlign-16",
});
const Op op::roi_pool = DefineOp({
    .name = "vision.roi_pool",
    .doc = "The largest elements of equal parts of boxes.",
    .inputs = {{"data", "(N, C, H, W). R1: floating dtype."},
               {"rois", "(number, 5): (batch, x1, y1, x2, y2). R1: dtype of data. R2: its shape."}},
    .output = "(number, C, pooled_size). R3: known layout.",
    .attrs = TypeOf<ROIPoolAttrs>,
    .type_rel = Rel<"vision.roi_pool", &RoiType<ROIPoolAttrs>>,
    .host = host::RoiPool,
    .gradient = NoGradient(gradient::kNoRuleYet),
    .source = "ONNX MaxRoiPool-22",
});
const Op op::all_class_nms = DefineOp({
    .name = "vision.all_class_non_max_suppression",
    .doc = "Boxes of each class by falling score, without those that overlap a better one by more than a share.",
    .inputs = {{"boxes", "(batch, boxes, 4). R1: floating dtype."},
               {"scores", "(batch, classes, boxes). R1: floating dtype. R2: fits boxes."},
               {"max_output_boxes_per_class", "R3: one number."},
               {"iou_threshold", "R3: one number; intersection / union above which a box goes."},
               {"score_threshold", "R3: one number; boxes with no higher score go."}},
    .output = "(number, 3) int64: (batch, class, box). R4: output_format \"onnx\".",
    .attrs = TypeOf<AllClassNMSAttrs>,
    .type_rel = Rel<"vision.all_class_non_max_suppression", AllClassNMSType>,
    .host = host::AllClassNonMaxSuppression,
    .gradient = NoGradient(gradient::kComparesBoxes),
    .source = "ONNX NonMaxSuppression-11",
});

}  // namespace baton::relay
