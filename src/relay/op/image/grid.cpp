// SPDX-License-Identifier: Apache-2.0
// Sampling an image at given places, and the grid of places of an affine map.
#include <baton/relay/op/image.h>
#include <baton/topi/elemwise.h>

#include "../common.h"
#include "../gradient.h"
#include "../sampling.h"

namespace baton::relay {
namespace {

struct GridSampleAttrs : AttrsNode<GridSampleAttrs> {
  static constexpr auto _type_key = "relay.attrs.GridSampleAttrs";
  String method = "bilinear";
  String layout = "NCHW";
  String padding_mode = "zeros";
  bool align_corners = true;
  bool grid_last = false;
  static constexpr void Describe(auto& d) {
    d(F<&GridSampleAttrs::method>, "\"nearest\", \"bilinear\" (any rank) or \"bicubic\".");
    d(F<&GridSampleAttrs::layout>, "\"NCHW\" or \"NCDHW\".");
    d(F<&GridSampleAttrs::padding_mode>, "Outside data: \"zeros\", \"border\" or \"reflection\".");
    d(F<&GridSampleAttrs::align_corners>,
      "Whether -1 and 1 are the centres of the corner elements, not their outer edges.");
    d(F<&GridSampleAttrs::grid_last>, "Whether the last dimension of grid holds the coordinates, not the second.");
  }
};

struct AffineGridAttrs : AttrsNode<AffineGridAttrs> {
  static constexpr auto _type_key = "relay.attrs.AffineGridAttrs";
  Array<int64_t> target_shape;
  bool align_corners = true;
  static constexpr void Describe(auto& d) {
    d(F<&AffineGridAttrs::target_shape>, "Spatial extents, 2 or 3.", kRequired, AtLeast(0));
    d(F<&AffineGridAttrs::align_corners>,
      "Whether -1 and 1 are the centres of the corner elements, not their outer edges.");
  }
};

/// x mirrored at low and high until it is between them.
PrimExpr Reflect(const PrimExpr& x, const PrimExpr& low, const PrimExpr& high) {
  DataType t = x.dtype();
  PrimExpr range = high - low, period = max(range * Lit(2, t), Lit(1e-6, t));
  PrimExpr u = x - low;
  u = u - floor(u / period) * period;
  return low + te::Select(u <= range, u, period - u);
}
PrimExpr CubicWeight(const PrimExpr& d) {
  DataType t = d.dtype();
  PrimExpr x = fabs(d), a = Lit(-0.75, t);
  PrimExpr near = ((a + Lit(2, t)) * x - (a + Lit(3, t))) * x * x + Lit(1, t);
  PrimExpr far = ((a * x - Lit(5, t) * a) * x + Lit(8, t) * a) * x - Lit(4, t) * a;
  return te::Select(x <= Lit(1, t), near, te::Select(x < Lit(2, t), far, Lit(0, t)));
}

Type GridSampleType(const GridSampleAttrs& a, const TypeArgs& in) {
  in.Number(0, "R1");
  in.Floating(1, "R1");
  int64_t rank = in.ndim(0);
  if (rank < 3 || rank > 5) in.Fail("R2", in.Show(0) + ", where rank 3 to 5 is wanted");
  if (in.ndim(1) != rank) in.Fail("R2", in.Show(1) + " and " + in.Show(0) + " differ in rank");
  if (a.method != "nearest" && a.method != "bilinear" && a.method != "bicubic") {
    in.Fail("R3", "method is \"" + a.method.str() + "\"; it is \"nearest\", \"bilinear\" or \"bicubic\"");
  }
  if (a.padding_mode != "zeros" && a.padding_mode != "border" && a.padding_mode != "reflection") {
    in.Fail("R3", "padding_mode is \"" + a.padding_mode.str() + "\"; it is \"zeros\", \"border\" or \"reflection\"");
  }
  if (!(a.layout == (rank == 3 ? "NCW" : rank == 4 ? "NCHW" : "NCDHW")))
    in.Fail("R3", "layout is \"" + a.layout.str() + "\" for " + in.Show(0));
  int64_t at = a.grid_last ? rank - 1 : 1;
  if (!in.Same(in.shape(1)[at], PrimExpr(rank - 2)))
    in.Fail("R4", in.Show(1) + " has " + Str(in.dim(1, at)) + " coordinates in dimension " + Str(at) + ", where " +
                      Str(rank - 2) + " are wanted");
  if (!in.Same(in.shape(0)[0], in.shape(1)[0]))
    in.Fail("R4", in.Show(1) + " and " + in.Show(0) + " differ in the batch");
  Shape out{in.shape(0)[0], in.shape(0)[1]};
  for (int64_t d = 0; d < rank - 2; ++d) {
    if (in.dim(0, d + 2) == 0) in.Fail("R4", in.Show(0) + " has no element to sample");
    out.push_back(in.shape(1)[a.grid_last ? d + 1 : d + 2]);
  }
  return TensorType(out, in.dtype(0));
}
Tensor LowerGridSample(const GridSampleAttrs& a, const Tensors& in) {
  const Tensor &x = in[0], &grid = in[1];
  int64_t space = x.ndim() - 2;
  DataType t = x.dtype().is_floating() ? Wide(x.dtype()) : DataType::Float(32), i64 = DataType::Int(64);
  if (grid.dtype().bits() == 64) t = DataType::Float(64);
  bool zeros = a.padding_mode == "zeros", border = a.padding_mode == "border",
       reflection = a.padding_mode == "reflection";
  Shape out{x.shape()[0], x.shape()[1]};
  for (int64_t d = 0; d < space; ++d) out.push_back(grid.shape()[a.grid_last ? d + 1 : d + 2]);
  bool nearest = a.method == "nearest", cubic = a.method == "bicubic";
  int64_t taps = nearest ? 1 : cubic ? 4 : 2;
  auto low = [&](int64_t) { return Lit(a.align_corners ? 0 : -0.5, t); };
  auto high = [&](int64_t d) { return cast(t, x.shape()[d + 2]) - Lit(a.align_corners ? 1 : 0.5, t); };
  // Per spatial dimension of data, a tensor over (batch, place of the result): where it is sampled. What follows from
  // it does not depend on the channel, and is computed once.
  Shape spots{x.shape()[0]};
  for (int64_t d = 0; d < space; ++d) spots.push_back(out[d + 2]);
  std::vector<Tensor> where, place, weight;
  for (int64_t d = 0; d < space; ++d) {
    where.push_back(te::Compute(
        spots,
        [&](Indices i) {
          Shape at{i[0]};
          if (!a.grid_last) at.push_back(PrimExpr(space - 1 - d));  // coordinates come as x, y, z
          for (int64_t s = 0; s < space; ++s) at.push_back(i[s + 1]);
          if (a.grid_last) at.push_back(PrimExpr(space - 1 - d));
          PrimExpr g = cast(t, grid(at)), n = cast(t, x.shape()[d + 2]);
          PrimExpr p = a.align_corners ? (g + Lit(1, t)) * Lit(0.5, t) * (n - Lit(1, t))
                                       : ((g + Lit(1, t)) * n - Lit(1, t)) * Lit(0.5, t);
          if (nearest) p = nearbyint(p);
          PrimExpr outside = p < low(d) || p > high(d);
          if (border) p = te::Select(outside, max(min(p, n - Lit(1, t)), Lit(0, t)), p);
          if (reflection) p = te::Select(outside, Reflect(p, low(d), high(d)), p);
          return p;
        },
        "grid_where"));
    // For each tap: its element, -1 outside where that counts as 0; and its weight.
    Shape tapped = spots;
    tapped.push_back(PrimExpr(taps));
    auto spot = [&](const Shape& i) { return Shape(i.begin(), i.begin() + (space + 1)); };
    auto tap = [&](const Indices& i) {
      PrimExpr p = where[d](spot(i));
      return nearest ? p : floor(p) + cast(t, PrimExpr(i[space + 1])) - Lit(cubic ? 1 : 0, t);
    };
    place.push_back(te::Compute(
        tapped,
        [&](Indices i) {
          PrimExpr p = tap(i), last = cast(t, x.shape()[d + 2]) - Lit(1, t);
          if (reflection) p = trunc(te::Select(p < low(d) || p > high(d), Reflect(p, low(d), high(d)), p));
          PrimExpr inside = p >= Lit(0, t) && p <= last;
          // A NaN reads element 0: no index leaves the image.
          p = te::Select(p >= Lit(0, t), te::Select(p <= last, p, last), Lit(0, t));
          p = cast(i64, p);
          return zeros ? te::Select(inside, p, PrimExpr(-1)) : p;
        },
        "grid_place"));
    if (nearest) continue;
    weight.push_back(te::Compute(
        tapped,
        [&](Indices i) {
          PrimExpr off = where[d](spot(i)) - tap(i);
          return cubic ? CubicWeight(off)
                       : te::Select(equal(PrimExpr(i[space + 1]), PrimExpr(0)), Lit(1, t) - off, off + Lit(1, t));
        },
        "grid_weight"));
  }
  return te::Compute(
      out,
      [&](Indices i) {
        int64_t total = 1;
        for (int64_t d = 0; d < space; ++d) total *= taps;
        PrimExpr sum;
        for (int64_t k = 0; k < total; ++k) {
          std::vector<PrimExpr> at(space);
          PrimExpr w, inside;
          int64_t rest = k;
          for (int64_t d = space - 1; d >= 0; --d) {
            Shape spot{i[0]};
            for (int64_t s = 0; s < space; ++s) spot.push_back(i[s + 2]);
            spot.push_back(PrimExpr(rest % taps));
            rest /= taps;
            at[d] = place[d](spot);
            if (zeros) {
              PrimExpr c = at[d] >= PrimExpr(0);
              inside = inside.defined() ? inside && c : c;
              at[d] = max(at[d], PrimExpr(0));
            }
            if (!nearest) w = w.defined() ? w * weight[d](spot) : weight[d](spot);
          }
          Shape index{i[0], i[1]};
          for (const PrimExpr& p : at) index.push_back(p);
          PrimExpr v = cast(t, x(index));
          if (inside.defined()) v = te::Select(inside, v, Lit(0, t));
          PrimExpr term = w.defined() ? w * v : v;
          sum = sum.defined() ? sum + term : term;
        }
        if (nearest) return topi::Convert(x.dtype(), sum);
        return x.dtype().is_integral() ? topi::SaturatingCast(x.dtype(), sum) : cast(x.dtype(), sum);
      },
      "grid_sample");
}

Type AffineGridType(const AffineGridAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.Rank(0, 3, "R2");
  int64_t n = a.target_shape.size();
  if (n != 2 && n != 3) in.Fail("R2", "target_shape has " + Str(n) + " extents, where 2 or 3 are wanted");
  if (!in.Same(in.shape(0)[1], PrimExpr(n)) || !in.Same(in.shape(0)[2], PrimExpr(n + 1))) {
    in.Fail("R2", in.Show(0) + ", where (N, " + Str(n) + ", " + Str(n + 1) + ") is wanted");
  }
  Shape out{in.shape(0)[0], PrimExpr(n)};
  for (int64_t e : a.target_shape) out.push_back(PrimExpr(e));
  return TensorType(out, in.dtype(0));
}
Tensor LowerAffineGrid(const AffineGridAttrs& a, const Tensors& in) {
  const Tensor& theta = in[0];
  int64_t n = a.target_shape.size();
  DataType t = Wide(theta.dtype());
  Shape out{theta.shape()[0], PrimExpr(n)};
  for (int64_t e : a.target_shape) out.push_back(PrimExpr(e));
  return te::Compute(
      out,
      [&](Indices i) {
        PrimExpr sum = cast(t, theta(i[0], i[1], PrimExpr(n)));
        for (int64_t k = n - 1; k >= 0; --k) {  // coordinate k (x, y, z) runs along the last, the one before, ...
          int64_t d = n - 1 - k;
          double e = static_cast<double>(a.target_shape[d]);
          PrimExpr at = cast(t, PrimExpr(i[d + 2]));
          PrimExpr c = a.align_corners ? (e > 1 ? at * Lit(2 / (e - 1), t) - Lit(1, t) : Lit(0, t))
                                       : (at * Lit(2, t) + Lit(1, t)) / Lit(e, t) - Lit(1, t);
          sum = cast(t, theta(i[0], i[1], PrimExpr(k))) * c + sum;
        }
        return cast(theta.dtype(), sum);
      },
      "affine_grid");
}

}  // namespace

namespace gradient {
namespace {

Val Reflected(const Val& x, double low, double high) {
  double range = high - low, period = std::max(range * 2, 1e-6);
  Val u = x - low;
  u = u - Do(op::floor, u / period) * period;
  return low + Pick(Test(op::less_equal, u, range), u, period - u);
}
Expr DecomposeGridSample(const Call& call, const Array<Expr>& args) {
  At at(call, call);
  const auto& a = at.attrs<GridSampleAttrs>();
  Ints dims = at.dims(0), out = at.out_dims(), space(dims.begin() + 2, dims.end());
  if (!at.floating(0)) at.Fail("it has a rule for floating images");
  if (ProductOf(out) == 0) return ZerosLike(call);
  DataType t = at.dtype(1).bits() == 64 ? DataType::Float(64) : Wide(at.dtype(0));
  int64_t rank = static_cast<int64_t>(space.size()), places = ProductOf(Ints(out.begin() + 2, out.end()));
  Ints spots = a.grid_last ? Ints{dims[0], places, rank} : Ints{dims[0], rank, places};
  Val grid = AsVal(Reshape(args[1], ToArray(spots)), at.dtype(1), t);
  SampleMethod method = a.method == "nearest"    ? SampleMethod::kNearest
                        : a.method == "bilinear" ? SampleMethod::kLinear
                                                 : SampleMethod::kCubic;
  std::vector<Taps> taps;
  for (int64_t d = 0; d < rank; ++d) {
    double n = static_cast<double>(space[d]), low = a.align_corners ? 0 : -0.5, high = n - 1 - low;
    auto where_outside = [&](const Val& x, const Val& other) {
      return Pick({MakeCall(op::logical_or, {Test(op::less, x, low).e, Test(op::greater, x, high).e}), t}, other, x);
    };
    Val g{Part(grid, spots, a.grid_last ? 2 : 1, rank - 1 - d), t};  // coordinates come as x, y, z
    Val p = a.align_corners ? (g + 1) * 0.5 * (n - 1) : ((g + 1) * n - 1) * 0.5;
    if (method == SampleMethod::kNearest) p = Do(op::round, p);
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

}  // namespace
}  // namespace gradient

const Op op::grid_sample = DefineOp({
    .name = "image.grid_sample",
    .doc = "data sampled at places given in [-1, 1] of each spatial dimension.",
    .inputs = {{"data", "(N, C, ...). R1: numbers. R2: rank 3 to 5. R4: not empty."},
               {"grid",
                "(N, coordinates, ...), or (N, ..., coordinates) with grid_last; x, y, z: along the last dimension, "
                "the one before, "
                "... R1: floating dtype. R2: data's rank. R4: data's batch, a coordinate for each spatial dimension."}},
    .output = "(N, C, the spatial extents of grid). R3: known method, padding and layout.",
    .attrs = TypeOf<GridSampleAttrs>,
    .type_rel = Rel<"image.grid_sample", GridSampleType>,
    .lower = LowerGridSample,
    .gradient = gradient::DecomposeGridSample,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX GridSample-22",
});
const Op op::affine_grid = DefineOp({
    .name = "image.affine_grid",
    .doc = "For each place of an image in [-1, 1]: where an affine map takes it.",
    .inputs = {{"data", "(N, 2, 3) or (N, 3, 4). R1: floating dtype. R2: as target_shape says."}},
    .output = "(N, coordinates, target_shape); the coordinates are x, y, z.",
    .attrs = TypeOf<AffineGridAttrs>,
    .type_rel = Rel<"image.affine_grid", AffineGridType>,
    .lower = LowerAffineGrid,
    .gradient = gradient::AffineGridBack,
    .pattern = OpPattern::kInjective,
    .source = "Relay; ONNX AffineGrid-20",
});

}  // namespace baton::relay
