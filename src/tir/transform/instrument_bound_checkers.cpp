// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>

#include <string>
#include <vector>

namespace baton::tir {
namespace {

struct Check {
  Buffer buffer;
  PrimExpr condition;
};

/// The condition under which all reads of an expression that happen are within their buffers.
class BoundCollector : public ExprVisitor {
 public:
  std::vector<Check> checks;
  void Access(const Buffer& b, const Array<PrimExpr>& indices) {
    for (size_t i = 0; i < indices.size() && i < b->shape.size(); ++i) {
      const PrimExpr &size = b->shape[static_cast<int64_t>(i)], &at = indices[static_cast<int64_t>(i)];
      if (const auto* r = at.as<RampNode>()) {
        const PrimExpr last = r->base + r->stride * PrimExpr(r->lanes - 1);
        Within(b, r->base, size);
        Within(b, last, size);
      } else if (const auto* x = at.as<BroadcastNode>()) {
        Within(b, x->value, size);
      } else if (at.dtype().is_scalar()) {
        Within(b, at, size);
      } else {
        Within(b, vector_min(at), size);
        Within(b, vector_max(at), size);
      }
    }
  }
  using ExprVisitor::VisitExpr_;
  void VisitExpr_(const BufferLoadNode* op) final {
    Access(op->buffer, op->indices);
    ExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const AndNode* op) final { Guarded(op->a, op->b, true); }
  void VisitExpr_(const OrNode* op) final { Guarded(op->a, op->b, false); }
  void VisitExpr_(const LetNode* op) final {
    VisitExpr(op->value);
    // The assertion comes before the statement, where the variable is not bound: the condition binds it again.
    const size_t first = checks.size();
    VisitExpr(op->body);
    for (size_t i = first; i < checks.size(); ++i) {
      if (!UsesVar(checks[i].condition, op->var.get())) continue;
      VarNode n = *op->var.get();
      Var own(std::move(n));
      checks[i].condition = Let(own, op->value, Substitute(checks[i].condition, VarMap{{op->var.get(), own}}));
    }
  }
  void VisitExpr_(const CallNode* op) final {
    if (IsChoice(op) && op->args[0].dtype().is_scalar()) {
      Guarded(op->args[0], op->args[1], true);
      Under(!op->args[0], [&] { VisitExpr(op->args[2]); });
    } else if (PlaceOf(op) != PlaceUse::kNone || IsChoice(op)) {
      // Lanes that are off, and addresses, are not read.
      for (size_t i = 1; i < op->args.size(); ++i) VisitExpr(op->args[static_cast<int64_t>(i)]);
    } else {
      ExprVisitor::VisitExpr_(op);
    }
  }

 private:
  void Within(const Buffer& b, const PrimExpr& at, const PrimExpr& size) {
    PrimExpr condition = (at >= PrimExpr(0)) && (at < size);
    if (is_one(condition)) return;
    for (size_t i = guards_.size(); i-- > 0;) condition = !guards_[i] || condition;
    checks.push_back({b, condition});
  }
  template <class F>
  void Under(const PrimExpr& guard, F visit) {
    guards_.push_back(guard);
    visit();
    guards_.pop_back();
  }
  void Guarded(const PrimExpr& first, const PrimExpr& then, bool if_true) {
    VisitExpr(first);
    if (!first.dtype().is_scalar()) return VisitExpr(then);
    Under(if_true ? first : !first, [&] { VisitExpr(then); });
  }
  std::vector<PrimExpr> guards_;
};

class Instrumenter : public StmtMutator {
 public:
  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    BoundCollector c;
    c.Access(op->buffer, op->indices);
    for (const PrimExpr& i : op->indices) c.VisitExpr(i);
    return Guard(c, {op->value}, GetRef<Stmt>(op));
  }
  Stmt VisitStmt_(const EvaluateNode* op) final { return Guard(BoundCollector(), {op->value}, GetRef<Stmt>(op)); }
  Stmt VisitStmt_(const ForNode* op) final {
    return Guard(BoundCollector(), {op->min, op->extent}, StmtMutator::VisitStmt_(op));
  }
  Stmt VisitStmt_(const WhileNode* op) final {
    // The condition is asked before the loop and behind each round.
    BoundCollector c;
    c.VisitExpr(op->condition);
    Stmt s = StmtMutator::VisitStmt_(op);
    if (c.checks.empty()) return s;
    WhileNode n = *s.as<WhileNode>();
    n.body = SeqStmt::Flatten({n.body, Guard(c, {}, Evaluate(PrimExpr(0)))});
    return Guard(c, {}, While(std::move(n)));
  }
  Stmt VisitStmt_(const IfThenElseNode* op) final {
    return Guard(BoundCollector(), {op->condition}, StmtMutator::VisitStmt_(op));
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    return Guard(BoundCollector(), {op->value}, StmtMutator::VisitStmt_(op));
  }

 private:
  static Stmt Guard(BoundCollector c, const Array<PrimExpr>& exprs, Stmt s) {
    for (const PrimExpr& e : exprs) c.VisitExpr(e);
    for (size_t i = c.checks.size(); i-- > 0;) {
      AssertStmtNode n;
      n.condition = c.checks[i].condition;
      n.message = StringImm(String("an index leaves buffer `" + c.checks[i].buffer->name.str() + "`"));
      n.body = s;
      s = AssertStmt(std::move(n));
    }
    return s;
  }
};

}  // namespace

namespace transform {
Pass InstrumentBoundCheckers() {
  return MakePass<InstrumentBoundCheckers>({
      .doc = "Before each statement an assertion for each index that it reads or writes at: the program stops with the "
             "buffer's name instead of leaving its memory.",
      .run = [](PrimFunc f, IRModule, PassContext) { return WithBody(f, Instrumenter()(f->body)); },
  });
}
namespace {
const RegisterPass<InstrumentBoundCheckers> registered_instrument_bound_checkers("tir.transform.");
}
}  // namespace transform
}  // namespace baton::tir
