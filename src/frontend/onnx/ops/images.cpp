// SPDX-License-Identifier: Apache-2.0
// Resizing, sampling, and boxes.
#include <algorithm>
#include <cmath>

#include "common.h"

namespace baton::onnx {
namespace {

std::vector<double> KnownFloats(Ctx& c, const Value& v) {
  if (!c.Known(v)) throw NeedsValue{"the value of an operand"};
  if (v.rank() > 1) c.Fail("an operand that should be a list of numbers is not");
  std::vector<double> out;
  c.Reserve(v.host->size(), 8);
  for (int64_t i = 0; i < v.host->size(); ++i) out.push_back(v.host->FloatAt(i));
  return out;
}

/// A length computed in floating point.
int64_t Length(Ctx& c, double v) {
  if (!(v >= 0 && v <= 1e9)) c.Fail("a result would have the length " + std::to_string(v));
  return static_cast<int64_t>(v);
}

Array<double> Doubles(const std::vector<double>& v) { return Array<double>(v); }

/// `sizes` and `scales` hold a number for each of `axes`; an empty `scales` follows from the sizes.
Value ResizeTo(Ctx& c, const Value& x, const Dims& axes, const Dims& sizes, const std::vector<double>& scales,
               const std::vector<double>& roi, const std::vector<std::pair<const char*, Any>>& more) {
  Dims moved, size;
  std::vector<double> scale, begins, ends;
  bool all_same = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t n = c.Length(x, static_cast<int>(axes[i]));
    bool same = sizes[i] == n && (scales.empty() || scales[i] == 1.0) && roi.empty();
    all_same = all_same && same;
    if (same) continue;
    moved.push_back(axes[i]);
    size.push_back(sizes[i]);
    if (!scales.empty()) scale.push_back(scales[i]);
    if (!roi.empty()) {
      begins.push_back(roi[i]);
      ends.push_back(roi[i + axes.size()]);
    }
  }
  if (all_same) return x;
  begins.insert(begins.end(), ends.begin(), ends.end());
  std::vector<std::pair<const char*, Any>> attrs = more;
  attrs.emplace_back("axes", IntsAny(moved));
  attrs.emplace_back("size", IntsAny(size));
  attrs.emplace_back("scales", Doubles(scale));
  attrs.emplace_back("roi", Doubles(begins));
  return c.CallWith("image.resize", {x}, attrs);
}

const char* Method(Ctx& c, const std::string& mode) {
  if (mode == "nearest") return "nearest_neighbor";
  if (mode == "linear" || mode == "bilinear") return "linear";
  if (mode == "cubic" || mode == "bicubic") return "cubic";
  c.Fail("`mode` is `" + mode + "`");
}

/// floor(n * scale); `n` may be a symbol, where the scale is a quotient of whole numbers.
int64_t Scaled(Ctx& c, int64_t n, double scale) {
  if (!Ctx::IsSymbol(n)) return Length(c, std::floor(static_cast<double>(n) * scale));
  constexpr int64_t kMostParts = 1 << 10;
  int64_t q = 1;
  auto whole = [&] { return scale * static_cast<double>(q); };
  while (q < kMostParts && whole() != std::floor(whole())) q *= 2;
  if (whole() != std::floor(whole()) || whole() > 1e6) throw NeedsValue{"a length"};
  return c.Over(c.Times(n, static_cast<int64_t>(whole())), q);
}

Dims SizesOf(Ctx& c, const Value& x, const Dims& axes, const std::vector<double>& scales) {
  if (scales.size() != axes.size()) c.Fail("`scales` needs a number for each axis");
  Dims sizes;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!(scales[i] > 0)) c.Fail("`scales` holds a number that is not positive");
    sizes.push_back(Scaled(c, c.Length(x, static_cast<int>(axes[i])), scales[i]));
  }
  return sizes;
}

