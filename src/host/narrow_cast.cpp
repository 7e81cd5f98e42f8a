// SPDX-License-Identifier: Apache-2.0
// Casts from and to types without arithmetic (float8, float6, float4, integers under a byte), with ONNX's rules for
// values out of range.
#include <baton/runtime/scalar.h>

#include <cmath>

#include "host/arrays.h"
#include "host/functions.h"

namespace baton::host {
namespace {

double Load(const void* data, DataType t, int64_t i) {
  if (runtime::IsLoadable(t)) return runtime::LoadDouble(data, t, i);
  // Under a byte: an element in the low bits of a byte.
  uint8_t byte = static_cast<const uint8_t*>(data)[i];
  uint32_t bits = byte & ((1u << t.bits()) - 1);
  if (t.is_uint()) return bits;
  if (t.is_int()) return static_cast<double>(static_cast<int>(bits << (32 - t.bits())) >> (32 - t.bits()));
  return runtime::DecodeSmallFloat(t, bits);
}

/// Largest finite value of a narrow float.
double Largest(DataType t) {
  switch (t.code()) {
    case kDLFloat8_e4m3fn:
      return 448;
    case kDLFloat8_e4m3fnuz:
      return 240;
    case kDLFloat8_e5m2:
    case kDLFloat8_e5m2fnuz:
      return 57344;
    default:
      return INFINITY;
  }
}

/// A power of two, its exponent biased by 127; NaN for what is negative or no number.
uint8_t PowerOfTwo(double v, bool saturate, const std::string& mode) {
  if (std::isnan(v) || v < 0) return 255;
  if (std::isinf(v)) return saturate ? 254 : 255;
  if (v == 0) return 0;
  int k = 0;
  double half = std::frexp(v, &k);
  int e = k - 1 + 127;
  if (mode == "up") e += half > 0.5;
  if (mode == "nearest") e += half >= 0.75;
  if (e < 0) return 0;
  return static_cast<uint8_t>(e > 254 ? (saturate ? 254 : 255) : e);
}

bool IsElement(DataType t) { return !t.is_void() && !t.is_handle() && t.lanes() == 1; }

}  // namespace

Arrays OnnxCast(const Params& p, const Arrays& in) {
  const NDArray& x = in[0];
  DataType from = x.dtype(), to = p.Dtype("dtype");
  if (!IsElement(from) || !IsElement(to))
    p.Fail(
        Cat("a cast from ", DataType2String(from), " to ", DataType2String(to), ", where numbers and bool are wanted"));
  const bool saturate = p.Bool("saturate");
  NDArray y = NDArray::Empty(x.shape(), to);
  int64_t n = x.numel();
  const std::string& mode = p.Text("round_mode");
  auto* bytes = static_cast<uint8_t*>(y.data());
  double largest = to.is_floating() ? Largest(to) : 0;
  for (int64_t i = 0; i < n; ++i) {
    if (to.code() == kDLFloat8_e8m0fnu) {
      bytes[i] = PowerOfTwo(Load(x.data(), from, i), saturate, mode);
    } else if (to.is_integral() && to.bits() < 8) {
      // Wraps, as casts between integers do; floats truncate first.
      double v = Load(x.data(), from, i);
      auto wide = std::fabs(v) < 9e18 ? static_cast<int64_t>(v) : 0;
      uint32_t bits = static_cast<uint32_t>(wide) & ((1u << to.bits()) - 1);
      bool negative = to.is_int() && (bits >> (to.bits() - 1)) != 0;
      bytes[i] = static_cast<uint8_t>(negative ? bits | ~((1u << to.bits()) - 1) : bits);
    } else if (runtime::IsLoadable(to)) {
      double v = Load(x.data(), from, i);
      if (to.is_float8() && saturate && std::fabs(v) > largest) v = std::copysign(largest, v);
      runtime::StoreDouble(y.data(), to, i, v);
    } else {
      // Types without a NaN: ONNX makes it -0.
      double v = Load(x.data(), from, i);
      bytes[i] = static_cast<uint8_t>(runtime::EncodeSmallFloat(to, std::isnan(v) ? -0.0 : v));
    }
  }
  return {y};
}

namespace {
const Register kCast("onnx.cast", 1, OnnxCast);
}
}  // namespace baton::host
