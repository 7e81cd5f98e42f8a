// SPDX-License-Identifier: Apache-2.0
// Checks calls of intrinsics against the letters of their rows; code generators rely on it.
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/verify.h>
#include <fmt/format.h>

#include <algorithm>

namespace baton::tir {
namespace {

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

bool IsOfLetter(char letter, const PrimExpr& e, DataType result) {
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

/// The fault of a call, or "".
std::string Fault(const IntrinDef& row, const CallNode* call) {
  const std::string_view takes = row.takes.value;
  const size_t optional = takes.find('['), rest = takes.find('*');
  std::string letters;
  for (const char c : takes) {
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
    if (e.defined() && IsOfLetter(letters[i], e, call->dtype)) continue;
    const std::string got = !e.defined() ? "null" : e.as<StringImmNode>() ? "a text" : DataType2String(e.dtype());
    return fmt::format(
        "argument {} of `tir.{}` is {}, not {}{}", i, row.name, WordOf(letters[i]), got,
        letters[i] == 'r' || letters[i] == 'R' ? " (the result is " + DataType2String(call->dtype) + ")" : "");
  }
  return row.check ? row.check(call) : "";
}

}  // namespace

std::string CheckIntrinsics(const PrimFunc& func) {
  struct Finder : StmtExprVisitor {
    std::string error;
    using StmtExprVisitor::VisitExpr_;
    void VisitExpr_(const CallNode* call) final {
      const IntrinDef* row = error.empty() ? IntrinOf(call) : nullptr;
      if (row) error = Fault(*row, call);
      if (error.empty()) StmtExprVisitor::VisitExpr_(call);
    }
  } finder;
  if (func->body.defined()) finder.VisitStmt(func->body);
  return finder.error;
}

}  // namespace baton::tir
