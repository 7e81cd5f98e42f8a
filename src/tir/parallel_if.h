// SPDX-License-Identifier: Apache-2.0
// Parallel loops whose work is known at run time alone.
#pragma once

#include <baton/tir/op.h>
#include <baton/tir/stmt.h>

namespace baton::tir {

/// Key of the mark around a parallel loop whose value says whether threads are worth waking.
inline constexpr const char* kParallelIf = "parallel_if";

/// The loop `loop` is parallel where `condition` holds at run time, else its rounds run one after the other.
inline Stmt ParallelIf(PrimExpr condition, Stmt loop) {
  const auto* f = loop.as<ForNode>();
  if (!f || f->kind != ForKind::kParallel || is_const_int(condition, 1)) return loop;
  if (is_const_int(condition, 0)) {
    ForNode n = *f;
    n.kind = ForKind::kSerial;
    return For(std::move(n));
  }
  AttrStmtNode n;
  n.attr_key = kParallelIf, n.value = std::move(condition), n.body = std::move(loop);
  return AttrStmt(std::move(n));
}

}  // namespace baton::tir
