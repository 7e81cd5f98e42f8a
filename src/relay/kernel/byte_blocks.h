// SPDX-License-Identifier: Apache-2.0
// Products of bytes by weights of few bits, whose blocks have scales and zero points.
#pragma once

#include "build.h"

namespace baton::relay::kernel {

/// out[m, n] = sum over k of data[m, k] * (number[k, n] - zero[k / block, n]) * scale[k / block, n], where a block of
/// the data is whole numbers from -127 to 127 times its largest element's 127th part. Buffers are flat.
struct ByteBlocks {
  PrimExpr rows;  ///< M
  int64_t units = 0, depth = 0, bits = 4, block = 32;
  /// Columns of a panel: two vectors. A panel's line holds a byte for each of four terms of each column; with 4 bits
  /// the low halves are the first four terms of eight and the high halves the others.
  int64_t panel = 0;
  Buffer data, weight, scale, zero, out;
};

Stmt WriteByteBlocks(const ByteBlocks& p);

}  // namespace baton::relay::kernel
