// SPDX-License-Identifier: Apache-2.0
// Convolutions over 1, 2 and 3 spatial dimensions, in any layout. The loops here are the plain definition; kernel
// generators take over where they know a faster way.
#include <baton/relay/op/nn.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>
#include <relay/kernel/generators.h>

#include <string>

#include "../gradient.h"
#include "../qnn/integers.h"
#include "../sampling.h"
#include "flops.h"
#include "scale_axes.h"
#include "window_gradient.h"

namespace baton::relay {
namespace {

struct DeformableConv2DAttrs : ConvFields<DeformableConv2DAttrs, 2> {
  static constexpr auto _type_key = "relay.attrs.DeformableConv2DAttrs";
  int64_t deformable_groups = 1;
  static constexpr void Describe(auto& d) {
    DescribeWindow(d);
    d(F<&DeformableConv2DAttrs::deformable_groups>, "Number of groups of channels with offsets of their own.",
      AtLeast(1));
    DescribeGroups(d);
    DescribeWeight(d);
    DescribeLayouts(d, "\"NCHW\".", "\"OIHW\".");
    DescribeDtype(d);
  }
};

/// Where a weight's dimensions stand. For a plain convolution O are output channels and I those of a group's input.
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

  Shape OutShape(const Shape& x, const Shape& w, bool symbolic) const {
    std::vector<PrimExpr> shape(out.rank);
    shape[out.n] = x[data.n];
    PrimExpr channels = Times(w[kernel.o], kernel.o_block);
    shape[out.c] = out.c_in < 0 ? channels : ceildiv(channels, PrimExpr(out.block));
    if (out.c_in >= 0) shape[out.c_in] = out.block;
    for (int d = 0; d < N; ++d) {
      const PrimExpr &extent = x[data.space[d]], &size = w[kernel.space[d]];
      bool known = DimOf(size) >= 0 && (DimOf(extent) >= 0 || symbolic);
      shape[out.space[d]] =
          known ? WindowCount(extent, DimOf(size), strides[d], dilation[d], pad.begin[d], pad.end[d], false)
                : UnknownDim();
    }
    return Shape(shape);
  }

  static void GuessWeight(const A& a, Array<Type>* types) {
    const auto* x = AsTensor((*types)[0]);
    if (!x || AsTensor((*types)[1]) || !HasValue(a.channels) || !a.kernel_size.defined() || a.kernel_size.size() != N)
      return;
    ImageLayout l = ReadImageLayout(a.data_layout, SpaceLetters(N), "nn.conv", "data_layout");
    KernelLayout k = ReadKernelLayout(a.kernel_layout, SpaceLetters(N), "nn.conv");
    if (l.rank != static_cast<int64_t>(x->shape.size()) || DimOf(x->shape[l.c]) < 0) return;
    int64_t o = ValueOf(a.channels), i = DimOf(x->shape[l.c]) * l.block / a.groups;
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
      if (size == 0) in.Fail("R4", "the window of " + in.Show(1) + " is empty");
      if (extent >= 0 && size > 0 &&
          Checked(extent) + c.pad.begin[d] + c.pad.end[d] < WindowSpan(size, c.dilation[d])) {
        in.Fail("R5", "the window spans " + Str(WindowSpan(size, c.dilation[d])) +
                          " elements, `data` with its padding has " + Str(extent + c.pad.begin[d] + c.pad.end[d]) +
                          " in dimension " + Str(c.data.space[d]));
      }
    }
    Shape shape;
    for (const PrimExpr& d : c.OutShape(in.shape(0), in.shape(1), true)) shape.push_back(TypeDim(d));
    return TensorType(shape, a.out_dtype.is_void() ? in.dtype(0) : a.out_dtype);
  }

