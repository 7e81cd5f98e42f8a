// SPDX-License-Identifier: Apache-2.0
#include "te/lower/loops.h"

#include <baton/tir/intrin.h>
#include <tir/parallel_if.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace baton::te::lower {

namespace {

/// Size that stands for a dimension which is not known.
constexpr int64_t kGuess = 64;

}  // namespace

int64_t SizeOf(const PrimExpr& e) {
  const int64_t* v = tir::as_const_int(e);
  return v ? *v : kGuess;
}

int64_t NumElements(const Array<PrimExpr>& shape) {
  double n = 1;
  for (const PrimExpr& d : shape) n *= static_cast<double>(SizeOf(d));
  return n > 1e15 ? static_cast<int64_t>(1e15) : static_cast<int64_t>(n);
}

PrimExpr Product(const Array<PrimExpr>& shape, size_t begin) {
  PrimExpr n = 1;
  for (size_t i = begin; i < shape.size(); ++i) n = n * shape[i];
  return n;
}

PrimExpr FlatIndex(const Array<PrimExpr>& shape, const Array<PrimExpr>& indices) {
  PrimExpr flat = 0;
  for (size_t i = 0; i < indices.size(); ++i) flat = flat * shape[i] + indices[i];
  return flat;
}

Work Work::Of(double cost, const Array<PrimExpr>& extents) {
  Work w(cost * static_cast<double>(NumElements(extents)));
  PrimExpr unknown = 1;
  for (const PrimExpr& d : extents) {
    if (const int64_t* n = tir::as_const_int(d)) {
      cost *= static_cast<double>(*n);
    } else {
      unknown = unknown * d;
    }
  }
  const double most = 1e12;  // more than enough for threads
  if (!tir::as_const_int(unknown)) {
    w.exact = unknown * PrimExpr(static_cast<int64_t>(std::min(std::max(cost, 1.0), most)));
  }
  return w;
}
Work Work::operator+(const Work& other) const {
  Work w(guess + other.guess);
  auto value = [](const Work& x) {
    return x.exact.defined() ? x.exact : PrimExpr(static_cast<int64_t>(std::min(x.guess, 1e12)));
  };
  if (exact.defined() || other.exact.defined()) w.exact = value(*this) + value(other);
  return w;
}
Work Work::operator*(double share) const {
  Work w = *this;
  w.guess *= share;  // what is exact bounds the part: nothing is known of where it ends
  return w;
}

// ---- Statements

Stmt AllocateStmt(const Buffer& b, Stmt body) {
  tir::AllocateNode n;
  n.buffer = b, n.body = std::move(body);
  return tir::Allocate(std::move(n));
}

Stmt MakeFor(const Var& v, const PrimExpr& extent, ForKind kind, Stmt body) {
  tir::ForNode n;
  n.loop_var = v, n.min = PrimExpr(0), n.extent = extent, n.kind = kind, n.body = std::move(body);
  return tir::For(std::move(n));
}

Stmt MakeParallel(const Var& v, const PrimExpr& extent, const Work& work, Stmt body) {
  return tir::ParallelIf(work.Pays(), MakeFor(v, extent, ForKind::kParallel, std::move(body)));
}

Stmt MakeLet(const Var& v, const PrimExpr& value, Stmt body) {
  tir::LetStmtNode n;
  n.var = v, n.value = value, n.body = std::move(body);
  return tir::LetStmt(std::move(n));
}

Stmt MakeStore(const Buffer& b, const PrimExpr& index, const PrimExpr& value) {
  tir::BufferStoreNode n;
  n.buffer = b, n.indices = {index}, n.value = value;
  return tir::BufferStore(std::move(n));
}

Stmt Guard(PrimExpr cond, Stmt body) {
  if (tir::is_const_int(cond, 1)) return body;
  tir::IfThenElseNode n;
  n.condition = std::move(cond), n.then_case = std::move(body);
  return tir::IfThenElse(std::move(n));
}

