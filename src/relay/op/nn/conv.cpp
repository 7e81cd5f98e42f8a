// SPDX-License-Identifier: Apache-2.0
// Convolutions over 1, 2 and 3 spatial dimensions, in any layout. The loops here are the plain definition; kernel
// generators replace them where they are faster.
#include <baton/relay/op/nn.h>
#include <baton/relay/op/qnn.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>
#include <relay/kernel/generators.h>

#include <string>

#include "../gradient.h"
#include "../qnn/integers.h"
#include "conv_phases.h"
#include "flops.h"
#include "scale_axes.h"
#include "window_gradient.h"

namespace baton::relay {
namespace {

/// Places of a weight's dimensions. For a plain convolution O are output channels and I those of a group's input.
struct KernelLayout {
  std::vector<topi::LayoutDim> dims;
  int64_t o = -1, i = -1, o_block = 1, i_block = 1;
  Ints space;
};
KernelLayout ReadKernelLayout(const String& layout, const char* letters, const char* op) {
  KernelLayout k;
  k.dims = topi::ParseLayout(layout.view(), op);
  auto fail = [&] {
    throw CompileError(std::string("[") + op + " R1] kernel_layout is \"" + layout.str() + "\", where O, I and " +
                       letters + " are wanted, O and I possibly split as in OI" + letters + "16i16o");
  };
  for (const char* l = letters; *l; ++l) {
    k.space.push_back(topi::FindAxis(k.dims, *l));
    if (k.space.back() < 0) fail();
  }
  k.o = topi::FindAxis(k.dims, 'O');
  k.i = topi::FindAxis(k.dims, 'I');
  size_t whole = 0;
  for (const topi::LayoutDim& d : k.dims) {
    if (d.factor == 0) {
      ++whole;
    } else if (d.axis == 'O') {
      k.o_block *= d.factor;
    } else if (d.axis == 'I') {
      k.i_block *= d.factor;
    } else {
      fail();
    }
  }
  if (k.o < 0 || k.i < 0 || whole != k.space.size() + 2) fail();
  return k;
}
/// The weight's element for whole channels o and i.
Shape KernelAt(const KernelLayout& k, const PrimExpr& o, const PrimExpr& i, const Shape& space) {
  Shape at;
  for (size_t d = 0; d < k.dims.size(); ++d) {
    char axis = k.dims[d].axis;
    if (axis != 'O' && axis != 'I') {
      for (size_t s = 0; s < k.space.size(); ++s) {
        if (k.space[s] == static_cast<int64_t>(d)) at.push_back(space[s]);
      }
      continue;
    }
    int64_t below = 1;  // what the parts inside this one hold
    for (size_t e = 0; e < k.dims.size(); ++e) {
      if (k.dims[e].axis == axis && k.dims[e].factor && (k.dims[d].factor == 0 || e > d)) below *= k.dims[e].factor;
    }
    PrimExpr v = axis == 'O' ? o : i;
    if (below > 1) v = floordiv(v, PrimExpr(below));
    at.push_back(k.dims[d].factor ? floormod(v, PrimExpr(k.dims[d].factor)) : v);
  }
  return at;
}
Shape ImageAt(const ImageLayout& l, const PrimExpr& n, const PrimExpr& c, const Shape& space) {
  std::vector<PrimExpr> at(l.rank);
  at[l.n] = n;
  at[l.c] = l.c_in >= 0 ? floordiv(c, PrimExpr(l.block)) : c;
  if (l.c_in >= 0) at[l.c_in] = floormod(c, PrimExpr(l.block));
  for (size_t d = 0; d < l.space.size(); ++d) at[l.space[d]] = space[d];
  return Shape(at);
}
PrimExpr ChannelAt(const ImageLayout& l, const Indices& i) {
  return l.c_in >= 0 ? i[l.c] * PrimExpr(l.block) + i[l.c_in] : PrimExpr(i[l.c]);
}

template <int N>
struct Conv {
  using A = ConvAttrs<N>;
  ImageLayout data, out;
  KernelLayout kernel;
  Ints strides, dilation;
  Margins pad;

  Conv(const A& a, const char* op)
      : data(ReadImageLayout(a.data_layout, SpaceLetters(N), op, "data_layout")),
        out(ReadImageLayout(a.out_layout.empty() ? a.data_layout : a.out_layout, SpaceLetters(N), op, "out_layout")),
        kernel(ReadKernelLayout(a.kernel_layout, SpaceLetters(N), op)),
        strides(ReadPerDim(a.strides, N, 1, op, "strides")),
        dilation(ReadPerDim(a.dilation, N, 1, op, "dilation")),
        pad(ReadPadding(a.padding, N, op)) {}

