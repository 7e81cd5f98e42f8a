// SPDX-License-Identifier: Apache-2.0
// nn.max_poolNd_grad and nn.avg_poolNd_grad, the gradients of pools, decomposed: a window's adjoint goes to the index
// of its largest element; that of a mean to its elements by a transposed convolution with ones.
#include <baton/relay/op/nn.h>

#include <string>

#include "../host_params.h"
#include "window_gradient.h"

namespace baton::relay::gradient {
namespace {

/// The index of each window's largest element in data with the layout NC...
template <int N>
Expr LargestOf(const MaxPoolAttrs<N>& a, const At& at, const Expr& data) {
  Margins pad = ReadPadding(a.padding, N, at.op());
  Ints pads = pad.begin;
  pads.insert(pads.end(), pad.end.begin(), pad.end.end());
  return Item(
      MakeCall<MaxPoolWithIndicesAttrs>(op::max_pool_with_indices, {ToLayout(data, a.layout, PlainLayout("NC", N))},
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
  Ints x = PlainDims<N>(at, at.type(1)->shape, a.layout);
  if (ProductOf(x) == 0 || ProductOf(at.dims(0)) == 0) return ZerosLike(at.arg(1));
  Expr zeros =
      MakeCall<InitOpAttrs>(op::zeros, {}, [&](InitOpAttrs* z) { z->shape = {ProductOf(x)}, z->dtype = at.dtype(1); });
  Expr sum = MakeCall<ScatterElementsAttrs>(
      op::scatter_elements,
      {zeros, Flatten(LargestOf<N>(a, at, args[1])), Flatten(ToLayout(args[0], a.layout, PlainLayout("NC", N)))},
      [](ScatterElementsAttrs* s) { s->axis = 0, s->reduction = "add"; });
  return ToLayout(Reshape(sum, ToArray(x)), PlainLayout("NC", N), a.layout);
}
/// Linear in the adjoint; the indices do not depend on data.
template <int N>
Grads MaxGradBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<MaxPoolAttrs<N>>();
  Ints y = PlainDims<N>(at, at.type(0)->shape, a.layout);
  if (ProductOf(y) == 0) return {ZerosLike(at.arg(0)), Expr()};
  Expr taken = MakeCall<TakeAttrs>(
      op::take, {Flatten(ToLayout(grad, a.layout, PlainLayout("NC", N))), Flatten(LargestOf<N>(a, at, at.arg(1)))},
      [](TakeAttrs* t) { t->axis = PrimExpr(0); });
  return {ToLayout(Reshape(taken, ToArray(y)), PlainLayout("NC", N), a.layout), Expr()};
}

template <int N>
Expr DecomposeAvgGrad(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<AvgPoolAttrs<N>>();
  DataType t = at.dtype(0);
  Ints x = PlainDims<N>(at, at.type(1)->shape, a.layout), y = PlainDims<N>(at, at.type(0)->shape, a.layout);
  if (ProductOf(x) == 0 || ProductOf(y) == 0) return ZerosLike(at.arg(1));
  Ints size = ReadPerDim(a.pool_size, N, 1, at.op(), ""), strides = ReadPerDim(a.strides, N, 1, at.op(), "");
  Ints dilation = ReadPerDim(a.dilation, N, 1, at.op(), "");
  Margins pad = ReadPadding(a.padding, N, at.op());
  // 1 / the number of elements of each window, along each dimension: the total is their product.
  Expr g = ToLayout(args[0], a.layout, PlainLayout("NC", N));
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
  Expr spread = MakeCall<ConvTransposeAttrs<N>>(TransposeOp<N>(), {g, ones}, [&](ConvTransposeAttrs<N>* c) {
    c->strides = ToArray(strides), c->dilation = ToArray(dilation), c->groups = x[1];
  });
  return ToLayout(Pad(spread, before, after, t), PlainLayout("NC", N), a.layout);
}
template <int N>
Grads AvgGradBack(const Call& call, const Expr& grad) {
  return {MakeCall((N == 1 ? op::avg_pool1d : N == 2 ? op::avg_pool2d : op::avg_pool3d), {grad}, call->attrs), Expr()};
}

template <class A>
Type PoolGradType(const A&, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.SameDtype(0, 1, "R1");
  if (in.ndim(0) != in.ndim(1)) in.Fail("R2", in.Show(0) + " and " + in.Show(1) + " differ in rank");
  return in.type(1);
}
/// Windows are counted, and places of elements numbered, when it is compiled.
const char* NeedsLengths(const CallNode* call) {
  std::vector<int64_t> dims;
  for (const Expr& a : call->args) {
    if (!StaticShape(AsTensor(a->checked_type())->shape, &dims)) return "the gradient of a pool needs known extents";
    dims.clear();
  }
  return nullptr;
}
/// Where extents are open.
template <OpName kName>
HostCall PoolGradOnHost(const Attrs& attrs) {
  return {std::string("host.") + kName.text, HostParams(*Op::Find(kName.text), attrs).Dump()};
}
template <OpName kName, class A>
Op DefinePoolGrad(const char* doc, DecomposeFn decompose, GradientFn back) {
  return DefineOp({.name = kName.text,
                   .doc = doc,
                   .inputs = {{"out_grad", "Adjoint of the pool's result. R1: floating dtype, that of `data`."},
                              {"data", "What was pooled. R2: the rank of `out_grad`."}},
                   .output = "Shape and dtype of `data`.",
                   .attrs = TypeOf<A>,
                   .type_rel = Rel<kName, PoolGradType<A>>,
                   .decompose = decompose,
                   .host_call = PoolGradOnHost<kName>,
                   .gradient = back,
                   .pattern = OpPattern::kOpaque,
                   .source = "Relay",
                   .traits = {.needs_extents = NeedsLengths}});
}

constexpr auto kMaxDoc = "Gradient of a max pool: a window's adjoint goes to its first largest element.";
constexpr auto kAvgDoc = "Gradient of an average pool: a window's adjoint is shared by its elements.";

}  // namespace
}  // namespace baton::relay::gradient

namespace baton::relay {
using namespace gradient;  // NOLINT: this file's own
const Op op::max_pool1d_grad =
    DefinePoolGrad<"nn.max_pool1d_grad", MaxPoolAttrs<1>>(kMaxDoc, DecomposeMaxGrad<1>, MaxGradBack<1>);
const Op op::max_pool2d_grad =
    DefinePoolGrad<"nn.max_pool2d_grad", MaxPoolAttrs<2>>(kMaxDoc, DecomposeMaxGrad<2>, MaxGradBack<2>);
const Op op::max_pool3d_grad =
    DefinePoolGrad<"nn.max_pool3d_grad", MaxPoolAttrs<3>>(kMaxDoc, DecomposeMaxGrad<3>, MaxGradBack<3>);
const Op op::avg_pool1d_grad =
    DefinePoolGrad<"nn.avg_pool1d_grad", AvgPoolAttrs<1>>(kAvgDoc, DecomposeAvgGrad<1>, AvgGradBack<1>);
const Op op::avg_pool2d_grad =
    DefinePoolGrad<"nn.avg_pool2d_grad", AvgPoolAttrs<2>>(kAvgDoc, DecomposeAvgGrad<2>, AvgGradBack<2>);
const Op op::avg_pool3d_grad =
    DefinePoolGrad<"nn.avg_pool3d_grad", AvgPoolAttrs<3>>(kAvgDoc, DecomposeAvgGrad<3>, AvgGradBack<3>);
}  // namespace baton::relay
