// SPDX-License-Identifier: Apache-2.0
// Operators of ONNX Runtime's quantizer whose operands and results are integers with a scale and a zero point.
#include <algorithm>

#include "frontend/onnx/import/importer_impl.h"
#include "frontend/onnx/ops/quantization.h"
#include "msft.h"

namespace baton::onnx {
namespace {

/// Operands i, i+1 and i+2 are numbers, their scale and their zero point (which may be left out): as floats.
Value Floats(Ctx& c, size_t i) { return Dequantize(c, c.T(i), c.T(i + 1), c.Opt(i + 2), 0, 0); }

/// As integers by the scale and zero point that are operands i and i+1; without a zero point of type `otherwise`.
Value Rounded(Ctx& c, const Value& v, size_t i, DataType otherwise) {
  Value zero = c.Opt(i + 1);
  if (zero) zero = c.Reshape(zero, {});
  Value scale = c.Cast(c.Reshape(c.T(i), {}), v.dtype);
  return Quantize(c, c.Div(v, scale), zero, zero ? zero.dtype : otherwise);
}

Values QLinearAdd(Ctx& c) { return {Rounded(c, c.Add(Floats(c, 0), Floats(c, 3)), 6, c.T(0).dtype)}; }
Values QLinearMul(Ctx& c) { return {Rounded(c, c.Mul(Floats(c, 0), Floats(c, 3)), 6, c.T(0).dtype)}; }
Values QLinearSigmoid(Ctx& c) { return {Rounded(c, Sigmoid(c, Floats(c, 0)), 3, c.T(0).dtype)}; }
Values QLinearLeakyRelu(Ctx& c) {
  Value y = LeakyReluOf(c, Floats(c, 0), c.Float("alpha", 0.01F));
  return {Rounded(c, y, 3, c.T(0).dtype)};
}
Values QLinearWhere(Ctx& c) { return {Rounded(c, c.Where(c.T(0), Floats(c, 1), Floats(c, 4)), 7, c.T(1).dtype)}; }

Values QLinearReduceMean(Ctx& c) {
  Value x = Floats(c, 0);
  Dims axes = c.Ints("axes");
  if (axes.empty()) axes = Iota(c.Rank(x));
  for (int64_t& a : axes) a = c.Axis(a, c.Rank(x));
  return {Rounded(c, Reduce(c, "mean", x, axes, c.Int("keepdims", 1) != 0), 3, c.T(0).dtype)};
}

/// The result's scale and zero point come first, then three operands for each part.
Values QLinearConcat(Ctx& c) {
  const DataType to = c.T(1).dtype;
  if (c.num_inputs() < 5 || (c.num_inputs() - 2) % 3 != 0) c.Fail("each part needs its scale and its zero point");
  Values parts;
  for (size_t i = 2; i < c.num_inputs(); i += 3) parts.push_back(Rounded(c, Floats(c, i), 0, to));
  return {c.Concat(parts, c.Axis(c.Int("axis"), c.Rank(parts[0])))};
}

/// Before version 13 of ONNX, softmax was over all axes from `axis` on; `opset` says which is meant.
Values QLinearSoftmax(Ctx& c) {
  Value x = Floats(c, 0);
  const int64_t opset = c.Int("opset");
  const int rank = c.Rank(x), axis = c.Axis(c.Int("axis", opset < 13 ? 1 : -1), rank);
  Value y;
  if (opset >= 13 || axis == rank - 1) {
    y = Softmax(c, x, axis);
  } else {
    const Dims shape = c.Lengths(x);
    const size_t at = static_cast<size_t>(axis);
    Value flat = c.Reshape(x, {c.Volume(shape, 0, at), c.Volume(shape, at, shape.size())});
    y = c.Reshape(Softmax(c, flat, 1), shape);
  }
  return {Rounded(c, y, 3, c.T(0).dtype)};
}

Value ChannelsFirst(Ctx& c, const Value& v) {
  Dims perm = {0, c.Rank(v) - 1};
  for (int64_t i = 1; i + 1 < c.Rank(v); ++i) perm.push_back(i);
  return c.Transpose(v, perm);
}
Value ChannelsLast(Ctx& c, const Value& v) {
  Dims perm = {0};
  for (int64_t i = 2; i < c.Rank(v); ++i) perm.push_back(i);
  perm.push_back(1);
  return c.Transpose(v, perm);
}

Values QLinearPool(Ctx& c, const char* op, int since) {
  const bool last = c.Int("channels_last", 0) != 0;
  Value x = Floats(c, 0);
  if (c.Rank(x) < 3) c.Fail("the data must have spatial axes");
  Value y = AsOnnx(c, op, since, {last ? ChannelsFirst(c, x) : x})[0];
  return {Rounded(c, last ? ChannelsLast(c, y) : y, 3, c.T(0).dtype)};
}
Values QLinearAveragePool(Ctx& c) { return QLinearPool(c, "AveragePool", 11); }
Values QLinearGlobalAveragePool(Ctx& c) { return QLinearPool(c, "GlobalAveragePool", 1); }

/// ONNX's operator of that name, with the channels last where the node says so.
Values QLinearConv(Ctx& c) {
  const bool last = c.Int("channels_last", 0) != 0;
  Values in;
  for (size_t i = 0; i < c.num_inputs(); ++i) in.push_back(c.Opt(i));
  if (last) in[0] = ChannelsFirst(c, in[0]);
  Value y = AsOnnx(c, "QLinearConv", 10, in)[0];
  return {last ? ChannelsLast(c, y) : y};
}

/// Per tensor without `axis`, of 16 bits and 4 too.
int64_t AxisOf(Ctx& c) {
  const int64_t axis = c.Int("axis", 1);
  if (!c.HasAttr("axis") && c.Rank(c.T(1)) == 1 && c.Dim(c.T(1), 0) != 1) c.Fail("a scale of several needs `axis`");
  return axis;
}
Values DequantizeLinear(Ctx& c) { return {Dequantize(c, c.T(0), c.T(1), c.Opt(2), AxisOf(c), c.Int("block_size", 0))}; }
Values QuantizeLinear(Ctx& c) {
  Values in = {c.T(0), c.T(1)};
  AxisOf(c);
  if (c.Has(2)) in.push_back(c.T(2));
  return AsOnnx(c, "QuantizeLinear", 21, in);
}

Values MulInteger(Ctx& c) { return {c.Mul(Centered(c, c.T(0), c.Opt(1), {}), Centered(c, c.T(2), c.Opt(3), {}))}; }

Values ReduceSumInteger(Ctx& c) {
  Value x = c.T(0);
  Dims axes = c.Ints("axes");
  for (int64_t& a : axes) a = c.Axis(a, c.Rank(x));
  const DataType to = x.dtype.is_uint() ? DataType::UInt(32) : DataType::Int(32);
  return {Reduce(c, "sum", c.Cast(x, to), axes, c.Int("keepdims") != 0)};
}

}  // namespace

void AddMsftQuantized(OpTable* table) {
  for (const OpRow& row : {
           OpRow{kMsft, "QLinearAdd", QLinearAdd},
           {kMsft, "QLinearMul", QLinearMul},
           {kMsft, "QLinearSigmoid", QLinearSigmoid},
           {kMsft, "QLinearLeakyRelu", QLinearLeakyRelu},
           {kMsft, "QLinearWhere", QLinearWhere},
           {kMsft, "QLinearReduceMean", QLinearReduceMean},
           {kMsft, "QLinearConcat", QLinearConcat},
           {kMsft, "QLinearSoftmax", QLinearSoftmax},
           {kMsft, "QLinearAveragePool", QLinearAveragePool},
           {kMsft, "QLinearGlobalAveragePool", QLinearGlobalAveragePool},
           {kMsft, "QLinearConv", QLinearConv},
           {kMsft, "QuantizeLinear", QuantizeLinear},
           {kMsft, "DequantizeLinear", DequantizeLinear},
           {kMsft, "MulInteger", MulInteger},
           {kMsft, "ReduceSumInteger", ReduceSumInteger},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