  /// Whether the weight is Relay's of a convolution of each channel for itself, (C, multiplier, window): input channel
  /// c gives the output channels c * multiplier + m, from weight[c, m]. Where extents are open it may be said only when
  /// they are known.
  enum class Multiplier { kNo, kYes, kOpen };
  Multiplier Multiplies(const Shape& x, const Shape& w, int64_t groups) const {
    if (groups <= 1 || kernel.o_block != 1 || kernel.i_block != 1) return Multiplier::kNo;
    const int64_t o = DimOf(w[kernel.o]), i = DimOf(w[kernel.i]), c = DimOf(Times(x[data.c], data.block));
    if (i == 0 || i == 1 || (o >= 0 && o != groups) || (c >= 0 && c != groups)) return Multiplier::kNo;
    return c >= 0 ? Multiplier::kYes : Multiplier::kOpen;
  }
  /// Input channels that an output channel sums, and output channels.
  void Channels(const Shape& x, const Shape& w, int64_t groups, PrimExpr* per_group, PrimExpr* outs) const {
    const PrimExpr o = Times(w[kernel.o], kernel.o_block), i = Times(w[kernel.i], kernel.i_block);
    const PrimExpr c = Times(x[data.c], data.block);
    switch (Multiplies(x, w, groups)) {
      case Multiplier::kNo:
        *per_group = i, *outs = o;
        break;
      case Multiplier::kYes:
        *per_group = 1, *outs = o * i;
        break;
      case Multiplier::kOpen:
        *per_group = floordiv(c, PrimExpr(groups));
        *outs = tir::Select(equal(c, PrimExpr(groups)), o * i, o);
    }
  }
  /// Elements of the window: `kernel_size` where the weight's type leaves them open.
  static PrimExpr WindowSize(const Array<int64_t>& kernel_size, const PrimExpr& size, int d) {
    return DimOf(size) < 0 && kernel_size.defined() && kernel_size.size() == N ? PrimExpr(kernel_size[d]) : size;
  }
  Shape OutShape(const A& a, const Shape& x, const Shape& w) const {
    std::vector<PrimExpr> shape(out.rank);
    shape[out.n] = x[data.n];
    PrimExpr per_group, channels;
    Channels(x, w, a.groups, &per_group, &channels);
    shape[out.c] = out.c_in < 0 ? channels : ceildiv(channels, PrimExpr(out.block));
    if (out.c_in >= 0) shape[out.c_in] = out.block;
    for (int d = 0; d < N; ++d) {
      shape[out.space[d]] = WindowCount(x[data.space[d]], WindowSize(a.kernel_size, w[kernel.space[d]], d), strides[d],
                                        dilation[d], pad.begin[d], pad.end[d]);
    }
    return Shape(shape);
  }
  /// Asks of open channels what rules ask of literals: none is read that is not there.
  void AssumeChannels(const A& a, const TypeArgs& in) const {
    const Shape &x = in.shape(0), &w = in.shape(1);
    const PrimExpr groups(a.groups), c = Times(x[data.c], data.block);
    const PrimExpr o = Times(w[kernel.o], kernel.o_block), i = Times(w[kernel.i], kernel.i_block);
    const Multiplier m = Multiplies(x, w, a.groups);
    const PrimExpr rows = i * groups, alone = tir::Select(equal(i, PrimExpr(1)), groups, o);
    bool fits = true;
    if (m == Multiplier::kNo) {
      fits = in.Same(c, rows) && (a.groups == 1 || in.Same(floormod(o, groups), PrimExpr(0)));
    } else if (m == Multiplier::kYes) {
      fits = in.Same(DimOf(i) < 0 ? alone : o, groups);
    } else {
      const PrimExpr one_each = equal(c, groups);
      fits = in.Same(c, tir::Select(one_each, groups, rows)) && in.Same(floormod(o, groups), PrimExpr(0)) &&
             in.Same(tir::Select(one_each, DimOf(i) < 0 ? alone : o, groups), groups);
    }
    if (!fits) in.Fail("R3", in.Show(1) + " does not fit the channels of " + in.Show(0));
    PrimExpr per_group, outs;
    Channels(x, w, a.groups, &per_group, &outs);
    if (HasValue(a.channels) && ValueOf(a.channels) >= 0 && !in.Same(outs, a.channels))
      in.Fail("R4", in.Show(1) + " and channels = " + Str(ValueOf(a.channels)));
  }

