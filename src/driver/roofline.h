// SPDX-License-Identifier: Apache-2.0
// How much a kernel has to do, and how much the machine can do.
#pragma once

#include <baton/relay/expr.h>

namespace baton::driver {

/// From a monotonic clock.
double Seconds();

/// Lower bounds for a fusion group: arithmetic and memory traffic, regardless of its code; in float64, formulas of the
/// extents that are open.
struct FlopsAndBytes {
  PrimExpr flops;  ///< two a multiply-add of a convolution or product, one an element of other arithmetic
  PrimExpr bytes;  ///< of its inputs and outputs, each once
};
FlopsAndBytes FlopsAndBytesOf(const relay::Function& func);

/// Peak performance of this machine with the threads of the pool.
struct Roofline {
  double flops_per_second = 0;  ///< float32, by fused multiply-adds in registers
  double bytes_per_second = 0;  ///< reading memory that no cache holds
};
/// Measured once a process, in about a fifth of a second.
const Roofline& MeasuredRoofline();

}  // namespace baton::driver
