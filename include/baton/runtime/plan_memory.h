// SPDX-License-Identifier: Apache-2.0
// Memory planning: offsets in one arena for buffers with known sizes and lifetimes. The compiler plans static models,
// an executor those whose sizes it learns from its inputs.
#pragma once

#include <baton/runtime/data_type.h>

#include <cstdint>
#include <vector>

namespace baton::runtime {

struct PlannedBuffer {
  uint64_t bytes = 0;
  int first = 0;        ///< step that writes it
  int last = 0;         ///< last step that reads it
  uint64_t offset = 0;  ///< result, aligned to 64 bytes
};

/// Gives each buffer an offset such that buffers alive at one step do not overlap; returns the arena's size in bytes.
BATON_DLL uint64_t PlanMemory(std::vector<PlannedBuffer>* buffers);

}  // namespace baton::runtime
