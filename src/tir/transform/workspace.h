// SPDX-License-Identifier: Apache-2.0
// The name and the alignment of a planned function's arena.
#pragma once

#include <cstdint>

namespace baton::tir {

constexpr const char* kArenaName = "workspace";
constexpr int64_t kArenaAlign = 64;

}  // namespace baton::tir
