// SPDX-License-Identifier: Apache-2.0
#include <baton/arith/analyzer.h>
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <baton/tir/transform.h>

#include <unordered_set>

namespace baton::tir {
namespace {

/// A comparison within a loop's body that holds before some iteration and not from it on, or the reverse.
struct Cut {
  const Object* comparison = nullptr;
  PrimExpr round;  ///< value of the loop's variable
  bool before = false;
};

/// Finds the first such comparison in the condition of an `if`.
class Finder : public StmtExprVisitor {
 public:
  Finder(const VarNode* var, arith::Analyzer* analyzer) : var_(var), analyzer_(analyzer) {}
  Cut found;
  using StmtExprVisitor::VisitExpr_;
  using StmtExprVisitor::VisitStmt_;

  void VisitStmt_(const ForNode* op) final {
    bound_.insert(op->loop_var.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const LetStmtNode* op) final {
    bound_.insert(op->var.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const IfThenElseNode* op) final {
    ++conditions_;
    VisitExpr(op->condition);
    --conditions_;
    VisitStmt(op->then_case);
    if (op->else_case.defined()) VisitStmt(op->else_case);
  }
  // i + r < 0 holds before -r; -i + r < 0 from r + 1 on; and so forth.
  void VisitExpr_(const LTNode* op) final { Look(op, op->a, op->b, 0, 1, true); }
  void VisitExpr_(const LENode* op) final { Look(op, op->a, op->b, 1, 0, true); }
  void VisitExpr_(const GTNode* op) final { Look(op, op->a, op->b, 1, 0, false); }
  void VisitExpr_(const GENode* op) final { Look(op, op->a, op->b, 0, 1, false); }

 private:
  void Look(const Object* node, const PrimExpr& a, const PrimExpr& b, int64_t up, int64_t down, bool less) {
    if (!conditions_ || found.comparison || !a.dtype().is_int() || !a.dtype().is_scalar()) return;
    arith::LinearForm form = analyzer_->Linear(a - b);
    int64_t k = form.CoeffOf(var_);
    if (k != 1 && k != -1) return;
    arith::LinearForm rest;
    rest.constant = form.constant;
    for (const auto& t : form.terms) {
      if (t.atom.get() == var_) continue;
      const auto* v = t.atom.as<VarNode>();
      if (!v || bound_.count(v)) return;
      rest.terms.push_back(t);
    }
    if (k == 1) {  // the iteration is -rest
      rest.constant = -rest.constant;
      for (auto& t : rest.terms) t.coeff = -t.coeff;
    }
    rest.constant += k == 1 ? up : down;
    found = {node, analyzer_->FromLinear(rest, a.dtype()), k == 1 ? less : !less};
  }
  const VarNode* var_;
  arith::Analyzer* analyzer_;
  std::unordered_set<const Object*> bound_;
  int conditions_ = 0;
};

/// Replaces a comparison, by identity, by its truth.
class Decide : public StmtExprMutator {
 public:
  Decide(const Object* comparison, bool truth) : comparison_(comparison), truth_(make_int(DataType::Bool(), truth)) {}
  PrimExpr VisitExpr(const PrimExpr& e) final {
    return e.get() == comparison_ ? truth_ : StmtExprMutator::VisitExpr(e);
  }

 private:
  const Object* comparison_;
  PrimExpr truth_;
};

/// Loops whose variable occurs in a condition: only these are examined further.
class Asked : public StmtExprVisitor {
 public:
  std::unordered_set<const Object*> vars;
  using StmtExprVisitor::VisitExpr_;
  using StmtExprVisitor::VisitStmt_;
  void VisitStmt_(const IfThenElseNode* op) final {
    PostOrderVisitExpr(op->condition, [&](const PrimExpr& e) {
      if (e.as<VarNode>()) vars.insert(e.get());
    });
    StmtExprVisitor::VisitStmt_(op);
  }
};

class Partitioner : public StmtMutator {
 public:
  Partitioner(const Stmt& body, const transform::LoopPartitionConfigNode& config) : config_(config) { asked_(body); }
  bool any = false;
  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const ForNode* op) final {
    Stmt s = StmtMutator::VisitStmt_(op);
    return Split(s, 3);
  }

 private:
  /// `cuts`: how often the loop may still be cut.
  Stmt Split(const Stmt& s, int cuts) {
    const auto* op = s.as<ForNode>();
    if (!op || !cuts || op->kind != ForKind::kSerial) return s;
    bool fixed = op->min.as<IntImmNode>() && op->extent.as<IntImmNode>();
    if (fixed && !config_.partition_const_loop) return s;
    if (!asked_.vars.count(op->loop_var.get())) return s;
    Finder finder(op->loop_var.get(), &analyzer_);
    finder.VisitStmt(op->body);
    const Cut& cut = finder.found;
    if (!cut.comparison) return s;
    any = true;
    PrimExpr zero = make_int(op->extent.dtype(), 0);
    PrimExpr first = analyzer_.Simplify(max(min(cut.round - op->min, op->extent), zero));
    auto part = [&](PrimExpr min, PrimExpr extent, bool truth) {
      ForNode n = *op;
      n.min = analyzer_.Simplify(min), n.extent = analyzer_.Simplify(extent);
      n.body = Decide(cut.comparison, truth).StmtMutator::operator()(op->body);
      return For(std::move(n));
    };
    Stmt before = part(op->min, first, cut.before);
    Stmt behind = RenewBindings(part(op->min + first, op->extent - first, !cut.before));
    asked_.vars.insert(behind.as<ForNode>()->loop_var.get());
    return SeqStmt::Flatten({Split(before, cuts - 1), Split(behind, cuts - 1)});
  }
  transform::LoopPartitionConfigNode config_;
  Asked asked_;
  arith::Analyzer analyzer_;
};

}  // namespace

namespace transform {
Pass LoopPartition(const LoopPartitionConfigNode& options) {
  return MakePass<LoopPartition>(
      options, {
                   .doc = "A loop whose body asks whether its variable is before some round becomes two, in neither of "
                          "which that is "
                          "asked. Loops of known length are only cut with the option `tir.LoopPartition`.",
                   .run =
                       [options](PrimFunc f, IRModule, PassContext) {
                         Partitioner partition(f->body, options);
                         Stmt body = partition(f->body);
                         if (!partition.any) return f;
                         // Removes loops without iterations and decided branches.
                         return WithBody(f, arith::SimplifyStmt(body));
                       },
               });
}
const RegisterPass<LoopPartition> registered_partition("tir.transform.");
}  // namespace transform
}  // namespace baton::tir
