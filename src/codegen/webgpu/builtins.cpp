// SPDX-License-Identifier: Apache-2.0
// Functions that WGSL has none of the same meaning of.
#include <fmt/format.h>

#include "codegen/webgpu/webgpu.h"

namespace baton::codegen::webgpu {
namespace {

constexpr const char* kFloats[][2] = {
    // A variable's bits: an expression of literals that is not finite is refused.
    {"inf", "fn baton_inf() -> f32 {\n  var bits = 0x7f800000u;\n  return bitcast<f32>(bits);\n}\n"},
    {"nan", "fn baton_nan() -> f32 {\n  var bits = 0x7fc00000u;\n  return bitcast<f32>(bits);\n}\n"},
    // NaN in either operand gives NaN.
    {"min_f32",
     "fn baton_min_f32(a: f32, b: f32) -> f32 {\n"
     "  if ((bitcast<u32>(b) & 0x7fffffffu) > 0x7f800000u) { return b; }\n"
     "  if ((bitcast<u32>(a) & 0x7fffffffu) > 0x7f800000u) { return a; }\n  return select(b, a, a < b);\n}\n"},
    {"max_f32",
     "fn baton_max_f32(a: f32, b: f32) -> f32 {\n"
     "  if ((bitcast<u32>(b) & 0x7fffffffu) > 0x7f800000u) { return b; }\n"
     "  if ((bitcast<u32>(a) & 0x7fffffffu) > 0x7f800000u) { return a; }\n  return select(b, a, a > b);\n}\n"},
    {"fmod_f32", "fn baton_fmod_f32(a: f32, b: f32) -> f32 { return a % b; }\n"},
    {"floormod_f32",
     "fn baton_floormod_f32(a: f32, b: f32) -> f32 {\n  let r = a % b;\n"
     "  return select(r, r + b, r != 0.0f && (r < 0.0f) != (b < 0.0f));\n}\n"},
    {"round_f32",
     "fn baton_round_f32(x: f32) -> f32 {\n  let r = trunc(x);\n"
     "  return select(r, r + sign(x), abs(x - r) >= 0.5f);\n}\n"},
    {"ldexp_f32",
     "// x * 2^k for an integral k in [-300, 300], rounded once.\nfn baton_ldexp_f32(x: f32, k: f32) -> f32 {\n"
     "  let n = bitcast<i32>(k + 12582912.0f) - 0x4B400000;\n  let h = n >> 1u;\n"
     "  return x * bitcast<f32>((h + 127) << 23u) * bitcast<f32>((n - h + 127) << 23u);\n}\n"},
    // The sign of a power of a negative number is that of an odd exponent; another exponent than an integer gives NaN.
    {"pow_f32",
     "fn baton_pow_f32(x: f32, y: f32) -> f32 {\n  if (y == 0.0f) { return 1.0f; }\n  let p = pow(abs(x), y);\n"
     "  if (x >= 0.0f) { return p; }\n  if (trunc(y) != y) {\n    var bits = 0x7fc00000u;\n"
     "    return bitcast<f32>(bits);\n  }\n"
     "  return select(p, -p, abs(y) < 16777216.0f && (i32(y) & 1) == 1);\n}\n"},
    // Near 0 by series, whose errors are relative.
    {"tanh_f32",
     "fn baton_tanh_f32(x: f32) -> f32 {\n  let s = x * x;\n"
     "  if (s < 0.02f) { return x * (1.0f + s * (-0.333333333f + s * (0.133333333f + s * (-0.0539682540f + s * "
     "0.0218694885f)))); }\n  if (abs(x) > 10.0f) { return sign(x); }\n  return tanh(x);\n}\n"},
    {"erf_f32",
     "fn baton_erf_f32(x: f32) -> f32 {\n  let s = x * x;\n"
     "  if (s < 0.25f) { return x * 1.12837917f * (1.0f + s * (-0.333333333f + s * (0.1f + s * (-0.0238095238f + s * "
     "(0.00462962963f + s * -0.000757575758f))))); }\n"
     "  let t = 1.0f / (1.0f + 0.3275911f * abs(x));\n"
     "  let p = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * "
     "1.061405429f))));\n"
     "  return sign(x) * (1.0f - p * exp(-s));\n}\n"},
    {"log1p_f32",
     "fn baton_log1p_f32(x: f32) -> f32 {\n"
     "  if (abs(x) < 0.03f) { return x * (1.0f + x * (-0.5f + x * (0.333333333f + x * (-0.25f + x * (0.2f + x * "
     "-0.166666667f))))); }\n  return log(1.0f + x);\n}\n"},
    {"log10_f32", "fn baton_log10_f32(x: f32) -> f32 { return log2(x) * 0.301029996f; }\n"},
    {"f16_to_f32", "fn baton_f16_to_f32(x: f16) -> f32 { return f32(x); }\n"},
    // To the nearest, which the language's own conversion leaves open.
    {"f32_to_f16",
     "fn baton_f32_to_f16(x: f32) -> f16 {\n  let bits = bitcast<u32>(x);\n  let magnitude = bits & 0x7fffffffu;\n"
     "  var out: u32;\n  if (magnitude > 0x7f800000u) {\n    out = ((magnitude >> 13u) & 0x3ffu) | 0x7e00u;\n"
     "  } else if (magnitude >= 0x47800000u) {\n    out = 0x7c00u;\n  } else if (magnitude >= 0x38800000u) {\n"
     "    out = (magnitude + ((magnitude >> 13u) & 1u) + 0xfffu - 0x38000000u) >> 13u;\n  } else {\n"
     "    out = u32(round(bitcast<f32>(magnitude) * 16777216.0f));\n  }\n"
     "  return f16(unpack2x16float(out | ((bits & 0x80000000u) >> 16u)).x);\n}\n"},
    {"sat_i32_f32",
     "fn baton_sat_i32_f32(x: f32) -> i32 {\n  if ((bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u) { return 0; }\n"
     "  if (x <= -2147483648.0f) { return -2147483647 - 1; }\n  if (x >= 2147483648.0f) { return 2147483647; }\n"
     "  return i32(x);\n}\n"},
    {"sat_u32_f32",
     "fn baton_sat_u32_f32(x: f32) -> u32 {\n  if (!(x > 0.0f)) { return 0u; }\n"
     "  if (x >= 4294967296.0f) { return 4294967295u; }\n  return u32(x);\n}\n"},
};

// S: the suffix of names, T: the type. Division by zero gives 0, and the smallest value by -1 wraps; a shift by the
// width or more gives 0, or the sign.
constexpr const char* kSigned[][2] = {
    {"div",
     "fn baton_div_S(a: T, b: T) -> T {\n  if (b == 0) { return 0; }\n  if (b == -1) { return 0 - a; }\n"
     "  return a / b;\n}\n"},
    {"mod", "fn baton_mod_S(a: T, b: T) -> T {\n  if (b == 0 || b == -1) { return 0; }\n  return a % b;\n}\n"},
    {"floordiv",
     "fn baton_floordiv_S(a: T, b: T) -> T {\n  if (b == 0) { return 0; }\n  if (b == -1) { return 0 - a; }\n"
     "  let q = a / b;\n  return select(q, q - 1, a % b != 0 && (a < 0) != (b < 0));\n}\n"},
    {"floormod",
     "fn baton_floormod_S(a: T, b: T) -> T {\n  if (b == 0 || b == -1) { return 0; }\n  let r = a % b;\n"
     "  return select(r, r + b, r != 0 && (r < 0) != (b < 0));\n}\n"},
    {"shr", "fn baton_shr_S(a: T, n: T) -> T { return a >> min(u32(n), 31u); }\n"},
    {"shl", "fn baton_shl_S(a: T, n: T) -> T {\n  if (u32(n) >= 32u) { return 0; }\n  return a << u32(n);\n}\n"},
};
constexpr const char* kUnsigned[][2] = {
    {"div", "fn baton_div_S(a: T, b: T) -> T {\n  if (b == 0u) { return 0u; }\n  return a / b;\n}\n"},
    {"mod", "fn baton_mod_S(a: T, b: T) -> T {\n  if (b == 0u) { return 0u; }\n  return a % b;\n}\n"},
    {"shr", "fn baton_shr_S(a: T, n: T) -> T {\n  if (n >= 32u) { return 0u; }\n  return a >> n;\n}\n"},
    {"shl", "fn baton_shl_S(a: T, n: T) -> T {\n  if (n >= 32u) { return 0u; }\n  return a << n;\n}\n"},
};

std::string Filled(const std::string& text, const std::string& suffix, const std::string& type) {
  std::string out;
  const auto word = [&](size_t i) { return i < text.size() && isalnum(static_cast<unsigned char>(text[i])); };
  for (size_t i = 0; i < text.size(); ++i) {
    const bool alone = !word(i - 1) && !word(i + 1);
    out += alone && text[i] == 'S' ? suffix : alone && text[i] == 'T' ? type : std::string(1, text[i]);
  }
  return out;
}

}  // namespace

const std::map<std::string, std::string>& Builtins() {
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> made;
    for (const auto& row : kFloats) made[row[0]] = row[1];
    for (const char* suffix : {"i32", "i64"}) {
      for (const auto& row : kSigned) made[fmt::format("{}_{}", row[0], suffix)] = Filled(row[1], suffix, "i32");
    }
    for (const auto& row : kUnsigned) made[fmt::format("{}_u32", row[0])] = Filled(row[1], "u32", "u32");
    return made;
  }();
  return all;
}

}  // namespace baton::codegen::webgpu
