// SPDX-License-Identifier: Apache-2.0
// Polynomials over symbols and atoms.
#include <baton/arith/extent.h>
#include <baton/ir/op.h>
#include <baton/runtime/registry.h>
#include <baton/support/stack.h>
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

namespace baton::arith {
// Other files of this folder have their own sums and products.
namespace extents {
namespace {

using tir::KindOf;
using tir::NodeKind;

constexpr int64_t kMinusInf = ConstIntBound::kNegInf;
constexpr int64_t kPlusInf = ConstIntBound::kPosInf;
/// A polynomial of more terms is left as it was written.
constexpr size_t kMaxTerms = 128;

/// The expression is none that this form is for.
struct NoExtent {};

bool HasExtentType(const PrimExpr& e) { return e.dtype() == DataType::Int(64); }

/// An order of canonical expressions: by class, then name or value, then parts. Addresses decide between symbols of one
/// name alone.
int Compare(const PrimExpr& a, const PrimExpr& b) {
  if (a.same_as(b)) return 0;
  const NodeKind ka = KindOf(a.get()), kb = KindOf(b.get());
  auto is_var = [](NodeKind k) { return k == NodeKind::kVar; };
  if (is_var(ka) != is_var(kb)) return is_var(ka) ? -1 : 1;
  if (ka != kb) return ka < kb ? -1 : 1;
  auto of = [](bool less, bool more) { return less ? -1 : more ? 1 : 0; };
  auto both = [&](const PrimExpr& x, const PrimExpr& y, const PrimExpr& u, const PrimExpr& v) {
    const int first = Compare(x, u);
    return first != 0 ? first : Compare(y, v);
  };
  switch (ka) {
    case NodeKind::kVar: {
      const auto x = static_cast<const tir::VarNode*>(a.get())->name_hint.view(),
                 y = static_cast<const tir::VarNode*>(b.get())->name_hint.view();
      return x != y ? of(x < y, true) : of(a.get() < b.get(), true);
    }
    case NodeKind::kIntImm: {
      const int64_t x = *tir::as_const_int(a), y = *tir::as_const_int(b);
      return of(x<y, x> y);
    }
    case NodeKind::kNot:
      return Compare(static_cast<const tir::NotNode*>(a.get())->a, static_cast<const tir::NotNode*>(b.get())->a);
    case NodeKind::kSelect: {
      const auto *x = static_cast<const tir::SelectNode*>(a.get()), *y = static_cast<const tir::SelectNode*>(b.get());
      const int first = Compare(x->condition, y->condition);
      return first != 0 ? first : both(x->true_value, x->false_value, y->true_value, y->false_value);
    }
    default: {
      // All binary operations have the same fields.
      const auto *x = static_cast<const tir::AddNode*>(static_cast<const Object*>(a.get())),
                 *y = static_cast<const tir::AddNode*>(static_cast<const Object*>(b.get()));
      return both(x->a, x->b, y->a, y->b);
    }
  }
}

/// Atoms with repetition, in order.
using Monomial = std::vector<PrimExpr>;
struct ByDegree {
  bool operator()(const Monomial& a, const Monomial& b) const {
    if (a.size() != b.size()) return a.size() > b.size();
    for (size_t i = 0; i < a.size(); ++i) {
      const int c = Compare(a[i], b[i]);
      if (c != 0) return c < 0;
    }
    return false;
  }
};
/// Coefficients, none of them 0. The constant is that of the empty monomial.
using Poly = std::map<Monomial, int64_t, ByDegree>;

int64_t CheckedMul(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_mul_overflow(a, b, &out)) throw CompileError("an extent has a coefficient beyond int64");
  return out;
}
int64_t CheckedAdd(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_add_overflow(a, b, &out)) throw CompileError("an extent has a coefficient beyond int64");
  return out;
}
int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

Poly Literal(int64_t v) {
  Poly p;
  if (v != 0) p[{}] = v;
  return p;
}
Poly Atom(const PrimExpr& e) { return Poly{{Monomial{e}, 1}}; }
std::optional<int64_t> LiteralOf(const Poly& p) {
  if (p.empty()) return 0;
  if (p.size() == 1 && p.begin()->first.empty()) return p.begin()->second;
  return std::nullopt;
}
void AddTerm(Poly* p, const Monomial& m, int64_t c) {
  if (c == 0) return;
  auto [it, fresh] = p->try_emplace(m, c);
  if (!fresh) it->second = CheckedAdd(it->second, c);
  if (it->second == 0) p->erase(it);
  if (p->size() > kMaxTerms) throw NoExtent();
}
Poly SumOf(Poly a, const Poly& b, int64_t times = 1) {
  for (const auto& [m, c] : b) AddTerm(&a, m, CheckedMul(c, times));
  return a;
}
Monomial Join(const Monomial& a, const Monomial& b) {
  Monomial out;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out),
             [](const PrimExpr& x, const PrimExpr& y) { return Compare(x, y) < 0; });
  return out;
}
Poly Product(const Poly& a, const Poly& b) {
  Poly out;
  for (const auto& [m, c] : a) {
    for (const auto& [n, d] : b) AddTerm(&out, Join(m, n), CheckedMul(c, d));
  }
  return out;
}
bool Same(const Poly& a, const Poly& b) { return SumOf(a, b, -1).empty(); }

