// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/op/make.h>
#include <baton/relay/op/tensor.h>
#include <baton/relay/op/transform.h>
#include <relay/op/axis_parts.h>

namespace baton::relay {

Expr Add(Expr a, Expr b) { return MakeCall(op::add, {a, b}); }
Expr Subtract(Expr a, Expr b) { return MakeCall(op::subtract, {a, b}); }
Expr Multiply(Expr a, Expr b) { return MakeCall(op::multiply, {a, b}); }
Expr Divide(Expr a, Expr b) { return MakeCall(op::divide, {a, b}); }
Expr Maximum(Expr a, Expr b) { return MakeCall(op::maximum, {a, b}); }
Expr Minimum(Expr a, Expr b) { return MakeCall(op::minimum, {a, b}); }
Expr Where(Expr condition, Expr a, Expr b) { return MakeCall(op::where, {condition, a, b}); }
Expr Cast(Expr data, DataType dtype) {
  return MakeCall<CastAttrs>(op::cast, {data}, [&](CastAttrs* a) { a->dtype = dtype; });
}
Expr Reshape(Expr data, Array<int64_t> newshape) {
  return MakeCall<ReshapeAttrs>(op::reshape, {data}, [&](ReshapeAttrs* a) { a->newshape = newshape; });
}
Expr Transpose(Expr data, Array<int64_t> axes) {
  return MakeCall<TransposeAttrs>(op::transpose, {data}, [&](TransposeAttrs* a) { a->axes = axes; });
}
Expr ExpandDims(Expr data, int64_t axis, int64_t num_newaxis) {
  return MakeCall<ExpandDimsAttrs>(op::expand_dims, {data},
                                   [&](ExpandDimsAttrs* a) { a->axis = axis, a->num_newaxis = num_newaxis; });
}
Expr Squeeze(Expr data, Array<int64_t> axis) {
  return MakeCall<SqueezeAttrs>(op::squeeze, {data}, [&](SqueezeAttrs* a) { a->axis = axis; });
}
Expr ReduceCall(const Op& op, Expr data, Array<int64_t> axis, bool keepdims) {
  return MakeCall<ReduceAttrs>(op, {data}, [&](ReduceAttrs* a) { a->axis = axis, a->keepdims = keepdims; });
}
Expr MakeScalar(double value, DataType dtype) {
  runtime::NDArray a = runtime::NDArray::Empty({}, dtype);
  a.SetDouble(0, value);
  return Constant(ConstantNode{{}, a});
}
Expr MakeInts(const std::vector<int64_t>& values) {
  return Constant(ConstantNode{
      {}, runtime::NDArray::FromBytes(values.data(), {static_cast<int64_t>(values.size())}, DataType::Int(64))});
}

Expr FilledUp(const Expr& value, DataType dtype, const std::vector<int64_t>& shape, size_t axis, int64_t length) {
  if (shape[axis] == length) return value;
  Array<Array<int64_t>> widths;
  for (size_t d = 0; d < shape.size(); ++d) widths.push_back({0, d == axis ? length - shape[d] : 0});
  return MakeCall<PadAttrs>(op::pad, {value, MakeScalar(0, dtype)}, [&](PadAttrs* a) { a->pad_width = widths; });
}

Expr FirstOf(const Expr& value, int64_t axis, int64_t length) {
  return MakeCall<StridedSliceAttrs>(op::strided_slice, {value}, [&](StridedSliceAttrs* a) {
    a->begin = Array<int64_t>{0}, a->end = Array<int64_t>{length}, a->axes = Array<int64_t>{axis};
  });
}

}  // namespace baton::relay
