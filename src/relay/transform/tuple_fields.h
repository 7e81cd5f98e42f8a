// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/relay/expr.h>
#include <relay/expr/impure.h>

#include <cstdint>
#include <optional>
#include <utility>

namespace baton::relay::transform {

/// `(a, b).0` is `a`, unless the other fields do more than give a value: these are evaluated too.
class TupleFields {
 public:
  /// `root`: the expression that is rewritten.
  explicit TupleFields(Expr root) : root_(std::move(root)) {}

  /// The field that `post` (the rewritten `pre`) projects; `post` itself if the field is unknown or the tuple must
  /// stay. `graph`: the index of the root's nodes, if there is one.
  Expr Take(const TupleGetItemNode* pre, const Expr& post, const ExprIndex* graph) {
    const auto* get = post.as<TupleGetItemNode>();
    const auto* tuple = get ? get->tuple.as<TupleNode>() : nullptr;
    if (!tuple) return post;
    const auto* before = pre->tuple.as<TupleNode>();
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      const int64_t k = static_cast<int64_t>(i);
      const Expr& other = tuple->fields[k];
      if (k == get->index || other->IsInstance<VarNode>() || other->IsInstance<ConstantNode>()) continue;
      if (Impure(before ? before->fields[k] : pre->tuple, graph)) return post;
    }
    return tuple->fields[get->index];
  }

 private:
  bool Impure(const Expr& e, const ExprIndex* graph) {
    const uint32_t i = graph ? graph->IdOf(e.operator->()) : ExprIndex::kNone;
    if (i != ExprIndex::kNone) {
      if (!numbers_) numbers_ = ImpureIds(*graph);
      return (*numbers_)[i];
    }
    if (!impure_) impure_ = ImpureNodes(root_);
    return impure_->Has(e.get());
  }

  Expr root_;
  std::optional<support::PageStack<uint8_t>> numbers_;  ///< found when first asked for, both
  std::optional<PointerSet> impure_;
};

}  // namespace baton::relay::transform
