// SPDX-License-Identifier: Apache-2.0
// ONNX's Resize and Upsample to sizes that come as values, an axis at a time; coordinates and weights as image.resize
// has them.
#include <algorithm>
#include <cmath>

#include "host/functions.h"
#include "host/onnx_node.h"
#include "host/pick.h"

namespace baton::host {
namespace {

struct Axis1D {
  int64_t axis, from, to;
  double scale, begin = 0, end = 1;  ///< result / data; of the region, as shares of data
};

struct Settings {
  std::string mode, transform, nearest;
  double alpha, outside;
  bool exclude, antialias;
};

/// The place of element i of the result in data.
double CoordinateOf(const Settings& s, const Axis1D& a, int64_t i) {
  const auto n = static_cast<double>(a.from), x = static_cast<double>(i), width = a.scale * n;
  if (s.transform == "align_corners") return width == 1 ? 0 : x * ((n - 1) / (width - 1));
  if (s.transform == "asymmetric") return x / a.scale;
  if (s.transform == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  if (s.transform == "tf_crop_and_resize") {
    if (width == 1) return (a.end - a.begin) * (n - 1) / 2 + a.begin * (n - 1);
    return x * ((a.end - a.begin) * (n - 1) / (width - 1)) + a.begin * (n - 1);
  }
  if (s.transform == "pytorch_half_pixel" && width == 1) return -0.5;
  const double half = (x + 0.5) / a.scale - 0.5;
  return s.transform == "half_pixel_symmetric" ? half + n / 2 * (1 - static_cast<double>(a.to) / width) : half;
}

/// The elements of data that make one of the result, with their weights.
struct Taps {
  Ints at;
  std::vector<double> weight;
};

double CubicWeight(double d, double a) {
  const double x = std::fabs(d);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

Taps TapsOf(const OnnxNode& node, const Settings& s, const Axis1D& a, int64_t i) {
  const double x = CoordinateOf(s, a, i), last = static_cast<double>(a.from - 1);
  if (!std::isfinite(x)) node.Fail("an element of the result has no place in the data");
  const bool cubic = s.mode == "cubic";
  const double shrink = s.antialias && a.scale < 1 ? a.scale : 1, base = std::ceil(x) - 1;
  const double first = std::floor((cubic ? -2.0 : -1.0) / shrink) + 1;
  const auto count = static_cast<int64_t>(std::min(2 - 2 * first, 2.0e6));
  if (count > (1 << 20)) node.Fail("a scale needs too many elements of the data for one of the result");
  const bool exclude = s.exclude && (cubic || s.antialias);
  Taps out;
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) {
    const double at = base + first + static_cast<double>(k), d = (at - x) * shrink;
    double w = cubic ? CubicWeight(d, s.alpha) : std::max(1 - std::fabs(d), 0.0);
    if (exclude && !(at >= 0 && at <= last)) w = 0;
    out.at.push_back(static_cast<int64_t>(std::clamp(at, 0.0, last)));
    out.weight.push_back(w);
    sum += w;
  }
  if (exclude || shrink != 1) {
    for (double& w : out.weight) w /= sum;
  }
  return out;
}

int64_t NearestOf(const Settings& s, const Axis1D& a, int64_t i) {
  const double x = CoordinateOf(s, a, i), r = s.nearest == "floor"               ? std::floor(x)
                                              : s.nearest == "ceil"              ? std::ceil(x)
                                              : s.nearest == "round_prefer_ceil" ? std::floor(x + 0.5)
                                                                                 : std::ceil(x - 0.5);
  // Not a number: 0.
  return r > 0 ? static_cast<int64_t>(std::min(r, static_cast<double>(a.from - 1))) : 0;
}

/// One axis of the data, interpolated.
std::vector<double> Interpolated(const std::vector<double>& x, const Rows& rows, const std::vector<Taps>& taps) {
  const auto to = static_cast<int64_t>(taps.size());
  std::vector<double> out(static_cast<size_t>(rows.outer * to * rows.inner));
  for (int64_t o = 0; o < rows.outer; ++o) {
    for (int64_t k = 0; k < to; ++k) {
      const Taps& t = taps[static_cast<size_t>(k)];
      double* row = out.data() + (o * to + k) * rows.inner;
      for (size_t j = 0; j < t.at.size(); ++j) {
        const double* from = x.data() + rows.At(o, t.at[j], 0);
        for (int64_t i = 0; i < rows.inner; ++i) row[i] += t.weight[j] * from[i];
      }
    }
  }
  return out;
}

void Store(const NDArray& out, int64_t i, double v) {
  const DataType t = out.dtype();
  if (!t.is_integral()) return out.SetDouble(i, v);
  const double high = std::ldexp(1.0, t.bits() - (t.is_uint() ? 0 : 1));
  v = std::trunc(v);
  if (v >= high) {
    out.SetInt(i, static_cast<int64_t>((t.is_uint() ? ~uint64_t{0} : ~uint64_t{0} >> 1) >> (64 - t.bits())));
  } else {
    out.SetDouble(i, std::max(v, t.is_uint() ? 0 : -high));
  }
}

NDArray ResizeTo(const OnnxNode& node, const NDArray& x, const Settings& s, const std::vector<Axis1D>& axes) {
  Ints shape = x.shape();
  for (const Axis1D& a : axes) shape[static_cast<size_t>(a.axis)] = a.to;
  NDArray out = NDArray::Empty(shape, x.dtype());
  if (out.numel() == 0) return out;
  if (x.numel() == 0) node.Fail(Cat(Show(x), " has no element to resize"));
  auto is_outside = [&](const Axis1D& a, int64_t i) {
    const double c = CoordinateOf(s, a, i);
    return s.transform == "tf_crop_and_resize" && !(c >= 0 && c <= static_cast<double>(a.from - 1));
  };
  if (s.mode == "nearest") {
    std::vector<const Axis1D*> of(shape.size());
    for (const Axis1D& a : axes) of[static_cast<size_t>(a.axis)] = &a;
    NDArray fill = NDArray::Empty({1}, x.dtype());
    Store(fill, 0, s.outside);
    return Pick(x, shape, fill.data(), [&](size_t d, int64_t i) {
      return !of[d] ? i : is_outside(*of[d], i) ? -1 : NearestOf(s, *of[d], i);
    });
  }
  std::vector<double> values = ToDoubles(x);
  Ints now = x.shape();
  std::vector<bool> outside(static_cast<size_t>(s.transform == "tf_crop_and_resize" ? out.numel() : 0));
  for (const Axis1D& a : axes) {
    std::vector<Taps> taps;
    for (int64_t i = 0; i < a.to; ++i) {
      taps.push_back(TapsOf(node, s, a, i));
      if (outside.empty() || !is_outside(a, i)) continue;
      const Rows rows(shape, a.axis);
      for (int64_t o = 0; o < rows.outer; ++o) {
        for (int64_t k = 0; k < rows.inner; ++k) outside[static_cast<size_t>(rows.At(o, i, k))] = true;
      }
    }
    values = Interpolated(values, Rows(now, a.axis), taps);
    now[static_cast<size_t>(a.axis)] = a.to;
  }
  for (int64_t i = 0; i < out.numel(); ++i) {
    const auto at = static_cast<size_t>(i);
    Store(out, i, !outside.empty() && outside[at] ? s.outside : values[at]);
  }
  return out;
}

/// A list of numbers, one for each axis.
std::vector<double> Numbers(const OnnxNode& node, size_t i, size_t count, const char* name) {
  std::vector<double> v = ToDoubles(node.Get(i));
  if (v.size() != count) node.Fail(Cat("`", name, "` has ", v.size(), " numbers, where ", count, " are wanted"));
  return v;
}

int64_t Length(const OnnxNode& node, double v) {
  if (!(v >= 0 && v <= 1e9)) node.Fail(Cat("a result would have the length ", std::to_string(v)));
  return static_cast<int64_t>(v);
}

}  // namespace

Arrays OnnxResize(const Params& p, const Arrays& in) {
  const OnnxNode node(p, in);
  const NDArray& x = node.Get(0);
  const bool upsample = p.function() == "onnx.Upsample", first = upsample || node.Int("opset", 0) < 11;
  auto number = [&](const char* name, double otherwise) { return p.Find(name) ? p.Double(name) : otherwise; };
  const Settings s{node.Text("mode", "nearest"),
                   node.Text("coordinate_transformation_mode", first ? "asymmetric" : "half_pixel"),
                   node.Text("nearest_mode", first ? "floor" : "round_prefer_floor"),
                   number("cubic_coeff_a", -0.75),
                   number("extrapolation_value", 0),
                   node.Int("exclude_outside", 0) != 0,
                   node.Int("antialias", 0) != 0};
  const std::string policy = node.Text("keep_aspect_ratio_policy", "stretch");
  if (s.mode != "nearest" && s.mode != "linear" && s.mode != "cubic") node.Fail(Cat("`mode` is `", s.mode, "`"));
  Ints named = p.Find("axes") ? p.Ints("axes") : Ints();
  if (!p.Find("axes")) {
    for (int64_t d = 0; d < x->ndim; ++d) named.push_back(d);
  }
  std::vector<Axis1D> axes;
  std::vector<bool> seen(x.shape().size());
  for (int64_t a : named) {
    a = node.Axis(a, x->ndim);
    if (seen[static_cast<size_t>(a)]) node.Fail("`axes` names an axis twice");
    seen[static_cast<size_t>(a)] = true;
    axes.push_back({a, x.shape()[static_cast<size_t>(a)], 0, 1});
  }
  const size_t count = axes.size(), scales_at = first ? 1 : 2;
  if (s.transform == "tf_crop_and_resize") {
    const std::vector<double> roi = Numbers(node, 1, 2 * count, "roi");
    for (size_t i = 0; i < count; ++i) axes[i].begin = roi[i], axes[i].end = roi[i + count];
  }
  const bool attribute = upsample && p.Find("scales");
  if (attribute || (node.Has(scales_at) && node.Get(scales_at).numel() > 0)) {
    const std::vector<double> scales = attribute ? p.Doubles("scales") : Numbers(node, scales_at, count, "scales");
    if (scales.size() != count) node.Fail("`scales` needs a number for each axis");
    for (size_t i = 0; i < count; ++i) {
      if (!(scales[i] > 0)) node.Fail("`scales` holds a number that is not positive");
      const double part = axes[i].end - axes[i].begin;
      axes[i].scale = scales[i];
      axes[i].to = Length(node, std::floor(static_cast<double>(axes[i].from) * part * scales[i]));
    }
  } else {
    const Ints sizes = node.IntsOf(3);
    if (sizes.size() != count) node.Fail("`sizes` needs a number for each axis");
    double all = 0;
    for (size_t i = 0; i < count; ++i) {
      axes[i].to = Length(node, static_cast<double>(sizes[i]));
      axes[i].scale = static_cast<double>(sizes[i]) / static_cast<double>(axes[i].from);
      all = i == 0                   ? axes[i].scale
            : policy == "not_larger" ? std::min(all, axes[i].scale)
                                     : std::max(all, axes[i].scale);
    }
    for (size_t i = 0; policy != "stretch" && i < count; ++i) {
      axes[i].scale = all;
      axes[i].to = Length(node, std::floor(static_cast<double>(axes[i].from) * all + 0.5));
    }
  }
  std::erase_if(axes,
                [&](const Axis1D& a) { return a.to == a.from && a.scale == 1 && s.transform != "tf_crop_and_resize"; });
  return {axes.empty() ? x.Copy() : ResizeTo(node, x, s, axes)};
}

namespace {

const Register kResizes[] = {{"onnx.Resize", -1, OnnxResize}, {"onnx.Upsample", -1, OnnxResize}};

}  // namespace
}  // namespace baton::host
