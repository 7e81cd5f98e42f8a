// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/emitter.h"

#include <baton/runtime/c_backend_api.h>
#include <baton/runtime/module.h>
#include <baton/support/stack.h>
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>

#include <llvm-c/Target.h>

#include <cstring>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/llvm/half_floats.h"

namespace baton::codegen {

using namespace tir;  // NOLINT: every node kind is named below

namespace {

// Stack space for one local buffer; larger ones are allocated.
constexpr int64_t kMaxStackBytes = 64 << 10;

LLVMTypeRef ElementType(LLVMContextRef c, DataType t) {
  if (t.is_handle()) return LLVMPointerTypeInContext(c, 0);
  if (t.is_bool()) return LLVMInt1TypeInContext(c);
  if (t.is_integral()) return LLVMIntTypeInContext(c, t.bits());
  if (IsHalf(t)) return LLVMInt16TypeInContext(c);
  if (t.is_float()) {
    switch (t.bits()) {
      case 32:
        return LLVMFloatTypeInContext(c);
      case 64:
        return LLVMDoubleTypeInContext(c);
    }
  }
  throw UnsupportedError("the code generator does not take values of dtype " + DataType2String(t));
}
LLVMTypeRef TypeFor(LLVMContextRef c, DataType t) {
  LLVMTypeRef e = ElementType(c, t);
  return t.lanes() > 1 ? LLVMVectorType(e, t.lanes()) : e;
}
/// In memory a bool is a byte.
LLVMTypeRef MemoryType(LLVMContextRef c, DataType t) {
  LLVMTypeRef e = t.is_bool() ? LLVMInt8TypeInContext(c) : ElementType(c, t);
  return t.lanes() > 1 ? LLVMVectorType(e, t.lanes()) : e;
}

/// Variables that a statement uses and does not define.
class UseCollector : public StmtExprVisitor {
 public:
  std::vector<const VarNode*> uses;

