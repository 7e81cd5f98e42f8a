// SPDX-License-Identifier: Apache-2.0
// Nests of pure stores: injective stages, and copies.
#include <algorithm>

#include "te/lower/nests.h"

namespace baton::te::lower {

PrimExpr HomeIndex(const Home& h, const std::vector<PrimExpr>& index) {
  Array<PrimExpr> rest(index.begin() + static_cast<std::ptrdiff_t>(h.drop), index.end());
  return FlatIndex(h.shape, rest);
}

namespace {

Buffer Flat(const Buffer& b) {
  tir::BufferNode n = *b.get();
  n.shape = {Product(b->shape)};
  return Buffer(std::move(n));
}

/// Loads with one index, as those of stages have.
class LoadFlattener : public tir::ExprMutator {
 public:
  using tir::ExprMutator::VisitExpr_;
  PrimExpr VisitExpr_(const tir::BufferLoadNode* op) final {
    const Array<PrimExpr> indices = VisitExprs(op->indices);
    return tir::BufferLoad(Flat(op->buffer), {FlatIndex(op->buffer->shape, indices)});
  }
};

bool LoadsFrom(const PrimExpr& e, const Buffer& b) {
  bool found = false;
  tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) {
    if (const auto* l = x.as<tir::BufferLoadNode>()) found |= l->buffer->data.same_as(b->data);
  });
  return found;
}

}  // namespace

bool AsStore(const Stmt& nest, std::vector<Axis>* axes, Store* store) {
  Stmt body = nest;
  while (const auto* loop = body.as<tir::ForNode>()) {
    if (loop->kind != ForKind::kSerial || !tir::is_zero(loop->min) || loop->loop_var.dtype() != DataType::Int(64) ||
        !loop->annotations.empty()) {
      return false;
    }
    axes->push_back({loop->loop_var, loop->extent, false});
    body = loop->body;
  }
  const auto* s = body.as<tir::BufferStoreNode>();
  if (!s || axes->empty() || s->indices.size() != axes->size()) return false;
  for (size_t i = 0; i < axes->size(); ++i) {
    if (!s->indices[static_cast<int64_t>(i)].same_as((*axes)[i].var)) return false;
  }
  if (tir::HasSideEffect(s->value) || LoadsFrom(s->value, s->buffer)) return false;
  *store = {Flat(s->buffer), FlatIndex(s->buffer->shape, s->indices), LoadFlattener()(s->value)};
  return true;
}

Stmt NestEmitter::Chunks(const std::vector<Axis>& axes, Stmt body, const Work& work,
                         const std::vector<Buffer>& scratch) {
  constexpr int64_t kChunks = 16;
  PrimExpr total = 1;
  for (const Axis& a : axes) total = total * a.extent;
  const Axis& inner = axes.back();
  Var chunk("chunk"), chunks("chunks"), all("total"), lo("lo"), hi("hi"), j("j");
  auto scaled = [&](const PrimExpr& c) { return truncdiv(c * all, chunks); };
  if (axes.size() == 1) {
    body = MakeFor(j, hi - lo, ForKind::kSerial, MakeLet(inner.var, lo + j, body));
  } else {
    Var p("p"), line("line"), begin("begin"), at("at");
    PrimExpr length = max(inner.extent, PrimExpr(1)), rest = line;
    body = MakeLet(inner.var, begin + j, body);
    body = MakeFor(j, min(inner.extent, hi - at) - begin, ForKind::kSerial, body);
    body = MakeLet(begin, max(PrimExpr(0), lo - at), body);
    body = MakeLet(at, line * inner.extent, body);
    for (size_t i = 0; i + 1 < axes.size(); ++i) {
      const size_t k = axes.size() - 2 - i;
      PrimExpr extent = max(axes[k].extent, PrimExpr(1));
      PrimExpr value = k == 0 ? rest : truncmod(rest, extent);
      body = MakeLet(axes[k].var, value, body);
      rest = truncdiv(rest, extent);
    }
    body = MakeLet(line, truncdiv(lo, length) + p, body);
    body = MakeFor(p, truncdiv(hi + length - 1, length) - truncdiv(lo, length), ForKind::kSerial, body);
  }
  for (size_t i = scratch.size(); i-- > 0;) body = AllocateStmt(scratch[i], body);
  body = MakeLet(lo, scaled(chunk), MakeLet(hi, scaled(chunk + 1), body));
  body = MakeParallel(chunk, chunks, work, body);
  body = MakeLet(chunks, tir::Select(work.Pays(), PrimExpr(kChunks), PrimExpr(1)), body);
  return MakeLet(all, total, body);
}

