// SPDX-License-Identifier: Apache-2.0
// Boxes of single-shot detectors: anchor boxes on a grid, and their correction by predictions.
#include <baton/relay/op/image.h>
#include <host/functions.h>

#include "../common.h"
#include "../gradient.h"

namespace baton::relay {
namespace {

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

// ---- multibox_prior
void CheckPrior(const MultiBoxPriorAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.Rank(0, 4, "R2");
  if (a.sizes.empty() || a.ratios.empty() || a.steps.size() != 2 || a.offsets.size() != 2)
    in.Fail("R3", "there are " + Str(a.sizes.size()) + " sizes, " + Str(a.ratios.size()) + " ratios, " +
                      Str(a.steps.size()) + " steps and " + Str(a.offsets.size()) +
                      " offsets, where 1, 1, 2 and 2 are wanted");
}
Type MultiBoxPriorType(const MultiBoxPriorAttrs& a, const TypeArgs& in) {
  CheckPrior(a, in);
  int64_t each = static_cast<int64_t>(a.sizes.size() + a.ratios.size()) - 1;
  int64_t n = ProductOf({in.dim(0, 2), in.dim(0, 3), each});
  return TensorType(Shape{PrimExpr(1), MakeDim(n), PrimExpr(4)}, in.dtype(0));
}

// ---- multibox_transform_loc
Type MultiBoxTransformLocType(const MultiBoxTransformLocAttrs& a, const TypeArgs& in) {
  for (int i = 0; i < 3; ++i) in.Floating(i, "R1");
  in.SameDtype(0, 1, "R1");
  in.SameDtype(0, 2, "R1");
  in.Rank(0, 3, "R2");
  in.Rank(1, 2, "R2");
  in.Rank(2, 3, "R2");
  int64_t n = in.dim(0, 2), numbers = in.dim(1, 1), anchors = in.dim(2, 1);
  bool fits = in.Same(in.shape(0)[0], in.shape(1)[0]) &&
              (n < 0 || numbers < 0 || (numbers % 4 == 0 && numbers / 4 == n)) &&
              (n < 0 || anchors < 0 || n == anchors) && (in.dim(2, 2) < 0 || in.dim(2, 2) == 4) &&
              (in.dim(2, 0) < 0 || in.dim(2, 0) == 1);
  if (!fits)
    in.Fail("R2", in.Show(0) + ", " + in.Show(1) + " and " + in.Show(2) +
                      ", where (batch, classes, boxes), (batch, boxes * 4) and (1, boxes, 4) are wanted");
  if (a.variances.size() != 4) in.Fail("R3", "there are " + Str(a.variances.size()) + " variances, where 4 are wanted");
  return TupleType(Array<Type>{TensorType(Shape{in.shape(0)[0], in.shape(0)[2], PrimExpr(6)}, in.dtype(0)),
                               TensorType(Shape{in.shape(0)[0]}, DataType::Int(32))});
}

}  // namespace

const Op op::multibox_prior = DefineOp({
    .name = "vision.multibox_prior",
    .doc = "Boxes around each place of an image, as (x1, y1, x2, y2) in shares of it.",
    .inputs = {{"data", "Its height and width count alone. R1: floating dtype. R2: rank 4."}},
    .output = "(1, height * width * (sizes + ratios - 1), 4). R3: a size and a ratio or more, two steps and offsets.",
    .attrs = TypeOf<MultiBoxPriorAttrs>,
    .type_rel = Rel<"vision.multibox_prior", MultiBoxPriorType>,
    .host = host::MultiBoxPrior,
    .gradient = NoGradient(gradient::kComparesBoxes),
    .source = "Relay",
});
const Op op::multibox_transform_loc = DefineOp({
    .name = "vision.multibox_transform_loc",
    .doc = "Boxes of the best class, moved and scaled as predicted.",
    .inputs = {{"cls_prob", "(batch, classes, boxes); class 0 is the background. R1: floating dtype. R2: its shape."},
               {"loc_pred",
                "(batch, boxes * 4): moves of centre x, y and logarithms of factors of width, height. R1: "
                "dtype of cls_prob. R2: its shape."},
               {"anchor", "(1, boxes, 4). R1: dtype of cls_prob. R2: its shape."}},
    .output =
        "A tuple: (batch, boxes, 6) of (class - 1, score, x1, y1, x2, y2), -1 behind the last; how many, int32. R3: "
        "4 variances.",
    .attrs = TypeOf<MultiBoxTransformLocAttrs>,
    .type_rel = Rel<"vision.multibox_transform_loc", MultiBoxTransformLocType>,
    .host = host::MultiBoxTransformLoc,
    .gradient = NoGradient(gradient::kComparesBoxes),
    .source = "Relay",
});

}  // namespace baton::relay
