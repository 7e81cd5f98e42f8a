// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/printer.h>
#include <baton/tir/verify.h>
#include <fmt/format.h>

#include <unordered_set>

#include "tir/thread_axes.h"

namespace baton::tir {
namespace {

bool IsWhole(const PrimExpr& e) { return e.dtype().is_integral() && !e.dtype().is_bool(); }

class Verifier : public StmtExprVisitor {
 public:
  std::string error;
  using StmtExprVisitor::VisitExpr_;
  using StmtExprVisitor::VisitStmt_;

  void Run(const PrimFunc& f) {
    for (const Var& p : f->params) Define(p.get(), p->name_hint);
    for (auto [p, b] : f->buffer_map) {
      if (!scope_.count(p.get())) Say(fmt::format("buffer `{}` belongs to no parameter", b->name.str()));
      Define(b.get(), b->name);
      data_.insert(b->data.get());
      // Dimensions that are single variables are bound by the shape of the argument.
      for (const PrimExpr& d : b->shape) {
        if (const auto* v = d.as<VarNode>()) scope_.insert(v);
      }
    }
    if (!f->body.defined()) return Say("the body is null");
    VisitStmt(f->body);
  }

  void VisitExpr(const PrimExpr& e) final {
    if (!e.defined()) return Say("an expression is null");
    if (error.empty()) StmtExprVisitor::VisitExpr(e);
  }
  void VisitStmt(const Stmt& s) final {
    if (!s.defined()) return Say("a statement is null");
    if (error.empty()) StmtExprVisitor::VisitStmt(s);
  }
  void VisitExpr_(const VarNode* op) final {
    if (!scope_.count(op) && !data_.count(op))
      Say(fmt::format("variable `{}` is used where it is not bound", op->name_hint.str()));
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    Access(op->buffer, op->indices, "read");
    if (error.empty()) StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const LetNode* op) final {
    if (Null(op->var)) return;
    VisitExpr(op->value);
    Define(op->var.get(), op->var->name_hint);
    VisitExpr(op->body);
    scope_.erase(op->var.get());
  }
  void VisitExpr_(const ReduceNode*) final { Say("a tir.Reduce stands in a PrimFunc; lower it first"); }
  void VisitExpr_(const ProducerLoadNode*) final { Say("a tir.ProducerLoad stands in a PrimFunc; lower it first"); }
  void VisitStmt_(const BufferStoreNode* op) final {
    Access(op->buffer, op->indices, "written");
    if (Null(op->value) || !error.empty()) return;
    int lanes = op->indices.empty() ? 1 : op->indices.back().dtype().lanes();
    DataType want = op->buffer->dtype.with_lanes(op->buffer->dtype.lanes() * lanes);
    if (!(op->value.dtype() == want)) {
      Say(fmt::format("`{}` of {} is stored a value of {}", op->buffer->name.str(), DataType2String(want),
                      DataType2String(op->value.dtype())));
    }
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const AllocateNode* op) final {
    if (!op->buffer.defined()) return Say("an allocation without a buffer");
    for (const PrimExpr& d : op->buffer->shape) VisitExpr(d);
    Define(op->buffer.get(), op->buffer->name);
    data_.insert(op->buffer->data.get());
    VisitStmt(op->body);
    scope_.erase(op->buffer.get());
  }
  void VisitStmt_(const ForNode* op) final {
    if (Null(op->loop_var) || Null(op->min) || Null(op->extent)) return;
    if (!IsWhole(op->loop_var) || !IsWhole(op->min) || !IsWhole(op->extent)) {
      Say(fmt::format("loop `{}` runs over {}; loops run over integers", op->loop_var->name_hint.str(),
                      DataType2String(op->loop_var.dtype())));
    }
    VisitExpr(op->min);
    VisitExpr(op->extent);
    Define(op->loop_var.get(), op->loop_var->name_hint);
    VisitStmt(op->body);
    scope_.erase(op->loop_var.get());
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    // Axes of threads are bound by their marks, one variable by as many as there are.
    const VarNode* var = BoundThreadVar(op);
    const bool fresh = var && scope_.insert(var).second;
    StmtExprVisitor::VisitStmt_(op);
    if (fresh) scope_.erase(var);
  }
  void VisitStmt_(const LetStmtNode* op) final {
    if (Null(op->var) || Null(op->value)) return;
    VisitExpr(op->value);
    if (!(op->var.dtype() == op->value.dtype()))
      Say(fmt::format("let `{}` has another dtype than its value", op->var->name_hint.str()));
    Define(op->var.get(), op->var->name_hint);
    VisitStmt(op->body);
    scope_.erase(op->var.get());
  }

