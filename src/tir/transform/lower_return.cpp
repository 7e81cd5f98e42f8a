// SPDX-License-Identifier: Apache-2.0
// Functions that give a value. `tir.ret(v)` writes it to a buffer that the caller reads; statements behind it are under
// a flag, so that code generators know no jumps.
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/lower.h>
#include <tir/any_stmt.h>

#include <vector>

namespace baton::tir {
namespace {

const CallNode* ReturnOf(const EvaluateNode* e) {
  const auto* call = e->value.as<CallNode>();
  return call && call->op == intrin::ret ? call : nullptr;
}

class ReturnLowerer : public StmtMutator {
 public:
  explicit ReturnLowerer(Buffer result) : result_(std::move(result)) {}
  using StmtMutator::VisitStmt_;

  Stmt Lower(const Stmt& body) {
    Stmt s = VisitStmt(body);
    if (!jumps_) return s;
    AllocateNode n;
    n.buffer = left_, n.body = SeqStmt::Flatten({Store(left_, PrimExpr(0)), s});
    return Allocate(std::move(n));
  }

  Stmt VisitStmt_(const EvaluateNode* op) final {
    const CallNode* ret = ReturnOf(op);
    if (!ret) return GetRef<Stmt>(op);
    const Stmt put = Store(result_, cast(result_->dtype, ret->args[0]));
    leaves_ = true;
    if (last_) return put;
    jumps_ = true;
    return SeqStmt::Flatten({put, Store(left_, PrimExpr(1))});
  }
  Stmt VisitStmt_(const SeqStmtNode* op) final {
    const bool last = last_;
    std::vector<Stmt> steps;
    std::vector<bool> leaves;
    for (const Stmt& s : op->seq) {
      last_ = last && steps.size() + 1 == op->seq.size();
      leaves_ = false;
      steps.push_back(VisitStmt(s));
      leaves.push_back(leaves_);
    }
    last_ = last;
    Stmt rest;
    for (size_t i = steps.size(); i-- > 0;) {
      leaves_ = leaves_ || leaves[i];
      rest = SeqStmt::Flatten({steps[i], leaves[i] && rest.defined() ? IfHere(rest) : rest});
    }
    return rest.defined() ? rest : GetRef<Stmt>(op);
  }
  Stmt VisitStmt_(const IfThenElseNode* op) final {
    leaves_ = false;
    IfThenElseNode n = *op;
    n.then_case = VisitStmt(op->then_case);
    const bool first = leaves_;
    if (op->else_case.defined()) n.else_case = VisitStmt(op->else_case);
    leaves_ = leaves_ || first;
    return IfThenElse(std::move(n));
  }
  Stmt VisitStmt_(const ForNode* op) final {
    ForNode n = *op;
    n.body = Repeated(op->body);
    if (!leaves_) return GetRef<Stmt>(op);
    if (op->kind == ForKind::kParallel)
      throw UnsupportedError(
          "tir.ret within a parallel loop: its rounds run at the same time, so make the loop serial");
    if (op->kind == ForKind::kVectorized) n.kind = ForKind::kSerial;
    n.body = IfHere(n.body);
    return For(std::move(n));
  }
  Stmt VisitStmt_(const WhileNode* op) final {
    WhileNode n = *op;
    n.body = Repeated(op->body);
    if (!leaves_) return GetRef<Stmt>(op);
    n.condition = if_then_else(Here(), op->condition, IntImm(DataType::Bool(), 0));
    return While(std::move(n));
  }

 private:
  Stmt Repeated(const Stmt& body) {
    const bool last = last_;
    last_ = leaves_ = false;
    Stmt s = VisitStmt(body);
    last_ = last;
    return s;
  }
  static Stmt Store(const Buffer& b, const PrimExpr& value) {
    BufferStoreNode n;
    n.buffer = b, n.value = cast(b->dtype, value), n.indices = {PrimExpr(0)};
    return BufferStore(std::move(n));
  }
  /// Whether the function is not left yet.
  PrimExpr Here() const { return EQ(BufferLoad(left_, {PrimExpr(0)}), IntImm(left_->dtype, 0)); }
  Stmt IfHere(const Stmt& s) const {
    IfThenElseNode n;
    n.condition = Here(), n.then_case = s;
    return IfThenElse(std::move(n));
  }

  Buffer result_, left_ = Buffer::Make({PrimExpr(1)}, DataType::Int(32), "left");
  bool last_ = true;     // nothing of the function runs behind the statement that is visited
  bool leaves_ = false;  // what was visited may leave the function
  bool jumps_ = false;
};

}  // namespace

bool GivesValue(const PrimFunc& f) {
  return AnyStmtOf<EvaluateNode>(f->body, [](const EvaluateNode* e) { return ReturnOf(e) != nullptr; });
}

PrimFunc ResultToParameter(const PrimFunc& f) {
  DataType dtype = DataType::Void();
  AnyStmtOf<EvaluateNode>(f->body, [&](const EvaluateNode* e) {
    const CallNode* ret = ReturnOf(e);
    if (!ret) return false;
    const DataType t = ret->args[0].dtype();
    if (!t.is_scalar() || !(t.is_integral() || t.is_bool() || t.is_floating()))
      throw UnsupportedError("tir.ret takes one number, got " + DataType2String(t) +
                             "; tensors are written to buffers, which are parameters");
    if (!dtype.is_void() && dtype.is_floating() != t.is_floating())
      throw CompileError("tir.ret is given " + DataType2String(dtype) + " at one place and " + DataType2String(t) +
                         " at another; cast them to one dtype");
    dtype = t;
    return false;
  });
  Var param("result", DataType::Handle());
  const Buffer result =
      Buffer::Make({PrimExpr(1)}, dtype.is_floating() ? DataType::Float(64) : DataType::Int(64), "result");
  PrimFunc out = f;
  PrimFuncNode* n = out.CopyOnWrite();
  n->body = ReturnLowerer(result).Lower(f->body);
  n->params.push_back(param);
  n->buffer_map.Set(param, result);
  return out;
}

}  // namespace baton::tir
