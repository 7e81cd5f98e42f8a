// SPDX-License-Identifier: Apache-2.0
// nn.convNd_backward_weight: the gradient of a convolution by its weight. With few taps it is a product of the adjoint
// and the data that each tap sees; else a convolution: of data with the batch as channels, by the adjoint as the
// weight, strides and dilation having changed places.
#include <baton/relay/op/nn.h>

#include <string>

#include "window_gradient.h"

namespace baton::relay::gradient {
namespace {

template <int N>
Type BackwardWeightType(const ConvAttrs<N>& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.SameDtype(0, 1, "R1");
  in.Rank(0, N + 2, "R2");
  in.Rank(1, N + 2, "R2");
  if (!a.kernel_size.defined() || a.kernel_size.size() != N) in.Fail("R3", "kernel_size needs " + Str(N) + " extents");
  if (a.data_layout.view() != PlainLayout("NC", N) || a.kernel_layout.view() != PlainLayout("OI", N))
    in.Fail("R4", "data_layout is \"" + a.data_layout.str() + "\" and kernel_layout \"" + a.kernel_layout.str() +
                      "\", where \"" + PlainLayout("NC", N) + "\" and \"" + PlainLayout("OI", N) + "\" are wanted");
  int64_t o = in.dim(0, 1), c = in.dim(1, 1);
  if (!in.Same(in.shape(0)[0], in.shape(1)[0]) || (o >= 0 && o % a.groups) || (c >= 0 && c % a.groups))
    in.Fail("R5", in.Show(0) + " and " + in.Show(1) + " differ in batch, or groups = " + Str(a.groups) +
                      " divides not their channels");
  Shape shape{in.shape(0)[1], MakeDim(c < 0 ? -1 : c / a.groups)};
  for (int64_t k : a.kernel_size) shape.push_back(PrimExpr(k));
  return TensorType(shape, in.dtype(0));
}
/// With more taps than these the convolution is faster than a product.
constexpr int64_t kMostTaps = 9;
/// Beyond so many elements each tap has its own product, so that what the taps see is not in memory at once.
constexpr int64_t kMostSeen = 2 << 20;

Expr StepsOf(const Expr& data, const Ints& begin, const Ints& end, const Ints& strides) {
  return MakeCall<StridedSliceAttrs>(op::strided_slice, {data}, [&](StridedSliceAttrs* s) {
    s->begin = ToArray(begin), s->end = ToArray(end), s->strides = ToArray(strides);
  });
}
template <int N>
int64_t TapsOf(const ConvAttrs<N>& a) {
  int64_t taps = 1;
  for (int64_t k : a.kernel_size) taps *= k;
  return taps;
}
/// The gradient as a product over batch and places: (O, N * places) by (C * taps, N * places), transposed. `data` is
/// (C, N, ...).
template <int N>
Expr ByProduct(const At& at, const ConvWindow<ConvAttrs<N>, N>& w, const ConvAttrs<N>& a, const Expr& grad,
               const Expr& data) {
  Ints g = at.dims(0), x = at.dims(1);
  int64_t batch = g[0], channels = x[1], places = 1, taps = TapsOf<N>(a);
  for (int d = 0; d < N; ++d) places *= g[2 + d];
  const Ints rows{channels, batch * places};
  Ints swap{1, 0}, shape = at.out_dims();
  Ints before(2, 0), after(2, 0);
  for (int d = 0; d < N; ++d) {
    swap.push_back(2 + d), before.push_back(w.pad.begin[d]), after.push_back(w.pad.end[d]);
  }
  Expr padded = Pad(data, before, after, at.dtype(1));
  Expr adjoint = Reshape(Permute(grad, swap), ToArray(Ints{g[1], batch * places}));
  Array<Expr> seen;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Ints begin(2, 0), end{channels, batch}, strides(2, 1);
    int64_t rest = tap;
    for (int d = N; d-- > 0; rest /= a.kernel_size[d]) {
      const int64_t first = rest % a.kernel_size[d] * w.dilation[d];
      begin.insert(begin.begin() + 2, first), end.insert(end.begin() + 2, first + (g[2 + d] - 1) * w.strides[d] + 1);
      strides.insert(strides.begin() + 2, w.strides[d]);
    }
    seen.push_back(Reshape(StepsOf(padded, begin, end, strides), ToArray(rows)));
  }
  const auto stacked = [&](int64_t axis) {
    return MakeCall<StackAttrs>(op::stack, {Tuple(seen)}, [&](StackAttrs* s) { s->axis = axis; });
  };
  const auto product = [&](const Expr& by) {
    return MakeCall<DenseAttrs>(op::dense, {adjoint, by}, [](DenseAttrs*) {});
  };
  if (channels * taps * rows[1] <= kMostSeen) {
    return Reshape(product(Reshape(stacked(1), ToArray(Ints{channels * taps, rows[1]}))), ToArray(shape));
  }
  for (int64_t tap = 0; tap < taps; ++tap) seen.Set(tap, product(seen[tap]));
  return Reshape(stacked(2), ToArray(shape));
}
template <int N>
bool IsProduct(const ConvAttrs<N>& a, const Ints& g, const Ints& x) {
  bool known = g[0] >= 0 && x[1] >= 0;
  for (int d = 0; d < N; ++d) known = known && g[2 + d] >= 0 && x[2 + d] >= 0;
  return known && a.groups == 1 && TapsOf<N>(a) <= kMostTaps;
}
template <int N>
Expr DecomposeBackwardWeight(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<ConvAttrs<N>>();
  ConvWindow<ConvAttrs<N>, N> w(a, at.op());
  Ints g = at.dims(0), x = at.dims(1);
  int64_t n = x[0], c = x[1] / a.groups;
  if (ProductOf(g) == 0 || ProductOf(x) == 0) {
    Ints dims = at.out_dims();
    return MakeCall<InitOpAttrs>(op::zeros, {},
                                 [&](InitOpAttrs* z) { z->shape = ToArray(dims), z->dtype = at.dtype(0); });
  }
  // (N, groups, C, ...) -> (C, groups, N, ...) -> (C, groups * N, ...)
  Expr data = args[1];
  Ints order{1, 0};
  if (a.groups == 1) {
    for (int d = 0; d < N; ++d) order.push_back(2 + d);
    data = Permute(data, order);
    if (IsProduct<N>(a, g, x)) return ByProduct<N>(at, w, a, args[0], data);
  } else {
    Ints split{n, a.groups, c}, axes{2, 1, 0}, merged{c, a.groups * n};
    for (int d = 0; d < N; ++d) split.push_back(x[2 + d]), axes.push_back(3 + d), merged.push_back(x[2 + d]);
    data = Reshape(Permute(Reshape(data, ToArray(split)), axes), ToArray(merged));
  }
  Ints swap{1, 0};
  for (int d = 0; d < N; ++d) swap.push_back(2 + d);
  // Ends of the padding that no window reaches would give taps past the weight's.
  Ints pad_end = w.pad.end, pads = w.pad.begin, count;
  for (int d = 0; d < N; ++d) {
    int64_t taps = WindowCount(x[2 + d], g[2 + d], w.dilation[d], w.strides[d], w.pad.begin[d], w.pad.end[d], false);
    count.push_back(taps);
  }
  pads.insert(pads.end(), pad_end.begin(), pad_end.end());
  Expr dw = MakeCall<ConvAttrs<N>>(ConvOp(N), {data, Permute(args[0], swap)}, [&](ConvAttrs<N>* v) {
    v->strides = ToArray(w.dilation), v->dilation = ToArray(w.strides), v->padding = ToArray(pads);
    v->groups = a.groups;
  });
  Ints begin(N + 2, 0), end{c, g[1]};
  bool cut = false;
  for (int d = 0; d < N; ++d) end.push_back(a.kernel_size[d]), cut = cut || count[d] != a.kernel_size[d];
  if (cut) dw = Slice(dw, begin, end);
  return Permute(dw, swap);
}
/// Linear in both operands.
template <int N>
Grads BackwardWeightBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<ConvAttrs<N>>();
  ConvWindow<ConvAttrs<N>, N> w(a, at.op());
  Ints g = at.dims(0), x = at.dims(1);
  Array<int64_t> extra(size_t{N}, 0);
  for (int d = 0; d < N; ++d) {
    extra.Set(d, x[2 + d] + w.pad.begin[d] + w.pad.end[d] -
                     ((g[2 + d] - 1) * w.strides[d] + (a.kernel_size[d] - 1) * w.dilation[d] + 1));
  }
  Expr dg = MakeCall<ConvAttrs<N>>(ConvOp(N), {at.arg(1), grad}, [&](ConvAttrs<N>* c) {
    c->strides = ToArray(w.strides), c->dilation = ToArray(w.dilation), c->padding = w.Padding();
    c->groups = a.groups;
  });
  Expr dx = MakeCall<ConvTransposeAttrs<N>>(TransposeOp<N>(), {at.arg(0), grad}, [&](ConvTransposeAttrs<N>* t) {
    t->strides = ToArray(w.strides), t->dilation = ToArray(w.dilation), t->padding = w.Padding();
    t->groups = a.groups, t->output_padding = extra;
  });
  return {dg, dx};
}
template <OpName kName, int N>
Op DefineBackwardWeight() {
  return DefineOp({.name = kName.text,
                   .doc = "Gradient of a convolution by its weight.",
                   .inputs = {{"grad",
                               "Adjoint of the convolution's result, (N, O, ...). R1: floating dtype, that of `data`. "
                               "R2: rank as many as the layout has."},
                              {"data", "What was convolved, (N, C, ...). R2: the same rank. R5: fits `grad`."}},
                   .output = "(O, C / groups, kernel_size...). R3: kernel_size is given. R4: plain layouts.",
                   .attrs = TypeOf<ConvAttrs<N>>,
                   .type_rel = Rel<kName, BackwardWeightType<N>>,
                   .decompose = DecomposeBackwardWeight<N>,
                   .gradient = BackwardWeightBack<N>,
                   .pattern = OpPattern::kOpaque,
                   .source = "Relay"});
}

}  // namespace
}  // namespace baton::relay::gradient

namespace baton::relay {
const Op op::conv1d_backward_weight = gradient::DefineBackwardWeight<"nn.conv1d_backward_weight", 1>();
const Op op::conv2d_backward_weight = gradient::DefineBackwardWeight<"nn.conv2d_backward_weight", 2>();
const Op op::conv3d_backward_weight = gradient::DefineBackwardWeight<"nn.conv3d_backward_weight", 3>();
}  // namespace baton::relay
