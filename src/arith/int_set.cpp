// SPDX-License-Identifier: Apache-2.0
#include <arith/conjuncts.h>
#include <baton/arith/int_set.h>
#include <baton/runtime/registry.h>
#include <baton/support/stack.h>
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>

#include <unordered_map>
#include <utility>

namespace baton::arith {
namespace {

using tir::NodeKind;

/// Ends of an interval; null: none on that side.
struct Ends {
  PrimExpr lo, hi;
  bool point = false;  ///< both are the expression itself, which names no variable of a domain
};

PrimExpr Op2(NodeKind kind, const PrimExpr& a, const PrimExpr& b) {
  return a.defined() && b.defined() ? tir::FoldBinary(kind, a, b) : PrimExpr();
}
PrimExpr Number(const PrimExpr& like, int64_t v) { return tir::make_int(like.dtype(), v); }

class SetEvaluator {
 public:
  SetEvaluator(const Domains& domains, Analyzer* analyzer) : domains_(domains), analyzer_(analyzer) {}

  Ends Eval(const PrimExpr& e) {
    const bool leaf = tir::KindOf(e.get()) == NodeKind::kVar || tir::KindOf(e.get()) == NodeKind::kIntImm;
    if (leaf) return Find(e);
    if (auto it = known_.find(e.get()); it != known_.end()) return it->second;
    Ends out = support::WithStack([&] { return Find(e); });
    known_.emplace(e.get(), out);
    return out;
  }

 private:
  Ends Point(const PrimExpr& e) { return {e, e, true}; }
  bool Positive(const PrimExpr& e) { return analyzer_->Bound(e).min >= 1; }

  Ends Find(const PrimExpr& e) {
    const NodeKind kind = tir::KindOf(e.get());
    switch (kind) {
      case NodeKind::kVar: {
        auto set = domains_.Get(Downcast<tir::Var>(e), IntSet());
        if (!set.defined()) return Point(e);
        const auto* interval = set.as<IntervalSetNode>();
        if (!interval) return {};
        return {interval->min_value.same_as(NegInf()) ? PrimExpr() : interval->min_value,
                interval->max_value.same_as(PosInf()) ? PrimExpr() : interval->max_value};
      }
      case NodeKind::kAdd:
      case NodeKind::kSub:
      case NodeKind::kMul:
      case NodeKind::kDiv:
      case NodeKind::kMod:
      case NodeKind::kFloorDiv:
      case NodeKind::kFloorMod:
      case NodeKind::kMin:
      case NodeKind::kMax: {
        const auto* n = static_cast<const tir::AddNode*>(e.get());  // of one shape
        const Ends a = Eval(n->a), b = Eval(n->b);
        if (a.point && b.point) return Point(e);
        if (!e.dtype().is_integral() || e.dtype().is_vector()) return {};
        return Binary(kind, a, b, e);
      }
      case NodeKind::kSelect: {
        const auto* n = static_cast<const tir::SelectNode*>(e.get());
        return Either(Eval(n->condition), Eval(n->true_value), Eval(n->false_value), e);
      }
      case NodeKind::kCall: {
        const auto* n = static_cast<const tir::CallNode*>(e.get());
        if (tir::IsChoice(n)) return Either(Eval(n->args[0]), Eval(n->args[1]), Eval(n->args[2]), e);
        break;
      }
      case NodeKind::kCast: {
        const auto* n = static_cast<const tir::CastNode*>(e.get());
        const Ends v = Eval(n->value);
        if (v.point) return Point(e);
        const DataType from = n->value.dtype(), to = e.dtype();
        if (!from.is_int() || !to.is_int() || to.bits() < from.bits() || to.is_vector()) return {};
        const auto cast = [&](const PrimExpr& x) {
          if (!x.defined()) return x;
          if (const int64_t* c = tir::as_const_int(x)) return tir::make_int(to, *c);
          return PrimExpr(tir::Cast(to, x));
        };
        return {cast(v.lo), cast(v.hi)};
      }
      default:
        break;
    }
    return NamesDomain(e) ? Ends{} : Point(e);
  }

