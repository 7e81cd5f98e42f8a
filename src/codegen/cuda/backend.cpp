// SPDX-License-Identifier: Apache-2.0
#include <baton/codegen/backend.h>

#include "codegen/cuda/cuda.h"
#include "codegen/kernels/kernel.h"

namespace baton::codegen {
namespace {

transform::Pass Pipeline() { return kernels::Pipeline("cuda.LowerPipeline"); }

Code Emit(const IRModule& mod, const Target& target, const EmitOptions&) {
  return Code{.text = cuda::EmitPtx(mod, target, "ptx")};
}
/// "cuda" and "cu" are CUDA C++, for reading, and for NVIDIA's own compiler.
std::string Print(const IRModule& mod, const Target& target, const std::string& format, DebugLevel) {
  if (format == "cuda" || format == "cu") return kernels::EmitText(cuda::kLanguage, mod);
  return cuda::EmitPtx(mod, target, format == "ll" ? "nvvm" : format);
}

const RegisterBackendAs registered_backend({
    .kind = {.name = "cuda",
             .devices = {kDLCUDA},
             .work_items = true,
             .no_processor = "the chip is named by -arch, as in -arch=sm_90a",
             .labels = "arch mcpu mtriple mattr system-lib"},
    .tir_pipeline = Pipeline,
    .emit = Emit,
    .formats = {"ptx", "nvvm", "ll", "cuda", "cu"},
    .print = Print,
});

}  // namespace
}  // namespace baton::codegen
