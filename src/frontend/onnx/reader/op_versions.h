// SPDX-License-Identifier: Apache-2.0
/// \file op_versions.h
/// Which operators ONNX defines, and which versions of an operator set changed them.
#pragma once

#include <cstdint>
#include <string_view>

#include "model_error.h"

namespace baton::onnx {

/// Newest versions that the importer knows.
constexpr int64_t kNewestOpset = 28;
constexpr int64_t kNewestMlOpset = 5;

struct OpVersion {
  /// Version that defined the operator as the imported operator set means it; 0: the set has no such operator.
  int since = 0;
  /// First version of all that has the operator; 0: ONNX has no operator of that name.
  int first = 0;
  bool deprecated = false;
  /// ONNX defines the operator by a body of other operators.
  bool has_body = false;
};

/// The meaning of `op` in version `opset` of operator set `domain` ("" is ai.onnx).
BATON_DLL OpVersion FindOpVersion(std::string_view domain, std::string_view op, int64_t opset);

}  // namespace baton::onnx
