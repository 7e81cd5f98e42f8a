// SPDX-License-Identifier: Apache-2.0
// Gradients of pools, and nn.max_poolNd_grad and nn.avg_poolNd_grad, which say them in other operators: the largest
// element's number takes a window's adjoint; a mean's goes to its elements by a transposed convolution with ones.
#include <baton/relay/op/image.h>
#include <baton/relay/op/nn.h>
#include <relay/op/nn/window.h>

#include <limits>
#include <string>

#include "rule.h"

namespace baton::relay::gradient {
namespace {

template <int N>
const Op& MaxGradOp() {
  return N == 1 ? op::max_pool1d_grad : N == 2 ? op::max_pool2d_grad : op::max_pool3d_grad;
}
template <int N>
const Op& AvgGradOp() {
  return N == 1 ? op::avg_pool1d_grad : N == 2 ? op::avg_pool2d_grad : op::avg_pool3d_grad;
}
template <int N>
const Op& AvgOp() {
  return N == 1 ? op::avg_pool1d : N == 2 ? op::avg_pool2d : op::avg_pool3d;
}
template <int N>
const Op& PoolTransposeOp() {
  return N == 1 ? op::conv1d_transpose : N == 2 ? op::conv2d_transpose : op::conv3d_transpose;
}
Expr ToLayout(const Expr& e, const String& from, const String& to) {
  if (from == to) return e;
  return MakeCall<LayoutTransformAttrs>(op::layout_transform, {e},
                                        [&](LayoutTransformAttrs* a) { a->src_layout = from, a->dst_layout = to; });
}
template <int N>
Ints PlainDims(const At& at, const TensorTypeNode* type, const String& layout) {
  ImageLayout l = ReadImageLayout(layout, SpaceLetters(N), at.op(), "layout");
  Ints dims = at.Known(type->shape), out{dims[l.n], dims[l.c] * l.block};
  for (int64_t s : l.space) out.push_back(dims[s]);
  return out;
}
template <int N>
String Plain() {
  return String(std::string("NC") + SpaceLetters(N));
}

template <int N>
Grads MaxPool(const Call& call, const Expr& grad) {
  return {MakeCall(MaxGradOp<N>(), {grad, call->args[0]}, call->attrs)};
}
template <int N>
Grads AvgPool(const Call& call, const Expr& grad) {
  return {MakeCall(AvgGradOp<N>(), {grad, call->args[0]}, call->attrs)};
}

/// The number of each window's largest element in data with the layout NC...
template <int N>
Expr LargestOf(const MaxPoolAttrs<N>& a, const At& at, const Expr& data) {
  Margins pad = ReadPadding(a.padding, N, at.op());
  Ints pads = pad.begin;
  pads.insert(pads.end(), pad.end.begin(), pad.end.end());
  return Item(MakeCall<MaxPoolWithIndicesAttrs>(op::max_pool_with_indices, {ToLayout(data, a.layout, Plain<N>())},
                                                [&](MaxPoolWithIndicesAttrs* m) {
                                                  m->pool_size = ToArray(ReadPerDim(a.pool_size, N, 1, at.op(), ""));
                                                  m->strides = ToArray(ReadPerDim(a.strides, N, 1, at.op(), ""));
                                                  m->dilation = ToArray(ReadPerDim(a.dilation, N, 1, at.op(), ""));
                                                  m->padding = ToArray(pads), m->ceil_mode = a.ceil_mode;
                                                }),
              1);
}
template <int N>
Expr DecomposeMaxGrad(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<MaxPoolAttrs<N>>();
  Ints x = PlainDims<N>(at, at.type(1), a.layout);
  if (ProductOf(x) == 0 || ProductOf(at.dims(0)) == 0) return ZerosLike(at.arg(1));
  Expr zeros =
      MakeCall<InitOpAttrs>(op::zeros, {}, [&](InitOpAttrs* z) { z->shape = {ProductOf(x)}, z->dtype = at.dtype(1); });
  Expr sum = MakeCall<ScatterElementsAttrs>(
      op::scatter_elements,
      {zeros, Flatten(LargestOf<N>(a, at, args[1])), Flatten(ToLayout(args[0], a.layout, Plain<N>()))},
      [](ScatterElementsAttrs* s) { s->axis = 0, s->reduction = "add"; });
  return ToLayout(Reshape(sum, ToArray(x)), Plain<N>(), a.layout);
}
/// Linear in the adjoint; the places do not move with data.
template <int N>
Grads MaxGradBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<MaxPoolAttrs<N>>();
  Ints y = PlainDims<N>(at, at.type(0), a.layout);
  if (ProductOf(y) == 0) return {ZerosLike(at.arg(0)), Expr()};
  Expr taken = MakeCall<TakeAttrs>(
      op::take, {Flatten(ToLayout(grad, a.layout, Plain<N>())), Flatten(LargestOf<N>(a, at, at.arg(1)))},
      [](TakeAttrs* t) { t->axis = PrimExpr(0); });
  return {ToLayout(Reshape(taken, ToArray(y)), Plain<N>(), a.layout), Expr()};
}

template <int N>
Expr DecomposeAvgGrad(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<AvgPoolAttrs<N>>();
  DataType t = at.dtype(0);
  Ints x = PlainDims<N>(at, at.type(1), a.layout), y = PlainDims<N>(at, at.type(0), a.layout);
  if (ProductOf(x) == 0 || ProductOf(y) == 0) return ZerosLike(at.arg(1));
  Ints size = ReadPerDim(a.pool_size, N, 1, at.op(), ""), strides = ReadPerDim(a.strides, N, 1, at.op(), "");
  Ints dilation = ReadPerDim(a.dilation, N, 1, at.op(), "");
  Margins pad = ReadPadding(a.padding, N, at.op());
  // 1 / the number of elements of each window, along each dimension: the number of all is their product.
  Expr g = ToLayout(args[0], a.layout, Plain<N>());
  for (int d = 0; d < N; ++d) {
    runtime::NDArray inverse = runtime::NDArray::Empty({y[2 + d]}, t);
    for (int64_t o = 0; o < y[2 + d]; ++o) {
      int64_t count = 0;
      for (int64_t k = 0; k < size[d]; ++k) {
        int64_t p = o * strides[d] + k * dilation[d] - pad.begin[d];
        count += a.count_include_pad ? p < x[2 + d] + pad.end[d] : p >= 0 && p < x[2 + d];
      }
      inverse.SetDouble(o, count ? 1.0 / static_cast<double>(count) : 0);
    }
    Expr factor = Constant(ConstantNode{{}, inverse});
    if (d + 1 < N) factor = ExpandDims(factor, 1, N - 1 - d);
    g = Multiply(g, factor);
  }
  Ints shape{x[1], 1}, before{0, 0}, after{0, 0};
  for (int d = 0; d < N; ++d) {
    int64_t covered = (y[2 + d] - 1) * strides[d] + (size[d] - 1) * dilation[d] + 1;
    shape.push_back(size[d]);
    before.push_back(-pad.begin[d]), after.push_back(pad.begin[d] + x[2 + d] - covered);
  }
  Expr ones = MakeCall<InitOpAttrs>(op::ones, {}, [&](InitOpAttrs* o) { o->shape = ToArray(shape), o->dtype = t; });
  Expr spread = MakeCall<ConvTransposeAttrs<N>>(PoolTransposeOp<N>(), {g, ones}, [&](ConvTransposeAttrs<N>* c) {
    c->strides = ToArray(strides), c->dilation = ToArray(dilation), c->groups = x[1];
  });
  return ToLayout(Pad(spread, before, after, t), Plain<N>(), a.layout);
}
template <int N>
Grads AvgGradBack(const Call& call, const Expr& grad) {
  return {MakeCall(AvgOp<N>(), {grad}, call->attrs), Expr()};
}

template <class A>
Type PoolGradType(const A&, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.SameDtype(0, 1, "R1");
  if (in.ndim(0) != in.ndim(1)) in.Fail("R2", in.Show(0) + " and " + in.Show(1) + " differ in rank");
  return in.type(1);
}
template <OpName kName, class A>
Op DefinePoolGrad(const char* doc, DecomposeFn decompose) {
  return DefineOp({.name = kName.text,
                   .doc = doc,
                   .inputs = {{"out_grad", "Adjoint of the pool's result. R1: floating dtype, that of `data`."},
                              {"data", "What was pooled. R2: the rank of `out_grad`."}},
                   .output = "Shape and dtype of `data`.",
                   .attrs = TypeOf<A>,
                   .type_rel = Rel<kName, PoolGradType<A>>,
                   .decompose = decompose,
                   .pattern = OpPattern::kOpaque,
                   .source = "Relay"});
}

// ---- pools said as reductions
template <int N, bool kMax>
Expr GlobalPool(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<GlobalPoolAttrs<N>>();
  return ReduceCall(kMax ? op::max : op::mean, args[0],
                    ToArray(ReadImageLayout(a.layout, SpaceLetters(N), at.op(), "layout").space), true);
}
/// Parts of one extent: each spatial dimension as (parts, elements).
template <int N, bool kMax>
Expr AdaptivePool(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<AdaptivePoolAttrs<N>>();
  ImageLayout l = ReadImageLayout(a.layout, SpaceLetters(N), at.op(), "layout");
  Ints in = at.dims(0), out = at.out_dims(), split, axes;
  for (size_t d = 0; d < in.size(); ++d) {
    bool space = false;
    for (int64_t s : l.space) space = space || s == static_cast<int64_t>(d);
    if (!space) {
      split.push_back(in[d]);
      continue;
    }
    if (out[d] == 0 || in[d] % out[d]) at.Fail("it has a rule where output_size divides the extents, as equal parts");
    split.push_back(out[d]);
    axes.push_back(static_cast<int64_t>(split.size()));
    split.push_back(in[d] / out[d]);
  }
  return ReduceCall(kMax ? op::max : op::mean, Reshape(args[0], ToArray(split)), ToArray(axes), false);
}
/// (size * mean of |x| ** p) ** (1 / p)
template <int N>
Expr LpPool(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<LpPoolAttrs<N>>();
  if (a.ceil_mode) at.Fail("it has no rule with ceil_mode");
  Ints size = ReadPerDim(a.pool_size, N, 1, at.op(), "pool_size");
  Val x{args[0], at.dtype(0)}, p = Num(static_cast<double>(a.p), x.t);
  Expr powered = a.p == 1 ? Do(op::abs, x).e : a.p == 2 ? (x * x).e : MakeCall(op::power, {Do(op::abs, x).e, p.e});
  Val mean{MakeCall<AvgPoolAttrs<N>>(AvgOp<N>(), {powered},
                                     [&](AvgPoolAttrs<N>* v) {
                                       v->pool_size = a.pool_size, v->strides = a.strides, v->dilation = a.dilation;
                                       v->padding = a.padding, v->layout = a.layout, v->count_include_pad = true;
                                     }),
           x.t};
  Val sum = mean * static_cast<double>(ProductOf(size));
  if (a.p == 1) return sum;
  return a.p == 2 ? Do(op::sqrt, sum).e : MakeCall(op::power, {sum.e, Num(1.0 / static_cast<double>(a.p), x.t).e});
}
/// The largest of the window's elements, each with its weight added.
Expr Dilation2D(const Call& call, const Array<Expr>& args) {
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
  // What is put around never is the largest.
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
      int64_t top = i * a.dilations[0], left = j * a.dilations[1];
      Expr seen = MakeCall<StridedSliceAttrs>(op::strided_slice, {wide}, [&](StridedSliceAttrs* s) {
        s->begin = {0, 0, top, left}, s->strides = {1, 1, a.strides[0], a.strides[1]};
        s->end = {x[0], x[1], top + (out[2] - 1) * a.strides[0] + 1, left + (out[3] - 1) * a.strides[1] + 1};
      });
      sums.push_back(Add(seen, Slice(weight, {0, i, j}, {w[0], i + 1, j + 1})));
    }
  }
  Expr most = ReduceCall(op::max, MakeCall<StackAttrs>(op::stack, {Tuple(sums)}, [](StackAttrs* s) { s->axis = 0; }),
                         {0}, false);
  if (last) most = Permute(most, {0, 2, 3, 1});
  return at.out()->dtype == t ? most : Cast(most, at.out()->dtype);
}
Grads MaxPoolWithIndices(const Call& call, const Expr& grad) {
  At at(call, grad);
  if (at.attrs<MaxPoolWithIndicesAttrs>().storage_order) at.Fail("it has a rule for storage_order=0");
  int64_t n = ProductOf(at.dims(0));
  if (n == 0) return {ZerosLike(at.arg(0))};
  Expr zeros = MakeCall<InitOpAttrs>(op::zeros, {}, [&](InitOpAttrs* z) { z->shape = {n}, z->dtype = at.dtype(0); });
  return {ShapeLike(
      MakeCall<ScatterElementsAttrs>(op::scatter_elements, {zeros, Flatten(Item(call, 1)), Flatten(Item(grad, 0))},
                                     [](ScatterElementsAttrs* s) { s->axis = 0, s->reduction = "add"; }),
      at.arg(0))};
}