Stmt VectorLoop(const Axis& axis, int64_t lanes, const std::function<Stmt(const PrimExpr&)>& body, const Work& work) {
  const int64_t* n = tir::as_const_int(axis.extent);
  Var vo(axis.var->name_hint.str() + "_o"), vi(axis.var->name_hint.str() + "_v"), vt(axis.var->name_hint.str() + "_t");
  if (n && *n < lanes) {
    // Not one whole vector: lanes that are a power of two need no mask.
    if ((*n & (*n - 1)) == 0) return MakeFor(vi, *n, ForKind::kVectorized, body(vi));
    int64_t narrow = 1;
    while (narrow < *n) narrow *= 2;
    return MakeFor(vi, narrow, ForKind::kVectorized, Guard(vi < axis.extent, body(vi)));
  }
  PrimExpr rounds = floordiv(axis.extent, PrimExpr(lanes)), rest = floormod(axis.extent, PrimExpr(lanes));
  Stmt main = MakeFor(vi, lanes, ForKind::kVectorized, body(vo * lanes + vi));
  main = work.MayPay() ? MakeParallel(vo, rounds, work, main) : MakeFor(vo, rounds, ForKind::kSerial, main);
  if (n && *n % lanes == 0) return main;
  int64_t tail_lanes = lanes;
  if (n) {
    int64_t r = *n % lanes;
    tail_lanes = 1;
    while (tail_lanes < r) tail_lanes *= 2;
    PrimExpr base = *n - r;
    Stmt tail = body(base + vt);
    if (tail_lanes != r) tail = Guard(vt < r, tail);
    tail = tir::RenewBindings(MakeFor(vt, tail_lanes, ForKind::kVectorized, tail));
    return tir::SeqStmt::Flatten({main, tail});
  }
  PrimExpr base = rounds * lanes;
  Stmt tail = tir::RenewBindings(MakeFor(vt, tail_lanes, ForKind::kVectorized, Guard(vt < rest, body(base + vt))));
  return tir::SeqStmt::Flatten({main, Guard(rest > 0, tail)});
}

namespace {
/// The part of `axes` where axis `i` has `extent` rounds from `begin` on.
Stmt EmitOnePart(const std::vector<Axis>& axes, size_t i, const PrimExpr& begin, const PrimExpr& extent, double share,
                 const EmitPart& emit) {
  std::vector<Axis> part;
  tir::VarMap map;
  for (size_t j = 0; j < axes.size(); ++j) {
    Axis a{Var(axes[j].var->name_hint), axes[j].extent, false};
    map[axes[j].var.get()] = a.var;
    if (j == i) {
      a.extent = extent;
      map[axes[j].var.get()] = a.var + begin;
    }
    part.push_back(a);
  }
  return tir::RenewBindings(emit(part, map, share));
}
}  // namespace

Stmt EmitParts(const std::vector<Axis>& axes, size_t i, const std::vector<int64_t>& cuts, const EmitPart& emit) {
  int64_t n = *tir::as_const_int(axes[i].extent), begin = 0;
  Array<Stmt> parts;
  for (size_t c = 0; c <= cuts.size(); ++c) {
    int64_t end = c < cuts.size() ? cuts[c] : n;
    double share = static_cast<double>(end - begin) / static_cast<double>(n);
    parts.push_back(EmitOnePart(axes, i, PrimExpr(begin), PrimExpr(end - begin), share, emit));
    begin = end;
  }
  return tir::SeqStmt::Flatten(parts);
}

Stmt EmitTilesAndRest(const std::vector<Axis>& axes, size_t i, int64_t tile, const EmitPart& emit) {
  const PrimExpr t(tile), tiles = floordiv(axes[i].extent, t) * t;
  Stmt first = EmitOnePart(axes, i, PrimExpr(0), tiles, 1, emit);
  Stmt rest = EmitOnePart(axes, i, tiles, floormod(axes[i].extent, t), 1, emit);
  return tir::SeqStmt::Flatten({first, rest});
}