  static Tensor Lower(const A& a, const Tensors& in) {
    Conv c(a, "nn.conv");
    const Tensor &x = in[0], &w = in[1];
    DataType t = a.out_dtype.is_void() ? x.dtype() : a.out_dtype, acc = Wide(t);
    PrimExpr per_group = Times(w.shape()[c.kernel.i], c.kernel.i_block);  // input channels of a group
    PrimExpr out_channels = Times(w.shape()[c.kernel.o], c.kernel.o_block);
    PrimExpr out_per_group = a.groups == 1 ? out_channels : floordiv(out_channels, PrimExpr(a.groups));
    // Every output channel sums in the same order: input channel, then window.
    Array<te::IterVar> k{te::ReduceAxis(0, per_group, "ic")};
    for (int d = 0; d < N; ++d) k.push_back(te::ReduceAxis(0, w.shape()[c.kernel.space[d]], "k" + Str(d)));
    Tensor sum = te::Compute(
        c.OutShape(x.shape(), w.shape(), true),
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
          bool tail = c.out.c_in >= 0 && !(co && *co % c.out.block == 0);
          PrimExpr v = x(ImageAt(c.data, i[c.out.n], ic, from)), u;
          if (tail) {
            u = if_then_else(oc < out_channels,
                             w(KernelAt(c.kernel, min(oc, out_channels - PrimExpr(1)), k[0]->var, window)),
                             tir::make_const(w.dtype(), 0));
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
  return {dx, ToLayout(dw, weight, a.kernel_layout.str())};
}

template <int N>
Grads ConvTransposeBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<ConvTransposeAttrs<N>>();
  SameDtypes(at);
  ConvWindow<ConvTransposeAttrs<N>, N> w(a, at.op());
  const std::string image = PlainLayout("NC", N), weight = PlainLayout("IO", N), forward = PlainLayout("OI", N);
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
                   "weight channels * groups. R4: as channels and kernel_size say."}},
       .output = "In out_layout; extents floor((data + padding - dilation * (window - 1) - 1) / stride) + 1.",
       .attrs = TypeOf<ConvAttrs<N>>,
       .type_rel = RelGuess<kName, &Conv<N>::GuessWeight, &Conv<N>::TypeOfCall>,
       .lower = Conv<N>::Lower,
       .gradient = gradient,
       .pattern = OpPattern::kOutEWiseFusable,
       .source = "ONNX Conv-22",
       .traits = traits});
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
  PrimExpr Extent(const PrimExpr& in, int64_t size, int d) const {
    return (in - PrimExpr(1)) * PrimExpr(strides[d]) +
           PrimExpr(int64_t{WindowSpan(size, dilation[d]) + extra[d] - pad.begin[d] - pad.end[d]});
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
    std::vector<PrimExpr> shape(c.out.rank);
    shape[c.out.n] = in.shape(0)[c.data.n];
    shape[c.out.c] = MakeDim(co < 0 ? -1 : int64_t{Checked(co) * a.groups});
    for (int d = 0; d < N; ++d) {
      int64_t size = in.dim(1, c.kernel.space[d]), extent = in.dim(0, c.data.space[d]);
      if (a.kernel_size.defined() && size >= 0 && (a.kernel_size.size() != N || a.kernel_size[d] != size)) {
        in.Fail("R4", "`weight` is " + ShowType(in.type(1)) + " and kernel_size = " + ShowInts(ToInts(a.kernel_size)));
      }
      PrimExpr e = UnknownDim();
      if (size >= 0 && extent >= 0) {
        e = extent == 0 ? PrimExpr(0) : c.Extent(in.shape(0)[c.data.space[d]], size, d);
        if (DimOf(e) < 0)
          in.Fail("R5",
                  "padding " + ShowInts(ToInts(a.padding)) + " cuts more than dimension " + Str(d) + " of space has");
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
      k.push_back(te::ReduceAxis(0, w.shape()[c.kernel.space[d]], "k" + Str(d)));
      shape[c.out.space[d]] = c.Extent(x.shape()[c.data.space[d]], DimOf(w.shape()[c.kernel.space[d]]), d);
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
  return DefineOp(
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
                  .integers = N == 2 ? integers::Conv<Conv2DTransposeAttrs> : nullptr}});
}

