// SPDX-License-Identifier: Apache-2.0
#include <baton/arith/analyzer.h>
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <baton/tir/transform.h>

#include <algorithm>
#include <unordered_set>

namespace baton::tir {
namespace {

/// Bytes of all vector registers of a processor with many large ones. Larger arrays are in memory: written out,
/// loops over it would only be longer.
constexpr int64_t kRegisterBytes = 32 * 64;

/// Variables by which registers (small local buffers) are indexed.
struct RegisterVars : StmtExprVisitor {
  std::unordered_set<const Object*> vars;
  using StmtExprVisitor::VisitExpr_;
  using StmtExprVisitor::VisitStmt_;
  void Add(const PrimExpr& e) {
    PostOrderVisitExpr(e, [&](const PrimExpr& x) {
      if (x.as<VarNode>()) vars.insert(x.get());
    });
  }
  void Touch(const Buffer& b, const Array<PrimExpr>& indices) {
    if (b->scope() != "local") return;
    const int64_t* n = as_const_int(b->shape[0]);
    if (!n || *n * b->dtype.bytes() >= kRegisterBytes) return;
    for (const PrimExpr& i : indices) Add(i);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    Touch(op->buffer, op->indices);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    Touch(op->buffer, op->indices);
    StmtExprVisitor::VisitStmt_(op);
  }
};

class Unroller : public StmtMutator {
 public:
  Unroller(const Stmt& body, int64_t max_auto_steps, const transform::UnrollLoopConfigNode& config)
      : max_auto_(max_auto_steps), config_(config) {
    registers_(body);
  }
  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    ++size_;
    return StmtMutator::VisitStmt_(op);
  }
  Stmt VisitStmt_(const EvaluateNode* op) final {
    ++size_;
    return StmtMutator::VisitStmt_(op);
  }
  Stmt VisitStmt_(const ForNode* op) final {
    const int64_t around = size_, deepest = depth_;
    size_ = depth_ = 0;
    // Inner loops first, so that the size counts what is there.
    Stmt s = StmtMutator::VisitStmt_(op);
    const PrimExpr number = Number(op->extent);
    const int64_t* extent = as_const_int(number);
    Stmt out = Unrolled(s.as<ForNode>());
    depth_ = std::max(deepest, depth_ + 1);
    size_ = std::min(kMax, around + std::min(kMax, size_) * std::clamp<int64_t>(extent ? *extent : 8, 0, kMax));
    if (out.defined()) return out;
    if (op->kind != ForKind::kUnrolled) return s;
    ForNode n = *s.as<ForNode>();
    n.kind = ForKind::kSerial;
    return For(std::move(n));
  }

 private:
  static constexpr int64_t kMax = int64_t{1} << 30;

  /// An extent as a number where it is one, as of a loop from n to n + 2.
  static PrimExpr Number(const PrimExpr& extent) {
    return as_const_int(extent) || !as_const_int(arith::Analyzer().Simplify(extent))
               ? extent
               : arith::Analyzer().Simplify(extent);
  }
  /// The loop written out; null if it stays one. `size_` and `depth_` are those of its body.
  Stmt Unrolled(const ForNode* op) {
    const PrimExpr number = Number(op->extent);
    const int64_t* extent = as_const_int(number);
    if (!extent || *extent > 4096) return Stmt();
    bool unroll = op->kind == ForKind::kUnrolled && config_.explicit_unroll;
    if (op->kind == ForKind::kSerial) {
      unroll = *extent <= max_auto_ && size_ * *extent <= 4 * max_auto_ && registers_.vars.count(op->loop_var.get());
      unroll = unroll || *extent <= config_.auto_max_extent || Small(*extent);
    }
    if (!unroll) return Stmt();
    // The first iteration shows which registers are used.
    if (registers_.vars.count(op->loop_var.get())) registers_.Add(op->min);
    Array<Stmt> seq;
    for (int64_t i = 0; i < *extent; ++i) {
      Stmt body = Substitute(op->body, VarMap{{op->loop_var.get(), op->min + i}});
      seq.push_back(i + 1 < *extent ? RenewBindings(body) : body);
    }
    return SeqStmt::Flatten(seq);
  }
  /// Within the options: few enough statements, loops not nested too deep.
  bool Small(int64_t extent) const {
    return config_.auto_max_step > 0 && extent <= config_.auto_max_step && size_ * extent <= config_.auto_max_step &&
           depth_ + 1 <= config_.auto_max_depth;
  }

  int64_t max_auto_;
  transform::UnrollLoopConfigNode config_;
  RegisterVars registers_;
  int64_t size_ = 0,
          depth_ = 0;  ///< so far: statements, each as often as it runs, and nested loops, written out or not
};

}  // namespace

PrimFunc UnrollLoops(const PrimFunc& f, int64_t max_auto_steps) {
  using transform::UnrollLoopConfig;
  UnrollLoopConfig given = transform::PassContext::Current()->GetConfig<UnrollLoopConfig>("tir.UnrollLoop");
  return WithBody(f, Unroller(f->body, max_auto_steps,
                              given.defined() ? *given.get() : transform::UnrollLoopConfigNode())(f->body));
}

namespace transform {
Pass UnrollLoop(const UnrollLoopConfigNode& options) {
  return MakePass<UnrollLoop>(
      options,
      {
          .doc = "Unrolled loops are written out, and short ones that index registers.",
          .run = [options](PrimFunc f, IRModule,
                           PassContext) { return WithBody(f, Unroller(f->body, kUnrollSteps, options)(f->body)); },
      });
}
const RegisterPass<UnrollLoop> registered_unroll("tir.transform.");
}  // namespace transform

}  // namespace baton::tir