// ---- Accesses

int64_t WidestBytes(const std::vector<PrimExpr>& values) {
  int64_t w = 1;
  for (const PrimExpr& v : values) {
    tir::PostOrderVisitExpr(v, [&](const PrimExpr& x) {
      DataType t = x.dtype();
      if (t.is_handle() || t.is_void()) return;
      bool index = t == DataType::Int(64) && !x.as<tir::BufferLoadNode>() && !x.as<tir::CastNode>();
      if (!index) w = std::max<int64_t>(w, t.element_of().bytes());
      // Half floats are computed in float32.
      if (t.is_floating() && t.bits() < 32 && !x.as<tir::BufferLoadNode>()) w = std::max<int64_t>(w, 4);
    });
  }
  for (const PrimExpr& v : values) w = std::max<int64_t>(w, v.dtype().element_of().bytes());
  return w;
}

Strides StridesOf(const std::vector<PrimExpr>& values, const Var& v, Analyzer* an) {
  Strides s;
  for (const PrimExpr& e : values) {
    tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) {
      const auto* l = x.as<tir::BufferLoadNode>();
      if (!l || !tir::UsesVar(l->indices[0], v.get())) return;
      LinearForm f = an->Linear(l->indices[0]);
      int64_t c = f.CoeffOf(v.get());
      bool linear = true;
      for (const auto& t : f.terms) {
        if (t.atom.get() != static_cast<const Object*>(v.get()) && tir::UsesVar(t.atom, v.get())) linear = false;
      }
      if (linear && c == 1)
        ++s.contiguous;
      else
        ++s.bad;
    });
  }
  return s;
}

bool Vectorizable(const std::vector<Store>& stores, const Axis& axis, Analyzer* an) {
  std::vector<PrimExpr> values;
  for (const Store& s : stores) {
    LinearForm f = an->Linear(s.index);
    if (f.CoeffOf(axis.var.get()) != 1) return false;
    for (const auto& t : f.terms) {
      if (t.atom.get() != static_cast<const Object*>(axis.var.get()) && tir::UsesVar(t.atom, axis.var.get()))
        return false;
    }
    values.push_back(s.value);
  }
  bool ok = true;
  for (const PrimExpr& v : values) {
    tir::PostOrderVisitExpr(v, [&](const PrimExpr& x) {
      if (const auto* c = x.as<tir::CallNode>(); c && !tir::IsLaneByLane(c)) ok = false;
    });
  }
  // Gathers alone do not pay: a transposition is faster by scalars.
  Strides st = StridesOf(values, axis.var, an);
  return ok && !(st.bad > 0 && st.contiguous == 0 && values.size() == 1 && values[0].as<tir::BufferLoadNode>());
}

std::vector<PrimExpr> ValuesOf(const std::vector<Store>& stores) {
  std::vector<PrimExpr> v;
  for (const Store& s : stores) v.push_back(s.value);
  return v;
}

// ---- Axes

