// SPDX-License-Identifier: Apache-2.0
// Operators whose result's length depends on values, and determinants; on the host.
#include <baton/relay/op/algorithm.h>
#include <host/functions.h>

#include "../common.h"
#include "../gradient.h"

namespace baton::relay {
namespace {

struct UniqueAttrs : AttrsNode<UniqueAttrs> {
  static constexpr auto _type_key = "relay.attrs.UniqueAttrs";
  bool is_sorted = true;
  PrimExpr axis;
  static constexpr void Describe(auto& d) {
    d(F<&UniqueAttrs::is_sorted>, "Whether values rise; else they come as they first occur.");
    d(F<&UniqueAttrs::axis>, "Dimension whose slices are compared; None: the elements.");
  }
};

struct CompressAttrs : AttrsNode<CompressAttrs> {
  static constexpr auto _type_key = "relay.attrs.CompressAttrs";
  PrimExpr axis;
  static constexpr void Describe(auto& d) {
    d(F<&CompressAttrs::axis>, "Dimension to select along; None: of the flattened data.");
  }
};

// ---- unique
Type UniqueType(const UniqueAttrs& a, const TypeArgs& in) {
  Shape values{UnknownDim()};
  if (HasValue(a.axis)) {
    in.MinRank(0, 1, "R1");
    values = in.shape(0);
    values.Set(in.Axis(ValueOf(a.axis), in.ndim(0)), UnknownDim());
  }
  Type index = TensorType(Shape{UnknownDim()}, DataType::Int(64)), inverse = index;
  if (HasValue(a.axis))
    inverse = TensorType(Shape{in.shape(0)[in.Axis(ValueOf(a.axis), in.ndim(0))]}, DataType::Int(64));
  if (!HasValue(a.axis)) inverse = TensorType(Shape{MakeDim(ProductOf(Dims(in.shape(0))))}, DataType::Int(64));
  return TupleType(Array<Type>{TensorType(values, in.dtype(0)), index, inverse, index});
}

// ---- argwhere, compress
Type ArgwhereType(const TypeArgs& in) {
  return TensorType(Shape{UnknownDim(), PrimExpr(in.ndim(0))}, DataType::Int(64));
}
Type NonzeroType(const TypeArgs& in) {
  return TensorType(Shape{PrimExpr(in.ndim(0)), UnknownDim()}, DataType::Int(64));
}
Type CompressType(const CompressAttrs& a, const TypeArgs& in) {
  in.Bool(1, "R1");
  in.Rank(1, 1, "R1");
  Shape out{UnknownDim()};
  if (HasValue(a.axis)) {
    in.MinRank(0, 1, "R2");
    out = in.shape(0);
    out.Set(in.Axis(ValueOf(a.axis), in.ndim(0)), UnknownDim());
  }
  return TensorType(out, in.dtype(0));
}

// ---- det
Type DetType(const TypeArgs& in) {
  in.Floating(0, "R1");
  in.MinRank(0, 2, "R2");
  int64_t n = in.ndim(0);
  if (!in.Same(in.shape(0)[n - 1], in.shape(0)[n - 2])) in.Fail("R2", in.Show(0) + " holds no square matrices");
  return TensorType(Shape(in.shape(0).begin(), in.shape(0).begin() + (n - 2)), in.dtype(0));
}

// ---- cofactor
Type CofactorType(const TypeArgs& in) {
  DetType(in);
  return in.type(0);
}

constexpr OpGradient kNoWayBack = NoGradient("it selects or orders on the host, where adjoints have no way back");

}  // namespace

namespace gradient {
namespace {

Grads DetBack(const Call& call, const Expr& grad) {
  int64_t stack = At(call, grad).ndim(0) - 2;
  return {Multiply(ExpandDims(grad, stack, 2), MakeCall(op::cofactor, {call->args[0]}))};
}

}  // namespace
}  // namespace gradient

const Op op::unique = DefineOp({
    .name = "unique",
    .doc =
        "Values without repetition, the first place of each, which of them each element is, and how often each occurs.",
    .inputs = {{"data", "R1: rank 1 or more, unless axis=None."}},
    .output = "A tuple (values, indices, inverse, counts); the last three int64.",
    .attrs = TypeOf<UniqueAttrs>,
    .type_rel = Rel<"unique", UniqueType>,
    .host = host::Unique,
    .gradient = kNoWayBack,
    .source = "ONNX Unique-11",
});
const Op op::argwhere = DefineOp({
    .name = "argwhere",
    .doc = "Indices of the elements that are not 0, row-major.",
    .inputs = {{"condition", "Any tensor."}},
    .output = "(number found, rank), int64.",
    .type_rel = Rel<"argwhere", ArgwhereType>,
    .host = host::Argwhere,
    .source = "NumPy",
    .traits = {.precision = Precision::kFollow},
});
const Op op::nonzero = DefineOp({
    .name = "nonzero",
    .doc = "Indices of the elements that are not 0, row-major: a row for each dimension.",
    .inputs = {{"data", "Any tensor."}},
    .output = "(rank, number found), int64: argwhere's, transposed.",
    .type_rel = Rel<"nonzero", NonzeroType>,
    .host = host::Nonzero,
    .source = "ONNX NonZero-13",
});
const Op op::compress = DefineOp({
    .name = "compress",
    .doc = "Slices along an axis where the condition is true.",
    .inputs = {{"data", "R2: rank 1 or more, unless axis=None."},
               {"condition", "R1: bool, rank 1; slices behind its end are left out."}},
    .output = "`data` with a shorter axis.",
    .attrs = TypeOf<CompressAttrs>,
    .type_rel = Rel<"compress", CompressType>,
    .host = host::Compress,
    .gradient = kNoWayBack,
    .source = "ONNX Compress-11",
});
const Op op::det = DefineOp({
    .name = "linalg.det",
    .doc = "Determinants, computed in float64.",
    .inputs = {{"data", "(..., n, n). R1: floating dtype. R2: square matrices."}},
    .output = "The leading dimensions.",
    .type_rel = Rel<"linalg.det", DetType>,
    .host = host::Det,
    .gradient = gradient::DetBack,
    .source = "ONNX Det-22",
});
const Op op::cofactor = DefineOp({
    .name = "linalg.cofactor",
    .doc = "Matrices of cofactors, which are the gradients of determinants, computed in float64; of singular ones too.",
    .inputs = {{"data", "(..., n, n). R1: floating dtype. R2: square matrices."}},
    .output = "Shape and dtype of `data`.",
    .type_rel = Rel<"linalg.cofactor", CofactorType>,
    .host = host::Cofactor,
    .gradient = NoGradient(gradient::kNoRuleYet),
    .source = "linear algebra",
});

}  // namespace baton::relay