  bool NamesDomain(const PrimExpr& e) {
    for (const auto& [var, set] : domains_) {
      if (tir::UsesVar(e, var.get())) return true;
    }
    return false;
  }

  Ends Either(const Ends& condition, const Ends& a, const Ends& b, const PrimExpr& e) {
    if (condition.point && a.point && b.point) return Point(e);
    if (!e.dtype().is_integral() || e.dtype().is_vector()) return {};
    return {Op2(NodeKind::kMin, a.lo, b.lo), Op2(NodeKind::kMax, a.hi, b.hi)};
  }

  Ends Binary(NodeKind kind, const Ends& a, const Ends& b, const PrimExpr& e) {
    switch (kind) {
      case NodeKind::kAdd:
        return {Op2(kind, a.lo, b.lo), Op2(kind, a.hi, b.hi)};
      case NodeKind::kSub:
        return {Op2(kind, a.lo, b.hi), Op2(kind, a.hi, b.lo)};
      case NodeKind::kMin: {
        // An end of one is an end of both above, or below.
        const PrimExpr hi = !a.hi.defined() ? b.hi : !b.hi.defined() ? a.hi : Op2(kind, a.hi, b.hi);
        return {Op2(kind, a.lo, b.lo), hi};
      }
      case NodeKind::kMax: {
        const PrimExpr lo = !a.lo.defined() ? b.lo : !b.lo.defined() ? a.lo : Op2(kind, a.lo, b.lo);
        return {lo, Op2(kind, a.hi, b.hi)};
      }
      case NodeKind::kMul:
        if (b.point) return Scaled(a, b.lo);
        if (a.point) return Scaled(b, a.lo);
        return Product(a, b);
      case NodeKind::kFloorDiv:
      case NodeKind::kDiv:
        // Both kinds of division by a positive number keep the order.
        if (b.point && Positive(b.lo)) return {Op2(kind, a.lo, b.lo), Op2(kind, a.hi, b.lo)};
        if (b.point && analyzer_->Bound(b.lo).max <= -1) return {Op2(kind, a.hi, b.lo), Op2(kind, a.lo, b.lo)};
        return {};
      case NodeKind::kFloorMod:
        if (!b.point || !Positive(b.lo)) return {};
        if (a.lo.defined() && a.hi.defined() &&
            analyzer_->CanProveEqual(analyzer_->Simplify(Op2(NodeKind::kFloorDiv, a.lo, b.lo)),
                                     analyzer_->Simplify(Op2(NodeKind::kFloorDiv, a.hi, b.lo)))) {
          return {Op2(kind, a.lo, b.lo), Op2(kind, a.hi, b.lo)};
        }
        return {Number(e, 0), Op2(NodeKind::kSub, b.lo, Number(e, 1))};
      case NodeKind::kMod: {
        if (!b.point || !Positive(b.lo)) return {};
        const PrimExpr most = Op2(NodeKind::kSub, b.lo, Number(e, 1));
        const bool natural = a.lo.defined() && analyzer_->Bound(a.lo).min >= 0;
        return {natural ? Number(e, 0) : Op2(NodeKind::kSub, Number(e, 0), most), most};
      }
      default:
        return {};
    }
  }
  Ends Scaled(const Ends& a, const PrimExpr& by) {
    const ConstIntBound sign = analyzer_->Bound(by);
    if (sign.min >= 0) return {Op2(NodeKind::kMul, a.lo, by), Op2(NodeKind::kMul, a.hi, by)};
    if (sign.max <= 0) return {Op2(NodeKind::kMul, a.hi, by), Op2(NodeKind::kMul, a.lo, by)};
    const PrimExpr x = Op2(NodeKind::kMul, a.lo, by), y = Op2(NodeKind::kMul, a.hi, by);
    return {Op2(NodeKind::kMin, x, y), Op2(NodeKind::kMax, x, y)};
  }
  Ends Product(const Ends& a, const Ends& b) {
    Ends out;
    for (const PrimExpr& x : {a.lo, a.hi}) {
      for (const PrimExpr& y : {b.lo, b.hi}) {
        const PrimExpr p = Op2(NodeKind::kMul, x, y);
        if (!p.defined()) return {};
        out.lo = out.lo.defined() ? Op2(NodeKind::kMin, out.lo, p) : p;
        out.hi = out.hi.defined() ? Op2(NodeKind::kMax, out.hi, p) : p;
      }
    }
    return out;
  }