const bool registered_pool = [] {
  DefineGradients({{"nn.max_pool1d", MaxPool<1>},
                   {"nn.max_pool2d", MaxPool<2>},
                   {"nn.max_pool3d", MaxPool<3>},
                   {"nn.avg_pool1d", AvgPool<1>},
                   {"nn.avg_pool2d", AvgPool<2>},
                   {"nn.avg_pool3d", AvgPool<3>},
                   {"nn.max_pool1d_grad", MaxGradBack<1>},
                   {"nn.max_pool2d_grad", MaxGradBack<2>},
                   {"nn.max_pool3d_grad", MaxGradBack<3>},
                   {"nn.avg_pool1d_grad", AvgGradBack<1>},
                   {"nn.avg_pool2d_grad", AvgGradBack<2>},
                   {"nn.avg_pool3d_grad", AvgGradBack<3>},
                   {"nn.max_pool_with_indices", MaxPoolWithIndices}});
  DefineRestatements({{"nn.global_max_pool1d", GlobalPool<1, true>},
                      {"nn.global_max_pool2d", GlobalPool<2, true>},
                      {"nn.global_max_pool3d", GlobalPool<3, true>},
                      {"nn.global_avg_pool1d", GlobalPool<1, false>},
                      {"nn.global_avg_pool2d", GlobalPool<2, false>},
                      {"nn.global_avg_pool3d", GlobalPool<3, false>},
                      {"nn.adaptive_max_pool1d", AdaptivePool<1, true>},
                      {"nn.adaptive_max_pool2d", AdaptivePool<2, true>},
                      {"nn.adaptive_max_pool3d", AdaptivePool<3, true>},
                      {"nn.adaptive_avg_pool1d", AdaptivePool<1, false>},
                      {"nn.adaptive_avg_pool2d", AdaptivePool<2, false>},
                      {"nn.adaptive_avg_pool3d", AdaptivePool<3, false>},
                      {"nn.lp_pool1d", LpPool<1>},
                      {"nn.lp_pool2d", LpPool<2>},
                      {"nn.lp_pool3d", LpPool<3>},
                      {"image.dilation2d", Dilation2D}});
  return true;
}();

