// SPDX-License-Identifier: Apache-2.0
// Constant weights of 8 bits, as products of bytes take them.
#pragma once

#include <baton/runtime/ndarray.h>

#include <cstdint>
#include <vector>

namespace baton::relay::transform {

/// A matrix of weights as the kernels take it: a line for each output, terms of the sum behind the first dimension.
struct ByteWeights {
  NDArray values;             ///< int8; null: they are none
  int64_t shift = 0;          ///< less than the weights themselves, which may be bytes around another middle than 0
  std::vector<float> scales;  ///< one, or one for each output
  /// The sum of each output's weights.
  std::vector<int64_t> Sums() const;
};

/// The weights as int8: less `zeros`, one or one for each output, and less a shift where they are bytes all the same.
/// `transpose`: they have their outputs last. Values are null where they are not bytes; they are `w` itself where
/// nothing changes, and made again when they are read where a file holds `w`.
ByteWeights SignedBytes(const NDArray& w, const NDArray& zeros, bool transpose);

}  // namespace baton::relay::transform