  const Domains& domains_;
  Analyzer* analyzer_;
  std::unordered_map<const Object*, Ends> known_;
};

/// Variables of the domains have their bounds while the analyzer lives.
void BindDomains(const Domains& domains, Analyzer* analyzer) {
  for (const auto& [var, set] : domains) {
    const auto* interval = set.as<IntervalSetNode>();
    if (!interval) continue;
    const ConstIntBound lo = analyzer->Bound(interval->min_value), hi = analyzer->Bound(interval->max_value);
    if (interval->min_value.same_as(NegInf()) || interval->max_value.same_as(PosInf()) ||
        lo.min <= ConstIntBound::kNegInf / 4 || hi.max >= ConstIntBound::kPosInf / 4 || hi.max < lo.min) {
      if (!interval->min_value.same_as(NegInf()) && lo.min > ConstIntBound::kNegInf / 4)
        analyzer->Assume(tir::GE(var, tir::make_int(var->dtype, lo.min)));
      continue;
    }
    analyzer->Bind(var, tir::make_int(var->dtype, lo.min), tir::make_int(var->dtype, hi.max - lo.min + 1));
  }
}

}  // namespace

PrimExpr PosInf() {
  static const tir::Var inf("pos_inf", DataType::Handle());
  return inf;
}
PrimExpr NegInf() {
  static const tir::Var inf("neg_inf", DataType::Handle());
  return inf;
}
IntervalSet IntervalSet::Nothing() { return IntervalSet(PosInf(), NegInf()); }
IntervalSet IntervalSet::Everything() { return IntervalSet(NegInf(), PosInf()); }

IntervalSet EvalSet(const PrimExpr& e, const Domains& domains, Analyzer* analyzer) {
  for (const auto& [var, set] : domains) {
    const auto* interval = set.as<IntervalSetNode>();
    if (interval && interval->min_value.same_as(PosInf()) && tir::UsesVar(e, var.get())) return IntervalSet::Nothing();
  }
  const Ends ends = SetEvaluator(domains, analyzer).Eval(e);
  return IntervalSet(ends.lo.defined() ? analyzer->Simplify(ends.lo) : NegInf(),
                     ends.hi.defined() ? analyzer->Simplify(ends.hi) : PosInf());
}

IntervalSet UnionLowerBound(const Array<IntSet>& sets) {
  Analyzer analyzer;
  IntervalSet out = IntervalSet::Nothing();
  bool first = true;
  for (const IntSet& set : sets) {
    const auto* s = set.as<IntervalSetNode>();
    if (!s || s->min_value.same_as(PosInf())) continue;
    if (first) {
      out = GetRef<IntervalSet>(s);
      first = false;
      continue;
    }
    // Whether `b` begins within `a` or right behind it; both ends of what is compared are numbers then.
    const auto reaches = [&](const PrimExpr& a_max, const PrimExpr& b_min) {
      if (a_max.same_as(PosInf()) || b_min.same_as(NegInf())) return true;
      if (b_min.same_as(PosInf()) || a_max.same_as(NegInf())) return false;
      return analyzer.CanProve(tir::LE(b_min, tir::Add(a_max, Number(a_max, 1))));
    };
    if (!reaches(out->max_value, s->min_value) || !reaches(s->max_value, out->min_value)) continue;
    const auto end = [&](const PrimExpr& a, const PrimExpr& b, const PrimExpr& none, NodeKind kind) {
      return a.same_as(none) || b.same_as(none) ? none : analyzer.Simplify(tir::FoldBinary(kind, a, b));
    };
    out = IntervalSet(end(out->min_value, s->min_value, NegInf(), NodeKind::kMin),
                      end(out->max_value, s->max_value, PosInf(), NodeKind::kMax));
  }
  return out;
}

namespace {

/// The one comparison `var * 1 >= value` or `<=` that a condition is, found from outside inwards.
class Deducer {
 public:
  Deducer(const tir::Var& var, const Domains& hint, const Domains& relax) : var_(var), relax_(relax) {
    BindDomains(hint, &analyzer_);
    BindDomains(relax, &analyzer_);
  }

