// SPDX-License-Identifier: Apache-2.0
// Functions that C has none of the same meaning of, beside those of all languages.
#include <fmt/format.h>

#include "codegen/c/c.h"

namespace baton::codegen::c {
namespace {

constexpr const char* kHead = "static inline ";

constexpr const char* kOwn[][2] = {
    {"ldexp_f32",
     "/* x * 2^k for an integral k in [-300, 300], rounded once. */\n"
     "static inline float baton_ldexp_f32(float x, float k) {\n"
     "  const float shifted = k + 12582912.0f;\n  float low, high;\n  uint32_t n, half, bits;\n"
     "  memcpy(&n, &shifted, sizeof n);\n  n -= 0x4B400000u;\n  half = (uint32_t)((int32_t)n >> 1);\n"
     "  bits = (half + 127u) << 23;\n  memcpy(&low, &bits, sizeof low);\n"
     "  bits = (n - half + 127u) << 23;\n  memcpy(&high, &bits, sizeof high);\n  return x * low * high;\n}\n"},
    // A float16 whose exponent and mantissa are put in float32's places is 2^-112 of its value, subnormal or not.
    {"f16_to_f32",
     "static inline float baton_f16_to_f32(uint16_t h) {\n"
     "  const uint32_t magnitude = h & 0x7fffu;\n  uint32_t bits = magnitude << 13;\n  float x;\n"
     "  memcpy(&x, &bits, sizeof x);\n  x *= 5192296858534827628530496329220096.0f;\n"
     "  memcpy(&bits, &x, sizeof bits);\n  if (magnitude > 0x7bffu) bits |= 0x7f800000u;\n"
     "  if (magnitude > 0x7c00u) bits |= 0x400000u;\n  bits |= (uint32_t)(h & 0x8000u) << 16;\n"
     "  memcpy(&x, &bits, sizeof x);\n  return x;\n}\n"},
    // Normal results are rounded in integers. Subnormal ones are rounded by a float32 addition of 0.5, whose last bit
    // is worth as much as that of a subnormal float16.
    {"f32_to_f16",
     "static inline uint16_t baton_f32_to_f16(float x) {\n  uint32_t bits, magnitude, out;\n"
     "  memcpy(&bits, &x, sizeof bits);\n  magnitude = bits & 0x7fffffffu;\n"
     "  if (magnitude > 0x7f800000u) {\n    out = (magnitude >> 13 & 0x3ffu) | 0x7e00u;\n"
     "  } else if (magnitude >= 0x47800000u) {\n    out = 0x7c00u;\n"
     "  } else if (magnitude >= 0x38800000u) {\n"
     "    out = (magnitude + (magnitude >> 13 & 1u) + 0xfffu - 0x38000000u) >> 13;\n"
     "  } else {\n    float m;\n    memcpy(&m, &magnitude, sizeof m);\n    m += 0.5f;\n"
     "    memcpy(&out, &m, sizeof out);\n    out -= 0x3f000000u;\n  }\n"
     "  return (uint16_t)(out | (bits & 0x80000000u) >> 16);\n}\n"},
    {"bf16_to_f32",
     "static inline float baton_bf16_to_f32(uint16_t h) {\n  const uint32_t bits = (uint32_t)h << 16;\n  float x;\n"
     "  memcpy(&x, &bits, sizeof x);\n  return x;\n}\n"},
    {"f32_to_bf16",
     "static inline uint16_t baton_f32_to_bf16(float x) {\n  uint32_t bits;\n  memcpy(&bits, &x, sizeof bits);\n"
     "  if (x != x) return (uint16_t)(bits >> 16 | 0x40u);\n"
     "  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);\n}\n"},
};

struct Number {
  const char *suffix, *type;
  int bits;
};
constexpr Number kNumbers[] = {{"i8", "int8_t", 8},     {"i16", "int16_t", 16},  {"i32", "int32_t", 32},
                               {"i64", "int64_t", 64},  {"u8", "uint8_t", 8},    {"u16", "uint16_t", 16},
                               {"u32", "uint32_t", 32}, {"u64", "uint64_t", 64}, {"f32", "float", 32},
                               {"f64", "double", 64}};

/// Conversions of floats, and the values from which on they give the limits.
struct Saturated {
  const char *suffix, *type, *low, *least, *high, *most;
};
constexpr Saturated kSaturated[] = {
    {"i32", "int32_t", "-2147483648.0", "INT32_MIN", "2147483648.0", "INT32_MAX"},
    {"i64", "int64_t", "-9223372036854775808.0", "INT64_MIN", "9223372036854775808.0", "INT64_MAX"},
    {"u32", "uint32_t", "0.0", "0", "4294967296.0", "UINT32_MAX"},
    {"u64", "uint64_t", "0.0", "0", "18446744073709551616.0", "UINT64_MAX"},
};

std::map<std::string, std::string> AllBuiltins() {
  std::map<std::string, std::string> all = source::CommonBuiltins(kDialect, kHead);
  for (const auto& row : kOwn) all[row[0]] = row[1];
  for (const Number& from : kNumbers) {
    for (const Number& to : kNumbers) {
      if (from.bits != to.bits) continue;
      all[fmt::format("bits_{}_{}", from.suffix, to.suffix)] =
          fmt::format("{}{} baton_bits_{}_{}({} x) {{\n  {} y;\n  memcpy(&y, &x, sizeof y);\n  return y;\n}}\n", kHead,
                      to.type, from.suffix, to.suffix, from.type, to.type);
    }
  }
  for (const Saturated& s : kSaturated) {
    for (const auto& [suffix, type, end] : {std::tuple{"f32", "float", "f"}, {"f64", "double", ""}}) {
      all[fmt::format("sat_{}_{}", s.suffix, suffix)] = fmt::format(
          "{}{} baton_sat_{}_{}({} x) {{\n  return x != x ? 0 : x <= {}{} ? {} : x >= {}{} ? {} : ({})x;\n}}\n", kHead,
          s.type, s.suffix, suffix, type, s.low, end, s.least, s.high, end, s.most, s.type);
    }
  }
  const auto add = [&](const char* name, const std::string& text) {
    source::AddForInts(&all, kDialect, name, kHead + text);
  };
  add("min", "T baton_min_S(T a, T b) { return a < b ? a : b; }\n");
  add("max", "T baton_max_S(T a, T b) { return a > b ? a : b; }\n");
  add("abs", "T baton_abs_S(T a) { return a < 0 ? (T)((U)0 - (U)a) : a; }\n");
  add("popcount",
      "T baton_popcount_S(T a) {\n  U rest = (U)a;\n  T n = 0;\n  for (; rest != 0; rest = (U)(rest & (rest - 1u))) "
      "++n;\n  return n;\n}\n");
  return all;
}

}  // namespace

const std::map<std::string, std::string>& Builtins() {
  static const std::map<std::string, std::string> all = AllBuiltins();
  return all;
}

}  // namespace baton::codegen::c