  static void GuessWeight(const A& a, Array<Type>* types) {
    const auto* x = AsTensor((*types)[0]);
    if (!x || AsTensor((*types)[1]) || !HasValue(a.channels) || !a.kernel_size.defined() || a.kernel_size.size() != N)
      return;
    ImageLayout l = ReadImageLayout(a.data_layout, SpaceLetters(N), "nn.conv", "data_layout");
    KernelLayout k = ReadKernelLayout(a.kernel_layout, SpaceLetters(N), "nn.conv");
    if (l.rank != static_cast<int64_t>(x->shape.size()) || DimOf(x->shape[l.c]) < 0) return;
    int64_t all = DimOf(x->shape[l.c]) * l.block, o = ValueOf(a.channels), i = all / a.groups;
    // Each channel for itself, with several results: weights have the multiplier second.
    if (a.groups > 1 && a.groups == all && o > all && o % all == 0) i = o / all, o = all;
    std::vector<PrimExpr> shape(k.dims.size());
    for (size_t d = 0; d < k.dims.size(); ++d) {
      if (k.dims[d].factor) shape[d] = k.dims[d].factor;
    }
    shape[k.o] = o / k.o_block, shape[k.i] = i / k.i_block;
    for (int d = 0; d < N; ++d) shape[k.space[d]] = PrimExpr(a.kernel_size[d]);
    Guess(types, 1, Shape(shape), x->dtype);
  }

  static Type TypeOfCall(const A& a, const TypeArgs& in) {
    Conv c(a, in.op());
    in.Number(0, "R2");
    in.Number(1, "R2");
    in.Rank(0, c.data.rank, "R1");
    in.Rank(1, static_cast<int64_t>(c.kernel.dims.size()), "R1");
    if (a.out_dtype.is_void()) in.SameDtype(0, 1, "R2");
    for (size_t d = 0; d < c.kernel.dims.size(); ++d) {
      int64_t f = c.kernel.dims[d].factor, n = in.dim(1, d);
      if (f && n >= 0 && n != f)
        in.Fail("R1", "dimension " + Str(d) + " of " + in.Show(1) + " is not " + Str(f) + ", as kernel_layout has it");
    }
    if (c.data.c_in >= 0 && in.dim(0, c.data.c_in) >= 0 && in.dim(0, c.data.c_in) != c.data.block) {
      in.Fail("R1", "the last part of C of " + in.Show(0) + " is not " + Str(c.data.block) + ", as data_layout has it");
    }
    int64_t ci = in.dim(0, c.data.c), wi = in.dim(1, c.kernel.i), co = in.dim(1, c.kernel.o);
    if (ci >= 0) ci *= c.data.block;
    if (wi >= 0) wi *= c.kernel.i_block;
    if (co >= 0) co *= c.kernel.o_block;
    if (c.Multiplies(in.shape(0), in.shape(1), a.groups) == Multiplier::kYes && co >= 0 && wi >= 0)
      co = Checked(co) * wi, wi = 1;
    if (ci >= 0 && wi >= 0 && ci != Checked(wi) * a.groups) {
      std::string help = wi > 0 && ci % wi == 0
                             ? "; groups = " + Str(ci / wi) + " satisfies data channels == weight channels * groups"
                             : "";
      in.Fail("R3", "`weight` has " + Str(wi) + " input channels, `data` has " + Str(ci) +
                        " and groups = " + Str(a.groups) + help);
    }
    if (co >= 0 && co % a.groups != 0)
      in.Fail("R3",
              "`weight` has " + Str(co) + " output channels, which groups = " + Str(a.groups) + " does not divide");
    if (HasValue(a.channels) && co >= 0 && ValueOf(a.channels) >= 0 && ValueOf(a.channels) != co) {
      in.Fail("R4", "`weight` has " + Str(co) + " output channels and channels = " + Str(ValueOf(a.channels)));
    }
    for (int d = 0; d < N; ++d) {
      int64_t size = in.dim(1, c.kernel.space[d]), extent = in.dim(0, c.data.space[d]);
      if (a.kernel_size.defined() && size >= 0 && (a.kernel_size.size() != N || a.kernel_size[d] != size)) {
        in.Fail("R4", "`weight` is " + ShowType(in.type(1)) + " and kernel_size = " + ShowInts(ToInts(a.kernel_size)));
      }
      const PrimExpr& open = in.shape(1)[c.kernel.space[d]];
      if (size < 0 && !(in.Same(open, WindowSize(a.kernel_size, open, d)) && in.AtLeast(open, 1)))
        in.Fail("R4", "the window of " + in.Show(1) + " is empty");
      if (size == 0) in.Fail("R4", "the window of " + in.Show(1) + " is empty");
      if (extent >= 0 && size > 0 &&
          Checked(extent) + c.pad.begin[d] + c.pad.end[d] < WindowSpan(size, c.dilation[d])) {
        in.Fail("R5", "the window spans " + Str(WindowSpan(size, c.dilation[d])) +
                          " elements, `data` with its padding has " + Str(extent + c.pad.begin[d] + c.pad.end[d]) +
                          " in dimension " + Str(c.data.space[d]));
      }
    }
    c.AssumeChannels(a, in);
    const Shape shape = in.Fitting(c.OutShape(a, in.shape(0), in.shape(1)));
    return TensorType(shape, a.out_dtype.is_void() ? in.dtype(0) : a.out_dtype);
  }