  IntervalSet Solve(const PrimExpr& condition) {
    bool any = false;
    for (const PrimExpr& c : Conjuncts(condition)) {
      if (!tir::UsesVar(c, var_.get())) {
        if (!analyzer_.CanProve(c)) return IntervalSet::Nothing();
        continue;
      }
      if (!Compare(c)) return IntervalSet::Nothing();
      any = true;
    }
    if (!any) return IntervalSet::Nothing();
    if (lo_.defined() && hi_.defined() && analyzer_.CanProve(tir::LT(hi_, lo_))) return IntervalSet::Nothing();
    return IntervalSet(lo_.defined() ? analyzer_.Simplify(lo_) : NegInf(),
                       hi_.defined() ? analyzer_.Simplify(hi_) : PosInf());
  }

 private:
  bool Compare(const PrimExpr& c) {
    const NodeKind kind = tir::KindOf(c.get());
    if (kind < NodeKind::kEQ || kind > NodeKind::kGE || kind == NodeKind::kNE) return false;
    const auto* n = static_cast<const tir::LTNode*>(c.get());
    if (!n->a.dtype().is_integral() || n->a.dtype().is_uint() || n->a.dtype().is_vector()) return false;
    PrimExpr a = n->a, b = n->b;
    const PrimExpr one = Number(a, 1);
    const bool left = tir::UsesVar(a, var_.get()), right = tir::UsesVar(b, var_.get());
    if (left && right) {
      a = Op2(NodeKind::kSub, a, b);
      b = Number(a, 0);
    } else if (right) {
      // b > a is a < b.
      static const NodeKind mirrored[] = {NodeKind::kEQ, NodeKind::kNE, NodeKind::kGT,
                                          NodeKind::kGE, NodeKind::kLT, NodeKind::kLE};
      return Ordered(b, a, mirrored[static_cast<int>(kind) - static_cast<int>(NodeKind::kEQ)], one);
    }
    return Ordered(a, b, kind, one);
  }
  bool Ordered(const PrimExpr& a, const PrimExpr& b, NodeKind kind, const PrimExpr& one) {
    if (kind == NodeKind::kEQ) return Invert(a, b, true) && Invert(a, b, false);
    if (kind == NodeKind::kGE) return Invert(a, b, true);
    if (kind == NodeKind::kLE) return Invert(a, b, false);
    if (kind == NodeKind::kGT) return Invert(a, Op2(NodeKind::kAdd, b, one), true);
    return Invert(a, Op2(NodeKind::kSub, b, one), false);
  }
  /// `e` is at least `v` (`at_least`), or at most.
  bool Invert(PrimExpr e, PrimExpr v, bool at_least) {
    bool as_sum = false;
    while (!e.same_as(var_)) {
      const NodeKind kind = tir::KindOf(e.get());
      const auto* n = static_cast<const tir::AddNode*>(e.get());
      const bool binary =
          kind == NodeKind::kAdd || kind == NodeKind::kSub || kind == NodeKind::kMul || kind == NodeKind::kFloorDiv;
      if (!binary) return false;
      const bool in_a = tir::UsesVar(n->a, var_.get()), in_b = tir::UsesVar(n->b, var_.get());
      if (in_a && in_b) {
        // Once more as a product of the variable and a rest.
        if (as_sum) return false;
        as_sum = true;
        const Array<PrimExpr> parts = DetectLinearEquation(e, {var_});
        if (parts.empty()) return false;
        v = Op2(NodeKind::kSub, v, parts[1]);
        e = tir::Mul(var_, parts[0]);
        continue;
      }
      const PrimExpr inner = in_a ? n->a : n->b, other = in_a ? n->b : n->a;
      if (kind == NodeKind::kAdd) {
        v = Op2(NodeKind::kSub, v, other);
      } else if (kind == NodeKind::kSub) {
        v = in_a ? Op2(NodeKind::kAdd, v, other) : Op2(NodeKind::kSub, other, v);
        if (!in_a) at_least = !at_least;
      } else if (kind == NodeKind::kMul) {
        PrimExpr by = other;
        const ConstIntBound sign = analyzer_.Bound(by);
        if (sign.max <= -1) {
          by = Op2(NodeKind::kSub, Number(by, 0), by), v = Op2(NodeKind::kSub, Number(v, 0), v);
          at_least = !at_least;
        } else if (sign.min < 1) {
          return false;
        }
        if (at_least) v = Op2(NodeKind::kAdd, v, Op2(NodeKind::kSub, by, Number(by, 1)));  // rounds up
        v = Op2(NodeKind::kFloorDiv, v, by);
      } else {
        if (!in_a || analyzer_.Bound(other).min < 1) return false;
        v = Op2(NodeKind::kMul, v, other);
        if (!at_least) v = Op2(NodeKind::kAdd, v, Op2(NodeKind::kSub, other, Number(other, 1)));
      }
      v = analyzer_.Simplify(v);
      e = inner;
    }
    // For the worst of the variables that may have any value.
    const IntervalSet set = EvalSet(v, relax_, &analyzer_);
    const PrimExpr end = at_least ? set->max_value : set->min_value;
    if (end.same_as(PosInf()) || end.same_as(NegInf())) return false;
    PrimExpr& mine = at_least ? lo_ : hi_;
    mine = mine.defined() ? tir::FoldBinary(at_least ? NodeKind::kMax : NodeKind::kMin, mine, end) : end;
    return true;
  }