Stmt NestEmitter::OuterLoops(const std::vector<Axis>& axes, Stmt body, const Work& work,
                             const std::vector<Buffer>& scratch) {
  bool parallel = work.MayPay() && !work_items_ && !plain_;
  double n = 1;
  size_t fuse = work_items_ ? axes.size() : 0;
  if (parallel) {
    // Nothing is known of an extent that is no literal: it may be 1. Of two at least one is more where there is work.
    int unknown = 0;
    for (; fuse < axes.size() && n < 16 && unknown < 2; ++fuse) {
      const int64_t* extent = tir::as_const_int(axes[fuse].extent);
      if (extent) n *= static_cast<double>(*extent);
      unknown += !extent;
    }
    if (n < 2 && !unknown) fuse = 0;
  }
  for (size_t i = axes.size(); i-- > fuse;) {
    if (!tir::is_const_int(axes[i].extent, 1)) {
      body = MakeFor(axes[i].var, axes[i].extent, ForKind::kSerial, body);
    } else {
      body = tir::Substitute(body, tir::VarMap{{axes[i].var.get(), PrimExpr(0)}});
    }
  }
  auto with_scratch = [&](Stmt s) {
    for (size_t i = scratch.size(); i-- > 0;) s = AllocateStmt(scratch[i], s);
    return s;
  };
  if (fuse == 0) return with_scratch(body);
  // Axes of one round need no variable.
  std::vector<Axis> outer;
  for (size_t i = 0; i < fuse; ++i) {
    if (tir::is_const_int(axes[i].extent, 1)) {
      body = tir::Substitute(body, tir::VarMap{{axes[i].var.get(), PrimExpr(0)}});
    } else {
      outer.push_back(axes[i]);
    }
  }
  if (outer.empty()) return with_scratch(body);
  bool divisors = true;  // of the joined loop's index are literals
  for (size_t i = 1; i < outer.size(); ++i) divisors = divisors && tir::as_const_int(outer[i].extent);
  if (!work_items_ && (!divisors || (!scratch.empty() && work.exact.defined()))) {
    return Chunks(outer, body, work, scratch);
  }
  body = with_scratch(body);
  auto around = [&](const Var& v, const PrimExpr& extent, Stmt s) {
    return work_items_ ? MakeFor(v, extent, ForKind::kParallel, s) : MakeParallel(v, extent, work, s);
  };
  if (outer.size() == 1) return around(outer[0].var, outer[0].extent, body);
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
  return around(f, total, body);
}

Stmt NestEmitter::EmitStores(std::vector<Axis> axes, std::vector<Store> stores, const Work& work, bool outer,
                             int depth) {
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
  if (Stmt tiled; EmitTiled(axes, stores, work, outer, depth, &tiled)) return tiled;
  bool vector = !plain_ && Vectorizable(stores, last, &an);
  const int64_t* n = tir::as_const_int(last.extent);
  if (!vector || (n && *n == 1)) {
    Stmt body = MakeFor(last.var, last.extent, ForKind::kSerial, store_all(axes, last.var));
    return OuterLoops(outer_axes, body, outer ? work : Work());
  }
  bool flat = outer && outer_axes.empty();
  Stmt body = VectorLoop(last, lanes, [&](const PrimExpr& i) { return store_all(axes, i); }, flat ? work : Work());
  return OuterLoops(outer_axes, body, outer ? work : Work());
}

}  // namespace baton::te::lower
