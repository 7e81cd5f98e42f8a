// SPDX-License-Identifier: Apache-2.0
// Operators that match dtypes and fold literals; casts.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "tir/literals.h"

namespace baton {
namespace literals {

[[noreturn]] void Fail(const std::string& message) { throw runtime::TypeError(message); }

/// The dtype in which numbers of two are computed: the wider of one kind, the floating one, a signed one; no lanes
/// where there is none.
DataType Common(DataType a, DataType b) {
  auto number = [](DataType t) { return t.is_int() || t.is_uint() || t.is_floating(); };
  if (!number(a) || !number(b) || a.is_bool() || b.is_bool()) return DataType::Void().with_lanes(0);
  if (a.is_floating() != b.is_floating()) return a.is_floating() ? a : b;
  if (a.is_floating() && a.bits() == b.bits()) return DataType::Void().with_lanes(0);  // float16 and bfloat16
  const int bits = std::max(a.bits(), b.bits());
  if (a.is_floating() || a.code() == b.code()) return a.bits() < b.bits() ? b : a;
  return DataType::Int(bits, a.lanes());
}

void Match(const char* name, PrimExpr* a, PrimExpr* b) {
  if (!a->defined() || !b->defined()) Fail(fmt::format("an operand of `{}` is null", name));
  DataType ta = a->dtype(), tb = b->dtype();
  if (ta.lanes() != tb.lanes()) {
    if (ta.lanes() == 1) {
      *a = tir::Broadcast(*a, tb.lanes());
    } else if (tb.lanes() == 1) {
      *b = tir::Broadcast(*b, ta.lanes());
    } else {
      Fail(fmt::format("`{}` of {} and {}: different numbers of lanes", name, TypeName(*a), TypeName(*b)));
    }
    ta = a->dtype(), tb = b->dtype();
  }
  if (ta == tb) return;
  bool la = Literal(*a).defined(), lb = Literal(*b).defined();
  // A literal takes the other's dtype unless that would lose its fraction.
  if (la && (!lb || Rank(ta) < Rank(tb)) && Rank(ta) <= Rank(tb)) {
    *a = cast(tb, *a);
  } else if (lb && Rank(tb) <= Rank(ta)) {
    *b = cast(ta, *b);
  } else if (const DataType t = Common(ta, tb); t.lanes() > 0) {
    if (!(ta == t)) *a = cast(t, *a);
    if (!(tb == t)) *b = cast(t, *b);
  } else {
    Fail(fmt::format("`{}` of {} and {}: dtypes differ; cast one of them", name, TypeName(*a), TypeName(*b)));
  }
}

}  // namespace literals

namespace {
using literals::AsFloat;
using literals::AsInt;
using literals::Fail;
using literals::FloatLit;
using literals::IntLit;
using literals::Literal;
using literals::Match;
using literals::TypeName;
using literals::Wrap;
using tir::NodeKind;

int64_t FloorDivInt(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

/// Value of a binary operation on integer literals; nothing if it cannot be had (division by zero).
std::optional<__int128> EvalInt(NodeKind k, DataType t, int64_t a, int64_t b) {
  switch (k) {
    case NodeKind::kAdd:
      return static_cast<__int128>(a) + b;
    case NodeKind::kSub:
      return static_cast<__int128>(a) - b;
    case NodeKind::kMul:
      return static_cast<__int128>(a) * b;
    case NodeKind::kMin:
      return a < b ? a : b;
    case NodeKind::kMax:
      return a > b ? a : b;
    case NodeKind::kEQ:
      return a == b;
    case NodeKind::kNE:
      return a != b;
    case NodeKind::kLT:
      return a < b;
    case NodeKind::kLE:
      return a <= b;
    case NodeKind::kGT:
      return a > b;
    case NodeKind::kGE:
      return a >= b;
    case NodeKind::kAnd:
      return a && b;
    case NodeKind::kOr:
      return a || b;
    default:
      break;
  }
  if (b == 0 || t.is_bool()) return std::nullopt;
  if (b == -1) {  // the smallest value over -1 leaves int64
    return k == NodeKind::kDiv || k == NodeKind::kFloorDiv ? -static_cast<__int128>(a) : static_cast<__int128>(0);
  }
  switch (k) {
    case NodeKind::kDiv:
      return a / b;
    case NodeKind::kMod:
      return a % b;
    case NodeKind::kFloorDiv:
      return FloorDivInt(a, b);
    case NodeKind::kFloorMod:
      return static_cast<__int128>(a) - static_cast<__int128>(FloorDivInt(a, b)) * b;
    default:
      return std::nullopt;
  }
}
std::optional<double> EvalFloat(NodeKind k, double a, double b) {
  switch (k) {
    case NodeKind::kAdd:
      return a + b;
    case NodeKind::kSub:
      return a - b;
    case NodeKind::kMul:
      return a * b;
    case NodeKind::kDiv:
      return a / b;
    case NodeKind::kMin:
      return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b;
    case NodeKind::kMax:
      return std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b;
    default:
      return std::nullopt;
  }
}
std::optional<bool> CompareFloat(NodeKind k, double a, double b) {
  switch (k) {
    case NodeKind::kEQ:
      return a == b;
    case NodeKind::kNE:
      return a != b;
    case NodeKind::kLT:
      return a < b;
    case NodeKind::kLE:
      return a <= b;
    case NodeKind::kGT:
      return a > b;
    case NodeKind::kGE:
      return a >= b;
    default:
      return std::nullopt;
  }
}
bool IsCompare(NodeKind k) { return k >= NodeKind::kEQ && k <= NodeKind::kGE; }

PrimExpr Raw(NodeKind k, const PrimExpr& a, const PrimExpr& b) {
  switch (k) {
#define BATON_TIR_RAW(Name) \
  case NodeKind::k##Name:   \
    return tir::Name(a, b);
    BATON_TIR_BINARY_LIST(BATON_TIR_RAW)
#undef BATON_TIR_RAW
    default:
      tir::ThrowNoVisit(a.get());
  }
}
/// Simplifications that hold for one literal operand of integers and bools, and the exact ones of floats.
PrimExpr FoldOneSide(NodeKind k, const PrimExpr& a, const PrimExpr& b) {
  PrimExpr la = Literal(a), lb = Literal(b);
  auto is = [](const PrimExpr& l, int64_t v) { return l.defined() && AsInt(l) && AsInt(l)->value == v; };
  if (a.dtype().is_integral()) {
    switch (k) {
      case NodeKind::kAdd:
        if (is(la, 0)) return b;
        if (is(lb, 0)) return a;
        break;
      case NodeKind::kSub:
        if (is(lb, 0)) return a;
        if (a.same_as(b)) return tir::make_int(a.dtype(), 0);
        break;
      case NodeKind::kMul:
        if (is(la, 1) || is(lb, 0)) return b;
        if (is(lb, 1) || is(la, 0)) return a;
        break;
      case NodeKind::kDiv:
      case NodeKind::kFloorDiv:
        if (is(lb, 1) || (is(la, 0) && lb.defined() && !is(lb, 0))) return a;
        break;
      case NodeKind::kMod:
      case NodeKind::kFloorMod:
        if (is(lb, 1)) return tir::make_int(a.dtype(), 0);
        if (is(la, 0) && lb.defined() && !is(lb, 0)) return a;
        break;
      case NodeKind::kMin:
      case NodeKind::kMax:
        if (a.same_as(b)) return a;
        break;
      case NodeKind::kEQ:
      case NodeKind::kLE:
      case NodeKind::kGE:
        if (a.same_as(b)) return tir::make_int(DataType::Bool(a.dtype().lanes()), 1);
        break;
      case NodeKind::kNE:
      case NodeKind::kLT:
      case NodeKind::kGT:
        if (a.same_as(b)) return tir::make_int(DataType::Bool(a.dtype().lanes()), 0);
        break;
      default:
        break;
    }
  } else if (a.dtype().is_bool()) {
    if (k == NodeKind::kAnd) {
      if (is(la, 1) || is(lb, 0)) return b;
      if (is(lb, 1) || is(la, 0)) return a;
    } else if (k == NodeKind::kOr) {
      if (is(la, 0) || is(lb, 1)) return b;
      if (is(lb, 0) || is(la, 1)) return a;
    }
  } else if (a.dtype().is_float()) {
    auto isf = [](const PrimExpr& l, double v) { return l.defined() && AsFloat(l) && AsFloat(l)->value == v; };
    if (k == NodeKind::kMul && isf(la, 1)) return b;
    if ((k == NodeKind::kMul || k == NodeKind::kDiv) && isf(lb, 1)) return a;
  }
  return PrimExpr();
}

PrimExpr MakeBinary(NodeKind k, const char* name, PrimExpr a, PrimExpr b) {
  Match(name, &a, &b);
  return tir::FoldBinary(k, a, b);
}
}  // namespace

namespace tir {
PrimExpr FoldBinary(NodeKind k, const PrimExpr& a, const PrimExpr& b) {
  if (!(a.dtype() == b.dtype())) {
    // After a rewrite one side may have become a vector.
    if (a.dtype().element_of() == b.dtype().element_of() && (a.dtype().is_scalar() || b.dtype().is_scalar())) {
      int lanes = a.dtype().lanes() > b.dtype().lanes() ? a.dtype().lanes() : b.dtype().lanes();
      return FoldBinary(k, broadcast_to(a, lanes), broadcast_to(b, lanes));
    }
    return Raw(k, a, b);
  }
  DataType t = a.dtype(), rt = IsCompare(k) ? DataType::Bool(t.lanes()) : t;
  PrimExpr la = Literal(a), lb = Literal(b);
  if (la.defined() && lb.defined()) {
    if (AsInt(la) && AsInt(lb)) {
      // A literal of uint64 above the largest int64 has its bits in a negative value: left to the machine.
      bool high = t.is_uint() && (AsInt(la)->value < 0 || AsInt(lb)->value < 0);
      auto v = high ? std::nullopt : EvalInt(k, t, AsInt(la)->value, AsInt(lb)->value);
      if (v) {
        auto w = Wrap(rt, *v);
        if (w) return broadcast_to(IntLit(rt.element_of(), *w), t.lanes());
      }
    } else if (AsFloat(la) && AsFloat(lb)) {
      double x = AsFloat(la)->value, y = AsFloat(lb)->value;
      if (auto v = EvalFloat(k, x, y)) {
        // Products and quotients of float32 in double round once more; that is exact for 24-bit significands.
        return broadcast_to(FloatLit(t.element_of(), *v), t.lanes());
      }
      if (auto c = CompareFloat(k, x, y)) return broadcast_to(IntLit(DataType::Bool(), *c), t.lanes());
    }
  }
  if (PrimExpr e = FoldOneSide(k, a, b); e.defined()) return e;
  // Index vectors stay in the form base + lane * stride.
  if (t.is_int() && t.is_vector()) {
    const auto *ra = a.as<RampNode>(), *rb = b.as<RampNode>();
    const auto *ba = a.as<BroadcastNode>(), *bb = b.as<BroadcastNode>();
    if (k == NodeKind::kAdd || k == NodeKind::kSub) {
      if (ra && bb) return Ramp(FoldBinary(k, ra->base, bb->value), ra->stride, ra->lanes);
      if (ba && rb && k == NodeKind::kAdd) return Ramp(ba->value + rb->base, rb->stride, rb->lanes);
      if (ra && rb) return Ramp(FoldBinary(k, ra->base, rb->base), FoldBinary(k, ra->stride, rb->stride), ra->lanes);
    } else if (k == NodeKind::kMul) {
      if (ra && bb) return Ramp(ra->base * bb->value, ra->stride * bb->value, ra->lanes);
      if (ba && rb) return Ramp(rb->base * ba->value, rb->stride * ba->value, rb->lanes);
    }
    if (ba && bb && !IsCompare(k)) return Broadcast(FoldBinary(k, ba->value, bb->value), t.lanes());
  }
  return Raw(k, a, b);
}
}  // namespace tir

#define BATON_TIR_OPERATOR(sym, Name)                                       \
  PrimExpr operator sym(PrimExpr a, PrimExpr b) {                           \
    return MakeBinary(NodeKind::k##Name, #sym, std::move(a), std::move(b)); \
  }
BATON_TIR_OPERATOR(+, Add)
BATON_TIR_OPERATOR(-, Sub)
BATON_TIR_OPERATOR(*, Mul)
BATON_TIR_OPERATOR(<, LT)
BATON_TIR_OPERATOR(<=, LE)
BATON_TIR_OPERATOR(>, GT)
BATON_TIR_OPERATOR(>=, GE)
#define BATON_TIR_FUNCTION(name, Name) \
  PrimExpr name(PrimExpr a, PrimExpr b) { return MakeBinary(NodeKind::k##Name, #name, std::move(a), std::move(b)); }
BATON_TIR_FUNCTION(equal, EQ)
BATON_TIR_FUNCTION(not_equal, NE)
BATON_TIR_FUNCTION(min, Min)
BATON_TIR_FUNCTION(max, Max)
#define BATON_TIR_INT_FUNCTION(name, Name)                                                              \
  PrimExpr name(PrimExpr a, PrimExpr b) {                                                               \
    Match(#name, &a, &b);                                                                               \
    if (!a.dtype().is_integral()) Fail(fmt::format("`{}` takes integers, got {}", #name, TypeName(a))); \
    return tir::FoldBinary(NodeKind::k##Name, a, b);                                                    \
  }
BATON_TIR_INT_FUNCTION(truncdiv, Div)
BATON_TIR_INT_FUNCTION(truncmod, Mod)
BATON_TIR_INT_FUNCTION(floordiv, FloorDiv)
BATON_TIR_INT_FUNCTION(floormod, FloorMod)
#define BATON_TIR_BOOL_FUNCTION(sym, Name)                                                     \
  PrimExpr operator sym(PrimExpr a, PrimExpr b) {                                              \
    Match(#sym, &a, &b);                                                                       \
    if (!a.dtype().is_bool()) Fail(fmt::format("`{}` takes bool, got {}", #sym, TypeName(a))); \
    return tir::FoldBinary(NodeKind::k##Name, a, b);                                           \
  }
BATON_TIR_BOOL_FUNCTION(&&, And)
BATON_TIR_BOOL_FUNCTION(||, Or)

PrimExpr operator-(PrimExpr a) {
  if (!a.defined()) Fail("the operand of `-` is null");
  if (PrimExpr l = Literal(a); l.defined()) {
    if (AsFloat(l)) return tir::broadcast_to(FloatLit(l.dtype(), -AsFloat(l)->value), a.dtype().lanes());
    if (auto w = Wrap(l.dtype(), -static_cast<__int128>(AsInt(l)->value)))
      return tir::broadcast_to(IntLit(l.dtype(), *w), a.dtype().lanes());
  }
  // For floats the negative of zero is -0: subtract from it.
  return a.dtype().is_floating() ? tir::Sub(tir::make_const(a.dtype(), -0.0), a) : tir::make_int(a.dtype(), 0) - a;
}
PrimExpr operator/(PrimExpr a, PrimExpr b) {
  Match("/", &a, &b);
  if (!a.dtype().is_floating()) {
    Fail(fmt::format("`/` of {}: for integers say which division, truncdiv or floordiv", TypeName(a)));
  }
  return tir::FoldBinary(NodeKind::kDiv, a, b);
}
PrimExpr ceildiv(PrimExpr a, PrimExpr b) {
  Match("ceildiv", &a, &b);
  return floordiv(a + b - tir::make_int(a.dtype(), 1), b);
}
PrimExpr operator!(PrimExpr a) {
  if (!a.defined()) Fail("the operand of `!` is null");
  if (PrimExpr l = Literal(a); l.defined() && AsInt(l) && l.dtype().is_bool()) {
    return tir::broadcast_to(IntLit(l.dtype(), !AsInt(l)->value), a.dtype().lanes());
  }
  if (const auto* n = a.as<tir::NotNode>()) return n->a;
  return tir::Not(a);
}
PrimExpr cast(DataType t, PrimExpr value) {
  if (!value.defined()) Fail("the operand of `cast` is null");
  if (value.dtype() == t) return value;
  if (t.lanes() != value.dtype().lanes() && value.dtype().is_scalar())
    return tir::Broadcast(cast(t.element_of(), value), t.lanes());
  if (PrimExpr l = Literal(value); l.defined() && t.lanes() == value.dtype().lanes()) {
    DataType e = t.element_of();
    if (AsInt(l)) {
      if (e.is_floating() && !e.is_float8() && !e.is_float4()) {
        return tir::broadcast_to(FloatLit(e, static_cast<double>(AsInt(l)->value)), t.lanes());
      }
      if (e.is_integral() || e.is_bool()) {
        if (auto w = Wrap(e, AsInt(l)->value)) return tir::broadcast_to(IntLit(e, *w), t.lanes());
      }
    } else {
      double v = AsFloat(l)->value;
      if (e.is_floating() && !e.is_float8() && !e.is_float4()) return tir::broadcast_to(FloatLit(e, v), t.lanes());
      if (e.is_bool()) return tir::broadcast_to(IntLit(e, v != 0), t.lanes());
      // Out of range conversions differ between machines; they stay for the one that runs them.
      double limit =
          std::ldexp(1.0, (e.is_int() ? e.bits() - 1 : e.bits()) < 62 ? (e.is_int() ? e.bits() - 1 : e.bits()) : 62);
      if (e.is_integral() && v > (e.is_int() ? -limit - 1 : -1) && v < limit) {
        return tir::broadcast_to(IntLit(e, static_cast<int64_t>(v)), t.lanes());
      }
    }
  }
  if (t.is_vector() && value.as<tir::BroadcastNode>()) {
    return tir::Broadcast(cast(t.element_of(), value.as<tir::BroadcastNode>()->value), t.lanes());
  }
  if (const auto* r = value.as<tir::RampNode>(); r && t.is_int() && t.bits() >= value.dtype().bits()) {
    return tir::Ramp(cast(t.element_of(), r->base), cast(t.element_of(), r->stride), r->lanes);
  }
  return tir::Cast(t, value);
}

}  // namespace baton