/// The monomial without the atoms of another; nothing where it does not have them all.
std::optional<Monomial> Without(const Monomial& m, const Monomial& factor) {
  Monomial out;
  size_t next = 0;
  for (const PrimExpr& atom : m) {
    if (next < factor.size() && Compare(atom, factor[next]) == 0) {
      ++next;
    } else {
      out.push_back(atom);
    }
  }
  if (next < factor.size()) return std::nullopt;
  return out;
}

PrimExpr Emit(const Poly& p);
Poly Read(const PrimExpr& e);

/// p = quotient * by + rest, where no term of the rest can be divided by the first term of `by`.
void DivideTerms(Poly p, const Poly& by, Poly* quotient, Poly* rest) {
  const auto& [lead, coeff] = *by.begin();
  for (size_t steps = 0; !p.empty(); ++steps) {
    if (steps > 4 * kMaxTerms) throw NoExtent();
    const auto [m, c] = *p.begin();
    const std::optional<Monomial> left = Without(m, lead);
    if (left && c % coeff == 0) {
      Poly term{{*left, c / coeff}};
      *quotient = SumOf(std::move(*quotient), term);
      p = SumOf(std::move(p), Product(term, by), -1);
    } else {
      AddTerm(rest, m, c);
      p.erase(p.begin());
    }
  }
}

/// Atoms that every term has.
Monomial CommonAtoms(const Poly& a, const Poly& b) {
  Monomial common = a.begin()->first;
  auto keep = [&](const Poly& p) {
    for (const auto& [m, c] : p) {
      Monomial out;
      std::set_intersection(common.begin(), common.end(), m.begin(), m.end(), std::back_inserter(out),
                            [](const PrimExpr& x, const PrimExpr& y) { return Compare(x, y) < 0; });
      common = std::move(out);
    }
  };
  keep(a), keep(b);
  return common;
}
int64_t CommonFactor(const Poly& p, int64_t g) {
  for (const auto& [m, c] : p) g = std::gcd(g, c);
  return g;
}
Poly Reduced(const Poly& p, const Monomial& atoms, int64_t factor) {
  Poly out;
  for (const auto& [m, c] : p) AddTerm(&out, *Without(m, atoms), c / factor);
  return out;
}