  static Tensor Lower(const A& a, const Tensors& in) {
    Conv c(a, "nn.conv");
    const Tensor &x = in[0], &w = in[1];
    DataType t = a.out_dtype.is_void() ? x.dtype() : a.out_dtype, acc = Wide(t);
    const Multiplier m = c.Multiplies(x.shape(), w.shape(), a.groups);
    const bool multiplies = m != Multiplier::kNo;
    const PrimExpr second = w.shape()[c.kernel.i];
    PrimExpr per_group, out_channels;
    c.Channels(x.shape(), w.shape(), a.groups, &per_group, &out_channels);
    PrimExpr out_per_group = a.groups == 1 ? out_channels : floordiv(out_channels, PrimExpr(a.groups));
    // Every output channel sums in the same order: input channel, then window.
    Array<te::IterVar> k{te::ReduceAxis(0, per_group, "ic")};
    for (int d = 0; d < N; ++d)
      k.push_back(te::ReduceAxis(0, WindowSize(a.kernel_size, w.shape()[c.kernel.space[d]], d), "k" + Str(d)));
    Tensor sum = te::Compute(
        c.OutShape(a, x.shape(), w.shape()),
        [&](Indices i) {
          PrimExpr oc = ChannelAt(c.out, i), ic = k[0]->var;
          if (a.groups != 1) ic = floordiv(oc, out_per_group) * per_group + ic;
          Shape from, window;
          PrimExpr inside;
          for (int d = 0; d < N; ++d) {
            PrimExpr p =
                Times(i[c.out.space[d]], c.strides[d]) + Times(k[d + 1]->var, c.dilation[d]) - PrimExpr(c.pad.begin[d]);
            inside = AndAlso(inside, InRange(p, x.shape()[c.data.space[d]], c.pad.begin[d] > 0, c.pad.end[d] > 0));
            from.push_back(p);
            window.push_back(k[d + 1]->var);
          }
          // A split of the output's channels may run past the weight's.
          const int64_t* co = tir::as_const_int(out_channels);
          bool tail = !multiplies && c.out.c_in >= 0 && !(co && *co % c.out.block == 0);
          PrimExpr v = x(ImageAt(c.data, i[c.out.n], ic, from)), u;
          if (tail) {
            u = if_then_else(oc < out_channels,
                             w(KernelAt(c.kernel, min(oc, out_channels - PrimExpr(1)), k[0]->var, window)),
                             tir::make_const(w.dtype(), 0));
          } else if (multiplies) {
            // Of plain weights, which open extents may turn out to be, the element has the same number.
            const PrimExpr at = m == Multiplier::kYes ? oc : oc * per_group + k[0]->var;
            u = w(KernelAt(c.kernel, floordiv(at, second), floormod(at, second), window));
          } else {
            u = w(KernelAt(c.kernel, oc, k[0]->var, window));
          }
          if (inside.defined()) v = if_then_else(inside, v, tir::make_const(x.dtype(), 0));
          return te::Sum(cast(acc, v) * cast(acc, u), k);
        },
        "conv", "conv");
    return topi::Cast(sum, t);
  }
};

}  // namespace

namespace gradient {
namespace {

void SameDtypes(const At& at) {
  if (!(at.dtype(0) == at.out()->dtype) || !(at.dtype(1) == at.out()->dtype))
    at.Fail("its operands and its result differ in dtype; cast them");
}

template <int N>
Expr BackwardWeight(const Expr& grad, const Expr& data, int64_t groups, const Ints& kernel, int64_t channels,
                    const Ints& strides, const Ints& dilation, const Array<int64_t>& padding) {
  return MakeCall<ConvAttrs<N>>(BackwardWeightOp<N>(), {grad, data}, [&](ConvAttrs<N>* a) {
    a->strides = ToArray(strides), a->dilation = ToArray(dilation), a->padding = padding;
    a->groups = groups, a->channels = PrimExpr(channels), a->kernel_size = ToArray(kernel);
  });
}

template <int N>
Grads ConvBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<ConvAttrs<N>>();
  SameDtypes(at);
  ConvWindow<ConvAttrs<N>, N> w(a, at.op());
  const std::string image = PlainLayout("NC", N), weight = PlainLayout("OI", N);
  Ints x = PlainDims<N>(at, at.type(0)->shape, a.data_layout);
  String out_layout = a.out_layout.empty() ? a.data_layout : a.out_layout;
  Ints y = PlainDims<N>(at, at.out()->shape, out_layout);
  Expr g = ToLayout(grad, out_layout, image), data = ToLayout(at.arg(0), a.data_layout, image),
       kernel = ToLayout(at.arg(1), a.kernel_layout, weight);
  // Extents of the window: those of the weight in its layout.
  Ints k, own;
  {
    Ints dims = at.dims(1);
    auto parsed = topi::ParseLayout(a.kernel_layout.view(), at.op());
    for (const char* l = SpaceLetters(N); *l; ++l) k.push_back(dims[topi::FindAxis(parsed, *l)]);
    own = {dims[topi::FindAxis(parsed, 'O')], dims[topi::FindAxis(parsed, 'I')]};
  }
  // A weight (C, multiplier, window) holds what the plain one, (C * multiplier, 1, window), does.
  const bool multiplies = a.groups > 1 && own[0] == a.groups && x[1] == a.groups && own[1] > 1;
  Ints plain{own[0] * own[1], 1};
  own.insert(own.end(), k.begin(), k.end());
  plain.insert(plain.end(), k.begin(), k.end());
  if (multiplies) kernel = Reshape(kernel, ToArray(plain));
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
  if (multiplies) dw = Reshape(dw, ToArray(own));
  return {dx, ToLayout(dw, weight, a.kernel_layout.str())};
}

template <int N>
Grads ConvTransposeBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<ConvTransposeAttrs<N>>();
  SameDtypes(at);
  ConvWindow<ConvTransposeAttrs<N>, N> w(a, at.op());
  const std::string image = PlainLayout("NC", N), weight = PlainLayout("IO", N);
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
  // The weight of the convolution of which this is the transpose has its output channels first: (I, O / groups, ...).
  Expr dx = MakeCall<ConvAttrs<N>>(ConvOp(N), {g, kernel}, [&](ConvAttrs<N>* c) {
    c->strides = ToArray(w.strides), c->dilation = ToArray(w.dilation), c->padding = w.Padding();
    c->groups = a.groups;
  });
  // The elements added by output_padding may hold one more window than there are inputs.
  Ints dims = PlainDims<N>(at, at.out()->shape, out_layout), count{x[0], x[1]};
  bool cut = false;
  for (int d = 0; d < N; ++d) {
    count.push_back(WindowCount(dims[2 + d], k[d], w.strides[d], w.dilation[d], w.pad.begin[d], w.pad.end[d], false));
    cut = cut || count.back() != x[2 + d];
  }
  if (cut) dx = Slice(dx, Ints(N + 2, 0), x);
  Expr dw = BackwardWeight<N>(data, g, a.groups, k, x[1], w.strides, w.dilation, w.Padding());
  return {ToLayout(dx, image, a.data_layout.str()), ToLayout(dw, weight, a.kernel_layout.str())};
}

}  // namespace
}  // namespace gradient

