// SPDX-License-Identifier: Apache-2.0
/// \file recurrent.h
/// Recurrent layers whose weights are given otherwise than ONNX does.
#pragma once

#include <functional>

#include "common.h"

namespace baton::onnx {

/// The weights of an LSTM in bytes: scale * (q - zero).
struct ByteWeights {
  Value w, r;  ///< (directions, gates * hidden, inputs), w of any type, r int8
  /// x W^T in floats, for rows x of the input and one direction.
  std::function<Value(Ctx&, const Value& x, int64_t direction)> project;
  Value r_scale, r_zero;  ///< (directions, gates * hidden), floats and int32; r_zero absent where it is 0
};

/// ONNX's LSTM of the node's inputs 0 and 3 to 7; its weights are `bytes` where they are given, else inputs 1 and 2.
Values LstmOf(Ctx& c, const ByteWeights* bytes);

}  // namespace baton::onnx