Values Upsample(Ctx& c) {
  Value x = c.T(0);
  std::vector<double> scales;
  if (c.since() >= 9) {
    scales = KnownFloats(c, c.T(1));
  } else if (c.since() >= 7) {
    for (float f : c.Floats("scales")) scales.push_back(f);
  } else {
    scales = {1, 1, c.Float("height_scale", 1), c.Float("width_scale", 1)};
  }
  std::string mode = c.Str("mode", "nearest");
  Dims axes = Iota(c.Rank(x));
  return {ResizeTo(c, x, axes, SizesOf(c, x, axes, scales), scales, {},
                   {{"method", Method(c, mode)},
                    {"coordinate_transformation_mode", "asymmetric"},
                    {"rounding_method", mode == "nearest" ? "floor" : ""}})};
}

Values Resize(Ctx& c) {
  Value x = c.T(0);
  std::string mode = c.Str("mode", "nearest");
  bool first = c.since() < 11;
  std::string transform = c.Str("coordinate_transformation_mode", first ? "asymmetric" : "half_pixel");
  std::string nearest = c.Str("nearest_mode", first ? "floor" : "round_prefer_floor");
  std::string policy = c.Str("keep_aspect_ratio_policy", "stretch");
  double cubic = c.Float("cubic_coeff_a", -0.75), outside = c.Float("extrapolation_value", 0);
  int64_t exclude = c.Int("exclude_outside", 0);
  bool antialias = c.Int("antialias", 0) != 0;
  int rank = c.Rank(x);
  Dims axes = c.HasAttr("axes") ? c.Ints("axes") : Iota(rank);
  for (int64_t& a : axes) {
    a = c.Axis(a, rank);
    if (antialias) c.Dim(x, static_cast<int>(a));  // how many elements count follows from it
  }
  std::vector<double> roi, scales;
  Dims sizes;
  size_t scales_at = first ? 1 : 2;
  if (transform == "tf_crop_and_resize") {
    roi = KnownFloats(c, c.T(1));
    if (roi.size() != 2 * axes.size()) c.Fail("`roi` needs two numbers for each axis");
  }
  if (c.Has(scales_at) && !(c.Known(c.T(scales_at)) && c.T(scales_at).host->size() == 0)) {
    scales = KnownFloats(c, c.T(scales_at));
    if (roi.empty()) {
      sizes = SizesOf(c, x, axes, scales);
    } else {
      if (scales.size() != axes.size()) c.Fail("`scales` needs a number for each axis");
      for (size_t i = 0; i < axes.size(); ++i) {
        double n = static_cast<double>(c.Dim(x, static_cast<int>(axes[i])));
        sizes.push_back(Length(c, std::floor(n * (roi[i + axes.size()] - roi[i]) * scales[i])));
      }
    }
  } else {
    sizes = c.KnownLengths(c.T(3));
    if (sizes.size() != axes.size()) c.Fail("`sizes` needs a number for each axis");
    if (policy != "stretch") {
      if (policy != "not_larger" && policy != "not_smaller") c.Fail("`keep_aspect_ratio_policy` is `" + policy + "`");
      double scale = 0;
      for (size_t i = 0; i < axes.size(); ++i) {
        if (Ctx::IsSymbol(sizes[i])) throw NeedsValue{"a length"};
        double s = static_cast<double>(sizes[i]) / static_cast<double>(c.Dim(x, static_cast<int>(axes[i])));
        scale = i == 0 ? s : policy == "not_larger" ? std::min(scale, s) : std::max(scale, s);
      }
      for (size_t i = 0; i < axes.size(); ++i) {
        double n = static_cast<double>(c.Dim(x, static_cast<int>(axes[i]))) * scale;
        sizes[i] = Length(c, std::floor(n + 0.5));
        scales.push_back(scale);
      }
    }
  }
  return {ResizeTo(c, x, axes, sizes, scales, roi,
                   {{"method", Method(c, mode)},
                    {"coordinate_transformation_mode", transform},
                    {"rounding_method", mode == "nearest" ? nearest : ""},
                    {"cubic_alpha", cubic},
                    {"cubic_exclude", exclude},
                    {"extrapolation_value", outside},
                    {"antialias", antialias}})};
}

