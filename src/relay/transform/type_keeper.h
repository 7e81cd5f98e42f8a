// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/relay/functor.h>

namespace baton::relay::transform {

/// For rewrites that change no type: what is built anew has the type of what it replaces, whatever its kind. A node
/// with a type must not have children without, since inference trusts the children of what has a type and never looks
/// at them.
class TypeKeeper : public MixedModeMutator {
 protected:
  static Expr Typed(const ExprNode* before, const Expr& now) {
    if (now.defined() && !now->checked_type_.defined()) now->checked_type_ = before->checked_type_;
    return now;
  }
  void Replaced(const ExprNode* before, const Expr& now) final { Typed(before, now); }
};

}  // namespace baton::relay::transform
