// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace baton::onnx {

/// The kind of file that these bytes look like, which are not an ONNX model; "" if unknown.
std::string LooksLike(std::string_view text);

}  // namespace baton::onnx
