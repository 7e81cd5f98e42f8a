// SPDX-License-Identifier: Apache-2.0
// Numbers that follow from a function's sizes: work-items of kernels, bytes of the workspace. In a program's head a
// literal, or tokens for a stack machine: "s0" is the first size, "+" takes two numbers and gives one, "?" takes three.
#pragma once

#include <baton/support/json.h>

#include <cstdint>
#include <string>
#include <vector>

namespace baton::device {

class Formula {
 public:
  Formula() = default;
  /// Throws ValueError for one that lacks operands, or sizes beyond so many.
  Formula(const support::Json& j, size_t num_sizes);
  /// Wraps where a number does not fit; division by zero gives 0.
  int64_t operator()(const int64_t* sizes) const;
  bool IsLiteral() const { return tokens_.size() == 1 && tokens_[0].op == kLiteral; }

 private:
  enum Op : uint8_t {
    kLiteral,
    kSize,
    kAdd,
    kSub,
    kMul,
    kDiv,
    kMod,
    kFloorDiv,
    kFloorMod,
    kMin,
    kMax,
    kEq,
    kNe,
    kLt,
    kLe,
    kGt,
    kGe,
    kAnd,
    kOr,
    kSelect
  };
  struct Token {
    Op op = kLiteral;
    int64_t value = 0;
  };
  static Token TokenOf(const std::string& text, size_t num_sizes);

  std::vector<Token> tokens_;
};

}  // namespace baton::device
