// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/error.h>

#include "codegen/source/dialect.h"

namespace baton::codegen::source {
namespace {

struct Type {
  std::string suffix, name, unsigned_name, wide_name;
  int bits;
  bool is_signed;
};

std::vector<Type> Ints(const Dialect& d) {
  std::vector<Type> out;
  for (int k = 0; k < 4; ++k) {
    const std::string bits = std::to_string(8 << k), wide = d.uints[k < 2 ? 2 : k];
    out.push_back({"i" + bits, d.ints[k], d.uints[k], wide, 8 << k, true});
    out.push_back({"u" + bits, d.uints[k], d.uints[k], wide, 8 << k, false});
  }
  return out;
}

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
    {"shl", "T baton_shl_S(T a, T n) { return (U)n >= W ? (T)0 : (T)((V)a << n); }\n"}};
constexpr const char* kFloatText[][2] = {
    // NaN in either operand gives NaN.
    {"min", "T baton_min_S(T a, T b) { return b != b ? b : !(a >= b) ? a : b; }\n"},
    {"max", "T baton_max_S(T a, T b) { return b != b ? b : !(a <= b) ? a : b; }\n"},
    {"floormod",
     "T baton_floormod_S(T a, T b) {\n  T r = F(a, b);\n  return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n}\n"}};

std::string Fill(const std::string& text, const Type& t, const std::string& fmod = "") {
  std::string out;
  const auto word = [&](size_t i) {
    return i < text.size() && (isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const bool alone = (i == 0 || !word(i - 1)) && !word(i + 1);
    const char c = text[i];
    if (c == 'S' && i > 0 && text[i - 1] == '_') {
      out += t.suffix;
    } else if (!alone) {
      out += c;
    } else if (c == 'T') {
      out += t.name;
    } else if (c == 'U') {
      out += t.unsigned_name;
    } else if (c == 'V') {
      out += t.wide_name;
    } else if (c == 'W') {
      out += std::to_string(t.bits);
    } else if (c == 'F') {
      out += fmod;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::map<std::string, std::string> CommonBuiltins(const Dialect& dialect, const std::string& head) {
  std::map<std::string, std::string> all;
  const auto add = [&](const auto& table, const Type& t, const std::string& fmod = "") {
    for (const auto& row : table) all[std::string(row[0]) + "_" + t.suffix] = head + Fill(row[1], t, fmod);
  };
  for (const Type& t : Ints(dialect)) {
    if (t.is_signed) {
      add(kSignedText, t);
    } else {
      add(kUnsignedText, t);
    }
    add(kIntText, t);
  }
  add(kFloatText, {"f32", "float", "", "", 32, true}, dialect.suffixed ? "fmodf" : "fmod");
  add(kFloatText, {"f64", "double", "", "", 64, true}, "fmod");
  return all;
}

void AddForInts(std::map<std::string, std::string>* all, const Dialect& dialect, const std::string& name,
                const std::string& text) {
  for (const Type& t : Ints(dialect)) (*all)[name + "_" + t.suffix] = Fill(text, t);
}

std::string Dialect::Definitions(const std::set<std::string>& names) const {
  std::string out;
  for (const std::string& name : names) {
    auto it = builtins().find(name);
    if (it == builtins().end()) throw runtime::InternalError(std::string(language) + " has no function baton_" + name);
    out += it->second;
  }
  return out;
}

}  // namespace baton::codegen::source
