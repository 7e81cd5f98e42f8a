// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <baton/support/machine.h>

namespace baton::relay::kernel {

Machine MachineOf(const Target& target, DataType dtype) {
  Machine m;
  m.lanes = target->Lanes(dtype);
  m.registers = target->vector_registers();
  if (target->vector_bits() == 128) m.l2_bytes_per_cycle = 16;
  m.cores = target->num_cores > 0 ? target->num_cores : support::Machine().num_cpus;
  return m;
}

}  // namespace baton::relay::kernel
