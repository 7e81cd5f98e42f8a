// SPDX-License-Identifier: Apache-2.0
#include "relay/op/narrow_values.h"

#include <baton/runtime/scalar.h>

#include <cstdint>

namespace baton::relay {
namespace {

/// The bits of a float16's magnitude in float32's places are 2^-112 of its value, subnormal or not.
constexpr float kTwoTo112 = 0x1p112F;

float FromFloat16(uint16_t h) {
  const uint32_t magnitude = h & 0x7fffu, sign = (h & 0x8000u) << 16;
  const uint32_t finite = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, magnitude << 13) * kTwoTo112);
  const uint32_t bits = magnitude >= 0x7c00 ? magnitude << 13 | 0x7f800000u : finite;
  return __builtin_bit_cast(float, bits | sign);
}
/// Of values that float16 holds; others give some number.
uint16_t ToFloat16(float v) {
  const auto bits = __builtin_bit_cast(uint32_t, v);
  const auto scaled = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, bits & 0x7fffffffu) / kTwoTo112);
  return static_cast<uint16_t>(scaled >> 13 | (bits >> 16 & 0x8000u));
}

template <class To, class Encode, class Decode>
NDArray Exactly(const NDArray& wide, DataType narrow, Encode encode, Decode decode) {
  const NDArray w = wide.Contiguous();
  NDArray out = NDArray::Empty(w.shape(), narrow);
  const auto* from = w.ptr<float>();
  auto* to = static_cast<To*>(out.data());
  constexpr int64_t kBlock = 1024;
  const int64_t n = w.numel();
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = begin + kBlock < n ? begin + kBlock : n;
    uint32_t apart = 0;
    for (int64_t i = begin; i < end; ++i) {
      to[i] = encode(from[i]);
      apart |= __builtin_bit_cast(uint32_t, from[i]) ^ __builtin_bit_cast(uint32_t, decode(to[i]));
    }
    if (apart) return NDArray();
  }
  return out;
}

}  // namespace

NDArray Widened(const NDArray& narrow) {
  if (narrow.dtype() == DataType::Float(32)) return narrow;
  const NDArray x = narrow.Contiguous();
  NDArray out = NDArray::Empty(x.shape(), DataType::Float(32));
  auto* to = out.ptr<float>();
  const int64_t n = x.numel();
  if (x.dtype() == DataType::Int(8)) {
    const auto* from = static_cast<const int8_t*>(x.data());
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]);
    return out;
  }
  const auto* from = static_cast<const uint16_t*>(x.data());
  const bool bfloat = x.dtype().is_bfloat16();
  for (int64_t i = 0; i < n; ++i) to[i] = bfloat ? runtime::BFloat16ToFloat(from[i]) : FromFloat16(from[i]);
  return out;
}

bool FitsInt8(const NDArray& wide) {
  if (wide.dtype() != DataType::Float(32)) return false;
  const NDArray w = wide.Contiguous();
  const auto* from = w.ptr<float>();
  for (int64_t i = 0, n = w.numel(); i < n; ++i) {
    const float v = from[i];
    if (!(v >= -128 && v <= 127) || static_cast<float>(static_cast<int8_t>(v)) != v) return false;
  }
  return true;
}

NDArray ExactlyAs(const NDArray& wide, DataType narrow) {
  if (narrow == DataType::Int(8)) {
    return Exactly<int8_t>(
        wide, narrow, [](float v) { return static_cast<int8_t>(v >= -128 && v <= 127 ? v : 0); },
        [](int8_t v) { return static_cast<float>(v); });
  }
  if (narrow.is_bfloat16()) return Exactly<uint16_t>(wide, narrow, runtime::FloatToBFloat16, runtime::BFloat16ToFloat);
  return Exactly<uint16_t>(wide, narrow, ToFloat16, FromFloat16);
}

}  // namespace baton::relay
