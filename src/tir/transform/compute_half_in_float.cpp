// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>

#include <unordered_set>
#include <utility>

namespace baton::tir {
namespace {

bool IsHalf(DataType t) { return (t.is_float() && t.bits() == 16) || t.is_bfloat16(); }
DataType Wide(DataType t) { return IsHalf(t) ? DataType::Float(32, t.lanes()) : t; }

/// Expressions of half types come back as float32; statements put the conversion in front of stores.
class Widener : public StmtExprMutator {
 public:
  using StmtExprMutator::VisitExpr_;
  using StmtExprMutator::VisitStmt_;

  PrimExpr VisitExpr_(const FloatImmNode* op) final {
    return IsHalf(op->dtype) ? make_const(DataType::Float(32), op->value) : GetRef<PrimExpr>(op);
  }
  PrimExpr VisitExpr_(const VarNode* op) final {
    auto it = vars_.find(op);
    if (it != vars_.end()) return it->second;
    return IsHalf(op->dtype) ? PrimExpr(Cast(Wide(op->dtype), GetRef<PrimExpr>(op))) : GetRef<PrimExpr>(op);
  }
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    Array<PrimExpr> i = VisitExprs(op->indices);
    auto it = buffers_.find(op->buffer.get());
    if (it != buffers_.end()) return BufferLoad(it->second, i);
    PrimExpr load = i.same_as(op->indices) ? GetRef<PrimExpr>(op) : BufferLoad(op->buffer, i);
    return IsHalf(op->dtype) ? PrimExpr(Cast(Wide(op->dtype), load)) : load;
  }
  PrimExpr VisitExpr_(const CastNode* op) final {
    PrimExpr v = VisitExpr(op->value);
    if (!IsHalf(op->dtype)) return v.same_as(op->value) ? GetRef<PrimExpr>(op) : cast(op->dtype, v);
    // An explicit conversion to half rounds; its result continues in float32.
    if (IsHalf(op->value.dtype()) && op->value.dtype() == op->dtype) return v;
    return Cast(Wide(op->dtype), Cast(op->dtype, v));
  }
  PrimExpr VisitExpr_(const BroadcastNode* op) final { return Broadcast(VisitExpr(op->value), op->lanes); }
  PrimExpr VisitExpr_(const LetNode* op) final {
    PrimExpr v = VisitExpr(op->value);
    Var var = Rebind(op->var, v);
    PrimExpr b = VisitExpr(op->body);
    return v.same_as(op->value) && b.same_as(op->body) ? GetRef<PrimExpr>(op) : Let(var, v, b);
  }
  PrimExpr VisitExpr_(const CallNode* op) final {
    const IntrinDef* row = IntrinOf(op);
    const PlaceUse place = row ? row->place : PlaceUse::kNone;
    const Halves halves = row ? row->halves : Halves::kWiden;
    if (halves == Halves::kBits) {
      PrimExpr v = VisitExpr(op->args[0]);
      if (IsHalf(op->args[0].dtype())) v = Cast(op->args[0].dtype(), v);
      PrimExpr r = Call(op->dtype, op->op, {v});
      return IsHalf(op->dtype) ? PrimExpr(Cast(Wide(op->dtype), r)) : r;
    }
    if (halves == Halves::kTaken) {
      Array<PrimExpr> args;
      for (const PrimExpr& a : op->args) args.push_back(IsHalf(a.dtype()) ? Kept(a) : VisitExpr(a));
      return Call(op->dtype, op->op, args);
    }
    if (place == PlaceUse::kReads && IsHalf(op->dtype)) {
      return Cast(Wide(op->dtype), Call(op->dtype, op->op, {PlaceIn(op->args[0]), VisitExpr(op->args[1])}));
    }
    if (place == PlaceUse::kWrites && IsHalf(op->args[1].dtype())) {
      return Call(op->dtype, op->op,
                  {PlaceIn(op->args[0]), Cast(op->args[1].dtype(), VisitExpr(op->args[1])), VisitExpr(op->args[2])});
    }
    if (place != PlaceUse::kNone) {
      Array<PrimExpr> args = {PlaceIn(op->args[0])};
      for (size_t i = 1; i < op->args.size(); ++i) args.push_back(VisitExpr(op->args[i]));
      return Call(op->dtype, op->op, args);
    }
    if (halves == Halves::kRefused) {
      bool half = IsHalf(op->dtype);
      for (const PrimExpr& a : op->args) half |= IsHalf(a.dtype());
      if (half) throw UnsupportedError("a call of an external function with a half float");
    }
    Array<PrimExpr> args = VisitExprs(op->args);
    if (args.same_as(op->args) && !IsHalf(op->dtype)) return GetRef<PrimExpr>(op);
    return Call(Wide(op->dtype), op->op, args);
  }

