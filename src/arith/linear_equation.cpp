// SPDX-License-Identifier: Apache-2.0
#include <arith/conjuncts.h>
#include <baton/arith/int_set.h>
#include <baton/support/stack.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>

#include <utility>

namespace baton::arith {
namespace {

using tir::NodeKind;

/// coeff * var + base. A null coefficient is zero; a null base is zero.
struct LinearSum {
  PrimExpr coeff, base;
  bool ok = true;
};

PrimExpr Fold2(NodeKind kind, const PrimExpr& a, const PrimExpr& b) { return tir::FoldBinary(kind, a, b); }
PrimExpr IntLike(const PrimExpr& like, int64_t v) { return tir::make_int(like.dtype(), v); }
PrimExpr Plus(const PrimExpr& a, const PrimExpr& b) {
  return !a.defined() ? b : !b.defined() ? a : Fold2(NodeKind::kAdd, a, b);
}
PrimExpr Minus(const PrimExpr& a, const PrimExpr& b) {
  if (!b.defined()) return a;
  return Fold2(NodeKind::kSub, a.defined() ? a : IntLike(b, 0), b);
}
PrimExpr Times(const PrimExpr& a, const PrimExpr& b) {
  return a.defined() && b.defined() ? Fold2(NodeKind::kMul, a, b) : PrimExpr();
}

LinearSum SumOf(const PrimExpr& e, const tir::Var& var) {
  return support::WithStack([&]() -> LinearSum {
    const NodeKind kind = tir::KindOf(e.get());
    if (e.same_as(var)) return {IntLike(e, 1), PrimExpr()};
    if (kind != NodeKind::kAdd && kind != NodeKind::kSub && kind != NodeKind::kMul) {
      LinearSum out{PrimExpr(), e};
      out.ok = !tir::UsesVar(e, var.get());
      return out;
    }
    const auto* n = static_cast<const tir::AddNode*>(e.get());  // of one shape
    const LinearSum a = SumOf(n->a, var), b = SumOf(n->b, var);
    if (!a.ok || !b.ok) return {PrimExpr(), PrimExpr(), false};
    if (!a.coeff.defined() && !b.coeff.defined()) return {PrimExpr(), e};
    if (kind == NodeKind::kAdd) return {Plus(a.coeff, b.coeff), Plus(a.base, b.base)};
    if (kind == NodeKind::kSub) return {Minus(a.coeff, b.coeff), Minus(a.base, b.base)};
    if (a.coeff.defined() && b.coeff.defined()) return {PrimExpr(), PrimExpr(), false};
    return a.coeff.defined() ? LinearSum{Times(a.coeff, b.base), Times(a.base, b.base)}
                             : LinearSum{Times(b.coeff, a.base), Times(a.base, b.base)};
  });
}

}  // namespace

Array<PrimExpr> DetectLinearEquation(const PrimExpr& e, const Array<tir::Var>& vars) {
  if (!e.dtype().is_integral() || e.dtype().is_vector()) return {};
  Analyzer analyzer;
  Array<PrimExpr> out;
  PrimExpr rest = e;
  for (const tir::Var& v : vars) {
    LinearSum s = SumOf(rest, v);
    if (!s.ok) return {};
    out.push_back(analyzer.Simplify(s.coeff.defined() ? s.coeff : IntLike(e, 0)));
    rest = s.base.defined() ? s.base : IntLike(e, 0);
  }
  out.push_back(analyzer.Simplify(rest));
  for (const PrimExpr& part : out) {
    for (const tir::Var& v : vars) {
      if (tir::UsesVar(part, v.get())) return {};  // a product of two of them
    }
  }
  return out;
}

Array<PrimExpr> DetectClipBound(const PrimExpr& e, const Array<tir::Var>& vars) {
  Analyzer analyzer;
  std::vector<PrimExpr> lo(vars.size()), hi(vars.size());
  for (const PrimExpr& c : Conjuncts(e)) {
    const NodeKind kind = tir::KindOf(c.get());
    if (kind < NodeKind::kEQ || kind > NodeKind::kGE || kind == NodeKind::kNE) return {};
    const auto* n = static_cast<const tir::LTNode*>(c.get());
    if (!n->a.dtype().is_int() || n->a.dtype().is_vector()) return {};
    // scale * var + rest compared with 0
    const Array<PrimExpr> parts = DetectLinearEquation(Fold2(NodeKind::kSub, n->a, n->b), vars);
    size_t at = vars.size();
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      if (tir::is_const_int(parts[i], 0)) continue;
      if (at != vars.size()) return {};
      at = i;
    }
    const int64_t* scale = at == vars.size() ? nullptr : tir::as_const_int(parts[at]);
    if (!scale || *scale == INT64_MIN) return {};
    PrimExpr rest = parts[vars.size()];
    const PrimExpr one = IntLike(rest, 1), zero = IntLike(rest, 0), by = IntLike(rest, *scale < 0 ? -*scale : *scale);
    const auto most = [&](const PrimExpr& r) {  // by * x + r <= 0
      PrimExpr v = Fold2(NodeKind::kFloorDiv, Fold2(NodeKind::kSub, zero, r), by);
      hi[at] = hi[at].defined() ? Fold2(NodeKind::kMin, hi[at], v) : v;
    };
    const auto least = [&](const PrimExpr& r) {  // by * x + r >= 0
      PrimExpr v = Fold2(NodeKind::kFloorDiv, Fold2(NodeKind::kSub, Fold2(NodeKind::kSub, by, one), r), by);
      lo[at] = lo[at].defined() ? Fold2(NodeKind::kMax, lo[at], v) : v;
    };
    bool less = kind == NodeKind::kLT || kind == NodeKind::kLE;
    if (kind == NodeKind::kLT) rest = Fold2(NodeKind::kAdd, rest, one);
    if (kind == NodeKind::kGT) rest = Fold2(NodeKind::kSub, rest, one);
    if (*scale < 0) rest = Fold2(NodeKind::kSub, zero, rest), less = !less;
    if (kind == NodeKind::kEQ || less) most(rest);
    if (kind == NodeKind::kEQ || !less) least(rest);
  }
  Array<PrimExpr> out;
  for (size_t i = 0; i < vars.size(); ++i) {
    out.push_back(lo[i].defined() ? analyzer.Simplify(lo[i]) : PrimExpr());
    out.push_back(hi[i].defined() ? analyzer.Simplify(hi[i]) : PrimExpr());
  }
  return out;
}

}  // namespace baton::arith