  tir::Var var_;
  const Domains& relax_;
  Analyzer analyzer_;
  PrimExpr lo_, hi_;
};

}  // namespace

IntervalSet DeduceBound(const tir::Var& var, const PrimExpr& condition, const Domains& hint, const Domains& relax) {
  return Deducer(var, hint, relax).Solve(condition);
}

namespace {
const RegisterNodes<IntSetNode, IntervalSetNode> registered_int_set;
BATON_REGISTER_GLOBAL("arith.PosInf").set_body_typed([]() { return PosInf(); });
BATON_REGISTER_GLOBAL("arith.NegInf").set_body_typed([]() { return NegInf(); });
BATON_REGISTER_GLOBAL("arith.EvalSet").set_body_typed([](PrimExpr e, Domains domains) {
  Analyzer analyzer;
  return EvalSet(e, domains, &analyzer);
});
BATON_REGISTER_GLOBAL("arith.DeduceBound").set_body_typed([](tir::Var v, PrimExpr c, Domains hint, Domains relax) {
  return DeduceBound(v, c, hint, relax);
});
BATON_REGISTER_GLOBAL("arith.UnionLowerBound").set_body_typed([](Array<IntSet> sets) { return UnionLowerBound(sets); });
BATON_REGISTER_GLOBAL("arith.DetectLinearEquation").set_body_typed([](PrimExpr e, Array<tir::Var> vars) {
  return DetectLinearEquation(e, vars);
});
BATON_REGISTER_GLOBAL("arith.DetectClipBound").set_body_typed([](PrimExpr e, Array<tir::Var> vars) {
  return DetectClipBound(e, vars);
});
}  // namespace
}  // namespace baton::arith
