// SPDX-License-Identifier: Apache-2.0
// Short integer tensors as vectors of extents: what shapes are computed from.
#pragma once

#include <baton/relay/expr.h>
#include <baton/support/pointer_map.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace baton::relay {

/// Elements of integer expressions of rank 0 or 1 and at most 16 elements, where they follow from literals and from
/// shapes by the rules of operators (elements.h). Reads the types of expressions.
class KnownValues {
 public:
  using Elements = std::vector<PrimExpr>;
  static constexpr size_t kMax = 16;

  /// Symbols for otherwise unknown elements of an expression; none by default.
  using Leaf = std::function<std::optional<Elements>(const Expr&)>;

  KnownValues() = default;
  explicit KnownValues(Leaf leaf) : leaf_(std::move(leaf)) {}

  /// The elements, each canonical; nothing where one of them is not known.
  std::optional<Elements> Of(const Expr& e);
  /// The same with null for an element that is not known; nothing for another dtype or rank, or more elements.
  std::optional<Elements> InPart(const Expr& e);

 private:
  Elements Find(const Expr& e, size_t count);
  std::optional<Elements> OfCall(const CallNode* call);
  std::optional<Elements> OfTuple(const Expr& tuple);

  Leaf leaf_;
  std::vector<std::pair<Expr, std::optional<Elements>>> found_;
  PointerMap<uint32_t> index_;
};

}  // namespace baton::relay
