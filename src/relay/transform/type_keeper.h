// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/relay/functor.h>

namespace baton::relay::transform {

/// For rewrites that change no type: what is built anew has the type of what it replaces, whatever its kind. A node
/// with a type must not have parts without, since inference trusts the parts of what has a type and never looks at
/// them.
class TypeKeeper : public MixedModeMutator {
 protected:
  using MixedModeMutator::Rewrite_;
  using MixedModeMutator::VisitExpr_;
  static Expr Typed(const ExprNode* pre, Expr post) {
    if (!post->checked_type_.defined()) post->checked_type_ = pre->checked_type_;
    return post;
  }
  Expr VisitExpr_(const FunctionNode* op) override { return Typed(op, MixedModeMutator::VisitExpr_(op)); }
  Expr VisitExpr_(const IfNode* op) override { return Typed(op, MixedModeMutator::VisitExpr_(op)); }
  Expr VisitExpr_(const MatchNode* op) override { return Typed(op, MixedModeMutator::VisitExpr_(op)); }
  Expr VisitExpr_(const RefCreateNode* op) override { return Typed(op, MixedModeMutator::VisitExpr_(op)); }
  Expr VisitExpr_(const RefReadNode* op) override { return Typed(op, MixedModeMutator::VisitExpr_(op)); }
  Expr VisitExpr_(const RefWriteNode* op) override { return Typed(op, MixedModeMutator::VisitExpr_(op)); }
  Expr PostVisitLet_(const LetNode* op, const Expr& value, const Expr& body) override {
    return Typed(op, MixedModeMutator::PostVisitLet_(op, value, body));
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) override { return Typed(pre, post); }
  Expr Rewrite_(const TupleNode* pre, const Expr& post) override { return Typed(pre, post); }
  Expr Rewrite_(const TupleGetItemNode* pre, const Expr& post) override { return Typed(pre, post); }
};

}  // namespace baton::relay::transform
