// SPDX-License-Identifier: Apache-2.0
// Quantization, said in ordinary arithmetic.
#include "quantization.h"

#include <algorithm>
#include <cmath>

#include "common.h"
#include "windows.h"

namespace baton::onnx {
namespace {

/// Scale or zero point, shaped to work on data of shape `shape`: one for all, one for each element of `axis`, or one
/// for each block of `block` along it.
Value Spread(Ctx& c, const Value& v, const Dims& shape, int64_t axis, int64_t block) {
  int rank = static_cast<int>(shape.size());
  if (c.Rank(v) == 0) return v;
  if (v.rank() == 1) {
    if (c.Dim(v, 0) == 1) return c.Reshape(v, {});
    int a = c.Axis(axis, rank);
    Dims line(shape.size(), 1);
    line[static_cast<size_t>(a)] = c.Dim(v, 0);
    return c.Reshape(v, line);
  }
  int a = c.Axis(axis, rank);
  if (v.rank() != rank || block < 1) c.Fail("the scale fits neither an axis nor blocks of the data");
  Dims parts = c.Fixed(v), wide = parts;
  size_t at = static_cast<size_t>(a);
  if (Checked(parts[at] - 1) * block >= shape[at] || Checked(parts[at]) * block < shape[at])
    c.Fail("`block_size` does not fit the scale");
  wide.insert(wide.begin() + a + 1, block);
  Value y = c.BroadcastTo(c.Unsqueeze(v, {a + 1}), wide);
  Dims full = parts;
  full[at] *= block;
  y = c.Reshape(y, full);
  return full[at] == shape[at] ? y : c.Slice(y, a, 0, shape[at]);
}

bool IsByte(DataType t) { return t == DataType::Int(8) || t == DataType::UInt(8); }

/// Whether a scale and a zero point are one for all, or one for each element of an axis.
bool IsPlain(Ctx& c, const Value& scale, const Value& zero) {
  return scale.dtype == DataType::Float(32) && c.Rank(scale) <= 1 && (!zero || c.Rank(zero) == c.Rank(scale));
}
/// An operator of qnn on bytes: of a value, its scale and zero point, which IsPlain.
Value OfBytes(Ctx& c, const char* op, const Value& x, const Value& scale, const Value& zero, int64_t axis,
              std::initializer_list<std::pair<const char*, Any>> attrs) {
  const bool one = c.Rank(scale) == 0 || c.Dim(scale, 0) == 1;
  auto param = [&](const Value& v) { return one && c.Rank(v) == 1 ? c.Reshape(v, {}) : v; };
  std::vector<std::pair<const char*, Any>> all(attrs);
  if (!one) all.emplace_back("axis", Any(int64_t{c.Axis(axis, c.Rank(x))}));
  return c.CallWith(op, {x, param(scale), zero ? param(zero) : c.Scalar(DataType::Int(32), 0)}, all);
}

void Range(DataType t, double* low, double* high) {
  *low = t.is_uint() ? 0 : -std::ldexp(1.0, t.bits() - 1);
  *high = std::ldexp(1.0, t.is_uint() ? t.bits() : t.bits() - 1) - 1;
}

DataType QuantizedDtype(Ctx& c) {
  int64_t wanted = c.Int("output_dtype", 0);
  if (c.Has(2)) return c.T(2).dtype;
  DataType to = wanted != 0 ? FromOnnxType(static_cast<int32_t>(wanted)) : DataType::UInt(8);
  if (to.is_void()) c.Unsupported("`output_dtype` " + std::string(DataTypeName(static_cast<int32_t>(wanted))));
  return to;
}

Values QuantizeLinearTypes(Ctx& c) { return {c.Cast(RankedOperand(c, 0), QuantizedDtype(c))}; }

Values QuantizeLinear(Ctx& c) {
  Value x = c.T(0), scale = c.T(1), zero = c.Opt(2);
  int64_t axis = c.Int("axis", 1), block = c.Int("block_size", 0);
  bool saturate = c.Int("saturate", 1) != 0;
  int64_t precision = c.Int("precision", 0);
  DataType to = QuantizedDtype(c);
  DataType in = precision != 0 ? FromOnnxType(static_cast<int32_t>(precision)) : scale.dtype;
  in = ComputeType(in.is_void() || !IsFloat(in) ? DataType::Float(32) : in);
  if (block == 0 && in == DataType::Float(32) && x.dtype == in && IsByte(to) && IsPlain(c, scale, zero))
    return {OfBytes(c, "qnn.quantize", x, scale, zero, axis, {{"out_dtype", Any(to)}})};
  const Dims shape = c.Rank(scale) == 0 ? x.dims : c.Fixed(x);
  Value s = c.Cast(Spread(c, scale, shape, axis, block), in);
  Value z = zero ? Spread(c, c.Cast(zero, in), shape, axis, block) : zero;
  return {Quantize(c, c.Div(c.Cast(x, in), s), z, to, saturate)};
}

/// The parts of products with a matrix of constants of 4 bits; null for other operands.
std::shared_ptr<const FewBits> FewBitsOf(Ctx& c, int64_t axis, int64_t block) {
  const Value x = c.T(0), scale = c.T(1), zero = c.Opt(2);
  if (!x.host || x.weight || !x.dtype.is_integral() || x.dtype.bits() != 4 || x.rank() != 2 || !scale.fixed() ||
      scale.dtype != DataType::Float(32))
    return nullptr;
  auto few = std::make_shared<FewBits>();
  few->numbers = x;
  few->block = x.dims[0];
  auto in_blocks = [&](const Value& v) {  // as (blocks, N)
    if (v.rank() == 2) return v;
    return c.BroadcastTo(v.rank() == 1 ? c.Reshape(v, {1, c.Dim(v, 0)}) : v, {1, x.dims[1]});
  };
  if (scale.rank() == 2) {
    few->block = block;
    if (c.Axis(axis, 2) != 0 || block < 1 || scale.dims[1] != x.dims[1]) return nullptr;
  } else if (scale.rank() == 1 && scale.dims[0] != 1 && c.Axis(axis, 2) != 1) {
    return nullptr;
  }
  few->scale = in_blocks(scale);
  if (zero) few->zero = in_blocks(zero);
  return few;
}

Values DequantizeLinear(Ctx& c) {
  int64_t axis = c.Int("axis", 1), block = c.Int("block_size", 0), wanted = c.Int("output_dtype", 0);
  Value y = Dequantize(c, c.T(0), c.T(1), c.Opt(2), axis, block);
  if (wanted == 0) {
    y.few_bits = FewBitsOf(c, axis, block);
    return {y};
  }
  DataType to = FromOnnxType(static_cast<int32_t>(wanted));
  if (to.is_void()) c.Unsupported("`output_dtype`");
  return {CastTo(c, y, to, true)};
}

Values DynamicQuantizeLinear(Ctx& c) {
  Value x = c.T(0);
  Dims all = Iota(c.Rank(x));
  Value zero = c.Scalar(x.dtype, 0);
  Value high = c.Call("maximum", {Reduce(c, "max", x, all, false), zero});
  Value low = c.Call("minimum", {Reduce(c, "min", x, all, false), zero});
  Value scale = c.Div(c.Sub(high, low), 255);
  Value point = RoundEven(c, Clip(c, c.Div(c.Sub(zero, low), scale), 0, 255));
  Value y = Clip(c, c.Add(RoundEven(c, c.Div(x, scale)), point), 0, 255);
  return {c.Cast(y, DataType::UInt(8)), scale, c.Cast(point, DataType::UInt(8))};
}

Values MatMulInteger(Ctx& c) {
  // A zero point for each row of A, or each column of B.
  Value a = Centered(c, c.T(0), c.Opt(2), {-1, 1}), b = Centered(c, c.T(1), c.Opt(3), {1, -1});
  return {c.MatMul(a, b, DataType::Int(32))};
}

Values QLinearMatMul(Ctx& c) {
  Value a = c.T(0), a_scale = c.T(1), b = c.T(3), b_scale = c.T(4), y_scale = c.T(6), zero = c.T(7);
  auto line = [&](const Value& v, bool row) {
    if (c.Rank(v) == 0 || (v.rank() == 1 && c.Dim(v, 0) == 1)) return c.Reshape(v, {});
    if (v.rank() > 1) return v;
    return c.Reshape(v, row ? Dims{c.Dim(v, 0), 1} : Dims{1, c.Dim(v, 0)});
  };
  auto centered = [&](const Value& v, const Value& z, bool row) {
    const Value wide = c.Cast(v, DataType::Int(32));
    return IsZero(z) ? wide : c.Sub(wide, c.Cast(line(z, row), DataType::Int(32)));
  };
  Value y = c.MatMul(centered(a, c.T(2), true), centered(b, c.T(5), false), DataType::Int(32));
  DataType in = ComputeType(a_scale.dtype);
  Value scale =
      c.Div(c.Mul(c.Cast(line(a_scale, true), in), c.Cast(line(b_scale, false), in)), c.Cast(line(y_scale, true), in));
  return {Quantize(c, c.Mul(c.Cast(y, in), scale), line(zero, true), zero.dtype)};
}

Dims ChannelLine(const Value& w) {
  Dims line(w.dims.size(), 1);
  if (!line.empty()) line[0] = w.dims[0];
  return line;
}

Values ConvInteger(Ctx& c) {
  Value x = c.T(0), w = c.T(1);
  Value a = Centered(c, x, c.Opt(2), {}), b = Centered(c, w, c.Opt(3), ChannelLine(w));
  return {ConvOf(c, a, b, DataType::Int(32))};
}

Values QLinearConv(Ctx& c) {
  Value x = c.T(0), x_scale = c.T(1), w = c.T(3), w_scale = c.T(4), y_scale = c.T(6), zero = c.T(7);
  Value y = ConvOf(c, Centered(c, x, c.T(2), {}), Centered(c, w, c.T(5), ChannelLine(w)), DataType::Int(32));
  if (c.Has(8)) y = AddBias(c, y, c.T(8));
  Dims line(static_cast<size_t>(c.Rank(y)), 1);
  auto one = [&](const Value& v) { return c.Rank(v) == 0 ? v : c.Reshape(v, {}); };
  Value ws = w_scale;
  if (c.Rank(ws) == 1) {
    line[1] = c.Dim(ws, 0);
    ws = c.Reshape(ws, line);
  }
  Value scale = c.Div(c.Mul(one(x_scale), ws), one(y_scale));
  return {Quantize(c, c.Mul(c.Cast(y, scale.dtype), scale), one(zero), zero.dtype)};
}

}  // namespace

bool IsZero(const Value& zero) {
  if (!zero.host || zero.weight || zero.host->is_string) return false;
  return std::all_of(zero.host->bytes.begin(), zero.host->bytes.end(), [](char b) { return b == 0; });
}

Value Quantize(Ctx& c, const Value& scaled, const Value& zero, DataType to, bool saturate) {
  if (!IsInt(to)) {
    Value y = zero ? c.Add(scaled, c.Cast(zero, scaled.dtype)) : scaled;
    return CastTo(c, y, to, saturate);
  }
  Value y = RoundEven(c, scaled);
  if (zero) y = c.Add(y, c.Cast(zero, y.dtype));
  double low, high;
  Range(to, &low, &high);
  return CastTo(c, Clip(c, y, low, high), to, true);
}

Value Dequantize(Ctx& c, const Value& x, const Value& scale, const Value& zero, int64_t axis, int64_t block) {
  if (block == 0 && IsByte(x.dtype) && IsPlain(c, scale, zero))
    return OfBytes(c, "qnn.dequantize", x, scale, zero, axis, {});
  DataType in = ComputeType(scale.dtype);
  const Dims shape = c.Rank(scale) == 0 ? x.dims : c.Fixed(x);
  Value y;
  if (IsInt(x.dtype)) {
    DataType wide = DataType::Int(x.dtype.bits() >= 32 ? 64 : 32);
    y = c.Cast(x, wide);
    if (zero && !IsZero(zero)) y = c.Sub(y, Spread(c, c.Cast(zero, wide), shape, axis, block));
    y = c.Cast(y, in);
  } else {
    y = c.Cast(x, in);
    if (zero) y = c.Sub(y, Spread(c, c.Cast(zero, in), shape, axis, block));
  }
  return c.Cast(c.Mul(y, c.Cast(Spread(c, scale, shape, axis, block), in)), scale.dtype);
}

Value Centered(Ctx& c, const Value& v, const Value& zero, const Dims& line) {
  Value y = c.Cast(v, DataType::Int(32));
  if (!zero || IsZero(zero)) return y;
  Value z = c.Cast(zero, DataType::Int(32));
  if (c.Rank(z) == 1 && c.Dim(z, 0) == 1) z = c.Reshape(z, {});
  if (c.Rank(z) == 1) z = c.Reshape(z, line);
  return c.Sub(y, z);
}

void AddQuantization(OpTable* table) {
  for (const OpRow& row : {
           OpRow{"", "QuantizeLinear", QuantizeLinear, QuantizeLinearTypes},
           {"", "DequantizeLinear", DequantizeLinear},
           {"", "DynamicQuantizeLinear", DynamicQuantizeLinear},
           {"", "MatMulInteger", MatMulInteger},
           {"", "QLinearMatMul", QLinearMatMul},
           {"", "ConvInteger", ConvInteger},
           {"", "QLinearConv", QLinearConv},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
