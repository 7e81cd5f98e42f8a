// SPDX-License-Identifier: Apache-2.0
// A hint for memory that somebody else has allocated.
#pragma once

#include <baton/support/export.h>

#include <cstddef>

namespace baton::support {

/// Asks the system for large pages where `bytes` bytes at `p`, not yet written, are worth it (4 MiB): filling them
/// takes a page fault for each 2 MiB, not for each 4 KiB. Does nothing where there are none.
BATON_DLL void WantLargePages(void* p, size_t bytes) noexcept;

}  // namespace baton::support