Poly Divide(const Poly& a, const Poly& b) {
  if (b.empty()) throw CompileError("an extent is divided by 0");
  if (a.empty()) return a;
  const std::optional<int64_t> x = LiteralOf(a), y = LiteralOf(b);
  if (x && y) return Literal(FloorDiv(*x, *y));
  Poly quotient, rest;
  DivideTerms(a, b, &quotient, &rest);
  if (rest.empty()) return quotient;
  if (y && *y < 0) throw NoExtent();
  // A factor of all terms counts on neither side, as far as it is not 0; by a literal the constant is rounded down.
  Poly below = b;
  if (y) {
    Poly open = rest;
    int64_t constant = 0;
    if (auto c = open.find({}); c != open.end()) {
      constant = c->second;
      open.erase(c);
    }
    const int64_t whole = FloorDiv(constant, *y);
    quotient = SumOf(std::move(quotient), Literal(whole));
    constant -= whole * *y;
    if (open.empty()) return quotient;
    const int64_t g = CommonFactor(open, *y);
    rest = SumOf(Reduced(open, {}, g), Literal(FloorDiv(constant, g)));
    below = Literal(*y / g);
    if (*y == g) return SumOf(std::move(quotient), rest);
    // floordiv(floordiv(e, p) + k, q) is floordiv(e + k * p, p * q).
    if (open.size() == 1 && rest.begin()->second == 1 && rest.begin()->first.size() == 1) {
      const auto* d = rest.begin()->first[0].as<tir::FloorDivNode>();
      const int64_t* inner = d ? tir::as_const_int(d->b) : nullptr;
      if (inner && *inner > 0) {
        const Poly above = SumOf(Read(d->a), Literal(CheckedMul(FloorDiv(constant, g), *inner)));
        return SumOf(std::move(quotient), Divide(above, Literal(CheckedMul(*inner, *y / g))));
      }
    }
  } else {
    const Monomial atoms = CommonAtoms(rest, b);
    const int64_t g = CommonFactor(b, CommonFactor(rest, 0));
    rest = Reduced(rest, atoms, g);
    below = Reduced(b, atoms, g);
    if (const std::optional<int64_t> one = LiteralOf(below); one && *one == 1) return SumOf(std::move(quotient), rest);
  }
  return SumOf(std::move(quotient), Atom(tir::FloorDiv(Emit(rest), Emit(below))));
}

// ---- Bounds

int64_t BoundMul(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  const bool negative = (a < 0) != (b < 0);
  int64_t out;
  if (a == kMinusInf || a == kPlusInf || b == kMinusInf || b == kPlusInf || __builtin_mul_overflow(a, b, &out)) {
    return negative ? kMinusInf : kPlusInf;
  }
  return out;
}
int64_t BoundAdd(int64_t a, int64_t b) {
  if (a == kMinusInf || b == kMinusInf) return kMinusInf;
  if (a == kPlusInf || b == kPlusInf) return kPlusInf;
  int64_t out;
  if (__builtin_add_overflow(a, b, &out)) return a < 0 ? kMinusInf : kPlusInf;
  return out;
}
ConstIntBound Times(const ConstIntBound& a, const ConstIntBound& b) {
  const auto [least, most] =
      std::minmax({BoundMul(a.min, b.min), BoundMul(a.min, b.max), BoundMul(a.max, b.min), BoundMul(a.max, b.max)});
  return {least, most};
}

ConstIntBound BoundOf(const Poly& p);
ConstIntBound BoundOfAtom(const PrimExpr& e) {
  if (const auto* v = e.as<tir::VarNode>()) {
    // Nothing is known of a variable that is declared to be an integer.
    return v->type_annotation.as<PrimTypeNode>() ? ConstIntBound{} : ConstIntBound{0, kPlusInf};
  }
  if (const auto* d = e.as<tir::FloorDivNode>()) {
    const ConstIntBound a = BoundOf(Read(d->a)), b = BoundOf(Read(d->b));
    if (b.min <= 0) return a.min >= 0 ? ConstIntBound{0, a.max} : ConstIntBound{};  // never divided by 0
    auto low = [&](int64_t v) {
      return v == kMinusInf ? v : v >= 0 ? (b.max == kPlusInf ? 0 : v / b.max) : FloorDiv(v, b.min);
    };
    auto high = [&](int64_t v) {
      return v == kPlusInf ? v : v >= 0 ? v / b.min : (b.max == kPlusInf ? -1 : FloorDiv(v, b.max));
    };
    return {low(a.min), high(a.max)};
  }
  if (const auto* m = e.as<tir::MinNode>()) {
    const ConstIntBound a = BoundOf(Read(m->a)), b = BoundOf(Read(m->b));
    return {std::min(a.min, b.min), std::min(a.max, b.max)};
  }
  if (const auto* m = e.as<tir::MaxNode>()) {
    const ConstIntBound a = BoundOf(Read(m->a)), b = BoundOf(Read(m->b));
    return {std::max(a.min, b.min), std::max(a.max, b.max)};
  }
  if (const auto* s = e.as<tir::SelectNode>()) {
    const ConstIntBound a = BoundOf(Read(s->true_value)), b = BoundOf(Read(s->false_value));
    return {std::min(a.min, b.min), std::max(a.max, b.max)};
  }
  return {};
}
ConstIntBound BoundOf(const Poly& p) {
  ConstIntBound sum{0, 0};
  for (const auto& [m, c] : p) {
    ConstIntBound term{c, c};
    for (const PrimExpr& atom : m) term = Times(term, BoundOfAtom(atom));
    sum = {BoundAdd(sum.min, term.min), BoundAdd(sum.max, term.max)};
  }
  return sum;
}

