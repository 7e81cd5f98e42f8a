// SPDX-License-Identifier: Apache-2.0
/// \file windows.h
/// Functions shared by operators with sliding windows.
#pragma once

#include "common.h"

namespace baton::onnx {

/// `given`, or `n` times `default_value` where it is empty.
Dims Or(Dims given, size_t n, int64_t default_value);
/// Where `auto_pad` asks for pads that depend on a length which is a symbol: pads the data by as much as any length
/// needs, and cuts it to what this one uses.
bool PadSame(Ctx& c, Value* data, const Dims& kernel, const Dims& strides, const Dims& dilations, double fill);
/// The attributes `pads` and `auto_pad` as numbers: all before, then all after.
Dims Pads(Ctx& c, const Dims& in, const Dims& kernel, const Dims& strides, const Dims& dilations);
/// The convolution that the node's attributes describe, without bias.
Value ConvOf(Ctx& c, const Value& x, const Value& w, DataType out);
Value AddBias(Ctx& c, const Value& y, const Value& bias);

}  // namespace baton::onnx
