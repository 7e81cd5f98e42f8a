// SPDX-License-Identifier: Apache-2.0
// Shared by the JSON readers and the writer.
#pragma once

#include <baton/runtime/object.h>

#include <string>
#include <string_view>

namespace baton::json {

std::string Base64(const void* data, size_t n);
/// False if `s` is not base64.
bool Unbase64(std::string_view s, std::string* out);

/// Whether a text is a node graph in Relay's JSON format.
bool IsGraph(std::string_view text);
ObjectRef LoadGraph(const std::string& text);

}  // namespace baton::json
