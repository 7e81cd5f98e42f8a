// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <baton/tir/transform.h>

namespace baton::tir {
namespace {

class Flattener : public StmtExprMutator {
 public:
  using StmtExprMutator::VisitExpr_;
  using StmtExprMutator::VisitStmt_;
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    if (op->buffer->shape.size() == 1) return StmtExprMutator::VisitExpr_(op);
    return BufferLoad(Flat(op->buffer), {Index(op->buffer, VisitExprs(op->indices))});
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    if (op->buffer->shape.size() == 1) return StmtExprMutator::VisitStmt_(op);
    BufferStoreNode n = *op;
    n.buffer = Flat(op->buffer);
    n.indices = {Index(op->buffer, VisitExprs(op->indices))};
    n.value = VisitExpr(op->value);
    return BufferStore(std::move(n));
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    if (op->buffer->shape.size() == 1) return StmtExprMutator::VisitStmt_(op);
    AllocateNode n = *op;
    n.buffer = Flat(op->buffer);
    n.body = VisitStmt(op->body);
    return Allocate(std::move(n));
  }

 private:
  static PrimExpr Index(const Buffer& b, const Array<PrimExpr>& indices) {
    PrimExpr flat = 0;
    for (size_t i = 0; i < indices.size(); ++i) flat = flat * b->shape[i] + indices[i];
    return flat;
  }
  Buffer Flat(const Buffer& b) {
    auto it = flat_.find(b.get());
    if (it != flat_.end()) return it->second;
    BufferNode n = *b.get();
    PrimExpr size = 1;
    for (const PrimExpr& d : b->shape) size = size * d;
    n.shape = {size};
    return flat_.emplace(b.get(), Buffer(std::move(n))).first->second;
  }
  BufferMap flat_;
};

}  // namespace

PrimFunc FlattenStorage(const PrimFunc& f) {
  Stmt body = Flattener()(f->body);
  if (body.same_as(f->body)) return f;
  PrimFunc out = f;
  out.CopyOnWrite()->body = body;
  return out;
}

namespace transform {
Pass StorageFlatten() {
  return MakePass<StorageFlatten>({
      .doc = "Every buffer becomes one-dimensional, in row-major order.",
      .run = [](PrimFunc f, IRModule, PassContext) { return FlattenStorage(f); },
  });
}
const RegisterPass<StorageFlatten> registered_flatten("tir.transform.");
}  // namespace transform

}  // namespace baton::tir
