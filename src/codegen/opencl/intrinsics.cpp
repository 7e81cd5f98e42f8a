// SPDX-License-Identifier: Apache-2.0
// The column of OpenCL: a text for each intrinsic.
#include <fmt/format.h>

#include "codegen/opencl/emitter.h"

namespace baton::codegen::opencl {

using namespace tir;  // NOLINT: intrinsics are named below

std::string SuffixOf(DataType t) {
  return fmt::format("{}{}",
                     t.is_floating()              ? 'f'
                     : t.is_uint() || t.is_bool() ? 'u'
                                                  : 'i',
                     t.is_bool() ? 8 : static_cast<int>(t.bits()));
}

std::string TextCall::Of(const std::string& function) const {
  std::string s = function + "(";
  for (size_t i = 0; i < args.size(); ++i) s += (i ? ", " : "") + args[i];
  return s + ")";
}
std::string TextCall::OfBuiltin(const std::string& name) const {
  needs->builtins.insert(name);
  return Of("baton_" + name);
}

namespace {

/// A text as a template argument.
template <size_t N>
struct Name {
  char chars[N];
  consteval Name(const char (&s)[N]) {  // NOLINT
    for (size_t i = 0; i < N; ++i) chars[i] = s[i];
  }
};

std::string OfItsName(const TextCall& c) { return c.Of(IntrinOf(c.op)->name); }
template <Name kName>
std::string OfName(const TextCall& c) {
  return c.Of(kName.chars);
}
std::string Ldexp(const TextCall& c) { return c.op->dtype.bits() == 32 ? c.OfBuiltin("ldexp_f32") : ""; }
std::string Rsqrt(const TextCall& c) {
  return fmt::format("({} / sqrt({}))", c.op->dtype.bits() == 64 ? "1.0" : "1.0f", c.args[0]);
}
std::string Abs(const TextCall& c) {
  const DataType t = c.op->dtype;
  if (t.is_floating()) return c.Of("fabs");
  if (t.is_uint() || t.is_bool()) return c.args[0];
  return fmt::format("({})abs({})", c.Type(), c.args[0]);
}
std::string IsNan(const TextCall& c) { return fmt::format("({} != {})", c.args[0], c.args[0]); }
std::string Test(const TextCall& c) { return fmt::format("({}({}) != 0)", IntrinOf(c.op)->name, c.args[0]); }
std::string Not(const TextCall& c) {
  return c.op->dtype.is_bool() ? "(!" + c.args[0] + ")" : fmt::format("({})(~{})", c.Type(), c.args[0]);
}
template <char kOperator>
std::string Bitwise(const TextCall& c) {
  return fmt::format("({})({} {} {})", c.Type(), c.args[0], kOperator, c.args[1]);
}
template <Name kName>
std::string Shift(const TextCall& c) {
  return c.OfBuiltin(kName.chars + SuffixOf(c.op->dtype));
}
std::string Reinterpret(const TextCall& c) {
  const DataType to = c.op->dtype, from = c.op->args[0].dtype();
  return IsHalf(to) && IsHalf(from) ? c.args[0] : fmt::format("as_{}({})", c.Type(), c.args[0]);
}
std::string First(const TextCall& c) { return c.args[0]; }
/// The emitter writes it before it looks at the arguments.
std::string ByEmitter(const TextCall& /*c*/) { return ""; }

const IntrinColumn<IntrinText>& Column() {
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
      {intrin::popcount, {OfItsName}},
      {intrin::nearbyint, {OfName<"rint">}},
      {intrin::ldexp, {Ldexp}},
      {intrin::rsqrt, {Rsqrt}},
      {intrin::abs, {Abs}},
      {intrin::isnan, {IsNan}},
      {intrin::isinf, {Test}},
      {intrin::isfinite, {Test}},
      {intrin::bitwise_not, {Not}},
      {intrin::bitwise_and, {Bitwise<'&'>}},
      {intrin::bitwise_or, {Bitwise<'|'>}},
      {intrin::bitwise_xor, {Bitwise<'^'>}},
      {intrin::shift_left, {Shift<"shl_">}},
      {intrin::shift_right, {Shift<"shr_">}},
      {intrin::reinterpret, {Reinterpret}},
      {intrin::likely, {First}},
      {intrin::if_then_else, {ByEmitter}},
      {intrin::prefetch, {ByEmitter}},
      {intrin::call_extern, {nullptr, kHostFunction}},
      {intrin::call_packed, {nullptr, kHostFunction}},
      {intrin::tvm_call_trace_packed, {nullptr, kHostFunction}},
  };
  return column;
}
const bool registered_column = (RegisterIntrinColumn("opencl", [] { return Column().intrins(); }), true);

}  // namespace

const IntrinText* TextOf(const IntrinDef* row) { return Column().Find(row); }

}  // namespace baton::codegen::opencl
