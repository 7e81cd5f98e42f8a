// SPDX-License-Identifier: Apache-2.0
// Transpositions: reads that run along another axis than the store, through square tiles in registers.
#include <baton/tir/intrin.h>

#include <algorithm>
#include <string_view>

#include "te/lower/nests.h"

namespace baton::te::lower {

namespace {
/// Each of two axes is cut once, wherever the cuts of guards left off.
constexpr int kMostCuts = 6;
/// Whether an extent that is no literal is floordiv(n, tile) * tile: the part of an axis that was cut here.
bool IsTiles(const PrimExpr& extent, int64_t tile) {
  const auto* m = extent.as<tir::MulNode>();
  const auto* d = m ? m->a.as<tir::FloorDivNode>() : nullptr;
  return d && tir::is_const_int(m->b, tile) && tir::is_const_int(d->b, tile);
}
/// Whether it is what such a cut left over.
bool IsRest(const PrimExpr& extent, int64_t tile) {
  const auto* m = extent.as<tir::FloorModNode>();
  return m && tir::is_const_int(m->b, tile);
}
}  // namespace

bool NestEmitter::EmitTiled(const std::vector<Axis>& axes, const std::vector<Store>& stores, const Work& work,
                            bool outer, int depth, Stmt* out) {
  if (plain_ || axes.size() < 2 || stores.size() != 1) return false;
  const Axis& b = axes.back();
  Analyzer an;
  for (const Axis& x : axes) an.Bind(x.var, 0, x.extent);
  int64_t lanes = kVectorBytes / WidestBytes(ValuesOf(stores));
  int64_t tile = lanes < 16 ? lanes : 16;
  const int64_t* nb = tir::as_const_int(b.extent);
  if (tile < 8 || depth > kMostCuts || (nb ? *nb < tile : IsRest(b.extent, tile))) return false;
  auto by_literal = [&](const LinearForm& f, const Axis& x) {
    for (const auto& t : f.terms) {
      if (t.atom.get() != static_cast<const Object*>(x.var.get()) && tir::UsesVar(t.atom, x.var.get())) return false;
    }
    return true;
  };
  // By a literal step, or by a product with an extent that is not known.
  auto moves = [&](const LinearForm& f, const Axis& x) {
    for (const auto& t : f.terms) {
      if (t.atom.get() == static_cast<const Object*>(x.var.get()) || !tir::UsesVar(t.atom, x.var.get())) continue;
      if (!t.atom.as<tir::MulNode>()) return false;
    }
    return true;
  };
  LinearForm target = an.Linear(stores[0].index);
  if (!by_literal(target, b) || target.CoeffOf(b.var.get()) != 1) return false;
  std::vector<PrimExpr> bad;
  bool plain = true;
  tir::PostOrderVisitExpr(stores[0].value, [&](const PrimExpr& x) {
    if (tir::AsChoice(x)) plain = false;
    const auto* l = x.as<tir::BufferLoadNode>();
    if (!l || !tir::UsesVar(l->indices[0], b.var.get())) return;
    LinearForm f = an.Linear(l->indices[0]);
    if (!moves(f, b)) plain = false;
    if (f.CoeffOf(b.var.get()) == 1 && by_literal(f, b)) return;
    for (const PrimExpr& known : bad) {
      if (tir::ExprDeepEqual(known, x)) return;
    }
    bad.push_back(x);
  });
  if (!plain || bad.empty() || bad.size() > 2) return false;
  for (size_t ai = 0; ai + 1 < axes.size(); ++ai) {
    const Axis& a = axes[ai];
    const int64_t* na = tir::as_const_int(a.extent);
    bool ok = (na ? *na >= tile : !IsRest(a.extent, tile)) && moves(target, a);
    for (const PrimExpr& x : bad) {
      LinearForm f = an.Linear(x.as<tir::BufferLoadNode>()->indices[0]);
      ok = ok && by_literal(f, a) && f.CoeffOf(a.var.get()) == 1;
    }
    if (!ok) continue;
    // Whole tiles, and what is left by single elements.
    auto part = [&](const std::vector<Axis>& axes_of_part, const tir::VarMap& map, double share) {
      std::vector<Store> st = {
          {stores[0].buffer, tir::Substitute(stores[0].index, map), tir::Substitute(stores[0].value, map)}};
      return EmitStores(axes_of_part, st, work * share, outer, std::max(depth, 3) + 1);
    };
    for (size_t i : {ai, axes.size() - 1}) {
      const int64_t* n = tir::as_const_int(axes[i].extent);
      if (n ? *n % tile == 0 : IsTiles(axes[i].extent, tile)) continue;
      *out = n ? EmitParts(axes, i, {*n / tile * tile}, part) : EmitTilesAndRest(axes, i, tile, part);
      return true;
    }
    *out = EmitTiles(axes, ai, stores[0], bad, tile, outer ? work : Work());
    return true;
  }
  return false;
}

Stmt NestEmitter::EmitTiles(const std::vector<Axis>& axes, size_t ai, const Store& store,
                            const std::vector<PrimExpr>& bad, int64_t tile, const Work& work) {
  const Axis &a = axes[ai], &b = axes.back();
  Axis ao{Var(a.var->name_hint.str() + "_o"), floordiv(a.extent, PrimExpr(tile)), false};
  Axis bo{Var(b.var->name_hint.str() + "_o"), floordiv(b.extent, PrimExpr(tile)), false};
  Var c("c"), v("v");
  // A transposed tile is hundreds of expressions: what they have in common is one object.
  const PrimExpr a0 = ao.var * tile, b0 = bo.var * tile, one(1);
  const String row("t");
  auto at = [&](const PrimExpr& e, const PrimExpr& ia, const PrimExpr& ib) {
    return tir::Substitute(e, tir::VarMap{{a.var.get(), a0 + ia}, {b.var.get(), b0 + ib}});
  };
  std::vector<Buffer> tiles;
  std::vector<Stmt> fills;
  struct Replace : tir::ExprMutator {
    const std::vector<PrimExpr>& bad;
    const std::vector<Buffer>& tiles;
    PrimExpr index;
    Replace(const std::vector<PrimExpr>& b, const std::vector<Buffer>& t, PrimExpr i)
        : bad(b), tiles(t), index(std::move(i)) {}
    using tir::ExprMutator::VisitExpr_;
    PrimExpr VisitExpr_(const tir::BufferLoadNode* op) final {
      for (size_t k = 0; k < bad.size(); ++k) {
        if (tir::ExprDeepEqual(bad[k], GetRef<PrimExpr>(op))) return tir::BufferLoad(tiles[k], {index});
      }
      return tir::ExprMutator::VisitExpr_(op);
    }
  };
  for (const PrimExpr& x : bad) {
    const auto* load = x.as<tir::BufferLoadNode>();
    Buffer t = Buffer::Make({PrimExpr(tile * tile)}, load->dtype, names_->Unique("tile"), "local");
    tiles.push_back(t);
    DataType vt = load->dtype.with_lanes(static_cast<int>(tile));
    std::vector<std::pair<Var, PrimExpr>> lets;
    auto let = [&](const PrimExpr& e) {
      Var n(row, vt);
      lets.push_back({n, e});
      return n;
    };
    std::vector<PrimExpr> rows;
    for (int64_t r = 0; r < tile; ++r) {
      rows.push_back(
          let(tir::BufferLoad(load->buffer, {tir::Ramp(at(load->indices[0], PrimExpr(0), PrimExpr(r)), one, tile)})));
    }
    // Blocks of 1, 2, 4, ... lanes change sides between rows at that distance.
    for (int64_t s = 1; s < tile; s *= 2) {
      Array<int64_t> low, high;
      for (int64_t l = 0; l < tile; ++l) {
        low.push_back(l & s ? tile + l - s : l);
        high.push_back(l & s ? tile + l : l + s);
      }
      for (int64_t i = 0; i < tile; ++i) {
        if (i & s) continue;
        PrimExpr x0 = rows[static_cast<size_t>(i)], x1 = rows[static_cast<size_t>(i + s)];
        const Array<PrimExpr> both = {x0, x1};
        rows[static_cast<size_t>(i)] = let(tir::Shuffle(both, low));
        rows[static_cast<size_t>(i + s)] = let(tir::Shuffle(both, high));
      }
    }
    Array<Stmt> st;
    for (int64_t r = 0; r < tile; ++r) {
      tir::BufferStoreNode n;
      n.buffer = t, n.indices = {tir::Ramp(PrimExpr(r * tile), one, tile)}, n.value = rows[static_cast<size_t>(r)];
      st.push_back(tir::BufferStore(std::move(n)));
    }
    Stmt fill = tir::SeqStmt::Flatten(st);
    for (size_t k = lets.size(); k-- > 0;) {
      tir::LetStmtNode n;
      n.var = lets[k].first, n.value = lets[k].second, n.body = fill;
      fill = tir::LetStmt(std::move(n));
    }
    fills.push_back(fill);
  }
  PrimExpr value = at(Replace(bad, tiles, c * tile + v)(store.value), c, v);
  Stmt write = MakeFor(v, tile, ForKind::kVectorized, MakeStore(store.buffer, at(store.index, c, v), value));
  fills.push_back(MakeFor(c, tile, ForKind::kUnrolled, write));
  Array<Stmt> seq(fills.begin(), fills.end());
  Stmt body = tir::SeqStmt::Flatten(seq);
  for (size_t k = tiles.size(); k-- > 0;) body = AllocateStmt(tiles[k], body);
  std::vector<Axis> loops;
  for (size_t i = 0; i + 1 < axes.size(); ++i) {
    if (i != ai) loops.push_back(axes[i]);
  }
  loops.push_back(ao);
  loops.push_back(bo);
  return OuterLoops(loops, body, work);
}

}  // namespace baton::te::lower
