// SPDX-License-Identifier: Apache-2.0
// How much address space a process may still take.
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdint>

namespace baton::support {

/// The limit of this process in bytes (RLIMIT_AS); UINT64_MAX without one.
inline uint64_t AddressSpaceLimit() {
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

/// Whether so many bytes in one piece could be had now; takes none.
inline bool HasAddressSpace(uint64_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return false;
  munmap(p, bytes);
  return true;
}

}  // namespace baton::support
