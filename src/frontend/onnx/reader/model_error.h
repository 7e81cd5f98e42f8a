// SPDX-License-Identifier: Apache-2.0
/// \file model_error.h
/// Errors about a model.
#pragma once

#include <baton/runtime/error.h>
#include <baton/support/export.h>

#include <string>
#include <string_view>

namespace baton::onnx {

/// `text` with everything but printable ASCII escaped, cut at about `limit` bytes: text of a file may go to a
/// terminal.
BATON_DLL std::string Printable(std::string_view text, size_t limit = 200);
/// The same between backquotes.
inline std::string Quote(std::string_view text) { return "`" + Printable(text) + "`"; }

/// The model is at fault; `message` says what, where and how to mend it.
[[noreturn]] inline void Throw(const std::string& message) { throw CompileError(message); }

}  // namespace baton::onnx
