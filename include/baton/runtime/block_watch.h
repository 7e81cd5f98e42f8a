// SPDX-License-Identifier: Apache-2.0
// Test hooks for out-of-memory conditions.
#pragma once

#include <baton/runtime/c_runtime_api.h>

namespace baton::runtime {

/// From here on `watch(1)` is called before each block (block.h) that this thread takes, and may throw, and `watch(-1)`
/// when it gives one back. Null ends it. Slow. Larger memory comes from malloc and is not seen; with sanitizers all of
/// it does.
BATON_DLL void WatchBlocks(void (*watch)(int)) noexcept;

}  // namespace baton::runtime
