// SPDX-License-Identifier: Apache-2.0
// One element of a tensor, of any type, as a double or an integer: for printing, folding and the interpreter.
#pragma once

#include <baton/runtime/data_type.h>

#include <cstdint>

namespace baton::runtime {

/// The bits of `value` in a floating type of at most 16 bits, rounded to nearest, ties to even. Larger values
/// becomes infinity where the type has it, else NaN where it has that, else the largest value.
BATON_DLL uint32_t EncodeSmallFloat(DataType t, double value);
/// The exact value of such bits.
BATON_DLL double DecodeSmallFloat(DataType t, uint32_t bits);

/// True if elements of `t` can be loaded and stored by the functions below: one lane of bool, int and uint of 8 to 64
/// bits, float16 to float64, bfloat16 and the types of 8 bits.
BATON_DLL bool IsLoadable(DataType t);
/// Element `index` of an array of `t`. Integers beyond 2^53 are rounded.
BATON_DLL double LoadDouble(const void* data, DataType t, int64_t index = 0);
/// The same as an integer: exact for integers (uint64 wraps), truncated towards zero for others; saturates.
BATON_DLL int64_t LoadInt(const void* data, DataType t, int64_t index = 0);
/// Rounds to nearest even for floats; truncates and wraps for integers; bool is `value != 0`.
BATON_DLL void StoreDouble(void* data, DataType t, int64_t index, double value);
/// Wraps for narrower integers; bool is `value != 0`.
BATON_DLL void StoreInt(void* data, DataType t, int64_t index, int64_t value);

inline float BFloat16ToFloat(uint16_t bits) { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }
inline uint16_t FloatToBFloat16(float value) {
  const uint32_t u = __builtin_bit_cast(uint32_t, value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(u >> 16 | 0x40);  // quiet NaN
  return static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

}  // namespace baton::runtime
