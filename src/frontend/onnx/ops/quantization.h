// SPDX-License-Identifier: Apache-2.0
/// \file quantization.h
/// Functions shared by operators on quantized numbers.
#pragma once

#include "common.h"

namespace baton::onnx {

/// saturate(round(scaled) + zero) as `to`, where `scaled` is already divided by the scale.
Value Quantize(Ctx& c, const Value& scaled, const Value& zero, DataType to, bool saturate = true);
/// (x - zero) * scale in the type of the scale.
Value Dequantize(Ctx& c, const Value& x, const Value& scale, const Value& zero, int64_t axis, int64_t block);
/// Integers less their zero point, as int32; a zero point for each row or column is shaped as `line`.
Value Centered(Ctx& c, const Value& v, const Value& zero, const Dims& line);
/// Whether it is known that subtracting a zero point changes nothing.
bool IsZero(const Value& zero);

}  // namespace baton::onnx
