// SPDX-License-Identifier: Apache-2.0
#include "qnn.h"

#include <cmath>
#include <limits>

namespace baton::relay::qnn {
namespace {

constexpr DataType kF64 = DataType::Float(64);

void CheckVector(const TypeArgs& in, int i, const PrimExpr& extent, const char* rule) {
  if (in.ndim(i) > 1) in.Fail(rule, in.Show(i) + ", where a scalar or a vector is wanted");
  if (in.ndim(i) == 0 || in.dim(i, 0) == 1) return;
  if (!extent.defined()) in.Fail(rule, in.Show(i) + ", where a scalar is wanted");
  if (!in.Same(in.shape(i)[0], extent)) {
    in.Fail(rule, in.Show(i) + ", where " + Str(DimOf(extent)) + " elements are wanted, as many as the axis has");
  }
}

}  // namespace

void CheckScale(const TypeArgs& in, int i, const PrimExpr& extent, const char* rule) {
  in.Floating(i, rule);
  CheckVector(in, i, extent, rule);
}
void CheckZeroPoint(const TypeArgs& in, int i, const PrimExpr& extent, const char* rule) {
  in.Integral(i, rule);
  CheckVector(in, i, extent, rule);
}
PrimExpr AlongAxis(const TypeArgs& in, int data, int64_t axis, std::initializer_list<int> params, const char* rule) {
  bool vectors = false;
  for (int i : params) vectors |= in.ndim(i) > 0;
  if (!vectors) return PrimExpr();
  if (axis < -in.ndim(data) || axis >= in.ndim(data))
    in.Fail(rule, "axis " + Str(axis) + " of " + in.Show(data) + ", which has rank " + Str(in.ndim(data)));
  return in.shape(data)[axis < 0 ? axis + in.ndim(data) : axis];
}
Type IntegerType(const TypeArgs& in, const Shape& shape, DataType dtype, const char* rule) {
  if (!dtype.is_integral())
    in.Fail(rule, "the result's dtype is " + DataType2String(dtype) + ", where one of integers is wanted");
  return TensorType(shape, dtype);
}

const TensorTypeNode* TypeAt(const Call& call, int i) { return AsTensor(call->args[i]->checked_type()); }
Expr As(Expr e, DataType from, DataType to) { return from == to ? e : Cast(e, to); }
Expr Along(Expr param, const TensorTypeNode* type, int64_t ndim, int64_t axis) {
  if (type->shape.empty()) return param;
  Ints shape(ndim, 1);
  if (ndim > 0) shape[axis < 0 ? axis + ndim : axis] = -1;
  return Reshape(param, ToArray(shape));
}
Expr Saturate(Expr e, DataType from, DataType to) {
  const double low = to.is_uint() ? 0 : -std::ldexp(1.0, to.bits() - 1);
  const double high = std::ldexp(1.0, to.is_uint() ? to.bits() : to.bits() - 1) - 1;
  return As(MakeCall<ClipAttrs>(op::clip, {e}, [&](ClipAttrs* a) { a->a_min = low, a->a_max = high; }), from, to);
}
Expr Quantized::Centred(DataType t) const {
  return Subtract(As(data, type->dtype, t), As(Along(zero, zero_type, ndim(), axis), zero_type->dtype, t));
}
Quantized At(const Call& call, const Array<Expr>& args, int data, int scale, int zero, int64_t axis) {
  return {args[data], args[scale], args[zero], TypeAt(call, data), TypeAt(call, scale), TypeAt(call, zero), axis};
}
Expr Quantize(Expr data, const TensorTypeNode* type, Expr scale, const TensorTypeNode* scale_type, Expr zero,
              const TensorTypeNode* zero_type, int64_t axis, DataType out) {
  const DataType t = type->dtype;
  const int64_t ndim = static_cast<int64_t>(type->shape.size());
  Expr steps = MakeCall(op::round, {Divide(data, As(Along(scale, scale_type, ndim, axis), scale_type->dtype, t))});
  return Saturate(Add(steps, As(Along(zero, zero_type, ndim, axis), zero_type->dtype, t)), t, out);
}
Expr Dequantize(const Quantized& q) {
  const DataType f32 = DataType::Float(32), i32 = DataType::Int(32);
  return Multiply(As(q.Centred(i32), i32, f32), q.Scale(f32));
}
Expr Requantize(const Quantized& q, const Expr& out_scale, const TensorTypeNode* out_scale_type, const Expr& out_zero,
                const TensorTypeNode* out_zero_type, bool away_from_zero, DataType out) {
  const DataType i64 = DataType::Int(64);
  Expr ratio = Divide(q.Scale(kF64), As(out_scale, out_scale_type->dtype, kF64));
  Expr exact = Multiply(As(q.Centred(i64), i64, kF64), ratio), half = MakeScalar(0.5, kF64), steps;
  if (away_from_zero) {
    steps = Multiply(MakeCall(op::sign, {exact}), MakeCall(op::floor, {Add(MakeCall(op::abs, {exact}), half)}));
  } else {
    steps = MakeCall(op::floor, {Add(exact, half)});
  }
  if (out_zero.defined()) steps = Add(steps, As(out_zero, out_zero_type->dtype, kF64));
  return Saturate(steps, kF64, out);
}

}  // namespace baton::relay::qnn
