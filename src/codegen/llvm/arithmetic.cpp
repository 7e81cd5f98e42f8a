// SPDX-License-Identifier: Apache-2.0
// Conversions, arithmetic and comparisons with the meaning of TIR: no traps, NaN kept.
#include <limits>

#include "codegen/llvm/function_emitter.h"

namespace baton::codegen {

using namespace tir;  // NOLINT: every node kind is named below

namespace {
/// The literal in all lanes of an expression, as its dtype holds it; NaN where there is none.
double LiteralOf(const PrimExpr& e) {
  const auto* many = e.as<BroadcastNode>();
  const auto* number = (many ? many->value : e).as<FloatImmNode>();
  if (!number) return std::numeric_limits<double>::quiet_NaN();
  return number->dtype.bits() == 32 ? static_cast<float>(number->value) : number->value;
}
/// Whether a floating expression is between literals that int32 has, or is NaN. `named`: what variables stand for.
bool IsWithinInt32(const PrimExpr& e, const std::unordered_map<const VarNode*, PrimExpr>& named) {
  double low = -std::numeric_limits<double>::infinity(), high = -low;
  PrimExpr x = e;
  for (int depth = 0; depth < 2; ++depth) {
    if (const auto* v = x.as<VarNode>()) {
      auto it = named.find(v);
      if (it != named.end()) x = it->second;
    }
    if (const auto* most = x.as<MinNode>()) {
      if (const double v = LiteralOf(most->b); v <= high) high = v;
      x = most->a;
    } else if (const auto* least = x.as<MaxNode>()) {
      if (const double v = LiteralOf(least->b); v >= low) low = v;
      x = least->a;
    } else {
      break;
    }
  }
  return -0x1p31 < low && low <= high && high < 0x1p31;
}
}  // namespace

LLVMValueRef Emitter::VisitExpr_(const CastNode* op) {
  const DataType from = op->value.dtype(), to = op->dtype;
  if (to.is_int() || to.is_uint()) {
    const bool floats = from.is_float() && from.bits() >= 32;
    const bool through_int32 = !to.is_bool() && to.lanes() > 1 && to.bits() <= (to.is_int() ? 32 : 16);
    if (floats && through_int32 && IsWithinInt32(op->value, bounded_)) return ClippedToInt(VisitExpr(op->value), to);
  }
  return Convert(VisitExpr(op->value), op->value.dtype(), op->dtype);
}

#define BATON_ARITH(Node, FloatOp, IntOp)                                                                           \
  LLVMValueRef Emitter::VisitExpr_(const Node* op) {                                                                \
    LLVMValueRef a = VisitExpr(op->a), b = VisitExpr(op->b);                                                        \
    return op->dtype.is_floating() ? LLVMBuild##FloatOp(builder_, a, b, "") : LLVMBuild##IntOp(builder_, a, b, ""); \
  }

BATON_ARITH(AddNode, FAdd, Add)

BATON_ARITH(SubNode, FSub, Sub)

BATON_ARITH(MulNode, FMul, Mul)

#undef BATON_ARITH

LLVMValueRef Emitter::IntDiv(const PrimExpr& ea, const PrimExpr& eb, bool remainder) {
  LLVMValueRef a = VisitExpr(ea), b = VisitExpr(eb);
  return IntDiv(a, b, ea.dtype(), eb, remainder);
}

LLVMValueRef Emitter::IntDiv(LLVMValueRef a, LLVMValueRef b, DataType t, const PrimExpr& eb, bool remainder) {
  auto build = [&](LLVMValueRef x, LLVMValueRef y) {
    if (t.is_int()) return remainder ? LLVMBuildSRem(builder_, x, y, "") : LLVMBuildSDiv(builder_, x, y, "");
    return remainder ? LLVMBuildURem(builder_, x, y, "") : LLVMBuildUDiv(builder_, x, y, "");
  };
  PrimExpr s = eb.as<BroadcastNode>() ? eb.as<BroadcastNode>()->value : eb;
  if (const int64_t* c = as_const_int(s); c && *c != 0 && *c != -1) return build(a, b);
  LLVMTypeRef type = LLVMTypeOf(a);
  auto constant = [&](int64_t v) {
    LLVMValueRef k = LLVMConstInt(ElementType(ctx_, t), static_cast<uint64_t>(v), 1);
    return t.lanes() > 1 ? Splat(k, t.lanes()) : k;
  };
  LLVMValueRef zero = LLVMConstNull(type), one = constant(1);
  LLVMValueRef bad = LLVMBuildICmp(builder_, LLVMIntEQ, b, zero, "");
  LLVMValueRef safe = LLVMBuildSelect(builder_, bad, one, b, "");
  LLVMValueRef result;
  if (t.is_int()) {
    LLVMValueRef minus = LLVMBuildICmp(builder_, LLVMIntEQ, b, constant(-1), "");
    safe = LLVMBuildSelect(builder_, minus, one, safe, "");
    result = LLVMBuildSelect(builder_, minus, remainder ? zero : LLVMBuildNeg(builder_, a, ""), build(a, safe), "");
  } else {
    result = build(a, safe);
  }
  return LLVMBuildSelect(builder_, bad, zero, result, "");
}

LLVMValueRef Emitter::VisitExpr_(const DivNode* op) {
  if (op->dtype.is_floating()) return LLVMBuildFDiv(builder_, VisitExpr(op->a), VisitExpr(op->b), "");
  return IntDiv(op->a, op->b, false);
}

LLVMValueRef Emitter::VisitExpr_(const ModNode* op) {
  if (op->dtype.is_floating()) return LLVMBuildFRem(builder_, VisitExpr(op->a), VisitExpr(op->b), "");
  return IntDiv(op->a, op->b, true);
}

int Emitter::Log2(const PrimExpr& e) {
  PrimExpr s = e.as<BroadcastNode>() ? e.as<BroadcastNode>()->value : e;
  const int64_t* c = as_const_int(s);
  return c && *c > 0 && (*c & (*c - 1)) == 0 ? __builtin_ctzll(static_cast<uint64_t>(*c)) : -1;
}

LLVMValueRef Emitter::VisitExpr_(const FloorDivNode* op) {
  DataType t = op->dtype;
  if (t.is_floating())
    return Intrinsic("llvm.floor", {TypeFor(ctx_, t)},
                     {LLVMBuildFDiv(builder_, VisitExpr(op->a), VisitExpr(op->b), "")});
  if (t.is_uint()) return IntDiv(op->a, op->b, false);
  if (int k = Log2(op->b); k >= 0) return LLVMBuildAShr(builder_, VisitExpr(op->a), ConstLike(k, t), "");
  LLVMValueRef q = nullptr, r = nullptr;
  FloorParts(op->a, op->b, &q, &r);
  return q;
}

LLVMValueRef Emitter::VisitExpr_(const FloorModNode* op) {
  DataType t = op->dtype;
  if (t.is_floating()) {
    LLVMValueRef a = VisitExpr(op->a), b = VisitExpr(op->b), r = LLVMBuildFRem(builder_, a, b, "");
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(r));
    LLVMValueRef neq = LLVMBuildFCmp(builder_, LLVMRealONE, r, zero, "");
    LLVMValueRef sr = LLVMBuildFCmp(builder_, LLVMRealOLT, r, zero, ""),
                 sb = LLVMBuildFCmp(builder_, LLVMRealOLT, b, zero, "");
    LLVMValueRef adjust = LLVMBuildAnd(builder_, neq, LLVMBuildXor(builder_, sr, sb, ""), "");
    return LLVMBuildSelect(builder_, adjust, LLVMBuildFAdd(builder_, r, b, ""), r, "");
  }
  if (t.is_uint()) return IntDiv(op->a, op->b, true);
  if (int k = Log2(op->b); k >= 0)
    return LLVMBuildAnd(builder_, VisitExpr(op->a), ConstLike((int64_t{1} << k) - 1, t), "");
  LLVMValueRef q = nullptr, r = nullptr;
  FloorParts(op->a, op->b, &q, &r);
  return r;
}

