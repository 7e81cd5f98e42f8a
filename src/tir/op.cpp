// SPDX-License-Identifier: Apache-2.0
// Operators that match dtypes and fold literals; intrinsics.
#include <baton/tir/functor.h>
#include <baton/tir/op.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

namespace baton {
namespace {
using tir::NodeKind;

[[noreturn]] void Fail(const std::string& message) { throw runtime::TypeError(message); }
std::string TypeName(const PrimExpr& e) { return e.defined() ? DataType2String(e.dtype()) : "null"; }

/// The value as dtype holds it after wrapping; nothing if a literal cannot hold it.
std::optional<int64_t> Wrap(DataType t, __int128 v) {
  int bits = t.is_bool() ? 1 : t.bits();
  if (t.is_bool()) return v != 0;
  unsigned __int128 mask = (static_cast<unsigned __int128>(1) << bits) - 1;
  unsigned __int128 u = static_cast<unsigned __int128>(v) & mask;
  if (t.is_uint()) {
    if (u > static_cast<unsigned __int128>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(u);
  }
  if (bits == 64) return static_cast<int64_t>(static_cast<uint64_t>(u));
  int64_t s = static_cast<int64_t>(static_cast<uint64_t>(u));
  if (s >> (bits - 1)) s -= static_cast<int64_t>(1) << bits;
  return s;
}
PrimExpr IntLit(DataType t, int64_t v) {
  IntImmNode n;
  n.dtype = t, n.value = v;
  return IntImm(std::move(n));
}
/// A double rounded to what the floating dtype holds; float8 and float4 stay as they are.
double RoundTo(DataType t, double v) {
  if (t.is_float() && t.bits() == 32) return static_cast<double>(static_cast<float>(v));
  if (t.is_float() && t.bits() == 16) return static_cast<double>(static_cast<_Float16>(v));
  if (t.is_bfloat16()) {
    float f = static_cast<float>(v);
    if (std::isnan(f)) return f;
    uint32_t u;
    std::memcpy(&u, &f, 4);
    u = (u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000u;
    std::memcpy(&f, &u, 4);
    return f;
  }
  return v;
}
PrimExpr FloatLit(DataType t, double v) {
  FloatImmNode n;
  n.dtype = t, n.value = RoundTo(t, v);
  return FloatImm(std::move(n));
}
const IntImmNode* AsInt(const PrimExpr& e) { return e.as<IntImmNode>(); }
const FloatImmNode* AsFloat(const PrimExpr& e) { return e.as<FloatImmNode>(); }
/// A literal, or a broadcast one; null otherwise.
PrimExpr Literal(const PrimExpr& e) {
  if (AsInt(e) || AsFloat(e)) return e;
  if (const auto* b = e.as<tir::BroadcastNode>()) return AsInt(b->value) || AsFloat(b->value) ? b->value : PrimExpr();
  return PrimExpr();
}

int Rank(DataType t) {  // how dtypes win when operands differ
  if (t.is_bool()) return 0;
  if (t.is_integral()) return 1;
  return 2;
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
  } else if (ta.is_int() && tb.is_int()) {
    if (ta.bits() < tb.bits())
      *a = cast(tb, *a);
    else
      *b = cast(ta, *b);
  } else {
    Fail(fmt::format("`{}` of {} and {}: dtypes differ; cast one of them", name, TypeName(*a), TypeName(*b)));
  }
}

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
PrimExpr reinterpret(DataType t, PrimExpr value) {
  if (!value.defined()) Fail("the operand of `reinterpret` is null");
  if (value.dtype() == t) return value;
  if (t.bits() * t.lanes() != value.dtype().bits() * value.dtype().lanes()) {
    Fail(fmt::format("reinterpret from {} to {}: sizes differ", TypeName(value), DataType2String(t)));
  }
  if (PrimExpr l = Literal(value); l.defined() && t.lanes() == value.dtype().lanes()) {
    DataType s = l.dtype(), e = t.element_of();
    if (s.bits() == 32 && AsInt(l) && e.is_float()) {
      uint32_t u = static_cast<uint32_t>(AsInt(l)->value);
      float f;
      std::memcpy(&f, &u, 4);
      if (!std::isnan(f)) return tir::broadcast_to(FloatLit(e, f), t.lanes());
    } else if (s.bits() == 32 && AsFloat(l) && s.is_float() && e.is_integral()) {
      float f = static_cast<float>(AsFloat(l)->value);
      int32_t i;
      std::memcpy(&i, &f, 4);
      if (auto w = Wrap(e, i)) return tir::broadcast_to(IntLit(e, *w), t.lanes());
    }
  }
  return tir::call_intrin(t, "tir.reinterpret", {value});
}
PrimExpr if_then_else(PrimExpr cond, PrimExpr t, PrimExpr f) {
  if (!cond.defined() || !cond.dtype().is_bool())
    Fail(fmt::format("the condition of if_then_else has dtype {}, not bool", TypeName(cond)));
  Match("if_then_else", &t, &f);
  if (PrimExpr l = Literal(cond); l.defined() && AsInt(l)) return AsInt(l)->value ? t : f;
  return tir::call_intrin(t.dtype(), "tir.if_then_else", {cond, t, f});
}

// ---------------------------------------------------------------- intrinsics
namespace {
enum class Domain { kFloat, kNumber, kInt, kTest };
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Rsqrt(double x) { return 1 / std::sqrt(x); }
double Exp2(double x) { return std::exp2(x); }

PrimExpr Unary(const char* name, Domain domain, double (*fn)(double), PrimExpr x) {
  if (!x.defined()) Fail(fmt::format("the operand of `{}` is null", name + 4));
  DataType t = x.dtype();
  bool ok = domain == Domain::kInt      ? t.is_integral() || t.is_bool()
            : domain == Domain::kNumber ? t.is_integral() || t.is_floating()
                                        : t.is_floating();
  if (!ok)
    Fail(fmt::format("`{}` takes {}, got {}", name + 4, domain == Domain::kInt ? "integers" : "floats", TypeName(x)));
  if (fn) {
    if (PrimExpr l = Literal(x); l.defined() && AsFloat(l))
      return tir::broadcast_to(FloatLit(l.dtype(), fn(AsFloat(l)->value)), t.lanes());
  }
  return tir::call_intrin(domain == Domain::kTest ? DataType::Bool(t.lanes()) : t, name, {std::move(x)});
}
PrimExpr FloatTest(const char* name, bool (*fn)(double), PrimExpr x) {
  if (x.defined() && x.dtype().is_integral()) return tir::make_int(DataType::Bool(x.dtype().lanes()), fn(0.0));
  if (x.defined()) {
    if (PrimExpr l = Literal(x); l.defined() && AsFloat(l)) {
      return tir::make_int(DataType::Bool(x.dtype().lanes()), fn(AsFloat(l)->value));
    }
  }
  return Unary(name, Domain::kTest, nullptr, std::move(x));
}
}  // namespace

#define BATON_TIR_UNARY(name, fn) \
  PrimExpr name(PrimExpr x) { return Unary("tir." #name, Domain::kFloat, fn, std::move(x)); }
BATON_TIR_UNARY(exp, std::exp)
BATON_TIR_UNARY(exp2, Exp2)
BATON_TIR_UNARY(log, std::log)
BATON_TIR_UNARY(log2, std::log2)
BATON_TIR_UNARY(log10, std::log10)
BATON_TIR_UNARY(log1p, std::log1p)
BATON_TIR_UNARY(sqrt, std::sqrt)
BATON_TIR_UNARY(rsqrt, Rsqrt)
BATON_TIR_UNARY(sin, std::sin)
BATON_TIR_UNARY(cos, std::cos)
BATON_TIR_UNARY(tan, std::tan)
BATON_TIR_UNARY(sinh, std::sinh)
BATON_TIR_UNARY(cosh, std::cosh)
BATON_TIR_UNARY(tanh, std::tanh)
BATON_TIR_UNARY(asin, std::asin)
BATON_TIR_UNARY(acos, std::acos)
BATON_TIR_UNARY(atan, std::atan)
BATON_TIR_UNARY(asinh, std::asinh)
BATON_TIR_UNARY(acosh, std::acosh)
BATON_TIR_UNARY(atanh, std::atanh)
BATON_TIR_UNARY(erf, std::erf)
BATON_TIR_UNARY(sigmoid, Sigmoid)
// Rounding leaves integers as they are.
#define BATON_TIR_ROUND(name, fn)                                 \
  PrimExpr name(PrimExpr x) {                                     \
    if (x.defined() && x.dtype().is_integral()) return x;         \
    return Unary("tir." #name, Domain::kFloat, fn, std::move(x)); \
  }
BATON_TIR_ROUND(floor, std::floor)
BATON_TIR_ROUND(ceil, std::ceil)
BATON_TIR_ROUND(trunc, std::trunc)
BATON_TIR_ROUND(round, std::round)
BATON_TIR_ROUND(nearbyint, std::nearbyint)
PrimExpr fabs(PrimExpr x) { return Unary("tir.fabs", Domain::kFloat, std::fabs, std::move(x)); }
PrimExpr isnan(PrimExpr x) {
  return FloatTest("tir.isnan", [](double v) { return std::isnan(v); }, std::move(x));
}
PrimExpr isinf(PrimExpr x) {
  return FloatTest("tir.isinf", [](double v) { return std::isinf(v); }, std::move(x));
}
PrimExpr isfinite(PrimExpr x) {
  return FloatTest("tir.isfinite", [](double v) { return std::isfinite(v); }, std::move(x));
}
PrimExpr popcount(PrimExpr x) { return Unary("tir.popcount", Domain::kInt, nullptr, std::move(x)); }
PrimExpr bitwise_not(PrimExpr x) {
  if (x.defined() && x.dtype().is_bool()) return !x;
  return Unary("tir.bitwise_not", Domain::kInt, nullptr, std::move(x));
}
PrimExpr abs(PrimExpr x) {
  if (x.defined() && x.dtype().is_floating()) return fabs(x);
  if (!x.defined() || !x.dtype().is_integral()) Fail(fmt::format("`abs` takes numbers, got {}", TypeName(x)));
  if (x.dtype().is_uint()) return x;
  return max(x, -x);
}

namespace {
PrimExpr FloatBinary(const char* name, double (*fn)(double, double), PrimExpr a, PrimExpr b) {
  Match(name + 4, &a, &b);
  if (!a.dtype().is_floating()) Fail(fmt::format("`{}` takes floats, got {}", name + 4, TypeName(a)));
  PrimExpr la = Literal(a), lb = Literal(b);
  if (la.defined() && lb.defined())
    return tir::broadcast_to(FloatLit(la.dtype(), fn(AsFloat(la)->value, AsFloat(lb)->value)), a.dtype().lanes());
  DataType t = a.dtype();
  return tir::call_intrin(t, name, {std::move(a), std::move(b)});
}
PrimExpr BitBinary(const char* name, int kind, PrimExpr a, PrimExpr b) {
  Match(name + 4, &a, &b);
  if (!a.dtype().is_integral() && !(a.dtype().is_bool() && kind < 3))
    Fail(fmt::format("`{}` takes integers, got {}", name + 4, TypeName(a)));
  PrimExpr la = Literal(a), lb = Literal(b);
  if (la.defined() && lb.defined()) {
    int64_t x = AsInt(la)->value, y = AsInt(lb)->value;
    bool shift_ok = y >= 0 && y < a.dtype().bits();
    std::optional<int64_t> v;
    if (kind == 0) v = Wrap(la.dtype(), x & y);
    if (kind == 1) v = Wrap(la.dtype(), x | y);
    if (kind == 2) v = Wrap(la.dtype(), x ^ y);
    if (kind == 3 && shift_ok) v = Wrap(la.dtype(), static_cast<__int128>(x) << y);
    if (kind == 4 && shift_ok) v = Wrap(la.dtype(), x >> y);
    if (v) return tir::broadcast_to(IntLit(la.dtype(), *v), a.dtype().lanes());
  }
  DataType t = a.dtype();
  return tir::call_intrin(t, name, {std::move(a), std::move(b)});
}
}  // namespace
PrimExpr pow(PrimExpr x, PrimExpr y) {
  if (x.defined() && x.dtype().is_integral()) {
    Match("pow", &x, &y);
    return tir::call_intrin(x.dtype(), "tir.pow", {x, y});
  }
  return FloatBinary("tir.pow", std::pow, std::move(x), std::move(y));
}
PrimExpr fmod(PrimExpr x, PrimExpr y) {
  if (x.defined() && x.dtype().is_integral()) return truncmod(std::move(x), std::move(y));
  return FloatBinary("tir.fmod", std::fmod, std::move(x), std::move(y));
}
PrimExpr atan2(PrimExpr y, PrimExpr x) { return FloatBinary("tir.atan2", std::atan2, std::move(y), std::move(x)); }
PrimExpr fma(PrimExpr a, PrimExpr b, PrimExpr c) {
  Match("fma", &a, &b);
  Match("fma", &a, &c);
  Match("fma", &b, &c);
  if (!a.dtype().is_floating()) return a * b + c;
  DataType t = a.dtype();
  return tir::call_intrin(t, "tir.fma", {std::move(a), std::move(b), std::move(c)});
}
PrimExpr bitwise_and(PrimExpr a, PrimExpr b) { return BitBinary("tir.bitwise_and", 0, std::move(a), std::move(b)); }
PrimExpr bitwise_or(PrimExpr a, PrimExpr b) { return BitBinary("tir.bitwise_or", 1, std::move(a), std::move(b)); }
PrimExpr bitwise_xor(PrimExpr a, PrimExpr b) { return BitBinary("tir.bitwise_xor", 2, std::move(a), std::move(b)); }
PrimExpr shift_left(PrimExpr a, PrimExpr b) { return BitBinary("tir.shift_left", 3, std::move(a), std::move(b)); }
PrimExpr shift_right(PrimExpr a, PrimExpr b) { return BitBinary("tir.shift_right", 4, std::move(a), std::move(b)); }

namespace {
PrimExpr Extreme(DataType t, bool high, bool infinite) {
  DataType e = t.element_of();
  PrimExpr v;
  if (e.is_bool()) {
    v = IntLit(e, high);
  } else if (e.is_uint()) {
    if (!high) {
      v = IntLit(e, 0);
    } else if (e.bits() == 64) {
      v = tir::call_intrin(e, "tir.bitwise_not", {IntLit(e, 0)});
    } else {
      v = IntLit(e, static_cast<int64_t>((uint64_t{1} << e.bits()) - 1));
    }
  } else if (e.is_int()) {
    int64_t top = static_cast<int64_t>((uint64_t{1} << (e.bits() - 1)) - 1);
    v = IntLit(e, high ? top : -top - 1);
  } else {
    double m;
    if (infinite) {
      m = std::numeric_limits<double>::infinity();
    } else if (e.is_bfloat16()) {
      m = std::ldexp(255.0 / 128, 127);
    } else if (e.is_float() && e.bits() == 16) {
      m = 65504;
    } else if (e.is_float() && e.bits() == 32) {
      m = std::numeric_limits<float>::max();
    } else if (e.is_float() && e.bits() == 64) {
      m = std::numeric_limits<double>::max();
    } else {
      Fail(fmt::format("no largest value of {} here", DataType2String(e)));
    }
    v = FloatLit(e, high ? m : -m);
  }
  return tir::broadcast_to(v, t.lanes());
}
}  // namespace
PrimExpr min_value(DataType t) { return Extreme(t, false, false); }
PrimExpr max_value(DataType t) { return Extreme(t, true, false); }
PrimExpr lowest(DataType t) { return Extreme(t, false, true); }
PrimExpr highest(DataType t) { return Extreme(t, true, true); }

namespace tir {
PrimExpr make_const(DataType t, double value) {
  DataType e = t.element_of();
  PrimExpr v;
  if (e.is_floating()) {
    v = FloatLit(e, value);
  } else {
    if (!(value >= -9.3e18 && value <= 9.3e18) || std::trunc(value) != value) {
      Fail(fmt::format("{} is no value of {}", value, DataType2String(e)));
    }
    return make_int(t, static_cast<int64_t>(value));
  }
  return broadcast_to(v, t.lanes());
}
PrimExpr make_int(DataType t, int64_t value) {
  DataType e = t.element_of();
  PrimExpr v;
  if (e.is_floating()) {
    v = FloatLit(e, static_cast<double>(value));
  } else if (e.is_integral() || e.is_bool()) {
    auto w = Wrap(e, value);
    if (!w || (*w != value && !e.is_bool()))
      Fail(fmt::format("{} is outside the range of {}", value, DataType2String(e)));
    v = IntLit(e, *w);
  } else {
    Fail(fmt::format("no literals of {}", DataType2String(e)));
  }
  return broadcast_to(v, t.lanes());
}
const int64_t* as_const_int(const PrimExpr& e) {
  const auto* i = e.as<IntImmNode>();
  return i ? &i->value : nullptr;
}
bool is_const_int(const PrimExpr& e, int64_t value) {
  const int64_t* i = as_const_int(e);
  return i && *i == value;
}
bool is_zero(const PrimExpr& e) {
  if (const auto* f = e.as<FloatImmNode>()) return f->value == 0;
  return is_const_int(e, 0);
}
bool is_one(const PrimExpr& e) {
  if (const auto* f = e.as<FloatImmNode>()) return f->value == 1;
  return is_const_int(e, 1);
}
PrimExpr broadcast_to(PrimExpr e, int lanes) {
  if (e.dtype().lanes() == lanes) return e;
  return Broadcast(std::move(e), lanes);
}
PrimExpr call_intrin(DataType ret, const char* name, Array<PrimExpr> args) {
  return Call(ret, Op::GetOrCreate(name), std::move(args));
}
std::string_view IntrinName(const CallNode* call) {
  const auto* op = call->op.as<OpNode>();
  return op ? op->name.view() : std::string_view();
}
namespace {
const BufferLoadNode* NeedLoad(const PrimExpr& e, const char* what) {
  const auto* l = e.as<BufferLoadNode>();
  if (!l) Fail(fmt::format("`{}` takes a BufferLoad that names the place", what));
  return l;
}
}  // namespace
PrimExpr masked_load(PrimExpr load, PrimExpr mask) {
  NeedLoad(load, "masked_load");
  DataType t = load.dtype();
  return call_intrin(t, "tir.masked_load", {std::move(load), broadcast_to(std::move(mask), t.lanes())});
}
PrimExpr masked_store(PrimExpr address, PrimExpr value, PrimExpr mask) {
  NeedLoad(address, "masked_store");
  DataType t = address.dtype();
  if (!(value.dtype() == t))
    Fail(fmt::format("masked_store of {} where {} is wanted", TypeName(value), DataType2String(t)));
  return call_intrin(DataType::Int(32), "tir.masked_store",
                     {std::move(address), std::move(value), broadcast_to(std::move(mask), t.lanes())});
}
PrimExpr vector_sum(PrimExpr v) {
  return v.dtype().is_scalar() ? v : call_intrin(v.dtype().element_of(), "tir.vector_sum", {v});
}
PrimExpr vector_prod(PrimExpr v) {
  return v.dtype().is_scalar() ? v : call_intrin(v.dtype().element_of(), "tir.vector_prod", {v});
}
PrimExpr vector_min(PrimExpr v) {
  return v.dtype().is_scalar() ? v : call_intrin(v.dtype().element_of(), "tir.vector_min", {v});
}
PrimExpr vector_max(PrimExpr v) {
  return v.dtype().is_scalar() ? v : call_intrin(v.dtype().element_of(), "tir.vector_max", {v});
}
PrimExpr prefetch(PrimExpr address, int64_t locality) {
  NeedLoad(address, "prefetch");
  return call_intrin(DataType::Int(32), "tir.prefetch", {std::move(address), make_int(DataType::Int(64), locality)});
}
PrimExpr vector_slice(PrimExpr v, int64_t begin, int64_t count) {
  Array<int64_t> idx;
  for (int64_t i = 0; i < count; ++i) idx.push_back(begin + i);
  return Shuffle({std::move(v)}, idx);
}
PrimExpr address_of(PrimExpr load) {
  NeedLoad(load, "address_of");
  return call_intrin(DataType::Handle(), "tir.address_of", {std::move(load)});
}
PrimExpr call_extern(DataType ret, String name, Array<PrimExpr> args) {
  args.insert(0, StringImm(std::move(name)));
  return call_intrin(ret, "tir.call_extern", std::move(args));
}
}  // namespace tir
}  // namespace baton
