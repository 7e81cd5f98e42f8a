// SPDX-License-Identifier: Apache-2.0
// Resizing to sizes known at run time.
#include <baton/relay/op/nn.h>
#include <baton/topi/layout.h>

#include "dyn.h"

namespace baton::relay {
namespace {

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

/// data's shape with unknown extents of H and W; fails with `rule` if the layout has no H or W.
Type ResizedType(const TypeArgs& in, const String& layout, const char* rule, DataType dtype) {
  std::vector<topi::LayoutDim> dims = topi::ParseLayout(layout.view(), in.op());
  int64_t h = topi::FindAxis(dims, 'H'), w = topi::FindAxis(dims, 'W');
  if (static_cast<int64_t>(dims.size()) != in.ndim(0) || h < 0 || w < 0)
    in.Fail(rule, "layout is \"" + layout.str() + "\" for " + in.Show(0) + ", where H and W are wanted");
  Shape out = in.shape(0);
  out.Set(h, UnknownDim());
  out.Set(w, UnknownDim());
  return TensorType(out, dtype);
}

struct DynUpsampling {
  static constexpr const char* kName = "dyn.nn.upsampling";
  using Attributes = DynUpSamplingAttrs;
  static const Op& Static() { return op::upsampling; }
  static bool ShapeLike(int i) { return i > 0; }
  static void Check(const Attributes&, const TypeArgs& in) {
    in[0];
    for (int i = 1; i < 3; ++i) {
      in.Number(i, "R1");
      if (int64_t n = ProductOf(Dims(in.shape(i))); in.ndim(i) > 1 || (n >= 0 && n != 1))
        in.Fail("R1", in.Show(i) + ", where one number is wanted");
    }
  }
  static Attrs StaticAttrs(const Attributes& a, const HostValues& v) {
    if (v[0].numel() != 1 || v[1].numel() != 1)
      throw CompileError("[dyn.nn.upsampling R1] a scale is no single number");
    return MakeAttrs<UpSamplingAttrs>([&](UpSamplingAttrs* s) {
      s->scale_h = v[0].GetDouble(0), s->scale_w = v[1].GetDouble(0);
      s->layout = a.layout, s->method = a.method, s->align_corners = a.align_corners;
    });
  }
  static Type Unknown(const Attributes& a, const TypeArgs& in) { return ResizedType(in, a.layout, "R2", in.dtype(0)); }
};

struct DynResize2D {
  static constexpr const char* kName = "dyn.image.resize2d";
  using Attributes = DynResize2DAttrs;
  static const Op& Static() { return op::resize2d; }
  static bool ShapeLike(int i) { return i > 0; }
  static void Check(const Attributes&, const TypeArgs& in) {
    in[0];
    CheckIntegers(in, 1);
    if (in.size() > 2) {
      in.Floating(2, "R1");
      in.Rank(2, 1, "R1");
    }
  }
  static Attrs StaticAttrs(const Attributes& a, const HostValues& v) {
    return MakeAttrs<ResizeAttrs<2>>([&](ResizeAttrs<2>* s) {
      s->size = Extents(kName, "R3", "size", v[0]);
      std::vector<double> roi;
      for (int64_t k = 0; v.size() > 1 && k < v[1].numel(); ++k) roi.push_back(v[1].GetDouble(k));
      s->roi = Array<double>(roi.begin(), roi.end());
      s->layout = a.layout, s->method = a.method, s->rounding_method = a.rounding_method;
      s->coordinate_transformation_mode = a.coordinate_transformation_mode;
      s->cubic_alpha = a.cubic_alpha, s->cubic_exclude = a.cubic_exclude;
      s->extrapolation_value = a.extrapolation_value, s->out_dtype = a.out_dtype;
    });
  }
  static Type Unknown(const Attributes& a, const TypeArgs& in) {
    return ResizedType(in, a.layout, "R2", a.out_dtype.is_void() ? in.dtype(0) : a.out_dtype);
  }
};

}  // namespace

const Op op::dyn_upsampling = DefineDyn<DynUpsampling>(
    "nn.upsampling by factors known at run time.",
    {{"data", "As nn.upsampling's."}, {"scale_h", "R1: one number."}, {"scale_w", "R1: one number."}},
    "`data`, its height and width not known. R2: a layout with both, of data's rank.");
const Op op::dyn_resize2d =
    DefineDyn<DynResize2D>("image.resize2d to a size known at run time.",
                           {{"data", "As image.resize2d's."},
                            {"size", "Height and width. R1: integers, rank 1. R3: none is negative."},
                            {"roi", "For tf_crop_and_resize: begins, then ends. R1: floating, rank 1."}},
                           "`data`, its height and width not known. R2: a layout with both, of data's rank.", -1);

}  // namespace baton::relay
