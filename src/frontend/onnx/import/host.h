// SPDX-License-Identifier: Apache-2.0
/// \file host.h
/// Constants known while importing.
#pragma once

#include <baton/runtime/any.h>
#include <baton/runtime/data_type.h>
#include <baton/runtime/ndarray.h>

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

/// Larger values are computed by constant folding, not while importing.
constexpr int64_t kMaxFoldedElements = 4096;

/// The elements of an array, which is kept.
BATON_DLL HostPtr HostOf(const NDArray& array);

using NamedAttrs = std::vector<std::pair<const char*, Any>>;

}  // namespace baton::onnx
