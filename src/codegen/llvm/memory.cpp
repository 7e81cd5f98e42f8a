// SPDX-License-Identifier: Apache-2.0
// Loads, stores and allocations.
#include <baton/runtime/c_backend_api.h>

#include <algorithm>

#include "codegen/llvm/function_emitter.h"

namespace baton::codegen {

using namespace tir;  // NOLINT: every node kind is named below

namespace {

// Stack space for one local buffer; larger ones are allocated.
constexpr int64_t kMaxStackBytes = 64 << 10;

}  // namespace

LLVMValueRef Emitter::Base(const Buffer& b) {
  auto it = vars_.find(b->data.get());
  if (it == vars_.end()) throw InternalError("buffer `" + b->name.str() + "` has no memory in `" + symbol_ + "`");
  return it->second;
}

PrimExpr Emitter::Flat(const Buffer& b, const Array<PrimExpr>& indices) {
  if (indices.empty()) return PrimExpr(int64_t{0});
  PrimExpr flat = indices[0];
  for (size_t i = 1; i < indices.size(); ++i) {
    int64_t k = static_cast<int64_t>(i);
    PrimExpr scaled = flat * b->shape[k];
    const PrimExpr& last = indices[k];
    if (const auto* r = last.as<RampNode>()) {
      flat = Ramp(scaled + r->base, r->stride, r->lanes);
    } else if (last.dtype().lanes() > 1) {
      flat = Broadcast(scaled, last.dtype().lanes()) + last;
    } else {
      flat = scaled + last;
    }
  }
  return flat;
}

LLVMValueRef Emitter::Address(const Buffer& b, LLVMValueRef index) {
  return LLVMBuildInBoundsGEP2(builder_, MemoryType(ctx_, b->dtype.element_of()), Base(b), &index, 1, "");
}

unsigned Emitter::Align(const Buffer& b) { return static_cast<unsigned>(std::max(1, b->dtype.element_of().bytes())); }

LLVMValueRef Emitter::Load(const Buffer& b, const PrimExpr& index) {
  DataType t = b->dtype.element_of().with_lanes(index.dtype().lanes());
  if (const auto* r = index.as<RampNode>(); r && is_one(r->stride)) {
    LLVMValueRef v = LLVMBuildLoad2(builder_, MemoryType(ctx_, t), Address(b, VisitExpr(r->base)), "");
    LLVMSetAlignment(v, Align(b));
    return FromMemory(v, t);
  }
  if (const auto* c = index.as<BroadcastNode>()) return Splat(Load(b, c->value), t.lanes());
  if (const auto* r = index.as<RampNode>(); r && as_const_int(r->stride))
    return StridedLoad(b, r, *as_const_int(r->stride), t);
  if (const PrimExpr bytes = tir::BytesOfIndex(index); bytes.defined() && t.lanes() > 1) return TableLoad(b, bytes, t);
  LLVMValueRef idx = VisitExpr(index);
  if (t.is_scalar()) {
    LLVMValueRef v = LLVMBuildLoad2(builder_, MemoryType(ctx_, t), Address(b, idx), "");
    LLVMSetAlignment(v, Align(b));
    return FromMemory(v, t);
  }
  LLVMValueRef out = LLVMGetUndef(MemoryType(ctx_, t));
  for (int i = 0; i < t.lanes(); ++i) {
    LLVMValueRef v = LLVMBuildLoad2(builder_, MemoryType(ctx_, t.element_of()),
                                    Address(b, LLVMBuildExtractElement(builder_, idx, Int32(i), "")), "");
    LLVMSetAlignment(v, Align(b));
    out = LLVMBuildInsertElement(builder_, out, v, Int32(i), "");
  }
  return FromMemory(out, t);
}

LLVMValueRef Emitter::TableLoad(const Buffer& b, const PrimExpr& bytes, DataType t) {
  const auto lanes = static_cast<unsigned>(t.lanes());
  LLVMValueRef at = VisitExpr(bytes);
  const int64_t* extent = b->shape.size() == 1 ? as_const_int(b->shape[0]) : nullptr;
  constexpr unsigned kRow = 64;
  if (t.bits() == 8 && lanes <= kRow && extent && *extent >= 256 && target_->Has("avx512vbmi")) {
    LLVMTypeRef row = LLVMVectorType(LLVMInt8TypeInContext(ctx_), kRow);
    std::vector<LLVMValueRef> wide, narrow;
    for (unsigned i = 0; i < kRow; ++i) wide.push_back(Int32(static_cast<int>(std::min(i, lanes))));
    for (unsigned i = 0; i < lanes; ++i) narrow.push_back(Int32(static_cast<int>(i)));
    auto shuffle = [&](LLVMValueRef v, LLVMValueRef other, std::vector<LLVMValueRef>& order) {
      return LLVMBuildShuffleVector(builder_, v, other,
                                    LLVMConstVector(order.data(), static_cast<unsigned>(order.size())), "");
    };
    // A permutation of two rows reads the lower seven bits of a byte.
    LLVMValueRef index = lanes == kRow ? at : shuffle(at, LLVMConstNull(LLVMTypeOf(at)), wide);
    auto half = [&](int first) {
      LLVMValueRef low = AlignedLoad(b, row, Int64(first)), high = AlignedLoad(b, row, Int64(first + kRow));
      return Intrinsic("llvm.x86.avx512.vpermi2var.qi.512", {}, {low, index, high});
    };
    LLVMValueRef upper = LLVMBuildICmp(builder_, LLVMIntSLT, index, LLVMConstNull(row), "");
    LLVMValueRef v = LLVMBuildSelect(builder_, upper, half(128), half(0), "");
    return FromMemory(lanes == kRow ? v : shuffle(v, LLVMGetPoison(row), narrow), t);
  }
  LLVMValueRef out = LLVMGetUndef(MemoryType(ctx_, t));
  for (unsigned i = 0; i < lanes; ++i) {
    LLVMValueRef lane = Int32(static_cast<int>(i));
    LLVMValueRef place = LLVMBuildZExt(builder_, LLVMBuildExtractElement(builder_, at, lane, ""), i64_, "");
    out = LLVMBuildInsertElement(builder_, out, AlignedLoad(b, MemoryType(ctx_, t.element_of()), place), lane, "");
  }
  return FromMemory(out, t);
}

LLVMValueRef Emitter::AlignedLoad(const Buffer& b, LLVMTypeRef type, LLVMValueRef index) {
  LLVMValueRef v = LLVMBuildLoad2(builder_, type, Address(b, index), "");
  LLVMSetAlignment(v, Align(b));
  return v;
}

LLVMValueRef Emitter::StridedLoad(const Buffer& b, const RampNode* r, int64_t stride, DataType t) {
  int lanes = t.lanes();
  LLVMValueRef base = VisitExpr(r->base);
  LLVMTypeRef type = MemoryType(ctx_, t);
  if (stride == -1) {
    LLVMValueRef v = AlignedLoad(b, type, LLVMBuildAdd(builder_, base, Int64(1 - lanes), ""));
    std::vector<LLVMValueRef> order;
    for (int i = lanes; i-- > 0;) order.push_back(Int32(i));
    v = LLVMBuildShuffleVector(builder_, v, LLVMGetPoison(type),
                               LLVMConstVector(order.data(), static_cast<unsigned>(lanes)), "");
    return FromMemory(v, t);
  }
  if (stride == 2 && lanes >= 4) {
    LLVMValueRef lo = AlignedLoad(b, type, base),
                 hi = AlignedLoad(b, type, LLVMBuildAdd(builder_, base, Int64(lanes - 1), ""));
    std::vector<LLVMValueRef> pick;
    for (int i = 0; i < lanes; ++i) pick.push_back(Int32(2 * i < lanes ? 2 * i : 2 * i + 1));  // hi starts at lanes - 1
    return FromMemory(
        LLVMBuildShuffleVector(builder_, lo, hi, LLVMConstVector(pick.data(), static_cast<unsigned>(lanes)), ""), t);
  }
  LLVMValueRef out = LLVMGetPoison(type);
  for (int i = 0; i < lanes; ++i) {
    LLVMValueRef v =
        AlignedLoad(b, MemoryType(ctx_, t.element_of()), LLVMBuildAdd(builder_, base, Int64(i * stride), ""));
    out = LLVMBuildInsertElement(builder_, out, v, Int32(i), "");
  }
  return FromMemory(out, t);
}

void Emitter::Store(const Buffer& b, const PrimExpr& index, LLVMValueRef value, DataType t) {
  value = ToMemory(value, t);
  if (const auto* r = index.as<RampNode>(); r && is_one(r->stride)) {
    LLVMSetAlignment(LLVMBuildStore(builder_, value, Address(b, VisitExpr(r->base))), Align(b));
    return;
  }
  LLVMValueRef idx = VisitExpr(index);
  if (t.is_scalar()) {
    LLVMSetAlignment(LLVMBuildStore(builder_, value, Address(b, idx)), Align(b));
    return;
  }
  for (int i = 0; i < t.lanes(); ++i) {
    LLVMValueRef at = Address(b, LLVMBuildExtractElement(builder_, idx, Int32(i), ""));
    LLVMSetAlignment(LLVMBuildStore(builder_, LLVMBuildExtractElement(builder_, value, Int32(i), ""), at), Align(b));
  }
}

LLVMValueRef Emitter::VisitExpr_(const BufferLoadNode* op) { return Load(op->buffer, Flat(op->buffer, op->indices)); }

LLVMValueRef Emitter::MaskedLoad(const tir::CallNode* op) {
  const auto* l = op->args[0].as<BufferLoadNode>();
  PrimExpr flat = Flat(l->buffer, l->indices);
  DataType t = op->dtype;
  LLVMValueRef mask = VisitExpr(op->args[1]);
  LLVMTypeRef type = MemoryType(ctx_, t);
  LLVMValueRef zero = LLVMConstNull(type), align = Int32(Align(l->buffer));
  if (t.is_scalar()) {
    LLVMBasicBlockRef from = LLVMGetInsertBlock(builder_), yes = Block("load"), end = Block("loaded");
    LLVMBuildCondBr(builder_, mask, yes, end);
    LLVMPositionBuilderAtEnd(builder_, yes);
    LLVMValueRef v = LLVMBuildLoad2(builder_, type, Address(l->buffer, VisitExpr(flat)), "");
    LLVMBasicBlockRef yes_end = LLVMGetInsertBlock(builder_);
    LLVMBuildBr(builder_, end);
    LLVMPositionBuilderAtEnd(builder_, end);
    LLVMValueRef phi = LLVMBuildPhi(builder_, type, "");
    LLVMValueRef values[] = {zero, v};
    LLVMBasicBlockRef blocks[] = {from, yes_end};
    LLVMAddIncoming(phi, values, blocks, 2);
    return FromMemory(phi, t);
  }
  if (const auto* r = flat.as<RampNode>(); r && is_one(r->stride)) {
    LLVMValueRef at = Address(l->buffer, VisitExpr(r->base));
    return FromMemory(MaskedRow(at, mask, MemoryType(ctx_, t.element_of()), t.lanes(), align), t);
  }
  LLVMValueRef idx = VisitExpr(flat);
  LLVMValueRef ptrs = LLVMBuildGEP2(builder_, MemoryType(ctx_, t.element_of()), Base(l->buffer), &idx, 1, "");
  return FromMemory(Intrinsic("llvm.masked.gather", {type, LLVMTypeOf(ptrs)}, {ptrs, align, mask, zero}), t);
}

LLVMValueRef Emitter::MaskedStore(const tir::CallNode* op) {
  const auto* l = op->args[0].as<BufferLoadNode>();
  PrimExpr flat = Flat(l->buffer, l->indices);
  DataType t = op->args[1].dtype();
  LLVMValueRef value = ToMemory(VisitExpr(op->args[1]), t), mask = VisitExpr(op->args[2]),
               align = Int32(Align(l->buffer));
  LLVMTypeRef type = MemoryType(ctx_, t);
  if (t.is_scalar()) {
    LLVMBasicBlockRef yes = Block("store"), end = Block("stored");
    LLVMBuildCondBr(builder_, mask, yes, end);
    LLVMPositionBuilderAtEnd(builder_, yes);
    LLVMBuildStore(builder_, value, Address(l->buffer, VisitExpr(flat)));
    LLVMBuildBr(builder_, end);
    LLVMPositionBuilderAtEnd(builder_, end);
    return Int32(0);
  }
  if (const auto* r = flat.as<RampNode>(); r && is_one(r->stride)) {
    StoreMaskedRow(value, Address(l->buffer, VisitExpr(r->base)), mask, MemoryType(ctx_, t.element_of()), t.lanes(),
                   align);
    return Int32(0);
  }
  LLVMValueRef idx = VisitExpr(flat);
  LLVMValueRef ptrs = LLVMBuildGEP2(builder_, MemoryType(ctx_, t.element_of()), Base(l->buffer), &idx, 1, "");
  Intrinsic("llvm.masked.scatter", {type, LLVMTypeOf(ptrs)}, {value, ptrs, align, mask});
  return Int32(0);
}

void Emitter::VisitStmt_(const BufferStoreNode* op) {
  LLVMValueRef v = VisitExpr(op->value);
  At at(this, op->span.defined() ? op->span : op->value->span);  // the store is part of what it stores
  PrimExpr flat = Flat(op->buffer, op->indices);
  if (op->value.dtype().is_scalar() && flat.dtype().lanes() > 1) v = Splat(v, flat.dtype().lanes());
  Store(op->buffer, flat, v, op->buffer->dtype.element_of().with_lanes(flat.dtype().lanes()));
}

void Emitter::VisitStmt_(const AllocateNode* op) {
  const Buffer& b = op->buffer;
  int64_t count = 1;
  bool constant = true;
  for (const PrimExpr& d : b->shape) {
    const int64_t* c = as_const_int(d);
    constant = constant && c;
    if (c) count *= *c;
  }
  int64_t bytes = count * b->dtype.bytes();
  LLVMTypeRef type = MemoryType(ctx_, b->dtype);
  if (constant && bytes <= kMaxStackBytes) {
    vars_[b->data.get()] = Alloca(type, std::max<int64_t>(count, 1), 64);
    VisitStmt(op->body);
    return;
  }
  LLVMValueRef size = Int64(b->dtype.bytes());
  for (const PrimExpr& d : b->shape) size = LLVMBuildMul(builder_, size, VisitExpr(d), "");
  LLVMValueRef p = CallBackend(offsetof(BatonBackendApi, alloc), ptr_, {size});
  LLVMBasicBlockRef fail = Block("no_memory"), ok = Block("allocated");
  LLVMBuildCondBr(builder_, LLVMBuildIsNull(builder_, p, ""), fail, ok);
  LLVMPositionBuilderAtEnd(builder_, fail);
  LLVMValueRef text = LLVMBuildGlobalStringPtr(builder_, ("no memory for the workspace of " + symbol_).c_str(), "str");
  Return(CallBackend(offsetof(BatonBackendApi, set_error), i32_, {text}));
  LLVMPositionBuilderAtEnd(builder_, ok);
  vars_[b->data.get()] = p;
  heap_.push_back(p);
  VisitStmt(op->body);
  heap_.pop_back();
  CallBackend(offsetof(BatonBackendApi, free), LLVMVoidTypeInContext(ctx_), {p});
}

}  // namespace baton::codegen
