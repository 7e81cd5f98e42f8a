// SPDX-License-Identifier: Apache-2.0
#include "device/formula.h"

#include <baton/runtime/error.h>

#include <algorithm>
#include <charconv>

namespace baton::device {

using runtime::ValueError;

namespace {

constexpr size_t kMostTokens = 4096;

int64_t Wrapped(uint64_t v) { return static_cast<int64_t>(v); }
bool Divides(int64_t b) { return b != 0 && b != -1; }

}  // namespace

Formula::Token Formula::TokenOf(const std::string& text, size_t num_sizes) {
  // In the order of Op, from kAdd on.
  static constexpr const char* kOperators[] = {"+",  "-",  "*", "/",  "%", "//", "%%", "min", "max",
                                               "==", "!=", "<", "<=", ">", ">=", "&",  "|",   "?"};
  for (size_t i = 0; i < std::size(kOperators); ++i) {
    if (text == kOperators[i]) return {static_cast<Op>(kAdd + i), 0};
  }
  Token t{!text.empty() && text[0] == 's' ? kSize : kLiteral, 0};
  const char* begin = text.data() + (t.op == kSize ? 1 : 0);
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(begin, end, t.value);
  if (error != std::errc() || at != end ||
      (t.op == kSize && (t.value < 0 || static_cast<uint64_t>(t.value) >= num_sizes))) {
    throw ValueError("a formula with `" + text + "`");
  }
  return t;
}

Formula::Formula(const support::Json& j, size_t num_sizes) {
  if (!j.is_array()) {
    tokens_.push_back({kLiteral, j.AsInt()});
    return;
  }
  size_t depth = 0;
  for (const support::Json& token : j.AsArray()) {
    tokens_.push_back(TokenOf(token.AsString(), num_sizes));
    const Op op = tokens_.back().op;
    const size_t takes = op <= kSize ? 0 : op == kSelect ? 3 : 2;
    if (depth < takes || tokens_.size() > kMostTokens) throw ValueError("a formula that lacks operands");
    depth += 1 - takes;
  }
  if (depth != 1) throw ValueError("a formula that lacks operators");
}

int64_t Formula::operator()(const int64_t* sizes) const {
  if (tokens_.size() == 1) return tokens_[0].op == kSize ? sizes[tokens_[0].value] : tokens_[0].value;
  std::vector<int64_t> stack;
  for (const Token& t : tokens_) {
    if (t.op <= kSize) {
      stack.push_back(t.op == kSize ? sizes[t.value] : t.value);
      continue;
    }
    const int64_t b = stack.back();
    stack.pop_back();
    int64_t& a = stack.back();
    const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
    switch (t.op) {
      case kAdd:
        a = Wrapped(ua + ub);
        break;
      case kSub:
        a = Wrapped(ua - ub);
        break;
      case kMul:
        a = Wrapped(ua * ub);
        break;
      case kDiv:
        a = Divides(b) ? a / b : b == -1 ? Wrapped(0 - ua) : 0;
        break;
      case kMod:
        a = Divides(b) ? a % b : 0;
        break;
      case kFloorDiv:
        a = Divides(b) ? a / b - (a % b != 0 && (a < 0) != (b < 0)) : b == -1 ? Wrapped(0 - ua) : 0;
        break;
      case kFloorMod:
        a = Divides(b) ? a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0) : 0;
        break;
      case kMin:
        a = std::min(a, b);
        break;
      case kMax:
        a = std::max(a, b);
        break;
      case kEq:
        a = a == b;
        break;
      case kNe:
        a = a != b;
        break;
      case kLt:
        a = a < b;
        break;
      case kLe:
        a = a <= b;
        break;
      case kGt:
        a = a > b;
        break;
      case kGe:
        a = a >= b;
        break;
      case kAnd:
        a = a != 0 && b != 0;
        break;
      case kOr:
        a = a != 0 || b != 0;
        break;
      default: {  // condition, what it gives where it holds, and else
        const int64_t chosen = stack[stack.size() - 2] != 0 ? a : b;
        stack.pop_back();
        stack.back() = chosen;
      }
    }
  }
  return stack.back();
}

}  // namespace baton::device
