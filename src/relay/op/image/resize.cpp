// SPDX-License-Identifier: Apache-2.0
// Resizing by nearest, linear and cubic interpolation, an axis at a time. Coordinates and weights are computed in
// float64: they are few, and a nearest element chosen by a rounding error is a visible one.
#include <baton/relay/op/image.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/layout.h>

#include <algorithm>
#include <cmath>

#include "../common.h"
#include "../gradient.h"
#include "../qnn/integers.h"

namespace baton::relay {
namespace {

struct ResizeNDAttrs : AttrsNode<ResizeNDAttrs> {
  static constexpr auto _type_key = "relay.attrs.ResizeNDAttrs";
  Array<int64_t> axes;
  ExtentArray size;
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

constexpr DataType kCoordinate = DataType::Float(64);
constexpr const char* kNeedsFactors = "a resize against aliasing needs known factors";
PrimExpr Coordinate(double v) { return Lit(v, kCoordinate); }

/// A number of coordinates: a literal, which is computed here, or an expression of extents.
struct Real {
  double value = 0;
  PrimExpr expr;
  Real() = default;
  Real(double v) : value(v) {}  // NOLINT
  explicit Real(const PrimExpr& extent) {
    if (const int64_t* n = tir::as_const_int(extent)) {
      value = static_cast<double>(*n);
    } else {
      expr = cast(kCoordinate, extent);
    }
  }
  bool literal() const { return !expr.defined(); }
  PrimExpr e() const { return literal() ? Coordinate(value) : expr; }
};
template <class F>
Real Combine(const Real& a, const Real& b, F f) {
  if (a.literal() && b.literal()) return f(a.value, b.value);
  Real r;
  r.expr = f(a.e(), b.e());
  return r;
}
Real operator+(const Real& a, const Real& b) {
  return Combine(a, b, [](const auto& x, const auto& y) { return x + y; });
}
Real operator-(const Real& a, const Real& b) {
  return Combine(a, b, [](const auto& x, const auto& y) { return x - y; });
}
Real operator*(const Real& a, const Real& b) {
  return Combine(a, b, [](const auto& x, const auto& y) { return x * y; });
}
Real operator/(const Real& a, const Real& b) {
  return Combine(a, b, [](const auto& x, const auto& y) { return x / y; });
}
/// `then` where `width` is 1.
PrimExpr WhereOne(const Real& width, const PrimExpr& then, const Real& otherwise, const PrimExpr& times) {
  if (width.literal()) return width.value == 1 ? then : times * otherwise.e();
  return te::Select(equal(width.e(), Coordinate(1)), then, times * otherwise.e());
}

struct AxisPlan {
  int64_t axis;
  PrimExpr from, to;  ///< extents of data and result
  Real scale;         ///< result / data
  double begin = 0, end = 1;
  bool literal() const { return tir::as_const_int(from) && tir::as_const_int(to); }
};
struct Plan {
  std::vector<AxisPlan> axes;
  String method, mode, rounding;
  double alpha = 0, outside = 0;
  bool exclude = false, antialias = false;
  DataType dtype;  ///< of the result
};

/// The place of element x of the result in data.
PrimExpr Coordinate(const Plan& p, const AxisPlan& a, const PrimExpr& index) {
  PrimExpr x = cast(kCoordinate, index);
  const Real n(a.from), width = a.scale * n;
  if (p.mode == "align_corners") return WhereOne(width, Coordinate(0), (n - 1) / (width - 1), x);
  if (p.mode == "asymmetric") return x / a.scale.e();
  if (p.mode == "tf_half_pixel_for_nn") return (x + Coordinate(0.5)) / a.scale.e();
  if (p.mode == "tf_crop_and_resize") {
    const Real part = Real(a.end - a.begin) * (n - 1), first = Real(a.begin) * (n - 1);
    if (width.literal()) {
      return width.value == 1 ? (part / 2 + first).e() : x * (part / (width - 1)).e() + first.e();
    }
    return te::Select(equal(width.e(), Coordinate(1)), (part / 2 + first).e(),
                      x * (part / (width - 1)).e() + first.e());
  }
  PrimExpr half = (x + Coordinate(0.5)) / a.scale.e() - Coordinate(0.5);
  if (p.mode == "pytorch_half_pixel") {
    if (width.literal()) return width.value == 1 ? Coordinate(-0.5) : half;
    return te::Select(equal(width.e(), Coordinate(1)), Coordinate(-0.5), half);
  }
  if (p.mode == "half_pixel_symmetric") return half + (n / 2 * (Real(1) - Real(a.to) / width)).e();
  return half;
}
/// The last place in data.
PrimExpr LastPlace(const PrimExpr& extent) { return (Real(extent) - 1).e(); }
PrimExpr Nearest(const Plan& p, const AxisPlan& a, const PrimExpr& index) {
  PrimExpr x = Coordinate(p, a, index), r;
  if (p.rounding == "floor") {
    r = floor(x);
  } else if (p.rounding == "ceil") {
    r = ceil(x);
  } else if (p.rounding == "round_prefer_ceil" || p.rounding == "round") {
    r = floor(x + Coordinate(0.5));
  } else {
    r = ceil(x - Coordinate(0.5));
  }
  return cast(DataType::Int(64), max(min(r, LastPlace(a.from)), Coordinate(0)));
}
/// Nearest in whole numbers, which is a shift where it would be a float for each element: where the extents' quotient
/// is one and each element agrees.
PrimExpr NearestInWhole(const Plan& p, const AxisPlan& a, const PrimExpr& index) {
  constexpr int64_t kMostChecked = 1 << 14;
  auto over = [&](int64_t factor) { return factor == 1 ? index : floordiv(index, PrimExpr(factor)); };
  if (!a.literal()) {
    // By a whole factor the coordinate is (x + 1/2) / factor - 1/2 or x / factor: what is nearest follows for all.
    const bool half = p.mode == "half_pixel" && p.rounding != "floor" && p.rounding != "ceil";
    const bool low = p.mode == "asymmetric" && p.rounding == "floor";
    const double factor = a.scale.literal() ? a.scale.value : 0;
    const bool whole = factor >= 1 && factor < kMostChecked && factor == std::floor(factor);
    return whole && (half || low) ? over(static_cast<int64_t>(factor)) : Nearest(p, a, index);
  }
  const int64_t from = *tir::as_const_int(a.from), to = *tir::as_const_int(a.to);
  if (from <= 0 || to > kMostChecked || to % from != 0) return Nearest(p, a, index);
  const int64_t factor = to / from;
  for (int64_t i = 0; i < to; ++i) {
    const int64_t* at = tir::as_const_int(Nearest(p, a, PrimExpr(i)));
    if (!at || *at != i / factor) return Nearest(p, a, index);
  }
  return over(factor);
}
PrimExpr LinearWeight(const PrimExpr& d) { return max(Coordinate(1) - fabs(d), Coordinate(0)); }
PrimExpr CubicWeight(const PrimExpr& d, double alpha) {
  PrimExpr x = fabs(d), a = Coordinate(alpha);
  PrimExpr near = ((a + Coordinate(2)) * x - (a + Coordinate(3))) * x * x + Coordinate(1);
  PrimExpr far = ((a * x - Coordinate(5) * a) * x + Coordinate(8) * a) * x - Coordinate(4) * a;
  return te::Select(x <= Coordinate(1), near, te::Select(x < Coordinate(2), far, Coordinate(0)));
}

/// One axis interpolated; the result is in the arithmetic's dtype.
Tensor Interpolate(const Plan& p, const AxisPlan& a, const Tensor& x, DataType acc) {
  bool cubic = p.method == "cubic";
  if (p.antialias && !a.scale.literal()) throw CompileError(kNeedsFactors);
  double shrink = p.antialias && a.scale.value < 1 ? a.scale.value : 1;
  int64_t first = static_cast<int64_t>(std::floor((cubic ? -2.0 : -1.0) / shrink)) + 1;
  int64_t taps = 2 - 2 * first;
  if (taps > (1 << 20))
    throw CompileError("[image.resize R5] a scale of " + std::to_string(shrink) +
                       " needs too many elements of data for one of the result");
  Shape table{a.to, PrimExpr(taps)};
  // Taps base + first .. base + first + taps - 1, base < x <= base + 1.
  auto base = [&](const PrimExpr& o) { return ceil(Coordinate(p, a, o)) - Coordinate(1); };
  bool exclude = p.exclude && (cubic || p.antialias);
  Tensor raw = te::Compute(
      table,
      [&](Indices i) {
        PrimExpr at = base(i[0]) + Coordinate(static_cast<double>(first)) + cast(kCoordinate, PrimExpr(i[1]));
        PrimExpr d = (at - Coordinate(p, a, i[0])) * Coordinate(shrink);
        PrimExpr w = cubic ? CubicWeight(d, p.alpha) : LinearWeight(d);
        if (exclude) w = te::Select(at >= Coordinate(0) && at <= LastPlace(a.from), w, Coordinate(0));
        return w;
      },
      "raw_weights");
  Tensor weight = raw;
  if (exclude || shrink != 1) {
    Array<te::IterVar> k{te::ReduceAxis(0, PrimExpr(taps), "k")};
    Tensor sum = te::Compute(Shape{a.to}, [&](Indices i) { return te::Sum(raw(i[0], k[0]->var), k); }, "weight_sum");
    weight = te::Compute(table, [&](Indices i) { return raw(i) / sum(i[0]); }, "weights");
  }
  Tensor place = te::Compute(
      table,
      [&](Indices i) {
        PrimExpr at = base(i[0]) + Coordinate(static_cast<double>(first)) + cast(kCoordinate, PrimExpr(i[1]));
        return cast(DataType::Int(64), max(min(at, LastPlace(a.from)), Coordinate(0)));
      },
      "places");
  Shape out = x.shape();
  out.Set(a.axis, a.to);
  Array<te::IterVar> k{te::ReduceAxis(0, PrimExpr(taps), "k")};
  return te::Compute(
      out,
      [&](Indices i) {
        Shape at = i;
        at.Set(a.axis, place(i[a.axis], k[0]->var));
        return te::Sum(cast(acc, weight(i[a.axis], k[0]->var)) * cast(acc, x(at)), k);
      },
      "resize_axis");
}

Tensor Resize(const Plan& p, const Tensor& x) {
  Shape out = x.shape();
  for (const AxisPlan& a : p.axes) {
    if (a.from.as<tir::AnyNode>() || a.to.as<tir::AnyNode>()) {
      throw CompileError("a resize needs known extents where it resizes");
    }
    out.Set(a.axis, a.to);
  }
  DataType t = p.dtype;
  auto outside = [&](const Indices& i) {
    PrimExpr any;
    if (p.mode == "tf_crop_and_resize") {
      for (const AxisPlan& a : p.axes) {
        PrimExpr c = Coordinate(p, a, i[a.axis]);
        PrimExpr o = c < Coordinate(0) || c > LastPlace(a.from);
        any = any.defined() ? any || o : o;
      }
    }
    return any;
  };
  if (p.method == "nearest_neighbor") {
    return te::Compute(
        out,
        [&](Indices i) {
          Shape at = i;
          for (const AxisPlan& a : p.axes) at.Set(a.axis, NearestInWhole(p, a, i[a.axis]));
          PrimExpr v = topi::Convert(t, x(at)), o = outside(i);
          return o.defined() ? te::Select(o, Lit(p.outside, t), v) : v;
        },
        "resize");
  }
  DataType acc =
      t.is_floating() ? Wide(t) : DataType::Float(x.dtype().bits() > 16 && !x.dtype().is_floating() ? 64 : 32);
  Tensor y = x;
  for (const AxisPlan& a : p.axes) y = Interpolate(p, a, y, acc);
  return te::Compute(
      out,
      [&](Indices i) {
        PrimExpr v = cast(acc, y(i)), o = outside(i);
        if (o.defined()) v = te::Select(o, Lit(p.outside, acc), v);
        return t.is_integral() ? topi::SaturatingCast(t, v) : cast(t, v);
      },
      "resize");
}

void CheckPlan(const Plan& p, const TypeArgs& in) {
  static const char* const modes[] = {"half_pixel",          "asymmetric",           "align_corners",
                                      "pytorch_half_pixel",  "half_pixel_symmetric", "tf_crop_and_resize",
                                      "tf_half_pixel_for_nn"};
  in.Number(0, "R1");
  if (p.method != "nearest_neighbor" && p.method != "linear" && p.method != "cubic") {
    in.Fail("R2", "method is \"" + p.method.str() + "\"; it is \"nearest_neighbor\", \"linear\" or \"cubic\"");
  }
  bool known = false;
  for (const char* m : modes) known = known || p.mode == m;
  if (!known) in.Fail("R2", "coordinate_transformation_mode is \"" + p.mode.str() + "\", which is none of ONNX's");
  const String& r = p.rounding;
  if (!(r.empty() || r == "round" || r == "floor" || r == "ceil" || r == "round_prefer_floor" ||
        r == "round_prefer_ceil")) {
    in.Fail("R2", "rounding_method is \"" + r.str() +
                      "\"; it is \"round_prefer_floor\", \"round_prefer_ceil\", \"floor\" or \"ceil\"");
  }
  for (const AxisPlan& a : p.axes) {
    if (!a.literal()) continue;  // known when it runs
    const int64_t from = *tir::as_const_int(a.from), to = *tir::as_const_int(a.to);
    if (from == 0 && to > 0) in.Fail("R4", in.Show(0) + " has no element to resize");
    if (to > 0 && a.scale.literal() && !(a.scale.value > 0 && std::isfinite(a.scale.value)))
      in.Fail("R5", "a scale is " + std::to_string(a.scale.value));
  }
}
Real Ratio(const PrimExpr& to, const PrimExpr& from) {
  const int64_t* n = tir::as_const_int(from);
  if (n && *n <= 0) return 1;
  if (from.as<tir::AnyNode>() || to.as<tir::AnyNode>()) return 1;  // known when it runs
  return Real(to) / Real(from);
}
Shape PlanShape(const Plan& p, const Shape& in) {
  Shape out = in;
  for (const AxisPlan& a : p.axes) out.Set(a.axis, TypeDim(a.to));
  return out;
}
/// A factor of an axis: the extent is rounded. One that is not known stays so.
AxisPlan ScaledAxis(int64_t axis, const PrimExpr& extent, double scale, const char* op) {
  const int64_t* n = tir::as_const_int(extent);
  const double to = n ? std::floor(static_cast<double>(*n) * scale + 0.5) : 0;
  if (!(scale > 0 && scale < 1e12 && to < 1e12))
    throw CompileError(std::string("[") + op + " R5] a factor is " + std::to_string(scale));
  if (n) {
    const PrimExpr m(static_cast<int64_t>(to));
    return {axis, extent, m, Ratio(m, extent)};
  }
  // The factor as a quotient of whole numbers: floor(n * p / q + 1/2).
  constexpr int64_t kMostParts = 1 << 10;
  int64_t q = 1;
  while (q < kMostParts && scale * static_cast<double>(q) != std::floor(scale * static_cast<double>(q))) q *= 2;
  const double p = scale * static_cast<double>(q);
  if (extent.as<tir::AnyNode>() || p != std::floor(p) || p > 1e6) return {axis, extent, UnknownDim(), 1};
  const PrimExpr whole(static_cast<int64_t>(p));
  if (q == 1) return {axis, extent, extent * whole, p};
  const PrimExpr m = floordiv(extent * whole * PrimExpr(2) + PrimExpr(q), PrimExpr(2 * q));
  return {axis, extent, m, Ratio(m, extent)};
}
void AddRoi(Plan* p, const Array<double>& roi, const char* op) {
  if (!(p->mode == "tf_crop_and_resize")) return;
  if (roi.size() != 2 * p->axes.size())
    throw CompileError(std::string("[") + op + " R5] roi has " + Str(roi.size()) +
                       " numbers, where two for each axis are wanted");
  for (size_t k = 0; k < p->axes.size(); ++k) p->axes[k].begin = roi[k], p->axes[k].end = roi[k + p->axes.size()];
}

Plan PlanOf(const ResizeNDAttrs& a, const Shape& in, DataType dtype, const char* op) {
  Plan p;
  size_t n = a.axes.size();
  if (a.size.size() != n || (!a.scales.empty() && a.scales.size() != n)) {
    throw CompileError(std::string("[") + op + " R5] axes has " + Str(n) + " numbers, size " + Str(a.size.size()) +
                       ", scales " + Str(a.scales.size()));
  }
  p.method = a.method, p.mode = a.coordinate_transformation_mode, p.rounding = a.rounding_method;
  p.alpha = a.cubic_alpha, p.outside = a.extrapolation_value, p.exclude = a.cubic_exclude != 0,
  p.antialias = a.antialias, p.dtype = dtype;
  for (size_t k = 0; k < n; ++k) {
    const int64_t axis = NormalizeAxis(a.axes[k], static_cast<int64_t>(in.size()), op, "axes");
    for (const AxisPlan& other : p.axes) {
      if (other.axis == axis)
        throw CompileError(std::string("[") + op + " R5] axes " + ShowInts(ToInts(a.axes)) + " names dimension " +
                           Str(axis) + " twice");
    }
    const PrimExpr to = a.size[k].expr();
    p.axes.push_back({axis, in[axis], to, a.scales.empty() ? Ratio(to, in[axis]) : Real(a.scales[k])});
  }
  AddRoi(&p, a.roi, op);
  return p;
}
Type ResizeNDType(const ResizeNDAttrs& a, const TypeArgs& in) {
  Plan p = PlanOf(a, in.shape(0), in.dtype(0), in.op());
  CheckPlan(p, in);
  return TensorType(PlanShape(p, in.shape(0)), p.dtype);
}
Tensor LowerResizeND(const ResizeNDAttrs& a, const Tensors& in) {
  return Resize(PlanOf(a, in[0].shape(), in[0].dtype(), "image.resize"), in[0]);
}
/// A table of as many taps as a factor asks for: the factor is a number.
const char* NeedsFactors(const CallNode* call) {
  const auto& a = AttrsAs<ResizeNDAttrs>(call->attrs);
  if (!a.antialias || a.method == "nearest_neighbor") return nullptr;
  const auto* data = AsTensor(call->args[0]->checked_type());
  const Plan p = PlanOf(a, data->shape, data->dtype, "image.resize");
  const bool known =
      std::all_of(p.axes.begin(), p.axes.end(), [](const AxisPlan& axis) { return axis.scale.literal(); });
  return known ? nullptr : kNeedsFactors;
}

template <int N>
Plan PlanOfLayout(const ResizeAttrs<N>& a, const Shape& in, DataType dtype, const char* op) {
  std::vector<topi::LayoutDim> layout = topi::ParseLayout(a.layout.view(), op);
  const char* letters = N == 1 ? "W" : N == 2 ? "HW" : "DHW";
  if (layout.size() != in.size())
    throw CompileError(std::string("[") + op + " R5] layout is \"" + a.layout.str() + "\" and `data` has rank " +
                       Str(in.size()));
  Array<int64_t> size = a.size;
  if (size.size() == 1) size = Array<int64_t>(size_t{N}, size[0]);
  if (size.size() != N)
    throw CompileError(std::string("[") + op + " R5] size has " + Str(a.size.size()) + " numbers, where " + Str(N) +
                       " are wanted");
  Plan p;
  p.method = a.method, p.mode = a.coordinate_transformation_mode, p.rounding = a.rounding_method;
  p.alpha = a.cubic_alpha, p.outside = a.extrapolation_value, p.exclude = a.cubic_exclude != 0;
  p.dtype = a.out_dtype.is_void() ? dtype : a.out_dtype;
  for (int k = 0; k < N; ++k) {
    int64_t axis = topi::FindAxis(layout, letters[k]);
    if (axis < 0)
      throw CompileError(std::string("[") + op + " R5] layout \"" + a.layout.str() + "\" has no " + letters[k]);
    const PrimExpr to(size[k]);
    p.axes.push_back({axis, in[axis], to, Ratio(to, in[axis])});
  }
  AddRoi(&p, a.roi, op);
  return p;
}
template <int N>
Type ResizeType(const ResizeAttrs<N>& a, const TypeArgs& in) {
  Plan p = PlanOfLayout<N>(a, in.shape(0), in.dtype(0), in.op());
  CheckPlan(p, in);
  return TensorType(PlanShape(p, in.shape(0)), p.dtype);
}
template <int N>
Tensor LowerResize(const ResizeAttrs<N>& a, const Tensors& in) {
  return Resize(PlanOfLayout<N>(a, in[0].shape(), in[0].dtype(), "image.resize"), in[0]);
}

constexpr const char* kInput = "R1: numbers. R4: not empty.";
constexpr const char* kOutput =
    "`data` with the new extents. R2: known method and modes. R5: numbers for each axis, positive scales.";
// ---- nn.upsampling
Plan PlanOfUpsampling(const UpSamplingAttrs& a, const Shape& in, DataType dtype) {
  bool channels_first = a.layout == "NCHW";
  if (!channels_first && !(a.layout == "NHWC"))
    throw CompileError("[nn.upsampling R5] layout is \"" + a.layout.str() + "\"; it is \"NCHW\" or \"NHWC\"");
  if (in.size() != 4)
    throw CompileError("[nn.upsampling R4] `data` has rank " + Str(in.size()) + ", where 4 is wanted");
  if (a.method != "nearest_neighbor" && a.method != "bilinear" && a.method != "bicubic")
    throw CompileError("[nn.upsampling R2] method is \"" + a.method.str() +
                       "\"; it is \"nearest_neighbor\", \"bilinear\" or \"bicubic\"");
  Plan p;
  p.method = a.method == "bilinear" ? String("linear") : a.method == "bicubic" ? String("cubic") : a.method;
  p.mode = a.align_corners ? "align_corners" : "asymmetric";
  p.rounding = p.method == "nearest_neighbor" && !a.align_corners ? "floor" : "";
  p.alpha = -0.5, p.dtype = dtype;
  for (int k = 0; k < 2; ++k) {
    const int64_t axis = (channels_first ? 2 : 1) + k;
    p.axes.push_back(ScaledAxis(axis, in[axis], k == 0 ? a.scale_h : a.scale_w, "nn.upsampling"));
  }
  return p;
}
Type UpsamplingType(const UpSamplingAttrs& a, const TypeArgs& in) {
  Plan p = PlanOfUpsampling(a, in.shape(0), in.dtype(0));
  CheckPlan(p, in);
  return TensorType(PlanShape(p, in.shape(0)), p.dtype);
}
Tensor LowerUpsampling(const UpSamplingAttrs& a, const Tensors& in) {
  return Resize(PlanOfUpsampling(a, in[0].shape(), in[0].dtype()), in[0]);
}

// ---- nn.upsampling3d
Plan PlanOfUpsampling3D(const UpSampling3DAttrs& a, const Shape& in, DataType dtype) {
  bool channels_first = a.layout == "NCDHW";
  if ((!channels_first && !(a.layout == "NDHWC")) || in.size() != 5)
    throw CompileError("[nn.upsampling3d R5] layout is \"" + a.layout.str() + "\" and `data` has rank " +
                       Str(in.size()) + ", where \"NCDHW\" or \"NDHWC\" and 5 are wanted");
  Plan p;
  p.method = a.method == "trilinear" ? String("linear") : a.method;
  p.mode = a.coordinate_transformation_mode, p.alpha = -0.5, p.dtype = dtype;
  for (int k = 0; k < 3; ++k) {
    const int64_t axis = (channels_first ? 2 : 1) + k;
    const double scale = k == 0 ? a.scale_d : k == 1 ? a.scale_h : a.scale_w;
    p.axes.push_back(ScaledAxis(axis, in[axis], scale, "nn.upsampling3d"));
  }
  return p;
}
Type Upsampling3DType(const UpSampling3DAttrs& a, const TypeArgs& in) {
  Plan p = PlanOfUpsampling3D(a, in.shape(0), in.dtype(0));
  if (p.mode == "tf_crop_and_resize")
    in.Fail("R2", "coordinate_transformation_mode wants a region, which is not there");
  CheckPlan(p, in);
  return TensorType(PlanShape(p, in.shape(0)), p.dtype);
}
Tensor LowerUpsampling3D(const UpSampling3DAttrs& a, const Tensors& in) {
  return Resize(PlanOfUpsampling3D(a, in[0].shape(), in[0].dtype()), in[0]);
}

/// The plan as a call of image.resize.
Expr AsND(const Plan& p, const Expr& data, DataType dtype) {
  for (const AxisPlan& k : p.axes) {
    if (!k.literal()) throw CompileError("the gradient of a resize needs known extents where it is resized");
  }
  return MakeCall<ResizeNDAttrs>(op::resize_nd, {dtype == p.dtype ? data : Cast(data, p.dtype)}, [&](ResizeNDAttrs* a) {
    Ints axes, size;
    Array<double> scales, roi;
    for (const AxisPlan& k : p.axes) {
      axes.push_back(k.axis), size.push_back(*tir::as_const_int(k.to)), scales.push_back(k.scale.value);
    }
    if (p.mode == "tf_crop_and_resize") {
      for (const AxisPlan& k : p.axes) roi.push_back(k.begin);
      for (const AxisPlan& k : p.axes) roi.push_back(k.end);
    }
    a->axes = ToArray(axes), a->size = ToArray(size), a->scales = scales, a->roi = roi;
    a->method = p.method, a->coordinate_transformation_mode = p.mode;
    a->rounding_method = p.rounding, a->cubic_alpha = p.alpha;
    a->cubic_exclude = p.exclude, a->extrapolation_value = p.outside;
  });
}

template <int N>
Expr ResizeAsND(const Call& call, const Array<Expr>& args) {
  const auto* t = AsTensor(call->args[0]->checked_type());
  const char* op = call->op.as<OpNode>()->name.c_str();
  return AsND(PlanOfLayout<N>(AttrsAs<ResizeAttrs<N>>(call->attrs), t->shape, t->dtype, op), args[0], t->dtype);
}
Expr UpsamplingAsND(const Call& call, const Array<Expr>& args) {
  const auto* t = AsTensor(call->args[0]->checked_type());
  return AsND(PlanOfUpsampling(AttrsAs<UpSamplingAttrs>(call->attrs), t->shape, t->dtype), args[0], t->dtype);
}
Expr Upsampling3DAsND(const Call& call, const Array<Expr>& args) {
  const auto* t = AsTensor(call->args[0]->checked_type());
  return AsND(PlanOfUpsampling3D(AttrsAs<UpSampling3DAttrs>(call->attrs), t->shape, t->dtype), args[0], t->dtype);
}
/// The nearest element keeps its integer; weighted means are rounded.
template <class A>
IntegerValue OnIntegers(const IntegerSite& s) {
  A a = AttrsAs<A>(s.pre->attrs);
  if constexpr (requires { a.out_dtype; }) a.out_dtype = DataType::Void();
  if constexpr (requires { a.extrapolation_value; }) {
    if (a.coordinate_transformation_mode == "tf_crop_and_resize") return integers::Failed();  // a real number outside
  }
  const Attrs attrs = MakeAttrs<A>([&](A* n) { *n = a; });
  if (a.method != "nearest_neighbor") return integers::Interpolation(s, attrs);
  IntegerValue v = integers::Selection(s);
  if (v.kind == IntegerValue::kAffine) v.expr = MakeCall(Downcast<Op>(s.pre->op), {s.args[0].expr}, attrs);
  return v;
}
template <OpName kName, int N>
Op Define(OpTraits traits = {}) {
  traits.integers = OnIntegers<ResizeAttrs<N>>;
  return DefineOp({.name = kName.text,
                   .doc = "The spatial dimensions resized by interpolation.",
                   .inputs = {{"data", kInput}},
                   .output = kOutput,
                   .attrs = TypeOf<ResizeAttrs<N>>,
                   .type_rel = Rel<kName, &ResizeType<N>>,
                   .lower = LowerResize<N>,
                   .gradient = ResizeAsND<N>,
                   .pattern = OpPattern::kOpaque,
                   .source = "Relay; ONNX Resize-19",
                   .traits = traits});
}

}  // namespace

namespace gradient {
namespace {

/// Whether each element of the result is one of data's, each as often: data repeated along the axes.
bool Repeats(const ResizeNDAttrs& a, const Ints& axes, const Ints& from) {
  if (a.method != "nearest_neighbor") return false;
  const String &mode = a.coordinate_transformation_mode, &r = a.rounding_method;
  bool low = (mode == "asymmetric" || mode == "tf_half_pixel_for_nn") && r == "floor";
  bool middle = mode == "half_pixel" && r != "floor" && r != "ceil";
  for (size_t k = 0; k < axes.size(); ++k) {
    int64_t n = from[axes[k]], m = a.size[k].literal();
    if (m % n || (!a.scales.empty() && a.scales[k] != static_cast<double>(m / n))) return false;
  }
  return low || middle;
}
Expr SumRepeats(const ResizeNDAttrs& a, const Ints& axes, const Ints& from, const Expr& grad) {
  Ints split, sums;
  for (size_t d = 0; d < from.size(); ++d) {
    split.push_back(from[d]);
    auto k = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) - axes.begin();
    if (k == static_cast<int64_t>(axes.size()) || a.size[k].literal() == from[d]) continue;
    sums.push_back(static_cast<int64_t>(split.size()));
    split.push_back(a.size[k].literal() / from[d]);
  }
  return sums.empty() ? grad : Sum(Reshape(grad, ToArray(split)), sums);
}
/// `e` with the map `m`, (rows, elements of the axis), applied along an axis, transposed.
Expr MapBack(const Expr& e, const Expr& m, int64_t axis, int64_t ndim) {
  if (ndim == 1) return Squeeze(MatMul(ExpandDims(e, 0, 1), m, false, false), {0});
  if (axis == ndim - 2) return MatMul(m, e, true, false);
  Ints order = AxesFrom(0, ndim);
  std::swap(order[axis], order[ndim - 1]);
  return Permute(MatMul(Permute(e, order), m, false, false), order);
}
Grads ResizeBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<ResizeNDAttrs>();
  Ints dims = at.dims(0), axes;
  if (ProductOf(dims) == 0 || ProductOf(at.out_dims()) == 0) return {ZerosLike(at.arg(0))};
  for (int64_t d : a.axes) axes.push_back(at.Axis(d));
  if (Repeats(a, axes, dims)) return {SumRepeats(a, axes, dims, grad)};
  if (a.method == "nearest_neighbor") {
    return {ByNumbers(at, grad, [&](const Expr& numbers) {
      return MakeCall<ResizeNDAttrs>(op::resize_nd, {numbers},
                                     [&](ResizeNDAttrs* b) { *b = a, b->extrapolation_value = 0; });
    })};
  }
  const String& mode = a.coordinate_transformation_mode;
  bool shifts = mode == "tf_crop_and_resize" || mode == "tf_half_pixel_for_nn";
  Expr g = grad;
  for (size_t k = 0; k < axes.size(); ++k) {
    int64_t n = dims[axes[k]];
    if (a.size[k].literal() == n && !shifts && (a.scales.empty() || a.scales[k] == 1)) continue;
    Expr m = MakeCall<ResizeNDAttrs>(op::resize_nd, {Identity(n, at.dtype(0))}, [&](ResizeNDAttrs* b) {
      *b = a, b->axes = {0}, b->size = {a.size[k].literal()}, b->extrapolation_value = 0;
      if (!a.scales.empty()) b->scales = {a.scales[k]};
      if (mode == "tf_crop_and_resize") b->roi = {a.roi[k], a.roi[k + axes.size()]};
    });
    g = MapBack(g, m, axes[k], at.ndim(0));
  }
  return {g};
}

}  // namespace
}  // namespace gradient