Values GridSample(Ctx& c) {
  Value x = c.T(0), grid = c.T(1);
  std::string mode = c.Str("mode", c.since() < 20 ? "bilinear" : "linear"), padding = c.Str("padding_mode", "zeros");
  bool corners = c.Int("align_corners", 0) != 0;
  std::string method = mode == "linear" ? "bilinear" : mode == "cubic" ? "bicubic" : mode;
  if (method != "bilinear" && method != "nearest" && method != "bicubic") c.Fail("`mode` is `" + mode + "`");
  if (c.Rank(x) != 4 && c.Rank(x) != 5) c.Unsupported("data of rank " + std::to_string(c.Rank(x)));
  return {c.Call("image.grid_sample", {x, grid},
                 {{"method", method},
                  {"layout", c.Rank(x) == 4 ? "NCHW" : "NCDHW"},
                  {"padding_mode", padding},
                  {"align_corners", corners},
                  {"grid_last", true}})};
}

Values AffineGrid(Ctx& c) {
  Dims size = c.KnownInts(c.T(1));
  bool corners = c.Int("align_corners", 0) != 0;
  if (size.size() != 4 && size.size() != 5) c.Fail("`size` needs 4 or 5 numbers");
  Value grid = c.Call("image.affine_grid", {c.T(0)},
                      {{"target_shape", IntsAny(Dims(size.begin() + 2, size.end()))}, {"align_corners", corners}});
  // Relay has the coordinates in axis 1, ONNX at the end.
  return {c.Transpose(grid, size.size() == 4 ? Dims{0, 2, 3, 1} : Dims{0, 2, 3, 4, 1})};
}

Values AffineGridTypes(Ctx& c) { return {c.Unknown(c.T(0).dtype, Dims(static_cast<size_t>(CountOf(c, 1)), -1))}; }

Values RoiAlign(Ctx& c) {
  Value x = c.T(0), rois = c.T(1), batch = c.T(2);
  std::string mode = c.Str("mode", "avg");
  std::string transform = c.Str("coordinate_transformation_mode", c.since() < 16 ? "output_half_pixel" : "half_pixel");
  int64_t height = c.Int("output_height", 1), width = c.Int("output_width", 1), ratio = c.Int("sampling_ratio", 0);
  double scale = c.Float("spatial_scale", 1.0);
  if (transform != "half_pixel" && transform != "output_half_pixel")
    c.Fail("`coordinate_transformation_mode` is `" + transform + "`");
  if (mode != "avg" && mode != "max") c.Fail("`mode` is `" + mode + "`");
  Value boxes = c.Concat({c.Unsqueeze(c.Cast(batch, rois.dtype), {1}), rois}, 1);
  return {c.Call("vision.roi_align", {x, boxes},
                 {{"pooled_size", IntsAny({height, width})},
                  {"spatial_scale", scale},
                  {"sample_ratio", ratio},
                  {"layout", "NCHW"},
                  {"mode", mode},
                  {"aligned", transform == "half_pixel"}})};
}

Values MaxRoiPool(Ctx& c) {
  Dims pooled = c.Ints("pooled_shape");
  double scale = c.Float("spatial_scale", 1.0);
  return {c.Call("vision.roi_pool", {c.T(0), c.T(1)},
                 {{"pooled_size", IntsAny(pooled)}, {"spatial_scale", scale}, {"layout", "NCHW"}})};
}

Values NonMaxSuppression(Ctx& c) {
  Value boxes = c.T(0), scores = c.T(1);
  bool center = c.Int("center_point_box", 0) != 0;
  auto scalar = [&](size_t i, DataType t, double default_value) {
    if (!c.Has(i)) return c.Scalar(t, default_value);
    return c.Reshape(c.Cast(c.T(i), t), {});
  };
  constexpr double kAll = -3.4e38;  // no threshold: every score is above it
  Value most = scalar(2, DataType::Int(64), 0), iou = scalar(3, DataType::Float(32), 0),
        least = scalar(4, DataType::Float(32), kAll);
  return {c.Call("vision.all_class_non_max_suppression", {boxes, scores, most, iou, least},
                 {{"center_point_box", center}, {"output_format", "onnx"}})};
}

