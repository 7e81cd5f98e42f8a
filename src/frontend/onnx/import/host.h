// SPDX-License-Identifier: Apache-2.0
/// \file host.h
/// Constants known while importing, and a small evaluator for shape computations.
#pragma once

#include <baton/runtime/any.h>
#include <baton/runtime/data_type.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/onnx/reader/bytes.h"

namespace baton::onnx {

/// A constant tensor: numbers little-endian and back to back, or strings.
struct BATON_DLL Host {
  DataType dtype;
  std::vector<int64_t> dims;
  /// View of the elements; into `owned` or into a file that `keep` holds.
  std::string_view bytes;
  std::string owned;
  std::shared_ptr<const void> keep;
  const Bytes* file = nullptr;  ///< of `keep`, where `bytes` lie in a mapped file
  bool is_string = false;
  std::vector<std::string> strings;

  int64_t size() const;
  /// Element `i` as int64 (floats truncate) or double.
  int64_t IntAt(int64_t i) const;
  double FloatAt(int64_t i) const;
};
using HostPtr = std::shared_ptr<const Host>;

/// Makes a constant of `dtype` from doubles or integers, rounded as a cast does.
BATON_DLL HostPtr HostFromInts(DataType dtype, std::vector<int64_t> dims, const std::vector<int64_t>& values);
BATON_DLL HostPtr HostFromFloats(DataType dtype, std::vector<int64_t> dims, const std::vector<double>& values);

/// Results of more elements are left to constant folding.
constexpr int64_t kMaxFoldedElements = 4096;

using NamedAttrs = std::vector<std::pair<const char*, Any>>;
/// The value of a Relay call on constants, if the operator occurs in shape computations and the result is small; null
/// otherwise. Exact: integers as int64, float32 and float64 in double and rounded once.
BATON_DLL HostPtr EvaluateCall(std::string_view op, const std::vector<HostPtr>& args, const NamedAttrs& attrs);

}  // namespace baton::onnx
