// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tir/interpreter/interpreter_impl.h"

namespace baton::tir::interpreter {

Scalar Interpreter::EvalNode(const PrimExpr& e, int lane) {
  const Object* n = e.get();
  DataType t = e.dtype();
  uint32_t k = n->type_index();
  if (k == VarNode::RuntimeTypeIndex() || k == SizeVarNode::RuntimeTypeIndex()) {
    auto it = now_.vars.find(n);
    if (it != now_.vars.end()) return it->second;
    auto wide = now_.vectors.find(n);
    if (wide != now_.vectors.end()) return wide->second.at(static_cast<size_t>(lane));
    throw InternalError("variable `" + e.as<VarNode>()->name_hint.str() + "` has no value");
  }
  if (const auto* i = e.as<IntImmNode>()) return {i->value, 0};
  if (const auto* l = e.as<BufferLoadNode>()) return Load(l->buffer, Position(l->buffer, l->indices, lane));
#define BATON_BINARY(Node, FF, FI, FU) \
  if (const auto* o = e.as<Node>()) return Arith(o->a, o->b, t, lane, FF, FI, FU);
  auto wrap = [](auto f) {
    return [f](int64_t a, int64_t b) {
      return static_cast<int64_t>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
    };
  };
  auto add = [](uint64_t a, uint64_t b) { return a + b; };
  auto sub = [](uint64_t a, uint64_t b) { return a - b; };
  auto mul = [](uint64_t a, uint64_t b) { return a * b; };
  BATON_BINARY(AddNode, [](double a, double b) { return a + b; }, wrap(add), add)
  BATON_BINARY(MulNode, [](double a, double b) { return a * b; }, wrap(mul), mul)
  BATON_BINARY(SubNode, [](double a, double b) { return a - b; }, wrap(sub), sub)
  // As compiled code has it: division by zero gives 0, the smallest by -1 wraps.
  auto div = [](int64_t a, int64_t b) {
    return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a / b;
  };
  auto mod = [](int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; };
  auto udiv = [](uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; };
  auto umod = [](uint64_t a, uint64_t b) { return b == 0 ? 0 : a % b; };
  BATON_BINARY(DivNode, [](double a, double b) { return a / b; }, div, udiv)
  BATON_BINARY(ModNode, [](double a, double b) { return std::fmod(a, b); }, mod, umod)
  auto fdiv = [div, mod](int64_t a, int64_t b) { return div(a, b) - (mod(a, b) != 0 && ((a ^ b) < 0)); };
  auto fmod_i = [mod](int64_t a, int64_t b) {
    int64_t r = mod(a, b);
    return r != 0 && ((r ^ b) < 0) ? r + b : r;
  };
  BATON_BINARY(FloorDivNode, [](double a, double b) { return std::floor(a / b); }, fdiv, udiv)
  auto fmod_f = [](double a, double b) {
    double r = std::fmod(a, b);
    return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
  };
  BATON_BINARY(FloorModNode, fmod_f, fmod_i, umod)
  auto fmin = [](double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b; };
  auto fmax = [](double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b; };
  auto imin = [](auto a, auto b) { return a < b ? a : b; };
  auto imax = [](auto a, auto b) { return a > b ? a : b; };
  BATON_BINARY(MinNode, fmin, imin, imin)
  BATON_BINARY(MaxNode, fmax, imax, imax)
#undef BATON_BINARY
#define BATON_COMPARE(Node, OP)                     \
  if (const auto* o = e.as<Node>()) {               \
    auto f = [](auto a, auto b) { return a OP b; }; \
    return Compare(o->a, o->b, lane, f, f, f);      \
  }
  BATON_COMPARE(EQNode, ==)
  BATON_COMPARE(NENode, !=)
  BATON_COMPARE(LTNode, <)
  BATON_COMPARE(LENode, <=)
  BATON_COMPARE(GTNode, >)
  BATON_COMPARE(GENode, >=)
#undef BATON_COMPARE
  if (const auto* o = e.as<AndNode>()) return {Int(o->a, lane) && Int(o->b, lane), 0};
  if (const auto* o = e.as<OrNode>()) return {Int(o->a, lane) || Int(o->b, lane), 0};
  if (const auto* o = e.as<NotNode>()) return {!Int(o->a, lane), 0};
  if (const auto* f = e.as<FloatImmNode>()) return OfFloat(f->value, t);
  if (const auto* s = e.as<SelectNode>()) {
    bool c = Int(s->condition, s->condition.dtype().lanes() > 1 ? lane : 0) != 0;
    return Eval(c ? s->true_value : s->false_value, lane);
  }
  if (const auto* c = e.as<CastNode>()) return Convert(Eval(c->value, lane), c->value.dtype(), t);
  if (const auto* r = e.as<RampNode>()) return OfInt(Int(r->base) + lane * Int(r->stride), t);
  if (const auto* b = e.as<BroadcastNode>()) return Eval(b->value, 0);
  if (const auto* s = e.as<ShuffleNode>()) {
    int64_t at = s->indices[lane];
    for (const PrimExpr& v : s->vectors) {
      int lanes = v.dtype().lanes();
      if (at < lanes) return Eval(v, static_cast<int>(at));
      at -= lanes;
    }
    throw InternalError("a shuffle picks a lane that is not there");
  }
  if (const auto* l = e.as<LetNode>()) {
    // A bound vector is evaluated again for each lane: its value may depend on it.
    now_.vars[l->var.get()] = Eval(l->value, lane);
    return Eval(l->body, lane);
  }
  if (const auto* c = e.as<CallNode>()) return EvalCall(c, lane);
  throw UnsupportedError("the interpreter does not know " + n->GetTypeKey());
}

Scalar Interpreter::Convert(Scalar v, DataType from, DataType to) {
  if (IsFloat(from)) {
    if (IsFloat(to)) return OfFloat(v.f, to);
    if (to.is_bool()) return {v.f != 0, 0};
    if (std::isnan(v.f)) return {0, 0};
    DataType via = to.bits() < 32 ? DataType::Int(32) : to;
    double lo = via.is_int() ? -std::ldexp(1.0, via.bits() - 1) : 0,
           hi = std::ldexp(1.0, via.is_int() ? via.bits() - 1 : via.bits());
    int64_t i;
    if (v.f <= lo) {
      i = via.is_int() ? static_cast<int64_t>(uint64_t{1} << 63) >> (64 - via.bits()) : 0;
    } else if (v.f >= hi) {
      i = via.is_int() ? static_cast<int64_t>(~uint64_t{0} >> (65 - via.bits())) : -1;
    } else {
      i = via.is_uint() ? static_cast<int64_t>(static_cast<uint64_t>(v.f)) : static_cast<int64_t>(v.f);
    }
    return OfInt(i, to);
  }
  if (IsFloat(to))
    return OfFloat(from.is_uint() ? static_cast<double>(static_cast<uint64_t>(v.i)) : static_cast<double>(v.i), to);
  return OfInt(v.i, to);
}

}  // namespace baton::tir::interpreter
