// SPDX-License-Identifier: Apache-2.0
// nn.deformable_conv2d: a convolution whose taps have offsets.
#include <baton/relay/op/nn.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>

#include "../sampling.h"
#include "flops.h"
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

/// Where the dimensions of a plain order are in a layout; empty where it orders others.
Ints PlacesIn(const String& layout, std::string_view plain) {
  Ints at;
  for (const char axis : plain) {
    const size_t found = layout.view().find(axis);
    if (layout.view().size() != plain.size() || found == std::string_view::npos) return {};
    at.push_back(static_cast<int64_t>(found));
  }
  return at;
}
/// Where N, C, H and W, and O, I, H and W are.
struct Orders {
  Ints data, kernel, out;
  explicit Orders(const DeformableConv2DAttrs& a)
      : data(PlacesIn(a.data_layout, "NCHW")),
        kernel(PlacesIn(a.kernel_layout, "OIHW")),
        out(a.out_layout.empty() ? data : PlacesIn(a.out_layout, "NCHW")) {}
  bool known() const { return !data.empty() && !kernel.empty() && !out.empty(); }
  bool plain() const { return data == Ints{0, 1, 2, 3} && kernel == data && out == data; }
};
Shape Ordered(const Shape& plain, const Ints& at) {
  Shape out = plain;
  for (size_t k = 0; k < at.size(); ++k) out.Set(at[k], plain[k]);
  return out;
}
/// A tensor in a plain order of its dimensions.
struct Plainly {
  Tensor of;
  Ints at;
  PrimExpr extent(int64_t k) const { return of.shape()[at[k]]; }
  PrimExpr operator()(const PrimExpr& a, const PrimExpr& b, const PrimExpr& c, const PrimExpr& d) const {
    return of(Ordered({a, b, c, d}, at));
  }
};