// ---- Conditions

PrimExpr Bool(bool v) { return IntImm(DataType::Bool(), v); }

/// `d == 0` or `d >= 0`, decided where bounds decide it.
PrimExpr ZeroOrMore(Poly d, bool equality) {
  const ConstIntBound b = BoundOf(d);
  if (equality ? b.min > 0 || b.max < 0 : b.max < 0) return Bool(false);
  if (equality ? b.min == 0 && b.max == 0 : b.min >= 0) return Bool(true);
  int64_t constant = 0;
  if (auto c = d.find({}); c != d.end()) {
    constant = c->second;
    d.erase(c);
  }
  const int64_t g = CommonFactor(d, 0);
  int64_t sign = 1;
  if (equality && d.begin()->second < 0) sign = -1;
  if (equality && constant % g != 0) return Bool(false);
  Poly side = Reduced(d, {}, g * sign);
  // g * side + constant >= 0
  const int64_t limit = equality ? -constant / (g * sign) : -FloorDiv(constant, g);
  const PrimExpr left = Emit(side), right = PrimExpr(limit);
  return equality ? PrimExpr(tir::EQ(left, right)) : PrimExpr(tir::GE(left, right));
}

PrimExpr Condition(const PrimExpr& e) {
  return support::WithStack([&]() -> PrimExpr {
    const auto* n = static_cast<const tir::EQNode*>(static_cast<const Object*>(e.get()));  // as all comparisons
    auto difference = [&](const PrimExpr& a, const PrimExpr& b) { return SumOf(Read(a), Read(b), -1); };
    switch (KindOf(e.get())) {
      case NodeKind::kIntImm:
        return Bool(*tir::as_const_int(e) != 0);
      case NodeKind::kEQ:
        return ZeroOrMore(difference(n->a, n->b), true);
      case NodeKind::kNE: {
        const PrimExpr eq = ZeroOrMore(difference(n->a, n->b), true);
        return tir::as_const_int(eq) ? Bool(*tir::as_const_int(eq) == 0) : PrimExpr(tir::Not(eq));
      }
      case NodeKind::kGE:
        return ZeroOrMore(difference(n->a, n->b), false);
      case NodeKind::kLE:
        return ZeroOrMore(difference(n->b, n->a), false);
      case NodeKind::kGT:
        return ZeroOrMore(SumOf(difference(n->a, n->b), Literal(-1)), false);
      case NodeKind::kLT:
        return ZeroOrMore(SumOf(difference(n->b, n->a), Literal(-1)), false);
      case NodeKind::kNot: {
        const PrimExpr a = Condition(static_cast<const tir::NotNode*>(e.get())->a);
        if (tir::as_const_int(a)) return Bool(*tir::as_const_int(a) == 0);
        if (const auto* twice = a.as<tir::NotNode>()) return twice->a;
        return tir::Not(a);
      }
      case NodeKind::kAnd:
      case NodeKind::kOr: {
        const bool all = KindOf(e.get()) == NodeKind::kAnd;
        PrimExpr a = Condition(n->a), b = Condition(n->b);
        for (const PrimExpr* x : {&a, &b}) {
          const int64_t* v = tir::as_const_int(*x);
          if (v && (*v != 0) != all) return Bool(!all);
          if (v) return x == &a ? b : a;
        }
        const int order = Compare(a, b);
        if (order == 0) return a;
        if (order > 0) std::swap(a, b);
        return all ? PrimExpr(tir::And(a, b)) : PrimExpr(tir::Or(a, b));
      }
      default:
        throw NoExtent();
    }
  });
}

// ---- Reading and writing