  Stmt VisitStmt_(const BufferStoreNode* op) final {
    BufferStoreNode n = *op;
    n.indices = VisitExprs(op->indices);
    n.value = VisitExpr(op->value);
    auto it = buffers_.find(op->buffer.get());
    if (it != buffers_.end()) {
      n.buffer = it->second;
    } else if (IsHalf(op->buffer->dtype)) {
      n.value = Narrow(n.value, op->buffer->dtype.with_lanes(n.value.dtype().lanes()));
    } else if (n.indices.same_as(op->indices) && n.value.same_as(op->value)) {
      return GetRef<Stmt>(op);
    }
    return BufferStore(std::move(n));
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    if (!IsHalf(op->buffer->dtype) || op->buffer->scope() != "local") return StmtExprMutator::VisitStmt_(op);
    Buffer wide = Buffer::Make(op->buffer->shape, Wide(op->buffer->dtype), op->buffer->name, "local");
    buffers_[op->buffer.get()] = wide;
    AllocateNode n = *op;
    n.buffer = wide;
    n.body = VisitStmt(op->body);
    return Allocate(std::move(n));
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    LetStmtNode n = *op;
    // A variable that an instruction takes in half width is bound to that; other uses widen it.
    const bool kept = taken_.count(op->var.get()) != 0;
    n.value = kept ? Kept(op->value) : VisitExpr(op->value);
    if (!kept) n.var = Rebind(op->var, n.value);
    n.body = VisitStmt(op->body);
    if (n.value.same_as(op->value) && n.body.same_as(op->body)) return GetRef<Stmt>(op);
    return LetStmt(std::move(n));
  }

  explicit Widener(std::unordered_set<const Object*> taken) : taken_(std::move(taken)) {}

 private:
  /// `e`, of a half type, in that type.
  PrimExpr Kept(const PrimExpr& e) {
    if (const auto* v = e.as<VarNode>(); v && !vars_.count(v)) return e;
    if (const auto* s = e.as<ShuffleNode>()) {
      Array<PrimExpr> vectors;
      for (const PrimExpr& v : s->vectors) vectors.push_back(Kept(v));
      return Shuffle(vectors, s->indices);
    }
    return Narrow(VisitExpr(e), e.dtype());
  }
  PrimExpr PlaceIn(const PrimExpr& e) {
    const auto* load = e.as<BufferLoadNode>();
    return BufferLoad(load->buffer, VisitExprs(load->indices));
  }
  static PrimExpr Narrow(const PrimExpr& v, DataType t) {
    // A copy stays a copy.
    if (const auto* c = v.as<CastNode>(); c && c->value.dtype() == t) return c->value;
    return Cast(t, v);
  }
  Var Rebind(const Var& var, const PrimExpr& value) {
    if (value.dtype() == var.dtype()) return var;
    Var wide(var->name_hint, value.dtype());
    vars_[var.get()] = wide;
    return wide;
  }
  std::unordered_set<const Object*> taken_;  // variables that calls take in half width
  VarMap vars_;
  BufferMap buffers_;
};

struct HalfFinder : StmtExprVisitor {
  bool found = false;
  std::unordered_set<const Object*> taken;
  using StmtExprVisitor::VisitStmt_;
  void VisitExpr(const PrimExpr& e) final {
    found = found || IsHalf(e.dtype());
    if (const auto* call = e.as<CallNode>()) {
      const IntrinDef* row = IntrinOf(call);
      for (const PrimExpr& a : call->args) {
        const auto* v = a.as<VarNode>();
        if (v && IsHalf(v->dtype) && row && row->halves == Halves::kTaken) taken.insert(v);
      }
    }
    StmtExprVisitor::VisitExpr(e);
  }
  void VisitStmt_(const AllocateNode* op) final {
    found = found || (IsHalf(op->buffer->dtype) && op->buffer->scope() == "local");
    StmtExprVisitor::VisitStmt_(op);
  }
};

}  // namespace

PrimFunc ComputeHalfInFloat(const PrimFunc& f) {
  HalfFinder finder;
  finder.VisitStmt(f->body);
  if (!finder.found) return f;
  PrimFunc out = f;
  out.CopyOnWrite()->body = Widener(std::move(finder.taken))(f->body);
  return out;
}

namespace transform {
Pass BF16Legalize() {
  return MakePass<BF16Legalize>({
      .doc = "float16 and bfloat16 are storage only; arithmetic is float32.",
      .run = [](PrimFunc f, IRModule, PassContext) { return ComputeHalfInFloat(f); },
  });
}
const RegisterPass<BF16Legalize> registered_half("tir.transform.");
}  // namespace transform

}  // namespace baton::tir
