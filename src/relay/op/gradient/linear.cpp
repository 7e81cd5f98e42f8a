// SPDX-License-Identifier: Apache-2.0
// Gradients of operators that are linear maps along some dimensions: what goes back is multiplied by the transposed
// map. A small map is what the operator makes of an identity matrix, which is constant; of a large one the way back is
// an operator again.
#include <baton/relay/op/image.h>
#include <baton/relay/op/nn.h>
#include <relay/op/image/resize.h>

#include <algorithm>

#include "rule.h"

namespace baton::relay::gradient {
namespace {

Expr Identity(int64_t n, DataType t) {
  return MakeCall<EyeAttrs>(op::eye, {}, [&](EyeAttrs* a) { a->rows = n, a->cols = n, a->dtype = t; });
}

// ---- image.resize
/// Whether each element of the result is one of data's, each as often: data repeated along the axes.
bool Repeats(const ResizeNDAttrs& a, const Ints& axes, const Ints& from) {
  if (a.method != "nearest_neighbor") return false;
  const String &mode = a.coordinate_transformation_mode, &r = a.rounding_method;
  bool low = (mode == "asymmetric" || mode == "tf_half_pixel_for_nn") && r == "floor";
  bool middle = mode == "half_pixel" && r != "floor" && r != "ceil";
  for (size_t k = 0; k < axes.size(); ++k) {
    int64_t n = from[axes[k]], m = a.size[k];
    if (m % n || (!a.scales.empty() && a.scales[k] != static_cast<double>(m / n))) return false;
  }
  return low || middle;
}
Expr SumRepeats(const ResizeNDAttrs& a, const Ints& axes, const Ints& from, const Expr& grad) {
  Ints split, sums;
  for (size_t d = 0; d < from.size(); ++d) {
    split.push_back(from[d]);
    auto k = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) - axes.begin();
    if (k == static_cast<int64_t>(axes.size()) || a.size[k] == from[d]) continue;
    sums.push_back(static_cast<int64_t>(split.size()));
    split.push_back(a.size[k] / from[d]);
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
    if (a.size[k] == n && !shifts && (a.scales.empty() || a.scales[k] == 1)) continue;
    Expr m = MakeCall<ResizeNDAttrs>(op::resize_nd, {Identity(n, at.dtype(0))}, [&](ResizeNDAttrs* b) {
      *b = a, b->axes = {0}, b->size = {a.size[k]}, b->extrapolation_value = 0;
      if (!a.scales.empty()) b->scales = {a.scales[k]};
      if (mode == "tf_crop_and_resize") b->roi = {a.roi[k], a.roi[k + axes.size()]};
    });
    g = MapBack(g, m, axes[k], at.ndim(0));
  }
  return {g};
}

// ---- image.affine_grid
Grads AffineGridBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<AffineGridAttrs>();
  int64_t n = static_cast<int64_t>(a.target_shape.size()), places = ProductOf(ToInts(a.target_shape));
  if (places == 0 || ProductOf(at.dims(0)) == 0) return {ZerosLike(at.arg(0))};
  // Each coordinate is a row of data by these coefficients, (n + 1, places).
  Expr rows = MakeCall<InitOpAttrs>(op::broadcast_to, {Reshape(Identity(n + 1, at.dtype(0)), {n + 1, 1, n + 1})},
                                    [&](InitOpAttrs* b) { b->shape = {n + 1, n, n + 1}; });
  Expr all = Reshape(MakeCall(op::affine_grid, {rows}, call->attrs), {n + 1, n, places});
  Expr coefficients = Squeeze(Slice(all, {0, 0, 0}, {n + 1, 1, places}), {1});
  return {ShapeLike(MatMul(Reshape(grad, {-1, places}), coefficients, false, true), at.arg(0))};
}

// ---- dft
/// The other direction, which differs from the adjoint by the length that the inverse divides by.
Grads DFTBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<DFTAttrs>();
  Ints dims = at.dims(0), out = at.out_dims();
  int64_t axis = at.Axis(a.axis), last = at.ndim(0) - 1, have = dims[axis];
  int64_t length = HasValue(a.length) ? ValueOf(a.length) : a.inverse ? out[axis] : have;
  if (ProductOf(dims) == 0) return {ZerosLike(at.arg(0))};
  bool half = a.inverse && a.onesided;
  Val back{MakeCall<DFTAttrs>(op::dft, {grad},
                              [&](DFTAttrs* b) {
                                b->axis = axis, b->inverse = !a.inverse, b->onesided = half;
                                b->length = PrimExpr(length);
                              }),
           at.dtype(0)};
  double n = static_cast<double>(length);
  back = back * (a.inverse ? 1 / n : n);
  if (half) {  // what stands for two parts of a symmetric spectrum counts twice
    int64_t terms = length / 2 + 1;
    runtime::NDArray often = runtime::NDArray::Empty({terms}, at.dtype(0));
    for (int64_t k = 0; k < terms; ++k) often.SetDouble(k, k == 0 || 2 * k == length ? 1 : 2);
    back = back * Val{ExpandDims(Constant(ConstantNode{{}, often}), 1, last - axis), back.t};
  }
  Ints before(dims.size(), 0), after(dims.size(), 0);
  after[axis] = have - (half ? length / 2 + 1 : length);
  after[last] = dims[last] - 2;
  return {Pad(back, before, after, at.dtype(0))};
}

// ---- col2im
template <int N>
Expr Blocks(const At& at, const Col2ImAttrs& a, const Expr& grad) {
  static const Op& conv = N == 1 ? op::conv1d : N == 2 ? op::conv2d : op::conv3d;
  int64_t size = ProductOf(ToInts(a.block_shape));
  Ints images{-1, 1}, kernel{size, 1};
  for (int64_t n : a.image_shape) images.push_back(n);
  for (int64_t n : a.block_shape) kernel.push_back(n);
  // Each element of a block is a channel of a convolution with a kernel that is 1 there.
  Expr taps = Reshape(Identity(size, at.dtype(0)), ToArray(kernel));
  return MakeCall<ConvAttrs<N>>(conv, {Reshape(grad, ToArray(images)), taps}, [&](ConvAttrs<N>* c) {
    if (a.strides.defined()) c->strides = a.strides;
    if (a.dilations.defined()) c->dilation = a.dilations;
    c->padding = a.pads.defined() ? a.pads : ToArray(Ints(2 * N, 0));
    c->kernel_size = a.block_shape, c->channels = PrimExpr(size);
  });
}
Grads Col2ImBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<Col2ImAttrs>();
  if (ProductOf(at.dims(0)) == 0) return {ZerosLike(at.arg(0))};
  size_t n = a.image_shape.size();
  if (n < 1 || n > 3) at.Fail("it has a rule for 1 to 3 spatial dimensions");
  return {ShapeLike(n == 1   ? Blocks<1>(at, a, grad)
                    : n == 2 ? Blocks<2>(at, a, grad)
                             : Blocks<3>(at, a, grad),
                    at.arg(0))};
}

const bool registered_linear = [] {
  DefineGradients(
      {{"image.resize", ResizeBack}, {"image.affine_grid", AffineGridBack}, {"dft", DFTBack}, {"col2im", Col2ImBack}});
  DefineRestatements({{"image.resize1d", ResizeAsND<1>},
                      {"image.resize2d", ResizeAsND<2>},
                      {"image.resize3d", ResizeAsND<3>},
                      {"nn.upsampling", UpsamplingAsND},
                      {"nn.upsampling3d", Upsampling3DAsND}});
  return true;
}();

}  // namespace
}  // namespace baton::relay::gradient
