// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/runtime/executor.h>

#include <string>
#include <vector>

namespace baton::runtime {

/// The manifest of an artifact: what it says of its model, as JSON. `arch`: the processor; null for this one.
std::string ManifestOf(const ExecutableDesc& desc, const std::vector<std::string>& guards, const char* arch = nullptr);

}  // namespace baton::runtime