namespace {

template <OpName kName, int N>
Op DefineConv(const char* doc, OpGradient gradient, OpTraits traits) {
  traits.flops = ConvFlops;
  traits.scale_axes = ConvScaleAxes<ConvAttrs<N>, false>;
  return DefineOp(
      {.name = kName.text,
       .doc = doc,
       .inputs = {{"data",
                   "In data_layout. R1: its rank. R2: numbers. R5: with its padding at least as long as the window."},
                  {"weight",
                   "In kernel_layout. R1: its rank. R2: dtype of data, unless out_dtype is given. R3: data channels == "
                   "weight channels * groups; where each channel stands alone also (channels, multiplier, window). R4: "
                   "as channels and kernel_size say."}},
       .output = "In out_layout; extents floor((data + padding - dilation * (window - 1) - 1) / stride) + 1.",
       .attrs = TypeOf<ConvAttrs<N>>,
       .type_rel = RelGuess<kName, &Conv<N>::GuessWeight, &Conv<N>::TypeOfCall>,
       .lower = Conv<N>::Lower,
       .gradient = gradient,
       .pattern = OpPattern::kOutEWiseFusable,
       .source = "ONNX Conv-22",
       .traits = traits});
}

/// By the operator of qnn with the same attributes, in 32 bits.
template <class A, const Op* kQuantized>
IntegerValue ConvOnIntegers(const IntegerSite& s) {
  const auto& a = AttrsAs<A>(s.pre->attrs);
  const String& out = a.out_layout.empty() ? a.data_layout : a.out_layout;
  if (a.kernel_layout.str().find_first_of("0123456789") != std::string::npos) return integers::Failed();
  auto axis = [](const String& layout, char letter) {
    const size_t at = layout.str().find(letter);
    return at == std::string::npos ? -1 : static_cast<int64_t>(at);
  };
  return integers::MatrixProduct(s, *kQuantized, integers::WithInt32<A>(s.pre->attrs), axis(a.kernel_layout, 'O'),
                                 axis(out, 'C'));
}

constexpr OpGradient kTargetLayout =
    NoGradient("its layouts are those of a target; differentiate before AlterOpLayout");

// ---- transposed
template <int N>
struct ConvTranspose {
  using A = ConvTransposeAttrs<N>;
  ImageLayout data, out;
  KernelLayout kernel;
  Ints strides, dilation;
  Margins pad;
  Ints extra;

