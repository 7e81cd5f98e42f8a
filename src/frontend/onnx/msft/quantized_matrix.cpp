// SPDX-License-Identifier: Apache-2.0
// Products of quantized matrices with results in floats, and what is made of them: attention and LSTM.
#include "frontend/onnx/import/importer_impl.h"
#include "frontend/onnx/ops/quantization.h"
#include "frontend/onnx/ops/recurrent.h"
#include "msft.h"

namespace baton::onnx {
namespace {

/// A scale or zero point of all, or of each column, which may be more than one matrix.
Value Columns(Ctx& c, const Value& v) {
  if (c.Rank(v) == 1 && c.Dim(v, 0) == 1) return c.Reshape(v, {});
  return v;
}

/// (a - a_zero) (b - b_zero), in int32; zero points may be absent.
Value IntegerProduct(Ctx& c, const Value& a, const Value& a_zero, const Value& b, const Value& b_zero) {
  auto centered = [&](const Value& v, const Value& zero) {
    Value y = c.Cast(v, DataType::Int(32));
    return zero ? c.Sub(y, c.Cast(Columns(c, zero), DataType::Int(32))) : y;
  };
  return c.MatMul(centered(a, a_zero), centered(b, b_zero), DataType::Int(32));
}

/// The product times both scales, plus a bias where there is one, as floats.
Value Scaled(Ctx& c, const Value& product, const Value& a_scale, const Value& b_scale, const Value& bias) {
  const DataType t = ComputeType(b_scale.dtype);
  Value scale = c.Mul(c.Cast(Columns(c, a_scale), t), c.Cast(Columns(c, b_scale), t));
  Value y = c.Mul(c.Cast(product, t), scale);
  if (bias) y = c.Add(y, c.Cast(bias, t));
  return c.Cast(y, b_scale.dtype);
}

Values MatMulIntegerToFloat(Ctx& c) {
  Value y = IntegerProduct(c, c.T(0), c.Opt(4), c.T(1), c.Opt(5));
  return {Scaled(c, y, c.T(2), c.T(3), c.Opt(6))};
}

Values DynamicQuantizeMatMul(Ctx& c) {
  const Values a = AsOnnx(c, "DynamicQuantizeLinear", 11, {c.T(0)});
  Value y = IntegerProduct(c, a[0], a[2], c.T(1), c.Opt(3));
  return {Scaled(c, y, a[1], c.T(2), c.Opt(4))};
}

Values MatMulInteger16(Ctx& c) {
  const DataType i32 = DataType::Int(32);
  Value a = c.T(0), b = c.T(1);
  Value y = c.MatMul(c.Cast(a, i32), c.Cast(b, i32), i32);
  return {c.Cast(y, a.dtype.is_uint() && b.dtype.is_uint() ? DataType::UInt(32) : i32)};
}

Values QGemm(Ctx& c) {
  Value a = c.T(0), b = c.T(3), a_scale = c.T(1), b_scale = c.T(4), a_zero = c.Opt(2), b_zero = c.Opt(5);
  const bool turn_b = c.Int("transB", 0) != 0;
  if (c.Rank(a) != 2 || c.Rank(b) != 2) c.Fail("`A` and `B` must be matrices");
  if (c.Int("transA", 0) != 0) a = c.Transpose(a, {1, 0});
  if (turn_b) b = c.Transpose(b, {1, 0});
  const double alpha = c.Float("alpha", 1.0);
  Value y = IntegerProduct(c, a, a_zero, b, b_zero);
  if (c.Has(6)) y = c.Add(y, c.T(6));  // int32, of scale alpha * a_scale * b_scale
  const DataType t = ComputeType(a_scale.dtype);
  y = c.Mul(Scaled(c, y, a_scale, b_scale, Value()), alpha);
  if (!c.Has(7)) return {y};
  Value zero = c.Opt(8);
  if (zero) zero = c.Reshape(zero, {});
  return {Quantize(c, c.Div(c.Cast(y, t), c.Cast(c.Reshape(c.T(7), {}), t)), zero, zero ? zero.dtype : a.dtype)};
}

Values QAttention(Ctx& c) {
  if (c.Int("past_present_share_buffer", 0) != 0)
    c.Unsupported("`past_present_share_buffer`; export the model with a past that grows");
  Value y = IntegerProduct(c, c.T(0), c.Opt(6), c.T(1), c.Opt(7));
  return AttentionOf(c, Scaled(c, y, c.T(3), c.T(4), c.T(2)), c.Opt(5), c.Opt(8), Value());
}

/// LSTM of ONNX whose weights are quantized, and transposed: (directions, inputs, gates), a scale and a zero point for
/// each direction or each column. The data is quantized as a whole, the state in each step, a scale for each sequence.
Values DynamicQuantizeLSTM(Ctx& c) {
  const DataType i32 = DataType::Int(32), i8 = DataType::Int(8);
  for (size_t i : {1, 2}) {
    const Value w = c.T(i);
    if (c.Rank(w) != 3) c.Fail("a weight has " + std::to_string(c.Rank(w)) + " axes, not three");
    if (w.dtype != i8 && w.dtype != DataType::UInt(8))
      c.Fail("a weight is of " + DataType2String(w.dtype) + ", not of bytes");
  }
  auto columns = [&](const Value& v, const Value& w) {  // (directions, gates)
    return c.BroadcastTo(c.Rank(v) == 2 ? v : c.Unsqueeze(v, {1}), {c.Dim(w, 0), c.Dim(w, 2)});
  };
  ByteWeights bytes;
  bytes.w = c.Transpose(c.T(1), {0, 2, 1});
  Value r = c.T(2), zero = c.T(11);
  bytes.r_scale = columns(c.T(10), r);
  const int64_t to_signed = r.dtype == i8 ? 0 : 128;
  if (to_signed != 0 || !IsZero(zero)) bytes.r_zero = c.Sub(columns(c.Cast(zero, i32), r), c.Scalar(i32, to_signed));
  if (to_signed != 0) r = c.Cast(c.Sub(c.Cast(r, i32), c.Scalar(i32, to_signed)), i8);
  bytes.r = c.Transpose(r, {0, 2, 1});
  Values x;  // bytes, scale, zero point of the data: both directions read them
  bytes.project = [&x](Ctx& layer, const Value& rows, int64_t d) {
    if (x.empty()) x = AsOnnx(layer, "DynamicQuantizeLinear", 11, {rows});
    auto part = [&](size_t i) { return layer.Squeeze(layer.Slice(layer.T(i), 0, d, d + 1), {0}); };
    const Value zero = part(9);
    Value y = IntegerProduct(layer, x[0], x[2], part(1), IsZero(layer.T(9)) ? Value() : zero);
    return Scaled(layer, y, x[1], part(8), Value());
  };
  return LstmOf(c, &bytes);
}

}  // namespace

void AddMsftQuantizedMatrix(OpTable* table) {
  for (const OpRow& row : {
           OpRow{kMsft, "MatMulIntegerToFloat", MatMulIntegerToFloat},
           {kMsft, "DynamicQuantizeMatMul", DynamicQuantizeMatMul},
           {kMsft, "MatMulInteger16", MatMulInteger16},
           {kMsft, "QGemm", QGemm},
           {kMsft, "QAttention", QAttention},
           {kMsft, "DynamicQuantizeLSTM", DynamicQuantizeLSTM},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
