// SPDX-License-Identifier: Apache-2.0
// What the readers and the writer of JSON share.
#pragma once

#include <baton/runtime/object.h>

#include <string>
#include <string_view>

namespace baton::json {

std::string Base64(const void* data, size_t n);
/// False if `s` is not base64.
bool Unbase64(std::string_view s, std::string* out);

/// Whether a text is a graph of nodes as Relay's users saved it.
bool IsGraph(std::string_view text);
ObjectRef LoadGraph(const std::string& text);

}  // namespace baton::json
