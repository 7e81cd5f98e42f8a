// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/error.h>

#include "codegen/opencl/emitter.h"

namespace baton::codegen::opencl {
namespace {

struct Type {
  const char *suffix, *name, *unsigned_name;
  int bits;
  bool is_signed;
};
constexpr Type kInts[] = {{"i8", "char", "uchar", 8, true},   {"i16", "short", "ushort", 16, true},
                          {"i32", "int", "uint", 32, true},   {"i64", "long", "ulong", 64, true},
                          {"u8", "uchar", "uchar", 8, false}, {"u16", "ushort", "ushort", 16, false},
                          {"u32", "uint", "uint", 32, false}, {"u64", "ulong", "ulong", 64, false}};
constexpr Type kFloats[] = {{"f32", "float", "int", 32, true}, {"f64", "double", "long", 64, true}};

// T: the type, U: its unsigned twin, S: its suffix, W: its bits.
constexpr const char* kSignedText[][2] = {
    // Division that never traps: by zero gives 0, and the smallest value by -1 wraps.
    {"div", "T baton_div_S(T a, T b) { return b == 0 ? (T)0 : b == -1 ? (T)((U)0 - (U)a) : (T)(a / b); }\n"},
    {"mod", "T baton_mod_S(T a, T b) { return b == 0 || b == -1 ? (T)0 : (T)(a % b); }\n"},
    {"floordiv",
     "T baton_floordiv_S(T a, T b) {\n  if (b == 0) return (T)0;\n  if (b == -1) return (T)((U)0 - (U)a);\n"
     "  T q = a / b;\n  return (T)(a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q);\n}\n"},
    {"floormod",
     "T baton_floormod_S(T a, T b) {\n  if (b == 0 || b == -1) return (T)0;\n  T r = a % b;\n"
     "  return (T)(r != 0 && (r < 0) != (b < 0) ? r + b : r);\n}\n"},
    // A shift by the width or more gives 0, or the sign.
    {"shr", "T baton_shr_S(T a, T n) { return (T)(a >> ((U)n >= W ? W - 1 : n)); }\n"}};
constexpr const char* kUnsignedText[][2] = {
    {"div", "T baton_div_S(T a, T b) { return b == 0 ? (T)0 : (T)(a / b); }\n"},
    {"mod", "T baton_mod_S(T a, T b) { return b == 0 ? (T)0 : (T)(a % b); }\n"},
    {"floordiv", "T baton_floordiv_S(T a, T b) { return b == 0 ? (T)0 : (T)(a / b); }\n"},
    {"floormod", "T baton_floormod_S(T a, T b) { return b == 0 ? (T)0 : (T)(a % b); }\n"},
    {"shr", "T baton_shr_S(T a, T n) { return n >= W ? (T)0 : (T)(a >> n); }\n"}};
constexpr const char* kIntText[][2] = {
    {"shl", "T baton_shl_S(T a, T n) { return (U)n >= W ? (T)0 : (T)((U)a << n); }\n"}};
constexpr const char* kFloatText[][2] = {
    // NaN in either operand gives NaN.
    {"min", "T baton_min_S(T a, T b) { return b != b ? b : !(a >= b) ? a : b; }\n"},
    {"max", "T baton_max_S(T a, T b) { return b != b ? b : !(a <= b) ? a : b; }\n"},
    {"floormod",
     "T baton_floormod_S(T a, T b) {\n  T r = fmod(a, b);\n  return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n}\n"}};
constexpr const char* kOthers[][2] = {
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

std::string Fill(const char* text, const Type& t) {
  std::string out;
  for (const char* p = text; *p; ++p) {
    const bool alone = (p == text || !(isalnum(static_cast<unsigned char>(p[-1])))) &&
                       !isalnum(static_cast<unsigned char>(p[1])) && p[1] != '_';
    if (*p == 'T' && alone) {
      out += t.name;
    } else if (*p == 'U' && alone) {
      out += t.unsigned_name;
    } else if (*p == 'W' && alone) {
      out += std::to_string(t.bits);
    } else if (*p == 'S' && p > text && p[-1] == '_') {
      out += t.suffix;
    } else {
      out += *p;
    }
  }
  return out;
}

std::map<std::string, std::string> AllDefinitions() {
  std::map<std::string, std::string> all;
  auto add = [&](const auto& table, const Type& t) {
    for (const auto& row : table) all[std::string(row[0]) + "_" + t.suffix] = Fill(row[1], t);
  };
  for (const Type& t : kInts) {
    if (t.is_signed) {
      add(kSignedText, t);
    } else {
      add(kUnsignedText, t);
    }
    add(kIntText, t);
  }
  for (const Type& t : kFloats) add(kFloatText, t);
  for (const auto& row : kOthers) all[row[0]] = row[1];
  return all;
}

}  // namespace

std::string Definitions(const std::set<std::string>& names) {
  static const std::map<std::string, std::string> all = AllDefinitions();
  std::string out;
  for (const std::string& name : names) {
    auto it = all.find(name);
    if (it == all.end()) throw runtime::InternalError("OpenCL C has no function baton_" + name);
    out += it->second;
  }
  return out;
}

}  // namespace baton::codegen::opencl
