// SPDX-License-Identifier: Apache-2.0
// Arithmetic of quantized tensors whose results are quantized again.
#include "qnn.h"

namespace baton::relay {
namespace {

using namespace qnn;  // NOLINT: what these operators share

/// A scalar that has one element, whatever its rank.
Expr Scalar(const Expr& e, const TensorTypeNode* type) { return type->shape.empty() ? e : Reshape(e, {}); }

// ---- add, subtract, mul: lhs, rhs, scale and zero point of each, scale and zero point of the result
Type BothType(const BroadcastAttrs& a, const TypeArgs& in) {
  in.Integral(0, "R1");
  in.Integral(1, "R1");
  in.SameDtype(0, 1, "R1");
  PrimExpr left = AlongAxis(in, 0, a.lhs_axis, {2, 3}, "R4"), right = AlongAxis(in, 1, a.rhs_axis, {4, 5}, "R4");
  CheckScale(in, 2, left, "R2");
  CheckZeroPoint(in, 3, left, "R3");
  CheckScale(in, 4, right, "R2");
  CheckZeroPoint(in, 5, right, "R3");
  CheckScale(in, 6, PrimExpr(), "R2");
  CheckZeroPoint(in, 7, PrimExpr(), "R3");
  return TensorType(BroadcastShapes(in, in.shape(0), in.shape(1), "R5"), in.dtype(0));
}
/// Both at the scale of the result, in int32, then the sum or difference.
Expr DecomposeSum(const Call& call, const Array<Expr>& args, const Op& plain) {
  const auto& a = AttrsOf<BroadcastAttrs>(call);
  const DataType i32 = DataType::Int(32);
  const auto *out_scale = TypeAt(call, 6), *out_zero = TypeAt(call, 7);
  Expr scale = Scalar(args[6], out_scale), zero = Scalar(args[7], out_zero);
  Expr lhs = Requantize(At(call, args, 0, 2, 3, a.lhs_axis), scale, out_scale, Expr(), nullptr, false, i32);
  Expr rhs = Requantize(At(call, args, 1, 4, 5, a.rhs_axis), scale, out_scale, Expr(), nullptr, false, i32);
  return Saturate(Add(MakeCall(plain, {lhs, rhs}), As(zero, out_zero->dtype, i32)), i32, TypeAt(call, 0)->dtype);
}
Expr DecomposeAdd(const Call& call, const Array<Expr>& args) { return DecomposeSum(call, args, op::add); }
Expr DecomposeSubtract(const Call& call, const Array<Expr>& args) { return DecomposeSum(call, args, op::subtract); }
Expr DecomposeMul(const Call& call, const Array<Expr>& args) {
  const auto& a = AttrsOf<BroadcastAttrs>(call);
  const DataType i32 = DataType::Int(32), f64 = DataType::Float(64);
  const Quantized lhs = At(call, args, 0, 2, 3, a.lhs_axis), rhs = At(call, args, 1, 4, 5, a.rhs_axis);
  const auto *out_scale = TypeAt(call, 6), *out_zero = TypeAt(call, 7);
  Expr ratio = Divide(Multiply(lhs.Scale(f64), rhs.Scale(f64)), As(Scalar(args[6], out_scale), out_scale->dtype, f64));
  Expr exact = Multiply(As(Multiply(lhs.Centred(i32), rhs.Centred(i32)), i32, f64), ratio);
  Expr steps = MakeCall(op::floor, {Add(exact, MakeScalar(0.5, f64))});
  return Saturate(Add(steps, As(Scalar(args[7], out_zero), out_zero->dtype, f64)), f64, TypeAt(call, 0)->dtype);
}

// ---- concatenate: tuples of data, scales and zero points, then scale and zero point of the result
Type ConcatenateType(const ConcatenateAttrs& a, const TypeArgs& in) {
  const auto data = in.Fields(0), scales = in.Fields(1), zeros = in.Fields(2);
  if (data.empty()) in.Fail("R1", "`data` is an empty tuple");
  if (scales.size() != data.size() || zeros.size() != data.size()) {
    in.Fail("R4", "there are " + Str(data.size()) + " tensors, " + Str(scales.size()) + " scales and " +
                      Str(zeros.size()) + " zero points");
  }
  auto single = [](const TensorTypeNode* t) {
    return t->shape.empty() || (t->shape.size() == 1 && DimOf(t->shape[0]) == 1);
  };
  const int64_t ndim = data[0]->shape.size();
  if (ndim == 0) in.Fail("R1", "`data` holds scalars, which have no axis");
  const int64_t axis = in.Axis(a.axis, ndim);
  Shape out = data[0]->shape;
  for (size_t i = 0; i < data.size(); ++i) {
    if (!data[i]->dtype.is_integral() || data[i]->dtype != data[0]->dtype)
      in.Fail("R1", "`data` holds " + ShowType(GetRef<Type>(data[i])) + ", where integers of one dtype are wanted");
    if (!scales[i]->dtype.is_floating() || !single(scales[i]))
      in.Fail("R2", "a scale is " + ShowType(GetRef<Type>(scales[i])) + ", where a floating scalar is wanted");
    if (!zeros[i]->dtype.is_integral() || !single(zeros[i]))
      in.Fail("R3", "a zero point is " + ShowType(GetRef<Type>(zeros[i])) + ", where a scalar integer is wanted");
    if (static_cast<int64_t>(data[i]->shape.size()) != ndim)
      in.Fail("R5", "`data` holds tensors of ranks " + Str(ndim) + " and " + Str(data[i]->shape.size()));
    for (int64_t d = 0; i > 0 && d < ndim; ++d) {
      if (d == axis) {
        int64_t x = DimOf(out[d]), y = DimOf(data[i]->shape[d]);
        out.Set(d, x >= 0 && y >= 0 ? PrimExpr(x + y) : UnknownDim());
      } else if (!in.Same(out[d], data[i]->shape[d])) {
        in.Fail("R5", "`data` holds tensors that differ in dimension " + Str(d) + ", which is not the axis");
      }
    }
  }
  CheckScale(in, 3, PrimExpr(), "R2");
  CheckZeroPoint(in, 4, PrimExpr(), "R3");
  return TensorType(out, data[0]->dtype);
}
Expr DecomposeConcatenate(const Call& call, const Array<Expr>& args) {
  auto field = [&](int arg, size_t i) {
    const auto* t = args[arg].as<TupleNode>();
    return t ? Expr(t->fields[i]) : Expr(TupleGetItem(args[arg], static_cast<int64_t>(i)));
  };
  auto type = [&](int arg, size_t i) {
    return AsTensor(call->args[arg]->checked_type().as<TupleTypeNode>()->fields[i]);
  };
  const size_t n = call->args[0]->checked_type().as<TupleTypeNode>()->fields.size();
  const auto *out_scale = TypeAt(call, 3), *out_zero = TypeAt(call, 4);
  Expr scale = Scalar(args[3], out_scale), zero = Scalar(args[4], out_zero);
  Array<Expr> parts;
  for (size_t i = 0; i < n; ++i) {
    const auto *s = type(1, i), *z = type(2, i), *x = type(0, i);
    parts.push_back(Requantize({field(0, i), Scalar(field(1, i), s), Scalar(field(2, i), z), x, s, z}, scale, out_scale,
                               zero, out_zero, false, x->dtype));
  }
  return MakeCall(op::concatenate, {Tuple(parts)}, call->attrs);
}

// ---- Functions of one quantized tensor
Type UnaryType(const TypeArgs& in) {
  in.Integral(0, "R1");
  for (int i : {1, 3}) CheckScale(in, i, PrimExpr(), "R2");
  for (int i : {2, 4}) CheckZeroPoint(in, i, PrimExpr(), "R3");
  return in.type(0);
}
template <const Op* kPlain>
Expr DecomposeUnary(const Call& call, const Array<Expr>& args) {
  const auto *s = TypeAt(call, 1), *z = TypeAt(call, 2), *os = TypeAt(call, 3), *oz = TypeAt(call, 4);
  Quantized q{args[0], Scalar(args[1], s), Scalar(args[2], z), TypeAt(call, 0), s, z};
  const TensorType value(q.type->shape, DataType::Float(32));
  return Quantize(MakeCall(*kPlain, {Dequantize(q)}), value.get(), Scalar(args[3], os), os, Scalar(args[4], oz), oz, -1,
                  q.type->dtype);
}

constexpr auto kSource = "B. Jacob et al.: Quantization and Training of Neural Networks (2018), 2.2";
constexpr auto kScale = "Step between neighbours. R2: floating, a scalar or a vector along the axis.",
               kZero = "What stands for 0. R3: integers, a scalar or a vector along the axis.",
               kScalarScale = "Step between neighbours. R2: floating, a scalar.",
               kScalarZero = "What stands for 0. R3: integers, a scalar.";

Op DefineBoth(const char* name, const char* doc, TypeRelationFn rel, DecomposeFn decompose) {
  return DefineOp({.name = name,
                   .doc = doc,
                   .inputs = {{"lhs", "R1: integers. R5: broadcasts with rhs."},
                              {"rhs", "R1: dtype of lhs."},
                              {"lhs_scale", kScale},
                              {"lhs_zero_point", kZero},
                              {"rhs_scale", kScale},
                              {"rhs_zero_point", kZero},
                              {"output_scale", kScalarScale},
                              {"output_zero_point", kScalarZero}},
                   .output = "The broadcast shape, dtype of `lhs`, saturated.",
                   .attrs = TypeOf<BroadcastAttrs>,
                   .type_rel = rel,
                   .decompose = decompose,
                   .gradient = kWholeResult,
                   .pattern = OpPattern::kOpaque,
                   .source = kSource,
                   .support_level = 11,
                   .traits = {.layout = LayoutRule::kBroadcasts}});
}
template <OpName kName, const Op* kPlain>
Op DefineUnary(const char* doc) {
  return DefineOp({.name = kName.text,
                   .doc = doc,
                   .inputs = {{"x", "R1: integers."},
                              {"scale", kScalarScale},
                              {"zero_point", kScalarZero},
                              {"output_scale", kScalarScale},
                              {"output_zero_point", kScalarZero}},
                   .output = "Shape and dtype of `x`, saturated.",
                   .type_rel = Rel<kName, UnaryType>,
                   .decompose = DecomposeUnary<kPlain>,
                   .gradient = kWholeResult,
                   .pattern = OpPattern::kOpaque,
                   .source = kSource,
                   .support_level = 11});
}

}  // namespace

const Op op::qnn::add = DefineBoth("qnn.add", "The sum of quantized tensors, each brought to the result's scale first.",
                                   Rel<"qnn.add", BothType>, DecomposeAdd);
const Op op::qnn::subtract =
    DefineBoth("qnn.subtract", "The difference of quantized tensors, each brought to the result's scale first.",
               Rel<"qnn.subtract", BothType>, DecomposeSubtract);
const Op op::qnn::mul =
    DefineBoth("qnn.mul", "The product of quantized tensors.", Rel<"qnn.mul", BothType>, DecomposeMul);
const Op op::qnn::concatenate = DefineOp({
    .name = "qnn.concatenate",
    .doc = "Quantized tensors one after the other, each brought to the scale and zero point of the result first.",
    .inputs = {{"data", "A tuple. R1: integers of one dtype, of rank 1 or more. R5: shapes agree but along the axis."},
               {"input_scales", "A tuple. R2: floating scalars. R4: one for each tensor."},
               {"input_zero_points", "A tuple. R3: scalars of integers. R4: one for each tensor."},
               {"output_scale", kScalarScale},
               {"output_zero_point", kScalarZero}},
    .output = "As concatenate, saturated.",
    .attrs = TypeOf<ConcatenateAttrs>,
    .type_rel = Rel<"qnn.concatenate", ConcatenateType>,
    .decompose = DecomposeConcatenate,
    .gradient = kWholeResult,
    .pattern = OpPattern::kOpaque,
    .source = kSource,
    .support_level = 11,
    .traits = {.layout = LayoutRule::kJoins},
});
const Op op::qnn::tanh = DefineUnary<"qnn.tanh", &op::tanh>("tanh of a quantized tensor, quantized.");
const Op op::qnn::exp = DefineUnary<"qnn.exp", &op::exp>("exp of a quantized tensor, quantized.");
const Op op::qnn::sqrt = DefineUnary<"qnn.sqrt", &op::sqrt>("sqrt of a quantized tensor, quantized.");
const Op op::qnn::rsqrt = DefineUnary<"qnn.rsqrt", &op::rsqrt>("1 / sqrt of a quantized tensor, quantized.");
const Op op::qnn::erf = DefineUnary<"qnn.erf", &op::erf>("erf of a quantized tensor, quantized.");
const Op op::qnn::sigmoid = DefineUnary<"qnn.sigmoid", &op::sigmoid>("sigmoid of a quantized tensor, quantized.");

}  // namespace baton::relay
