// SPDX-License-Identifier: Apache-2.0
// Operators that read an image between its elements, said in simpler ones: the elements around each place are gathered,
// multiplied by weights that depend on the place, and added. Differentiated, that gives adjoints of image and places.
#include <baton/relay/op/image.h>
#include <baton/relay/op/nn.h>
#include <relay/op/nn/window.h>

#include <algorithm>

#include "rule.h"

namespace baton::relay::gradient {
namespace {

/// Along one dimension, (batch, places, taps): elements to read, how much each counts, and which are there. A weight or
/// a mask that is null says: all of them.
struct Taps {
  Expr element, weight, inside;
  int64_t count = 1;
};
enum class Method { kNearest, kLinear, kCubic };

Val AsVal(const Expr& e, DataType from, DataType to) { return {from == to ? e : Cast(e, to), to}; }
Val Weights(const Val& off, Method method) {
  if (method == Method::kLinear) return 1 + off * Val{Cast(MakeInts({-1, 1}), off.t), off.t};
  const double a = -0.75;
  Val x = Do(op::abs, off);
  Val near = ((a + 2) * x - (a + 3)) * x * x + 1;
  Val far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return Pick(Test(op::less_equal, x, 1), near, Pick(Test(op::less, x, 2), far, 0));
}
/// Of the places `p`, (batch, places), along a dimension of n elements. Elements that are not there count as 0 or are
/// the nearest ones; `mirror` takes an element's number to where it is reflected.
template <class Mirror>
Taps TapsOf(const Val& p, int64_t n, Method method, bool zeros, Mirror mirror) {
  Taps out;
  Val at{ExpandDims(p, 2), p.t}, tap = at;
  if (method != Method::kNearest) {
    std::vector<int64_t> steps = method == Method::kLinear ? std::vector<int64_t>{0, 1} : std::vector{-1L, 0L, 1L, 2L};
    out.count = static_cast<int64_t>(steps.size());
    tap = Do(op::floor, at) + Val{Cast(MakeInts(steps), p.t), p.t};
    out.weight = Weights(at - tap, method);
  }
  tap = mirror(tap);
  double last = static_cast<double>(n - 1);
  Val low = Test(op::greater_equal, tap, 0), high = Test(op::less_equal, tap, last);
  if (zeros) out.inside = MakeCall(op::logical_and, {low.e, high.e});
  out.element = Cast(Pick(low, Pick(high, tap, last), 0), DataType::Int(64));  // a NaN reads element 0
  return out;
}
Taps TapsOf(const Val& p, int64_t n, Method method, bool zeros) {
  return TapsOf(p, n, method, zeros, [](const Val& tap) { return tap; });
}
/// data, (batch, channels, the extents `space`), at places: (batch, channels, places).
Val Sample(const Val& data, int64_t batch, int64_t channels, const Ints& space, int64_t places,
           const std::vector<Taps>& taps) {
  int64_t total = 1, step = 1, rank = static_cast<int64_t>(space.size());
  for (const Taps& t : taps) total *= t.count;
  Expr element, weight, inside;
  for (int64_t d = rank - 1; d >= 0; --d) {
    Ints shape(rank + 2, 1);
    shape[0] = batch, shape[1] = places, shape[d + 2] = taps[d].count;
    auto spread = [&](const Expr& e) { return Reshape(e, ToArray(shape)); };
    Expr e = spread(taps[d].element);
    if (step != 1) e = Multiply(e, MakeScalar(static_cast<double>(step), DataType::Int(64)));
    element = element.defined() ? Add(e, element) : e;
    if (taps[d].weight.defined()) {
      Expr w = spread(taps[d].weight);
      weight = weight.defined() ? Multiply(w, weight) : w;
    }
    if (taps[d].inside.defined()) {
      Expr i = spread(taps[d].inside);
      inside = inside.defined() ? MakeCall(op::logical_and, {i, inside}) : i;
    }
    step *= space[d];
  }
  auto row = [&](const Expr& e) { return Reshape(e, {batch, 1, places * total}); };
  Expr index = MakeCall<InitOpAttrs>(op::broadcast_to, {row(element)},
                                     [&](InitOpAttrs* b) { b->shape = {batch, channels, places * total}; });
  Val v{MakeCall<GatherAttrs>(op::gather, {Reshape(data, {batch, channels, step}), index},
                              [](GatherAttrs* g) { g->axis = 2; }),
        data.t};
  if (inside.defined()) v = Pick({row(inside), v.t}, v, 0);
  if (weight.defined()) v = v * Val{row(weight), v.t};
  return total == 1 ? v : Val{Sum(Reshape(v, {batch, channels, places, total}), {3}), v.t};
}
/// `e`, of rank n, with one element of an axis, and without it.
Expr Part(const Expr& e, Ints dims, int64_t axis, int64_t k) {
  Ints begin(dims.size(), 0);
  begin[axis] = k, dims[axis] = k + 1;
  return Squeeze(Slice(e, begin, dims), {axis});
}

// ---- image.grid_sample
Val Reflected(const Val& x, double low, double high) {
  double range = high - low, period = std::max(range * 2, 1e-6);
  Val u = x - low;
  u = u - Do(op::floor, u / period) * period;
  return low + Pick(Test(op::less_equal, u, range), u, period - u);
}
Expr GridSample(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<GridSampleAttrs>();
  Ints dims = at.dims(0), out = at.out_dims(), space(dims.begin() + 2, dims.end());
  if (!at.floating(0)) at.Fail("it has a rule for floating images");
  if (ProductOf(out) == 0) return ZerosLike(call);
  DataType t = at.dtype(1).bits() == 64 ? DataType::Float(64) : Wide(at.dtype(0));
  int64_t rank = static_cast<int64_t>(space.size()), places = ProductOf(Ints(out.begin() + 2, out.end()));
  Ints spots = a.grid_last ? Ints{dims[0], places, rank} : Ints{dims[0], rank, places};
  Val grid = AsVal(Reshape(args[1], ToArray(spots)), at.dtype(1), t);
  Method method = a.method == "nearest" ? Method::kNearest : a.method == "bilinear" ? Method::kLinear : Method::kCubic;
  std::vector<Taps> taps;
  for (int64_t d = 0; d < rank; ++d) {
    double n = static_cast<double>(space[d]), low = a.align_corners ? 0 : -0.5, high = n - 1 - low;
    auto where_outside = [&](const Val& x, const Val& other) {
      return Pick({MakeCall(op::logical_or, {Test(op::less, x, low).e, Test(op::greater, x, high).e}), t}, other, x);
    };
    Val g{Part(grid, spots, a.grid_last ? 2 : 1, rank - 1 - d), t};  // coordinates come as x, y, z
    Val p = a.align_corners ? (g + 1) * 0.5 * (n - 1) : ((g + 1) * n - 1) * 0.5;
    if (method == Method::kNearest) p = Do(op::round, p);
    if (a.padding_mode == "border")
      p = where_outside(p, {Maximum(Minimum(p, MakeScalar(n - 1, t)), MakeScalar(0, t)), t});
    bool reflection = a.padding_mode == "reflection";
    if (reflection) p = where_outside(p, Reflected(p, low, high));
    taps.push_back(TapsOf(p, space[d], method, a.padding_mode == "zeros", [&](const Val& tap) {
      return reflection ? Do(op::trunc, where_outside(tap, Reflected(tap, low, high))) : tap;
    }));
  }
  Val v = Sample(AsVal(args[0], at.dtype(0), t), dims[0], dims[1], space, places, taps);
  return AsVal(Reshape(v, ToArray(out)), t, at.dtype(0));
}

// ---- nn.deformable_conv2d
Expr DeformableConv2D(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<DeformableConv2DAttrs>();
  Ints x = at.dims(0), w = at.dims(2), out = at.out_dims();
  if (ProductOf(x) == 0 || ProductOf(w) == 0 || ProductOf(out) == 0) return ZerosLike(call);
  DataType t = at.out()->dtype;
  Ints strides = ReadPerDim(a.strides, 2, 1, at.op(), ""), dilation = ReadPerDim(a.dilation, 2, 1, at.op(), "");
  Margins pad = ReadPadding(a.padding, 2, at.op());
  int64_t groups = a.deformable_groups, batch = x[0] * groups, size = w[2] * w[3], places = size * out[2] * out[3];
  Ints spots{batch, size, 2, out[2], out[3]};
  Val offset = AsVal(Reshape(args[1], ToArray(spots)), at.dtype(1), t);
  std::vector<Taps> taps;
  for (int d = 0; d < 2; ++d) {
    // Where the window's element lies without its offset, (elements of the window, oh, ow).
    std::vector<int64_t> within, steps;
    for (int64_t k = 0; k < size; ++k) within.push_back((d == 0 ? k / w[3] : k % w[3]) * dilation[d] - pad.begin[d]);
    for (int64_t k = 0; k < out[d + 2]; ++k) steps.push_back(k * strides[d]);
    Expr step = d == 0 ? ExpandDims(MakeInts(steps), 1) : MakeInts(steps);
    Val p = Val{Part(offset, spots, 2, d), t} + Val{Cast(Add(ExpandDims(MakeInts(within), 1, 2), step), t), t};
    taps.push_back(TapsOf({Reshape(p, {batch, places}), t}, x[d + 2], Method::kLinear, true));
  }
  Val v = Sample(AsVal(args[0], at.dtype(0), t), batch, x[1] / groups, {x[2], x[3]}, places, taps);
  if (args.size() > 3) {
    Val mask = AsVal(Reshape(args[3], {batch, 1, places}), at.dtype(3), t);
    v = v * mask;
  }
  // What was sampled is a stack of channels, and the window has become one element.
  Val weight = AsVal(Reshape(args[2], {w[0], w[1] * size, 1, 1}), at.dtype(2), t);
  return MakeCall<ConvAttrs<2>>(
      op::conv2d, {Reshape(v, {x[0], x[1] * size, out[2], out[3]}), weight},
      [&](ConvAttrs<2>* c) { c->groups = a.groups, c->channels = PrimExpr(w[0]), c->kernel_size = {1, 1}; });
}

// ---- image.crop_and_resize
Expr CropAndResize(const Call& call, const Array<Expr>& args) {
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
    taps.push_back(nearest ? TapsOf(Do(op::floor, p + 0.5), x[d + 2], Method::kNearest, false)
                           : TapsOf(p, x[d + 2], Method::kLinear, false));
  }
  Val v = Sample({images, t}, number, x[1], {x[2], x[3]}, places, taps);
  v = Pick({ExpandDims(inside, 1), t}, v, a.extrapolation_value);
  Expr y = Reshape(v, {number, x[1], h, w});
  if (last) y = Permute(y, {0, 2, 3, 1});
  return AsVal(y, t, at.out()->dtype);
}

const bool registered_sample = [] {
  DefineRestatements({{"image.grid_sample", GridSample},
                      {"nn.deformable_conv2d", DeformableConv2D},
                      {"image.crop_and_resize", CropAndResize}});
  return true;
}();

}  // namespace
}  // namespace baton::relay::gradient
