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

/// The file that a program is linked with beside the code: it takes the others in as data, where system_lib finds them.
inline constexpr const char* kDataFile = "data.s";

/// Returns its text, for the GNU assembler in the folder of the archive's files.
std::string DataSource(bool has_imports);

}  // namespace baton::driver