void Emitter::FloorParts(const PrimExpr& ea, const PrimExpr& eb, LLVMValueRef* floor_q, LLVMValueRef* floor_r) {
  DataType t = ea.dtype();
  LLVMValueRef a = VisitExpr(ea), b = VisitExpr(eb);
  LLVMValueRef q = IntDiv(a, b, t, eb, false), r = IntDiv(a, b, t, eb, true), zero = LLVMConstNull(LLVMTypeOf(r));
  LLVMValueRef nonzero = LLVMBuildICmp(builder_, LLVMIntNE, r, zero, "");
  LLVMValueRef signs = LLVMBuildICmp(builder_, LLVMIntSLT, LLVMBuildXor(builder_, r, b, ""), zero, "");
  LLVMValueRef adjust = LLVMBuildAnd(builder_, nonzero, signs, "");
  *floor_q = LLVMBuildSub(builder_, q, LLVMBuildZExt(builder_, adjust, LLVMTypeOf(q), ""), "");
  *floor_r = LLVMBuildSelect(builder_, adjust, LLVMBuildAdd(builder_, r, b, ""), r, "");
}

LLVMValueRef Emitter::MinMax(const PrimExpr& ea, const PrimExpr& eb, LLVMRealPredicate keep_a, LLVMIntPredicate s,
                             LLVMIntPredicate u) {
  DataType t = ea.dtype();
  LLVMValueRef a = VisitExpr(ea), b = VisitExpr(eb);
  if (!t.is_floating()) {
    return LLVMBuildSelect(builder_, LLVMBuildICmp(builder_, t.is_int() ? s : u, a, b, ""), a, b, "");
  }
  // The unordered predicate keeps a NaN in a; one in b is kept by the second choice, needless for literals.
  if (LLVMIsConstant(a)) std::swap(a, b);
  LLVMValueRef r = LLVMBuildSelect(builder_, LLVMBuildFCmp(builder_, keep_a, a, b, ""), a, b, "");
  if (LLVMIsConstant(b)) return r;
  return LLVMBuildSelect(builder_, LLVMBuildFCmp(builder_, LLVMRealUNO, b, b, ""), b, r, "");
}

