// SPDX-License-Identifier: Apache-2.0
// Nests of pure stores: injective stages, and copies.
#include <algorithm>

#include "te/lower/nests.h"

namespace baton::te::lower {

PrimExpr HomeIndex(const Home& h, const std::vector<PrimExpr>& index) {
  Array<PrimExpr> rest(index.begin() + static_cast<std::ptrdiff_t>(h.drop), index.end());
  return FlatIndex(h.shape, rest);
}

Stmt NestEmitter::OuterLoops(const std::vector<Axis>& axes, Stmt body, double work) {
  bool parallel = work >= kParallelWork && !work_items_;
  double n = 1;
  size_t fuse = work_items_ ? axes.size() : 0;
  if (parallel) {
    while (fuse < axes.size() && n < 16) n *= static_cast<double>(SizeOf(axes[fuse++].extent));
    if (n < 2) fuse = 0;
  }
  for (size_t i = axes.size(); i-- > fuse;) {
    if (!tir::is_const_int(axes[i].extent, 1)) {
      body = MakeFor(axes[i].var, axes[i].extent, ForKind::kSerial, body);
    } else {
      body = tir::Substitute(body, tir::VarMap{{axes[i].var.get(), PrimExpr(0)}});
    }
  }
  if (fuse == 0) return body;
  // Axes of one round need no variable.
  std::vector<Axis> outer;
  for (size_t i = 0; i < fuse; ++i) {
    if (tir::is_const_int(axes[i].extent, 1)) {
      body = tir::Substitute(body, tir::VarMap{{axes[i].var.get(), PrimExpr(0)}});
    } else {
      outer.push_back(axes[i]);
    }
  }
  if (outer.empty()) return body;
  if (outer.size() == 1) return MakeFor(outer[0].var, outer[0].extent, ForKind::kParallel, body);
  Var f("fused");
  PrimExpr total = 1, rest = f;
  for (const Axis& a : outer) total = total * a.extent;
  for (size_t i = outer.size(); i-- > 0;) {
    PrimExpr value = i == 0 ? rest : floormod(rest, outer[i].extent);
    if (i > 0) rest = floordiv(rest, outer[i].extent);
    tir::LetStmtNode let;
    let.var = outer[i].var, let.value = value, let.body = body;
    body = tir::LetStmt(std::move(let));
  }
  return MakeFor(f, total, ForKind::kParallel, body);
}

Stmt NestEmitter::EmitStores(std::vector<Axis> axes, std::vector<Store> stores, double work, bool outer, int depth) {
  Analyzer an;
  for (const Axis& a : axes) an.Bind(a.var, 0, a.extent);
  for (Store& s : stores) s.index = an.Simplify(s.index), s.value = an.Simplify(s.value);
  if (work_items_) {
    Array<Stmt> all;
    for (const Store& s : stores) all.push_back(MakeStore(s.buffer, s.index, s.value));
    return OuterLoops(axes, tir::SeqStmt::Flatten(all), work);
  }
  SplitAxes(&axes, &stores, &an);
  // Split axes where guarded reads begin and end, so that the parts have no guards.
  if (depth < 3) {
    for (size_t i = axes.size(); i-- > 0;) {
      std::vector<int64_t> cuts = CutPoints(ValuesOf(stores), axes[i], &an);
      if (cuts.empty() || cuts.size() > 16) continue;
      return EmitParts(axes, i, cuts, [&](const std::vector<Axis>& part_axes, const tir::VarMap& map, double share) {
        std::vector<Store> part = stores;
        for (Store& s : part) s.index = tir::Substitute(s.index, map), s.value = tir::Substitute(s.value, map);
        return EmitStores(part_axes, part, work * share, outer, depth + 1);
      });
    }
  }
  Collapse(&axes, &stores);
  std::vector<PrimExpr> values = ValuesOf(stores);
  auto store_all = [&](const std::vector<Axis>& all, const PrimExpr& last) {
    Array<Stmt> seq;
    tir::VarMap map;
    if (!all.empty()) map[all.back().var.get()] = last;
    for (const Store& s : stores)
      seq.push_back(MakeStore(s.buffer, tir::Substitute(s.index, map), tir::Substitute(s.value, map)));
    return tir::SeqStmt::Flatten(seq);
  };
  if (axes.empty()) return store_all(axes, PrimExpr());
  int64_t lanes = std::max<int64_t>(1, kVectorBytes / WidestBytes(values));
  Axis last = axes.back();
  std::vector<Axis> outer_axes(axes.begin(), axes.end() - 1);
  if (Stmt tiled; EmitTiled(axes, stores, work, outer, &tiled)) return tiled;
  bool vector = Vectorizable(stores, last, &an);
  const int64_t* n = tir::as_const_int(last.extent);
  if (!vector || (n && *n == 1)) {
    Stmt body = MakeFor(last.var, last.extent, ForKind::kSerial, store_all(axes, last.var));
    return outer ? OuterLoops(outer_axes, body, work) : OuterLoops(outer_axes, body, 0);
  }
  bool flat = outer && outer_axes.empty() && work >= kParallelWork;
  Stmt body = VectorLoop(
      last, lanes, [&](const PrimExpr& i) { return store_all(axes, i); }, flat ? ForKind::kParallel : ForKind::kSerial);
  return OuterLoops(outer_axes, body, outer ? work : 0);
}

}  // namespace baton::te::lower
