// SPDX-License-Identifier: Apache-2.0
// Weights of 2, 4 and 8 bits, several of them in a byte, with a scale for each block of a row.
#include <array>

#include "msft.h"

namespace baton::onnx {
namespace {

/// The numbers of `bits` bits in bytes, low ones first, along the last axis: (..., n) bytes to (..., n * 8 / bits).
Value Unpack(Ctx& c, const Value& bytes, int64_t bits) {
  if (bits == 8) return bytes;
  if (bits != 2 && bits != 4) c.Unsupported("`bits` " + std::to_string(bits) + ", where 2, 4 and 8 are imported");
  const int64_t each = 8 / bits, mask = (1 << bits) - 1;
  Dims shape = c.Fixed(bytes);
  const int64_t rank = static_cast<int64_t>(shape.size());
  Dims shifts;
  for (int64_t i = 0; i < each; ++i) shifts.push_back(i * bits);
  const DataType u8 = DataType::UInt(8);
  Value parts = c.Call("right_shift", {c.Unsqueeze(bytes, {rank}), c.Cast(c.Int64s(shifts), u8)});
  parts = c.Call("bitwise_and", {parts, c.Scalar(u8, static_cast<double>(mask))});
  shape.back() *= each;
  return c.Reshape(parts, shape);
}

/// The zero points of blocks, (rows, blocks) in any form, as numbers of type `t`.
Value ZeroPoints(Ctx& c, const Value& given, int64_t rows, int64_t blocks, int64_t bits, DataType t) {
  if (!given) return c.Scalar(t, static_cast<double>(int64_t{1} << (bits - 1)));
  if (IsFloat(given.dtype)) return c.Unsqueeze(c.Reshape(c.Cast(given, t), {rows, blocks}), {2});
  const int64_t bytes = (blocks * bits + 7) / 8;
  Value z = Unpack(c, c.Reshape(given, {rows, bytes}), bits);
  return c.Unsqueeze(c.Cast(c.Slice(z, 1, 0, blocks), t), {2});
}

/// Matrices of fewer elements are as well off in float32.
constexpr int64_t kFewElements = 4096;

}  // namespace

Value TimesPacked(Ctx& c, const Value& a, const Value& bytes, const Value& scale, const Value& zero, int64_t bits,
                  int64_t block) {
  return c.CallWith("nn.contrib_matmul_nbits", {a, bytes, scale, zero}, {{"bits", bits}, {"block", block}});
}

Value TimesFewBits(Ctx& c, const Value& a, const FewBits& b) {
  const Host& from = *b.numbers.host;
  const int64_t k = from.dims[0], n = from.dims[1];
  if (c.Rank(a) < 2 || a.dims.back() != k || a.dtype != DataType::Float(32) || k % 8 != 0 || k * n < kFewElements ||
      b.block % 2 != 0)
    return Value();
  // int4 is moved to 0..15, its zero with it.
  const int shift = b.numbers.dtype.is_uint() ? 0 : 8;
  auto host = std::make_shared<Host>();
  host->dtype = DataType::UInt(8);
  host->dims = {k / 2, n};
  host->owned.resize(static_cast<size_t>(k / 2 * n));
  for (int64_t i = 0; i < k / 2; ++i) {
    const char *low = from.bytes.data() + 2 * i * n, *high = low + n;
    for (int64_t j = 0; j < n; ++j)
      host->owned[static_cast<size_t>(i * n + j)] =
          static_cast<char>(((low[j] + shift) & 15) | ((high[j] + shift) & 15) << 4);
  }
  host->bytes = host->owned;
  const DataType f32 = DataType::Float(32);
  Value zero = b.zero ? c.Cast(c.Cast(b.zero, DataType::Int(32)), f32)
                      : c.Call("full", {c.Scalar(f32, 0)}, {{"shape", IntsAny(b.scale.dims)}, {"dtype", f32}});
  if (shift) zero = c.Add(zero, c.Scalar(f32, shift));
  return TimesPacked(c, a, c.Constant(host), b.scale, zero, 4, b.block);
}

namespace {

Values MatMulNBits(Ctx& c) {
  Value a = c.T(0), packed = c.T(1), scales = c.T(2);
  const int64_t n = c.Int("N"), k = c.Int("K"), bits = c.Int("bits", 4), block = c.Int("block_size");
  c.Ignore("accuracy_level");
  if (c.Int("weight_prepacked", 0) != 0) c.Unsupported("`weight_prepacked`, the layout of one kind of GPU");
  if (n < 1 || k < 1 || block < 16) c.Fail("`N`, `K` or `block_size` is too small");
  if (c.Has(4)) c.Unsupported("`g_idx`; export the weights in the order of their groups");
  const int64_t blocks = (k + block - 1) / block;
  const DataType t = ComputeType(a.dtype);
  Value y;
  if (k % 8 == 0 && t == DataType::Float(32) && (bits == 2 || bits == 4 || bits == 8)) {
    // The bytes of a column side by side with those of the next, so that neighbours of the result read neighbours.
    Value bytes = c.Transpose(c.Reshape(packed, {n, blocks * block * bits / 8}), {1, 0});
    // Zero points stay bytes where they are whole numbers, and scales half floats.
    const DataType z = c.Has(3) && IsFloat(c.T(3).dtype) ? t : DataType::UInt(8);
    Value zeros = ZeroPoints(c, c.Opt(3), n, blocks, bits, z);
    zeros = c.Rank(zeros) == 0 ? c.Call("full", {zeros}, {{"shape", IntsAny({blocks, n})}, {"dtype", z}})
                               : c.Transpose(c.Squeeze(zeros, {2}), {1, 0});
    bytes = c.Slice(bytes, 0, 0, k * bits / 8);
    const bool half = scales.dtype == DataType::Float(16) && z != t;
    Value scale = c.Transpose(c.Cast(c.Reshape(scales, {n, blocks}), half ? scales.dtype : t), {1, 0});
    y = TimesPacked(c, c.Cast(a, t), bytes, scale, zeros, bits, block);
    if (c.Has(5)) y = c.Add(y, c.Cast(c.T(5), t));
    return {c.Cast(y, a.dtype)};
  }
  Value w = Unpack(c, c.Reshape(packed, {n, blocks, block * bits / 8}), bits);
  w = c.Sub(c.Cast(w, t), ZeroPoints(c, c.Opt(3), n, blocks, bits, t));
  w = c.Mul(w, c.Cast(c.Reshape(scales, {n, blocks, 1}), t));
  w = c.Slice(c.Reshape(w, {n, blocks * block}), 1, 0, k);
  y = c.MatMul(c.Cast(a, t), c.Transpose(w, {1, 0}));
  if (c.Has(5)) y = c.Add(y, c.Cast(c.T(5), t));
  return {c.Cast(y, a.dtype)};
}

/// Values of the two types of 4 bits of bitsandbytes: FP4, and quantiles of the normal distribution.
constexpr std::array<double, 16> kFp4 = {
    0.0,  0.00520833333,  0.66666667,  1.0,  0.33333333,  0.5,  0.16666667,  0.25,
    -0.0, -0.00520833333, -0.66666667, -1.0, -0.33333333, -0.5, -0.16666667, -0.25};
constexpr std::array<double, 16> kNf4 = {-1.0,
                                         0.0 - 0.6961928009986877,
                                         0.0 - 0.5250730514526367,
                                         0.0 - 0.39491748809814453,
                                         -0.28444138169288635,
                                         -0.18477343022823334,
                                         -0.09105003625154495,
                                         0.0,
                                         0.07958029955625534,
                                         0.16093020141124725,
                                         0.24611230194568634,
                                         0.33791524171829224,
                                         0.44070982933044434,
                                         0.5626170039176941,
                                         0.7229568362236023,
                                         1.0};

/// Here the high bits of a byte come first.
Values MatMulBnb4(Ctx& c) {
  Value a = c.T(0), packed = c.T(1), scales = c.T(2);
  const int64_t n = c.Int("N"), k = c.Int("K"), block = c.Int("block_size"), kind = c.Int("quant_type");
  c.Ignore("training_mode");
  const bool turn = c.Int("transB", 1) != 0;
  if (n < 1 || k < 1 || block < 16) c.Fail("`N`, `K` or `block_size` is too small");
  if (kind != 0 && kind != 1) c.Fail("`quant_type` is " + std::to_string(kind) + ", not 0 or 1");
  const DataType t = ComputeType(a.dtype), u8 = DataType::UInt(8);
  const int64_t count = n * k, bytes = (count + 1) / 2, blocks = (count + block - 1) / block;
  Value flat = c.Reshape(packed, {bytes, 1});
  Value halves =
      c.Concat({c.Call("right_shift", {flat, c.Scalar(u8, 4)}), c.Call("bitwise_and", {flat, c.Scalar(u8, 15)})}, 1);
  const auto& values = kind == 0 ? kFp4 : kNf4;
  Value table = c.Constant(HostFromFloats(t, {16}, {values.begin(), values.end()}));
  Value w = c.Slice(c.Reshape(Take(c, table, c.Cast(halves, DataType::Int(32)), 0), {2 * bytes}), 0, 0, count);
  Value s = c.BroadcastTo(c.Reshape(c.Cast(scales, t), {blocks, 1}), {blocks, block});
  w = c.Reshape(c.Mul(w, c.Slice(c.Reshape(s, {blocks * block}), 0, 0, count)), {n, k});
  return {c.Cast(c.MatMul(c.Cast(a, t), turn ? c.Transpose(w, {1, 0}) : w), a.dtype)};
}

/// Rows of a table whose elements are quantized in blocks along another axis; only the rows taken are dequantized.
Values GatherBlockQuantized(Ctx& c) {
  Value data = c.T(0), indices = c.T(1), scales = c.T(2), zeros = c.Opt(3);
  const int rank = c.Rank(data);
  const int axis = c.Axis(c.Int("gather_axis", 0), rank), along = c.Axis(c.Int("quantize_axis", 1), rank);
  const int64_t bits = c.Int("bits", 4), block = c.Int("block_size", 128);
  const DataType t = ComputeType(scales.dtype);
  const bool bytes = data.dtype == DataType::UInt(8);
  if (axis == along) c.Unsupported("`gather_axis` equal to `quantize_axis`");
  if (bytes && bits < 8 && axis == rank - 1) c.Fail("packed numbers cannot be gathered along their axis");
  auto rows = [&](const Value& v) { return Take(c, v, indices, axis); };
  // Behind the gather the axes of the indices are where one axis was.
  const int shift = c.Rank(indices) - 1, at = along > axis ? along + shift : along;
  Value w = rows(data);
  if (bytes) w = Unpack(c, w, bits);
  Value s = c.Cast(rows(scales), t), z;
  const int64_t length = c.Dim(w, at), blocks = c.Dim(s, at);
  const int64_t size = block == 0 ? length : block;
  if (zeros) {
    z = rows(zeros);
    if (bytes && bits < 8) z = c.Slice(Unpack(c, z, bits), c.Rank(z) - 1, 0, c.Dim(s, -1));
    z = c.Cast(z, t);
  } else if (bytes) {
    z = c.Scalar(t, static_cast<double>(int64_t{1} << (bits - 1)));
  }
  auto spread = [&](const Value& v) {
    if (c.Rank(v) == 0 || blocks == length) return v;
    Dims wide = c.Lengths(v);
    wide.insert(wide.begin() + at + 1, size);
    Dims flat = c.Lengths(v);
    flat[static_cast<size_t>(at)] = blocks * size;
    return c.Slice(c.Reshape(c.BroadcastTo(c.Unsqueeze(v, {at + 1}), wide), flat), at, 0, length);
  };
  Value y = c.Cast(w, t);
  if (z) y = c.Sub(y, spread(z));
  return {c.Cast(c.Mul(y, spread(s)), scales.dtype)};
}

}  // namespace

void AddMsftNBits(OpTable* table) {
  for (const OpRow& row : {OpRow{kMsft, "MatMulNBits", MatMulNBits},
                           {kMsft, "MatMulBnb4", MatMulBnb4},
                           {kMsft, "GatherBlockQuantized", GatherBlockQuantized}}) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
