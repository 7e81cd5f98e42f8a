// SPDX-License-Identifier: Apache-2.0
// Memory of objects and of small arrays: blocks of up to 256 bytes in pages, each of which belongs to one thread.
#pragma once

#include <baton/runtime/c_runtime_api.h>

#include <cstddef>

namespace baton::runtime {

/// Memory of `bytes` bytes, aligned to 16. Throws std::bad_alloc.
BATON_DLL void* AllocBlock(size_t bytes);
/// Frees memory of AllocBlock, with the same number of bytes, on any thread. Null is allowed.
BATON_DLL void FreeBlock(void* block, size_t bytes) noexcept;

}  // namespace baton::runtime