Values DeformConv(Ctx& c) {
  Value x = c.T(0), w = c.T(1), offset = c.T(2);
  if (c.Rank(x) != 4) c.Unsupported("data of rank " + std::to_string(c.Rank(x)));
  const Dims weight = c.Fixed(w);
  if (weight.size() != 4) c.Fail("`W` has another rank than the data");
  Dims strides = c.Ints("strides"), pads = c.Ints("pads"), dilations = c.Ints("dilations"),
       kernel = c.Ints("kernel_shape");
  if (strides.empty()) strides = {1, 1};
  if (dilations.empty()) dilations = {1, 1};
  if (pads.empty()) pads = {0, 0, 0, 0};
  if (kernel.empty()) kernel = {weight[2], weight[3]};
  int64_t groups = c.Int("group", 1), offset_groups = c.Int("offset_group", 1);
  Values args = {x, offset, w};
  if (c.Has(4)) args.push_back(c.T(4));
  Value y = c.Call("nn.deformable_conv2d", args,
                   {{"strides", IntsAny(strides)},
                    {"padding", IntsAny(pads)},
                    {"dilation", IntsAny(dilations)},
                    {"groups", groups},
                    {"deformable_groups", offset_groups},
                    {"channels", weight[0]},
                    {"kernel_size", IntsAny(kernel)},
                    {"data_layout", "NCHW"},
                    {"kernel_layout", "OIHW"}});
  if (c.Has(3)) y = c.Call("nn.bias_add", {y, c.T(3)}, {{"axis", 1}});
  return {y};
}

Values DepthToSpace(Ctx& c) {
  Value x = c.T(0);
  const Dims s = c.Lengths(x);
  int64_t b = c.Int("blocksize");
  std::string mode = c.Str("mode", "DCR");
  if (s.size() != 4 || b < 1 || c.Dim(x, 1) % (Checked(b) * b) != 0)
    c.Fail("the channels cannot be cut into blocks of `blocksize`");
  int64_t n = s[1] / (b * b);
  Value y;
  if (mode == "DCR") {
    y = c.Transpose(c.Reshape(x, {s[0], b, b, n, s[2], s[3]}), {0, 3, 4, 1, 5, 2});
  } else if (mode == "CRD") {
    y = c.Transpose(c.Reshape(x, {s[0], n, b, b, s[2], s[3]}), {0, 1, 4, 2, 5, 3});
  } else {
    c.Fail("`mode` is `" + mode + "`, not DCR or CRD");
  }
  return {c.Reshape(y, {s[0], n, c.Times(s[2], b), c.Times(s[3], b)})};
}

Values SpaceToDepth(Ctx& c) {
  Value x = c.T(0);
  const Dims s = c.Lengths(x);
  int64_t b = c.Int("blocksize");
  std::string mode = c.Str("mode", "DCR");
  if (s.size() != 4 || b < 1) c.Fail("the image cannot be cut into blocks of `blocksize`");
  const int64_t rows = c.Over(s[2], b), columns = c.Over(s[3], b);
  if (!c.AssumeEqual(c.Times(rows, b), s[2]) || !c.AssumeEqual(c.Times(columns, b), s[3]))
    c.Fail("the image cannot be cut into blocks of `blocksize`");
  if (mode != "DCR" && mode != "CRD") c.Fail("`mode` is `" + mode + "`, not DCR or CRD");
  Value y = c.Reshape(x, {s[0], s[1], rows, b, columns, b});
  y = c.Transpose(y, mode == "DCR" ? Dims{0, 3, 5, 1, 2, 4} : Dims{0, 1, 3, 5, 2, 4});
  return {c.Reshape(y, {s[0], c.Times(c.Times(s[1], b), b), rows, columns})};
}

}  // namespace

void AddImages(OpTable* table) {
  for (const OpRow& row : {
           OpRow{"", "Upsample", Upsample, RankOfFirst},
           {"", "Resize", Resize, RankOfFirst},
           {"", "GridSample", GridSample},
           {"", "AffineGrid", AffineGrid, AffineGridTypes},
           {"", "RoiAlign", RoiAlign},
           {"", "MaxRoiPool", MaxRoiPool},
           {"", "NonMaxSuppression", NonMaxSuppression},
           {"", "DeformConv", DeformConv},
           {"", "DepthToSpace", DepthToSpace, RankOfFirst},
           {"", "SpaceToDepth", SpaceToDepth, RankOfFirst},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
