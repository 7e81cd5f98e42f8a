// SPDX-License-Identifier: Apache-2.0
// Functions that C has none of the same meaning of, beside those of all languages.
#include <fmt/format.h>

#include "codegen/c/c.h"

namespace baton::codegen::c {
namespace {

constexpr const char* kHead = "static inline ";

std::map<std::string, std::string> AllBuiltins() {
  std::map<std::string, std::string> all = source::CommonBuiltins(kDialect, kHead);
  source::AddBitBuiltins(&all, kDialect, kHead);
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
