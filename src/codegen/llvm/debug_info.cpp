// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/debug_info.h"

#include <cstring>

namespace baton::codegen {
namespace {

constexpr unsigned kDwarfVersion = 4;  // what every debugger and profiler of these years reads
constexpr const char* kNoFile = "<relay>";

std::string FileOf(const Span& span) {
  if (!span.defined() || span->line <= 0 || !span->source_name.defined()) return kNoFile;
  return span->source_name->name.empty() ? kNoFile : span->source_name->name.str();
}
unsigned Line(const Span& span) { return span.defined() && span->line > 0 ? static_cast<unsigned>(span->line) : 0; }

}  // namespace

DebugInfo::DebugInfo(LLVMModuleRef module) : ctx_(LLVMGetModuleContext(module)), builder_(LLVMCreateDIBuilder(module)) {
  auto flag = [&](const char* key, unsigned value) {
    LLVMValueRef v = LLVMConstInt(LLVMInt32TypeInContext(ctx_), value, 0);
    LLVMAddModuleFlag(module, LLVMModuleFlagBehaviorWarning, key, strlen(key), LLVMValueAsMetadata(v));
  };
  flag("Debug Info Version", LLVMDebugMetadataVersion());
  flag("Dwarf Version", kDwarfVersion);
}
DebugInfo::~DebugInfo() { LLVMDisposeDIBuilder(builder_); }

LLVMMetadataRef DebugInfo::File(const std::string& name) {
  LLVMMetadataRef& file = files_[name];
  if (!file) {
    // The folder is the one that a debugger is started in, or told of: absolute names would tell where it was compiled.
    size_t slash = name.rfind('/');
    std::string dir = slash == std::string::npos ? "." : slash == 0 ? "/" : name.substr(0, slash);
    std::string base = slash == std::string::npos ? name : name.substr(slash + 1);
    file = LLVMDIBuilderCreateFile(builder_, base.data(), base.size(), dir.data(), dir.size());
  }
  return file;
}

DebugInfo::Scope DebugInfo::Begin(LLVMValueRef func, const std::string& symbol, const std::string& name,
                                  const char* suffix, const Span& span) {
  Scope scope{nullptr, name, FileOf(span), span};
  LLVMMetadataRef file = File(scope.file);
  if (!unit_) {
    constexpr const char* kProducer = "Baton";
    unit_ = LLVMDIBuilderCreateCompileUnit(builder_, LLVMDWARFSourceLanguageC99, file, kProducer, strlen(kProducer), 1,
                                           "", 0, 0, "", 0, LLVMDWARFEmissionFull, 0, 0, 0, "", 0, "", 0);
    type_ = LLVMDIBuilderCreateSubroutineType(builder_, file, nullptr, 0, LLVMDIFlagZero);
  }
  std::string shown = name + suffix;
  bool local = LLVMGetLinkage(func) == LLVMInternalLinkage;
  scope.subprogram =
      LLVMDIBuilderCreateFunction(builder_, file, shown.data(), shown.size(), symbol.data(), symbol.size(), file,
                                  Line(span), type_, local, 1, Line(span), LLVMDIFlagZero, 1);
  LLVMSetSubprogram(func, scope.subprogram);
  return scope;
}

void DebugInfo::Locate(LLVMBuilderRef builder, const Scope& scope, const Span& span) {
  const Span& at = Line(span) ? span : scope.span;
  LLVMMetadataRef in = scope.subprogram;
  if (std::string file = FileOf(at); file != scope.file) {
    LLVMMetadataRef& block = blocks_[{scope.subprogram, file}];
    if (!block) block = LLVMDIBuilderCreateLexicalBlockFile(builder_, scope.subprogram, File(file), 0);
    in = block;
  }
  unsigned column = at.defined() && at->column > 0 ? static_cast<unsigned>(at->column) : 0;
  LLVMSetCurrentDebugLocation2(builder, LLVMDIBuilderCreateDebugLocation(ctx_, Line(at), column, in, nullptr));
}

void DebugInfo::Finish() { LLVMDIBuilderFinalize(builder_); }

}  // namespace baton::codegen
