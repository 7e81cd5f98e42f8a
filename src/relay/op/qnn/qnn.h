// SPDX-License-Identifier: Apache-2.0
// Shared by operators on quantized tensors: q stands for scale * (q - zero_point).
#pragma once

#include <baton/relay/op/make.h>
#include <baton/relay/op/qnn.h>
#include <baton/relay/op/transform.h>

#include "../common.h"

namespace baton::relay::qnn {

/// Quantized results have no adjoints to pass on.
constexpr OpGradient kWholeResult = NoGradient("its result is whole numbers");

// ---- Types.
/// Argument i is a scale (floating) or a zero point (integers): a scalar, or a vector with an element for each of
/// `extent`; a null `extent` allows scalars alone.
void CheckScale(const TypeArgs& in, int i, const PrimExpr& extent, const char* rule);
void CheckZeroPoint(const TypeArgs& in, int i, const PrimExpr& extent, const char* rule);
/// Extent of argument `data` along `axis`, as vectors at `params` need it; null where all of these are scalars.
PrimExpr AlongAxis(const TypeArgs& in, int data, int64_t axis, std::initializer_list<int> params, const char* rule);
/// The type, if its dtype is one of integers.
Type IntegerType(const TypeArgs& in, const Shape& shape, DataType dtype, const char* rule);

// ---- Decompositions into plain operators.
/// The tensor type of an argument of the original call.
const TensorTypeNode* TypeAt(const Call& call, int i);
/// `e` of dtype `from` as one of `to`.
Expr As(Expr e, DataType from, DataType to);
/// A parameter whose type is `type`, so that a vector broadcasts along an axis of a tensor of rank `ndim`.
Expr Along(Expr param, const TensorTypeNode* type, int64_t ndim, int64_t axis);
/// Whole numbers in `from` as ones of `to`, saturating.
Expr Saturate(Expr e, DataType from, DataType to);
/// A quantized tensor and what it stands for.
struct Quantized {
  Expr data, scale, zero;
  const TensorTypeNode *type, *scale_type, *zero_type;
  int64_t axis = -1;
  int64_t ndim() const { return static_cast<int64_t>(type->shape.size()); }
  Expr Scale(DataType t) const { return As(Along(scale, scale_type, ndim(), axis), scale_type->dtype, t); }
  /// data - zero point.
  Expr Centred(DataType t) const;
};
/// Parts of a call: arguments `data`, `scale`, `zero`.
Quantized At(const Call& call, const Array<Expr>& args, int data, int scale, int zero, int64_t axis);
Expr Quantize(Expr data, const TensorTypeNode* type, Expr scale, const TensorTypeNode* scale_type, Expr zero,
              const TensorTypeNode* zero_type, int64_t axis, DataType out);
Expr Dequantize(const Quantized& q);
/// `out_zero` may be null, for 0.
Expr Requantize(const Quantized& q, const Expr& out_scale, const TensorTypeNode* out_scale_type, const Expr& out_zero,
                const TensorTypeNode* out_zero_type, bool away_from_zero, DataType out);

}  // namespace baton::relay::qnn
