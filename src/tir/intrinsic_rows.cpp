// SPDX-License-Identifier: Apache-2.0
// What calls of intrinsics take, a row each; code generators rely on it.
#include <baton/tir/functor.h>
#include <baton/tir/verify.h>
#include <fmt/format.h>

#include <array>
#include <unordered_map>

namespace baton::tir {
namespace {

/// A letter an argument. n: a number. r: of the result's dtype. R: of the result's dtype, integers or bools. i:
/// integers or bools. f: floating. b: bool. h: a handle. s: a literal text. l: a BufferLoad, which names a place. x:
/// any value. In brackets: those that may be left out; `*`: any others behind them.
struct IntrinsicRow {
  std::string_view name, takes;
};

constexpr std::array kRows = std::to_array<IntrinsicRow>({
    {"exp", "n"},
    {"exp2", "n"},
    {"log", "n"},
    {"log2", "n"},
    {"log10", "n"},
    {"log1p", "n"},
    {"sin", "n"},
    {"cos", "n"},
    {"tan", "n"},
    {"sinh", "n"},
    {"cosh", "n"},
    {"tanh", "n"},
    {"asin", "n"},
    {"acos", "n"},
    {"atan", "n"},
    {"asinh", "n"},
    {"acosh", "n"},
    {"atanh", "n"},
    {"erf", "n"},
    {"sigmoid", "n"},
    {"pow", "nn"},
    {"fmod", "nn"},
    {"atan2", "nn"},
    {"sqrt", "r"},
    {"rsqrt", "r"},
    {"floor", "r"},
    {"ceil", "r"},
    {"trunc", "r"},
    {"fabs", "r"},
    {"round", "r"},
    {"nearbyint", "r"},
    {"abs", "r"},
    {"popcount", "R"},
    {"fma", "rrr"},
    {"dot4", "iir"},
    {"ldexp", "ni"},
    {"isnan", "n"},
    {"isinf", "n"},
    {"isfinite", "n"},
    {"bitwise_not", "R"},
    {"bitwise_and", "RR"},
    {"bitwise_or", "RR"},
    {"bitwise_xor", "RR"},
    {"shift_left", "RR"},
    {"shift_right", "RR"},
    {"reinterpret", "x"},
    {"if_then_else", "brr"},
    {"masked_load", "lb"},
    {"masked_store", "lxb"},
    {"prefetch", "li[ii]"},
    {"address_of", "l"},
    {"ptr_offset", "hi"},
    {"load_handle", "hi"},
    {"memcpy", "hhi"},
    {"call_extern", "s*"},
    {"call_packed", "s*"},
    {"tvm_call_trace_packed", "sx*"},
    {"vector_sum", "n"},
    {"vector_prod", "n"},
    {"vector_min", "n"},
    {"vector_max", "n"},
    {"likely", "x"},
    {"ret", "x"},
});

const char* WordOf(char letter) {
  switch (letter) {
    case 'n':
      return "a number";
    case 'R':
      return "integers of the result's dtype";
    case 'r':
      return "a value of the result's dtype";
    case 'i':
      return "an integer";
    case 'f':
      return "a floating number";
    case 'b':
      return "a bool";
    case 'h':
      return "a handle";
    case 's':
      return "a text (tir.StringImm)";
    case 'l':
      return "an element of a buffer (tir.BufferLoad)";
    default:
      return "a value";
  }
}

bool Is(char letter, const PrimExpr& e, DataType result) {
  const DataType t = e.dtype();
  const bool text = e.as<StringImmNode>() != nullptr, number = !text && !t.is_handle() && !t.is_void();
  switch (letter) {
    case 'n':
      return number;
    case 'R':
      return number && t == result && t.is_integral();
    case 'r':
      return !text && t == result;
    case 'i':
      return number && t.is_integral();
    case 'f':
      return number && t.is_floating();
    case 'b':
      return number && t.is_bool();
    case 'h':
      return !text && t.is_handle();
    case 's':
      return text;
    case 'l':
      return e.as<BufferLoadNode>() != nullptr;
    default:
      return !text;
  }
}

/// What is wrong with a call, or "".
std::string Fault(const IntrinsicRow& row, const CallNode* call) {
  const size_t optional = row.takes.find('['), rest = row.takes.find('*');
  std::string letters;
  for (const char c : row.takes) {
    if (std::isalpha(static_cast<unsigned char>(c))) letters += c;
  }
  const size_t least = std::min({optional, rest, letters.size()}), given = call->args.size();
  if (given < least || (rest == std::string_view::npos && given > letters.size())) {
    const std::string count = rest != std::string_view::npos ? fmt::format("at least {}", least)
                              : least != letters.size()      ? fmt::format("{} to {}", least, letters.size())
                                                             : std::to_string(least);
    return fmt::format("`tir.{}` takes {} arguments, the call has {}", row.name, count, given);
  }
  for (size_t i = 0; i < given && i < letters.size(); ++i) {
    const PrimExpr& e = call->args[static_cast<int64_t>(i)];
    if (e.defined() && Is(letters[i], e, call->dtype)) continue;
    const std::string got = !e.defined() ? "null" : e.as<StringImmNode>() ? "a text" : DataType2String(e.dtype());
    return fmt::format(
        "argument {} of `tir.{}` is {}, not {}{}", i, row.name, WordOf(letters[i]), got,
        letters[i] == 'r' || letters[i] == 'R' ? " (the result is " + DataType2String(call->dtype) + ")" : "");
  }
  if (row.name == "reinterpret") {
    const DataType from = call->args[0].dtype(), to = call->dtype;
    if (from.bits() * from.lanes() != to.bits() * to.lanes()) {
      return fmt::format("`tir.reinterpret` of {} as {}: they differ in bits", DataType2String(from),
                         DataType2String(to));
    }
  }
  if (row.name == "dot4") {
    const DataType t = call->dtype;
    if (t.element_of() != DataType::Int(32) || call->args[0].dtype() != DataType::UInt(8, 4 * t.lanes()) ||
        call->args[1].dtype() != DataType::Int(8, 4 * t.lanes())) {
      return fmt::format("`tir.dot4` of {} and {} into {}: it takes uint8 and int8, four lanes for each of int32",
                         DataType2String(call->args[0].dtype()), DataType2String(call->args[1].dtype()),
                         DataType2String(t));
    }
  }
  return "";
}

}  // namespace

std::string CheckIntrinsics(const PrimFunc& func) {
  struct Finder : StmtExprVisitor {
    std::unordered_map<std::string_view, const IntrinsicRow*> rows;
    std::string error;
    using StmtExprVisitor::VisitExpr_;
    void VisitExpr_(const CallNode* call) final {
      std::string_view name = IntrinName(call);
      if (error.empty() && name.substr(0, 4) == "tir.") {
        name.remove_prefix(4);
        if (const auto row = rows.find(name); row != rows.end()) error = Fault(*row->second, call);
      }
      if (error.empty()) StmtExprVisitor::VisitExpr_(call);
    }
  } finder;
  for (const IntrinsicRow& row : kRows) finder.rows.emplace(row.name, &row);
  if (func->body.defined()) finder.VisitStmt(func->body);
  return finder.error;
}

}  // namespace baton::tir
