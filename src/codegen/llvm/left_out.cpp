// SPDX-License-Identifier: Apache-2.0
// What Debian's archives of LLVM and lld name and a portable build leaves out: all targets but BATON_LLVM_TARGETS of
// cmake/portable.cmake, and Polly. BATON_TARGETS_LEFT_OUT is "X(ARM) X(AVR) ...". Part of portable builds alone.
#include <llvm/Passes/PassPlugin.h>

#define HIDDEN __attribute__((visibility("hidden")))

// lld initialises every target that LLVM was configured with, and so does Baton: these have nothing to register.
#define X(T)                                              \
  extern "C" HIDDEN void LLVMInitialize##T##TargetInfo(); \
  extern "C" HIDDEN void LLVMInitialize##T##Target();     \
  extern "C" HIDDEN void LLVMInitialize##T##TargetMC();   \
  extern "C" HIDDEN void LLVMInitialize##T##AsmPrinter(); \
  extern "C" HIDDEN void LLVMInitialize##T##AsmParser();  \
  void LLVMInitialize##T##TargetInfo() {}                 \
  void LLVMInitialize##T##Target() {}                     \
  void LLVMInitialize##T##TargetMC() {}                   \
  void LLVMInitialize##T##AsmPrinter() {}                 \
  void LLVMInitialize##T##AsmParser() {}
BATON_TARGETS_LEFT_OUT
#undef X

// Link-time optimisation asks Polly for its passes.
HIDDEN llvm::PassPluginLibraryInfo getPollyPluginInfo();
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "Polly, left out", "0", [](llvm::PassBuilder&) {}};
}
