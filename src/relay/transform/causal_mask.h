// SPDX-License-Identifier: Apache-2.0
// Masks that hide later keys from a query, by their values or by how a program computes them.
#pragma once

#include <baton/relay/expr.h>
#include <relay/op/known_values.h>

#include <optional>

namespace baton::relay::transform {

/// An addend so far below all scores that the key's weight is 0 in float32.
inline constexpr double kHides = -1e9;

/// The value of a constant of one floating element.
std::optional<double> NumberOf(const Expr& e);

/// Of masks over `rows` queries, which have the places of the last of `keys` keys.
class CausalMasks {
 public:
  CausalMasks(const PrimExpr& rows, const PrimExpr& keys) : rows_(rows), keys_(keys) {}

  /// Whether `factor` times the expression, of two dimensions or leading ones of extent 1, adds 0 to the scores of keys
  /// up to a query's own place and hides the others.
  bool Adds(const Expr& mask, double factor);
  /// The largest number that hides a key in the mask that Adds took last.
  double hides() const { return hides_; }
  /// Whether a condition holds for keys up to a query's own place and for no others; `inverse`: the other way around.
  bool Shows(const Expr& condition, bool inverse = false);

 private:
  /// A value that is `offset` plus the sum of its indices along the dimensions that `along` names.
  struct Places {
    std::vector<bool> along;
    PrimExpr offset;
  };
  bool ShowsByConstant(const runtime::NDArray& values, double factor, bool condition, bool inverse);
  /// Whether key <= place + `more`, both as Places, is the condition.
  bool Compares(const Expr& key, const Expr& place, int64_t more);
  std::optional<Places> PlacesOf(const Expr& e, int steps = 0);

  PrimExpr rows_, keys_;
  double hides_ = 0;
  KnownValues known_;
};

}  // namespace baton::relay::transform
