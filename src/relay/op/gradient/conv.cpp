// SPDX-License-Identifier: Apache-2.0
// Gradients of convolutions, and nn.convNd_backward_weight, which is a convolution itself: of data with the batch as
// channels, by the adjoint as the weight, strides and dilation having changed places.
#include <baton/relay/op/nn.h>
#include <relay/op/nn/window.h>

#include <string>

#include "rule.h"

namespace baton::relay::gradient {
namespace {

template <int N>
const Op& ConvOp() {
  return N == 1 ? op::conv1d : N == 2 ? op::conv2d : op::conv3d;
}
template <int N>
const Op& TransposeOp() {
  return N == 1 ? op::conv1d_transpose : N == 2 ? op::conv2d_transpose : op::conv3d_transpose;
}
template <int N>
const Op& BackwardOp() {
  return N == 1 ? op::conv1d_backward_weight : N == 2 ? op::conv2d_backward_weight : op::conv3d_backward_weight;
}
std::string Plain(const char* outer, int n) { return std::string(outer) + SpaceLetters(n); }
Expr ToLayout(const Expr& e, const String& from, const std::string& to) {
  if (from.view() == to) return e;
  return MakeCall<LayoutTransformAttrs>(op::layout_transform, {e},
                                        [&](LayoutTransformAttrs* a) { a->src_layout = from, a->dst_layout = to; });
}
template <class A, int N>
struct Window {
  Ints strides, dilation;
  Margins pad;
  Window(const A& a, const char* op)
      : strides(ReadPerDim(a.strides, N, 1, op, "strides")),
        dilation(ReadPerDim(a.dilation, N, 1, op, "dilation")),
        pad(ReadPadding(a.padding, N, op)) {}
  Array<int64_t> Padding() const {
    Ints all = pad.begin;
    all.insert(all.end(), pad.end.begin(), pad.end.end());
    return ToArray(all);
  }
};
/// Extents of an image whose layout is `layout`, as N, C and space.
template <int N>
Ints PlainDims(const At& at, const Shape& shape, const String& layout) {
  ImageLayout l = ReadImageLayout(layout, SpaceLetters(N), at.op(), "data_layout");
  Ints dims = at.Known(shape), out{dims[l.n], dims[l.c] * l.block};
  for (int64_t s : l.space) out.push_back(dims[s]);
  return out;
}
void SameDtype(const At& at) {
  if (!(at.dtype(0) == at.out()->dtype) || !(at.dtype(1) == at.out()->dtype))
    at.Fail("its operands and its result differ in dtype; cast them");
}

template <int N>
Expr BackwardWeight(const Expr& grad, const Expr& data, int64_t groups, const Ints& kernel, int64_t channels,
                    const Ints& strides, const Ints& dilation, const Array<int64_t>& padding) {
  return MakeCall<ConvAttrs<N>>(BackwardOp<N>(), {grad, data}, [&](ConvAttrs<N>* a) {
    a->strides = ToArray(strides), a->dilation = ToArray(dilation), a->padding = padding;
    a->groups = groups, a->channels = PrimExpr(channels), a->kernel_size = ToArray(kernel);
  });
}

template <int N>
Grads Conv(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<ConvAttrs<N>>();
  SameDtype(at);
  Window<ConvAttrs<N>, N> w(a, at.op());
  const std::string image = Plain("NC", N), weight = Plain("OI", N);
  Ints x = PlainDims<N>(at, at.type(0)->shape, a.data_layout);
  String out_layout = a.out_layout.empty() ? a.data_layout : a.out_layout;
  Ints y = PlainDims<N>(at, at.out()->shape, out_layout);
  Expr g = ToLayout(grad, out_layout, image), data = ToLayout(at.arg(0), a.data_layout, image),
       kernel = ToLayout(at.arg(1), a.kernel_layout, weight);
  std::string plain_op = ConvOp<N>().get()->name.str();
  // Extents of the window: those of the weight in its layout.
  Ints k;
  {
    Ints dims = at.dims(1);
    auto parsed = topi::ParseLayout(a.kernel_layout.view(), at.op());
    for (const char* l = SpaceLetters(N); *l; ++l) k.push_back(dims[topi::FindAxis(parsed, *l)]);
  }
  Array<int64_t> extra(size_t{N}, 0);
  for (int d = 0; d < N; ++d) {
    int64_t covered = (y[2 + d] - 1) * w.strides[d] + (k[d] - 1) * w.dilation[d] + 1;
    extra.Set(d, x[2 + d] + w.pad.begin[d] + w.pad.end[d] - covered);
  }
  Expr dx;
  if (ProductOf(y) == 0) {
    dx = ZerosLike(at.arg(0));
  } else {
    dx = MakeCall<ConvTransposeAttrs<N>>(TransposeOp<N>(), {g, kernel}, [&](ConvTransposeAttrs<N>* t) {
      t->strides = ToArray(w.strides), t->dilation = ToArray(w.dilation), t->padding = w.Padding();
      t->groups = a.groups, t->output_padding = extra;
    });
    if (!(a.data_layout.view() == image))
      dx = MakeCall<LayoutTransformAttrs>(op::layout_transform, {dx}, [&](LayoutTransformAttrs* l) {
        l->src_layout = image, l->dst_layout = a.data_layout;
      });
  }
  Expr dw = BackwardWeight<N>(g, data, a.groups, k, y[1], w.strides, w.dilation, w.Padding());
  return {dx, ToLayout(dw, String(weight), a.kernel_layout.str())};
}

template <int N>
Grads ConvTranspose(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<ConvTransposeAttrs<N>>();
  SameDtype(at);
  Window<ConvTransposeAttrs<N>, N> w(a, at.op());
  const std::string image = Plain("NC", N), weight = Plain("IO", N), forward = Plain("OI", N);
  Ints x = PlainDims<N>(at, at.type(0)->shape, a.data_layout);
  String out_layout = a.out_layout.empty() ? a.data_layout : a.out_layout;
  Expr g = ToLayout(grad, out_layout, image), data = ToLayout(at.arg(0), a.data_layout, image),
       kernel = ToLayout(at.arg(1), a.kernel_layout, weight);
  Ints k;
  {
    Ints dims = at.dims(1);
    auto parsed = topi::ParseLayout(a.kernel_layout.view(), at.op());
    for (const char* l = SpaceLetters(N); *l; ++l) k.push_back(dims[topi::FindAxis(parsed, *l)]);
  }
  // The weight of the convolution that this one turns round has its output channels first: (I, O / groups, ...).
  Expr dx = MakeCall<ConvAttrs<N>>(ConvOp<N>(), {g, kernel}, [&](ConvAttrs<N>* c) {
    c->strides = ToArray(w.strides), c->dilation = ToArray(w.dilation), c->padding = w.Padding();
    c->groups = a.groups;
  });
  // What output_padding added may hold one more window than there are inputs.
  Ints dims = PlainDims<N>(at, at.out()->shape, out_layout), count{x[0], x[1]};
  bool cut = false;
  for (int d = 0; d < N; ++d) {
    count.push_back(WindowCount(dims[2 + d], k[d], w.strides[d], w.dilation[d], w.pad.begin[d], w.pad.end[d], false));
    cut = cut || count.back() != x[2 + d];
  }
  if (cut) dx = Slice(dx, Ints(N + 2, 0), x);
  Expr dw = BackwardWeight<N>(data, g, a.groups, k, x[1], w.strides, w.dilation, w.Padding());
  return {ToLayout(dx, String(image), a.data_layout.str()), ToLayout(dw, String(weight), a.kernel_layout.str())};
}

// ---- the operator
template <int N>
Type BackwardWeightType(const ConvAttrs<N>& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.SameDtype(0, 1, "R1");
  in.Rank(0, N + 2, "R2");
  in.Rank(1, N + 2, "R2");
  if (!a.kernel_size.defined() || a.kernel_size.size() != N) in.Fail("R3", "kernel_size needs " + Str(N) + " extents");
  if (a.data_layout.view() != Plain("NC", N) || a.kernel_layout.view() != Plain("OI", N))
    in.Fail("R4", "data_layout is \"" + a.data_layout.str() + "\" and kernel_layout \"" + a.kernel_layout.str() +
                      "\", where \"" + Plain("NC", N) + "\" and \"" + Plain("OI", N) + "\" are wanted");
  int64_t o = in.dim(0, 1), c = in.dim(1, 1);
  if (!in.Same(in.shape(0)[0], in.shape(1)[0]) || (o >= 0 && o % a.groups) || (c >= 0 && c % a.groups))
    in.Fail("R5", in.Show(0) + " and " + in.Show(1) + " differ in batch, or groups = " + Str(a.groups) +
                      " divides not their channels");
  Shape shape{in.shape(0)[1], MakeDim(c < 0 ? -1 : c / a.groups)};
  for (int64_t k : a.kernel_size) shape.push_back(PrimExpr(k));
  return TensorType(shape, in.dtype(0));
}
template <int N>
Expr DecomposeBackwardWeight(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<ConvAttrs<N>>();
  Window<ConvAttrs<N>, N> w(a, at.op());
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
  Expr dw = MakeCall<ConvAttrs<N>>(ConvOp<N>(), {data, Permute(args[0], swap)}, [&](ConvAttrs<N>* v) {
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
  Window<ConvAttrs<N>, N> w(a, at.op());
  Ints g = at.dims(0), x = at.dims(1);
  Array<int64_t> extra(size_t{N}, 0);
  for (int d = 0; d < N; ++d) {
    extra.Set(d, x[2 + d] + w.pad.begin[d] + w.pad.end[d] -
                     ((g[2 + d] - 1) * w.strides[d] + (a.kernel_size[d] - 1) * w.dilation[d] + 1));
  }
  Expr dg = MakeCall<ConvAttrs<N>>(ConvOp<N>(), {at.arg(1), grad}, [&](ConvAttrs<N>* c) {
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
                   .pattern = OpPattern::kOpaque,
                   .source = "Relay"});
}

const bool registered_conv = [] {
  DefineGradients({{"nn.conv1d", Conv<1>},
                   {"nn.conv2d", Conv<2>},
                   {"nn.conv3d", Conv<3>},
                   {"nn.conv1d_transpose", ConvTranspose<1>},
                   {"nn.conv2d_transpose", ConvTranspose<2>},
                   {"nn.conv3d_transpose", ConvTranspose<3>},
                   {"nn.conv1d_backward_weight", BackwardWeightBack<1>},
                   {"nn.conv2d_backward_weight", BackwardWeightBack<2>},
                   {"nn.conv3d_backward_weight", BackwardWeightBack<3>}});
  DefineNoGradients(
      {{"nn.contrib_conv2d_NCHWc", "its layouts are those of a target; differentiate before AlterOpLayout"},
       {"nn.contrib_depthwise_conv2d_NCHWc", "its layouts are those of a target; differentiate before AlterOpLayout"}});
  return true;
}();

}  // namespace
}  // namespace baton::relay::gradient

namespace baton::relay {
const Op op::conv1d_backward_weight = gradient::DefineBackwardWeight<"nn.conv1d_backward_weight", 1>();
const Op op::conv2d_backward_weight = gradient::DefineBackwardWeight<"nn.conv2d_backward_weight", 2>();
const Op op::conv3d_backward_weight = gradient::DefineBackwardWeight<"nn.conv3d_backward_weight", 3>();
}  // namespace baton::relay
