// SPDX-License-Identifier: Apache-2.0
// A product with an operand whose dimensions lie in another order, as states keep keys and values.
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/topi/elemwise.h>
#include <relay/kernel/generators.h>

#include "../common.h"
#include "flops.h"

namespace baton::relay {
namespace {

Shape Permuted(const Shape& shape, const Array<int64_t>& axes) {
  Shape out;
  for (int64_t a : axes) out.push_back(shape[a]);
  return out;
}

Type MatmulPermutedType(const MatmulPermutedAttrs& a, const TypeArgs& in) {
  in.Number(0, "R1");
  in.SameDtype(0, 1, "R1");
  in.MinRank(0, 2, "R2");
  in.MinRank(1, 2, "R2");
  Ints seen(static_cast<size_t>(in.ndim(1)));
  bool all = static_cast<int64_t>(a.axes.size()) == in.ndim(1);
  for (int64_t d : a.axes) all = all && d >= 0 && d < in.ndim(1) && ++seen[static_cast<size_t>(d)] == 1;
  if (!all) in.Fail("R3", "axes are " + ShowInts(ToInts(a.axes)) + ", where those of " + in.Show(1) + " are wanted");
  const Shape &x = in.shape(0), y = Permuted(in.shape(1), a.axes);
  if (!in.Same(x.back(), y[in.ndim(1) - 2])) {
    in.Fail("R2", in.Show(0) + " and " + in.Show(1) + ": the sum runs over " + Str(DimOf(x.back())) + " and " +
                      Str(DimOf(y[in.ndim(1) - 2])) + " elements, which have to agree");
  }
  Shape out = BroadcastShapes(in, Shape(x.begin(), x.end() - 2), Shape(y.begin(), y.end() - 2), "R2");
  out.push_back(x[in.ndim(0) - 2]);
  out.push_back(y.back());
  return TensorType(out, in.dtype(0));
}

Tensor LowerMatmulPermuted(const MatmulPermutedAttrs& a, const Tensors& in, const Type& out_type) {
  const Tensor &x = in[0], &y = in[1];
  const DataType t = x.dtype(), acc = Wide(t);
  const Shape permuted = Permuted(y.shape(), a.axes), &out = AsTensor(out_type)->shape;
  const int64_t rank = static_cast<int64_t>(out.size());
  Array<te::IterVar> k{te::ReduceAxis(0, x.shape()[x.ndim() - 1], "k")};
  auto batch = [&](const Shape& own, Indices i) {
    Shape at;
    const int64_t n = static_cast<int64_t>(own.size()) - 2;
    for (int64_t d = 0; d < n; ++d)
      at.push_back(topi::BroadcastIndex(own[d], i[rank - 2 - n + d], out[rank - 2 - n + d]));
    return at;
  };
  return topi::Cast(te::Compute(
                        out,
                        [&](Indices i) {
                          Shape of_x = batch(x.shape(), i), of_y = batch(permuted, i), at = y.shape();
                          of_x.push_back(i[rank - 2]), of_x.push_back(k[0]->var);
                          of_y.push_back(k[0]->var), of_y.push_back(i[rank - 1]);
                          for (size_t d = 0; d < of_y.size(); ++d)
                            at.Set(a.axes[static_cast<int64_t>(d)], of_y[static_cast<int64_t>(d)]);
                          return te::Sum(cast(acc, x(of_x)) * cast(acc, y(at)), k);
                        },
                        "matmul_permuted", "matmul_permuted"),
                    t);
}

}  // namespace

const Op op::matmul_permuted = DefineOp({
    .name = "nn.contrib_matmul_permuted",
    .doc = "nn.matmul(tensor_a, transpose(tensor_b, axes)), which reads tensor_b where it lies.",
    .inputs =
        {{"tensor_a", "(..., M, K). R1: numbers. R2: rank 2 or more."},
         {"tensor_b",
          "R1: dtype of tensor_a. R2: in the order of axes (..., K, N), leading dimensions that broadcast. R3: axes "
          "are all of its dimensions."}},
    .output = "(..., M, N).",
    .attrs = TypeOf<MatmulPermutedAttrs>,
    .type_rel = Rel<"nn.contrib_matmul_permuted", MatmulPermutedType>,
    .lower = LowerMatmulPermuted,
    .gradient = NoGradient("it reads a state; differentiate before StateToBuffers"),
    .pattern = OpPattern::kOutEWiseFusable,
    .source = "Baton",
    .traits = {.flops = MatmulFlops, .kernel = kernel::GenerateMatmulPermuted},
});

}  // namespace baton::relay
