// SPDX-License-Identifier: Apache-2.0
// Parallel loops: the body becomes a separate function, run by the thread pool.
#include <baton/runtime/c_backend_api.h>

#include <unordered_set>
#include <utility>

#include "codegen/llvm/function_emitter.h"

namespace baton::codegen {

using namespace tir;  // NOLINT: every node kind is named below

namespace {

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

/// State that the emission of the loop's function replaces for its time.
struct State {
  LLVMValueRef func;
  LLVMBasicBlockRef entry, block;
  std::unordered_map<const VarNode*, LLVMValueRef> vars;
  DebugInfo::Scope scope;
  Span span;
};

}  // namespace

void Emitter::Parallel(const ForNode* op) {
  LLVMValueRef begin = VisitExpr(op->min), extent = VisitExpr(op->extent);
  const PrimExpr condition = std::exchange(parallel_if_, PrimExpr());
  LLVMValueRef worth = condition.defined() ? VisitExpr(condition) : nullptr;
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
  // The loop is a separate function, whose pointers are parameters: LLVM then knows that they do not overlap.
  std::vector<LLVMTypeRef> body_types = types;
  LLVMTypeRef body_type = LLVMFunctionType(i32_, body_types.data(), static_cast<unsigned>(body_types.size()), 0);
  LLVMValueRef body = LLVMAddFunction(module_, (symbol_ + ".loop").c_str(), body_type);
  {
    State saved{func_, entry_, LLVMGetInsertBlock(builder_), std::move(vars_), scope_, span_};
    vars_.clear();
    // Where the rounds may run one after the other, parallel loops within them stay so; within threads the runtime runs
    // them one after the other.
    in_parallel_ = !worth;
    std::vector<LLVMValueRef> heap = std::move(heap_);
    heap_.clear();
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
    LLVMBuildRet(builder_, LLVMBuildCall2(builder_, body_type, body, in.data(), static_cast<unsigned>(in.size()), ""));
    in_parallel_ = false;
    func_ = saved.func;
    entry_ = saved.entry;
    vars_ = std::move(saved.vars);
    LLVMPositionBuilderAtEnd(builder_, saved.block);
    scope_ = saved.scope;
    if (debug_) Locate(saved.span);
  }
  if (!worth) {
    ReturnIfError(CallBackend(offsetof(BatonBackendApi, parallel_launch), i32_, {task, closure, Int32(0)}));
    return;
  }
  LLVMBasicBlockRef launch = Block("launch"), serial = Block("serial"), end = Block("done");
  LLVMBuildCondBr(builder_, worth, launch, serial);
  LLVMPositionBuilderAtEnd(builder_, launch);
  ReturnIfError(CallBackend(offsetof(BatonBackendApi, parallel_launch), i32_, {task, closure, Int32(0)}));
  LLVMBuildBr(builder_, end);
  LLVMPositionBuilderAtEnd(builder_, serial);
  values[1] = LLVMBuildAdd(builder_, begin, extent, "");
  ReturnIfError(LLVMBuildCall2(builder_, body_type, body, values.data(), static_cast<unsigned>(values.size()), ""));
  LLVMBuildBr(builder_, end);
  LLVMPositionBuilderAtEnd(builder_, end);
}

}  // namespace baton::codegen
