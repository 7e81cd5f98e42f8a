// SPDX-License-Identifier: Apache-2.0
// A product with a matrix packed in panels, as kernels read it.
#include <baton/relay/op/nn.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>
#include <relay/kernel/generators.h>

#include "../common.h"
#include "../reference/reference.h"
#include "flops.h"

namespace baton::relay {
namespace {

bool IsBFloat16(DataType t) { return t == DataType::BFloat16(); }
/// The dtype in which terms side by side are added.
DataType SumOf(DataType data) { return IsBFloat16(data) ? DataType::Float(32) : DataType::Int(32); }
int64_t Units(const DenseAttrs& a) { return a.units.defined() ? DimOf(a.units) : -1; }

Type DensePackType(const DenseAttrs& a, const TypeArgs& in) {
  in.Number(1, "R1");
  in.MinRank(0, 1, "R2");
  const bool dots = in.ndim(1) == 4;
  if (dots) {
    const bool bytes = in.dtype(0) == DataType::UInt(8) && in.dtype(1) == DataType::Int(8) && in.dim(1, 3) == 4;
    if (!bytes && !(IsBFloat16(in.dtype(0)) && IsBFloat16(in.dtype(1)) && in.dim(1, 3) == 2))
      in.Fail("R4", in.Show(0) + " and " + in.Show(1) +
                        ", where uint8 and int8 with four terms side by side are wanted, or bfloat16 with two");
  } else {
    in.Floating(0, "R1");
    if (a.out_dtype.is_void()) in.SameDtype(0, 1, "R1");
    in.Rank(1, 3, "R2");
  }
  const PrimExpr terms = dots ? in.shape(1)[1] * in.shape(1)[3] : in.shape(1)[1];
  if (!in.Same(in.shape(0).back(), terms)) {
    in.Fail("R2", in.Show(0) + " ends with " + Str(DimOf(in.shape(0).back())) + " elements and " + in.Show(1) +
                      " takes " + Str(DimOf(terms)));
  }
  int64_t panels = in.dim(1, 0), columns = in.dim(1, 2), units = Units(a);
  if (units < 0) units = panels < 0 || columns < 0 ? -1 : panels * columns;
  if (panels >= 0 && columns >= 0 && (units > panels * columns || units <= (panels - 1) * columns)) {
    in.Fail("R3", in.Show(1) + " holds " + Str(panels) + " panels of " + Str(columns) + " and units = " + Str(units));
  }
  Shape out = in.shape(0);
  out.Set(in.ndim(0) - 1, MakeDim(units));
  return TensorType(out, dots ? SumOf(in.dtype(0)) : in.dtype(0));
}

Type UnpackPanelsType(const DenseAttrs& a, const TypeArgs& in) {
  in.Number(0, "R1");
  in.Rank(0, 3, "R1");
  const int64_t panels = in.dim(0, 0), columns = in.dim(0, 2);
  int64_t units = Units(a);
  if (units < 0) units = panels < 0 || columns < 0 ? -1 : panels * columns;
  if (panels >= 0 && columns >= 0 && (units > panels * columns || units <= (panels - 1) * columns)) {
    in.Fail("R2", in.Show(0) + " holds " + Str(panels) + " panels of " + Str(columns) + " and units = " + Str(units));
  }
  return TensorType(Shape{MakeDim(units), in.shape(0)[1]}, in.dtype(0));
}

Tensor LowerUnpackPanels(const DenseAttrs&, const Tensors& in, const Type& out_type) {
  const Tensor& w = in[0];
  return te::Compute(
      AsTensor(out_type)->shape,
      [&](Indices i) { return w(Shape{floordiv(i[0], w.shape()[2]), i[1], floormod(i[0], w.shape()[2])}); },
      "unpack_panels", "injective");
}

Tensor LowerDensePack(const DenseAttrs&, const Tensors& in, const Type& out_type) {
  const Tensor &x = in[0], &w = in[1];
  const bool dots = w.ndim() == 4;
  const PrimExpr terms = dots ? w.shape()[3] : PrimExpr(1);
  Array<te::IterVar> k{te::ReduceAxis(0, dots ? w.shape()[1] * terms : w.shape()[1], "k")};
  DataType t = dots ? SumOf(x.dtype()) : x.dtype(), acc = Wide(t);
  return topi::Cast(
      te::Compute(
          AsTensor(out_type)->shape,
          [&](Indices i) {
            Shape at = i;
            at.Set(x.ndim() - 1, k[0]->var);
            PrimExpr n = i[x.ndim() - 1], panel = floordiv(n, w.shape()[2]), column = floormod(n, w.shape()[2]);
            PrimExpr weight = dots ? w(panel, floordiv(k[0]->var, terms), column, floormod(k[0]->var, terms))
                                   : w(panel, k[0]->var, column);
            return te::Sum(cast(acc, x(at)) * cast(acc, weight), k);
          },
          "dense_pack", "dense_pack"),
      t);
}

}  // namespace

const Op op::dense_pack = DefineOp({
    .name = "nn.contrib_dense_pack",
    .doc = "nn.dense with its weight in panels: out[..., u] = sum over k of data[..., k] * weight[u / c, k, u % c].",
    .inputs = {{"data", "(..., K). R1: floating dtype, or uint8 (R4). R2: rank 1 or more."},
               {"weight",
                "(panels, K, c), or (panels, K / t, c, t) with t terms of the sum side by side. R1: dtype of data, "
                "or any number where out_dtype is given. R2: K of data. R3: as many "
                "panels as units take; the last may have "
                "columns beyond them. R4: with four terms side by side data is uint8 and weight int8, with two both "
                "are bfloat16."}},
    .output = "(..., units), of data's dtype; int32 where four terms are side by side, float32 where two are.",
    .attrs = TypeOf<DenseAttrs>,
    .type_rel = Rel<"nn.contrib_dense_pack", DensePackType>,
    .lower = LowerDensePack,
    .gradient = NoGradient("its weight is in panels; differentiate before PackDense"),
    .pattern = OpPattern::kOutEWiseFusable,
    .source = "Relay",
    .traits = {.flops = MatmulFlops,
               .kernel = kernel::GenerateDensePack,
               .reference = reference::DensePack,
               .narrow_weight = true},
});

const Op op::unpack_panels = DefineOp({
    .name = "nn.contrib_unpack_panels",
    .doc =
        "The matrix of a weight in panels: out[u, k] = weight[u / c, k, u % c]. It is not folded, so that a table of "
        "which rows are taken and which is multiplied too is there once.",
    .inputs = {{"weight", "(panels, K, c), numbers. R1: rank 3. R2: as many panels as units take."}},
    .output = "(units, K), the dtype of weight.",
    .attrs = TypeOf<DenseAttrs>,
    .type_rel = Rel<"nn.contrib_unpack_panels", UnpackPanelsType>,
    .lower = LowerUnpackPanels,
    .gradient = NoGradient("its weight is in panels; differentiate before PackDense"),
    .pattern = OpPattern::kInjective,
    .fold = Fold::kNever,
    .source = "Baton",
    .traits = {.values = Values::kSelects},
});

}  // namespace baton::relay
