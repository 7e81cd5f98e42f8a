// SPDX-License-Identifier: Apache-2.0
// Boxes of an image resized, and grey-scale dilation.
#include <baton/relay/op/image.h>
#include <baton/runtime/checked.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>
#include <relay/op/nn/window.h>

#include <limits>

#include "../common.h"
#include "../gradient.h"
#include "../sampling.h"

namespace baton::relay {
namespace {

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

/// Places of a 4-d image's dimensions.
struct Dims4 {
  int64_t n, c, h, w;
};
Dims4 DimsOf(const String& layout) { return layout == "NCHW" ? Dims4{0, 1, 2, 3} : Dims4{0, 3, 1, 2}; }

Type CropAndResizeType(const CropAndResizeAttrs& a, const TypeArgs& in) {
  in.Number(0, "R1");
  in.Floating(1, "R1");
  in.Integral(2, "R1");
  in.Rank(0, 4, "R2");
  in.Rank(1, 2, "R2");
  in.Rank(2, 1, "R2");
  if (a.layout != "NCHW" && a.layout != "NHWC")
    in.Fail("R3", "layout is \"" + a.layout.str() + "\"; it is \"NCHW\" or \"NHWC\"");
  if (a.method != "bilinear" && a.method != "nearest_neighbor")
    in.Fail("R3", "method is \"" + a.method.str() + "\"; it is \"bilinear\" or \"nearest_neighbor\"");
  if (a.crop_size.size() != 2)
    in.Fail("R3", "crop_size has " + Str(a.crop_size.size()) + " numbers, where (height, width) is wanted");
  if (!in.Same(in.shape(1)[1], PrimExpr(4)) || !in.Same(in.shape(1)[0], in.shape(2)[0]))
    in.Fail("R4", in.Show(1) + " and " + in.Show(2) + ", where (number, 4) and (number,) are wanted");
  Dims4 d = DimsOf(a.layout);
  for (int64_t k : {d.n, d.h, d.w}) {
    if (in.dim(0, k) == 0) in.Fail("R5", in.Show(0) + " has no element to crop");
  }
  Shape out = in.shape(0);
  out.Set(d.n, in.shape(1)[0]);
  out.Set(d.h, PrimExpr(a.crop_size[0]));
  out.Set(d.w, PrimExpr(a.crop_size[1]));
  return TensorType(out, a.out_dtype.is_void() ? in.dtype(0) : a.out_dtype);
}
Tensor LowerCropAndResize(const CropAndResizeAttrs& a, const Tensors& in, const Type& out_type) {
  const Tensor &x = in[0], &boxes = in[1], &which = in[2];
  Dims4 d = DimsOf(a.layout);
  const auto* out = AsTensor(out_type);
  DataType t = boxes.dtype().bits() == 64 ? DataType::Float(64) : DataType::Float(32), i64 = DataType::Int(64);
  PrimExpr number = boxes.shape()[0];
  // The place of row (or column) k of crop b in data.
  auto where = [&](int64_t dim, int64_t low, int64_t count, const char* name) {
    return te::Compute(
        Shape{number, PrimExpr(count)},
        [&](Indices i) {
          PrimExpr last = cast(t, x.shape()[dim] - PrimExpr(1));
          PrimExpr from = cast(t, boxes(i[0], PrimExpr(low))), to = cast(t, boxes(i[0], PrimExpr(low + 2)));
          if (count <= 1) return (from + to) * Lit(0.5, t) * last;
          return from * last + cast(t, PrimExpr(i[1])) * ((to - from) * last / Lit(static_cast<double>(count - 1), t));
        },
        name);
  };
  Tensor y_at = where(d.h, 0, a.crop_size[0], "crop_y"), x_at = where(d.w, 1, a.crop_size[1], "crop_x");
  return te::Compute(
      out->shape,
      [&](Indices i) {
        PrimExpr y = y_at(i[d.n], i[d.h]), u = x_at(i[d.n], i[d.w]);
        PrimExpr h = cast(t, x.shape()[d.h] - PrimExpr(1)), w = cast(t, x.shape()[d.w] - PrimExpr(1));
        PrimExpr inside = y >= Lit(0, t) && y <= h && u >= Lit(0, t) && u <= w;
        PrimExpr image = cast(i64, which(i[d.n]));
        image = max(min(image, x.shape()[d.n] - PrimExpr(1)), PrimExpr(0));
        auto element = [&](PrimExpr row, PrimExpr column) {
          auto index = [&](PrimExpr v, const PrimExpr& most) {  // NaN lands on 0
            return cast(i64, te::Select(v >= Lit(0, t), te::Select(v <= most, v, most), Lit(0, t)));
          };
          std::vector<PrimExpr> at(4);
          at[d.n] = image, at[d.c] = i[d.c], at[d.h] = index(row, h), at[d.w] = index(column, w);
          return cast(t, x(Shape(at)));
        };
        PrimExpr v;
        if (a.method == "nearest_neighbor") {
          v = element(floor(y + Lit(0.5, t)), floor(u + Lit(0.5, t)));
        } else {
          PrimExpr top = floor(y), left = floor(u), fy = y - top, fx = u - left;
          PrimExpr above = element(top, left) * (Lit(1, t) - fx) + element(top, ceil(u)) * fx;
          PrimExpr below = element(ceil(y), left) * (Lit(1, t) - fx) + element(ceil(y), ceil(u)) * fx;
          v = above * (Lit(1, t) - fy) + below * fy;
        }
        v = te::Select(inside, v, Lit(a.extrapolation_value, t));
        return out->dtype.is_integral() ? topi::SaturatingCast(out->dtype, v) : topi::Convert(out->dtype, v);
      },
      "crop_and_resize");
}

// ---- dilation2d
struct Window4 {
  Dims4 data;
  int64_t c, h, w;  // dimensions of the weight
  int64_t begin[2], end[2];
  int64_t strides[2], dilations[2];
};
Window4 WindowOf(const Dilation2DAttrs& a, const char* op) {
  auto fail = [&](const std::string& text) { throw CompileError(std::string("[") + op + " R3] " + text); };
  if (a.data_layout != "NCHW" && a.data_layout != "NHWC")
    fail("data_layout is \"" + a.data_layout.str() + "\"; it is \"NCHW\" or \"NHWC\"");
  if (a.kernel_layout != "IHW" && a.kernel_layout != "HWI")
    fail("kernel_layout is \"" + a.kernel_layout.str() + "\"; it is \"IHW\" or \"HWI\"");
  const Dims4 dims = DimsOf(a.data_layout);
  // Of four numbers, one a dimension of the data, those of images and channels are 1.
  auto steps = [&](const Array<int64_t>& given, const char* name, int64_t* out) {
    const bool each = given.size() == 4 && given[dims.n] == 1 && given[dims.c] == 1;
    if (given.size() != 2 && !each) {
      fail(std::string(name) + " are " + ShowInts(Ints(given.begin(), given.end())) +
           "; they are 2 numbers, or one for each dimension of data with 1 for images and channels");
    }
    out[0] = given[each ? dims.h : 0], out[1] = given[each ? dims.w : 1];
  };
  size_t n = a.padding.size();
  if (n != 1 && n != 2 && n != 4) fail("padding has " + Str(n) + " numbers, where 1, 2 or 4 are wanted");
  bool first = a.kernel_layout == "IHW";
  Window4 w{dims, first ? 0 : 2, first ? 1 : 0, first ? 2 : 1, {}, {}, {}, {}};
  steps(a.strides, "strides", w.strides);
  steps(a.dilations, "dilations", w.dilations);
  for (size_t k = 0; k < 2; ++k) {
    w.begin[k] = a.padding[n == 1 ? 0 : k];
    w.end[k] = a.padding[n == 1 ? 0 : n == 2 ? k : k + 2];
  }
  return w;
}
Type Dilation2DType(const Dilation2DAttrs& a, const TypeArgs& in) {
  in.Number(0, "R1");
  in.SameDtype(0, 1, "R1");
  in.Rank(0, 4, "R2");
  in.Rank(1, 3, "R2");
  Window4 w = WindowOf(a, in.op());
  if (!in.Same(in.shape(0)[w.data.c], in.shape(1)[w.c]))
    in.Fail("R4", in.Show(1) + " and " + in.Show(0) + " differ in channels");
  Shape out = in.shape(0);
  for (int k = 0; k < 2; ++k) {
    int64_t d = k == 0 ? w.data.h : w.data.w, n = in.dim(0, d), m = in.dim(1, k == 0 ? w.h : w.w);
    if (n < 0 || m < 0) {
      out.Set(d, UnknownDim());
      continue;
    }
    runtime::Checked span = runtime::Checked(m - 1) * w.dilations[k] + 1;
    int64_t room = runtime::Checked(n) + w.begin[k] + w.end[k] - span;
    if (m < 1 || room < 0) in.Fail("R5", in.Show(1) + " does not fit into " + in.Show(0) + " with its padding");
    out.Set(d, PrimExpr(room / w.strides[k] + 1));
  }
  return TensorType(out, a.out_dtype.is_void() ? in.dtype(0) : a.out_dtype);
}
Tensor LowerDilation2D(const Dilation2DAttrs& a, const Tensors& in, const Type& out_type) {
  const Tensor &x = in[0], &weight = in[1];
  Window4 w = WindowOf(a, "image.dilation2d");
  const auto* out = AsTensor(out_type);
  DataType t = Wide(x.dtype());
  Array<te::IterVar> k{te::ReduceAxis(0, weight.shape()[w.h], "ky"), te::ReduceAxis(0, weight.shape()[w.w], "kx")};
  Tensor most = te::Compute(
      out->shape,
      [&](Indices i) {
        std::vector<PrimExpr> at(4), tap(3);
        at[w.data.n] = i[w.data.n], at[w.data.c] = i[w.data.c];
        at[w.data.h] =
            i[w.data.h] * PrimExpr(w.strides[0]) + k[0]->var * PrimExpr(w.dilations[0]) - PrimExpr(w.begin[0]);
        at[w.data.w] =
            i[w.data.w] * PrimExpr(w.strides[1]) + k[1]->var * PrimExpr(w.dilations[1]) - PrimExpr(w.begin[1]);
        tap[w.c] = i[w.data.c], tap[w.h] = k[0]->var, tap[w.w] = k[1]->var;
        PrimExpr inside = at[w.data.h] >= PrimExpr(0) && at[w.data.h] < x.shape()[w.data.h] &&
                          at[w.data.w] >= PrimExpr(0) && at[w.data.w] < x.shape()[w.data.w];
        PrimExpr v = if_then_else(inside, cast(t, x(Shape(at))) + cast(t, weight(Shape(tap))), min_value(t));
        return te::MaxOf(v, k);
      },
      "dilation2d");
  return topi::Cast(most, out->dtype);
}

}  // namespace

namespace gradient {
namespace {

Expr DecomposeCropAndResize(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<CropAndResizeAttrs>();
  if (!at.out()->dtype.is_floating()) at.Fail("it has a rule for floating results");
  if (ProductOf(at.out_dims()) == 0) return ZerosLike(call);
  DataType t = at.dtype(1).bits() == 64 ? DataType::Float(64) : DataType::Float(32), i64 = DataType::Int(64);
  bool last = a.layout == "NHWC";
  Ints x = at.dims(0);
  Expr images = AsVal(args[0], at.dtype(0), t);
  if (last) images = Permute(images, {0, 3, 1, 2}), x = {x[0], x[3], x[1], x[2]};
  int64_t number = at.dims(1)[0], h = a.crop_size[0], w = a.crop_size[1], places = h * w;
  Expr which = Minimum(Maximum(AsVal(args[2], at.dtype(2), i64), MakeScalar(0, i64)),
                       MakeScalar(static_cast<double>(x[0] - 1), i64));
  images = MakeCall<TakeAttrs>(op::take, {images, which}, [](TakeAttrs* k) { k->axis = PrimExpr(0); });
  Val boxes = AsVal(args[1], at.dtype(1), t);
  std::vector<Taps> taps;
  Expr inside;
  for (int d = 0; d < 2; ++d) {
    double end = static_cast<double>(x[d + 2] - 1);
    int64_t count = a.crop_size[d];
    auto side = [&](int64_t k) { return Val{Slice(boxes, {0, k}, {number, k + 1}), t}; };
    Val from = side(d), to = side(d + 2), p = (from + to) * 0.5 * end;
    if (count > 1) p = from * end + Val{Cast(Iota(count), t), t} * ((to - from) * end / static_cast<double>(count - 1));
    p.e = MakeCall<InitOpAttrs>(op::broadcast_to,
                                {Reshape(p, d == 0 ? Array<int64_t>{number, h, 1} : Array<int64_t>{number, 1, w})},
                                [&](InitOpAttrs* b) { b->shape = {number, h, w}; });
    p.e = Reshape(p, {number, places});
    Expr there = MakeCall(op::logical_and, {Test(op::greater_equal, p, 0).e, Test(op::less_equal, p, end).e});
    inside = inside.defined() ? MakeCall(op::logical_and, {inside, there}) : there;
    bool nearest = a.method == "nearest_neighbor";
    taps.push_back(nearest ? TapsOf(Do(op::floor, p + 0.5), x[d + 2], SampleMethod::kNearest, false)
                           : TapsOf(p, x[d + 2], SampleMethod::kLinear, false));
  }
  Val v = Sample({images, t}, number, x[1], {x[2], x[3]}, places, taps);
  v = Pick({ExpandDims(inside, 1), t}, v, a.extrapolation_value);
  Expr y = Reshape(v, {number, x[1], h, w});
  if (last) y = Permute(y, {0, 2, 3, 1});
  return AsVal(y, t, at.out()->dtype);
}

/// The largest of the window's elements, each with its weight added.
Expr DecomposeDilation2D(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<Dilation2DAttrs>();
  if (ProductOf(at.out_dims()) == 0) return ZerosLike(call);
  DataType t = at.dtype(0);
  bool last = a.data_layout == "NHWC", kernel_last = a.kernel_layout == "HWI";
  Ints x = at.dims(0), w = at.dims(1), out = at.out_dims();
  if (last) x = {x[0], x[3], x[1], x[2]}, out = {out[0], out[3], out[1], out[2]};
  if (kernel_last) w = {w[2], w[0], w[1]};
  Expr weight = kernel_last ? Permute(args[1], {2, 0, 1}) : args[1];
  Margins pad = ReadPadding(a.padding, 2, at.op());
  const Window4 window = WindowOf(a, at.op());
  const int64_t(&strides)[2] = window.strides, (&dilations)[2] = window.dilations;
  // The padding is never the largest.
  double lowest = t.bits() == 64    ? std::numeric_limits<double>::lowest()
                  : t.is_bfloat16() ? -3.3895313892515355e38
                  : t.bits() == 16  ? -65504
                                    : std::numeric_limits<float>::lowest();
  Expr wide = MakeCall<PadAttrs>(
      op::pad, {last ? Permute(args[0], {0, 3, 1, 2}) : args[0], MakeScalar(lowest, t)}, [&](PadAttrs* p) {
        p->pad_width = Array<Array<int64_t>>{{0, 0}, {0, 0}, {pad.begin[0], pad.end[0]}, {pad.begin[1], pad.end[1]}};
      });
  Array<Expr> sums;
  for (int64_t i = 0; i < w[1]; ++i) {
    for (int64_t j = 0; j < w[2]; ++j) {
      int64_t top = i * dilations[0], left = j * dilations[1];
      Expr seen = MakeCall<StridedSliceAttrs>(op::strided_slice, {wide}, [&](StridedSliceAttrs* s) {
        s->begin = {0, 0, top, left}, s->strides = {1, 1, strides[0], strides[1]};
        s->end = {x[0], x[1], top + (out[2] - 1) * strides[0] + 1, left + (out[3] - 1) * strides[1] + 1};
      });
      sums.push_back(Add(seen, Slice(weight, {0, i, j}, {w[0], i + 1, j + 1})));
    }
  }
  Expr most = ReduceCall(op::max, MakeCall<StackAttrs>(op::stack, {Tuple(sums)}, [](StackAttrs* s) { s->axis = 0; }),
                         {0}, false);
  if (last) most = Permute(most, {0, 2, 3, 1});
  return at.out()->dtype == t ? most : Cast(most, at.out()->dtype);
}

}  // namespace
}  // namespace gradient

const Op op::crop_and_resize = DefineOp({
    .name = "image.crop_and_resize",
    .doc = "Boxes of images, each resized to one size.",
    .inputs = {{"data", "Images. R1: numbers. R2: rank 4. R5: not empty."},
               {"boxes",
                "(number, 4): (y1, x1, y2, x2) as shares of the image. R1: floating dtype. R2: rank 2. R4: its "
                "shape."},
               {"box_indices",
                "Image of each box, clipped to those there are. R1: integers. R2: rank 1. R4: as many as "
                "boxes."}},
    .output = "An image for each box. R3: known layout and method, two numbers in crop_size.",
    .attrs = TypeOf<CropAndResizeAttrs>,
    .type_rel = Rel<"image.crop_and_resize", CropAndResizeType>,
    .lower = LowerCropAndResize,
    .gradient = gradient::DecomposeCropAndResize,
    .pattern = OpPattern::kOpaque,
    .source = "TensorFlow CropAndResize",
});
const Op op::dilation2d = DefineOp({
    .name = "image.dilation2d",
    .doc = "The largest sum of an element and its weight under a window.",
    .inputs = {{"data", "Images. R1: numbers. R2: rank 4."},
               {"weight", "R1: dtype of data. R2: rank 3. R4: data's channels. R5: fits into data."}},
    .output = "The windows' places. R3: known layouts, as many numbers as dimensions.",
    .attrs = TypeOf<Dilation2DAttrs>,
    .type_rel = Rel<"image.dilation2d", Dilation2DType>,
    .lower = LowerDilation2D,
    .gradient = gradient::DecomposeDilation2D,
    .pattern = OpPattern::kOpaque,
    .source = "TensorFlow Dilation2D",
});

}  // namespace baton::relay
