// SPDX-License-Identifier: Apache-2.0
#include <baton/arith/analyzer.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>

#include <numeric>
#include <utility>

namespace baton::arith {
namespace {
using tir::ExprDeepEqual;
using tir::NodeKind;

/// Of conditions that hold, so many of the innermost are looked at.
constexpr size_t kMostFacts = 64;
constexpr int64_t kPosInf = ConstIntBound::kPosInf;
constexpr int64_t kNegInf = ConstIntBound::kNegInf;

int64_t Clamp(__int128 v) { return v >= kPosInf ? kPosInf : v <= kNegInf ? kNegInf : static_cast<int64_t>(v); }
int64_t AddInf(int64_t a, int64_t b) {
  if (a == kPosInf || b == kPosInf) return kPosInf;
  if (a == kNegInf || b == kNegInf) return kNegInf;
  return Clamp(static_cast<__int128>(a) + b);
}
int64_t MulInf(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == kPosInf || a == kNegInf || b == kPosInf || b == kNegInf) return (a > 0) == (b > 0) ? kPosInf : kNegInf;
  return Clamp(static_cast<__int128>(a) * b);
}
int64_t FloorDivC(int64_t a, int64_t c) {  // c > 0
  if (a == kPosInf || a == kNegInf) return a;
  int64_t q = a / c;
  return a % c < 0 ? q - 1 : q;
}
int64_t FloorModC(int64_t a, int64_t c) {
  int64_t r = a % c;
  return r < 0 ? r + c : r;
}
ConstIntBound Union(ConstIntBound a, ConstIntBound b) {
  return {a.min < b.min ? a.min : b.min, a.max > b.max ? a.max : b.max};
}
ConstIntBound Intersect(ConstIntBound a, ConstIntBound b) {
  return {a.min > b.min ? a.min : b.min, a.max < b.max ? a.max : b.max};
}
ConstIntBound TypeBound(DataType t) {
  if (t.is_bool()) return {0, 1};
  if (t.bits() >= 63) return t.is_uint() ? ConstIntBound{0, kPosInf} : ConstIntBound{};
  if (t.is_uint()) return {0, (int64_t{1} << t.bits()) - 1};
  return {-(int64_t{1} << (t.bits() - 1)), (int64_t{1} << (t.bits() - 1)) - 1};
}
bool IsIndex(const PrimExpr& e) { return e.dtype() == DataType::Int(64); }

void AddTerm(LinearForm* f, const PrimExpr& atom, int64_t coeff) {
  if (coeff == 0) return;
  for (size_t i = 0; i < f->terms.size(); ++i) {
    if (ExprDeepEqual(f->terms[i].atom, atom)) {
      f->terms[i].coeff += coeff;
      if (f->terms[i].coeff == 0) f->terms.erase(f->terms.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }
  f->terms.push_back({atom, coeff});
}
bool AddForm(LinearForm* f, const LinearForm& g, int64_t scale) {
  for (const auto& t : g.terms) {
    int64_t c;
    if (__builtin_mul_overflow(t.coeff, scale, &c)) return false;
    AddTerm(f, t.atom, c);
  }
  int64_t k;
  if (__builtin_mul_overflow(g.constant, scale, &k) || __builtin_add_overflow(f->constant, k, &f->constant))
    return false;
  return true;
}
/// e // c or e % c with a literal c > 0: gives e and c.
template <class N>
const N* AsDivMod(const PrimExpr& e, int64_t* c) {
  const auto* n = e.as<N>();
  if (!n) return nullptr;
  const int64_t* v = tir::as_const_int(n->b);
  if (!v || *v <= 0) return nullptr;
  *c = *v;
  return n;
}
}  // namespace

int64_t LinearForm::CoeffOf(const tir::VarNode* var) const {
  for (const Term& t : terms) {
    if (t.atom.get() == static_cast<const Object*>(var)) return t.coeff;
  }
  return 0;
}

/// Canonical sums for indices; a plain bottom-up rewrite for the rest.
class Simplifier : public tir::ExprMutator {
 public:
  explicit Simplifier(Analyzer* a) : a_(a) {}
  using tir::ExprMutator::VisitExpr_;

  PrimExpr VisitExpr(const PrimExpr& e) final {
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

  LinearForm Linear(const PrimExpr& e) {
    return support::WithStack([&] {
      if (!IsKept(e)) return LinearImpl(e);
      if (auto it = a_->sums_.find(e.get()); it != a_->sums_.end()) return it->second.second;
      LinearForm f = LinearImpl(e);
      a_->sums_.emplace(e.get(), std::pair(e, f));
      // What is in its form already is its own sum.
      if (f.constant == 0 && f.terms.size() == 1 && f.terms[0].coeff == 1 && IsKept(f.terms[0].atom))
        a_->sums_.emplace(f.terms[0].atom.get(), std::pair(f.terms[0].atom, f));
      return f;
    });
  }

  PrimExpr VisitExpr_(const tir::LTNode* op) final { return Compare(NodeKind::kLT, op->a, op->b, op); }
  PrimExpr VisitExpr_(const tir::LENode* op) final { return Compare(NodeKind::kLE, op->a, op->b, op); }
  PrimExpr VisitExpr_(const tir::GTNode* op) final { return Compare(NodeKind::kGT, op->a, op->b, op); }
  PrimExpr VisitExpr_(const tir::GENode* op) final { return Compare(NodeKind::kGE, op->a, op->b, op); }
  PrimExpr VisitExpr_(const tir::EQNode* op) final { return Compare(NodeKind::kEQ, op->a, op->b, op); }
  PrimExpr VisitExpr_(const tir::NENode* op) final { return Compare(NodeKind::kNE, op->a, op->b, op); }
  PrimExpr VisitExpr_(const tir::NotNode* op) final {
    PrimExpr a = VisitExpr(op->a);
    return a.same_as(op->a) ? GetRef<PrimExpr>(op) : !a;
  }
  PrimExpr VisitExpr_(const tir::AndNode* op) final {
    PrimExpr a = VisitExpr(op->a);
    if (tir::is_const_int(a, 0)) return a;
    // What stands right is evaluated whatever the left is, but only counts where the left holds.
    size_t mark = a.dtype().is_scalar() ? a_->Assume(a) : a_->facts_.size();
    PrimExpr b = VisitExpr(op->b);
    a_->Forget(mark);
    return a.same_as(op->a) && b.same_as(op->b) ? GetRef<PrimExpr>(op) : a && b;
  }
  PrimExpr VisitExpr_(const tir::SelectNode* op) final {
    PrimExpr c = VisitExpr(op->condition);
    if (const int64_t* k = tir::as_const_int(c)) return VisitExpr(*k ? op->true_value : op->false_value);
    PrimExpr t = VisitExpr(op->true_value), f = VisitExpr(op->false_value);
    if (ExprDeepEqual(t, f)) return t;
    if (c.same_as(op->condition) && t.same_as(op->true_value) && f.same_as(op->false_value))
      return GetRef<PrimExpr>(op);
    return tir::Select(c, t, f);
  }
  PrimExpr VisitExpr_(const tir::CallNode* op) final {
    if (op->args.size() == 3 && tir::IntrinName(op) == "tir.if_then_else") {
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
  PrimExpr VisitExpr_(const tir::LetNode* op) final {
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
  PrimExpr VisitExpr_(const tir::CastNode* op) final {
    PrimExpr v = VisitExpr(op->value);
    return v.same_as(op->value) ? GetRef<PrimExpr>(op) : cast(op->dtype, v);
  }

 private:
  PrimExpr Compare(NodeKind k, const PrimExpr& a0, const PrimExpr& b0, const PrimExprNode* self) {
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

  /// Whether the sum of an expression takes more than its parts' sums.
  static bool IsKept(const PrimExpr& e) {
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
  static LinearForm Constant(int64_t c) {
    LinearForm f;
    f.constant = c;
    return f;
  }
  static LinearForm Atom(PrimExpr e) {
    LinearForm f;
    if (const int64_t* c = tir::as_const_int(e)) {
      f.constant = *c;
    } else {
      f.terms.push_back({std::move(e), 1});
    }
    return f;
  }

  LinearForm LinearImpl(const PrimExpr& e) {
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

  LinearForm DivForm(const LinearForm& f, int64_t c) {
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

  LinearForm ModForm(const LinearForm& f, int64_t c) {
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

  /// Joins k*c*(x // c) + k*(x % c) to k*x, and k*c*((x // c) % m) + k*(x % c) to k*(x % (c*m)).
  LinearForm Merge(LinearForm f) {
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

  Analyzer* a_;
};

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
  const size_t first_fact = facts_.size() > kMostFacts ? facts_.size() - kMostFacts : 0;
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
    // f = s * fact + rest, with s = 1 or -1: the rest has bounds of its own.
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
        if (a.min >= 0 && b.min >= 1) return {0, FloorDivC(a.max, b.min)};
        return type;
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
        if (a.min >= 0 && b.min >= 1) return {0, FloorDivC(a.max, b.min)};
        return type;
      }
      case NodeKind::kMod: {
        const auto* n = static_cast<const tir::ModNode*>(e.get());
        ConstIntBound a = Bound(n->a), b = Bound(n->b);
        if (a.min >= 0 && b.min >= 1) return {0, a.max < AddInf(b.max, -1) ? a.max : AddInf(b.max, -1)};
        return type;
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
        if (n->args.size() == 3 && tir::IntrinName(n) == "tir.if_then_else")
          return Union(Bound(n->args[1]), Bound(n->args[2]));
        return type;
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

// ---------------------------------------------------------------- statements
namespace {
class StmtSimplifier : public tir::StmtMutator {
 public:
  explicit StmtSimplifier(Analyzer* a) : a_(a) {}
  using tir::StmtMutator::VisitStmt_;

  tir::Stmt VisitStmt_(const tir::ForNode* op) final {
    PrimExpr min = OnExpr(op->min), extent = OnExpr(op->extent);
    if (const int64_t* n = tir::as_const_int(extent); n && *n <= 0) return tir::SeqStmt::Flatten({});
    if (tir::is_const_int(extent, 1)) {
      return WithKnown(op->loop_var, min, op->body);
    }
    size_t mark = a_->Assume(tir::EQ(PrimExpr(0), PrimExpr(0)));
    a_->Bind(op->loop_var, min, extent);
    tir::Stmt body = VisitStmt(op->body);
    a_->Forget(mark);
    if (IsEmpty(body)) return body;
    if (min.same_as(op->min) && extent.same_as(op->extent) && body.same_as(op->body)) return GetRef<tir::Stmt>(op);
    tir::ForNode n = *op;
    n.min = min, n.extent = extent, n.body = body;
    return tir::For(std::move(n));
  }
  tir::Stmt VisitStmt_(const tir::IfThenElseNode* op) final {
    PrimExpr c = OnExpr(op->condition);
    if (const int64_t* k = tir::as_const_int(c)) {
      if (*k) return VisitStmt(op->then_case);
      return op->else_case.defined() ? VisitStmt(op->else_case) : tir::SeqStmt::Flatten({});
    }
    bool scalar = c.dtype().is_scalar();
    size_t mark = a_->Assume(scalar ? c : PrimExpr(IntImm(DataType::Bool(), 1)));
    tir::Stmt t = VisitStmt(op->then_case);
    a_->Forget(mark);
    tir::Stmt e = op->else_case;
    if (e.defined()) {
      mark = a_->Assume(scalar ? !c : PrimExpr(IntImm(DataType::Bool(), 1)));
      e = VisitStmt(e);
      a_->Forget(mark);
      if (IsEmpty(e)) e = tir::Stmt();
    }
    if (IsEmpty(t)) {
      if (!e.defined()) return t;
      if (scalar) {
        c = !c;
        t = e;
        e = tir::Stmt();
      }
    }
    if (c.same_as(op->condition) && t.same_as(op->then_case) && e.same_as(op->else_case)) return GetRef<tir::Stmt>(op);
    tir::IfThenElseNode n = *op;
    n.condition = c, n.then_case = t, n.else_case = e;
    return tir::IfThenElse(std::move(n));
  }
  tir::Stmt VisitStmt_(const tir::LetStmtNode* op) final {
    PrimExpr v = OnExpr(op->value);
    if (tir::as_const_int(v) || v.as<tir::VarNode>() || v.as<FloatImmNode>()) {
      return WithKnown(op->var, v, op->body);
    }
    if (IsIndex(v)) {
      ConstIntBound b = a_->Bound(v);
      if (b.min != kNegInf && b.max != kPosInf) a_->Bind(op->var, b.min, AddInf(AddInf(b.max, 1), -b.min));
    }
    tir::Stmt body = VisitStmt(op->body);
    if (IsEmpty(body) && !tir::HasSideEffect(v)) return body;
    if (v.same_as(op->value) && body.same_as(op->body)) return GetRef<tir::Stmt>(op);
    tir::LetStmtNode n = *op;
    n.value = v, n.body = body;
    return tir::LetStmt(std::move(n));
  }
  tir::Stmt VisitStmt_(const tir::EvaluateNode* op) final {
    PrimExpr v = OnExpr(op->value);
    if (!tir::HasSideEffect(v)) return tir::SeqStmt::Flatten({});
    if (v.same_as(op->value)) return GetRef<tir::Stmt>(op);
    tir::EvaluateNode n = *op;
    n.value = v;
    return tir::Evaluate(std::move(n));
  }
  tir::Stmt VisitStmt_(const tir::AllocateNode* op) final {
    for (const PrimExpr& n : op->buffer->shape) {
      // A buffer of another shape is another buffer, wherever it is used.
      if (!Known(n).same_as(n)) return VisitStmt(tir::Substitute(GetRef<tir::Stmt>(op), known_));
    }
    tir::Stmt s = tir::StmtMutator::VisitStmt_(op);
    return IsEmpty(s.as<tir::AllocateNode>()->body) ? s.as<tir::AllocateNode>()->body : s;
  }
  tir::Stmt VisitStmt_(const tir::AttrStmtNode* op) final {
    tir::Stmt s = tir::StmtMutator::VisitStmt_(op);
    return IsEmpty(s.as<tir::AttrStmtNode>()->body) ? s.as<tir::AttrStmtNode>()->body : s;
  }
  tir::Stmt VisitStmt_(const tir::SeqStmtNode* op) final {
    tir::Stmt s = tir::StmtMutator::VisitStmt_(op);
    if (const auto* q = s.as<tir::SeqStmtNode>()) {
      for (const tir::Stmt& x : q->seq) {
        if (x.as<tir::SeqStmtNode>()) return tir::SeqStmt::Flatten(q->seq);
      }
    }
    return s;
  }

 protected:
  PrimExpr OnExpr(const PrimExpr& e) final { return a_->Simplify(Known(e)); }

 private:
  tir::Stmt WithKnown(const tir::Var& var, const PrimExpr& value, const tir::Stmt& body) {
    PrimExpr outer = std::exchange(known_[var.get()], value);
    tir::Stmt out = VisitStmt(body);
    if (outer.defined()) {
      known_[var.get()] = outer;
    } else {
      known_.erase(var.get());
    }
    return out;
  }
  PrimExpr Known(const PrimExpr& e) const { return known_.empty() ? e : tir::Substitute(e, known_); }
  static bool IsEmpty(const tir::Stmt& s) {
    const auto* q = s.as<tir::SeqStmtNode>();
    return q && q->seq.empty();
  }
  Analyzer* a_;
  /// Variables of loops that run once and names of what is known: what they stand for. Put in where expressions are
  /// looked at, since a walk through the body for each would take the square of the depth.
  tir::VarMap known_;
};
}  // namespace

tir::Stmt SimplifyStmt(const tir::Stmt& s, Analyzer* analyzer) {
  Analyzer own;
  return StmtSimplifier(analyzer ? analyzer : &own)(s);
}

}  // namespace baton::arith
