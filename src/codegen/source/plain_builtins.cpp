// SPDX-License-Identifier: Apache-2.0
// Functions in terms of C alone.
#include <fmt/format.h>

#include <tuple>

#include "codegen/source/dialect.h"

namespace baton::codegen::source {
namespace {

constexpr const char* kFloats[][2] = {
    {"ldexp_f32",
     "/* x * 2^k for an integral k in [-300, 300], rounded once. */\n"
     "float baton_ldexp_f32(float x, float k) {\n"
     "  const float shifted = k + 12582912.0f;\n  float low, high;\n  uint32_t n, half, bits;\n"
     "  memcpy(&n, &shifted, sizeof n);\n  n -= 0x4B400000u;\n  half = (uint32_t)((int32_t)n >> 1);\n"
     "  bits = (half + 127u) << 23;\n  memcpy(&low, &bits, sizeof low);\n"
     "  bits = (n - half + 127u) << 23;\n  memcpy(&high, &bits, sizeof high);\n  return x * low * high;\n}\n"},
    // A float16 whose exponent and mantissa are put in float32's places is 2^-112 of its value, subnormal or not.
    {"f16_to_f32",
     "float baton_f16_to_f32(uint16_t h) {\n"
     "  const uint32_t magnitude = h & 0x7fffu;\n  uint32_t bits = magnitude << 13;\n  float x;\n"
     "  memcpy(&x, &bits, sizeof x);\n  x *= 5192296858534827628530496329220096.0f;\n"
     "  memcpy(&bits, &x, sizeof bits);\n  if (magnitude > 0x7bffu) bits |= 0x7f800000u;\n"
     "  if (magnitude > 0x7c00u) bits |= 0x400000u;\n  bits |= (uint32_t)(h & 0x8000u) << 16;\n"
     "  memcpy(&x, &bits, sizeof x);\n  return x;\n}\n"},
    // Normal results are rounded in integers. Subnormal ones are rounded by a float32 addition of 0.5, whose last bit
    // is worth as much as that of a subnormal float16.
    {"f32_to_f16",
     "uint16_t baton_f32_to_f16(float x) {\n  uint32_t bits, magnitude, out;\n"
     "  memcpy(&bits, &x, sizeof bits);\n  magnitude = bits & 0x7fffffffu;\n"
     "  if (magnitude > 0x7f800000u) {\n    out = (magnitude >> 13 & 0x3ffu) | 0x7e00u;\n"
     "  } else if (magnitude >= 0x47800000u) {\n    out = 0x7c00u;\n"
     "  } else if (magnitude >= 0x38800000u) {\n"
     "    out = (magnitude + (magnitude >> 13 & 1u) + 0xfffu - 0x38000000u) >> 13;\n"
     "  } else {\n    float m;\n    memcpy(&m, &magnitude, sizeof m);\n    m += 0.5f;\n"
     "    memcpy(&out, &m, sizeof out);\n    out -= 0x3f000000u;\n  }\n"
     "  return (uint16_t)(out | (bits & 0x80000000u) >> 16);\n}\n"},
    {"bf16_to_f32",
     "float baton_bf16_to_f32(uint16_t h) {\n  const uint32_t bits = (uint32_t)h << 16;\n  float x;\n"
     "  memcpy(&x, &bits, sizeof x);\n  return x;\n}\n"},
    {"f32_to_bf16",
     "uint16_t baton_f32_to_bf16(float x) {\n  uint32_t bits;\n  memcpy(&bits, &x, sizeof bits);\n"
     "  if (x != x) return (uint16_t)(bits >> 16 | 0x40u);\n"
     "  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);\n}\n"},
};

struct Number {
  std::string suffix, type;
  int bits;
};
std::vector<Number> Numbers(const Dialect& d) {
  std::vector<Number> all = {{"f32", "float", 32}, {"f64", "double", 64}};
  for (int k = 0; k < 4; ++k) {
    all.push_back({fmt::format("i{}", 8 << k), d.ints[k], 8 << k});
    all.push_back({fmt::format("u{}", 8 << k), d.uints[k], 8 << k});
  }
  return all;
}

/// Integers that floats are converted to: the float values from which on they give the limits.
struct Saturated {
  const char *suffix, *low, *high;
  bool is_signed, wide;
};
constexpr Saturated kSaturated[] = {
    {"i32", "-2147483648.0", "2147483648.0", true, false},
    {"i64", "-9223372036854775808.0", "9223372036854775808.0", true, true},
    {"u32", "0.0", "4294967296.0", false, false},
    {"u64", "0.0", "18446744073709551616.0", false, true},
};

}  // namespace

std::string PlainAbs(const TextCall& c) {
  const DataType t = c.op->dtype;
  if (t.is_floating()) return c.OfMath("fabs");
  return t.is_uint() || t.is_bool() ? c.args[0] : c.OfBuiltin("abs_" + SuffixOf(t));
}
std::string PlainPopcount(const TextCall& c) { return c.OfBuiltin("popcount_" + SuffixOf(c.op->dtype)); }
std::string PlainReinterpret(const TextCall& c) {
  const auto bits_of = [](DataType t) { return IsHalf(t) ? std::string("u16") : SuffixOf(t); };
  const std::string to = bits_of(c.op->dtype), from = bits_of(c.op->args[0].dtype());
  return to == from ? c.args[0] : c.OfBuiltin("bits_" + from + "_" + to);
}

void AddPlainBuiltins(std::map<std::string, std::string>* all, const Dialect& dialect, const std::string& head) {
  const auto add = [&](const char* name, const std::string& text) { AddForInts(all, dialect, name, head + text); };
  add("min", "T baton_min_S(T a, T b) { return a < b ? a : b; }\n");
  add("max", "T baton_max_S(T a, T b) { return a > b ? a : b; }\n");
  add("abs", "T baton_abs_S(T a) { return a < 0 ? (T)((U)0 - (U)a) : a; }\n");
  add("popcount",
      "T baton_popcount_S(T a) {\n  U rest = (U)a;\n  T n = 0;\n  for (; rest != 0; rest = (U)(rest & (rest - 1u))) "
      "++n;\n  return n;\n}\n");
  // Comments stay before the head.
  for (const auto& [name, text] : kFloats) {
    std::string own = text;
    const size_t at = own.starts_with("/*") ? own.find('\n') + 1 : 0;
    (*all)[name] = own.insert(at, head);
  }
  for (const Number& from : Numbers(dialect)) {
    for (const Number& to : Numbers(dialect)) {
      if (from.bits != to.bits) continue;
      (*all)[fmt::format("bits_{}_{}", from.suffix, to.suffix)] =
          fmt::format("{}{} baton_bits_{}_{}({} x) {{\n  {} y;\n  memcpy(&y, &x, sizeof y);\n  return y;\n}}\n", head,
                      to.type, from.suffix, to.suffix, from.type, to.type);
    }
  }
  for (const Saturated& s : kSaturated) {
    const std::string type = (s.is_signed ? dialect.ints : dialect.uints)[s.wide ? 3 : 2];
    const char* least = s.is_signed ? dialect.least[s.wide] : "0";
    const char* most = dialect.most[(s.is_signed ? 0 : 2) + s.wide];
    for (const auto& [suffix, from, end] : {std::tuple{"f32", "float", "f"}, {"f64", "double", ""}}) {
      (*all)[fmt::format("sat_{}_{}", s.suffix, suffix)] = fmt::format(
          "{}{} baton_sat_{}_{}({} x) {{\n  return x != x ? 0 : x <= {}{} ? {} : x >= {}{} ? {} : ({})x;\n}}\n", head,
          type, s.suffix, suffix, from, s.low, end, least, s.high, end, most, type);
    }
  }
}

}  // namespace baton::codegen::source
