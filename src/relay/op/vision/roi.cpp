// SPDX-License-Identifier: Apache-2.0
// Boxes: pooling their contents, and keeping the best of those that overlap. On the host: the extents of a box are
// known only at run time.
#include <baton/relay/op/image.h>
#include <baton/runtime/threading.h>

#include <algorithm>
#include <cmath>

#include "../gradient.h"
#include "../host.h"

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

template <class A>
Type RoiType(const A& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.SameDtype(0, 1, "R1");
  in.Rank(0, 4, "R2");
  in.Rank(1, 2, "R2");
  if (in.dim(1, 1) >= 0 && in.dim(1, 1) != 5)
    in.Fail("R2", in.Show(1) + ", where (number, 5) is wanted: (batch, x1, y1, x2, y2)");
  if (a.pooled_size.size() != 2)
    in.Fail("R3", "pooled_size has " + Str(a.pooled_size.size()) + " numbers, where (height, width) is wanted");
  if (a.layout != "NCHW") in.Fail("R3", "layout is \"" + a.layout.str() + "\"; it is \"NCHW\"");
  return TensorType(Shape{in.shape(1)[0], in.shape(0)[1], PrimExpr(a.pooled_size[0]), PrimExpr(a.pooled_size[1])},
                    in.dtype(0));
}
Type RoiAlignType(const ROIAlignAttrs& a, const TypeArgs& in) {
  if (a.mode != "avg" && a.mode != "max") in.Fail("R3", "mode is \"" + a.mode.str() + "\"; it is \"avg\" or \"max\"");
  return RoiType(a, in);
}
struct Image {
  int64_t n, c, h, w;
  std::vector<double> data;
  explicit Image(const NDArray& x)
      : n(x.shape()[0]), c(x.shape()[1]), h(x.shape()[2]), w(x.shape()[3]), data(ToDoubles(x)) {}
  const double* Plane(int64_t b, int64_t ch) const { return data.data() + (b * c + ch) * h * w; }
};
int64_t BatchOf(double b, int64_t images, const char* op) {
  if (!(b >= 0 && b < static_cast<double>(images)))
    throw RuntimeError(std::string(op) + ": a box is of image " + std::to_string(b) + " and there are " + Str(images));
  return static_cast<int64_t>(b);
}
/// Up to four elements around a place, with their weights.
struct Corners {
  int64_t at[4];
  double weight[4];
};
Corners CornersAt(double y, double x, int64_t h, int64_t w) {
  Corners c{};
  if (!(y >= -1 && y <= static_cast<double>(h) && x >= -1 && x <= static_cast<double>(w))) return c;  // NaN too
  y = std::max(y, 0.0), x = std::max(x, 0.0);
  int64_t y0 = static_cast<int64_t>(y), x0 = static_cast<int64_t>(x), y1 = y0 + 1, x1 = x0 + 1;
  if (y0 >= h - 1) y0 = y1 = h - 1, y = static_cast<double>(y0);
  if (x0 >= w - 1) x0 = x1 = w - 1, x = static_cast<double>(x0);
  double fy = y - static_cast<double>(y0), fx = x - static_cast<double>(x0);
  c.at[0] = y0 * w + x0, c.at[1] = y0 * w + x1, c.at[2] = y1 * w + x0, c.at[3] = y1 * w + x1;
  c.weight[0] = (1 - fy) * (1 - fx), c.weight[1] = (1 - fy) * fx, c.weight[2] = fy * (1 - fx), c.weight[3] = fy * fx;
  return c;
}
/// How a box is sampled: each bin by as many places.
struct RoiSamples {
  std::vector<Corners> at;
  int64_t per_bin = 0;
};
RoiSamples SamplesOf(const ROIAlignAttrs& a, const double* roi, int64_t height, int64_t width) {
  const int64_t ph = a.pooled_size[0], pw = a.pooled_size[1];
  const double offset = a.aligned ? 0.5 : 0;
  double x1 = roi[1] * a.spatial_scale - offset, y1 = roi[2] * a.spatial_scale - offset;
  double w = roi[3] * a.spatial_scale - offset - x1, h = roi[4] * a.spatial_scale - offset - y1;
  if (!a.aligned) w = std::max(w, 1.0), h = std::max(h, 1.0);
  double bin_h = h / static_cast<double>(ph), bin_w = w / static_cast<double>(pw);
  auto grid = [&](double bin) {
    double n = a.sample_ratio > 0 ? static_cast<double>(a.sample_ratio) : std::ceil(bin);
    if (!(n < 1e6)) throw RuntimeError("vision.roi_align: a box is too large to sample");
    return static_cast<int64_t>(std::max(n, 0.0));
  };
  int64_t gh = grid(bin_h), gw = grid(bin_w);
  RoiSamples out;
  out.per_bin = gh * gw;
  for (int64_t p = 0; p < ph * pw; ++p) {
    double top = y1 + static_cast<double>(p / pw) * bin_h, left = x1 + static_cast<double>(p % pw) * bin_w;
    for (int64_t iy = 0; iy < gh; ++iy) {
      for (int64_t ix = 0; ix < gw; ++ix) {
        out.at.push_back(CornersAt(top + (static_cast<double>(iy) + 0.5) * bin_h / static_cast<double>(gh),
                                   left + (static_cast<double>(ix) + 0.5) * bin_w / static_cast<double>(gw), height,
                                   width));
      }
    }
  }
  return out;
}
/// One bin of one channel.
template <class T>
double SampleBin(const Corners* samples, int64_t n, const T* plane, bool mean) {
  double v = 0;
  if (mean) {
    for (int64_t s = 0; s < n; ++s) {
      for (int k = 0; k < 4; ++k) v += samples[s].weight[k] * static_cast<double>(plane[samples[s].at[k]]);
    }
    return v / static_cast<double>(std::max<int64_t>(n, 1));
  }
  // ONNX takes the largest weighted corner, not the largest interpolated value.
  bool first = true;
  for (int64_t s = 0; s < n; ++s) {
    for (int k = 0; k < 4; ++k) {
      double u = samples[s].weight[k] * static_cast<double>(plane[samples[s].at[k]]);
      v = first ? u : std::max(v, u);
      first = false;
    }
  }
  return v;
}
NDArrays HostRoiAlign(const Attrs& attrs, const NDArrays& in) {
  const auto& a = AttrsAs<ROIAlignAttrs>(attrs);
  const NDArray x = in[0].Contiguous();
  const Ints shape = x.shape();
  const int64_t images = shape[0], channels = shape[1], h = shape[2], w = shape[3];
  const std::vector<double> rois = ToDoubles(in[1].Contiguous());
  const int64_t count = in[1].shape()[0], bins = a.pooled_size[0] * a.pooled_size[1];
  NDArray out = NDArray::Empty({count, channels, a.pooled_size[0], a.pooled_size[1]}, x.dtype());
  auto run = [&]<class T>(const T* data, auto put) {
    runtime::threading::ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const double* roi = rois.data() + r * 5;
        const int64_t b = BatchOf(roi[0], images, "vision.roi_align");
        const RoiSamples samples = SamplesOf(a, roi, h, w);
        for (int64_t e = 0; e < channels * bins; ++e) {
          const Corners* of_bin = samples.at.data() + e % bins * samples.per_bin;
          const int64_t n = h > 0 && w > 0 ? samples.per_bin : 0;
          put(r * channels * bins + e, SampleBin(of_bin, n, data + (b * channels + e / bins) * h * w, a.mode == "avg"));
        }
      }
    });
  };
  if (x.dtype() == DataType::Float(32)) {
    float* to = out.ptr<float>();
    run(static_cast<const float*>(x.ptr<float>()), [to](int64_t i, double v) { to[i] = static_cast<float>(v); });
  } else {
    const std::vector<double> all = ToDoubles(x);
    run(all.data(), [&out](int64_t i, double v) { out.SetDouble(i, v); });
  }
  return {out};
}

