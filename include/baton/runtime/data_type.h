// SPDX-License-Identifier: Apache-2.0
// Element type: code, bits and lanes, as DLPack has it, with names as users write them.
#pragma once

#include <baton/runtime/c_runtime_api.h>

#include <string>
#include <string_view>

namespace baton::runtime {

class DataType {
 public:
  constexpr DataType() : dtype_{kDLOpaqueHandle, 0, 0} {}
  constexpr DataType(DLDataType t) : dtype_(t) {}  // NOLINT
  constexpr DataType(int code, int bits, int lanes = 1)
      : dtype_{static_cast<uint8_t>(code), static_cast<uint8_t>(bits), static_cast<uint16_t>(lanes)} {}

  constexpr int code() const { return dtype_.code; }
  constexpr int bits() const { return dtype_.bits; }
  constexpr int lanes() const { return dtype_.lanes; }
  /// Bytes of one value with all its lanes; types narrower than a byte are rounded up.
  constexpr int bytes() const { return (dtype_.bits * dtype_.lanes + 7) / 8; }
  constexpr bool is_void() const { return dtype_.bits == 0 && dtype_.code == kDLOpaqueHandle; }
  constexpr bool is_handle() const { return dtype_.code == kDLOpaqueHandle && dtype_.bits != 0; }
  constexpr bool is_bool() const { return dtype_.code == kDLBool; }
  constexpr bool is_int() const { return dtype_.code == kDLInt; }
  constexpr bool is_uint() const { return dtype_.code == kDLUInt; }
  /// IEEE float16, float32, float64.
  constexpr bool is_float() const { return dtype_.code == kDLFloat; }
  constexpr bool is_bfloat16() const { return dtype_.code == kDLBfloat && dtype_.bits == 16; }
  constexpr bool is_float8() const { return dtype_.code >= kDLFloat8_e3m4 && dtype_.code <= kDLFloat8_e8m0fnu; }
  constexpr bool is_float4() const { return dtype_.code == kDLFloat4_e2m1fn; }
  constexpr bool is_complex() const { return dtype_.code == kDLComplex; }
  /// Any type with a fraction: float, bfloat16, float8, float4.
  constexpr bool is_floating() const { return is_float() || is_bfloat16() || is_float8() || is_float4(); }
  constexpr bool is_integral() const { return is_int() || is_uint(); }
  constexpr bool is_scalar() const { return lanes() == 1; }
  constexpr bool is_vector() const { return lanes() > 1; }
  constexpr DataType with_lanes(int lanes) const { return DataType(code(), bits(), lanes); }
  constexpr DataType with_bits(int bits) const { return DataType(code(), bits, lanes()); }
  constexpr DataType element_of() const { return with_lanes(1); }
  constexpr bool operator==(const DataType& o) const {
    return code() == o.code() && bits() == o.bits() && lanes() == o.lanes();
  }
  constexpr operator DLDataType() const { return dtype_; }  // NOLINT

  static constexpr DataType Int(int bits, int lanes = 1) { return DataType(kDLInt, bits, lanes); }
  static constexpr DataType UInt(int bits, int lanes = 1) { return DataType(kDLUInt, bits, lanes); }
  static constexpr DataType Float(int bits, int lanes = 1) { return DataType(kDLFloat, bits, lanes); }
  static constexpr DataType BFloat16(int lanes = 1) { return DataType(kDLBfloat, 16, lanes); }
  static constexpr DataType Bool(int lanes = 1) { return DataType(kDLBool, 8, lanes); }
  static constexpr DataType Handle(int bits = 64, int lanes = 1) { return DataType(kDLOpaqueHandle, bits, lanes); }
  static constexpr DataType Void() { return DataType(); }

 private:
  DLDataType dtype_;
};

/// "float32", "int8x4", "bool", "bfloat16", "float8_e4m3fn", "handle", "void".
BATON_DLL std::string DataType2String(DataType t);
/// Reads such a name; throws TypeError with the known names for another.
BATON_DLL DataType String2DataType(std::string_view s);
/// The same without an exception; false for an unknown name.
BATON_DLL bool TryString2DataType(std::string_view s, DataType* out);

}  // namespace baton::runtime

namespace baton {
using runtime::DataType;
using runtime::DataType2String;
using runtime::String2DataType;
}  // namespace baton
