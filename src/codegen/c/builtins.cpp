// SPDX-License-Identifier: Apache-2.0
// Functions that C has none of the same meaning of, beside those of all languages.
#include "codegen/c/c.h"

namespace baton::codegen::c {
namespace {

constexpr const char* kHead = "static inline ";

std::map<std::string, std::string> AllBuiltins() {
  std::map<std::string, std::string> all = source::CommonBuiltins(kDialect, kHead);
  source::AddPlainBuiltins(&all, kDialect, kHead);
  return all;
}

}  // namespace

const std::map<std::string, std::string>& Builtins() {
  static const std::map<std::string, std::string> all = AllBuiltins();
  return all;
}

}  // namespace baton::codegen::c