  ConvTranspose(const A& a, const char* op)
      : data(ReadImageLayout(a.data_layout, SpaceLetters(N), op, "data_layout")),
        out(ReadImageLayout(a.out_layout.empty() ? a.data_layout : a.out_layout, SpaceLetters(N), op, "out_layout")),
        kernel(ReadKernelLayout(a.kernel_layout, SpaceLetters(N), op)),
        strides(ReadPerDim(a.strides, N, 1, op, "strides")),
        dilation(ReadPerDim(a.dilation, N, 1, op, "dilation")),
        pad(ReadPadding(a.padding, N, op)),
        extra(ToInts(a.output_padding)) {
    if (extra.size() == 1) extra.resize(N, extra[0]);
    if (extra.size() != N)
      throw CompileError(std::string("[") + op + " R1] output_padding has " + Str(extra.size()) + " numbers, where " +
                         Str(N) + " are wanted");
  }
  PrimExpr Extent(const PrimExpr& in, const PrimExpr& size, int d) const {
    return (in - PrimExpr(1)) * PrimExpr(strides[d]) + WindowSpan(size, dilation[d]) +
           PrimExpr(int64_t{Checked(extra[d]) - pad.begin[d] - pad.end[d]});
  }
  static void GuessWeight(const A& a, Array<Type>* types) {
    const auto* x = AsTensor((*types)[0]);
    if (!x || AsTensor((*types)[1]) || !HasValue(a.channels) || !a.kernel_size.defined() || a.kernel_size.size() != N)
      return;
    ConvTranspose c(a, "nn.conv_transpose");
    if (c.data.rank != static_cast<int64_t>(x->shape.size()) || c.kernel.dims.size() != N + 2) return;
    std::vector<PrimExpr> shape(N + 2);
    shape[c.kernel.i] = x->shape[c.data.c], shape[c.kernel.o] = PrimExpr(ValueOf(a.channels) / a.groups);
    for (int d = 0; d < N; ++d) shape[c.kernel.space[d]] = PrimExpr(a.kernel_size[d]);
    Guess(types, 1, Shape(shape), x->dtype);
  }
  static Type TypeOfCall(const A& a, const TypeArgs& in) {
    ConvTranspose c(a, in.op());
    in.Number(0, "R2");
    in.Rank(0, c.data.rank, "R1");
    in.Rank(1, static_cast<int64_t>(c.kernel.dims.size()), "R1");
    if (a.out_dtype.is_void()) in.SameDtype(0, 1, "R2");
    if (c.data.c_in >= 0 || c.out.c_in >= 0 || c.kernel.o_block > 1 || c.kernel.i_block > 1)
      in.Fail("R1", "split layouts are not supported by this operator");
    int64_t ci = in.dim(0, c.data.c), wi = in.dim(1, c.kernel.i), co = in.dim(1, c.kernel.o);
    if (ci >= 0 && wi >= 0 && ci != wi)
      in.Fail("R3", "`weight` has " + Str(wi) + " input channels, `data` has " + Str(ci));
    if (ci >= 0 && ci % a.groups != 0)
      in.Fail("R3", "`data` has " + Str(ci) + " channels, which groups = " + Str(a.groups) + " does not divide");
    if (HasValue(a.channels) && co >= 0 && ValueOf(a.channels) >= 0 && ValueOf(a.channels) != Checked(co) * a.groups) {
      in.Fail("R4", "`weight` has " + Str(co) + " output channels a group, groups = " + Str(a.groups) +
                        " and channels = " + Str(ValueOf(a.channels)));
    }
    const PrimExpr &x_c = in.shape(0)[c.data.c], &w_o = in.shape(1)[c.kernel.o];
    if (!in.Same(x_c, in.shape(1)[c.kernel.i]) ||
        (a.groups > 1 && !in.Same(floormod(x_c, PrimExpr(a.groups)), PrimExpr(0))))
      in.Fail("R3", in.Show(1) + " does not fit the channels of " + in.Show(0));
    std::vector<PrimExpr> shape(c.out.rank);
    shape[c.out.n] = in.shape(0)[c.data.n];
    shape[c.out.c] = co < 0 ? TypeDim(Times(w_o, a.groups)) : PrimExpr(int64_t{Checked(co) * a.groups});
    if (HasValue(a.channels) && ValueOf(a.channels) >= 0 && !in.Same(shape[c.out.c], a.channels))
      in.Fail("R4", in.Show(1) + " and channels = " + Str(ValueOf(a.channels)));
    for (int d = 0; d < N; ++d) {
      int64_t size = in.dim(1, c.kernel.space[d]), extent = in.dim(0, c.data.space[d]);
      if (a.kernel_size.defined() && size >= 0 && (a.kernel_size.size() != N || a.kernel_size[d] != size)) {
        in.Fail("R4", "`weight` is " + ShowType(in.type(1)) + " and kernel_size = " + ShowInts(ToInts(a.kernel_size)));
      }
      const PrimExpr &open = in.shape(1)[c.kernel.space[d]], window = Conv<N>::WindowSize(a.kernel_size, open, d);
      if (size < 0 && !(in.Same(open, window) && in.AtLeast(open, 1)))
        in.Fail("R4", "the window of " + in.Show(1) + " is empty");
      PrimExpr e = UnknownDim();
      if (size >= 0 && extent >= 0) {
        e = extent == 0 ? PrimExpr(0) : c.Extent(in.shape(0)[c.data.space[d]], window, d);
        if (DimOf(e) < 0)
          in.Fail("R5",
                  "padding " + ShowInts(ToInts(a.padding)) + " cuts more than dimension " + Str(d) + " of space has");
      } else if (const PrimExpr& n = in.shape(0)[c.data.space[d]];
                 !n.as<tir::AnyNode>() && !window.as<tir::AnyNode>()) {
        e = TypeDim(c.Extent(n, window, d));
        if (!in.AtLeast(e, 0)) in.Fail("R5", "padding " + ShowInts(ToInts(a.padding)) + " cuts more than there is");
      }
      shape[c.out.space[d]] = e;
    }
    return TensorType(Shape(shape), a.out_dtype.is_void() ? in.dtype(0) : a.out_dtype);
  }
  static Tensor Lower(const A& a, const Tensors& in) {
    ConvTranspose c(a, "nn.conv_transpose");
    const Tensor &x = in[0], &w = in[1];
    DataType t = a.out_dtype.is_void() ? x.dtype() : a.out_dtype, acc = Wide(t);
    PrimExpr per_group = a.groups == 1 ? x.shape()[c.data.c] : floordiv(x.shape()[c.data.c], PrimExpr(a.groups)),
             out_per_group = w.shape()[c.kernel.o];
    std::vector<PrimExpr> shape(c.out.rank);
    shape[c.out.n] = x.shape()[c.data.n];
    shape[c.out.c] = Times(out_per_group, a.groups);
    Array<te::IterVar> k{te::ReduceAxis(0, per_group, "ic")};
    for (int d = 0; d < N; ++d) {
      const PrimExpr window = Conv<N>::WindowSize(a.kernel_size, w.shape()[c.kernel.space[d]], d);
      k.push_back(te::ReduceAxis(0, window, "k" + Str(d)));
      shape[c.out.space[d]] = c.Extent(x.shape()[c.data.space[d]], window, d);
    }
    Tensor sum = te::Compute(
        Shape(shape),
        [&](Indices i) {
          PrimExpr oc = i[c.out.c], ic = k[0]->var, o_in_group = oc;
          if (a.groups != 1) {
            ic = floordiv(oc, out_per_group) * per_group + ic;
            o_in_group = floormod(oc, out_per_group);
          }
          // Output p takes from input q through window position k where q * stride + k * dilation == p + pad.
          Shape from, window;
          PrimExpr inside;
          for (int d = 0; d < N; ++d) {
            PrimExpr p = i[c.out.space[d]] + PrimExpr(c.pad.begin[d]) - Times(k[d + 1]->var, c.dilation[d]);
            PrimExpr q = c.strides[d] == 1 ? p : floordiv(p, PrimExpr(c.strides[d]));
            if (c.strides[d] != 1) inside = AndAlso(inside, equal(floormod(p, PrimExpr(c.strides[d])), PrimExpr(0)));
            inside = AndAlso(inside, InRange(q, x.shape()[c.data.space[d]], true, true));
            from.push_back(q);
            window.push_back(k[d + 1]->var);
          }
          PrimExpr v = if_then_else(inside, x(ImageAt(c.data, i[c.out.n], ic, from)), tir::make_const(x.dtype(), 0));
          return te::Sum(cast(acc, v) * cast(acc, w(KernelAt(c.kernel, o_in_group, ic, window))), k);
        },
        "conv_transpose");
    return topi::Cast(sum, t);
  }
};

template <OpName kName, int N>
Op DefineConvTranspose(const char* doc) {
  const Op op = DefineOp(
      {.name = kName.text,
       .doc = doc,
       .inputs = {{"data", "In data_layout. R1: its rank. R2: numbers. R3: groups divides its channels."},
                  {"weight",
                   "In kernel_layout. R1: its rank. R2: dtype of data, unless out_dtype is given. R3: as many input "
                   "channels as data. R4: as channels and kernel_size say."}},
       .output = "In out_layout; extents (data - 1) * stride + dilation * (window - 1) + 1 + output_padding - padding. "
                 "R5: not negative.",
       .attrs = TypeOf<ConvTransposeAttrs<N>>,
       .type_rel = RelGuess<kName, &ConvTranspose<N>::GuessWeight, &ConvTranspose<N>::TypeOfCall>,
       .lower = ConvTranspose<N>::Lower,
       .gradient = gradient::ConvTransposeBack<N>,
       .pattern = OpPattern::kOutEWiseFusable,
       .source = "ONNX ConvTranspose-22",
       .traits = {.precision = Precision::kAlways,
                  .flops = ConvTransposeFlops,
                  .scale_axes = ConvScaleAxes<ConvTransposeAttrs<N>, true>,
                  .integers = N == 2 ? ConvOnIntegers<Conv2DTransposeAttrs, &op::qnn::conv2d_transpose> : nullptr}});
  const runtime::TypedPackedFunc<Expr(Attrs, Array<Expr>, Array<Type>)> legal(ConvTransposeByPhases<N>);
  op.SetAttrValue("FTVMLegalize", Any(PackedFunc(legal)));
  return op;
}

}  // namespace