// ---- deformable
void GuessDeformable(const DeformableConv2DAttrs& a, Array<Type>* types) {
  const auto* x = AsTensor((*types)[0]);
  if (!x || x->shape.size() != 4 || !a.kernel_size.defined() || a.kernel_size.size() != 2) return;
  Checked taps = Checked(a.kernel_size[0]) * a.kernel_size[1] * a.deformable_groups;
  if (HasValue(a.channels) && DimOf(x->shape[1]) >= 0) {
    Guess(types, 2,
          {PrimExpr(ValueOf(a.channels)), PrimExpr(DimOf(x->shape[1]) / a.groups), PrimExpr(a.kernel_size[0]),
           PrimExpr(a.kernel_size[1])},
          x->dtype);
  }
  Ints s = ReadPerDim(a.strides, 2, 1, "nn.deformable_conv2d", "strides"),
       dil = ReadPerDim(a.dilation, 2, 1, "nn.deformable_conv2d", "dilation");
  Margins pad = ReadPadding(a.padding, 2, "nn.deformable_conv2d");
  Shape offset{x->shape[0], PrimExpr(int64_t{2 * taps})};
  for (int d = 0; d < 2; ++d)
    offset.push_back(
        TypeDim(WindowCount(x->shape[d + 2], a.kernel_size[d], s[d], dil[d], pad.begin[d], pad.end[d], false)));
  Guess(types, 1, offset, x->dtype);
}
Type DeformableType(const DeformableConv2DAttrs& a, const TypeArgs& in) {
  if (a.data_layout != "NCHW" || a.kernel_layout != "OIHW" || (!a.out_layout.empty() && a.out_layout != "NCHW"))
    in.Fail("R1", "layouts other than NCHW and OIHW are not supported by this operator");
  for (int i : {0, 1, 2}) in.Rank(i, 4, "R1");
  in.Floating(0, "R2");
  for (int i = 1; i < in.size(); ++i) in.SameDtype(0, i, "R2");
  Ints s = ReadPerDim(a.strides, 2, 1, in.op(), "strides"), dil = ReadPerDim(a.dilation, 2, 1, in.op(), "dilation");
  Margins pad = ReadPadding(a.padding, 2, in.op());
  int64_t ci = in.dim(0, 1), wi = in.dim(2, 1), kh = in.dim(2, 2), kw = in.dim(2, 3);
  if (kh < 0 || kw < 0) in.Fail("R4", in.Show(2) + ": the window's extents are not known");
  if (ci >= 0 && wi >= 0 && ci != Checked(wi) * a.groups)
    in.Fail("R3",
            "`weight` has " + Str(wi) + " input channels, `data` has " + Str(ci) + " and groups = " + Str(a.groups));
  Shape out{in.shape(0)[0], in.shape(2)[0]};
  for (int d = 0; d < 2; ++d)
    out.push_back(
        MakeDim(WindowCount(in.dim(0, d + 2), in.dim(2, d + 2), s[d], dil[d], pad.begin[d], pad.end[d], false)));
  Checked taps = Checked(kh) * kw * a.deformable_groups;
  for (int i : {1, 3}) {
    if (i >= in.size()) break;
    in.Rank(i, 4, "R1");
    int64_t want = i == 1 ? 2 * taps : taps;
    bool fits = in.dim(i, 1) < 0 || in.dim(i, 1) == want;
    for (int d = 2; d < 4; ++d) fits = fits && in.Same(in.shape(i)[d], out[d]);
    if (!fits)
      in.Fail("R4", in.Show(i) + ", where (N, " + Str(want) + ", " + ShowShape({out[2], out[3]}) + ") is wanted");
  }
  return TensorType(out, a.out_dtype.is_void() ? in.dtype(0) : a.out_dtype);
}
Tensor LowerDeformable(const DeformableConv2DAttrs& a, const Tensors& in, const Type& out_type) {
  const Tensor &x = in[0], &offset = in[1], &w = in[2];
  Ints s = ReadPerDim(a.strides, 2, 1, "", ""), dil = ReadPerDim(a.dilation, 2, 1, "", "");
  Margins pad = ReadPadding(a.padding, 2, "");
  DataType t = AsTensor(out_type)->dtype, acc = Wide(t);
  PrimExpr kh = w.shape()[2], kw = w.shape()[3], channels = x.shape()[1], per_group = w.shape()[1];
  PrimExpr h = x.shape()[2], wd = x.shape()[3], zero = tir::make_const(acc, 0), one = tir::make_const(acc, 1);
  Shape out{x.shape()[0], w.shape()[0]};
  for (int d = 0; d < 2; ++d)
    out.push_back(
        WindowCount(x.shape()[d + 2], DimOf(w.shape()[d + 2]), s[d], dil[d], pad.begin[d], pad.end[d], false));
  // The sampled input first: (N, C, kh, kw, oh, ow).
  PrimExpr per_offset = floordiv(channels, PrimExpr(a.deformable_groups)), taps = kh * kw;
  Tensor sampled = te::Compute(
      {x.shape()[0], channels, kh, kw, out[2], out[3]},
      [&](Indices i) {
        PrimExpr tap = i[2] * kw + i[3], g = floordiv(i[1], per_offset);
        PrimExpr at = (g * taps + tap) * PrimExpr(2);
        PrimExpr y = cast(acc, i[4] * PrimExpr(s[0]) - PrimExpr(pad.begin[0]) + i[2] * PrimExpr(dil[0])) +
                     cast(acc, offset(i[0], at, i[4], i[5]));
        PrimExpr xx = cast(acc, i[5] * PrimExpr(s[1]) - PrimExpr(pad.begin[1]) + i[3] * PrimExpr(dil[1])) +
                      cast(acc, offset(i[0], at + PrimExpr(1), i[4], i[5]));
        PrimExpr y0 = floor(y), x0 = floor(xx), fy = y - y0, fx = xx - x0;
        auto corner = [&](int dy, int dx) {
          PrimExpr r = y0 + tir::make_const(acc, dy), q = x0 + tir::make_const(acc, dx);
          PrimExpr inside = r >= zero && r < cast(acc, h) && q >= zero && q < cast(acc, wd);
          PrimExpr ri = cast(DataType::Int(64), te::Select(inside, r, zero)),
                   qi = cast(DataType::Int(64), te::Select(inside, q, zero));
          return if_then_else(inside, cast(acc, x(i[0], i[1], ri, qi)), zero);
        };
        PrimExpr v = (one - fy) * ((one - fx) * corner(0, 0) + fx * corner(0, 1)) +
                     fy * ((one - fx) * corner(1, 0) + fx * corner(1, 1));
        if (in.size() > 3) v = v * cast(acc, in[3](i[0], g * taps + tap, i[4], i[5]));
        return v;
      },
      "sampled");
  Array<te::IterVar> k{te::ReduceAxis(0, per_group, "ic"), te::ReduceAxis(0, kh, "kh"), te::ReduceAxis(0, kw, "kw")};
  Tensor sum = te::Compute(
      out,
      [&](Indices i) {
        PrimExpr ic = k[0]->var;
        if (a.groups != 1) ic = floordiv(i[1], floordiv(w.shape()[0], PrimExpr(a.groups))) * per_group + ic;
        return te::Sum(
            sampled(i[0], ic, k[1]->var, k[2]->var, i[2], i[3]) * cast(acc, w(i[1], k[0]->var, k[1]->var, k[2]->var)),
            k);
      },
      "deformable_conv2d");
  return topi::Cast(sum, t);
}

}  // namespace

