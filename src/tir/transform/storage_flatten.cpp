// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <baton/tir/transform.h>

namespace baton::tir {
namespace {

constexpr int kCacheLine = 64;
constexpr const char* kBound = "buffer_bound";

class Flattener : public StmtExprMutator {
 public:
  using StmtExprMutator::VisitExpr_;
  using StmtExprMutator::VisitStmt_;
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    if (IsFlat(op->buffer)) return StmtExprMutator::VisitExpr_(op);
    return BufferLoad(Flat(op->buffer), {Index(op->buffer, VisitExprs(op->indices))});
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    if (IsFlat(op->buffer)) return StmtExprMutator::VisitStmt_(op);
    BufferStoreNode n = *op;
    n.buffer = Flat(op->buffer);
    n.indices = {Index(op->buffer, VisitExprs(op->indices))};
    n.value = VisitExpr(op->value);
    return BufferStore(std::move(n));
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    if (IsFlat(op->buffer)) return StmtExprMutator::VisitStmt_(op);
    AllocateNode n = *op;
    n.buffer = Flat(op->buffer);
    n.body = VisitStmt(op->body);
    return Allocate(std::move(n));
  }

 private:
  static constexpr int64_t kAutoBroadcast = 2;
  static bool IsFlat(const Buffer& b) {
    return b->shape.size() == 1 && b->IsDense() && b->buffer_type != kAutoBroadcast;
  }
  static PrimExpr Index(const Buffer& b, const Array<PrimExpr>& indices) {
    PrimExpr flat = 0;
    for (size_t i = 0; i < indices.size(); ++i) {
      PrimExpr at = indices[i];
      // Along a dimension that has one element, each index means that.
      if (b->buffer_type == kAutoBroadcast)
        at = Select(EQ(b->shape[i], make_const(b->shape[i].dtype(), 1)), make_const(at.dtype(), 0), at);
      flat = b->strides.empty() ? flat * b->shape[i] + at : flat + at * b->strides[i];
    }
    return b->elem_offset.defined() ? b->elem_offset + flat : flat;
  }
  static PrimExpr Size(const Buffer& b) {
    PrimExpr size = 1;
    if (b->strides.empty()) {
      for (const PrimExpr& d : b->shape) size = size * d;
    } else {
      size = b->strides[0] * b->shape[0];
    }
    return b->elem_offset.defined() ? b->elem_offset + size : size;
  }
  Buffer Flat(const Buffer& b) {
    auto it = flat_.find(b.get());
    if (it != flat_.end()) return it->second;
    BufferNode n = *b.get();
    n.shape = {Size(b)};
    n.strides = {}, n.elem_offset = PrimExpr(), n.buffer_type = 1;
    return flat_.emplace(b.get(), Buffer(std::move(n))).first->second;
  }
  BufferMap flat_;
};

/// The body under a mark for each parameter, with its number of elements. Parameters that are marked already stay so.
Stmt WithBounds(const PrimFunc& f) {
  Stmt body = f->body;
  if (const auto* a = body.as<AttrStmtNode>(); a && a->attr_key == kBound) return body;
  for (size_t i = f->params.size(); i-- > 0;) {
    const Var& p = f->params[static_cast<int64_t>(i)];
    if (!f->buffer_map.count(p)) continue;
    const Buffer& b = f->buffer_map.at(p);
    PrimExpr size = 1;
    for (const PrimExpr& d : b->shape) size = size * d;
    AttrStmtNode n;
    n.node = b->data, n.attr_key = kBound, n.value = size, n.body = body;
    body = AttrStmt(std::move(n));
  }
  return body;
}

}  // namespace

PrimFunc FlattenStorage(const PrimFunc& f) { return WithBody(f, Flattener()(f->body)); }

namespace transform {
struct StorageFlattenOptions : PassOptions<StorageFlattenOptions> {
  static constexpr auto _type_key = "tir.transform.StorageFlattenOptions";
  int64_t cache_line_size = kCacheLine;
  bool create_bound_attribute = false;
  static constexpr void Describe(auto& d) {
    d(F<&StorageFlattenOptions::cache_line_size>,
      "Bytes that memory is aligned to: a power of 2 up to 64, to which all is aligned.");
    d(F<&StorageFlattenOptions::create_bound_attribute>,
      "The mark \"buffer_bound\" around the body says of each parameter how many elements it has.");
  }
};

Pass StorageFlatten(const StorageFlattenOptions& options) {
  const int64_t cache_line_size = options.cache_line_size;
  if (cache_line_size < 1 || cache_line_size > kCacheLine || (cache_line_size & (cache_line_size - 1))) {
    throw runtime::ValueError("StorageFlatten: cache_line_size is " + std::to_string(cache_line_size) +
                              "; it is a power of 2 up to 64, to which all memory is aligned");
  }
  return MakePass<StorageFlatten>(
      options,
      {
          .doc = "Every buffer becomes one-dimensional, in row-major order. With create_bound_attribute the mark "
                 "\"buffer_bound\" around the body says of each parameter how many elements it has.",
          .run =
              [create_bound_attribute = options.create_bound_attribute](PrimFunc f, IRModule, PassContext) {
                PrimFunc flat = FlattenStorage(f);
                return create_bound_attribute ? WithBody(flat, WithBounds(flat)) : flat;
              },
      });
}
Pass FlattenBuffer() {
  return MakePass<FlattenBuffer>({
      .doc = "Every buffer becomes one-dimensional, in row-major order: what StorageFlatten does.",
      .run = [](PrimFunc f, IRModule, PassContext) { return FlattenStorage(f); },
  });
}
namespace {
const RegisterPass<FlattenBuffer> registered_buffer("tir.transform.");
const RegisterPass<StorageFlatten> registered_flatten("tir.transform.");
}  // namespace
}  // namespace transform

}  // namespace baton::tir
