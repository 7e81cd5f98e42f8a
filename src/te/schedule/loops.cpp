// SPDX-License-Identifier: Apache-2.0
// Extents of a stage's loops, and its axes as expressions of them.
#include <baton/arith/analyzer.h>
#include <baton/te/schedule.h>
#include <baton/tir/op.h>

#include <algorithm>

#include "te/schedule/stage.h"

namespace baton::te {
namespace {

/// A literal of int64 that is at most the whole, where both are known.
PrimExpr AtMost(const PrimExpr& n, const PrimExpr& whole) {
  const int64_t *small = tir::as_const_int(n), *large = tir::as_const_int(whole);
  if (!small) return n;
  return tir::make_int(DataType::Int(64), large && *small > *large ? std::max<int64_t>(*large, 1) : *small);
}

}  // namespace

StageLoops LoopsOf(const Stage& stage, const Map<Var, PrimExpr>& given) {
  arith::Analyzer analyzer;
  StageLoopsNode out;
  auto& extents = out.extents;
  for (const auto& [v, e] : given) extents.Set(v, e);
  const auto ceil_div = [&](const PrimExpr& a, const PrimExpr& b) { return analyzer.Simplify(floordiv(a + b - 1, b)); };
  for (const IterVarRelation& r : stage->relations) {
    if (const auto* s = r.as<SingletonNode>()) {
      extents.Set(s->iter->var, tir::make_int(DataType::Int(64), 1));
    } else if (const auto* split = r.as<SplitNode>()) {
      const PrimExpr whole = extents.at(split->parent->var);
      const PrimExpr inner =
          split->factor.defined() ? AtMost(split->factor, whole) : ceil_div(whole, AtMost(split->nparts, whole));
      const PrimExpr outer = ceil_div(whole, inner);
      extents.Set(split->outer->var, outer);
      extents.Set(split->inner->var, inner);
      if (!tir::is_const_int(analyzer.Simplify(outer * inner - whole), 0)) out.inexact.push_back(split->parent);
    } else {
      const auto* fuse = r.as<FuseNode>();
      extents.Set(fuse->fused->var, analyzer.Simplify(extents.at(fuse->outer->var) * extents.at(fuse->inner->var)));
    }
  }
  // From the loops back to the axes.
  auto& values = out.values;
  for (const IterVar& iv : stage->leaf_iter_vars) values.Set(iv->var, iv->var);
  for (size_t i = stage->relations.size(); i-- > 0;) {
    const IterVarRelation& r = stage->relations[i];
    if (const auto* split = r.as<SplitNode>()) {
      const PrimExpr outer = values.at(split->outer->var), inner = values.at(split->inner->var);
      values.Set(split->parent->var, analyzer.Simplify(outer * extents.at(split->inner->var) + inner));
    } else if (const auto* fuse = r.as<FuseNode>()) {
      const PrimExpr fused = values.at(fuse->fused->var), inner = extents.at(fuse->inner->var);
      values.Set(fuse->outer->var, analyzer.Simplify(floordiv(fused, inner)));
      values.Set(fuse->inner->var, analyzer.Simplify(floormod(fused, inner)));
    }
  }
  return StageLoops(std::move(out));
}

StageLoops LoopsOf(const Stage& stage) {
  Map<Var, PrimExpr> extents;
  for (const IterVar& iv : AxesOf(stage->op)) extents.Set(iv->var, iv->dom->extent);
  return LoopsOf(stage, extents);
}

Array<PrimExpr> StageLoops::Conditions(bool reduce) const {
  Array<PrimExpr> out;
  for (const IterVar& iv : (*this)->inexact)
    if (IsReduce(iv) == reduce) out.push_back((*this)->values.at(iv->var) < (*this)->extents.at(iv->var));
  return out;
}

}  // namespace baton::te