 private:
  bool Null(const ObjectRef& e) {
    if (!e.defined()) Say("an expression is null");
    return !e.defined();
  }
  void Say(std::string what) {
    if (error.empty()) error = std::move(what);
  }
  void Define(const Object* v, const String& name) {
    if (!scope_.insert(v).second) Say(fmt::format("`{}` is bound again inside its own scope", name.str()));
  }
  void Access(const Buffer& b, const Array<PrimExpr>& indices, const char* how) {
    if (!b.defined()) return Say("an access without a buffer");
    // A flat view of a bound buffer shares its data.
    if (!scope_.count(b.get()) && !data_.count(b->data.get()) && !scope_.count(b->data.get()))
      Say(fmt::format("buffer `{}` is {} where it is not bound", b->name.str(), how));
    if (indices.size() != b->shape.size()) {
      Say(fmt::format("buffer `{}` has {} dimensions and is {} with {} indices", b->name.str(), b->shape.size(), how,
                      indices.size()));
    }
    for (const PrimExpr& i : indices) {
      if (!Null(i) && !IsWhole(i)) {
        Say(fmt::format("buffer `{}` is {} with an index of {}; indices are integers", b->name.str(), how,
                        DataType2String(i.dtype())));
      }
    }
  }
  std::unordered_set<const Object*> scope_, data_;
};
}  // namespace

std::string CheckWellFormed(const PrimFunc& func) {
  Verifier v;
  v.Run(func);
  return v.error;
}
std::string CheckSSA(const PrimFunc& func) {
  struct Finder : StmtExprVisitor {
    std::unordered_set<const Object*> bound;
    std::string error;
    using StmtExprVisitor::VisitExpr_;
    using StmtExprVisitor::VisitStmt_;
    void Bind(const Object* v, const String& name) {
      if (!bound.insert(v).second && error.empty()) error = fmt::format("`{}` is bound at two places", name.str());
    }
    void VisitExpr_(const LetNode* op) final {
      Bind(op->var.get(), op->var->name_hint);
      StmtExprVisitor::VisitExpr_(op);
    }
    void VisitStmt_(const AllocateNode* op) final {
      Bind(op->buffer->data.get(), op->buffer->name);
      StmtExprVisitor::VisitStmt_(op);
    }
    void VisitStmt_(const ForNode* op) final {
      Bind(op->loop_var.get(), op->loop_var->name_hint);
      StmtExprVisitor::VisitStmt_(op);
    }
    void VisitStmt_(const LetStmtNode* op) final {
      Bind(op->var.get(), op->var->name_hint);
      StmtExprVisitor::VisitStmt_(op);
    }
  } finder;
  for (const Var& p : func->params) finder.Bind(p.get(), p->name_hint);
  finder.VisitStmt(func->body);
  return finder.error;
}
void VerifyWellFormed(const PrimFunc& func) {
  std::string e = CheckWellFormed(func);
  if (!e.empty()) throw InternalError("PrimFunc is not well formed: " + e + "\n" + tir::AsText(func));
  e = CheckIntrinsics(func);
  if (!e.empty()) throw CompileError(e + "\n" + tir::AsText(func));
}

}  // namespace baton::tir