LLVMValueRef Emitter::VisitExpr_(const MinNode* op) {
  return MinMax(op->a, op->b, LLVMRealULT, LLVMIntSLT, LLVMIntULT);
}

LLVMValueRef Emitter::VisitExpr_(const MaxNode* op) {
  return MinMax(op->a, op->b, LLVMRealUGT, LLVMIntSGT, LLVMIntUGT);
}

LLVMValueRef Emitter::Compare(const PrimExpr& ea, const PrimExpr& eb, LLVMRealPredicate f, LLVMIntPredicate s,
                              LLVMIntPredicate u) {
  LLVMValueRef a = VisitExpr(ea), b = VisitExpr(eb);
  DataType t = ea.dtype();
  if (t.is_floating()) return LLVMBuildFCmp(builder_, f, a, b, "");
  return LLVMBuildICmp(builder_, t.is_int() ? s : u, a, b, "");
}

#define BATON_COMPARE(Node, F, S, U)                                   \
  LLVMValueRef Emitter::VisitExpr_(const Node* op) {                   \
    return Compare(op->a, op->b, LLVMReal##F, LLVMInt##S, LLVMInt##U); \
  }

BATON_COMPARE(EQNode, OEQ, EQ, EQ)

BATON_COMPARE(NENode, UNE, NE, NE)

BATON_COMPARE(LTNode, OLT, SLT, ULT)

BATON_COMPARE(LENode, OLE, SLE, ULE)

BATON_COMPARE(GTNode, OGT, SGT, UGT)

BATON_COMPARE(GENode, OGE, SGE, UGE)

#undef BATON_COMPARE

LLVMValueRef Emitter::VisitExpr_(const AndNode* op) {
  LLVMValueRef a = VisitExpr(op->a);
  return LLVMBuildAnd(builder_, a, VisitExpr(op->b), "");
}

LLVMValueRef Emitter::VisitExpr_(const OrNode* op) {
  LLVMValueRef a = VisitExpr(op->a);
  return LLVMBuildOr(builder_, a, VisitExpr(op->b), "");
}

LLVMValueRef Emitter::VisitExpr_(const NotNode* op) { return LLVMBuildNot(builder_, VisitExpr(op->a), ""); }

}  // namespace baton::codegen
