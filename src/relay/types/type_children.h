// SPDX-License-Identifier: Apache-2.0
// Children of a type, for traversals with an explicit stack.
#pragma once

#include <baton/relay/expr.h>
#include <ir/node/children.h>

#include <type_traits>

namespace baton::relay {

/// Calls `f(const Type&)` for each type that is part of `t`, in the order of the default visits. Type variables that
/// `t` binds are left out, and so are relations.
template <class F>
void ForEachTypeChild(const Object* t, F f) {
  DispatchKind<TupleTypeNode, FuncTypeNode, RelayRefTypeNode, TypeCallNode>(t, [&](const auto* node) {
    ForEachChildOf<FamilyOfUses<Type>>(node, [&]<class T>(const T& child) {
      if constexpr (!std::is_same_v<T, TypeConstraint>) f(child);
    });
  });
}

}  // namespace baton::relay
