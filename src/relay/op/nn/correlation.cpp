// SPDX-License-Identifier: Apache-2.0
// Correlation of two images around each place and its neighbours: the layer of FlowNet (Dosovitskiy et al., 2015).
#include <baton/relay/op/nn.h>
#include <baton/runtime/checked.h>

#include "../common.h"
#include "../gradient.h"
#include "flops.h"

namespace baton::relay {
namespace {

using runtime::Checked;

struct CorrelationAttrs : AttrsNode<CorrelationAttrs> {
  static constexpr auto _type_key = "relay.attrs.CorrelationAttrs";
  int64_t kernel_size = 1;
  int64_t max_displacement = 1;
  int64_t stride1 = 1;
  int64_t stride2 = 1;
  Array<int64_t> padding = {0};
  bool is_multiply = true;
  String layout = "NCHW";
  static constexpr void Describe(auto& d) {
    d(F<&CorrelationAttrs::kernel_size>, "Height and width of the patches that are compared. R3: odd.", AtLeast(1));
    d(F<&CorrelationAttrs::max_displacement>, "How far the second patch may be from the first, in elements.",
      AtLeast(0));
    d(F<&CorrelationAttrs::stride1>, "Step between the places of the first patch.", AtLeast(1));
    d(F<&CorrelationAttrs::stride2>, "Step between the places of the second around the first.", AtLeast(1));
    d(F<&CorrelationAttrs::padding>, "Zeros around both images: one number, two, or four. R3: no other count.",
      AtLeast(0));
    d(F<&CorrelationAttrs::is_multiply>, "Whether elements are multiplied; else their absolute difference counts.");
    d(F<&CorrelationAttrs::layout>, "\"NCHW\". R3: no other.");
  }
};

struct Geometry {
  Ints pad;                      ///< top, left, bottom, right
  int64_t radius = 0, grid = 1;  ///< of the neighbours: places to each side, and in a row
  Geometry(const CorrelationAttrs& a, const char* op) {
    auto fail = [&](const std::string& text) { throw CompileError(std::string("[") + op + " R3] " + text); };
    if (a.layout != "NCHW") fail("layout is \"" + a.layout.str() + "\"; it is \"NCHW\"");
    if (a.kernel_size % 2 == 0) fail("kernel_size is " + Str(a.kernel_size) + ", where an odd number is wanted");
    pad = ToInts(a.padding);
    if (pad.size() != 1 && pad.size() != 2 && pad.size() != 4)
      fail("padding has " + Str(pad.size()) + " numbers, where 1, 2 or 4 are wanted");
    if (pad.size() == 1) pad.resize(4, pad[0]);
    if (pad.size() == 2) pad = {pad[0], pad[1], pad[0], pad[1]};
    radius = a.max_displacement / a.stride2;
    grid = int64_t{Checked(radius) * 2 + 1};
  }
  PrimExpr Extent(const CorrelationAttrs& a, const PrimExpr& n, int d) const {
    Checked border = (Checked(a.max_displacement) + (a.kernel_size - 1) / 2) * 2;
    if (DimOf(n) < 0) {
      return floordiv(n + PrimExpr(int64_t{Checked(pad[d]) + pad[d + 2] - border + a.stride1 - 1}),
                      PrimExpr(a.stride1));
    }
    Checked room = Checked(DimOf(n)) + pad[d] + pad[d + 2] - border;
    return PrimExpr(room <= 0 ? int64_t{0} : int64_t{(room + (a.stride1 - 1)) / a.stride1});
  }
};

Type CorrelationType(const CorrelationAttrs& a, const TypeArgs& in) {
  Geometry g(a, in.op());
  for (int i : {0, 1}) {
    in.Floating(i, "R1");
    in.Rank(i, 4, "R2");
  }
  in.SameDtype(0, 1, "R1");
  Shape out = in.shape(0);
  for (int d = 0; d < 4; ++d) {
    if (!in.Same(in.shape(0)[d], in.shape(1)[d]))
      in.Fail("R2", in.Show(0) + " and " + in.Show(1) + ": images of one shape are wanted");
  }
  out.Set(1, PrimExpr(int64_t{Checked(g.grid) * g.grid}));
  for (int d : {0, 1}) {
    PrimExpr n = g.Extent(a, in.shape(0)[d + 2], d);
    if (DimOf(n) == 0) in.Fail("R4", in.Show(0) + " with its padding has no place for the patches");
    out.Set(d + 2, TypeDim(n));
  }
  return TensorType(out, in.dtype(0));
}

Tensor LowerCorrelation(const CorrelationAttrs& a, const Tensors& in) {
  Geometry g(a, "nn.correlation");
  const Tensor &x = in[0], &y = in[1];
  DataType t = Wide(x.dtype());
  Shape out{x.shape()[0], PrimExpr(int64_t{Checked(g.grid) * g.grid}), g.Extent(a, x.shape()[2], 0),
            g.Extent(a, x.shape()[3], 1)};
  Array<te::IterVar> k{te::ReduceAxis(0, x.shape()[1], "c"), te::ReduceAxis(0, PrimExpr(a.kernel_size), "ky"),
                       te::ReduceAxis(0, PrimExpr(a.kernel_size), "kx")};
  Tensor sum = te::Compute(
      out,
      [&](Indices i) {
        PrimExpr grid = g.grid;
        PrimExpr shift[2] = {floordiv(i[1], grid), floormod(i[1], grid)};
        Shape first{i[0], k[0]->var}, second = first;
        PrimExpr in_first, in_second;
        auto both = [](const PrimExpr& p, const PrimExpr& q) { return p.defined() ? p && q : q; };
        for (int d = 0; d < 2; ++d) {
          const PrimExpr& n = x.shape()[d + 2];
          PrimExpr at = i[d + 2] * PrimExpr(a.stride1) + PrimExpr(a.max_displacement - g.pad[d]) + k[d + 1]->var;
          PrimExpr moved = at + (shift[d] - PrimExpr(g.radius)) * PrimExpr(a.stride2);
          first.push_back(at);
          second.push_back(moved);
          in_first = both(in_first, at >= PrimExpr(0) && at < n);
          in_second = both(in_second, moved >= PrimExpr(0) && moved < n);
        }
        PrimExpr zero = tir::make_const(x.dtype(), 0);
        PrimExpr u = cast(t, if_then_else(in_first, x(first), zero));
        PrimExpr v = cast(t, if_then_else(in_second, y(second), zero));
        return te::Sum(a.is_multiply ? u * v : abs(u - v), k);
      },
      "correlation");
  PrimExpr count = x.shape()[1] * PrimExpr(a.kernel_size * a.kernel_size);
  return te::Compute(out, [&](Indices i) { return cast(x.dtype(), sum(i) / cast(t, count)); }, "correlation_mean");
}

}  // namespace

namespace gradient {
namespace {

/// For each displacement the product of one image with the other one moved; patches are means over windows.
Expr DecomposeCorrelation(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<CorrelationAttrs>();
  Geometry g(a, at.op());
  Ints x = at.dims(0), out = at.out_dims();
  if (ProductOf(x) == 0 || ProductOf(out) == 0) return ZerosLike(call);
  Ints before{0, 0, g.pad[0], g.pad[1]}, after{0, 0, g.pad[2], g.pad[3]};
  Expr images[2];
  for (int i : {0, 1}) images[i] = Pad(args[i], before, after, at.dtype(i));
  int64_t h = (out[2] - 1) * a.stride1 + a.kernel_size, w = (out[3] - 1) * a.stride1 + a.kernel_size;
  auto from = [&](const Expr& e, int64_t down, int64_t right) {
    int64_t top = a.max_displacement + down, left = a.max_displacement + right;
    return Slice(e, {0, 0, top, left}, {x[0], x[1], top + h, left + w});
  };
  Expr first = from(images[0], 0, 0);
  Array<Expr> alike;
  for (int64_t q = 0; q < g.grid * g.grid; ++q) {
    Expr second = from(images[1], (q / g.grid - g.radius) * a.stride2, (q % g.grid - g.radius) * a.stride2);
    Expr e = a.is_multiply ? Multiply(first, second) : MakeCall(op::abs, {Subtract(first, second)});
    alike.push_back(Mean(e, {1}));
  }
  Expr all = Concat(Tuple(alike), 1);
  if (a.kernel_size == 1 && a.stride1 == 1) return all;
  return MakeCall<AvgPoolAttrs<2>>(op::avg_pool2d, {all}, [&](AvgPoolAttrs<2>* p) {
    p->pool_size = {a.kernel_size, a.kernel_size}, p->strides = {a.stride1, a.stride1};
  });
}

}  // namespace
}  // namespace gradient

namespace {

[[maybe_unused]] const Op correlation = DefineOp({
    .name = "nn.correlation",
    .doc =
        "The mean product (or absolute difference) of patches of two images, around each place, for each displacement "
        "of the second: channel q is displaced by (q / D - D / 2, q % D - D / 2) * stride2, where D * D are the "
        "channels.",
    .inputs = {{"data1", "(N, C, H, W). R1: floating dtype. R2: rank 4."},
               {"data2", "Shape and dtype of data1. R1: its dtype. R2: its shape."}},
    .output =
        "(N, D * D, oh, ow), where oh = ceil((H + padding - 2 * (max_displacement + kernel_size / 2)) / stride1). "
        "R4: a place or more.",
    .attrs = TypeOf<CorrelationAttrs>,
    .type_rel = Rel<"nn.correlation", CorrelationType>,
    .lower = LowerCorrelation,
    .gradient = gradient::DecomposeCorrelation,
    .pattern = OpPattern::kOutEWiseFusable,
    .source = "Dosovitskiy et al., ICCV 2015",
    .support_level = 2,
    .traits = {.flops = MatmulFlops},
});

}  // namespace
}  // namespace baton::relay
