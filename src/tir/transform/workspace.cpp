// SPDX-License-Identifier: Apache-2.0
#include "tir/transform/workspace.h"

#include <baton/arith/extent.h>
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>

#include <utility>

namespace baton::tir {
namespace {

PrimExpr Aligned(const PrimExpr& bytes) {
  const PrimExpr align(kArenaAlign);
  return arith::CanonicalExtent(floordiv(bytes + align - PrimExpr(int64_t{1}), align) * align);
}

/// Moves allocations behind an arena, one after the other. Those in branches, which may not run, in parallel loops,
/// which need one for each thread, and of sizes that parameters alone do not give stay where they are.
class Mover : public StmtMutator {
 public:
  Mover(const PrimFunc& f, Var arena, const PrimExpr& bytes, int64_t least)
      : arena_(std::move(arena)), bytes_(bytes), least_(least) {
    for (const Var& p : f->params) {
      if (!p.dtype().is_handle()) known_[p.get()] = p;
    }
  }
  /// Bytes of the arena with what was moved.
  const PrimExpr& bytes() const { return bytes_; }

  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const LetStmtNode* op) final {
    if (!op->var.dtype().is_handle() && Known(op->value)) known_[op->var.get()] = Substitute(op->value, known_);
    return StmtMutator::VisitStmt_(op);
  }
  Stmt VisitStmt_(const ForNode* op) final {
    return op->kind == ForKind::kSerial ? StmtMutator::VisitStmt_(op) : GetRef<Stmt>(op);
  }
  Stmt VisitStmt_(const IfThenElseNode* op) final { return GetRef<Stmt>(op); }
  Stmt VisitStmt_(const WhileNode* op) final { return GetRef<Stmt>(op); }
  Stmt VisitStmt_(const AttrStmtNode* op) final { return GetRef<Stmt>(op); }
  Stmt VisitStmt_(const AllocateNode* op) final {
    const Buffer& b = op->buffer;
    const String scope = b->scope();
    if ((scope != "" && scope != "global") || b->shape.size() != 1 || !Known(b->shape[0]))
      return StmtMutator::VisitStmt_(op);
    const PrimExpr bytes = Substitute(b->shape[0], known_) * PrimExpr(int64_t{b->dtype.bytes()});
    if (const int64_t* literal = as_const_int(arith::CanonicalExtent(bytes)); literal && *literal <= least_)
      return StmtMutator::VisitStmt_(op);
    LetStmtNode let;
    let.var = b->data;
    let.value = ptr_offset(arena_, bytes_);
    bytes_ = arith::CanonicalExtent(bytes_ + Aligned(bytes));
    let.body = VisitStmt(op->body);
    return LetStmt(std::move(let));
  }

 private:
  /// Whether the value of an expression follows from the parameters alone.
  bool Known(const PrimExpr& e) const {
    bool known = true;
    PostOrderVisitExpr(e, [&](const PrimExpr& x) {
      if (x.as<CallNode>() || x.as<BufferLoadNode>()) known = false;
      if (x.as<VarNode>()) known = known && known_.count(x.get()) != 0;
    });
    return known;
  }

  Var arena_;
  PrimExpr bytes_;
  int64_t least_;
  VarMap known_;  // sizes that parameters give, by parameters
};

}  // namespace

PrimFunc WorkspaceToParameter(const PrimFunc& f, int64_t least) {
  const auto* planned = f->body.as<AllocateNode>();
  if (planned && planned->buffer->name != kArenaName) planned = nullptr;
  PrimExpr bytes(int64_t{0});
  if (planned && *as_const_int(planned->buffer->shape[0]) > least) bytes = Aligned(planned->buffer->shape[0]);
  const bool given = !is_zero(bytes);
  const Var data = given ? planned->buffer->data : Var(String(kArenaName), DataType::Handle());
  Mover mover(f, data, bytes, least);
  const Stmt body = mover(given ? planned->body : f->body);
  if (is_zero(mover.bytes())) return f;
  BufferNode arena = *Buffer::Make({mover.bytes()}, DataType::UInt(8), kArenaName).get();
  arena.data = data;
  PrimFunc out = f;
  PrimFuncNode* n = out.CopyOnWrite();
  const Var p(String(kArenaName), DataType::Handle());
  n->params.push_back(p);
  n->buffer_map.Set(p, Buffer(std::move(arena)));
  n->body = body;
  return out;
}

PrimExpr WorkspaceBytes(const PrimFunc& f) {
  if (f->params.empty()) return PrimExpr(int64_t{0});
  const Var& last = f->params[static_cast<int64_t>(f->params.size()) - 1];
  if (!f->buffer_map.count(last)) return PrimExpr(int64_t{0});
  const Buffer arena = f->buffer_map.at(last);
  return arena->name == kArenaName ? arena->shape[0] : PrimExpr(int64_t{0});
}

}  // namespace baton::tir
