// SPDX-License-Identifier: Apache-2.0
// Archives (`.tar`): what a module's library is linked of, as files by their names.
#pragma once

#include <baton/runtime/bytes.h>
#include <baton/runtime/map.h>
#include <baton/runtime/string.h>

#include <string>

namespace baton::driver {

/// The file with the digests of all others, as `sha256sum --check` reads it.
inline constexpr const char* kDigestsFile = "SHA256SUMS";

/// Returns a line for each file but kDigestsFile, by name: 64 hexadecimal digits, two spaces, the name.
std::string DigestsOf(const runtime::Map<runtime::String, runtime::Bytes>& files);

}  // namespace baton::driver