void GuessDeformable(const DeformableConv2DAttrs& a, Array<Type>* types) {
  const auto* given = AsTensor((*types)[0]);
  const Orders order(a);
  if (!given || given->shape.size() != 4 || !a.kernel_size.defined() || a.kernel_size.size() != 2 || !order.known())
    return;
  Shape x;
  for (int64_t at : order.data) x.push_back(given->shape[at]);
  Checked taps = Checked(a.kernel_size[0]) * a.kernel_size[1] * a.deformable_groups;
  if (HasValue(a.channels) && DimOf(x[1]) >= 0) {
    Guess(types, 2,
          Ordered({PrimExpr(ValueOf(a.channels)), PrimExpr(DimOf(x[1]) / a.groups), PrimExpr(a.kernel_size[0]),
                   PrimExpr(a.kernel_size[1])},
                  order.kernel),
          given->dtype);
  }
  Ints s = ReadPerDim(a.strides, 2, 1, "nn.deformable_conv2d", "strides"),
       dil = ReadPerDim(a.dilation, 2, 1, "nn.deformable_conv2d", "dilation");
  Margins pad = ReadPadding(a.padding, 2, "nn.deformable_conv2d");
  Shape offset{x[0], PrimExpr(int64_t{2 * taps})};
  for (int d = 0; d < 2; ++d)
    offset.push_back(TypeDim(WindowCount(x[d + 2], a.kernel_size[d], s[d], dil[d], pad.begin[d], pad.end[d], false)));
  Guess(types, 1, Ordered(offset, order.data), given->dtype);
}
Type DeformableType(const DeformableConv2DAttrs& a, const TypeArgs& in) {
  const Orders order(a);
  if (!order.known()) in.Fail("R1", "the layouts are orders of N, C, H, W and of O, I, H, W, without blocks");
  for (int i : {0, 1, 2}) in.Rank(i, 4, "R1");
  in.Floating(0, "R2");
  for (int i = 1; i < in.size(); ++i) in.SameDtype(0, i, "R2");
  Ints s = ReadPerDim(a.strides, 2, 1, in.op(), "strides"), dil = ReadPerDim(a.dilation, 2, 1, in.op(), "dilation");
  Margins pad = ReadPadding(a.padding, 2, in.op());
  const Ints &at = order.data, &wt = order.kernel;
  int64_t ci = in.dim(0, at[1]), wi = in.dim(2, wt[1]), kh = in.dim(2, wt[2]), kw = in.dim(2, wt[3]);
  if (kh < 0 || kw < 0) in.Fail("R4", in.Show(2) + ": the window's extents are not known");
  if (ci >= 0 && wi >= 0 ? ci != Checked(wi) * a.groups
                         : !in.Same(in.shape(0)[at[1]], Times(in.shape(2)[wt[1]], a.groups)))
    in.Fail("R3",
            "`weight` has " + Str(wi) + " input channels, `data` has " + Str(ci) + " and groups = " + Str(a.groups));
  Shape out{in.shape(0)[at[0]], in.shape(2)[wt[0]]};
  for (int d = 0; d < 2; ++d)
    out.push_back(
        WindowCount(in.shape(0)[at[d + 2]], in.dim(2, wt[d + 2]), s[d], dil[d], pad.begin[d], pad.end[d], false));
  out = in.Fitting(out);
  Checked taps = Checked(kh) * kw * a.deformable_groups;
  for (int i : {1, 3}) {
    if (i >= in.size()) break;
    in.Rank(i, 4, "R1");
    int64_t want = i == 1 ? 2 * taps : taps;
    bool fits = in.Same(in.shape(i)[at[0]], out[0]) && in.Same(in.shape(i)[at[1]], PrimExpr(want));
    for (int d = 2; d < 4; ++d) fits = fits && in.Same(in.shape(i)[at[d]], out[d]);
    if (!fits)
      in.Fail("R4", in.Show(i) + ", where (N, " + Str(want) + ", " + ShowShape({out[2], out[3]}) + ") is wanted");
  }
  return TensorType(Ordered(out, order.out), a.out_dtype.is_void() ? in.dtype(0) : a.out_dtype);
}
Tensor LowerDeformable(const DeformableConv2DAttrs& a, const Tensors& in, const Type& out_type) {
  const Orders order(a);
  const Plainly x{in[0], order.data}, offset{in[1], order.data}, w{in[2], order.kernel};
  Ints s = ReadPerDim(a.strides, 2, 1, "", ""), dil = ReadPerDim(a.dilation, 2, 1, "", "");
  Margins pad = ReadPadding(a.padding, 2, "");
  DataType t = AsTensor(out_type)->dtype, acc = Wide(t);
  PrimExpr kh = w.extent(2), kw = w.extent(3), channels = x.extent(1), per_group = w.extent(1);
  PrimExpr h = x.extent(2), wd = x.extent(3), zero = tir::make_const(acc, 0), one = tir::make_const(acc, 1);
  Shape out{x.extent(0), w.extent(0)};
  for (int d = 0; d < 2; ++d)
    out.push_back(WindowCount(x.extent(d + 2), DimOf(w.extent(d + 2)), s[d], dil[d], pad.begin[d], pad.end[d], false));
  // The sampled input first: (N, C, kh, kw, oh, ow).
  PrimExpr per_offset = floordiv(channels, PrimExpr(a.deformable_groups)), taps = kh * kw;
  Tensor sampled = te::Compute(
      {x.extent(0), channels, kh, kw, out[2], out[3]},
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
        if (in.size() > 3) v = v * cast(acc, Plainly{in[3], order.data}(i[0], g * taps + tap, i[4], i[5]));
        return v;
      },
      "sampled");
  Array<te::IterVar> k{te::ReduceAxis(0, per_group, "ic"), te::ReduceAxis(0, kh, "kh"), te::ReduceAxis(0, kw, "kw")};
  Tensor sum = te::Compute(
      Ordered(out, order.out),
      [&](Indices made) {
        std::vector<PrimExpr> i;
        for (int64_t at : order.out) i.push_back(made[at]);
        PrimExpr ic = k[0]->var;
        if (a.groups != 1) ic = floordiv(i[1], floordiv(w.extent(0), PrimExpr(a.groups))) * per_group + ic;
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
  if (const Orders order(a); !order.plain()) {
    // In the plain orders, and back.
    auto own = make_object<DeformableConv2DAttrs>(a);
    own->data_layout = "NCHW", own->kernel_layout = "OIHW", own->out_layout = "";
    Array<Expr> plain;
    for (size_t i = 0; i < args.size(); ++i) plain.push_back(Permute(args[i], i == 2 ? order.kernel : order.data));
    Ints back(4);
    for (size_t k = 0; k < 4; ++k) back[order.out[k]] = static_cast<int64_t>(k);
    return Permute(Call(CallNode{.op = call->op, .args = plain, .attrs = Attrs(own)}), back);
  }
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
    // The place of the window's element without its offset, (elements of the window, oh, ow).
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
  // The samples are a stack of channels, and the window is one element now.
  Val weight = AsVal(Reshape(args[2], {w[0], w[1] * size, 1, 1}), at.dtype(2), t);
  return MakeCall<ConvAttrs<2>>(
      ConvOp(2), {Reshape(v, {x[0], x[1] * size, out[2], out[3]}), weight},
      [&](ConvAttrs<2>* c) { c->groups = a.groups, c->channels = PrimExpr(w[0]), c->kernel_size = {1, 1}; });
}

}  // namespace
}  // namespace gradient

const Op op::deformable_conv2d = DefineOp({
    .name = "nn.deformable_conv2d",
    .doc = "Convolution whose window's taps are moved by offsets, sampled bilinearly with zeros outside.",
    .inputs = {{"data",
                "(N, C, H, W), in `data_layout`, as are offset and mask. R1: layouts without blocks. R2: floating "
                "dtype."},
               {"offset",
                "(N, 2 * deformable_groups * kh * kw, oh, ow): (y, x) of each tap, in elements. R4: its extents fit."},
               {"weight", "(O, C / groups, kh, kw). R3: its channels fit. R4: a known window."},
               {"mask",
                "Optional. (N, deformable_groups * kh * kw, oh, ow): a factor for each tap. R4: its extents fit."}},
    .output = "(N, O, oh, ow), in `out_layout`.",
    .attrs = TypeOf<DeformableConv2DAttrs>,
    .num_inputs = -1,
    .type_rel = RelGuess<"nn.deformable_conv2d", GuessDeformable, DeformableType>,
    .lower = LowerDeformable,
    .gradient = gradient::DecomposeDeformableConv2D,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX DeformConv-22",
});

}  // namespace baton::relay
