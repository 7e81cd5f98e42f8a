// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/emitter.h"

#include <baton/runtime/c_backend_api.h>
#include <baton/tir/lower.h>

#include <cstring>

#include "codegen/llvm/function_emitter.h"

namespace baton::codegen {

using namespace tir;  // NOLINT: every node kind is named below

void Emitter::Function(const std::string& symbol, const PrimFunc& f) {
  symbol_ = symbol;
  func_ = Declare(symbol, f);
  if (LLVMCountBasicBlocks(func_)) throw InternalError("function `" + symbol + "` is defined twice");
  SetAttributes(func_);
  if (f->HasNonzeroAttr("straight_line")) {
    // Calls one after the other, and many of them: nothing that LLVM's passes could improve, which take longest here.
    for (const char* name : {"noinline", "optnone"}) AddAttr(func_, LLVMAttributeFunctionIndex, name, 0);
  }
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

void Emitter::Locate(const Span& span) {
  span_ = span;
  debug_->Locate(builder_, scope_, span);
}

LLVMValueRef Emitter::Declare(const std::string& symbol, const PrimFunc& f) {
  if (LLVMValueRef found = LLVMGetNamedFunction(module_, symbol.c_str())) return found;
  std::vector<LLVMTypeRef> params;
  for (const Var& p : f->params) params.push_back(p.dtype().is_handle() ? ptr_ : TypeFor(ctx_, p.dtype()));
  LLVMTypeRef type = LLVMFunctionType(i32_, params.data(), static_cast<unsigned>(params.size()), 0);
  return LLVMAddFunction(module_, symbol.c_str(), type);
}

void Emitter::SetAttributes(LLVMValueRef f) {
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
  AddAttr(f, LLVMAttributeFunctionIndex, "nounwind", 0);
}

void Emitter::AddAttr(LLVMValueRef f, LLVMAttributeIndex at, const char* name, uint64_t value) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  LLVMAddAttributeAtIndex(f, at, LLVMCreateEnumAttribute(ctx_, kind, value));
}

void Emitter::AddParamAttr(LLVMValueRef f, unsigned i, const char* name, uint64_t value) {
  AddAttr(f, i + 1, name, value);
}

void Emitter::Start(LLVMValueRef f) {
  func_ = f;
  entry_ = LLVMAppendBasicBlockInContext(ctx_, f, "entry");
  LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(ctx_, f, "body");
  LLVMPositionBuilderAtEnd(builder_, entry_);
  if (debug_) Locate(scope_.span);
  LLVMBuildBr(builder_, body);
  LLVMPositionBuilderAtEnd(builder_, body);
}

LLVMValueRef Emitter::CallBackend(size_t offset, LLVMTypeRef ret, std::vector<LLVMValueRef> args) {
  LLVMValueRef var = LLVMGetNamedGlobal(module_, kBackendApiSymbol);
  if (!var) var = LLVMAddGlobal(module_, ptr_, kBackendApiSymbol);
  LLVMValueRef table = LLVMBuildLoad2(builder_, ptr_, var, "");
  // Two numbers of 32 bits, then pointers: as wide as the target's, which need not be those of this machine.
  constexpr size_t kFirst = offsetof(BatonBackendApi, parallel_launch);
  const size_t pointer = LLVMPointerSize(LLVMGetModuleDataLayout(module_));
  LLVMValueRef at = Int64(static_cast<int64_t>(kFirst + (offset - kFirst) / sizeof(void*) * pointer));
  LLVMValueRef slot = LLVMBuildInBoundsGEP2(builder_, LLVMInt8TypeInContext(ctx_), table, &at, 1, "");
  LLVMValueRef f = LLVMBuildLoad2(builder_, ptr_, slot, "");
  std::vector<LLVMTypeRef> types;
  for (LLVMValueRef a : args) types.push_back(LLVMTypeOf(a));
  LLVMTypeRef type = LLVMFunctionType(ret, types.data(), static_cast<unsigned>(types.size()), 0);
  return LLVMBuildCall2(builder_, type, f, args.data(), static_cast<unsigned>(args.size()), "");
}

void Emitter::ReturnIfError(LLVMValueRef code) {
  LLVMBasicBlockRef fail = Block("fail"), ok = Block("ok");
  LLVMBuildCondBr(builder_, LLVMBuildICmp(builder_, LLVMIntNE, code, Int32(0), ""), fail, ok);
  LLVMPositionBuilderAtEnd(builder_, fail);
  Return(code);
  LLVMPositionBuilderAtEnd(builder_, ok);
}

void Emitter::Return(LLVMValueRef code) {
  for (size_t i = heap_.size(); i-- > 0;)
    CallBackend(offsetof(BatonBackendApi, free), LLVMVoidTypeInContext(ctx_), {heap_[i]});
  LLVMBuildRet(builder_, code);
}

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
