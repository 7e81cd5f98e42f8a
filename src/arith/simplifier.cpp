// SPDX-License-Identifier: Apache-2.0
#include "arith/simplifier.h"

#include <baton/support/stack.h>
#include <baton/tir/intrin.h>

#include <numeric>

namespace baton::arith {

using tir::ExprDeepEqual;
using tir::NodeKind;

PrimExpr Simplifier::VisitExpr(const PrimExpr& e) {
  if (IsIndex(e)) {
    switch (tir::KindOf(e.get())) {
      case NodeKind::kIntImm:
        return e;
      case NodeKind::kAdd:
      case NodeKind::kSub:
      case NodeKind::kMul:
      case NodeKind::kDiv:
      case NodeKind::kMod:
      case NodeKind::kFloorDiv:
      case NodeKind::kFloorMod:
      case NodeKind::kMin:
      case NodeKind::kMax:
      case NodeKind::kVar: {
        PrimExpr r = a_->FromLinear(Linear(e), e.dtype());
        return ExprDeepEqual(r, e) ? e : r;
      }
      default:
        break;
    }
  }
  return tir::ExprMutator::VisitExpr(e);
}

LinearForm Simplifier::Linear(const PrimExpr& e) {
  return support::WithStack([&] {
    if (!IsKept(e)) return LinearImpl(e);
    if (auto it = a_->sums_.find(e.get()); it != a_->sums_.end()) return it->second.second;
    LinearForm f = LinearImpl(e);
    a_->sums_.emplace(e.get(), std::pair(e, f));
    // An expression in canonical form already is its own sum.
    if (f.constant == 0 && f.terms.size() == 1 && f.terms[0].coeff == 1 && IsKept(f.terms[0].atom))
      a_->sums_.emplace(f.terms[0].atom.get(), std::pair(f.terms[0].atom, f));
    return f;
  });
}

PrimExpr Simplifier::VisitExpr_(const tir::NotNode* op) {
  PrimExpr a = VisitExpr(op->a);
  return a.same_as(op->a) ? GetRef<PrimExpr>(op) : !a;
}

PrimExpr Simplifier::VisitExpr_(const tir::AndNode* op) {
  PrimExpr a = VisitExpr(op->a);
  if (tir::is_const_int(a, 0)) return a;
  // The right operand is always evaluated, but its value only counts where the left one holds.
  size_t mark = a.dtype().is_scalar() ? a_->Assume(a) : a_->facts_.size();
  PrimExpr b = VisitExpr(op->b);
  a_->Forget(mark);
  return a.same_as(op->a) && b.same_as(op->b) ? GetRef<PrimExpr>(op) : a && b;
}

PrimExpr Simplifier::VisitExpr_(const tir::SelectNode* op) {
  PrimExpr c = VisitExpr(op->condition);
  if (const int64_t* k = tir::as_const_int(c)) return VisitExpr(*k ? op->true_value : op->false_value);
  PrimExpr t = VisitExpr(op->true_value), f = VisitExpr(op->false_value);
  if (ExprDeepEqual(t, f)) return t;
  if (c.same_as(op->condition) && t.same_as(op->true_value) && f.same_as(op->false_value)) return GetRef<PrimExpr>(op);
  return tir::Select(c, t, f);
}

PrimExpr Simplifier::VisitExpr_(const tir::CallNode* op) {
  if (tir::IsChoice(op)) {
    PrimExpr c = VisitExpr(op->args[0]);
    if (const int64_t* k = tir::as_const_int(c)) return VisitExpr(op->args[*k ? 1 : 2]);
    bool scalar = c.dtype().is_scalar();
    size_t mark = a_->facts_.size();
    if (scalar) a_->Assume(c);
    PrimExpr t = VisitExpr(op->args[1]);
    a_->Forget(mark);
    if (scalar) a_->Assume(!c);
    PrimExpr f = VisitExpr(op->args[2]);
    a_->Forget(mark);
    if (c.same_as(op->args[0]) && t.same_as(op->args[1]) && f.same_as(op->args[2])) return GetRef<PrimExpr>(op);
    return tir::Call(op->dtype, op->op, {c, t, f});
  }
  return tir::ExprMutator::VisitExpr_(op);
}

PrimExpr Simplifier::VisitExpr_(const tir::LetNode* op) {
  PrimExpr v = VisitExpr(op->value);
  if (tir::as_const_int(v) || v.as<tir::VarNode>() || v.as<FloatImmNode>()) {
    return VisitExpr(tir::Substitute(op->body, tir::VarMap{{op->var.get(), v}}));
  }
  if (IsIndex(v)) {
    a_->vars_[op->var.get()] = a_->Bound(v);
    a_->Changed();
  }
  PrimExpr b = VisitExpr(op->body);
  return v.same_as(op->value) && b.same_as(op->body) ? GetRef<PrimExpr>(op) : tir::Let(op->var, v, b);
}

PrimExpr Simplifier::VisitExpr_(const tir::CastNode* op) {
  PrimExpr v = VisitExpr(op->value);
  if (v.dtype() == op->dtype) return v;
  return v.same_as(op->value) ? GetRef<PrimExpr>(op) : cast(op->dtype, v);
}

PrimExpr Simplifier::Compare(NodeKind k, const PrimExpr& a0, const PrimExpr& b0, const PrimExprNode* self) {
  if (IsIndex(a0)) {
    LinearForm d = Linear(a0);
    if (AddForm(&d, Linear(b0), -1)) {
      d = Merge(std::move(d));
      ConstIntBound r = a_->BoundOfForm(d);
      int answer = -1;
      switch (k) {
        case NodeKind::kLT:
          answer = r.max < 0 ? 1 : r.min >= 0 ? 0 : -1;
          break;
        case NodeKind::kLE:
          answer = r.max <= 0 ? 1 : r.min > 0 ? 0 : -1;
          break;
        case NodeKind::kGT:
          answer = r.min > 0 ? 1 : r.max <= 0 ? 0 : -1;
          break;
        case NodeKind::kGE:
          answer = r.min >= 0 ? 1 : r.max < 0 ? 0 : -1;
          break;
        case NodeKind::kEQ:
          answer = r.min == 0 && r.max == 0 ? 1 : r.min > 0 || r.max < 0 ? 0 : -1;
          break;
        default:
          answer = r.min == 0 && r.max == 0 ? 0 : r.min > 0 || r.max < 0 ? 1 : -1;
          break;
      }
      if (answer >= 0) return IntImm(DataType::Bool(), answer);
    }
  }
  PrimExpr a = VisitExpr(a0), b = VisitExpr(b0);
  const auto* bin = static_cast<const tir::LTNode*>(static_cast<const Object*>(self));
  if (a.same_as(bin->a) && b.same_as(bin->b)) return GetRef<PrimExpr>(self);
  return tir::FoldBinary(k, a, b);
}

bool Simplifier::IsKept(const PrimExpr& e) {
  switch (tir::KindOf(e.get())) {
    case NodeKind::kIntImm:
    case NodeKind::kVar:
    case NodeKind::kAdd:
    case NodeKind::kSub:
    case NodeKind::kMul:
      return false;
    default:
      return IsIndex(e);
  }
}

LinearForm Simplifier::Constant(int64_t c) {
  LinearForm f;
  f.constant = c;
  return f;
}

LinearForm Simplifier::Atom(PrimExpr e) {
  LinearForm f;
  if (const int64_t* c = tir::as_const_int(e)) {
    f.constant = *c;
  } else {
    f.terms.push_back({std::move(e), 1});
  }
  return f;
}

LinearForm Simplifier::LinearImpl(const PrimExpr& e) {
  if (!IsIndex(e)) return Atom(VisitExpr(e));
  switch (tir::KindOf(e.get())) {
    case NodeKind::kIntImm:
      return Constant(static_cast<const IntImmNode*>(e.get())->value);
    case NodeKind::kVar: {
      auto it = a_->vars_.find(e.get());
      if (it != a_->vars_.end() && it->second.IsConst()) return Constant(it->second.min);
      return Atom(e);
    }
    case NodeKind::kAdd:
    case NodeKind::kSub: {
      auto* n = static_cast<const tir::AddNode*>(e.get());  // Add and Sub have the same fields
      LinearForm f = Linear(n->a);
      if (AddForm(&f, Linear(n->b), tir::KindOf(e.get()) == NodeKind::kAdd ? 1 : -1)) return Merge(std::move(f));
      return Atom(e);
    }
    case NodeKind::kMul: {
      auto* n = static_cast<const tir::MulNode*>(e.get());
      LinearForm x = Linear(n->a), y = Linear(n->b);
      if (!y.terms.empty()) std::swap(x, y);
      if (y.terms.empty()) {
        LinearForm f;
        if (AddForm(&f, x, y.constant)) return f;
        return Atom(e);
      }
      return Atom(a_->FromLinear(y, e.dtype()) * a_->FromLinear(x, e.dtype()));
    }
    case NodeKind::kFloorDiv:
    case NodeKind::kFloorMod:
    case NodeKind::kDiv:
    case NodeKind::kMod: {
      NodeKind k = tir::KindOf(e.get());
      auto* n = static_cast<const tir::FloorDivNode*>(e.get());
      bool div = k == NodeKind::kFloorDiv || k == NodeKind::kDiv;
      LinearForm x = Linear(n->a), y = Linear(n->b);
      bool floor = k == NodeKind::kFloorDiv || k == NodeKind::kFloorMod || a_->BoundOfForm(x).min >= 0;
      if (y.terms.empty() && y.constant > 0 && floor) return div ? DivForm(x, y.constant) : ModForm(x, y.constant);
      PrimExpr a = a_->FromLinear(x, e.dtype()), b = a_->FromLinear(y, e.dtype());
      // x // n and x % n with 0 <= x < n, n not literal.
      if (floor && a_->BoundOfForm(x).min >= 0) {
        LinearForm d = x;
        if (AddForm(&d, y, -1) && a_->BoundOfForm(Merge(d)).max < 0) return div ? Constant(0) : x;
      }
      return Atom(tir::FoldBinary(k, a, b));
    }
    case NodeKind::kMin:
    case NodeKind::kMax: {
      bool is_min = tir::KindOf(e.get()) == NodeKind::kMin;
      auto* n = static_cast<const tir::MinNode*>(e.get());
      LinearForm x = Linear(n->a), y = Linear(n->b), d = x;
      if (AddForm(&d, y, -1)) {
        ConstIntBound r = a_->BoundOfForm(Merge(d));
        if (r.max <= 0) return is_min ? x : y;
        if (r.min >= 0) return is_min ? y : x;
      }
      return Atom(tir::FoldBinary(tir::KindOf(e.get()), a_->FromLinear(x, e.dtype()), a_->FromLinear(y, e.dtype())));
    }
    default: {
      PrimExpr r = VisitExpr(e);
      if (r.same_as(e)) return Atom(e);
      return Linear(r);
    }
  }
}

LinearForm Simplifier::DivForm(const LinearForm& f, int64_t c) {
  if (c == 1) return f;
  LinearForm q, r;
  for (const auto& t : f.terms) {
    if (t.coeff % c == 0) {
      AddTerm(&q, t.atom, t.coeff / c);
    } else {
      r.terms.push_back(t);
    }
  }
  q.constant = FloorDivC(f.constant, c);
  r.constant = FloorModC(f.constant, c);
  ConstIntBound b = a_->BoundOfForm(r);
  if (b.min != kNegInf && b.max != kPosInf && FloorDivC(b.min, c) == FloorDivC(b.max, c)) {
    q.constant += FloorDivC(b.min, c);
    return q;
  }
  int64_t g = c;
  for (const auto& t : r.terms) g = std::gcd(g, t.coeff);
  for (auto& t : r.terms) t.coeff /= g;
  r.constant = FloorDivC(r.constant, g);
  c /= g;
  if (c == 1) {
    AddForm(&q, r, 1);
    return Merge(std::move(q));
  }
  PrimExpr atom;
  if (r.terms.size() == 1 && r.terms[0].coeff == 1 && r.constant == 0) {
    int64_t m;
    if (const auto* d = AsDivMod<tir::FloorDivNode>(r.terms[0].atom, &m);
        d && m <= (int64_t{1} << 40) && c <= (int64_t{1} << 20)) {
      AddForm(&q, DivForm(Linear(d->a), m * c), 1);
      return Merge(std::move(q));
    }
    if (const auto* d = AsDivMod<tir::FloorModNode>(r.terms[0].atom, &m); d && m % c == 0) {
      AddForm(&q, ModForm(DivForm(Linear(d->a), c), m / c), 1);
      return Merge(std::move(q));
    }
  }
  atom = tir::FloorDiv(a_->FromLinear(r, DataType::Int(64)), PrimExpr(c));
  AddTerm(&q, atom, 1);
  return Merge(std::move(q));
}

LinearForm Simplifier::ModForm(const LinearForm& f, int64_t c) {
  if (c == 1) return Constant(0);
  LinearForm r;
  for (const auto& t : f.terms) {
    int64_t k = t.coeff <= -c || t.coeff >= c ? FloorModC(t.coeff, c) : t.coeff;
    if (k % c != 0) r.terms.push_back({t.atom, k});
  }
  r.constant = FloorModC(f.constant, c);
  ConstIntBound b = a_->BoundOfForm(r);
  if (b.min != kNegInf && b.max != kPosInf && FloorDivC(b.min, c) == FloorDivC(b.max, c)) {
    r.constant -= FloorDivC(b.min, c) * c;
    return Merge(std::move(r));
  }
  int64_t g = c;
  for (const auto& t : r.terms) g = std::gcd(g, t.coeff);
  int64_t rest = FloorModC(r.constant, g);
  for (auto& t : r.terms) t.coeff /= g;
  r.constant = FloorDivC(r.constant, g);
  c /= g;
  LinearForm out = Constant(rest);
  if (c == 1) return out;
  if (r.terms.size() == 1 && r.terms[0].coeff == 1 && r.constant == 0) {
    int64_t m;
    if (const auto* d = AsDivMod<tir::FloorModNode>(r.terms[0].atom, &m); d && m % c == 0) {
      AddForm(&out, ModForm(Linear(d->a), c), g);
      return out;
    }
  }
  AddTerm(&out, tir::FloorMod(a_->FromLinear(r, DataType::Int(64)), PrimExpr(c)), g);
  return out;
}

LinearForm Simplifier::Merge(LinearForm f) {
  if (f.terms.size() < 2) return f;
  for (size_t i = 0; i < f.terms.size(); ++i) {
    int64_t c, m, c2;
    const auto* mod = AsDivMod<tir::FloorModNode>(f.terms[i].atom, &c);
    if (!mod) continue;
    for (size_t j = 0; j < f.terms.size(); ++j) {
      if (j == i) continue;
      int64_t k = f.terms[i].coeff, kc;
      if (__builtin_mul_overflow(k, c, &kc) || f.terms[j].coeff != kc) continue;
      PrimExpr joined;
      if (const auto* div = AsDivMod<tir::FloorDivNode>(f.terms[j].atom, &c2)) {
        if (c2 == c && ExprDeepEqual(div->a, mod->a)) {
          joined = mod->a;
        } else if (c2 == c) {
          // x % c may stand for (x % (c*m)) % c.
          if (const auto* inner = AsDivMod<tir::FloorModNode>(div->a, &m);
              inner && m % c == 0 && ExprDeepEqual(inner->a, mod->a))
            joined = div->a;
        } else if (c2 % c == 0) {
          // (x // a) // b is kept as x // (a*b), and what is left of it as (x // a) % b.
          if (const auto* inner = AsDivMod<tir::FloorDivNode>(mod->a, &m);
              inner && m * c == c2 && ExprDeepEqual(inner->a, div->a))
            joined = mod->a;
        }
      } else if (const auto* dm = AsDivMod<tir::FloorModNode>(f.terms[j].atom, &m)) {
        if (const auto* d = AsDivMod<tir::FloorDivNode>(dm->a, &c2)) {
          if (c2 == c && ExprDeepEqual(d->a, mod->a)) joined = tir::FloorMod(mod->a, PrimExpr(c * m));
        }
      }
      // The quotient of a sum has lost its divisible terms; they are back by adding them on both sides.
      if (!joined.defined()) continue;
      LinearForm rest;
      rest.constant = f.constant;
      for (size_t t = 0; t < f.terms.size(); ++t) {
        if (t != i && t != j) AddTerm(&rest, f.terms[t].atom, f.terms[t].coeff);
      }
      if (!AddForm(&rest, Linear(joined), k)) return f;
      return Merge(std::move(rest));
    }
  }
  return f;
}

}  // namespace baton::arith
