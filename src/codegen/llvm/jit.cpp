// SPDX-License-Identifier: Apache-2.0
// Object files into this process.
#include <baton/codegen/codegen.h>
#include <baton/runtime/c_backend_api.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/registry.h>
#include <llvm-c/ExecutionEngine.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/OrcEE.h>
#include <llvm-c/Target.h>
#include <llvm/Config/llvm-config.h>

#include <memory>
#include <mutex>
#include <new>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/jobs.h"
#include "codegen/llvm/memory_limit.h"
#include "codegen/llvm/perf.h"

namespace baton::codegen {
namespace {

void Check(LLVMErrorRef err, const char* what) {
  if (!err) return;
  char* text = LLVMGetErrorMessage(err);
  std::string s = std::string(what) + ": " + text;
  LLVMDisposeErrorMessage(text);
  throw InternalError(s);
}

/// The layer that debuggers and profilers can listen to.
LLVMOrcObjectLayerRef ListenedLayer(void* context, LLVMOrcExecutionSessionRef session, const char*) {
  const auto* options = static_cast<const PerfOptions*>(context);
  LLVMOrcObjectLayerRef layer = LLVMOrcCreateRTDyldObjectLinkingLayerWithSectionMemoryManager(session);
  auto listen = [&](LLVMJITEventListenerRef listener) {
    if (listener) LLVMOrcRTDyldObjectLinkingLayerRegisterJITEventListener(layer, listener);
  };
  if (options->gdb) listen(LLVMCreateGDBRegistrationListener());
  if (options->jitdump) listen(LLVMCreatePerfJITEventListener());
  return layer;
}

class JitModule : public runtime::ModuleNode {
 public:
  explicit JitModule(const ObjectCode& code) {
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    PerfOptions perf = PerfOptions::FromEnvironment();
    LLVMOrcLLJITBuilderRef builder = nullptr;
    if (perf.gdb || perf.jitdump) {
      if (perf.jitdump && !LLVMCreatePerfJITEventListener()) {
        throw UnsupportedError("BATON_PERF=jitdump: this LLVM was built without support of perf; use BATON_PERF=map");
      }
      builder = LLVMOrcCreateLLJITBuilder();
      LLVMOrcLLJITBuilderSetObjectLinkingLayerCreator(builder, ListenedLayer, &perf);
    }
    Check(LLVMOrcCreateLLJIT(&jit_, builder), "cannot start the JIT");
    LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(jit_), Said, this);
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
      if (perf.map) {
        for (const std::string& object : code.objects) {
          WritePerfMap(code, object,
                       [&](const std::string& name) { return reinterpret_cast<uint64_t>(Find(name.c_str())); });
        }
      }
      if (void* api = Find(kBackendApiSymbol)) *static_cast<const BatonBackendApi**>(api) = BatonBackendGetApi();
      if (void* self = Find(runtime::kModuleSymbol)) *static_cast<runtime::ModuleNode**>(self) = this;
    } catch (const std::bad_alloc&) {
      throw;  // from within LLVM: the JIT is not touched again
    } catch (...) {
      LLVMOrcDisposeLLJIT(jit_);
      throw;
    }
  }
  ~JitModule() override { LLVMConsumeErrorIfAny(LLVMOrcDisposeLLJIT(jit_)); }
  const char* type_key() const override { return "llvm"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    const void* spec = GetSymbol((runtime::kFunctionSpecPrefix + std::string(name)).c_str());
    return spec ? runtime::MakeNativeFunction(spec, self) : PackedFunc(nullptr);
  }
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
      const size_t missing = said_.find("Symbols not found: [ ");
      if (missing == std::string::npos) throw InternalError("the JIT cannot finish the code: " + s + said_);
      const size_t begin = said_.find("[ ", missing) + 2;
      throw CompileError("the compiled code calls `" + said_.substr(begin, said_.find(" ]", begin) - begin) +
                         "`, which no library of this process has; load one that has it (ctypes.CDLL(path, "
                         "mode=ctypes.RTLD_GLOBAL)), or save the code and link it");
    }
    return reinterpret_cast<void*>(address);
  }
  /// Keeps what the JIT would print: only there does it name what is missing.
  static void Said(void* self, LLVMErrorRef error) {
    char* text = LLVMGetErrorMessage(error);
    static_cast<JitModule*>(self)->said_ += text;
    LLVMDisposeErrorMessage(text);
  }
  LLVMOrcLLJITRef jit_ = nullptr;
  std::string said_;
  std::mutex mutex_;
};

}  // namespace

runtime::Module LoadObjects(const ObjectCode& code) {
  uint64_t bytes = 0;
  for (const std::string& object : code.objects) bytes += object.size();
  RequireMemory(kLeastMemory / 8 + 2 * bytes);
  constexpr uint64_t kLong = 1 << 20;  // linked in some tenth of a second, in which LLVM cannot be interrupted
  if (bytes < kLong || !runtime::HasInterrupts()) return runtime::MakeModule<JitModule>(code);
  auto made = std::make_shared<runtime::Module>();
  auto own = std::make_shared<ObjectCode>(code);
  RunJobs({[made, own](const std::atomic<bool>&) { *made = runtime::MakeModule<JitModule>(*own); }},
          runtime::CheckInterrupt);
  return *made;
}

BATON_REGISTER_GLOBAL("target.llvm_version_major").set_body_typed([] { return int64_t{LLVM_VERSION_MAJOR}; });

}  // namespace baton::codegen
