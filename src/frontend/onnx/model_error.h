// SPDX-License-Identifier: Apache-2.0
/// \file model_error.h
/// How the importer refuses a model.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#ifndef BATON_DLL
#define BATON_DLL __attribute__((visibility("default")))
#endif

namespace baton::onnx {

/// The model is at fault; the message says what, where and how to mend it.
class BATON_DLL ModelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// `text` with everything but printable ASCII escaped, cut at about `limit` bytes: what a file says may go to a terminal.
BATON_DLL std::string Printable(std::string_view text, size_t limit = 200);

[[noreturn]] inline void Refuse(const std::string& message) { throw ModelError(message); }

}  // namespace baton::onnx