namespace gradient {
namespace {

Expr DecomposeDeformableConv2D(const Call& call, const Array<Expr>& args) {
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
    taps.push_back(TapsOf({Reshape(p, {batch, places}), t}, x[d + 2], SampleMethod::kLinear, true));
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

}  // namespace
}  // namespace gradient

const Op op::conv1d =
    DefineConv<"nn.conv1d", 1>("Convolution over one spatial dimension (correlation: the window is not mirrored).", gradient::ConvBack<1>,
    {.precision = Precision::kAlways, .kernel = kernel::GenerateConv<1>});
const Op op::conv2d =
    DefineConv<"nn.conv2d", 2>("Convolution over two spatial dimensions (correlation: the window is not mirrored).", gradient::ConvBack<2>,
    {.precision = Precision::kAlways, .kernel = kernel::GenerateConv<2>, .integers = integers::Conv<Conv2DAttrs>});
const Op op::conv3d =
    DefineConv<"nn.conv3d", 3>("Convolution over three spatial dimensions (correlation: the window is not mirrored).", gradient::ConvBack<3>,
    {.precision = Precision::kAlways, .kernel = kernel::GenerateConv<3>});
const Op op::conv2d_nchwc =
    DefineConv<"nn.contrib_conv2d_NCHWc", 2>("nn.conv2d whose channels are split into blocks.", kTargetLayout,
    {.kernel = kernel::GenerateBlockedConv2D});
const Op op::depthwise_conv2d_nchwc = DefineConv<"nn.contrib_depthwise_conv2d_NCHWc", 2>(
    "nn.conv2d of one channel a group, split into blocks.", kTargetLayout,
    {.kernel = kernel::GenerateBlockedConv2D});
const Op op::conv1d_transpose =
    DefineConvTranspose<"nn.conv1d_transpose", 1>("The adjoint of a convolution over one spatial dimension.");
const Op op::conv2d_transpose =
    DefineConvTranspose<"nn.conv2d_transpose", 2>("The adjoint of a convolution over two spatial dimensions.");
const Op op::conv3d_transpose =
    DefineConvTranspose<"nn.conv3d_transpose", 3>("The adjoint of a convolution over three spatial dimensions.");
const Op op::deformable_conv2d = DefineOp({
    .name = "nn.deformable_conv2d",
    .doc = "Convolution whose window's taps are moved by offsets, sampled bilinearly with zeros outside.",
    .inputs = {{"data", "(N, C, H, W). R1: NCHW. R2: floating dtype."},
               {"offset",
                "(N, 2 * deformable_groups * kh * kw, oh, ow): (y, x) of each tap, in elements. R4: its extents fit."},
               {"weight", "(O, C / groups, kh, kw). R3: its channels fit. R4: a known window."},
               {"mask",
                "Optional. (N, deformable_groups * kh * kw, oh, ow): a factor for each tap. R4: its extents fit."}},
    .output = "(N, O, oh, ow).",
    .attrs = TypeOf<DeformableConv2DAttrs>,
    .num_inputs = -1,
    .type_rel = RelGuess<"nn.deformable_conv2d", GuessDeformable, DeformableType>,
    .lower = LowerDeformable,
    .gradient = gradient::DecomposeDeformableConv2D,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX DeformConv-22",
});

}  // namespace baton::relay
