// SPDX-License-Identifier: Apache-2.0
// C's family.
#include <fmt/format.h>

#include <cmath>

#include "codegen/source/dialect.h"

namespace baton::codegen::source {
namespace {

std::string Cast(const std::string& type, const std::string& value) { return fmt::format("({}){}", type, value); }
std::string Choose(const std::string& condition, const std::string& yes, const std::string& no) {
  return fmt::format("({} ? {} : {})", condition, yes, no);
}
std::string Constant(const std::string& type, const std::string& name, const std::string& value) {
  return fmt::format("const {} {} = {}", type, name, value);
}
std::string Variable(const std::string& type, const std::string& name, const std::string& value) {
  return fmt::format("{} {}{}{}", type, name, value.empty() ? "" : " = ", value);
}
std::string ArrayOf(const std::string& type, const std::string& name, int64_t count) {
  return fmt::format("{} {}[{}]", type, name, count);
}
std::string Step(const std::string& name) { return "++" + name; }
std::string When(const std::string& condition, const std::string& statement) {
  return fmt::format("if ({}) {}", condition, statement);
}
std::string NotFinite(double value, const std::string& type, Needs*) {
  const char* text = std::isnan(value) ? "NAN" : value < 0 ? "(-INFINITY)" : "INFINITY";
  return type.empty() ? text : Cast(type, text);
}
std::string Math(const std::string& name, DataType, Needs*) { return name; }
std::string MathSuffixed(const std::string& name, DataType t, Needs*) { return t.bits() == 32 ? name + "f" : name; }

constexpr Syntax Family(decltype(Syntax::math) math) {
  return {.cast = Cast,
          .choose = Choose,
          .constant = Constant,
          .variable = Variable,
          .array = ArrayOf,
          .step = Step,
          .when = When,
          .forever = "while (1) {",
          .not_finite = NotFinite,
          .math = math,
          .wraps = false};
}

}  // namespace

const Syntax kSyntaxC = Family(Math), kSyntaxSuffixed = Family(MathSuffixed);

}  // namespace baton::codegen::source
