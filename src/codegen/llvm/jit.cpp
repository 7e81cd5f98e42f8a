// SPDX-License-Identifier: Apache-2.0
// Object files into this process.
#include <baton/codegen/codegen.h>
#include <baton/runtime/c_backend_api.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>

#include <mutex>

#include "codegen/llvm/emitter.h"

namespace baton::codegen {
namespace {

void Check(LLVMErrorRef err, const char* what) {
  if (!err) return;
  char* text = LLVMGetErrorMessage(err);
  std::string s = std::string(what) + ": " + text;
  LLVMDisposeErrorMessage(text);
  throw InternalError(s);
}

class JitModule : public runtime::ModuleNode {
 public:
  explicit JitModule(const ObjectCode& code) {
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    Check(LLVMOrcCreateLLJIT(&jit_, nullptr), "cannot start the JIT");
    try {
      LLVMOrcJITDylibRef lib = LLVMOrcLLJITGetMainJITDylib(jit_);
      LLVMOrcDefinitionGeneratorRef process = nullptr;
      Check(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(&process, LLVMOrcLLJITGetGlobalPrefix(jit_), nullptr,
                                                                 nullptr),
            "cannot look up symbols of the process");
      LLVMOrcJITDylibAddGenerator(lib, process);
      for (const std::string& object : code.objects) {
        LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(object.data(), object.size(), "baton");
        Check(LLVMOrcLLJITAddObjectFile(jit_, lib, buffer), "cannot load compiled code");
      }
      if (void* api = Find(kBackendApiSymbol)) *static_cast<const BatonBackendApi**>(api) = BatonBackendGetApi();
    } catch (...) {
      LLVMOrcDisposeLLJIT(jit_);
      throw;
    }
  }
  ~JitModule() override { LLVMConsumeErrorIfAny(LLVMOrcDisposeLLJIT(jit_)); }
  const char* type_key() const override { return "llvm"; }
  PackedFunc GetFunction(std::string_view, const ObjectPtr<Object>&) override { return nullptr; }
  void* GetSymbol(const char* name) override {
    std::lock_guard lock(mutex_);
    return Find(name);
  }

 private:
  static void LLVMConsumeErrorIfAny(LLVMErrorRef err) {
    if (err) LLVMConsumeError(err);
  }
  void* Find(const char* name) {
    LLVMOrcExecutorAddress address = 0;
    if (LLVMErrorRef err = LLVMOrcLLJITLookup(jit_, &address, name)) {
      char* text = LLVMGetErrorMessage(err);
      std::string s = text;
      LLVMDisposeErrorMessage(text);
      if (s.find("Symbols not found") != std::string::npos && s.find(name) != std::string::npos) return nullptr;
      throw InternalError("the JIT cannot finish the code: " + s);
    }
    return reinterpret_cast<void*>(address);
  }
  LLVMOrcLLJITRef jit_ = nullptr;
  std::mutex mutex_;
};

}  // namespace

runtime::Module LoadObjects(const ObjectCode& code) { return runtime::MakeModule<JitModule>(code); }

}  // namespace baton::codegen
