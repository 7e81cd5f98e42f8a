// SPDX-License-Identifier: Apache-2.0
/// \file msft.h
/// What importers of ONNX Runtime's operators share.
#pragma once

#include <string>
#include <vector>

#include "frontend/onnx/ops/common.h"

namespace baton::onnx {

inline constexpr const char* kMsft = "com.microsoft";
inline constexpr const char* kNchwc = "com.microsoft.nchwc";
inline const DataType kI64 = DataType::Int(64);

/// The results of ONNX's operator `op`, as version `since` has it, with this node's attributes and outputs.
Values AsOnnx(Ctx& c, const char* op, int since, Values inputs);

/// The fused activation of that name; `params` are its attributes in ONNX's order, those left out have ONNX's defaults.
Value Activate(Ctx& c, const Value& v, const std::string& name, const std::vector<float>& params);

/// gelu(x), by erf or by tanh.
Value GeluOf(Ctx& c, const Value& v, bool tanh = false);
/// x * sigmoid(x).
Value Silu(Ctx& c, const Value& v);

/// A value over its root mean square or its deviation, and the factor it was multiplied by.
struct Normal {
  Value value, mean, inverse;
};
/// (v - mean) / sqrt(variance + epsilon) over `axes`; with `simple` v / sqrt(mean of squares + epsilon), without mean.
Normal Normalise(Ctx& c, const Value& v, const Dims& axes, double epsilon, bool simple);

/// Rows of the caches at `positions`, (batch, sequence) or (sequence): the angles by which pairs of elements turn.
struct Turn {
  Value cosine, sine;  ///< (batch or 1, 1, sequence, half)
};
Turn TurnAt(Ctx& c, const Value& cosine, const Value& sine, const Value& positions);
/// `x` (batch, heads, sequence, size) with its first 2 * half elements turned: pairs of neighbours where interleaved,
/// else of the first and the second half.
Value Rotate(Ctx& c, const Value& x, const Turn& turn, bool interleaved);

/// Queries, keys and values as (batch, heads, sequence, size); there may be fewer heads of keys and values.
struct Heads {
  Value q, k, v;
};
/// How scores become weights.
struct Weighing {
  double scale = 1, softcap = 0;
  Value bias;  ///< added to the scores, where present
  Value sink;  ///< (heads): exp(sink) more in the denominator, where present
};
struct Attended {
  Value output;   ///< (batch, sequence, heads * size)
  Value scores;   ///< (batch, heads, sequence, keys) before softmax
  Value weights;  ///< behind it
};
Attended Attend(Ctx& c, const Heads& heads, const Weighing& how);
/// (batch, sequence, heads * size) to (batch, heads, sequence, size).
Value ToHeads(Ctx& c, const Value& v, int64_t heads);

/// The part behind the products of Attention and QAttention: cuts their sum into heads, appends to the past, masks.
/// Results: output and present.
Values AttentionOf(Ctx& c, const Value& projected, const Value& mask, const Value& past, const Value& bias);

void AddMsftFused(OpTable* table);
void AddMsftNorms(OpTable* table);
void AddMsftTensors(OpTable* table);
void AddMsftAttention(OpTable* table);
void AddMsftGroupQuery(OpTable* table);
void AddMsftQuantized(OpTable* table);
void AddMsftQuantizedMatrix(OpTable* table);
void AddMsftNBits(OpTable* table);
void AddMsftNchwc(OpTable* table);

}  // namespace baton::onnx
