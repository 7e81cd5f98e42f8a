// SPDX-License-Identifier: Apache-2.0
// Functions of a module by groups that call each other.
#pragma once

#include <cstddef>
#include <vector>

namespace baton::relay {

/// Strongly connected groups of a graph given by its edges, callees before callers.
std::vector<std::vector<size_t>> CallGroups(const std::vector<std::vector<size_t>>& calls);

}  // namespace baton::relay
