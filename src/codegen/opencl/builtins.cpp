// SPDX-License-Identifier: Apache-2.0
// Functions that OpenCL C has none of the same meaning of, beside those of all languages.
#include "codegen/opencl/opencl.h"

namespace baton::codegen::opencl {
namespace {

constexpr const char* kOwn[][2] = {
    {"ldexp_f32",
     "/* x * 2^k for an integral k in [-300, 300], rounded once. */\nfloat baton_ldexp_f32(float x, float k) {\n"
     "  int n = as_int(k + 12582912.0f) - 0x4B400000;\n  int h = n >> 1;\n"
     "  return x * as_float((h + 127) << 23) * as_float((n - h + 127) << 23);\n}\n"},
    {"f16_to_f32", "float baton_f16_to_f32(ushort x) { return vload_half(0, (const __private half*)&x); }\n"},
    {"f32_to_f16",
     "ushort baton_f32_to_f16(float x) {\n  ushort r;\n  vstore_half_rte(x, 0, (__private half*)&r);\n  return "
     "r;\n}\n"},
    {"bf16_to_f32", "float baton_bf16_to_f32(ushort x) { return as_float((uint)x << 16); }\n"},
    {"f32_to_bf16",
     "ushort baton_f32_to_bf16(float x) {\n  uint b = as_uint(x);\n"
     "  return (ushort)(x != x ? b >> 16 | 0x40u : (b + 0x7fffu + (b >> 16 & 1u)) >> 16);\n}\n"},
};

}  // namespace

const std::map<std::string, std::string>& Builtins() {
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> made = source::CommonBuiltins(kLanguage.dialect, "");
    for (const auto& row : kOwn) made[row[0]] = row[1];
    return made;
  }();
  return all;
}

}  // namespace baton::codegen::opencl
