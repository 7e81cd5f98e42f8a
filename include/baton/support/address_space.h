// SPDX-License-Identifier: Apache-2.0
// Address space: how much a process may still take, and pages that it can do without.
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
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

/// Lets go of whole pages of a file's private mapping that were not written to; reading them again fetches them.
inline void GiveBackPages(const void* data, size_t bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = (begin + page - 1) / page * page, last = (begin + bytes) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace baton::support