constexpr auto kMaxDoc = "Gradient of a max pool: a window's adjoint goes to its first largest element.";
constexpr auto kAvgDoc = "Gradient of an average pool: a window's adjoint is shared by its elements.";

}  // namespace
}  // namespace baton::relay::gradient

namespace baton::relay {
using namespace gradient;  // NOLINT: this file's own
const Op op::max_pool1d_grad = DefinePoolGrad<"nn.max_pool1d_grad", MaxPoolAttrs<1>>(kMaxDoc, DecomposeMaxGrad<1>);
const Op op::max_pool2d_grad = DefinePoolGrad<"nn.max_pool2d_grad", MaxPoolAttrs<2>>(kMaxDoc, DecomposeMaxGrad<2>);
const Op op::max_pool3d_grad = DefinePoolGrad<"nn.max_pool3d_grad", MaxPoolAttrs<3>>(kMaxDoc, DecomposeMaxGrad<3>);
const Op op::avg_pool1d_grad = DefinePoolGrad<"nn.avg_pool1d_grad", AvgPoolAttrs<1>>(kAvgDoc, DecomposeAvgGrad<1>);
const Op op::avg_pool2d_grad = DefinePoolGrad<"nn.avg_pool2d_grad", AvgPoolAttrs<2>>(kAvgDoc, DecomposeAvgGrad<2>);
const Op op::avg_pool3d_grad = DefinePoolGrad<"nn.avg_pool3d_grad", AvgPoolAttrs<3>>(kAvgDoc, DecomposeAvgGrad<3>);
}  // namespace baton::relay
