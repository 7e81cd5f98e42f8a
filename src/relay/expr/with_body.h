// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/relay/expr.h>

namespace baton::relay {

/// A copy of the function with another, untyped body; the function itself if the body is unchanged.
inline Function WithBody(const Function& f, const Expr& body) {
  if (body.same_as(f->body)) return f;
  auto n = make_object<FunctionNode>(*f.get());
  n->body = body;
  return Function(n);
}

}  // namespace baton::relay
