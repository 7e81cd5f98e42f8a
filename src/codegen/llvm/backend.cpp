// SPDX-License-Identifier: Apache-2.0
#include <baton/codegen/backend.h>
#include <baton/tir/transform.h>

namespace baton::codegen {
namespace {

Code EmitCode(const IRModule& mod, const Target& target, const EmitOptions& options) {
  return {.objects = CompileToObjects(mod, target, options.num_threads, options.debug)};
}

std::string PrintCode(const IRModule& mod, const Target& target, const std::string& format, DebugLevel debug) {
  // Nothing is made of no functions, not even the text's header.
  if (mod->functions.empty()) return "";
  const bool named = format.starts_with("llvm");  // "llvm" and "llvm-raw" are "ll" and "ll-raw"
  return CompileToText(mod, target, named ? "ll" + format.substr(4) : format, debug);
}

// `ext_dev` is the host's processor with its own memory.
const RegisterBackendAs registered_backend(
    {.kind = {.name = "llvm", .devices = {kDLCPU, kDLExtDev}, .on_host = true, .vector_kernels = true},
     .tir_pipeline = tir::transform::LowerPipeline,
     .emit = EmitCode,
     .formats = {"llvm", "ll", "llvm-raw", "asm"},
     .print = PrintCode});

}  // namespace
}  // namespace baton::codegen