void Collapse(std::vector<Axis>* axes, std::vector<Store>* stores) {
  if (axes->size() < 2) return;
  Analyzer an;
  for (const Axis& a : *axes) an.Bind(a.var, 0, a.extent);
  for (Store& s : *stores) {
    s.index = an.Simplify(s.index);
    s.value = an.Simplify(s.value);
  }
  for (size_t i = axes->size() - 1; i-- > 0;) {
    Axis outer = (*axes)[i], inner = (*axes)[i + 1];
    const int64_t* extent = tir::as_const_int(inner.extent);
    if (tir::is_const_int(inner.extent, 1) || tir::is_const_int(outer.extent, 1)) {
      // One of them does not move: any access will do.
      bool drop_inner = tir::is_const_int(inner.extent, 1);
      tir::VarMap map{{(drop_inner ? inner : outer).var.get(), PrimExpr(0)}};
      for (Store& s : *stores) s.index = tir::Substitute(s.index, map), s.value = tir::Substitute(s.value, map);
      axes->erase(axes->begin() + static_cast<std::ptrdiff_t>(drop_inner ? i + 1 : i));
      continue;
    }
    bool ok = true;
    // With a dynamic inner extent: whether an atom is the outer variable, and what does not move, times that extent.
    auto is_product = [&](const PrimExpr& atom) {
      if (tir::ExprDeepEqual(atom, an.Simplify(outer.var * inner.extent))) return true;
      const auto* m = atom.as<tir::MulNode>();
      if (!m) return false;
      const bool last = tir::ExprDeepEqual(m->b, inner.extent);
      if (!last && !tir::ExprDeepEqual(m->a, inner.extent)) return false;
      LinearForm f = an.Linear(last ? m->a : m->b);
      for (const auto& t : f.terms) {
        if (t.atom.get() == static_cast<const Object*>(outer.var.get())) continue;
        if (tir::UsesVar(t.atom, inner.var.get()) || tir::UsesVar(t.atom, outer.var.get())) return false;
      }
      return f.CoeffOf(outer.var.get()) == 1;
    };
    auto check = [&](const PrimExpr& index) {
      LinearForm f = an.Linear(index);
      int64_t co = 0, ci = f.CoeffOf(inner.var.get());
      // With a dynamic inner extent the outer coefficient is a product of its own.
      PrimExpr product;
      for (const auto& t : f.terms) {
        if (t.atom.get() == static_cast<const Object*>(inner.var.get())) continue;
        if (t.atom.get() == static_cast<const Object*>(outer.var.get())) {
          co = t.coeff;
        } else if (!extent && t.coeff == ci && tir::UsesVar(t.atom, outer.var.get()) && is_product(t.atom)) {
          product = t.atom;
        } else if (tir::UsesVar(t.atom, inner.var.get()) || tir::UsesVar(t.atom, outer.var.get())) {
          return false;
        }
      }
      if (extent) return co == ci * *extent;
      return co == 0 && (ci == 0) == !product.defined();
    };
    struct Scan : tir::ExprVisitor {
      using tir::ExprVisitor::VisitExpr_;
      const std::vector<const tir::VarNode*> vars;
      bool* ok;
      decltype(check)& fn;
      Scan(std::vector<const tir::VarNode*> v, bool* o, decltype(check)& f) : vars(std::move(v)), ok(o), fn(f) {}
      void VisitExpr_(const tir::BufferLoadNode* op) final {
        if (*ok && !fn(op->indices[0])) *ok = false;
      }
      void VisitExpr_(const tir::VarNode* op) final {
        for (const auto* v : vars) {
          if (op == v) *ok = false;  // the value itself depends on the position
        }
      }
    } scan({outer.var.get(), inner.var.get()}, &ok, check);
    for (const Store& s : *stores) {
      if (!ok) break;
      ok = check(s.index);
      if (ok) scan.VisitExpr(s.value);
    }
    if (!ok) continue;
    Axis joined{Var(outer.var->name_hint.str() + "_" + inner.var->name_hint.str()),
                an.Simplify(outer.extent * inner.extent), false};
    tir::VarMap map{{outer.var.get(), PrimExpr(0)}, {inner.var.get(), joined.var}};
    for (Store& s : *stores) {
      s.index = tir::Substitute(s.index, map);
      s.value = tir::Substitute(s.value, map);
    }
    (*axes)[i] = joined;
    axes->erase(axes->begin() + static_cast<std::ptrdiff_t>(i) + 1);
    an.Bind(joined.var, 0, joined.extent);
  }
}

