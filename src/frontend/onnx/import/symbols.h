// SPDX-License-Identifier: Apache-2.0
/// \file symbols.h
/// Lengths that are expressions of named symbols, as numbers beside literal ones.
#pragma once

#include <baton/tir/expr.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace baton::onnx {

/// Expressions, each under a number far below zero: code that knows nothing of symbols sees a length that is no
/// literal.
class Symbols {
 public:
  static constexpr int64_t kFirst = -7046029254386353131;  // unlike any that is written
  static constexpr int64_t kMax = int64_t{1} << 32;
  /// Whether a number stands for an expression. No number of a model may.
  static bool IsSymbol(int64_t v) { return v >= kFirst && v < kFirst + kMax; }

  /// A literal, the number of an expression, or -1 for `?` and anything else.
  int64_t NumberOf(const PrimExpr& e);
  /// The number of a value, which may be a negative literal; nothing for null and anything else.
  std::optional<int64_t> NumberOfValue(const PrimExpr& e);
  /// The extent that a number stands for; `?` for other negative numbers.
  PrimExpr ExprOf(int64_t v) const;
  /// The value that a number stands for; negative literals are themselves.
  PrimExpr ValueOf(int64_t v) const;
  /// The symbol of this name, the same each time.
  PrimExpr Named(const std::string& name);
  /// Takes a symbol to be a literal length from here on.
  void Bind(const std::string& name, int64_t value) { named_[name] = PrimExpr(value); }
  /// The extent of a name in a model: "past + seq" is a sum where `plain` has its names, else a symbol of that name.
  PrimExpr Formula(std::string_view text, const std::vector<std::string>& plain);

 private:
  std::vector<PrimExpr> exprs_;
  std::unordered_map<std::string, int64_t> numbers_;  ///< by text, in which each symbol has its own name
  std::map<std::string, PrimExpr> named_;
};

}  // namespace baton::onnx