NDArrays HostRoiPool(const Attrs& attrs, const NDArrays& in) {
  const auto& a = AttrsAs<ROIPoolAttrs>(attrs);
  Image x(in[0].Contiguous());
  std::vector<double> rois = ToDoubles(in[1].Contiguous());
  int64_t count = in[1].shape()[0], ph = a.pooled_size[0], pw = a.pooled_size[1];
  NDArray out = NDArray::Empty({count, x.c, ph, pw}, in[0].dtype());
  for (int64_t r = 0; r < count; ++r) {
    const double* roi = rois.data() + r * 5;
    int64_t b = BatchOf(roi[0], x.n, "vision.roi_pool");
    auto rounded = [&](double v) {
      v = std::round(v * a.spatial_scale);
      if (!(std::fabs(v) < 1e9)) throw RuntimeError("vision.roi_pool: a box has the coordinate " + std::to_string(v));
      return static_cast<int64_t>(v);
    };
    int64_t x1 = rounded(roi[1]), y1 = rounded(roi[2]), x2 = rounded(roi[3]), y2 = rounded(roi[4]);
    double bin_h = static_cast<double>(std::max<int64_t>(y2 - y1 + 1, 1)) / static_cast<double>(ph);
    double bin_w = static_cast<double>(std::max<int64_t>(x2 - x1 + 1, 1)) / static_cast<double>(pw);
    auto clip = [](double v, int64_t from, int64_t n) {
      return std::clamp<int64_t>(static_cast<int64_t>(v) + from, 0, n);
    };
    for (int64_t p = 0; p < ph * pw; ++p) {
      double py = static_cast<double>(p / pw), px = static_cast<double>(p % pw);
      int64_t h0 = clip(std::floor(py * bin_h), y1, x.h), h1 = clip(std::ceil((py + 1) * bin_h), y1, x.h);
      int64_t w0 = clip(std::floor(px * bin_w), x1, x.w), w1 = clip(std::ceil((px + 1) * bin_w), x1, x.w);
      for (int64_t ch = 0; ch < x.c; ++ch) {
        const double* plane = x.Plane(b, ch);
        bool empty = h1 <= h0 || w1 <= w0;
        double v = empty ? 0 : -INFINITY;
        for (int64_t h = h0; h < h1; ++h) {
          for (int64_t w = w0; w < w1; ++w) v = std::max(v, plane[h * x.w + w]);
        }
        out.SetDouble((r * x.c + ch) * ph * pw + p, v);
      }
    }
  }
  return {out};
}

