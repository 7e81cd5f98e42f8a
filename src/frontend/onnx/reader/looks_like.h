// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace baton::onnx {

/// What bytes that are no ONNX model look like, or "".
std::string LooksLike(std::string_view text);

}  // namespace baton::onnx
