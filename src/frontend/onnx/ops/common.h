// SPDX-License-Identifier: Apache-2.0
/// \file common.h
/// Functions shared by the importers of several operators.
#pragma once

#include <baton/runtime/checked.h>

#include "frontend/onnx/import/importer.h"

namespace baton::onnx {

using runtime::Checked;

inline bool IsFloat(DataType t) { return t.is_floating(); }
inline bool IsInt(DataType t) { return t.is_integral() && !t.is_bool(); }

/// The dense form of a sparse tensor.
HostPtr DenseOf(Ctx& c, const SparseTensor& t);

/// The Relay dtype of an ONNX element type; void where there is none.
DataType FromOnnxType(int32_t type);

/// Type to compute in: float32 for the narrow floats, else the type itself.
inline DataType ComputeType(DataType t) {
  return t.is_bfloat16() || t.is_float8() || t.is_float4() || (t.is_float() && t.bits() < 32) ? DataType::Float(32) : t;
}

/// Product of `dims[begin..end)`; a product that does not fit is an error of the node.
inline int64_t Product(const Dims& dims, size_t begin, size_t end) {
  Checked n = 1;
  for (size_t i = begin; i < end; ++i) n *= dims[i];
  return n;
}
inline int64_t Product(const Dims& dims) { return Product(dims, 0, dims.size()); }

/// from, from + 1, ...: for axes, so `n` is a rank.
inline Dims Iota(int64_t n, int64_t from = 0) {
  Dims d;
  for (int64_t i = 0; i < n; ++i) d.push_back(from + i);
  return d;
}

/// Shape both broadcast to; empty optional-like flag where unknown.
bool BroadcastDims(const Dims& a, const Dims& b, Dims* out);

/// Axes of one element, which `Squeeze` takes away where it is given none. An open length is one of them where the
/// file's shape of the result says so; either way x gets a check of the call, so that the rank of the result is known.
Dims OnesOf(Ctx& c, Value* x);

/// A reduction of `v` over `axes`; handles empty extents. `op` is "sum", "prod", "max", "min", "mean", "all", "any".
Value Reduce(Ctx& c, const char* op, const Value& v, const Dims& axes, bool keepdims);

/// softmax and log_softmax over one axis.
Value Softmax(Ctx& c, const Value& v, int axis);
Value LogSoftmax(Ctx& c, const Value& v, int axis);

Value Sigmoid(Ctx& c, const Value& v);
/// v, or alpha * v below zero.
Value LeakyReluOf(Ctx& c, const Value& v, double alpha);
/// min(max(v, lo), hi) by constants.
Value Clip(Ctx& c, const Value& v, double lo, double hi);
/// Values[i] by index along `axis`; negative indices count from the end.
Value Take(Ctx& c, const Value& v, const Value& indices, int axis);
/// `v` so often along each axis; numbers may be symbols.
Value Repeated(Ctx& c, const Value& v, const Dims& times);
/// Rounds halves to the even neighbour.
Value RoundEven(Ctx& c, const Value& v);
/// The string tensor whose text at each place is `texts[numbers]`.
Value Labelled(const Value& numbers, std::vector<std::string> texts);

/// a times a matrix of few bits, which stays packed; absent where that takes another form of product.
Value TimesFewBits(Ctx& c, const Value& a, const FewBits& b);
/// The same of packed numbers: (K * bits / 8, N) bytes, scale and zero (K / block, N).
Value TimesPacked(Ctx& c, const Value& a, const Value& bytes, const Value& scale, const Value& zero, int64_t bits,
                  int64_t block);

/// ONNX's Cast.
Value CastTo(Ctx& c, const Value& v, DataType to, bool saturate, const std::string& round_mode = "up");
/// 0, 1, ..., n - 1.
Value Arange(Ctx& c, int64_t n, DataType dtype);

// ---- Types of results while values and lengths are not known (OpRow::types).
/// Operand i, known by its type alone.
Value TypedOperand(Ctx& c, size_t i);
/// The same without its lengths.
Value RankedOperand(Ctx& c, size_t i);
/// A list of `n` integers.
Value SomeInts(Ctx& c, int64_t n);
/// The length of operand i, a list about axes; NeedsValue where it is not known.
int64_t CountOf(Ctx& c, size_t i);
/// The known lengths that operand i lists, -1 for the others; CountOf(c, i) of them.
Dims LengthsIn(Ctx& c, size_t i);
/// Results of the type of operand 0, and of its rank and dtype.
Values TypeOfFirst(Ctx& c);
Values RankOfFirst(Ctx& c);

void AddElementwise(OpTable* table);
void AddReductions(OpTable* table);
void AddShapes(OpTable* table);
void AddIndexing(OpTable* table);
void AddMatrix(OpTable* table);
void AddConvolutions(OpTable* table);
void AddNormalization(OpTable* table);
void AddQuantization(OpTable* table);
void AddImages(OpTable* table);
void AddControl(OpTable* table);
void AddLoops(OpTable* table);
void AddScan(OpTable* table);
void AddSequences(OpTable* table);
void AddStrings(OpTable* table);
/// Whether an operand is a tensor of strings that comes with a call, and Equal of such.
bool AnyText(const Ctx& c);
Value EqualTexts(Ctx& c);
void AddRecurrent(OpTable* table);
void AddLosses(OpTable* table);
void AddSignal(OpTable* table);
void AddAttention(OpTable* table);
void AddMl(OpTable* table);
void AddMlEncoders(OpTable* table);
void AddMlModels(OpTable* table);
void AddMlTrees(OpTable* table);
void AddText(OpTable* table);
void AddRandom(OpTable* table);

}  // namespace baton::onnx
