// SPDX-License-Identifier: Apache-2.0
#include "relay/transform/byte_weights.h"

#include <baton/runtime/scalar.h>
#include <relay/op/later.h>

#include <algorithm>
#include <cmath>

namespace baton::relay::transform {
namespace {

/// The value for a line of `values`, of which there is one for each line, or one for all.
double LineOf(const NDArray& values, int64_t line) {
  return runtime::LoadDouble(values.data(), values.dtype(), values.numel() > 1 ? line : 0);
}

/// f(place, weight) in the order of lines, of `w` less `zeros`, one or one for each output.
template <class F>
void ForEachWeight(const NDArray& w, const NDArray& zeros, bool transpose, F f) {
  const int64_t lines = w.dim(transpose ? 1 : 0), terms = lines > 0 ? w.numel() / lines : 0;
  for (int64_t line = 0; line < lines; ++line) {
    const double zero = zeros.defined() ? LineOf(zeros, line) : 0;
    for (int64_t k = 0; k < terms; ++k) {
      const int64_t at = transpose ? k * lines + line : line * terms + k;
      f(line * terms + k, runtime::LoadDouble(w.data(), w.dtype(), at) - zero);
    }
  }
}
NDArray ShiftedBytes(const NDArray& w, const NDArray& zeros, bool transpose, int64_t shift) {
  std::vector<int64_t> shape = w.shape();
  if (transpose) std::swap(shape[0], shape[1]);
  NDArray out = NDArray::Empty(shape, DataType::Int(8));
  ForEachWeight(w, zeros, transpose, [&](int64_t at, double v) {
    out.ptr<int8_t>()[at] = static_cast<int8_t>(static_cast<int64_t>(v) - shift);
  });
  return out;
}

}  // namespace

std::vector<int64_t> ByteWeights::Sums() const {
  const int64_t lines = values.dim(0), terms = values.numel() / std::max<int64_t>(lines, 1);
  std::vector<int64_t> sums(static_cast<size_t>(lines));
  for (int64_t i = 0; i < values.numel(); ++i) sums[static_cast<size_t>(i / terms)] += values.ptr<int8_t>()[i];
  return sums;
}

ByteWeights SignedBytes(const NDArray& w, const NDArray& zeros, bool transpose) {
  ByteWeights weight;
  bool changed = transpose || w.dtype() != DataType::Int(8);
  for (int64_t line = 0; zeros.defined() && line < zeros.numel() && !changed; ++line)
    changed = LineOf(zeros, line) != 0;
  if (!changed) {
    weight.values = w.Contiguous();
    return weight;
  }
  double low = 0, high = 0;
  bool whole = true;
  auto make = [zeros, transpose, &low, &high, &whole, &weight](const NDArray& from) {
    const NDArray dense = from.Contiguous();
    ForEachWeight(dense, zeros, transpose, [&](int64_t, double v) {
      low = std::min(low, v), high = std::max(high, v), whole = whole && v == std::floor(v);
    });
    if (!whole || high - low > 255) return NDArray();
    weight.shift = static_cast<int64_t>(high > 127 ? high - 127 : low < -128 ? low + 128 : 0);
    return ShiftedBytes(dense, zeros, transpose, weight.shift);
  };
  weight.values = Reading(w, make);
  if (weight.values.defined() && w.HasSource()) {
    MakeAgain(weight.values, w, [zeros, transpose, shift = weight.shift](const NDArray& from) {
      return ShiftedBytes(from.Contiguous(), zeros, transpose, shift);
    });
  }
  return weight;
}

}  // namespace baton::relay::transform
