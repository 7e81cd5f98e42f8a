// SPDX-License-Identifier: Apache-2.0
// Matrix products for the reference: fast enough, and bit-identical regardless of the alignment of the data.
#pragma once

#include <cstdint>
#include <vector>

namespace baton::relay::reference {

/// Lines of a matrix, by where each begins; from one element of a line to the next it is `step` numbers.
struct Lines {
  std::vector<const float*> begin;
  int64_t step = 1;
};

/// out[i, j] = sum over k of rows[i][k] * columns[j][k]. Products of float32 are exact in double and are added in
/// double in the order of k, so the result depends neither on the layout of the operands nor on the processor.
void ReferenceProduct(const Lines& rows, const Lines& columns, int64_t depth, float* out);

}  // namespace baton::relay::reference
