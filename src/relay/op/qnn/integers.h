// SPDX-License-Identifier: Apache-2.0
// Rules by which FakeQuantizationToInteger computes in integers what is between qnn.dequantize and qnn.quantize. An
// operator names its rule in its definition.
#pragma once

#include <baton/relay/affine_type.h>
#include <baton/relay/op.h>

#include <vector>

namespace baton::relay {

/// The integer form of an expression of a region.
struct IntegerValue {
  enum Kind { kUnknown, kFailed, kPlain, kAffine } kind = kUnknown;
  Expr expr;        ///< integers; of kPlain the expression itself
  AffineType type;  ///< of kAffine
  const TensorAffineTypeNode* tensor() const { return type.as<TensorAffineTypeNode>(); }
};

/// A call with the integer forms of its arguments; `out`: the affine type at the region's end.
struct IntegerSite {
  const CallNode* pre;
  const std::vector<IntegerValue>& args;
  const TensorAffineTypeNode* out;
  DataType OutDtype() const { return out->dtype; }
  const TensorAffineTypeNode* at(size_t i) const {
    return args[i].kind == IntegerValue::kAffine ? args[i].tensor() : nullptr;
  }
};

namespace integers {

IntegerValue Failed();
IntegerValue Affine(Expr e, const AffineType& type);
IntegerValue Affine(Expr e, const Expr& scale, const Expr& zero, DataType dtype, int64_t axis = -1);
/// Whether a scale or zero point is one number; one that is not constant counts by its type.
bool IsScalar(const Expr& e);
/// Integers of one affine type as ones of another, whose scale and zero point are scalars.
Expr Requantized(const Expr& e, const TensorAffineTypeNode* from, const TensorAffineTypeNode* to);

// ---- Rules.
/// For operators that select values without computing: the affine type stays.
IntegerValue Selection(const IntegerSite& s);
/// Means: of integers less their zero point, so that padding stands for 0, in 32 bits.
IntegerValue Averages(const IntegerSite& s);
/// Weighted means that are rounded to integers: in 32 bits, in steps of 1/256 of the data's. `attrs`: of the call.
IntegerValue Interpolation(const IntegerSite& s, const Attrs& attrs);
IntegerValue Relu(const IntegerSite& s);
IntegerValue Clip(const IntegerSite& s);
IntegerValue Pad(const IntegerSite& s);
/// Products: of the integers less their zero points, in 32 bits. `weight_axis`: of the weight's vectors, -1 for none;
/// `out_axis`: where it is in the result.
IntegerValue MatrixProduct(const IntegerSite& s, const Op& quantized, const Attrs& attrs, int64_t weight_axis,
                           int64_t out_axis);
template <class A>
Attrs WithInt32(const Attrs& attrs) {
  auto n = runtime::make_object<A>(AttrsAs<A>(attrs));
  n->out_dtype = DataType::Int(32);
  return Attrs(runtime::ObjectPtr<runtime::Object>(n));
}
IntegerValue Dense(const IntegerSite& s);
IntegerValue BatchMatmul(const IntegerSite& s);
/// The bias at the scale of the data, both in 32 bits.
IntegerValue BiasAdd(const IntegerSite& s);
IntegerValue Sum(const IntegerSite& s);
IntegerValue Difference(const IntegerSite& s);
IntegerValue Product(const IntegerSite& s);
/// maximum and minimum: compares at one scale.
IntegerValue Extreme(const IntegerSite& s);
IntegerValue Joined(const IntegerSite& s);
/// A tuple whose fields have one affine type.
IntegerValue Split(const IntegerSite& s);
/// By an operator of qnn, which has one argument: qnn.tanh, qnn.exp, ...
IntegerValue By(const Op& quantized, const IntegerSite& s);
template <const Op* kQuantized>
IntegerValue Function1(const IntegerSite& s) {
  return By(*kQuantized, s);
}

}  // namespace integers
}  // namespace baton::relay
