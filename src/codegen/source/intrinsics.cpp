// SPDX-License-Identifier: Apache-2.0
// The column that languages of C's family share: a text for each intrinsic.
#include <fmt/format.h>

#include "codegen/source/dialect.h"

namespace baton::codegen::source {

using namespace tir;  // NOLINT: intrinsics are named below

std::string SuffixOf(DataType t) {
  return fmt::format("{}{}",
                     t.is_floating()              ? 'f'
                     : t.is_uint() || t.is_bool() ? 'u'
                                                  : 'i',
                     t.is_bool() ? 8 : static_cast<int>(t.bits()));
}

std::string TextCall::Type() const { return dialect.TypeName(op->dtype.element_of(), needs); }
std::string TextCall::Of(const std::string& function) const {
  std::string s = function + "(";
  for (size_t i = 0; i < args.size(); ++i) s += (i ? ", " : "") + args[i];
  return s + ")";
}
std::string TextCall::OfMath(const std::string& function) const {
  return Of(dialect.syntax->math(function, op->dtype, needs));
}
std::string TextCall::OfBuiltin(const std::string& name) const {
  needs->builtins.insert(name);
  return Of("baton_" + name);
}

std::string Dialect::TypeName(DataType t, Needs* needs) const {
  if (t.is_bool()) return "bool";
  if (t.is_handle() && suffixed) return "void*";
  if (t.is_floating()) {
    const char* name = floats[t.bits() == 16 ? t.is_bfloat16() : t.bits() == 32 ? 2 : 3];
    needs->fp64 |= name && t.bits() == 64;
    needs->fp16 |= name && t == DataType::Float(16);
    if (name) return name;
  } else if (t.is_int() || t.is_uint()) {
    for (int i = 0; i < 4; ++i) {
      const char* name = t.bits() == 8 << i ? (t.is_uint() ? uints : ints)[i] : nullptr;
      if (name) return name;
    }
  }
  Lack(t, *needs);
}
void Dialect::Lack(DataType t, const Needs& needs) const {
  throw UnsupportedError(fmt::format("{}{} has no values of dtype {}{}{}",
                                     needs.function.empty() ? "" : "`" + needs.function + "`: ", language,
                                     DataType2String(t), mend ? "; " : "", mend ? mend : ""));
}
std::string Dialect::MemoryTypeName(DataType t, Needs* needs) const {
  if (narrow && t == DataType::Int(64)) Lack(t, *needs);
  return t.is_bool() ? truth : TypeName(t, needs);
}
const IntrinText* Dialect::TextOf(const IntrinDef* row) const {
  const IntrinText* own = intrin(row);
  return own ? own : CommonColumn().Find(row);
}

namespace {

/// A text as a template argument.
template <size_t N>
struct Chars {
  char chars[N];
  consteval Chars(const char (&s)[N]) {  // NOLINT
    for (size_t i = 0; i < N; ++i) chars[i] = s[i];
  }
};

std::string OfItsName(const TextCall& c) { return c.OfMath(IntrinOf(c.op)->name); }
template <Chars kName>
std::string OfName(const TextCall& c) {
  return c.OfMath(kName.chars);
}
std::string Ldexp(const TextCall& c) { return c.op->dtype.bits() == 32 ? c.OfBuiltin("ldexp_f32") : ""; }
std::string Rsqrt(const TextCall& c) {
  return fmt::format("({} / {})", c.op->dtype.bits() == 64 ? "1.0" : "1.0f", c.OfMath("sqrt"));
}
std::string IsNan(const TextCall& c) { return fmt::format("({} != {})", c.args[0], c.args[0]); }
std::string Test(const TextCall& c) { return fmt::format("({}({}) != 0)", IntrinOf(c.op)->name, c.args[0]); }
std::string Not(const TextCall& c) {
  return c.op->dtype.is_bool() ? "(!" + c.args[0] + ")" : c.dialect.syntax->cast(c.Type(), "(~" + c.args[0] + ")");
}
template <char kOperator>
std::string Bitwise(const TextCall& c) {
  return c.dialect.syntax->cast(c.Type(), fmt::format("({} {} {})", c.args[0], kOperator, c.args[1]));
}
template <Chars kName>
std::string Shift(const TextCall& c) {
  return c.OfBuiltin(kName.chars + SuffixOf(c.op->dtype));
}
std::string First(const TextCall& c) { return c.args[0]; }
/// The printer writes it before it looks at the arguments.
std::string ByPrinter(const TextCall& /*c*/) { return ""; }

}  // namespace

std::vector<Op> WithCommon(const IntrinColumn<IntrinText>& own) {
  std::vector<Op> all = CommonColumn().intrins();
  for (const Op& op : own.intrins()) all.push_back(op);
  return all;
}

const IntrinColumn<IntrinText>& CommonColumn() {
  static const IntrinColumn<IntrinText> column = {
      {intrin::sqrt, {OfItsName}},
      {intrin::floor, {OfItsName}},
      {intrin::ceil, {OfItsName}},
      {intrin::trunc, {OfItsName}},
      {intrin::fabs, {OfItsName}},
      {intrin::round, {OfItsName}},
      {intrin::exp, {OfItsName}},
      {intrin::exp2, {OfItsName}},
      {intrin::log, {OfItsName}},
      {intrin::log2, {OfItsName}},
      {intrin::log10, {OfItsName}},
      {intrin::log1p, {OfItsName}},
      {intrin::sin, {OfItsName}},
      {intrin::cos, {OfItsName}},
      {intrin::tan, {OfItsName}},
      {intrin::sinh, {OfItsName}},
      {intrin::cosh, {OfItsName}},
      {intrin::tanh, {OfItsName}},
      {intrin::asin, {OfItsName}},
      {intrin::acos, {OfItsName}},
      {intrin::atan, {OfItsName}},
      {intrin::asinh, {OfItsName}},
      {intrin::acosh, {OfItsName}},
      {intrin::atanh, {OfItsName}},
      {intrin::erf, {OfItsName}},
      {intrin::pow, {OfItsName}},
      {intrin::fmod, {OfItsName}},
      {intrin::atan2, {OfItsName}},
      {intrin::fma, {OfItsName}},
      {intrin::nearbyint, {OfName<"rint">}},
      {intrin::ldexp, {Ldexp}},
      {intrin::rsqrt, {Rsqrt}},
      {intrin::isnan, {IsNan}},
      {intrin::isinf, {Test}},
      {intrin::isfinite, {Test}},
      {intrin::bitwise_not, {Not}},
      {intrin::bitwise_and, {Bitwise<'&'>}},
      {intrin::bitwise_or, {Bitwise<'|'>}},
      {intrin::bitwise_xor, {Bitwise<'^'>}},
      {intrin::shift_left, {Shift<"shl_">}},
      {intrin::shift_right, {Shift<"shr_">}},
      {intrin::likely, {First}},
      {intrin::if_then_else, {ByPrinter}},
      {intrin::prefetch, {ByPrinter}},
  };
  return column;
}

}  // namespace baton::codegen::source
