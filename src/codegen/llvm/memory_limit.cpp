// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/memory_limit.h"

#include <baton/runtime/error.h>
#include <baton/support/address_space.h>
#include <execinfo.h>
#include <llvm-c/ErrorHandling.h>

#include <new>
#include <string>

// LLVM's C interface has no function for it.
namespace llvm {
void install_bad_alloc_error_handler(void (*handler)(void*, const char*, bool), void* data);
}  // namespace llvm

namespace baton::codegen {
namespace {

// The C library loads the unwinder when it first needs one for its own frames, and ends the process where there is no
// memory left to do so. backtrace() makes it do so now.
const bool registered_unwinder = [] {
  void* frame = nullptr;
  return backtrace(&frame, 1) >= 0;
}();

}  // namespace

void InstallErrorHandlers() {
  LLVMInstallFatalErrorHandler([](const char* reason) {
    const std::string text = reason;
    if (text.find("out of memory") != std::string::npos || text.find("llocation failed") != std::string::npos)
      throw std::bad_alloc();
    throw InternalError("LLVM: " + text);
  });
  llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { throw std::bad_alloc(); }, nullptr);
}

void RequireMemory(uint64_t bytes) {
  const uint64_t limit = support::AddressSpaceLimit();
  if (limit == UINT64_MAX || support::HasAddressSpace(bytes)) return;
  throw runtime::Error("MemoryError", "making code takes about " + std::to_string(bytes >> 20) +
                                          " MB of address space, and the limit of this process (RLIMIT_AS, " +
                                          std::to_string(limit >> 20) + " MB) leaves less");
}

}  // namespace baton::codegen
