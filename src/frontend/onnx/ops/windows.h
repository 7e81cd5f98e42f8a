// SPDX-License-Identifier: Apache-2.0
/// \file windows.h
/// Functions shared by operators with sliding windows.
#pragma once

#include "common.h"

namespace baton::onnx {

/// `given`, or `n` times `default_value` where it is empty.
Dims Or(Dims given, size_t n, int64_t default_value);
/// The attributes `pads` and `auto_pad` as numbers: all before, then all after.
Dims Pads(Ctx& c, const Dims& in, const Dims& kernel, const Dims& strides, const Dims& dilations);
/// The convolution that the node's attributes describe, without bias.
Value ConvOf(Ctx& c, const Value& x, const Value& w, DataType out);
Value AddBias(Ctx& c, const Value& y, const Value& bias);

}  // namespace baton::onnx