const Op op::upsampling3d = DefineOp({
    .name = "nn.upsampling3d",
    .doc = "Depth, height and width multiplied.",
    .inputs = {{"data", "R1: numbers."}},
    .output =
        "`data` with extents rounded to the nearest. R2: known method and mode. R5: a known layout, rank 5, positive "
        "factors.",
    .attrs = TypeOf<UpSampling3DAttrs>,
    .type_rel = Rel<"nn.upsampling3d", Upsampling3DType>,
    .lower = LowerUpsampling3D,
    .gradient = Upsampling3DAsND,
    .pattern = OpPattern::kOpaque,
    .source = "Relay",
    .traits = {.integers = OnIntegers<UpSampling3DAttrs>},
});
const Op op::resize1d = Define<"image.resize1d", 1>(),
         op::resize2d = Define<"image.resize2d", 2>({.layout = LayoutRule::kNamed}),
         op::resize3d = Define<"image.resize3d", 3>();
const Op op::resize_nd = DefineOp({
    .name = "image.resize",
    .doc = "Any dimensions resized by interpolation.",
    .inputs = {{"data", kInput}},
    .output = kOutput,
    .attrs = TypeOf<ResizeNDAttrs>,
    .type_rel = Rel<"image.resize", ResizeNDType>,
    .lower = LowerResizeND,
    .gradient = gradient::ResizeBack,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX Resize-19",
    .traits = {.needs_extents = NeedsFactors},
});
const Op op::upsampling = DefineOp({
    .name = "nn.upsampling",
    .doc = "Height and width multiplied.",
    .inputs = {{"data", "R1: numbers. R4: rank 4."}},
    .output = "`data` with height and width rounded to the nearest. R2: a known method. R5: a known layout, positive "
              "factors.",
    .attrs = TypeOf<UpSamplingAttrs>,
    .type_rel = Rel<"nn.upsampling", UpsamplingType>,
    .lower = LowerUpsampling,
    .gradient = UpsamplingAsND,
    .pattern = OpPattern::kOpaque,
    .source = "Relay",
    .traits = {.precision = Precision::kFollow, .layout = LayoutRule::kNamed, .integers = OnIntegers<UpSamplingAttrs>},
});

}  // namespace baton::relay