Poly ReadMinMax(const PrimExpr& e) {
  const bool least = KindOf(e.get()) == NodeKind::kMin;
  std::vector<Poly> parts;
  std::vector<PrimExpr> work{e};
  while (!work.empty()) {
    const PrimExpr x = work.back();
    work.pop_back();
    if (KindOf(x.get()) == KindOf(e.get())) {
      const auto* n = static_cast<const tir::MinNode*>(static_cast<const Object*>(x.get()));
      work.insert(work.end(), {n->a, n->b});
      continue;
    }
    Poly p = Read(x);
    if (p.size() == 1 && p.begin()->second == 1 && p.begin()->first.size() == 1 &&
        KindOf(p.begin()->first[0].get()) == KindOf(e.get())) {
      work.push_back(p.begin()->first[0]);
      continue;
    }
    // A part that another one is always within decides nothing.
    bool out = false;
    for (size_t i = 0; i < parts.size() && !out;) {
      const ConstIntBound d = BoundOf(SumOf(p, parts[i], -1));
      if (least ? d.min >= 0 : d.max <= 0) {
        out = true;
      } else if (least ? d.max <= 0 : d.min >= 0) {
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    if (!out) parts.push_back(std::move(p));
  }
  if (parts.size() == 1) return parts[0];
  std::vector<PrimExpr> in_order;
  for (const Poly& p : parts) in_order.push_back(Emit(p));
  std::sort(in_order.begin(), in_order.end(), [](const PrimExpr& a, const PrimExpr& b) { return Compare(a, b) < 0; });
  PrimExpr out = in_order[0];
  for (size_t i = 1; i < in_order.size(); ++i) {
    out = least ? PrimExpr(tir::Min(out, in_order[i])) : PrimExpr(tir::Max(out, in_order[i]));
  }
  return Atom(out);
}

Poly ReadSelect(const tir::SelectNode* s) {
  PrimExpr condition = Condition(s->condition);
  if (const int64_t* v = tir::as_const_int(condition)) return Read(*v ? s->true_value : s->false_value);
  Poly t = Read(s->true_value), f = Read(s->false_value);
  if (Same(t, f)) return t;
  if (const auto* no = condition.as<tir::NotNode>()) {
    condition = no->a;
    std::swap(t, f);
  }
  // Where m is 1, m says no more than 1.
  if (const auto* eq = condition.as<tir::EQNode>(); eq && eq->a.as<tir::VarNode>()) {
    t = Read(tir::Substitute(Emit(t), tir::VarMap{{eq->a.get(), eq->b}}));
    if (Same(Read(tir::Substitute(Emit(f), tir::VarMap{{eq->a.get(), eq->b}})), t)) return f;
  }
  return Atom(tir::Select(condition, Emit(t), Emit(f)));
}

PrimExpr WithoutCasts(PrimExpr e) {
  while (const auto* c = e.as<tir::CastNode>()) e = c->value;
  return e;
}
/// An extent times a number, both in floats, as upsampling computes them.
struct Scaled {
  Poly extent;
  double factor;
};
Scaled ReadScaled(const PrimExpr& e) {
  if (e.as<tir::CastNode>()) return {Read(WithoutCasts(e)), 1};
  const auto* m = e.as<tir::MulNode>();
  const auto *a = m ? m->a.as<FloatImmNode>() : nullptr, *b = m ? m->b.as<FloatImmNode>() : nullptr;
  if (!a == !b) throw NoExtent();
  Scaled s = support::WithStack([&] { return ReadScaled(a ? m->b : m->a); });
  s.factor *= a ? a->value : b->value;
  return s;
}
/// round(extent * factor), as floor(extent * p / q + 1/2) where the factor is p / q.
Poly ReadRounded(const PrimExpr& e) {
  const Scaled s = ReadScaled(e);
  constexpr int64_t kMostParts = 1 << 10;
  int64_t q = 1;
  while (q < kMostParts && s.factor * static_cast<double>(q) != std::floor(s.factor * static_cast<double>(q))) q *= 2;
  const double p = s.factor * static_cast<double>(q);
  if (!(p >= 0 && p <= 1e6) || p != std::floor(p)) throw NoExtent();
  const Poly whole = Product(s.extent, Literal(static_cast<int64_t>(p)));
  if (q == 1) return whole;
  return Divide(SumOf(Product(whole, Literal(2)), Literal(q)), Literal(2 * q));
}

Poly Read(const PrimExpr& e) {
  return support::WithStack([&]() -> Poly {
    if (const auto* c = e.as<tir::CastNode>(); c && HasExtentType(e)) {
      const PrimExpr inner = WithoutCasts(e);
      const auto* call = inner.as<tir::CallNode>();
      if (call && call->op == tir::intrin::round) return ReadRounded(call->args[0]);
    }
    if (const auto* c = e.as<tir::CastNode>(); c && HasExtentType(e) && HasExtentType(c->value)) return Read(c->value);
    if (!HasExtentType(e)) throw NoExtent();
    const auto* n = static_cast<const tir::AddNode*>(static_cast<const Object*>(e.get()));  // as all binary ones
    switch (KindOf(e.get())) {
      case NodeKind::kIntImm:
        return Literal(*tir::as_const_int(e));
      case NodeKind::kVar:
        return Atom(e);
      case NodeKind::kAdd:
        return SumOf(Read(n->a), Read(n->b));
      case NodeKind::kSub:
        return SumOf(Read(n->a), Read(n->b), -1);
      case NodeKind::kMul:
        return Product(Read(n->a), Read(n->b));
      case NodeKind::kDiv: {
        Poly a = Read(n->a), b = Read(n->b);
        if (BoundOf(a).min < 0 || BoundOf(b).min < 0) throw NoExtent();
        return Divide(a, b);
      }
      case NodeKind::kFloorDiv:
        return Divide(Read(n->a), Read(n->b));
      case NodeKind::kMod:
      case NodeKind::kFloorMod: {
        Poly a = Read(n->a), b = Read(n->b);
        if (KindOf(e.get()) == NodeKind::kMod && (BoundOf(a).min < 0 || BoundOf(b).min < 0)) throw NoExtent();
        return SumOf(a, Product(Divide(a, b), b), -1);
      }
      case NodeKind::kMin:
      case NodeKind::kMax:
        return ReadMinMax(e);
      case NodeKind::kSelect:
        return ReadSelect(static_cast<const tir::SelectNode*>(e.get()));
      default:
        throw NoExtent();
    }
  });
}

PrimExpr Emit(const Poly& p) {
  PrimExpr out;
  auto put = [&](const Monomial& m, int64_t c) {
    PrimExpr term;
    for (const PrimExpr& atom : m) term = term.defined() ? PrimExpr(tir::Mul(term, atom)) : atom;
    const bool minus = c < 0 && out.defined() && c != INT64_MIN;
    const int64_t times = minus ? -c : c;
    if (!term.defined()) {
      term = PrimExpr(times);
    } else if (times != 1) {
      term = tir::Mul(term, PrimExpr(times));
    }
    out = !out.defined() ? term : minus ? PrimExpr(tir::Sub(out, term)) : PrimExpr(tir::Add(out, term));
  };
  // The addend comes first, so that `5 - n` needs no product.
  for (const auto& [m, c] : p) {
    if (c > 0) put(m, c);
  }
  for (const auto& [m, c] : p) {
    if (c < 0) put(m, c);
  }
  return out.defined() ? out : PrimExpr(int64_t{0});
}

bool IsPlain(const PrimExpr& e) { return e.as<IntImmNode>() || e.as<tir::VarNode>() || e.as<tir::AnyNode>(); }

}  // namespace
}  // namespace extents

