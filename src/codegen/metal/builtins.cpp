// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "codegen/metal/metal.h"

namespace baton::codegen::metal {
namespace {

constexpr const char* kOwn[][2] = {
    {"ldexp_f32",
     "/* x * 2^k for an integral k in [-300, 300], rounded once. */\nfloat baton_ldexp_f32(float x, float k) {\n"
     "  int n = as_type<int>(k + 12582912.0f) - 0x4B400000;\n  int h = n >> 1;\n"
     "  return x * as_type<float>((h + 127) << 23) * as_type<float>((n - h + 127) << 23);\n}\n"},
    {"f16_to_f32", "float baton_f16_to_f32(ushort x) { return float(as_type<half>(x)); }\n"},
    {"f32_to_f16", "ushort baton_f32_to_f16(float x) { return as_type<ushort>(half(x)); }\n"},
    {"bf16_to_f32", "float baton_bf16_to_f32(ushort x) { return as_type<float>((uint)x << 16); }\n"},
    {"f32_to_bf16",
     "ushort baton_f32_to_bf16(float x) {\n  uint b = as_type<uint>(x);\n"
     "  return (ushort)(x != x ? b >> 16 | 0x40u : (b + 0x7fffu + (b >> 16 & 1u)) >> 16);\n}\n"},
};
struct Saturated {
  const char *suffix, *type, *low, *high, *least, *most;
};
constexpr Saturated kSaturated[] = {
    {"i32", "int", "-2147483648.0f", "2147483648.0f", "(-2147483647 - 1)", "2147483647"},
    {"i64", "long", "-9223372036854775808.0f", "9223372036854775808.0f", "(-9223372036854775807L - 1L)",
     "9223372036854775807L"},
    {"u32", "uint", "0.0f", "4294967296.0f", "0", "4294967295u"},
    {"u64", "ulong", "0.0f", "18446744073709551616.0f", "0", "18446744073709551615UL"},
};

}  // namespace

const std::map<std::string, std::string>& Builtins() {
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> made = source::CommonBuiltins(kLanguage.dialect, "");
    for (const auto& row : kOwn) made[row[0]] = row[1];
    for (const Saturated& s : kSaturated) {
      made[fmt::format("sat_{}_f32", s.suffix)] = fmt::format(
          "{} baton_sat_{}_f32(float x) {{\n  return x != x ? 0 : x <= {} ? {} : x >= {} ? {} : ({})x;\n}}\n", s.type,
          s.suffix, s.low, s.least, s.high, s.most, s.type);
    }
    return made;
  }();
  return all;
}

}  // namespace baton::codegen::metal
