// SPDX-License-Identifier: Apache-2.0
// Convolutions and products of quantized tensors: results have the scale input_scale * kernel_scale and the zero point
// 0.
#include <algorithm>

#include "qnn.h"

namespace baton::relay {
namespace {

using namespace qnn;  // NOLINT: what these operators share

DataType ResultDtype(DataType t) { return t.is_void() ? DataType::Int(32) : t; }

/// Place of a letter among the dimensions of a layout; -1: none, -2: it is split there.
int64_t PlaceOf(const String& layout, char letter) {
  int64_t at = -1, n = 0;
  for (char c : layout.str()) {
    if (c >= '0' && c <= '9') return -2;
    if (c == letter) at = n;
    ++n;
  }
  return at;
}

/// The type of the plain operator on tensors of these shapes with numbers of the result's dtype.
bool PlainType(const Op& plain, const Attrs& attrs, const Array<Type>& types, DataType out, TypeReporter& reporter) {
  Array<Type> plain_types;
  for (int i = 0; i < 2; ++i) plain_types.push_back(TensorType(AsTensor(types[i])->shape, out));
  plain_types.push_back(types.back());
  return DefOf(plain)->type_rel(plain_types, 2, attrs, reporter);
}

/// Arguments: data, weight, their zero points, their scales. `extent`: that of the kernel's vectors, null for none.
void CheckProduct(const TypeArgs& in, const PrimExpr& extent, DataType out) {
  in.Integral(0, "R1");
  in.Integral(1, "R1");
  CheckZeroPoint(in, 2, PrimExpr(), "R3");
  CheckZeroPoint(in, 3, extent, "R3");
  CheckScale(in, 4, PrimExpr(), "R2");
  CheckScale(in, 5, extent, "R2");
  IntegerType(in, {}, out, "R5");
}

template <class A>
Attrs WithoutDtype(const A& a) {
  auto n = runtime::make_object<A>(a);
  n->out_dtype = DataType::Void();
  return Attrs(runtime::ObjectPtr<runtime::Object>(n));
}
Expr Centred(const Call& call, const Array<Expr>& args, int data, int zero, int64_t axis, DataType t) {
  return At(call, args, data, zero, zero, axis).Centred(t);
}

// ---- Convolutions
template <class A>
bool ConvType(const char* name, const Op& plain, const Array<Type>& types, int num_inputs, const Attrs& attrs,
              TypeReporter& reporter) {
  if (!AllKnown(types, num_inputs)) return false;
  TypeArgs in(name, types, num_inputs, reporter);
  const auto& a = AttrsAs<A>(attrs);
  const DataType out = ResultDtype(a.out_dtype);
  const int64_t o = PlaceOf(a.kernel_layout, 'O');
  CheckProduct(in, o >= 0 && o < in.ndim(1) ? in.shape(1)[o] : PrimExpr(), out);
  return PlainType(plain, WithoutDtype(a), types, out, reporter);
}
bool Conv2DRel(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter) {
  return ConvType<Conv2DAttrs>("qnn.conv2d", op::conv2d, types, num_inputs, attrs, reporter);
}
bool Conv2DTransposeRel(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter) {
  return ConvType<Conv2DTransposeAttrs>("qnn.conv2d_transpose", op::conv2d_transpose, types, num_inputs, attrs,
                                        reporter);
}
template <class A>
Expr DecomposeConv(const Call& call, const Array<Expr>& args) {
  const auto& a = AttrsOf<A>(call);
  const DataType t = ResultDtype(a.out_dtype);
  const Op& plain = std::is_same_v<A, Conv2DAttrs> ? op::conv2d : op::conv2d_transpose;
  const int64_t o = std::max<int64_t>(PlaceOf(a.kernel_layout, 'O'), 0);
  return MakeCall(plain, {Centred(call, args, 0, 2, 0, t), Centred(call, args, 1, 3, o, t)}, WithoutDtype(a));
}

// ---- Matrix products
bool DenseRel(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter) {
  if (!AllKnown(types, num_inputs)) return false;
  TypeArgs in("qnn.dense", types, num_inputs, reporter);
  const auto& a = AttrsAs<DenseAttrs>(attrs);
  const DataType out = ResultDtype(a.out_dtype);
  CheckProduct(in, in.ndim(1) > 0 ? in.shape(1)[0] : PrimExpr(), out);
  return PlainType(op::dense, WithoutDtype(a), types, out, reporter);
}
Expr DecomposeDense(const Call& call, const Array<Expr>& args) {
  const auto& a = AttrsOf<DenseAttrs>(call);
  const DataType t = ResultDtype(a.out_dtype);
  return MakeCall(op::dense, {Centred(call, args, 0, 2, 0, t), Centred(call, args, 1, 3, 0, t)}, WithoutDtype(a));
}
bool BatchMatmulRel(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter) {
  if (!AllKnown(types, num_inputs)) return false;
  TypeArgs in("qnn.batch_matmul", types, num_inputs, reporter);
  const auto& a = AttrsAs<BatchMatmulAttrs>(attrs);
  const DataType out = ResultDtype(a.out_dtype);
  CheckProduct(in, PrimExpr(), out);
  return PlainType(op::batch_matmul, WithoutDtype(a), types, out, reporter);
}
Expr DecomposeBatchMatmul(const Call& call, const Array<Expr>& args) {
  const auto& a = AttrsOf<BatchMatmulAttrs>(call);
  const DataType t = ResultDtype(a.out_dtype);
  return MakeCall(op::batch_matmul, {Centred(call, args, 0, 2, 0, t), Centred(call, args, 1, 3, 0, t)},
                  WithoutDtype(a));
}

constexpr auto kProductSource = "B. Jacob et al.: Quantization and Training of Neural Networks (2018), 2.2";
constexpr auto kData = "R1: integers. R5: out_dtype is one of integers.", kWeight = "R1: integers.",
               kDataZero = "What stands for 0 in data. R3: integers, a scalar.",
               kWeightZero = "What stands for 0 in weight. R3: integers, a scalar or one for each output channel.",
               kDataScale = "Step between neighbours of data. R2: floating, a scalar.",
               kWeightScale = "Step of weight. R2: floating, a scalar or one for each output channel.";

Op Define(const char* name, const char* doc, const char* (*attrs)(), TypeRelationFn rel, DecomposeFn decompose) {
  return DefineOp({.name = name,
                   .doc = doc,
                   .inputs = {{"data", kData},
                              {"weight", kWeight},
                              {"input_zero_point", kDataZero},
                              {"kernel_zero_point", kWeightZero},
                              {"input_scale", kDataScale},
                              {"kernel_scale", kWeightScale}},
                   .output =
                       "Shape as of the plain operator, out_dtype (int32): scale input_scale * kernel_scale, zero "
                       "point 0.",
                   .attrs = attrs,
                   .type_rel = rel,
                   .decompose = decompose,
                   .gradient = kWholeResult,
                   .pattern = OpPattern::kOpaque,
                   .source = kProductSource,
                   .support_level = 11});
}

}  // namespace

const Op op::qnn::conv2d = Define("qnn.conv2d", "nn.conv2d of quantized tensors; padding stands for 0.",
                                  TypeOf<Conv2DAttrs>, Conv2DRel, DecomposeConv<Conv2DAttrs>);
const Op op::qnn::conv2d_transpose =
    Define("qnn.conv2d_transpose", "nn.conv2d_transpose of quantized tensors.", TypeOf<Conv2DTransposeAttrs>,
           Conv2DTransposeRel, DecomposeConv<Conv2DTransposeAttrs>);
const Op op::qnn::dense =
    Define("qnn.dense", "nn.dense of quantized tensors.", TypeOf<DenseAttrs>, DenseRel, DecomposeDense);
const Op op::qnn::batch_matmul = DefineOp({
    .name = "qnn.batch_matmul",
    .doc = "nn.batch_matmul of quantized tensors.",
    .inputs = {{"x", kData},
               {"y", kWeight},
               {"x_zero_point", kDataZero},
               {"y_zero_point", "What stands for 0 in y. R3: integers, a scalar."},
               {"x_scale", kDataScale},
               {"y_scale", "Step between neighbours of y. R2: floating, a scalar."}},
    .output = "Shape as of nn.batch_matmul, out_dtype (int32): scale x_scale * y_scale, zero point 0.",
    .attrs = TypeOf<BatchMatmulAttrs>,
    .type_rel = BatchMatmulRel,
    .decompose = DecomposeBatchMatmul,
    .gradient = kWholeResult,
    .pattern = OpPattern::kOpaque,
    .source = kProductSource,
    .support_level = 11,
});

}  // namespace baton::relay