bool ToCanonicalExtent(PrimExpr* e) {
  using namespace extents;  // NOLINT: of this file
  if (IsPlain(*e)) return !e->as<tir::AnyNode>();
  try {
    PrimExpr out = Emit(Read(*e));
    if (!tir::ExprDeepEqual(out, *e)) *e = out;
    return true;
  } catch (const NoExtent&) {
    return false;
  }
}

PrimExpr CanonicalExtent(const PrimExpr& e) {
  PrimExpr out = e;
  ToCanonicalExtent(&out);
  return out;
}

Fact ExtentsEqual(const PrimExpr& a, const PrimExpr& b) {
  using namespace extents;  // NOLINT: of this file
  if (a.same_as(b)) return a.as<tir::AnyNode>() ? Fact::kOpen : Fact::kYes;
  const auto *x = a.as<IntImmNode>(), *y = b.as<IntImmNode>();
  if (x && y) return x->value == y->value ? Fact::kYes : Fact::kNo;
  try {
    const Poly d = SumOf(Read(a), Read(b), -1);
    if (d.empty()) return Fact::kYes;
    const PrimExpr zero = ZeroOrMore(d, true);
    const int64_t* v = tir::as_const_int(zero);
    return !v ? Fact::kOpen : *v ? Fact::kYes : Fact::kNo;
  } catch (const NoExtent&) {
    return tir::ExprDeepEqual(a, b) && !a.as<tir::AnyNode>() ? Fact::kYes : Fact::kOpen;
  }
}

