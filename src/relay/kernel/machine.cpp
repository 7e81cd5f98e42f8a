// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <baton/support/machine.h>

namespace baton::relay::kernel {

namespace {
bool IsX86(const Target& target) {
#ifdef __x86_64__
  if (target->mtriple.empty()) return true;
#endif
  return target->mtriple.view().starts_with("x86_64");
}
}  // namespace

Machine MachineOf(const Target& target, DataType dtype) {
  Machine m;
  m.lanes = target->Lanes(dtype);
  m.registers = target->vector_registers();
  if (target->vector_bits() == 128) m.l2_bytes_per_cycle = 16;
  m.fma = target->Has("fma") || target->Has("avx512f") || !IsX86(target);
  m.cores = target->num_cores > 0 ? target->num_cores : support::Machine().num_cpus;
  return m;
}

}  // namespace baton::relay::kernel
