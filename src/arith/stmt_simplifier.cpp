// SPDX-License-Identifier: Apache-2.0
// Simplification of statements: loops bind their variables, conditions hold in their branches.
#include <baton/arith/analyzer.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>

#include <utility>

#include "arith/bounds.h"

namespace baton::arith {
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
  tir::Stmt VisitStmt_(const tir::WhileNode* op) final {
    const PrimExpr c = OnExpr(op->condition);
    if (tir::is_const_int(c, 0)) return tir::SeqStmt::Flatten({});
    return tir::StmtMutator::VisitStmt_(op);
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
  /// Values of variables: of loops that run once, and of bound names with known values. They are substituted where an
  /// expression is visited, since a walk through the body for each would be quadratic in the depth.
  tir::VarMap known_;
};

}  // namespace

tir::Stmt SimplifyStmt(const tir::Stmt& s, Analyzer* analyzer) {
  Analyzer own;
  return StmtSimplifier(analyzer ? analyzer : &own)(s);
}

}  // namespace baton::arith
