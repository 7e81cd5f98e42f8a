// SPDX-License-Identifier: Apache-2.0
// Boxes of single-shot detectors: anchor boxes on a grid, and their correction by predictions.
#include <baton/relay/op/image.h>

#include <algorithm>
#include <cmath>

#include "../gradient.h"
#include "../host.h"

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
NDArrays HostMultiBoxPrior(const Attrs& attrs, const NDArrays& in) {
  const auto& a = AttrsAs<MultiBoxPriorAttrs>(attrs);
  int64_t h = in[0].shape()[2], w = in[0].shape()[3];
  double step_y = a.steps[0] > 0 ? a.steps[0] : 1.0 / static_cast<double>(h);
  double step_x = a.steps[1] > 0 ? a.steps[1] : 1.0 / static_cast<double>(w);
  // Half extents (x, y) of each kind of box.
  std::vector<std::pair<double, double>> halves;
  double aspect = static_cast<double>(h) / static_cast<double>(std::max<int64_t>(w, 1));
  for (double size : a.sizes) halves.emplace_back(size * aspect / 2, size / 2);
  for (size_t k = 1; k < a.ratios.size(); ++k) {
    double root = std::sqrt(a.ratios[k]);
    halves.emplace_back(a.sizes[0] * aspect * root / 2, a.sizes[0] / root / 2);
  }
  int64_t each = static_cast<int64_t>(halves.size());
  NDArray out = NDArray::Empty({1, h * w * each, 4}, in[0].dtype());
  int64_t at = 0;
  for (int64_t y = 0; y < h; ++y) {
    for (int64_t x = 0; x < w; ++x) {
      double cy = (static_cast<double>(y) + a.offsets[0]) * step_y,
             cx = (static_cast<double>(x) + a.offsets[1]) * step_x;
      for (auto [half_x, half_y] : halves) {
        for (double v : {cx - half_x, cy - half_y, cx + half_x, cy + half_y})
          out.SetDouble(at++, a.clip ? std::clamp(v, 0.0, 1.0) : v);
      }
    }
  }
  return {out};
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
NDArrays HostMultiBoxTransformLoc(const Attrs& attrs, const NDArrays& in) {
  const auto& a = AttrsAs<MultiBoxTransformLocAttrs>(attrs);
  const NDArray &prob = in[0], &loc = in[1], &anchor = in[2];
  int64_t batch = prob.shape()[0], classes = prob.shape()[1], n = prob.shape()[2];
  NDArray out = NDArray::Empty({batch, n, 6}, prob.dtype()), counts = NDArray::Empty({batch}, DataType::Int(32));
  for (int64_t i = 0, all = out.numel(); i < all; ++i) out.SetDouble(i, -1);
  for (int64_t b = 0; b < batch; ++b) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; ++i) {
      // Class 0 is the background.
      int64_t best = 0;
      double score = -1;
      for (int64_t c = 1; c < classes; ++c) {
        double p = prob.GetDouble((b * classes + c) * n + i);
        if (p > score) score = p, best = c;
      }
      if (best == 0 || score < a.threshold) continue;
      double box[4], move[4];
      for (int k = 0; k < 4; ++k) {
        box[k] = anchor.GetDouble(i * 4 + k);
        move[k] = loc.GetDouble((b * n + i) * 4 + k) * a.variances[k];
      }
      double w = box[2] - box[0], h = box[3] - box[1], cx = (box[0] + box[2]) / 2, cy = (box[1] + box[3]) / 2;
      cx += move[0] * w, cy += move[1] * h;
      double half_w = std::exp(move[2]) * w / 2, half_h = std::exp(move[3]) * h / 2;
      int64_t at = (b * n + found) * 6;
      out.SetDouble(at, static_cast<double>(best - 1));
      out.SetDouble(at + 1, score);
      int64_t k = 2;
      for (double v : {cx - half_w, cy - half_h, cx + half_w, cy + half_h})
        out.SetDouble(at + k++, a.clip ? std::clamp(v, 0.0, 1.0) : v);
      ++found;
    }
    counts.SetInt(b, found);
  }
  return {out, counts};
}

}  // namespace

const Op op::multibox_prior = DefineOp({
    .name = "vision.multibox_prior",
    .doc = "Boxes around each place of an image, as (x1, y1, x2, y2) in shares of it.",
    .inputs = {{"data", "Its height and width count alone. R1: floating dtype. R2: rank 4."}},
    .output = "(1, height * width * (sizes + ratios - 1), 4). R3: a size and a ratio or more, two steps and offsets.",
    .attrs = TypeOf<MultiBoxPriorAttrs>,
    .type_rel = Rel<"vision.multibox_prior", MultiBoxPriorType>,
    .host = HostMultiBoxPrior,
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
    .host = HostMultiBoxTransformLoc,
    .gradient = NoGradient(gradient::kComparesBoxes),
    .source = "Relay",
});

}  // namespace baton::relay
