// SPDX-License-Identifier: Apache-2.0
#include "host.h"

#include <baton/runtime/scalar.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace baton::onnx {
namespace {

using Dims = std::vector<int64_t>;

/// Number of elements; INT64_MAX where there are more than that, -1 where a length is negative.
int64_t Count(const Dims& dims) {
  int64_t n = 1;
  bool large = false, zero = false;
  for (int64_t d : dims) {
    if (d < 0) return -1;
    zero = zero || d == 0;
    large = large || __builtin_mul_overflow(n, d, &n);
  }
  return zero ? 0 : large ? std::numeric_limits<int64_t>::max() : n;
}

template <typename T>
T Load(const char* at) {
  T v;
  std::memcpy(&v, at, sizeof(T));
  return v;
}

}  // namespace

/// `v` as an integer, rounded towards zero and clamped to the range.
static int64_t Truncate(double v) {
  return std::fabs(v) < 9.2e18 ? static_cast<int64_t>(v)
         : v > 0               ? std::numeric_limits<int64_t>::max()
                               : std::numeric_limits<int64_t>::min();
}

int64_t Host::size() const { return is_string ? static_cast<int64_t>(strings.size()) : Count(dims); }

int64_t Host::IntAt(int64_t k) const {
  if (dtype.is_floating()) return Truncate(FloatAt(k));
  int width = dtype.bytes();
  const char* at = bytes.data() + k * width;
  bool sign = dtype.is_int();
  switch (width) {
    case 1:
      return sign ? Load<int8_t>(at) : static_cast<int64_t>(Load<uint8_t>(at));
    case 2:
      return sign ? Load<int16_t>(at) : static_cast<int64_t>(Load<uint16_t>(at));
    case 4:
      return sign ? Load<int32_t>(at) : static_cast<int64_t>(Load<uint32_t>(at));
    default:
      return Load<int64_t>(at);
  }
}

double Host::FloatAt(int64_t k) const {
  if (!dtype.is_floating()) return static_cast<double>(IntAt(k));
  if (runtime::IsLoadable(dtype)) return runtime::LoadDouble(bytes.data(), dtype, k);
  return runtime::DecodeSmallFloat(dtype, static_cast<uint8_t>(bytes[static_cast<size_t>(k)]));
}

HostPtr HostFromInts(DataType dtype, Dims dims, const Dims& values) {
  auto host = std::make_shared<Host>();
  host->dtype = dtype;
  host->dims = std::move(dims);
  int width = dtype.bytes();
  if (dtype.is_floating()) return HostFromFloats(dtype, host->dims, std::vector<double>(values.begin(), values.end()));
  host->owned.resize(values.size() * static_cast<size_t>(width));
  for (size_t k = 0; k < values.size(); ++k) {
    // Two's complement, low bytes first: a narrower type takes the low ones.
    std::memcpy(host->owned.data() + k * static_cast<size_t>(width), &values[k], static_cast<size_t>(width));
  }
  host->bytes = host->owned;
  return host;
}

HostPtr HostFromFloats(DataType dtype, Dims dims, const std::vector<double>& values) {
  if (!dtype.is_floating()) {
    Dims ints;
    for (double v : values) ints.push_back(dtype.is_bool() ? v != 0 : Truncate(v));
    return HostFromInts(dtype, std::move(dims), ints);
  }
  auto host = std::make_shared<Host>();
  host->dtype = dtype;
  host->dims = std::move(dims);
  host->owned.resize(values.size() * static_cast<size_t>(dtype.bytes()));
  for (size_t k = 0; k < values.size(); ++k) {
    if (runtime::IsLoadable(dtype)) {
      runtime::StoreDouble(host->owned.data(), dtype, static_cast<int64_t>(k), values[k]);
    } else {
      host->owned[k] = static_cast<char>(runtime::EncodeSmallFloat(dtype, values[k]));
    }
  }
  host->bytes = host->owned;
  return host;
}

HostPtr HostOf(const NDArray& array) {
  const auto dense = std::make_shared<NDArray>(array.Contiguous());
  auto host = std::make_shared<Host>();
  host->dtype = dense->dtype();
  host->dims = dense->shape();
  host->bytes = {static_cast<const char*>(dense->data()), dense->nbytes()};
  host->keep = dense;
  return host;
}

}  // namespace baton::onnx