void SplitAxes(std::vector<Axis>* axes, std::vector<Store>* stores, Analyzer* an) {
  for (size_t i = 0; i < axes->size() && axes->size() < 12; ++i) {
    const Axis x = (*axes)[i];
    int64_t c = 0;
    bool ok = true;
    for (const Store& s : *stores) {
      for (const PrimExpr* e : {&s.index, &s.value}) {
        tir::PostOrderVisitExpr(*e, [&](const PrimExpr& sub) {
          const auto* d = sub.as<tir::FloorDivNode>();
          const auto* m = sub.as<tir::FloorModNode>();
          if (!d && !m) return;
          const PrimExpr& a = d ? d->a : m->a;
          if (a.get() != static_cast<const Object*>(x.var.get())) return;
          const int64_t* k = tir::as_const_int(d ? d->b : m->b);
          ok = ok && k && (c == 0 || c == *k);
          if (k) c = *k;
        });
      }
    }
    if (!ok || c <= 1 || tir::is_const_int(x.extent, c)) continue;
    if (!tir::is_const_int(an->Simplify(floormod(x.extent, PrimExpr(c))), 0)) continue;
    Axis outer{Var(x.var->name_hint.str() + "_o"), an->Simplify(floordiv(x.extent, PrimExpr(c))), false},
        inner{Var(x.var->name_hint.str() + "_i"), PrimExpr(c), false};
    an->Bind(outer.var, 0, outer.extent);
    an->Bind(inner.var, 0, inner.extent);
    tir::VarMap map{{x.var.get(), outer.var * c + inner.var}};
    for (Store& s : *stores)
      s.index = an->Simplify(tir::Substitute(s.index, map)), s.value = an->Simplify(tir::Substitute(s.value, map));
    (*axes)[i] = outer;
    axes->insert(axes->begin() + static_cast<std::ptrdiff_t>(i) + 1, inner);
  }
}

std::vector<int64_t> CutPoints(const std::vector<PrimExpr>& values, const Axis& axis, Analyzer* an) {
  std::vector<int64_t> cuts;
  const int64_t* n = tir::as_const_int(axis.extent);
  if (!n) return cuts;
  auto floor_div = [](int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); };
  auto consider = [&](const PrimExpr& c) {
    tir::PostOrderVisitExpr(c, [&](const PrimExpr& x) {
      tir::NodeKind k = tir::KindOf(x.get());
      if (k < tir::NodeKind::kLT || k > tir::NodeKind::kGE) return;
      const auto* cmp = static_cast<const tir::LTNode*>(x.get());
      if (!(cmp->a.dtype() == DataType::Int(64))) return;
      LinearForm f = an->Linear(cmp->a - cmp->b);
      int64_t coeff = f.CoeffOf(axis.var.get());
      if (coeff == 0) return;
      PrimExpr rest = f.constant;
      for (const auto& t : f.terms) {
        if (t.atom.get() == static_cast<const Object*>(axis.var.get())) continue;
        if (tir::UsesVar(t.atom, axis.var.get())) return;
        rest = rest + t.atom * t.coeff;
      }
      arith::ConstIntBound b = an->Bound(rest);
      if (b.min == arith::ConstIntBound::kNegInf || b.max == arith::ConstIntBound::kPosInf) return;
      bool flipped = coeff < 0;
      int64_t step = flipped ? -coeff : coeff;
      // step * x + d compared with 0: below -d / step one answer, above the other; on it what the comparison says.
      bool below = (k == tir::NodeKind::kLT || k == tir::NodeKind::kGE) != flipped;
      for (int64_t d : {b.min, b.max}) {
        if (flipped) d = -d;
        int64_t cut = below ? -floor_div(d, step) : floor_div(-d, step) + 1;
        if (cut > 0 && cut < *n) cuts.push_back(cut);
      }
    });
  };
  for (const PrimExpr& v : values) {
    tir::PostOrderVisitExpr(v, [&](const PrimExpr& x) {
      if (const auto* call = tir::AsChoice(x)) consider(call->args[0]);
      if (const auto* sel = x.as<tir::SelectNode>()) consider(sel->condition);
    });
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

}  // namespace baton::te::lower