  void Add(const VarNode* v) {
    if (!defined_.count(v) && seen_.insert(v).second) uses.push_back(v);
  }
  void VisitExpr_(const VarNode* v) override { Add(v); }
  void VisitExpr_(const BufferLoadNode* op) override {
    Add(op->buffer->data.get());
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) override {
    Add(op->buffer->data.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const AllocateNode* op) override {
    defined_.insert(op->buffer->data.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const ForNode* op) override {
    defined_.insert(op->loop_var.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const LetStmtNode* op) override {
    defined_.insert(op->var.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const tir::LetNode* op) override {
    defined_.insert(op->var.get());
    StmtExprVisitor::VisitExpr_(op);
  }

 private:
  std::unordered_set<const VarNode*> defined_, seen_;
};

class Emitter : public ExprFunctor<LLVMValueRef(const PrimExpr&)>, public StmtFunctor<void(const Stmt&)> {
 public:
  Emitter(LLVMModuleRef module, const Target& target, const IRModule& mod, std::string cpu, std::string features,
          DebugInfo* debug)
      : module_(module),
        ctx_(LLVMGetModuleContext(module)),
        target_(target),
        mod_(mod),
        cpu_(std::move(cpu)),
        features_(std::move(features)),
        debug_(debug),
        has_float16_(target->Has("f16c") || !std::string_view(LLVMGetTarget(module)).starts_with("x86_64")),
        builder_(LLVMCreateBuilderInContext(ctx_)) {
    ptr_ = LLVMPointerTypeInContext(ctx_, 0);
    i32_ = LLVMInt32TypeInContext(ctx_);
    i64_ = LLVMInt64TypeInContext(ctx_);
  }
  ~Emitter() override { LLVMDisposeBuilder(builder_); }

  void Function(const std::string& symbol, const PrimFunc& f) {
    symbol_ = symbol;
    func_ = Declare(symbol, f);
    if (LLVMCountBasicBlocks(func_)) throw InternalError("function `" + symbol + "` is defined twice");
    SetAttributes(func_);
    // Local names: only the entry points are seen outside of the model.
    if (!f->HasNonzeroAttr(baton::attr::kGlobalSymbol)) LLVMSetVisibility(func_, LLVMHiddenVisibility);
    if (debug_) scope_ = debug_->Begin(func_, symbol, DisplayName(f, symbol), "", f->span);
    Start(func_);
    for (size_t i = 0; i < f->params.size(); ++i) {
      const Var& p = f->params[static_cast<int64_t>(i)];
      LLVMValueRef v = LLVMGetParam(func_, static_cast<unsigned>(i));
      vars_[p.get()] = v;
      if (f->buffer_map.count(p)) {
        vars_[f->buffer_map.at(p)->data.get()] = v;
        AddParamAttr(func_, static_cast<unsigned>(i), "noalias", 0);
        // Reads may be moved out of conditions and loops.
        const Buffer& b = f->buffer_map.at(p);
        int64_t bytes = b->dtype.bytes();
        for (const PrimExpr& d : b->shape) {
          const int64_t* n = as_const_int(d);
          bytes = n ? bytes * *n : 0;
        }
        if (bytes > 0) AddParamAttr(func_, static_cast<unsigned>(i), "dereferenceable", static_cast<uint64_t>(bytes));
      }
    }
    VisitStmt(f->body);
    LLVMBuildRet(builder_, Int32(0));
  }

 private:
  struct State {
    LLVMValueRef func;
    LLVMBasicBlockRef entry, block;
    std::unordered_map<const VarNode*, LLVMValueRef> vars;
    DebugInfo::Scope scope;
    Span span;
  };

  // ---- Debug information

  /// While it lives, instructions belong to the expression at `span`; without one, to the same as before.
  class At {
   public:
    At(Emitter* e, const Span& span) : e_(e->debug_ && span.defined() && !span.same_as(e->span_) ? e : nullptr) {
      if (!e_) return;
      outer_ = e_->span_;
      e_->Locate(span);
    }
    ~At() {
      if (e_) e_->Locate(outer_);
    }
    At(const At&) = delete;

   private:
    Emitter* e_;
    Span outer_;
  };
  void Locate(const Span& span) {
    span_ = span;
    debug_->Locate(builder_, scope_, span);
  }

  // ---- Set-up

  LLVMValueRef Declare(const std::string& symbol, const PrimFunc& f) {
    if (LLVMValueRef found = LLVMGetNamedFunction(module_, symbol.c_str())) return found;
    std::vector<LLVMTypeRef> params;
    for (const Var& p : f->params) params.push_back(p.dtype().is_handle() ? ptr_ : TypeFor(ctx_, p.dtype()));
    LLVMTypeRef type = LLVMFunctionType(i32_, params.data(), static_cast<unsigned>(params.size()), 0);
    return LLVMAddFunction(module_, symbol.c_str(), type);
  }
  void SetAttributes(LLVMValueRef f) {
    auto set = [&](const char* key, const std::string& value) {
      LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                              LLVMCreateStringAttribute(ctx_, key, static_cast<unsigned>(strlen(key)), value.c_str(),
                                                        static_cast<unsigned>(value.size())));
    };
    if (!cpu_.empty()) set("target-cpu", cpu_);
    if (!features_.empty()) set("target-features", features_);
    // Explicit vectors of 512 bits stay whole where the processor has them.
    std::string width = std::to_string(target_->vector_bits());
    set("prefer-vector-width", width);
    set("min-legal-vector-width", width);
    set("no-trapping-math", "true");
    unsigned kind = LLVMGetEnumAttributeKindForName("nounwind", 8);
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(ctx_, kind, 0));
  }
  void AddParamAttr(LLVMValueRef f, unsigned i, const char* name, uint64_t value) {
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(f, i + 1, LLVMCreateEnumAttribute(ctx_, kind, value));
  }
  void Start(LLVMValueRef f) {
    func_ = f;
    entry_ = LLVMAppendBasicBlockInContext(ctx_, f, "entry");
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(ctx_, f, "body");
    LLVMPositionBuilderAtEnd(builder_, entry_);
    if (debug_) Locate(scope_.span);
    LLVMBuildBr(builder_, body);
    LLVMPositionBuilderAtEnd(builder_, body);
  }
  LLVMBasicBlockRef Block(const char* name) { return LLVMAppendBasicBlockInContext(ctx_, func_, name); }
  LLVMValueRef Int32(int64_t v) { return LLVMConstInt(i32_, static_cast<uint64_t>(v), 1); }
  LLVMValueRef Int64(int64_t v) { return LLVMConstInt(i64_, static_cast<uint64_t>(v), 1); }

  /// A slot on the stack; in the entry block, so that it is one slot whatever loop it stands in.
  LLVMValueRef Alloca(LLVMTypeRef type, int64_t count, unsigned align) {
    LLVMBasicBlockRef here = LLVMGetInsertBlock(builder_);
    LLVMPositionBuilderBefore(builder_, LLVMGetBasicBlockTerminator(entry_));
    LLVMValueRef a = LLVMBuildAlloca(builder_, LLVMArrayType2(type, static_cast<uint64_t>(count)), "");
    LLVMSetAlignment(a, align);
    LLVMPositionBuilderAtEnd(builder_, here);
    return a;
  }

  // ---- Calls of intrinsics and functions

  LLVMValueRef Intrinsic(const char* name, std::vector<LLVMTypeRef> overload, std::vector<LLVMValueRef> args) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    if (id == 0) throw InternalError(std::string("LLVM has no intrinsic ") + name);
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(module_, id, overload.data(), overload.size());
    LLVMTypeRef type = LLVMIntrinsicGetType(ctx_, id, overload.data(), overload.size());
    return LLVMBuildCall2(builder_, type, f, args.data(), static_cast<unsigned>(args.size()), "");
  }
  LLVMValueRef CallExtern(const char* name, LLVMTypeRef ret, std::vector<LLVMValueRef> args) {
    std::vector<LLVMTypeRef> types;
    for (LLVMValueRef a : args) types.push_back(LLVMTypeOf(a));
    LLVMTypeRef type = LLVMFunctionType(ret, types.data(), static_cast<unsigned>(types.size()), 0);
    LLVMValueRef f = LLVMGetNamedFunction(module_, name);
    if (!f) f = LLVMAddFunction(module_, name, type);
    return LLVMBuildCall2(builder_, type, f, args.data(), static_cast<unsigned>(args.size()), "");
  }
  /// A function of the runtime's table.
  LLVMValueRef CallBackend(size_t offset, LLVMTypeRef ret, std::vector<LLVMValueRef> args) {
    LLVMValueRef var = LLVMGetNamedGlobal(module_, kBackendApiSymbol);
    if (!var) var = LLVMAddGlobal(module_, ptr_, kBackendApiSymbol);
    LLVMValueRef table = LLVMBuildLoad2(builder_, ptr_, var, "");
    LLVMValueRef at = Int64(static_cast<int64_t>(offset));
    LLVMValueRef slot = LLVMBuildInBoundsGEP2(builder_, LLVMInt8TypeInContext(ctx_), table, &at, 1, "");
    LLVMValueRef f = LLVMBuildLoad2(builder_, ptr_, slot, "");
    std::vector<LLVMTypeRef> types;
    for (LLVMValueRef a : args) types.push_back(LLVMTypeOf(a));
    LLVMTypeRef type = LLVMFunctionType(ret, types.data(), static_cast<unsigned>(types.size()), 0);
    return LLVMBuildCall2(builder_, type, f, args.data(), static_cast<unsigned>(args.size()), "");
  }
  /// Returns from the function when a call failed.
  void ReturnIfError(LLVMValueRef code) {
    LLVMBasicBlockRef fail = Block("fail"), ok = Block("ok");
    LLVMBuildCondBr(builder_, LLVMBuildICmp(builder_, LLVMIntNE, code, Int32(0), ""), fail, ok);
    LLVMPositionBuilderAtEnd(builder_, fail);
    Return(code);
    LLVMPositionBuilderAtEnd(builder_, ok);
  }
  /// Leaves the function from inside of allocations.
  void Return(LLVMValueRef code) {
    for (size_t i = heap_.size(); i-- > 0;)
      CallBackend(offsetof(BatonBackendApi, free), LLVMVoidTypeInContext(ctx_), {heap_[i]});
    LLVMBuildRet(builder_, code);
  }

  // ---- Memory

  LLVMValueRef Base(const Buffer& b) {
    auto it = vars_.find(b->data.get());
    if (it == vars_.end()) throw InternalError("buffer `" + b->name.str() + "` has no memory in `" + symbol_ + "`");
    return it->second;
  }
  /// Row-major position; the last index may be a vector.
  PrimExpr Flat(const Buffer& b, const Array<PrimExpr>& indices) {
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
  LLVMValueRef Address(const Buffer& b, LLVMValueRef index) {
    return LLVMBuildInBoundsGEP2(builder_, MemoryType(ctx_, b->dtype.element_of()), Base(b), &index, 1, "");
  }
  unsigned Align(const Buffer& b) { return static_cast<unsigned>(std::max(1, b->dtype.element_of().bytes())); }
  LLVMValueRef FromMemory(LLVMValueRef v, DataType t) {
    if (!t.is_bool()) return v;
    return LLVMBuildICmp(builder_, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
  }
  LLVMValueRef ToMemory(LLVMValueRef v, DataType t) {
    return t.is_bool() ? LLVMBuildZExt(builder_, v, MemoryType(ctx_, t), "") : v;
  }
  LLVMValueRef Load(const Buffer& b, const PrimExpr& index) {
    DataType t = b->dtype.element_of().with_lanes(index.dtype().lanes());
    if (const auto* r = index.as<RampNode>(); r && is_one(r->stride)) {
      LLVMValueRef v = LLVMBuildLoad2(builder_, MemoryType(ctx_, t), Address(b, VisitExpr(r->base)), "");
      LLVMSetAlignment(v, Align(b));
      return FromMemory(v, t);
    }
    if (const auto* c = index.as<BroadcastNode>()) return Splat(Load(b, c->value), t.lanes());
    if (const auto* r = index.as<RampNode>(); r && as_const_int(r->stride))
      return StridedLoad(b, r, *as_const_int(r->stride), t);
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
  LLVMValueRef AlignedLoad(const Buffer& b, LLVMTypeRef type, LLVMValueRef index) {
    LLVMValueRef v = LLVMBuildLoad2(builder_, type, Address(b, index), "");
    LLVMSetAlignment(v, Align(b));
    return v;
  }
  /// Elements at a literal distance: whole vectors and a shuffle where that touches nothing but the elements asked for
  /// and what lies between them, else one load a lane at a literal offset.
  LLVMValueRef StridedLoad(const Buffer& b, const RampNode* r, int64_t stride, DataType t) {
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
      for (int i = 0; i < lanes; ++i)
        pick.push_back(Int32(2 * i < lanes ? 2 * i : 2 * i + 1));  // hi starts at lanes - 1
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
  void Store(const Buffer& b, const PrimExpr& index, LLVMValueRef value, DataType t) {
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

  LLVMValueRef Splat(LLVMValueRef v, int lanes) {
    if (LLVMIsConstant(v) && !LLVMIsUndef(v)) {
      std::vector<LLVMValueRef> all(static_cast<size_t>(lanes), v);
      return LLVMConstVector(all.data(), static_cast<unsigned>(lanes));
    }
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(v), static_cast<unsigned>(lanes));
    LLVMValueRef one = LLVMBuildInsertElement(builder_, LLVMGetPoison(type), v, Int32(0), "");
    LLVMValueRef mask = LLVMConstNull(LLVMVectorType(i32_, static_cast<unsigned>(lanes)));
    return LLVMBuildShuffleVector(builder_, one, LLVMGetPoison(type), mask, "");
  }

  // ---- Expressions

  LLVMValueRef VisitExpr(const PrimExpr& e) override {
    At at(this, e->span);
    return support::WithStack([&] { return ExprFunctor::VisitExpr(e); });
  }
  LLVMValueRef VisitExprDefault_(const Object* op) override {
    throw InternalError("the code generator does not know " + op->GetTypeKey() + " (in `" + symbol_ + "`)");
  }
  LLVMValueRef VisitExpr_(const VarNode* op) override {
    auto it = vars_.find(op);
    if (it == vars_.end())
      throw InternalError("variable `" + op->name_hint.str() + "` has no value in `" + symbol_ + "`");
    return it->second;
  }
  LLVMValueRef VisitExpr_(const IntImmNode* op) override {
    return LLVMConstInt(TypeFor(ctx_, op->dtype), static_cast<uint64_t>(op->value), op->dtype.is_int());
  }
  LLVMValueRef VisitExpr_(const FloatImmNode* op) override {
    return IsHalf(op->dtype) ? HalfConstant(ctx_, op->value, op->dtype) : LLVMConstReal(TypeFor(ctx_, op->dtype), op->value);
  }
  LLVMValueRef VisitExpr_(const StringImmNode* op) override {
    return LLVMBuildGlobalStringPtr(builder_, op->value.c_str(), "str");
  }

  LLVMValueRef Convert(LLVMValueRef v, DataType from, DataType to) {
    LLVMTypeRef type = TypeFor(ctx_, to);
    if (from == to) return v;
    const DataType f32 = DataType::Float(32, to.lanes());
    if (IsHalf(from)) return Convert(HalfToFloat32(builder_, v, from, has_float16_), f32, to);
    if (IsHalf(to)) return Float32ToHalf(builder_, Convert(v, from, f32), to, has_float16_);
    bool ff = from.is_floating(), tf = to.is_floating();
    if (to.is_bool()) {
      if (ff) return LLVMBuildFCmp(builder_, LLVMRealUNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
      return LLVMBuildICmp(builder_, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
    }
    if (from.is_handle() || to.is_handle()) {
      return from.is_handle() ? LLVMBuildPtrToInt(builder_, v, type, "") : LLVMBuildIntToPtr(builder_, v, type, "");
    }
    bool from_signed = from.is_int();
    if (!ff && !tf) {
      if (to.bits() < (from.is_bool() ? 1 : from.bits())) return LLVMBuildTrunc(builder_, v, type, "");
      if (!from.is_bool() && to.bits() == from.bits()) return v;
      return from_signed ? LLVMBuildSExt(builder_, v, type, "") : LLVMBuildZExt(builder_, v, type, "");
    }
    if (!ff) return from_signed ? LLVMBuildSIToFP(builder_, v, type, "") : LLVMBuildUIToFP(builder_, v, type, "");
    if (!tf) {
      // Out of range gives the nearest limit and NaN gives 0: never undefined. NumPy wraps narrow types through wider
      // ones.
      LLVMTypeRef wide = type;
      DataType via = to;
      if (to.bits() < 32) {
        via = DataType::Int(32, to.lanes());
        wide = TypeFor(ctx_, via);
      }
      LLVMValueRef r = Intrinsic(via.is_int() ? "llvm.fptosi.sat" : "llvm.fptoui.sat", {wide, LLVMTypeOf(v)}, {v});
      return via == to ? r : LLVMBuildTrunc(builder_, r, type, "");
    }
    return from.bits() < to.bits() ? LLVMBuildFPExt(builder_, v, type, "") : LLVMBuildFPTrunc(builder_, v, type, "");
  }
  LLVMValueRef VisitExpr_(const CastNode* op) override {
    return Convert(VisitExpr(op->value), op->value.dtype(), op->dtype);
  }

#define BATON_ARITH(Node, FloatOp, IntOp)                                                                           \
  LLVMValueRef VisitExpr_(const Node* op) override {                                                                \
    LLVMValueRef a = VisitExpr(op->a), b = VisitExpr(op->b);                                                        \
    return op->dtype.is_floating() ? LLVMBuild##FloatOp(builder_, a, b, "") : LLVMBuild##IntOp(builder_, a, b, ""); \
  }
  BATON_ARITH(AddNode, FAdd, Add)
  BATON_ARITH(SubNode, FSub, Sub)
  BATON_ARITH(MulNode, FMul, Mul)
#undef BATON_ARITH

  /// Integer division that never traps: by zero gives 0, and the smallest value by -1 wraps.
  LLVMValueRef IntDiv(const PrimExpr& ea, const PrimExpr& eb, bool remainder) {
    LLVMValueRef a = VisitExpr(ea), b = VisitExpr(eb);
    return IntDiv(a, b, ea.dtype(), eb, remainder);
  }
  LLVMValueRef IntDiv(LLVMValueRef a, LLVMValueRef b, DataType t, const PrimExpr& eb, bool remainder) {
    auto build = [&](LLVMValueRef x, LLVMValueRef y) {
      if (t.is_int()) return remainder ? LLVMBuildSRem(builder_, x, y, "") : LLVMBuildSDiv(builder_, x, y, "");
      return remainder ? LLVMBuildURem(builder_, x, y, "") : LLVMBuildUDiv(builder_, x, y, "");
    };
    PrimExpr s = eb.as<BroadcastNode>() ? eb.as<BroadcastNode>()->value : eb;
    if (const int64_t* c = as_const_int(s); c && *c != 0 && *c != -1) return build(a, b);
    LLVMTypeRef type = LLVMTypeOf(a);
    auto constant = [&](int64_t v) {
      LLVMValueRef k = LLVMConstInt(ElementType(ctx_, t), static_cast<uint64_t>(v), 1);
      return t.lanes() > 1 ? Splat(k, t.lanes()) : k;
    };
    LLVMValueRef zero = LLVMConstNull(type), one = constant(1);
    LLVMValueRef bad = LLVMBuildICmp(builder_, LLVMIntEQ, b, zero, "");
    LLVMValueRef safe = LLVMBuildSelect(builder_, bad, one, b, "");
    LLVMValueRef result;
    if (t.is_int()) {
      LLVMValueRef minus = LLVMBuildICmp(builder_, LLVMIntEQ, b, constant(-1), "");
      safe = LLVMBuildSelect(builder_, minus, one, safe, "");
      result = LLVMBuildSelect(builder_, minus, remainder ? zero : LLVMBuildNeg(builder_, a, ""), build(a, safe), "");
    } else {
      result = build(a, safe);
    }
    return LLVMBuildSelect(builder_, bad, zero, result, "");
  }
  LLVMValueRef VisitExpr_(const DivNode* op) override {
    if (op->dtype.is_floating()) return LLVMBuildFDiv(builder_, VisitExpr(op->a), VisitExpr(op->b), "");
    return IntDiv(op->a, op->b, false);
  }
  LLVMValueRef VisitExpr_(const ModNode* op) override {
    if (op->dtype.is_floating()) return LLVMBuildFRem(builder_, VisitExpr(op->a), VisitExpr(op->b), "");
    return IntDiv(op->a, op->b, true);
  }
  /// log2 of a positive power of two, else -1.
  static int Log2(const PrimExpr& e) {
    PrimExpr s = e.as<BroadcastNode>() ? e.as<BroadcastNode>()->value : e;
    const int64_t* c = as_const_int(s);
    return c && *c > 0 && (*c & (*c - 1)) == 0 ? __builtin_ctzll(static_cast<uint64_t>(*c)) : -1;
  }
  LLVMValueRef VisitExpr_(const FloorDivNode* op) override {
    DataType t = op->dtype;
    if (t.is_floating())
      return Intrinsic("llvm.floor", {TypeFor(ctx_, t)},
                       {LLVMBuildFDiv(builder_, VisitExpr(op->a), VisitExpr(op->b), "")});
    if (t.is_uint()) return IntDiv(op->a, op->b, false);
    if (int k = Log2(op->b); k >= 0) return LLVMBuildAShr(builder_, VisitExpr(op->a), ConstLike(k, t), "");
    LLVMValueRef q = nullptr, r = nullptr;
    FloorParts(op->a, op->b, &q, &r);
    return q;
  }
  LLVMValueRef VisitExpr_(const FloorModNode* op) override {
    DataType t = op->dtype;
    if (t.is_floating()) {
      LLVMValueRef a = VisitExpr(op->a), b = VisitExpr(op->b), r = LLVMBuildFRem(builder_, a, b, "");
      LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(r));
      LLVMValueRef neq = LLVMBuildFCmp(builder_, LLVMRealONE, r, zero, "");
      LLVMValueRef sr = LLVMBuildFCmp(builder_, LLVMRealOLT, r, zero, ""),
                   sb = LLVMBuildFCmp(builder_, LLVMRealOLT, b, zero, "");
      LLVMValueRef adjust = LLVMBuildAnd(builder_, neq, LLVMBuildXor(builder_, sr, sb, ""), "");
      return LLVMBuildSelect(builder_, adjust, LLVMBuildFAdd(builder_, r, b, ""), r, "");
    }
    if (t.is_uint()) return IntDiv(op->a, op->b, true);
    if (int k = Log2(op->b); k >= 0)
      return LLVMBuildAnd(builder_, VisitExpr(op->a), ConstLike((int64_t{1} << k) - 1, t), "");
    LLVMValueRef q = nullptr, r = nullptr;
    FloorParts(op->a, op->b, &q, &r);
    return r;
  }
  LLVMValueRef ConstLike(int64_t v, DataType t) {
    LLVMValueRef k = LLVMConstInt(ElementType(ctx_, t), static_cast<uint64_t>(v), 1);
    return t.lanes() > 1 ? Splat(k, t.lanes()) : k;
  }
  /// Floor quotient and remainder; each operand is computed once, or nested divisions would double at each level.
  void FloorParts(const PrimExpr& ea, const PrimExpr& eb, LLVMValueRef* floor_q, LLVMValueRef* floor_r) {
    DataType t = ea.dtype();
    LLVMValueRef a = VisitExpr(ea), b = VisitExpr(eb);
    LLVMValueRef q = IntDiv(a, b, t, eb, false), r = IntDiv(a, b, t, eb, true), zero = LLVMConstNull(LLVMTypeOf(r));
    LLVMValueRef nonzero = LLVMBuildICmp(builder_, LLVMIntNE, r, zero, "");
    LLVMValueRef signs = LLVMBuildICmp(builder_, LLVMIntSLT, LLVMBuildXor(builder_, r, b, ""), zero, "");
    LLVMValueRef adjust = LLVMBuildAnd(builder_, nonzero, signs, "");
    *floor_q = LLVMBuildSub(builder_, q, LLVMBuildZExt(builder_, adjust, LLVMTypeOf(q), ""), "");
    *floor_r = LLVMBuildSelect(builder_, adjust, LLVMBuildAdd(builder_, r, b, ""), r, "");
  }

  /// NaN in either operand gives NaN. `keep_a`: predicate under which a is the result.
  LLVMValueRef MinMax(const PrimExpr& ea, const PrimExpr& eb, LLVMRealPredicate keep_a, LLVMIntPredicate s,
                      LLVMIntPredicate u) {
    DataType t = ea.dtype();
    LLVMValueRef a = VisitExpr(ea), b = VisitExpr(eb);
    if (!t.is_floating()) {
      return LLVMBuildSelect(builder_, LLVMBuildICmp(builder_, t.is_int() ? s : u, a, b, ""), a, b, "");
    }
    // The unordered predicate keeps a NaN in a; one in b is kept by the second choice, needless for literals.
    if (LLVMIsConstant(a)) std::swap(a, b);
    LLVMValueRef r = LLVMBuildSelect(builder_, LLVMBuildFCmp(builder_, keep_a, a, b, ""), a, b, "");
    if (LLVMIsConstant(b)) return r;
    return LLVMBuildSelect(builder_, LLVMBuildFCmp(builder_, LLVMRealUNO, b, b, ""), b, r, "");
  }
  LLVMValueRef VisitExpr_(const MinNode* op) override {
    return MinMax(op->a, op->b, LLVMRealULT, LLVMIntSLT, LLVMIntULT);
  }
  LLVMValueRef VisitExpr_(const MaxNode* op) override {
    return MinMax(op->a, op->b, LLVMRealUGT, LLVMIntSGT, LLVMIntUGT);
  }

  LLVMValueRef Compare(const PrimExpr& ea, const PrimExpr& eb, LLVMRealPredicate f, LLVMIntPredicate s,
                       LLVMIntPredicate u) {
    LLVMValueRef a = VisitExpr(ea), b = VisitExpr(eb);
    DataType t = ea.dtype();
    if (t.is_floating()) return LLVMBuildFCmp(builder_, f, a, b, "");
    return LLVMBuildICmp(builder_, t.is_int() ? s : u, a, b, "");
  }
#define BATON_COMPARE(Node, F, S, U)                                   \
  LLVMValueRef VisitExpr_(const Node* op) override {                   \
    return Compare(op->a, op->b, LLVMReal##F, LLVMInt##S, LLVMInt##U); \
  }
  BATON_COMPARE(EQNode, OEQ, EQ, EQ)
  BATON_COMPARE(NENode, UNE, NE, NE)
  BATON_COMPARE(LTNode, OLT, SLT, ULT)
  BATON_COMPARE(LENode, OLE, SLE, ULE)
  BATON_COMPARE(GTNode, OGT, SGT, UGT)
  BATON_COMPARE(GENode, OGE, SGE, UGE)
#undef BATON_COMPARE
  LLVMValueRef VisitExpr_(const AndNode* op) override {
    LLVMValueRef a = VisitExpr(op->a);
    return LLVMBuildAnd(builder_, a, VisitExpr(op->b), "");
  }
  LLVMValueRef VisitExpr_(const OrNode* op) override {
    LLVMValueRef a = VisitExpr(op->a);
    return LLVMBuildOr(builder_, a, VisitExpr(op->b), "");
  }
  LLVMValueRef VisitExpr_(const NotNode* op) override { return LLVMBuildNot(builder_, VisitExpr(op->a), ""); }
  LLVMValueRef VisitExpr_(const SelectNode* op) override {
    LLVMValueRef c = VisitExpr(op->condition), t = VisitExpr(op->true_value), f = VisitExpr(op->false_value);
    return LLVMBuildSelect(builder_, c, t, f, "");
  }
  LLVMValueRef VisitExpr_(const BufferLoadNode* op) override { return Load(op->buffer, Flat(op->buffer, op->indices)); }
  LLVMValueRef VisitExpr_(const RampNode* op) override {
    DataType t = op->dtype;
    std::vector<LLVMValueRef> steps;
    for (int64_t i = 0; i < op->lanes; ++i)
      steps.push_back(LLVMConstInt(ElementType(ctx_, t), static_cast<uint64_t>(i), 1));
    LLVMValueRef iota = LLVMConstVector(steps.data(), static_cast<unsigned>(steps.size()));
    LLVMValueRef base = Splat(VisitExpr(op->base), static_cast<int>(op->lanes));
    LLVMValueRef stride = Splat(VisitExpr(op->stride), static_cast<int>(op->lanes));
    return LLVMBuildAdd(builder_, base, LLVMBuildMul(builder_, iota, stride, ""), "");
  }
  LLVMValueRef VisitExpr_(const BroadcastNode* op) override {
    return Splat(VisitExpr(op->value), static_cast<int>(op->lanes));
  }
  LLVMValueRef VisitExpr_(const ShuffleNode* op) override {
    std::vector<LLVMValueRef> mask;
    for (int64_t i : op->indices) mask.push_back(Int32(i));
    LLVMValueRef a = VisitExpr(op->vectors[0]);
    if (op->vectors[0].dtype().is_scalar()) {  // scalars side by side
      LLVMValueRef out = LLVMGetPoison(TypeFor(ctx_, op->dtype));
      for (size_t i = 0; i < mask.size(); ++i) {
        out = LLVMBuildInsertElement(builder_, out, VisitExpr(op->vectors[op->indices[static_cast<int64_t>(i)]]),
                                     Int32(static_cast<int64_t>(i)), "");
      }
      return out;
    }
    LLVMValueRef b = op->vectors.size() > 1 ? VisitExpr(op->vectors[1]) : LLVMGetPoison(LLVMTypeOf(a));
    if (op->vectors.size() > 2) throw InternalError("a shuffle of more than two vectors");
    if (mask.size() == 1) {
      int64_t i = op->indices[0], n = op->vectors[0].dtype().lanes();
      return LLVMBuildExtractElement(builder_, i < n ? a : b, Int32(i < n ? i : i - n), "");
    }
    return LLVMBuildShuffleVector(builder_, a, b, LLVMConstVector(mask.data(), static_cast<unsigned>(mask.size())), "");
  }
  LLVMValueRef VisitExpr_(const tir::LetNode* op) override {
    vars_[op->var.get()] = VisitExpr(op->value);
    return VisitExpr(op->body);
  }

  LLVMValueRef IfThenElseExpr(const tir::CallNode* op) {
    if (op->args[0].dtype().lanes() > 1)
      throw InternalError("a vector if_then_else must be masked before code generation (in `" + symbol_ + "`)");
    LLVMValueRef c = VisitExpr(op->args[0]);
    LLVMBasicBlockRef yes = Block("then"), no = Block("else"), end = Block("endif");
    LLVMBuildCondBr(builder_, c, yes, no);
    LLVMPositionBuilderAtEnd(builder_, yes);
    LLVMValueRef tv = VisitExpr(op->args[1]);
    LLVMBasicBlockRef yes_end = LLVMGetInsertBlock(builder_);
    LLVMBuildBr(builder_, end);
    LLVMPositionBuilderAtEnd(builder_, no);
    LLVMValueRef fv = VisitExpr(op->args[2]);
    LLVMBasicBlockRef no_end = LLVMGetInsertBlock(builder_);
    LLVMBuildBr(builder_, end);
    LLVMPositionBuilderAtEnd(builder_, end);
    LLVMValueRef phi = LLVMBuildPhi(builder_, LLVMTypeOf(tv), "");
    LLVMValueRef values[] = {tv, fv};
    LLVMBasicBlockRef blocks[] = {yes_end, no_end};
    LLVMAddIncoming(phi, values, blocks, 2);
    return phi;
  }

  /// A C math function, lane by lane.
  LLVMValueRef Libm(const std::string& base, const tir::CallNode* op) {
    DataType t = op->dtype, compute = t.bits() == 64 ? t.element_of() : DataType::Float(32);
    std::string name = compute.bits() == 64 ? base : base + "f";
    std::vector<LLVMValueRef> args;
    for (const PrimExpr& a : op->args) args.push_back(Convert(VisitExpr(a), a.dtype(), compute.with_lanes(t.lanes())));
    LLVMTypeRef ret = ElementType(ctx_, compute);
    auto call = [&](std::vector<LLVMValueRef> a) { return CallExtern(name.c_str(), ret, std::move(a)); };
    LLVMValueRef out;
    if (t.is_scalar()) {
      out = call(args);
    } else {
      out = LLVMGetPoison(LLVMVectorType(ret, static_cast<unsigned>(t.lanes())));
      for (int i = 0; i < t.lanes(); ++i) {
        std::vector<LLVMValueRef> lane;
        for (LLVMValueRef a : args) lane.push_back(LLVMBuildExtractElement(builder_, a, Int32(i), ""));
        out = LLVMBuildInsertElement(builder_, out, call(lane), Int32(i), "");
      }
    }
    return Convert(out, compute.with_lanes(t.lanes()), t);
  }

  /// x * 2^k for an integral float k in [-300, 300], rounded once.
  LLVMValueRef Ldexp(LLVMValueRef x, LLVMValueRef k, DataType t) {
    int lanes = t.lanes();
    LLVMTypeRef type = TypeFor(ctx_, t);
    if ((lanes == 16 && target_->Has("avx512f")) || ((lanes == 8 || lanes == 4) && target_->Has("avx512vl"))) {
      std::string name = "llvm.x86.avx512.mask.scalef.ps." + std::to_string(lanes * 32);
      LLVMTypeRef mask = LLVMIntTypeInContext(ctx_, lanes == 16 ? 16 : 8);
      std::vector<LLVMValueRef> args{x, k, LLVMConstNull(type), LLVMConstAllOnes(mask)};
      if (lanes == 16) args.push_back(Int32(4));  // the rounding mode there is
      return Intrinsic(name.c_str(), {}, args);
    }
    // In two halves, so that results below the smallest normal number are rounded once and those above overflow. The
    // integer comes from the bits of 1.5 * 2^23 + k: a conversion of NaN would have no value.
    DataType it = DataType::Int(32, lanes);
    LLVMTypeRef itype = TypeFor(ctx_, it);
    LLVMValueRef magic = LLVMConstReal(ElementType(ctx_, t), 12582912);
    if (lanes > 1) magic = Splat(magic, lanes);
    LLVMValueRef n =
        LLVMBuildSub(builder_, LLVMBuildBitCast(builder_, LLVMBuildFAdd(builder_, k, magic, ""), itype, ""),
                     ConstLike(0x4B400000, it), "");
    LLVMValueRef half = LLVMBuildAShr(builder_, n, ConstLike(1, it), "");
    auto scale = [&](LLVMValueRef e) {
      LLVMValueRef bits =
          LLVMBuildShl(builder_, LLVMBuildAdd(builder_, e, ConstLike(127, it), ""), ConstLike(23, it), "");
      return LLVMBuildBitCast(builder_, bits, type, "");
    };
    LLVMValueRef r = LLVMBuildFMul(builder_, x, scale(half), "");
    return LLVMBuildFMul(builder_, r, scale(LLVMBuildSub(builder_, n, half, "")), "");
  }

  /// Combines the halves of a vector until one lane is left.
  template <class F>
  LLVMValueRef Halves(LLVMValueRef v, int lanes, F combine) {
    while (lanes > 1) {
      int half = lanes / 2;
      std::vector<LLVMValueRef> lo, hi;
      for (int i = 0; i < half; ++i) lo.push_back(Int32(i)), hi.push_back(Int32(i + half));
      LLVMValueRef poison = LLVMGetPoison(LLVMTypeOf(v));
      LLVMValueRef a, b;
      if (half == 1) {
        a = LLVMBuildExtractElement(builder_, v, Int32(0), "");
        b = LLVMBuildExtractElement(builder_, v, Int32(1), "");
      } else {
        a = LLVMBuildShuffleVector(builder_, v, poison, LLVMConstVector(lo.data(), static_cast<unsigned>(half)), "");
        b = LLVMBuildShuffleVector(builder_, v, poison, LLVMConstVector(hi.data(), static_cast<unsigned>(half)), "");
      }
      LLVMValueRef r = combine(a, b);
      if (lanes % 2) {  // an odd lane joins at the end
        LLVMValueRef last = LLVMBuildExtractElement(builder_, v, Int32(lanes - 1), "");
        if (half == 1) return combine(r, last);
        throw InternalError("a vector reduction over " + std::to_string(lanes) + " lanes");
      }
      v = r;
      lanes = half;
    }
    return v;
  }

  LLVMValueRef VisitExpr_(const tir::CallNode* op) override {
    if (const auto* gv = op->op.as<GlobalVarNode>()) {
      BaseFunc callee = mod_->Lookup(GetRef<GlobalVar>(gv));
      PrimFunc f = Downcast<PrimFunc>(callee);
      LLVMValueRef fn = Declare(SymbolOf(GetRef<GlobalVar>(gv), callee), f);
      std::vector<LLVMValueRef> args;
      for (const PrimExpr& a : op->args) args.push_back(VisitExpr(a));
      LLVMTypeRef type = LLVMGlobalGetValueType(fn);
      if (LLVMCountParamTypes(type) != args.size()) {
        throw InternalError("`" + gv->name_hint.str() + "` takes " + std::to_string(LLVMCountParamTypes(type)) +
                            " arguments, the call has " + std::to_string(args.size()));
      }
      LLVMValueRef code = LLVMBuildCall2(builder_, type, fn, args.data(), static_cast<unsigned>(args.size()), "");
      ReturnIfError(code);
      return code;
    }
    std::string name(IntrinName(op));
    if (name.rfind("tir.", 0) == 0) name = name.substr(4);
    DataType t = op->dtype;
    LLVMTypeRef type = t.is_void() ? nullptr : TypeFor(ctx_, t);
    auto arg = [&](int i) { return VisitExpr(op->args[i]); };
    // Intrinsics that processors have as instructions.
    static const std::unordered_map<std::string, const char*> direct = {
        {"sqrt", "llvm.sqrt"}, {"floor", "llvm.floor"}, {"ceil", "llvm.ceil"},           {"trunc", "llvm.trunc"},
        {"fabs", "llvm.fabs"}, {"round", "llvm.round"}, {"nearbyint", "llvm.nearbyint"}, {"popcount", "llvm.ctpop"}};
    if (auto it = direct.find(name); it != direct.end()) return Intrinsic(it->second, {type}, {arg(0)});
    static const std::unordered_set<std::string> libm = {
        "exp",  "exp2", "log",  "log2", "log10", "log1p", "sin",   "cos", "tan", "sinh", "cosh",
        "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "pow", "fmod", "atan2"};
    if (libm.count(name) && t.is_floating()) return Libm(name, op);
    if (name == "fma") return Intrinsic("llvm.fma", {type}, {arg(0), arg(1), arg(2)});
    if (name == "ldexp" && t.is_float() && t.bits() == 32) return Ldexp(arg(0), arg(1), t);
    if (name == "if_then_else") return IfThenElseExpr(op);
    if (name == "likely") return arg(0);
    if (name == "rsqrt") {
      LLVMValueRef one = LLVMConstReal(ElementType(ctx_, t), 1);
      return LLVMBuildFDiv(builder_, t.lanes() > 1 ? Splat(one, t.lanes()) : one,
                           Intrinsic("llvm.sqrt", {type}, {arg(0)}), "");
    }
    if (name == "abs") {
      if (t.is_floating()) return Intrinsic("llvm.fabs", {type}, {arg(0)});
      if (t.is_uint() || t.is_bool()) return arg(0);
      return Intrinsic("llvm.abs", {type}, {arg(0), LLVMConstInt(LLVMInt1TypeInContext(ctx_), 0, 0)});
    }
    if (name == "isnan") {
      LLVMValueRef x = arg(0);
      return LLVMBuildFCmp(builder_, LLVMRealUNO, x, x, "");
    }
    if (name == "isinf" || name == "isfinite") {
      DataType ft = op->args[0].dtype();
      LLVMTypeRef ftype = TypeFor(ctx_, ft);
      LLVMValueRef inf = LLVMConstReal(ElementType(ctx_, ft), __builtin_inf());
      if (ft.lanes() > 1) inf = Splat(inf, ft.lanes());
      return LLVMBuildFCmp(builder_, name == "isinf" ? LLVMRealOEQ : LLVMRealONE,
                           Intrinsic("llvm.fabs", {ftype}, {arg(0)}), inf, "");
    }
    if (name == "bitwise_not") return LLVMBuildNot(builder_, arg(0), "");
    if (name == "bitwise_and") return LLVMBuildAnd(builder_, arg(0), arg(1), "");
    if (name == "bitwise_or") return LLVMBuildOr(builder_, arg(0), arg(1), "");
    if (name == "bitwise_xor") return LLVMBuildXor(builder_, arg(0), arg(1), "");
    if (name == "shift_left" || name == "shift_right") {
      // A shift by the width or more gives 0 (or the sign), as NumPy has it.
      LLVMValueRef a = arg(0), n = arg(1), width = ConstLike(t.bits(), t);
      LLVMValueRef big = LLVMBuildICmp(builder_, LLVMIntUGE, n, width, "");
      bool arithmetic = name == "shift_right" && t.is_int();
      LLVMValueRef safe = LLVMBuildSelect(builder_, big, ConstLike(t.bits() - 1, t), n, "");
      if (arithmetic) return LLVMBuildAShr(builder_, a, safe, "");
      LLVMValueRef r =
          name == "shift_left" ? LLVMBuildShl(builder_, a, safe, "") : LLVMBuildLShr(builder_, a, safe, "");
      return LLVMBuildSelect(builder_, big, LLVMConstNull(type), r, "");
    }
    if (name == "reinterpret") {
      LLVMValueRef x = arg(0);
      return LLVMBuildBitCast(builder_, x, type, "");
    }
    if (name == "masked_load") return MaskedLoad(op);
    if (name == "masked_store") return MaskedStore(op);
    if (name == "prefetch") {
      const auto* l = op->args[0].as<BufferLoadNode>();
      PrimExpr flat = Flat(l->buffer, l->indices);
      if (const auto* r = flat.as<RampNode>()) flat = r->base;
      LLVMValueRef at = Address(l->buffer, VisitExpr(flat));
      const int64_t* locality = as_const_int(op->args[1]);
      Intrinsic("llvm.prefetch", {ptr_}, {at, Int32(0), Int32(locality ? *locality : 3), Int32(1)});
      return Int32(0);
    }
    if (name == "address_of") {
      const auto* l = op->args[0].as<BufferLoadNode>();
      PrimExpr flat = Flat(l->buffer, l->indices);
      if (const auto* r = flat.as<RampNode>()) flat = r->base;
      return Address(l->buffer, VisitExpr(flat));
    }
    if (name == "call_packed") return CallPacked(op);
    if (name == "call_extern") {
      std::vector<LLVMValueRef> args;
      for (size_t i = 1; i < op->args.size(); ++i) args.push_back(arg(static_cast<int>(i)));
      return CallExtern(op->args[0].as<StringImmNode>()->value.c_str(),
                        t.is_void() ? LLVMVoidTypeInContext(ctx_) : type, args);
    }
    if (name.rfind("vector_", 0) == 0) {
      LLVMValueRef v = arg(0);
      int lanes = op->args[0].dtype().lanes();
      bool f = t.is_floating();
      if (name == "vector_sum")
        return Halves(v, lanes, [&](LLVMValueRef a, LLVMValueRef b) {
          return f ? LLVMBuildFAdd(builder_, a, b, "") : LLVMBuildAdd(builder_, a, b, "");
        });
      if (name == "vector_prod")
        return Halves(v, lanes, [&](LLVMValueRef a, LLVMValueRef b) {
          return f ? LLVMBuildFMul(builder_, a, b, "") : LLVMBuildMul(builder_, a, b, "");
        });
      bool max = name == "vector_max";
      return Halves(v, lanes, [&](LLVMValueRef a, LLVMValueRef b) {
        if (!f) {
          LLVMIntPredicate p = max ? (t.is_int() ? LLVMIntSGT : LLVMIntUGT) : (t.is_int() ? LLVMIntSLT : LLVMIntULT);
          return LLVMBuildSelect(builder_, LLVMBuildICmp(builder_, p, a, b, ""), a, b, "");
        }
        LLVMValueRef r =
            LLVMBuildSelect(builder_, LLVMBuildFCmp(builder_, max ? LLVMRealUGT : LLVMRealULT, a, b, ""), a, b, "");
        return LLVMBuildSelect(builder_, LLVMBuildFCmp(builder_, LLVMRealUNO, b, b, ""), b, r, "");
      });
    }
    if (name == "ptr_offset") {
      LLVMValueRef base = arg(0), off = arg(1);
      return LLVMBuildInBoundsGEP2(builder_, LLVMInt8TypeInContext(ctx_), base, &off, 1, "");
    }
    if (name == "load_handle") {
      LLVMValueRef base = arg(0), i = arg(1);
      return LLVMBuildLoad2(builder_, ptr_, LLVMBuildInBoundsGEP2(builder_, ptr_, base, &i, 1, ""), "");
    }
    if (name == "memcpy") {
      LLVMBuildMemCpy(builder_, arg(0), 1, arg(1), 1, arg(2));
      return Int32(0);
    }
    throw InternalError("the code generator does not know the intrinsic tir." + name + " for " + DataType2String(t) +
                        " (in `" + symbol_ + "`)");
  }

  // ---- Calls of PackedFuncs

  /// A tensor on the stack, for the time of a call. Arguments: data, a literal of the dtype, the dimensions.
  LLVMValueRef StackTensor(const tir::CallNode* op) {
    DataType t = op->args[1].dtype();
    int64_t ndim = static_cast<int64_t>(op->args.size()) - 2;
    LLVMTypeRef i8 = LLVMInt8TypeInContext(ctx_), i16 = LLVMInt16TypeInContext(ctx_);
    LLVMTypeRef fields[] = {ptr_, i32_, i32_, i32_, i8, i8, i16, ptr_, ptr_, i64_};  // DLTensor
    LLVMTypeRef type = LLVMStructTypeInContext(ctx_, fields, 10, 0);
    LLVMValueRef shape = Alloca(i64_, std::max<int64_t>(ndim, 1), 8), tensor = Alloca(type, 1, 8);
    for (int64_t d = 0; d < ndim; ++d) {
      LLVMValueRef at = Int64(d),
                   size = Convert(VisitExpr(op->args[d + 2]), op->args[d + 2].dtype(), DataType::Int(64));
      LLVMBuildStore(builder_, size, LLVMBuildInBoundsGEP2(builder_, i64_, shape, &at, 1, ""));
    }
    LLVMValueRef values[] = {VisitExpr(op->args[0]),
                             Int32(kDLCPU),
                             Int32(0),
                             Int32(ndim),
                             LLVMConstInt(i8, t.code(), 0),
                             LLVMConstInt(i8, static_cast<uint64_t>(t.bits()), 0),
                             LLVMConstInt(i16, static_cast<uint64_t>(t.lanes()), 0),
                             shape,
                             LLVMConstNull(ptr_),
                             Int64(0)};
    for (unsigned i = 0; i < 10; ++i)
      LLVMBuildStore(builder_, values[i], LLVMBuildStructGEP2(builder_, type, tensor, i, ""));
    return tensor;
  }
  /// Calls a function by name. It is looked up at the first call from here and kept.
  LLVMValueRef CallPacked(const tir::CallNode* op) {
    const std::string callee = op->args[0].as<StringImmNode>()->value.str();
    LLVMTypeRef fields[] = {i32_, i32_, i64_};  // BatonValue
    LLVMTypeRef value_type = LLVMStructTypeInContext(ctx_, fields, 3, 0);
    int64_t n = static_cast<int64_t>(op->args.size()) - 1;
    LLVMValueRef values = Alloca(value_type, n + 1, 16);
    auto field = [&](int64_t i, unsigned k) {
      LLVMValueRef index = Int64(i);
      LLVMValueRef at = LLVMBuildInBoundsGEP2(builder_, value_type, values, &index, 1, "");
      return LLVMBuildStructGEP2(builder_, value_type, at, k, "");
    };
    for (int64_t i = 0; i < n; ++i) {
      const PrimExpr& a = op->args[i + 1];
      DataType t = a.dtype();
      const auto* call = a.as<tir::CallNode>();
      int64_t code = 0;
      LLVMValueRef payload = nullptr;
      if (call && IntrinName(call) == "tir.tvm_stack_make_array") {
        code = kBatonTensor;
        payload = LLVMBuildPtrToInt(builder_, StackTensor(call), i64_, "");
      } else if (a.as<StringImmNode>() || t.is_handle()) {
        code = t.is_handle() && !a.as<StringImmNode>() ? kBatonHandle : kBatonStr;
        payload = LLVMBuildPtrToInt(builder_, VisitExpr(a), i64_, "");
      } else if (t.is_floating()) {
        code = kBatonFloat;
        payload = LLVMBuildBitCast(builder_, Convert(VisitExpr(a), t, DataType::Float(64)), i64_, "");
      } else {
        code = t.is_bool() ? kBatonBool : kBatonInt;
        payload = Convert(VisitExpr(a), t, DataType::Int(64));
      }
      LLVMBuildStore(builder_, Int32(code), field(i, 0));
      LLVMBuildStore(builder_, Int32(0), field(i, 1));
      LLVMBuildStore(builder_, payload, field(i, 2));
    }
    LLVMBuildStore(builder_, Int32(kBatonNull), field(n, 0));
    LLVMBuildStore(builder_, Int64(0), field(n, 2));
    // The slot is written by whoever comes first; threads that come at the same time write the same.
    const std::string slot_name = "baton_packed_slot." + callee;
    LLVMValueRef slot = LLVMGetNamedGlobal(module_, slot_name.c_str());
    if (!slot) {
      slot = LLVMAddGlobal(module_, ptr_, slot_name.c_str());
      LLVMSetInitializer(slot, LLVMConstNull(ptr_));
      LLVMSetLinkage(slot, LLVMInternalLinkage);
    }
    auto load = [&] {
      LLVMValueRef v = LLVMBuildLoad2(builder_, ptr_, slot, "");
      LLVMSetAlignment(v, 8);
      LLVMSetOrdering(v, LLVMAtomicOrderingMonotonic);
      return v;
    };
    LLVMBasicBlockRef from = nullptr, look = Block("look_up"), ready = Block("found");
    LLVMValueRef known = load();
    from = LLVMGetInsertBlock(builder_);
    LLVMBuildCondBr(builder_, LLVMBuildIsNull(builder_, known, ""), look, ready);
    LLVMPositionBuilderAtEnd(builder_, look);
    LLVMValueRef out = Alloca(ptr_, 1, 8);
    LLVMValueRef self = LLVMGetNamedGlobal(module_, runtime::kModuleSymbol);
    if (!self) self = LLVMAddGlobal(module_, ptr_, runtime::kModuleSymbol);
    LLVMValueRef text = LLVMBuildGlobalStringPtr(builder_, callee.c_str(), "str");
    ReturnIfError(CallBackend(offsetof(BatonBackendApi, get_function), i32_,
                              {LLVMBuildLoad2(builder_, ptr_, self, ""), text, out}));
    LLVMValueRef found = LLVMBuildLoad2(builder_, ptr_, out, "");
    LLVMValueRef store = LLVMBuildStore(builder_, found, slot);
    LLVMSetAlignment(store, 8);
    LLVMSetOrdering(store, LLVMAtomicOrderingMonotonic);
    LLVMBasicBlockRef looked = LLVMGetInsertBlock(builder_);
    LLVMBuildBr(builder_, ready);
    LLVMPositionBuilderAtEnd(builder_, ready);
    LLVMValueRef function = LLVMBuildPhi(builder_, ptr_, "");
    LLVMValueRef incoming[] = {known, found};
    LLVMBasicBlockRef blocks[] = {from, looked};
    LLVMAddIncoming(function, incoming, blocks, 2);
    LLVMValueRef end = Int64(n), ret = LLVMBuildInBoundsGEP2(builder_, value_type, values, &end, 1, "");
    ReturnIfError(CallBackend(offsetof(BatonBackendApi, call_function), i32_, {function, values, Int32(n), ret}));
    DataType t = op->dtype;
    if (t.is_void()) return Int32(0);
    LLVMValueRef code = LLVMBuildLoad2(builder_, i32_, field(n, 0), "");
    LLVMValueRef bits = LLVMBuildLoad2(builder_, i64_, field(n, 2), "");
    if (t.is_handle()) return LLVMBuildIntToPtr(builder_, bits, ptr_, "");
    LLVMValueRef is_float = LLVMBuildICmp(builder_, LLVMIntEQ, code, Int32(kBatonFloat), "");
    LLVMValueRef real = LLVMBuildBitCast(builder_, bits, LLVMDoubleTypeInContext(ctx_), "");
    LLVMValueRef as_float = Convert(real, DataType::Float(64), t), as_int = Convert(bits, DataType::Int(64), t);
    return LLVMBuildSelect(builder_, is_float, as_float, as_int, "");
  }

  // Masked accesses wider than a register are split here. LLVM 19 splits them wrongly: for AVX2, where the mask of the
  // upper half is a constant 0, it loads that half without a mask (llc 19.1.7, nn.correlation on 9 columns).

  bool IsWiderThanRegister(LLVMTypeRef element, int lanes) const {
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(module_);
    return lanes % 2 == 0 && static_cast<int64_t>(LLVMSizeOfTypeInBits(layout, element)) * lanes > target_->vector_bits();
  }
  LLVMValueRef LanesOf(LLVMValueRef v, int first, int count) {
    std::vector<LLVMValueRef> index;
    for (int i = 0; i < count; ++i) index.push_back(Int32(first + i));
    LLVMValueRef mask = LLVMConstVector(index.data(), static_cast<unsigned>(count));
    return LLVMBuildShuffleVector(builder_, v, LLVMGetPoison(LLVMTypeOf(v)), mask, "");
  }
  LLVMValueRef After(LLVMValueRef at, LLVMTypeRef element, int lanes) {
    LLVMValueRef index = Int64(lanes);
    return LLVMBuildGEP2(builder_, element, at, &index, 1, "");
  }
  /// `lanes` neighbours from `at` on; 0 where the mask is false.
  LLVMValueRef MaskedRow(LLVMValueRef at, LLVMValueRef mask, LLVMTypeRef element, int lanes, LLVMValueRef align) {
    LLVMTypeRef type = LLVMVectorType(element, static_cast<unsigned>(lanes));
    if (!IsWiderThanRegister(element, lanes)) {
      return Intrinsic("llvm.masked.load", {type, ptr_}, {at, align, mask, LLVMConstNull(type)});
    }
    const int half = lanes / 2;
    LLVMValueRef low = MaskedRow(at, LanesOf(mask, 0, half), element, half, align);
    LLVMValueRef high = MaskedRow(After(at, element, half), LanesOf(mask, half, half), element, half, align);
    std::vector<LLVMValueRef> index;
    for (int i = 0; i < lanes; ++i) index.push_back(Int32(i));
    LLVMValueRef all = LLVMConstVector(index.data(), static_cast<unsigned>(lanes));
    return LLVMBuildShuffleVector(builder_, low, high, all, "");
  }
  void StoreMaskedRow(LLVMValueRef value, LLVMValueRef at, LLVMValueRef mask, LLVMTypeRef element, int lanes,
                      LLVMValueRef align) {
    if (!IsWiderThanRegister(element, lanes)) {
      Intrinsic("llvm.masked.store", {LLVMTypeOf(value), ptr_}, {value, at, align, mask});
      return;
    }
    const int half = lanes / 2;
    StoreMaskedRow(LanesOf(value, 0, half), at, LanesOf(mask, 0, half), element, half, align);
    StoreMaskedRow(LanesOf(value, half, half), After(at, element, half), LanesOf(mask, half, half), element, half, align);
  }

  LLVMValueRef MaskedLoad(const tir::CallNode* op) {
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
    return FromMemory(Intrinsic("llvm.masked.gather", {type, LLVMVectorType(ptr_, static_cast<unsigned>(t.lanes()))},
                                {ptrs, align, mask, zero}),
                      t);
  }
  LLVMValueRef MaskedStore(const tir::CallNode* op) {
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
    Intrinsic("llvm.masked.scatter", {type, LLVMVectorType(ptr_, static_cast<unsigned>(t.lanes()))},
              {value, ptrs, align, mask});
    return Int32(0);
  }

  // ---- Statements

  void VisitStmt(const Stmt& s) override {
    At at(this, s->span);
    support::WithStack([&] { StmtFunctor::VisitStmt(s); });
  }
  void VisitStmtDefault_(const Object* op) override {
    throw InternalError("the code generator does not know " + op->GetTypeKey());
  }
  void VisitStmt_(const BufferStoreNode* op) override {
    LLVMValueRef v = VisitExpr(op->value);
    At at(this, op->span.defined() ? op->span : op->value->span);  // the store is part of what it stores
    PrimExpr flat = Flat(op->buffer, op->indices);
    if (op->value.dtype().is_scalar() && flat.dtype().lanes() > 1) v = Splat(v, flat.dtype().lanes());
    Store(op->buffer, flat, v, op->buffer->dtype.element_of().with_lanes(flat.dtype().lanes()));
  }
  void VisitStmt_(const AllocateNode* op) override {
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
    LLVMValueRef text =
        LLVMBuildGlobalStringPtr(builder_, ("no memory for the workspace of " + symbol_).c_str(), "str");
    Return(CallBackend(offsetof(BatonBackendApi, set_error), i32_, {text}));
    LLVMPositionBuilderAtEnd(builder_, ok);
    vars_[b->data.get()] = p;
    heap_.push_back(p);
    VisitStmt(op->body);
    heap_.pop_back();
    CallBackend(offsetof(BatonBackendApi, free), LLVMVoidTypeInContext(ctx_), {p});
  }
  void VisitStmt_(const ForNode* op) override {
    if (op->kind == ForKind::kParallel && !in_parallel_) return Parallel(op);
    LLVMValueRef begin = VisitExpr(op->min);
    LLVMValueRef end = LLVMBuildAdd(builder_, begin, VisitExpr(op->extent), "");
    Loop(begin, end, op->loop_var, op->body);
  }
  void Loop(LLVMValueRef begin, LLVMValueRef end, const Var& var, const Stmt& body) {
    LLVMBasicBlockRef from = LLVMGetInsertBlock(builder_), loop = Block("loop"), exit = Block("exit");
    LLVMBuildCondBr(builder_, LLVMBuildICmp(builder_, LLVMIntSLT, begin, end, ""), loop, exit);
    LLVMPositionBuilderAtEnd(builder_, loop);
    LLVMValueRef i = LLVMBuildPhi(builder_, LLVMTypeOf(begin), var->name_hint.c_str());
    vars_[var.get()] = i;
    VisitStmt(body);
    LLVMValueRef next = LLVMBuildNSWAdd(builder_, i, LLVMConstInt(LLVMTypeOf(begin), 1, 0), "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(builder_);
    LLVMBuildCondBr(builder_, LLVMBuildICmp(builder_, LLVMIntSLT, next, end, ""), loop, exit);
    LLVMValueRef values[] = {begin, next};
    LLVMBasicBlockRef blocks[] = {from, latch};
    LLVMAddIncoming(i, values, blocks, 2);
    LLVMPositionBuilderAtEnd(builder_, exit);
  }
  /// The body becomes a function of (task, number of tasks, captured values); each task takes an equal run of rounds.
  void Parallel(const ForNode* op) {
    LLVMValueRef begin = VisitExpr(op->min), extent = VisitExpr(op->extent);
    UseCollector uses;
    uses.VisitStmt(op->body);
    std::vector<const VarNode*> captured;
    std::vector<LLVMValueRef> values{begin, extent};
    for (const VarNode* v : uses.uses) {
      if (v == op->loop_var.get()) continue;
      auto it = vars_.find(v);
      if (it == vars_.end()) continue;
      captured.push_back(v);
      values.push_back(it->second);
    }
    std::vector<LLVMTypeRef> types;
    for (LLVMValueRef v : values) types.push_back(LLVMTypeOf(v));
    LLVMTypeRef closure_type = LLVMStructTypeInContext(ctx_, types.data(), static_cast<unsigned>(types.size()), 0);
    LLVMValueRef closure = Alloca(closure_type, 1, 64);
    for (size_t i = 0; i < values.size(); ++i) {
      LLVMBuildStore(builder_, values[i],
                     LLVMBuildStructGEP2(builder_, closure_type, closure, static_cast<unsigned>(i), ""));
    }
    LLVMTypeRef params[] = {i32_, i32_, ptr_};
    LLVMTypeRef type = LLVMFunctionType(i32_, params, 3, 0);
    LLVMValueRef task = LLVMAddFunction(module_, (symbol_ + ".task").c_str(), type);
    LLVMSetLinkage(task, LLVMInternalLinkage);
    SetAttributes(task);
    {
      State saved{func_, entry_, LLVMGetInsertBlock(builder_), std::move(vars_), scope_, span_};
      vars_.clear();
      in_parallel_ = true;
      std::vector<LLVMValueRef> heap = std::move(heap_);
      heap_.clear();
      // The loop is a function of its own, whose pointers are parameters: LLVM then knows that they do not overlap.
      std::vector<LLVMTypeRef> body_types = types;
      LLVMTypeRef body_type = LLVMFunctionType(i32_, body_types.data(), static_cast<unsigned>(body_types.size()), 0);
      LLVMValueRef body = LLVMAddFunction(module_, (symbol_ + ".loop").c_str(), body_type);
      LLVMSetLinkage(body, LLVMInternalLinkage);
      SetAttributes(body);
      for (size_t i = 0; i < captured.size(); ++i) {
        vars_[captured[i]] = LLVMGetParam(body, static_cast<unsigned>(i) + 2);
        // Handle and data of one buffer are one pointer twice.
        bool once = true;
        for (size_t k = 0; k < captured.size(); ++k) once = once && (k == i || values[k + 2] != values[i + 2]);
        if (types[i + 2] == ptr_ && once) AddParamAttr(body, static_cast<unsigned>(i) + 2, "noalias", 0);
      }
      if (debug_) scope_ = debug_->Begin(body, symbol_ + ".loop", saved.scope.name, " (loop)", saved.span);
      Start(body);
      Loop(LLVMGetParam(body, 0), LLVMGetParam(body, 1), op->loop_var, op->body);
      LLVMBuildRet(builder_, Int32(0));
      vars_.clear();
      heap_ = std::move(heap);
      if (debug_) scope_ = debug_->Begin(task, symbol_ + ".task", saved.scope.name, " (task)", saved.span);
      Start(task);
      LLVMValueRef c = LLVMGetParam(task, 2);
      AddParamAttr(task, 2, "noalias", 0);
      std::vector<LLVMValueRef> in;
      for (size_t i = 0; i < values.size(); ++i) {
        in.push_back(LLVMBuildLoad2(builder_, types[i],
                                    LLVMBuildStructGEP2(builder_, closure_type, c, static_cast<unsigned>(i), ""), ""));
      }
      LLVMValueRef id = LLVMBuildSExt(builder_, LLVMGetParam(task, 0), i64_, "");
      LLVMValueRef n = LLVMBuildSExt(builder_, LLVMGetParam(task, 1), i64_, "");
      auto share = [&](LLVMValueRef k) {
        return LLVMBuildAdd(builder_, in[0], LLVMBuildSDiv(builder_, LLVMBuildMul(builder_, k, in[1], ""), n, ""), "");
      };
      LLVMValueRef lo = share(id), hi = share(LLVMBuildAdd(builder_, id, Int64(1), ""));
      in[0] = lo, in[1] = hi;
      LLVMBuildRet(builder_,
                   LLVMBuildCall2(builder_, body_type, body, in.data(), static_cast<unsigned>(in.size()), ""));
      in_parallel_ = false;
      func_ = saved.func;
      entry_ = saved.entry;
      vars_ = std::move(saved.vars);
      LLVMPositionBuilderAtEnd(builder_, saved.block);
      scope_ = saved.scope;
      if (debug_) Locate(saved.span);
    }
    LLVMValueRef code = CallBackend(offsetof(BatonBackendApi, parallel_launch), i32_, {task, closure, Int32(0)});
    ReturnIfError(code);
  }
  void VisitStmt_(const IfThenElseNode* op) override {
    LLVMValueRef c = VisitExpr(op->condition);
    LLVMBasicBlockRef yes = Block("then"), end = Block("endif"), no = op->else_case.defined() ? Block("else") : end;
    LLVMBuildCondBr(builder_, c, yes, no);
    LLVMPositionBuilderAtEnd(builder_, yes);
    VisitStmt(op->then_case);
    LLVMBuildBr(builder_, end);
    if (op->else_case.defined()) {
      LLVMPositionBuilderAtEnd(builder_, no);
      VisitStmt(op->else_case);
      LLVMBuildBr(builder_, end);
    }
    LLVMPositionBuilderAtEnd(builder_, end);
  }
  void VisitStmt_(const SeqStmtNode* op) override {
    for (const Stmt& s : op->seq) VisitStmt(s);
  }
  void VisitStmt_(const EvaluateNode* op) override { VisitExpr(op->value); }
  void VisitStmt_(const LetStmtNode* op) override {
    vars_[op->var.get()] = VisitExpr(op->value);
    VisitStmt(op->body);
  }
  void VisitStmt_(const AttrStmtNode* op) override {
    tir::RefuseThreadAxes(op);
    VisitStmt(op->body);
  }
  void VisitStmt_(const AssertStmtNode* op) override {
    LLVMBasicBlockRef fail = Block("assert"), ok = Block("holds");
    LLVMBuildCondBr(builder_, VisitExpr(op->condition), ok, fail);
    LLVMPositionBuilderAtEnd(builder_, fail);
    const auto* text = op->message.as<StringImmNode>();
    LLVMValueRef s = LLVMBuildGlobalStringPtr(builder_, text ? text->value.c_str() : "an assertion failed", "str");
    Return(CallBackend(offsetof(BatonBackendApi, set_error), i32_, {s}));
    LLVMPositionBuilderAtEnd(builder_, ok);
    VisitStmt(op->body);
  }

  LLVMModuleRef module_;
  LLVMContextRef ctx_;
  Target target_;
  IRModule mod_;
  std::string cpu_, features_, symbol_;
  DebugInfo* debug_;  // null: none is wanted
  bool has_float16_;  // whether the processor converts float16 by an instruction
  DebugInfo::Scope scope_;
  Span span_;  // of what is emitted now
  LLVMBuilderRef builder_;
  LLVMTypeRef ptr_, i32_, i64_;
  LLVMValueRef func_ = nullptr;
  LLVMBasicBlockRef entry_ = nullptr;
  std::unordered_map<const VarNode*, LLVMValueRef> vars_;
  std::vector<LLVMValueRef> heap_;  // allocations that are live here, to be freed before a return
  bool in_parallel_ = false;
};

}  // namespace

std::string SymbolOf(const GlobalVar& var, const BaseFunc& func) {
  return func->GetAttr<String>(baton::attr::kGlobalSymbol, var->name_hint).str();
}
std::string DisplayName(const PrimFunc& func, const std::string& symbol) {
  return func->GetAttr<String>(tir::attr::kDisplayName, String(symbol)).str();
}

void EmitFunction(LLVMModuleRef module, const Target& target, const IRModule& mod, const std::string& symbol,
                  const PrimFunc& func, const std::string& cpu, const std::string& features, DebugInfo* debug) {
  // Half floats are bits in memory here, whatever passes ran.
  Emitter(module, target, mod, cpu, features, debug).Function(symbol, ComputeHalfInFloat(func));
}

}  // namespace baton::codegen
