// SPDX-License-Identifier: Apache-2.0
// DWARF of one LLVM module: which Relay expression each instruction belongs to.
#pragma once

#include <baton/ir/span.h>
#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>

#include <map>
#include <string>

namespace baton::codegen {

/// Makes the debug information of one LLVM module. A function becomes a subprogram whose linkage name is its symbol and
/// whose name says the Relay operators; a span with a line becomes a place in the file that its source names. A span
/// without one has no place: its instructions belong to the first line of the function.
class DebugInfo {
 public:
  explicit DebugInfo(LLVMModuleRef module);
  DebugInfo(const DebugInfo&) = delete;
  ~DebugInfo();

  /// The subprogram that a function's code belongs to.
  struct Scope {
    LLVMMetadataRef subprogram = nullptr;
    std::string name;  // of the Relay operators
    std::string file;
    Span span;  // of the function
  };
  /// Attaches a subprogram to `func`. `suffix` tells the parts of one kernel apart.
  Scope Begin(LLVMValueRef func, const std::string& symbol, const std::string& name, const char* suffix,
              const Span& span);
  /// The builder's code from here on belongs to the expression at `span`.
  void Locate(LLVMBuilderRef builder, const Scope& scope, const Span& span);
  /// To be called once, when all functions are there.
  void Finish();

 private:
  LLVMMetadataRef File(const std::string& name);

  LLVMContextRef ctx_;
  LLVMDIBuilderRef builder_;
  LLVMMetadataRef unit_ = nullptr, type_ = nullptr;
  std::map<std::string, LLVMMetadataRef> files_;
  std::map<std::pair<LLVMMetadataRef, std::string>, LLVMMetadataRef> blocks_;  // of a subprogram, in another file
};

}  // namespace baton::codegen
