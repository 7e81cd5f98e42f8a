// SPDX-License-Identifier: Apache-2.0
// Bounds of integer expressions, and proofs by them.
#include <baton/arith/analyzer.h>
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "arith/bounds.h"
#include "arith/simplifier.h"

namespace baton::arith {
namespace {

using tir::ExprDeepEqual;
using tir::NodeKind;

/// How many of the conditions that hold are used, innermost first.
constexpr size_t kMaxFacts = 64;

/// Bounds of a quotient whose divisor is 1 or more: those of the corners. `floor`: rounded down, else to zero.
ConstIntBound Quotient(ConstIntBound a, ConstIntBound b, bool floor) {
  const auto divide = [&](int64_t x, int64_t y) -> int64_t {
    if (x == kPosInf || x == kNegInf) return x;
    if (y == kPosInf) return floor && x < 0 ? -1 : 0;
    return floor ? FloorDivC(x, y) : x / y;
  };
  ConstIntBound r{divide(a.min, b.min), divide(a.max, b.min)};
  return {std::min(r.min, divide(a.min, b.max)), std::max(r.max, divide(a.max, b.max))};
}

static_assert(tir::IntRange::kPosInf == kPosInf && tir::IntRange::kNegInf == kNegInf);

}  // namespace

int64_t LinearForm::CoeffOf(const tir::VarNode* var) const {
  for (const Term& t : terms) {
    if (t.atom.get() == static_cast<const Object*>(var)) return t.coeff;
  }
  return 0;
}

void Analyzer::Bind(const tir::Var& var, const PrimExpr& min, const PrimExpr& extent) {
  ConstIntBound lo = Bound(min), n = Bound(extent);
  vars_[var.get()] = {lo.min, AddInf(AddInf(lo.max, n.max), -1)};
  Changed();
  // A dynamic extent still orders the variable below it.
  if (!tir::as_const_int(extent)) {
    Assume(tir::LT(var, min + extent));
    if (!tir::as_const_int(min)) Assume(tir::GE(var, min));
  }
}

void Analyzer::Bind(const tir::Var& var, const Range& range) { Bind(var, range->min, range->extent); }

void Analyzer::Unbind(const tir::Var& var) {
  vars_.erase(var.get());
  Changed();
}

size_t Analyzer::Assume(const PrimExpr& condition) {
  size_t mark = facts_.size();
  std::vector<PrimExpr> todo = {condition};
  while (!todo.empty()) {
    PrimExpr c = todo.back();
    todo.pop_back();
    if (const auto* n = c.as<tir::AndNode>()) {
      todo.push_back(n->a), todo.push_back(n->b);
      continue;
    }
    bool negate = false;
    if (const auto* n = c.as<tir::NotNode>()) {
      c = n->a;
      negate = true;
      if (const auto* o = c.as<tir::OrNode>()) {
        todo.push_back(tir::Not(o->a)), todo.push_back(tir::Not(o->b));
        continue;
      }
    }
    NodeKind k = tir::KindOf(c.get());
    if (k < NodeKind::kEQ || k > NodeKind::kGE) continue;
    auto* n = static_cast<const tir::LTNode*>(c.get());
    if (!IsIndex(n->a)) continue;
    if (negate) {
      static const NodeKind inverse[] = {NodeKind::kNE, NodeKind::kEQ, NodeKind::kGE,
                                         NodeKind::kGT, NodeKind::kLE, NodeKind::kLT};
      k = inverse[static_cast<int>(k) - static_cast<int>(NodeKind::kEQ)];
    }
    if (k == NodeKind::kNE) continue;
    LinearForm d = Linear(n->a);
    if (!AddForm(&d, Linear(n->b), -1) || d.terms.empty()) continue;
    int64_t c0 = d.constant;
    d.constant = 0;
    ConstIntBound b;
    // terms + c0 compared with 0
    if (k == NodeKind::kLT) b.max = AddInf(-c0, -1);
    if (k == NodeKind::kLE) b.max = -c0;
    if (k == NodeKind::kGT) b.min = AddInf(-c0, 1);
    if (k == NodeKind::kGE) b.min = -c0;
    if (k == NodeKind::kEQ) b = {-c0, -c0};
    if (d.terms[0].coeff < 0) {
      for (auto& t : d.terms) t.coeff = -t.coeff;
      b = {b.max == kPosInf ? kNegInf : -b.max, b.min == kNegInf ? kPosInf : -b.min};
    }
    facts_.push_back({std::move(d), b});
    Changed();
  }
  return mark;
}

void Analyzer::Forget(size_t mark) {
  if (mark >= facts_.size()) return;
  facts_.resize(mark);
  Changed();
}

ConstIntBound Analyzer::BoundOfForm(const LinearForm& f) {
  ConstIntBound b{f.constant, f.constant};
  const size_t first_fact = facts_.size() > kMaxFacts ? facts_.size() - kMaxFacts : 0;
  for (const auto& t : f.terms) {
    ConstIntBound a = BoundOfAtom(t.atom);
    // A fact about this very atom.
    for (size_t i = first_fact; i < facts_.size(); ++i) {
      const Fact& fact = facts_[i];
      if (fact.form.terms.size() == 1 && ExprDeepEqual(fact.form.terms[0].atom, t.atom)) {
        int64_t c = fact.form.terms[0].coeff;  // > 0
        a = Intersect(
            a, {fact.bound.min == kNegInf ? kNegInf : -FloorDivC(-fact.bound.min, c), FloorDivC(fact.bound.max, c)});
      }
    }
    int64_t lo = MulInf(t.coeff > 0 ? a.min : a.max, t.coeff), hi = MulInf(t.coeff > 0 ? a.max : a.min, t.coeff);
    b = {AddInf(b.min, lo), b.max == kPosInf || hi == kPosInf ? kPosInf : AddInf(b.max, hi)};
  }
  if (f.terms.size() < 2) return b;
  for (size_t i = first_fact; i < facts_.size(); ++i) {
    const Fact& fact = facts_[i];
    if (fact.form.terms.size() < 2 || fact.form.terms.size() > f.terms.size()) continue;
    // f = s * fact + rest, with s = 1 or -1: the rest has its own bounds.
    for (int64_t s : {int64_t{1}, int64_t{-1}}) {
      LinearForm rest = f;
      AddForm(&rest, fact.form, -s);
      if (rest.terms.size() + fact.form.terms.size() != f.terms.size()) continue;
      ConstIntBound r{rest.constant, rest.constant};
      for (const auto& t : rest.terms) {
        ConstIntBound a = BoundOfAtom(t.atom);
        int64_t lo = MulInf(t.coeff > 0 ? a.min : a.max, t.coeff), hi = MulInf(t.coeff > 0 ? a.max : a.min, t.coeff);
        r = {AddInf(r.min, lo), r.max == kPosInf || hi == kPosInf ? kPosInf : AddInf(r.max, hi)};
      }
      ConstIntBound fb = s > 0 ? fact.bound
                               : ConstIntBound{fact.bound.max == kPosInf ? kNegInf : -fact.bound.max,
                                               fact.bound.min == kNegInf ? kPosInf : -fact.bound.min};
      ConstIntBound whole{r.min == kNegInf || fb.min == kNegInf ? kNegInf : AddInf(r.min, fb.min),
                          r.max == kPosInf || fb.max == kPosInf ? kPosInf : AddInf(r.max, fb.max)};
      b = Intersect(b, whole);
    }
  }
  return b;
}

ConstIntBound Analyzer::BoundOfAtom(const PrimExpr& e) {
  const NodeKind kind = tir::KindOf(e.get());
  if (kind == NodeKind::kIntImm || kind == NodeKind::kVar) return FindBound(e);
  if (auto it = bounds_.find(e.get()); it != bounds_.end()) return it->second.second;
  ConstIntBound b = FindBound(e);
  bounds_.emplace(e.get(), std::pair(e, b));
  return b;
}

ConstIntBound Analyzer::FindBound(const PrimExpr& e) {
  return support::WithStack([&]() -> ConstIntBound {
    if (!(e.dtype().is_integral() || e.dtype().is_bool()) || e.dtype().is_vector()) return {};
    ConstIntBound type = TypeBound(e.dtype());
    switch (tir::KindOf(e.get())) {
      case NodeKind::kIntImm: {
        int64_t v = static_cast<const IntImmNode*>(e.get())->value;
        return e.dtype().is_uint() && v < 0 ? type : ConstIntBound{v, v};
      }
      case NodeKind::kVar: {
        auto it = vars_.find(e.get());
        if (it != vars_.end()) return Intersect(it->second, type);
        if (e.as<tir::SizeVarNode>()) return {0, type.max};
        return type;
      }
      case NodeKind::kFloorDiv: {
        int64_t c;
        if (const auto* n = AsDivMod<tir::FloorDivNode>(e, &c)) {
          ConstIntBound a = Bound(n->a);
          return {FloorDivC(a.min, c), FloorDivC(a.max, c)};
        }
        const auto* n = static_cast<const tir::FloorDivNode*>(e.get());
        ConstIntBound a = Bound(n->a), b = Bound(n->b);
        return b.min >= 1 ? Quotient(a, b, true) : type;
      }
      case NodeKind::kFloorMod: {
        const auto* n = static_cast<const tir::FloorModNode*>(e.get());
        ConstIntBound a = Bound(n->a), b = Bound(n->b);
        if (b.min >= 1) {
          ConstIntBound r{0, AddInf(b.max, -1)};
          if (a.min >= 0) r.max = r.max < a.max ? r.max : a.max;
          return r;
        }
        return type;
      }
      case NodeKind::kDiv: {
        const auto* n = static_cast<const tir::DivNode*>(e.get());
        ConstIntBound a = Bound(n->a), b = Bound(n->b);
        return b.min >= 1 ? Quotient(a, b, false) : type;
      }
      case NodeKind::kMod: {
        const auto* n = static_cast<const tir::ModNode*>(e.get());
        ConstIntBound a = Bound(n->a), b = Bound(n->b);
        if (b.min < 1) return type;
        const int64_t most = AddInf(b.max, -1), least = most == kPosInf ? kNegInf : -most;
        return {a.min >= 0 ? 0 : std::max(a.min, least), a.max <= 0 ? 0 : std::min(a.max, most)};
      }
      case NodeKind::kMin: {
        const auto* n = static_cast<const tir::MinNode*>(e.get());
        ConstIntBound a = Bound(n->a), b = Bound(n->b);
        return {a.min < b.min ? a.min : b.min, a.max < b.max ? a.max : b.max};
      }
      case NodeKind::kMax: {
        const auto* n = static_cast<const tir::MaxNode*>(e.get());
        ConstIntBound a = Bound(n->a), b = Bound(n->b);
        return {a.min > b.min ? a.min : b.min, a.max > b.max ? a.max : b.max};
      }
      case NodeKind::kMul: {
        if (!IsIndex(e)) return type;
        const auto* n = static_cast<const tir::MulNode*>(e.get());
        ConstIntBound a = Bound(n->a), b = Bound(n->b);
        int64_t p[] = {MulInf(a.min, b.min), MulInf(a.min, b.max), MulInf(a.max, b.min), MulInf(a.max, b.max)};
        ConstIntBound r{p[0], p[0]};
        for (int64_t v : p) r = Union(r, {v, v});
        return r;
      }
      case NodeKind::kSelect: {
        const auto* n = static_cast<const tir::SelectNode*>(e.get());
        return Union(Bound(n->true_value), Bound(n->false_value));
      }
      case NodeKind::kLet:
        return type;
      case NodeKind::kCast: {
        const auto* n = static_cast<const tir::CastNode*>(e.get());
        if (!(n->value.dtype().is_integral() || n->value.dtype().is_bool())) return type;
        ConstIntBound v = Bound(n->value);
        return v.min >= type.min && v.max <= type.max ? v : type;
      }
      case NodeKind::kCall: {
        const auto* n = static_cast<const tir::CallNode*>(e.get());
        if (tir::IsChoice(n)) return Union(Bound(n->args[1]), Bound(n->args[2]));
        const tir::IntrinDef* row = tir::IntrinOf(n);
        const int64_t* c = row && row->range && n->args.size() == 2 ? tir::as_const_int(n->args[1]) : nullptr;
        if (!c) return type;
        const ConstIntBound x = Bound(n->args[0]);
        const tir::IntRange r = row->range({x.min, x.max}, *c, {type.min, type.max});
        return {r.min, r.max};
      }
      default:
        return type;
    }
  });
}

ConstIntBound Analyzer::Bound(const PrimExpr& e) {
  if (IsIndex(e)) return BoundOfForm(Simplifier(this).Linear(e));
  return BoundOfAtom(e);
}

LinearForm Analyzer::Linear(const PrimExpr& e) { return Simplifier(this).Linear(e); }

PrimExpr Analyzer::FromLinear(const LinearForm& f, DataType dtype) {
  PrimExpr sum;
  // Positive terms first, so that no sum starts with a minus.
  for (int pass = 0; pass < 2; ++pass) {
    for (const auto& t : f.terms) {
      if ((t.coeff > 0) != (pass == 0)) continue;
      int64_t c = pass == 0 ? t.coeff : -t.coeff;
      PrimExpr x = c == 1 ? t.atom : PrimExpr(tir::Mul(t.atom, tir::make_int(dtype, c)));
      if (!sum.defined()) {
        sum = pass == 0 ? x : PrimExpr(tir::Mul(t.atom, tir::make_int(dtype, t.coeff)));
      } else {
        sum = pass == 0 ? PrimExpr(tir::Add(sum, x)) : PrimExpr(tir::Sub(sum, x));
      }
    }
  }
  if (!sum.defined()) return tir::make_int(dtype, f.constant);
  if (f.constant > 0) return tir::Add(sum, tir::make_int(dtype, f.constant));
  if (f.constant < 0 && f.constant != INT64_MIN) return tir::Sub(sum, tir::make_int(dtype, -f.constant));
  return f.constant == 0 ? sum : PrimExpr(tir::Add(sum, tir::make_int(dtype, f.constant)));
}

PrimExpr Analyzer::Simplify(const PrimExpr& e) { return Simplifier(this).VisitExpr(e); }
bool Analyzer::CanProve(const PrimExpr& condition) { return tir::is_const_int(Simplify(condition), 1); }

bool Analyzer::CanProveEqual(const PrimExpr& a, const PrimExpr& b) {
  if (ExprDeepEqual(a, b)) return true;
  return IsIndex(a) && IsIndex(b) && CanProve(tir::EQ(a, b));
}

bool Analyzer::CanProveGreaterEqual(const PrimExpr& e, int64_t value) { return Bound(e).min >= value; }
bool Analyzer::CanProveLess(const PrimExpr& e, int64_t value) { return Bound(e).max < value; }

}  // namespace baton::arith
