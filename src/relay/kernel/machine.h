// SPDX-License-Identifier: Apache-2.0
// What the cost model knows of a processor.
#pragma once

#include <baton/ir/target.h>

namespace baton::relay::kernel {

struct Machine {
  int64_t lanes = 16;      ///< elements of a vector
  int64_t registers = 32;  ///< vector registers
  int64_t l1 = 32 << 10;   ///< bytes of a core's first cache that a kernel may count on
  int64_t l2 = 1 << 20;    ///< the same of the second
  int64_t cores = 2;       ///< threads to plan for
  bool fma = true;         ///< multiplies and adds in one instruction
  double fma_per_cycle = 2;
  double loads_per_cycle = 2;
  double fma_latency = 4;  ///< cycles until a result can be added to again
  double l2_bytes_per_cycle = 32;
};

/// Sizes of caches are fixed by the kind of processor, not asked of this one: equal targets give equal code.
BATON_DLL Machine MachineOf(const Target& target, DataType dtype);

}  // namespace baton::relay::kernel
