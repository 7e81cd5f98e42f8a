// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/tir/expr.h>

#include <vector>

namespace baton::arith {

/// The operands of a conjunction, the last first; the condition itself if it is not a conjunction.
inline std::vector<PrimExpr> Conjuncts(const PrimExpr& condition) {
  std::vector<PrimExpr> work{condition}, out;
  while (!work.empty()) {
    const PrimExpr c = work.back();
    work.pop_back();
    if (const auto* n = c.as<tir::AndNode>())
      work.push_back(n->a), work.push_back(n->b);
    else
      out.push_back(c);
  }
  return out;
}

}  // namespace baton::arith