const Op op::conv1d = DefineConv<"nn.conv1d", 1>(
    "Convolution over one spatial dimension (correlation: the window is not mirrored).", gradient::ConvBack<1>,
    {.precision = Precision::kAlways, .kernel = kernel::GenerateConv<1>});
const Op op::conv2d = DefineConv<"nn.conv2d", 2>(
    "Convolution over two spatial dimensions (correlation: the window is not mirrored).", gradient::ConvBack<2>,
    {.precision = Precision::kAlways,
     .kernel = kernel::GenerateConv<2>,
     .integers = ConvOnIntegers<Conv2DAttrs, &op::qnn::conv2d>,
     .counted = true});
const Op op::conv3d = DefineConv<"nn.conv3d", 3>(
    "Convolution over three spatial dimensions (correlation: the window is not mirrored).", gradient::ConvBack<3>,
    {.precision = Precision::kAlways, .kernel = kernel::GenerateConv<3>});
const Op op::conv2d_nchwc =
    DefineConv<"nn.contrib_conv2d_NCHWc", 2>("nn.conv2d whose channels are split into blocks.", kTargetLayout,
                                             {.kernel = kernel::GenerateBlockedConv2D, .narrow_weight = true});
const Op op::depthwise_conv2d_nchwc = DefineConv<"nn.contrib_depthwise_conv2d_NCHWc", 2>(
    "nn.conv2d of one channel a group, split into blocks.", kTargetLayout,
    {.kernel = kernel::GenerateBlockedConv2D, .narrow_weight = true});
const Op op::conv1d_transpose =
    DefineConvTranspose<"nn.conv1d_transpose", 1>("The adjoint of a convolution over one spatial dimension.");
const Op op::conv2d_transpose =
    DefineConvTranspose<"nn.conv2d_transpose", 2>("The adjoint of a convolution over two spatial dimensions.");
const Op op::conv3d_transpose =
    DefineConvTranspose<"nn.conv3d_transpose", 3>("The adjoint of a convolution over three spatial dimensions.");

const Op& ConvOp(int spatial) { return spatial == 1 ? op::conv1d : spatial == 2 ? op::conv2d : op::conv3d; }
int ConvDims(const RelayExpr& op) {
  for (int n : {1, 2, 3}) {
    if (op.same_as(ConvOp(n))) return n;
  }
  return 0;
}

}  // namespace baton::relay
