// SPDX-License-Identifier: Apache-2.0
#include <baton/codegen/backend.h>

#include "codegen/cuda/cuda.h"
#include "codegen/kernels/kernel.h"

namespace baton::codegen {
namespace {

transform::Pass Pipeline() { return kernels::Pipeline("cuda.LowerPipeline"); }

const RegisterBackendAs registered_backend({
    .kind = {.name = "cuda",
             .devices = {kDLCUDA},
             .work_items = true,
             .no_processor = "the device's driver compiles for it",
             .labels = "mcpu mtriple mattr arch system-lib"},
    .tir_pipeline = Pipeline,
    .emit = [](const IRModule& mod, const Target&,
               const EmitOptions&) { return Code{.text = kernels::EmitText(cuda::kLanguage, mod)}; },
    .formats = {"cuda", "cu"},
    .print = [](const IRModule& mod, const Target&, const std::string&,
                DebugLevel) { return kernels::EmitText(cuda::kLanguage, mod); },
});

}  // namespace
}  // namespace baton::codegen
