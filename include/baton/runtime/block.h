// SPDX-License-Identifier: Apache-2.0
// Memory of objects and of small arrays: blocks of up to 256 bytes out of pages that belong to one thread each.
#pragma once

#include <baton/runtime/c_runtime_api.h>

#include <cstddef>

namespace baton::runtime {

/// Memory of `bytes` bytes, aligned to 16. Throws std::bad_alloc.
BATON_DLL void* AllocBlock(size_t bytes);
/// Gives back what AllocBlock gave for the same number of bytes; any thread may. Null is fine.
BATON_DLL void FreeBlock(void* block, size_t bytes) noexcept;

}  // namespace baton::runtime
