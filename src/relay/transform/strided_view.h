// SPDX-License-Identifier: Apache-2.0
// A value as another arrangement of a dense tensor: what transpositions, reshapes and broadcasts make of it.
#pragma once

#include <baton/relay/expr.h>

#include <string>
#include <vector>

namespace baton::relay::transform {

/// Dimensions as products of the factors of a dense tensor's dimensions. Factors of extent 1 are left out.
class StridedView {
 public:
  /// The tensor as it is; it has a type of known extents (literals, or expressions of symbols).
  explicit StridedView(const Expr& source);

  /// Applies a step to this arrangement; returns false, and leaves it unusable, where the result has no form.
  bool Transpose(const std::vector<int64_t>& axes);
  bool Reshape(const Array<PrimExpr>& shape);
  bool BroadcastTo(const Array<PrimExpr>& shape);
  /// A dimension of this extent along which elements repeat, in front of dimension `at`.
  void Repeat(size_t at, const PrimExpr& extent);

  const Expr& source() const { return source_; }
  size_t rank() const { return dims_.size(); }

  /// Gives the factors of dimensions [begin, end) a letter.
  void Name(size_t begin, size_t end, char letter);
  /// Whether elements repeat along one of dimensions [begin, end).
  bool Repeats(size_t begin, size_t end) const;
  /// Splits what is named `letter`, factors that vary outermost: those behind which elements repeat lose their name.
  /// The product of the repeated ones; null where one is not behind all that are not.
  PrimExpr DropRepeated(char letter);
  /// The dimensions of the source by letters, with as many letters as `letters`; those without a factor are in front.
  /// Empty where a letter's factors are not side by side in the source, in their order.
  struct Named {
    std::string layout;
    Array<PrimExpr> shape;
  };
  Named InSource(std::string_view letters) const { return Collected(letters, memory_); }
  /// The same of the value itself, as if it were dense.
  Named InValue(std::string_view letters) const;

 private:
  struct Factor {
    PrimExpr extent;
    bool repeats = false;
    char letter = 0;
  };
  std::vector<size_t> Flat() const;
  Named Collected(std::string_view letters, const std::vector<size_t>& order) const;

  Expr source_;
  std::vector<Factor> factors_;
  std::vector<size_t> memory_;             // factors in the order of the source
  std::vector<std::vector<size_t>> dims_;  // factors of each dimension, the outermost first
};

/// x / y where that goes out even for all sizes, else null.
PrimExpr EvenQuotient(const PrimExpr& x, const PrimExpr& y);

}  // namespace baton::relay::transform
