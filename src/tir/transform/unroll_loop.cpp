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
  int64_t size = 0, depth = 0, nested = 0;
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
    depth = std::max(depth, ++nested);
    StmtExprVisitor::VisitStmt_(op);
    --nested;
    const int64_t* n = as_const_int(op->extent);
    size = before + (size - before) * (n ? *n : 8);
  }
};

class Unroller : public StmtMutator {
 public:
  Unroller(int64_t max_auto_steps, const transform::UnrollLoopConfigNode& config)
      : max_auto_(max_auto_steps), config_(config) {}
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
    if (unroll && op->kind == ForKind::kUnrolled && !config_.explicit_unroll) {
      ForNode n = *op;
      n.kind = ForKind::kSerial;
      return For(std::move(n));
    }
    if (!unroll && op->kind == ForKind::kSerial && extent)
      unroll = *extent <= config_.auto_max_extent || Small(op, *extent);
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
  /// Within the options: few enough statements, loops not nested too deep.
  bool Small(const ForNode* op, int64_t extent) const {
    if (config_.auto_max_step <= 0 || extent > config_.auto_max_step) return false;
    BodyScan scan(op->loop_var.get());
    scan.VisitStmt(op->body);
    return scan.size * extent <= config_.auto_max_step && scan.depth + 1 <= config_.auto_max_depth;
  }

  int64_t max_auto_;
  transform::UnrollLoopConfigNode config_;
};

}  // namespace

PrimFunc UnrollLoops(const PrimFunc& f, int64_t max_auto_steps) {
  using transform::UnrollLoopConfig;
  UnrollLoopConfig given = transform::PassContext::Current()->GetConfig<UnrollLoopConfig>("tir.UnrollLoop");
  return WithBody(
      f, Unroller(max_auto_steps, given.defined() ? *given.get() : transform::UnrollLoopConfigNode())(f->body));
}

namespace transform {
Pass UnrollLoop() {
  return MakePass<UnrollLoop>({
      .doc = "Unrolled loops are written out, and short ones that index registers.",
      .run = [](PrimFunc f, IRModule, PassContext) { return UnrollLoops(f); },
  });
}
const RegisterPass<UnrollLoop> registered_unroll("tir.transform.");
const RegisterNodes<UnrollLoopConfigNode> registered_config;
BATON_REGISTER_PASS_CONFIG_OPTION("tir.UnrollLoop", UnrollLoopConfig,
                                  "Which loops the pass tir.UnrollLoop writes out beside those marked so.");
}  // namespace transform

}  // namespace baton::tir