ConstIntBound ExtentBound(const PrimExpr& e) {
  using namespace extents;  // NOLINT: of this file
  try {
    return BoundOf(Read(e));
  } catch (const NoExtent&) {
    return {};
  }
}

Fact ExtentAtLeast(const PrimExpr& e, int64_t least) {
  const ConstIntBound b = ExtentBound(e);
  return b.min >= least ? Fact::kYes : b.max < least ? Fact::kNo : Fact::kOpen;
}

Fact ExtentCondition(const PrimExpr& condition) {
  using namespace extents;  // NOLINT: of this file
  try {
    const PrimExpr c = Condition(condition);
    const int64_t* v = tir::as_const_int(c);
    return !v ? Fact::kOpen : *v ? Fact::kYes : Fact::kNo;
  } catch (const NoExtent&) {
    return Fact::kOpen;
  }
}

bool IsSymbolicExtent(const PrimExpr& e) {
  using namespace extents;  // NOLINT: of this file
  if (e.as<tir::VarNode>()) return true;
  if (IsPlain(e)) return false;
  try {
    return !LiteralOf(Read(e)).has_value();
  } catch (const NoExtent&) {
    return false;
  }
}

namespace extents {
namespace {

int Precedence(NodeKind k) {
  switch (k) {
    case NodeKind::kAdd:
    case NodeKind::kSub:
      return 1;
    case NodeKind::kMul:
      return 2;
    default:
      return 3;
  }
}
/// As Relay text reads it.
struct TextOf {
  std::string (*name)(void*, const tir::VarNode*);
  void* context;

  std::string operator()(const PrimExpr& e, int around) const {
    const auto* n = static_cast<const tir::AddNode*>(static_cast<const Object*>(e.get()));
    const NodeKind k = KindOf(e.get());
    auto infix = [&](const char* op) {
      const int own = Precedence(k);
      std::string s = (*this)(n->a, own) + op + (*this)(n->b, own + 1);
      return own < around ? "(" + s + ")" : s;
    };
    auto call = [&](const char* f) { return std::string(f) + "(" + (*this)(n->a, 0) + ", " + (*this)(n->b, 0) + ")"; };
    switch (k) {
      case NodeKind::kIntImm:
        return std::to_string(*tir::as_const_int(e));
      case NodeKind::kVar:
        return name(context, static_cast<const tir::VarNode*>(e.get()));
      case NodeKind::kAdd:
        return infix(" + ");
      case NodeKind::kSub:
        return infix(" - ");
      case NodeKind::kMul:
        return infix("*");
      case NodeKind::kFloorDiv:
        return call("floordiv");
      case NodeKind::kMin:
        return call("min");
      case NodeKind::kMax:
        return call("max");
      case NodeKind::kAnd:
        return call("and");
      case NodeKind::kOr:
        return call("or");
      case NodeKind::kEQ:
        return (*this)(n->a, 0) + " == " + (*this)(n->b, 0);
      case NodeKind::kGE:
        return (*this)(n->a, 0) + " >= " + (*this)(n->b, 0);
      case NodeKind::kNot:
        return "not(" + (*this)(static_cast<const tir::NotNode*>(e.get())->a, 0) + ")";
      case NodeKind::kSelect: {
        const auto* s = static_cast<const tir::SelectNode*>(e.get());
        return "select(" + (*this)(s->condition, 0) + ", " + (*this)(s->true_value, 0) + ", " +
               (*this)(s->false_value, 0) + ")";
      }
      default:
        return "?";
    }
  }
};

}  // namespace
}  // namespace extents

std::string ExtentText(const PrimExpr& e, std::string (*name)(void*, const tir::VarNode*), void* context) {
  using namespace extents;  // NOLINT: of this file
  return TextOf{name, context}(e, 0);
}

std::string ExtentText(const PrimExpr& e) {
  return ExtentText(CanonicalExtent(e), [](void*, const tir::VarNode* v) { return v->name_hint.str(); }, nullptr);
}

// Types, a layer below, are made with extents in this form.
BATON_REGISTER_GLOBAL("ir.CanonicalExtent").set_body_typed([](PrimExpr e) { return CanonicalExtent(e); });

}  // namespace baton::arith
