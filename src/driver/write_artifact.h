// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/runtime/executor.h>

#include <string>
#include <string_view>
#include <vector>

namespace baton::runtime {

/// The manifest of an artifact: what it says of its model, as JSON. `arch`: the processor; null for this one.
/// `imports`: as WriteArtifact gets it.
std::string ManifestOf(const ExecutableDesc& desc, const std::vector<std::string>& guards, const char* arch = nullptr,
                       std::string_view imports = {});

}  // namespace baton::runtime