// ---- non-max suppression
Type AllClassNMSType(const AllClassNMSAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.Floating(1, "R1");
  in.Rank(0, 3, "R2");
  in.Rank(1, 3, "R2");
  if (in.dim(0, 2) >= 0 && in.dim(0, 2) != 4) in.Fail("R2", in.Show(0) + ", where (batch, boxes, 4) is wanted");
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
struct Box {
  double y1, x1, y2, x2;
  double Area() const { return (y2 - y1) * (x2 - x1); }
};
Box BoxOf(const double* p, bool center) {
  if (center) return {p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2};
  return {std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]), std::max(p[1], p[3])};
}
bool Overlap(const Box& a, const Box& b, double threshold) {
  double h = std::min(a.y2, b.y2) - std::max(a.y1, b.y1), w = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (h <= 0 || w <= 0) return false;
  double common = h * w, all = a.Area() + b.Area() - common;
  return a.Area() > 0 && b.Area() > 0 && all > 0 && common / all > threshold;
}
NDArrays HostAllClassNMS(const Attrs& attrs, const NDArrays& in) {
  const auto& a = AttrsAs<AllClassNMSAttrs>(attrs);
  std::vector<double> boxes = ToDoubles(in[0].Contiguous()), scores = ToDoubles(in[1].Contiguous());
  for (int i = 2; i < 5; ++i) {
    if (in[i].numel() != 1) throw RuntimeError("vision.all_class_non_max_suppression: a limit is no single number");
  }
  int64_t batch = in[1].shape()[0], classes = in[1].shape()[1], n = in[1].shape()[2],
          most = in[2].Contiguous().GetInt(0);
  double iou = in[3].Contiguous().GetDouble(0), least = in[4].Contiguous().GetDouble(0);
  std::vector<int64_t> out, order, kept;
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<Box> box;
    for (int64_t k = 0; k < n; ++k) box.push_back(BoxOf(boxes.data() + (b * n + k) * 4, a.center_point_box));
    for (int64_t c = 0; c < classes; ++c) {
      const double* score = scores.data() + (b * classes + c) * n;
      order.clear(), kept.clear();
      for (int64_t k = 0; k < n; ++k) {
        if (score[k] > least) order.push_back(k);
      }
      std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) { return score[p] > score[q]; });
      for (int64_t k : order) {
        if (static_cast<int64_t>(kept.size()) >= most) break;
        bool free = true;
        for (int64_t m : kept) free = free && !Overlap(box[k], box[m], iou);
        if (!free) continue;
        kept.push_back(k);
        out.insert(out.end(), {b, c, k});
      }
    }
  }
  return {NDArray::FromBytes(out.data(), {static_cast<int64_t>(out.size() / 3), 3}, DataType::Int(64))};
}

}  // namespace

const Op op::roi_align = DefineOp({
    .name = "vision.roi_align",
    .doc = "The contents of boxes, sampled bilinearly on a grid and pooled.",
    .inputs = {{"data", "(N, C, H, W). R1: floating dtype."},
               {"rois", "(number, 5): (batch, x1, y1, x2, y2). R1: dtype of data. R2: its shape."}},
    .output = "(number, C, pooled_size). R3: known layout and mode.",
    .attrs = TypeOf<ROIAlignAttrs>,
    .type_rel = Rel<"vision.roi_align", RoiAlignType>,
    .host = HostRoiAlign,
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
    .host = HostRoiPool,
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
    .host = HostAllClassNMS,
    .gradient = NoGradient(gradient::kComparesBoxes),
    .source = "ONNX NonMaxSuppression-11",
});

}  // namespace baton::relay
