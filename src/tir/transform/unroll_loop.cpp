// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <baton/tir/transform.h>

namespace baton::tir {
namespace {

/// Number of stores and evaluations, and whether registers are indexed by the variable.
struct BodyScan : StmtExprVisitor {
  const VarNode* var;
  int64_t size = 0;
  bool registers = false;
  explicit BodyScan(const VarNode* v) : var(v) {}
  using StmtExprVisitor::VisitExpr_;
  using StmtExprVisitor::VisitStmt_;
  void Touch(const Buffer& b, const Array<PrimExpr>& indices) {
    if (b->scope() != "local") return;
    const int64_t* n = as_const_int(b->shape[0]);
    if (!n || *n * b->dtype.bytes() > 4096) return;  // too big for registers
    for (const PrimExpr& i : indices) registers |= UsesVar(i, var);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    Touch(op->buffer, op->indices);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    ++size;
    Touch(op->buffer, op->indices);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const EvaluateNode* op) final {
    ++size;
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const ForNode* op) final {
    int64_t before = size;
    StmtExprVisitor::VisitStmt_(op);
    const int64_t* n = as_const_int(op->extent);
    size = before + (size - before) * (n ? *n : 8);
  }
};

class Unroller : public StmtMutator {
 public:
  explicit Unroller(int64_t max_auto_steps) : max_auto_(max_auto_steps) {}
  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const ForNode* op) final {
    // Inner loops first, so that the size counts what is there.
    Stmt s = StmtMutator::VisitStmt_(op);
    op = s.as<ForNode>();
    const int64_t* extent = as_const_int(op->extent);
    bool unroll = op->kind == ForKind::kUnrolled;
    if (op->kind == ForKind::kSerial && extent && *extent <= max_auto_) {
      BodyScan scan(op->loop_var.get());
      scan.VisitStmt(op->body);
      unroll = scan.registers && scan.size * *extent <= 4 * max_auto_;
    }
    if (!unroll) return s;
    if (!extent || *extent > 4096) {
      ForNode n = *op;
      n.kind = ForKind::kSerial;
      return For(std::move(n));
    }
    Array<Stmt> seq;
    for (int64_t i = 0; i < *extent; ++i) {
      Stmt body = Substitute(op->body, VarMap{{op->loop_var.get(), op->min + i}});
      seq.push_back(i + 1 < *extent ? RenewBindings(body) : body);
    }
    return SeqStmt::Flatten(seq);
  }

 private:
  int64_t max_auto_;
};

}  // namespace

PrimFunc UnrollLoops(const PrimFunc& f, int64_t max_auto_steps) {
  Stmt body = Unroller(max_auto_steps)(f->body);
  if (body.same_as(f->body)) return f;
  PrimFunc out = f;
  out.CopyOnWrite()->body = body;
  return out;
}

namespace transform {
Pass UnrollLoop() {
  return MakePass<UnrollLoop>({
      .doc = "Unrolled loops are written out, and short ones that index registers.",
      .run = [](PrimFunc f, IRModule, PassContext) { return UnrollLoops(f); },
  });
}
const RegisterPass<UnrollLoop> registered_unroll("tir.transform.");
}  // namespace transform

}  // namespace baton::tir
