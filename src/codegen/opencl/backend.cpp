// SPDX-License-Identifier: Apache-2.0
#include <baton/codegen/backend.h>

#include "codegen/kernels/kernel.h"
#include "codegen/opencl/opencl.h"

namespace baton::codegen {
namespace {

transform::Pass Pipeline() { return kernels::Pipeline("opencl.LowerPipeline"); }

const RegisterBackendAs registered_backend({
    .kind = {.name = "opencl",
             .devices = {kDLOpenCL},
             .work_items = true,
             .no_processor = "the device's driver compiles for it"},
    .tir_pipeline = Pipeline,
    .emit = [](const IRModule& mod, const Target&,
               const EmitOptions&) { return Code{.text = kernels::EmitText(opencl::kLanguage, mod)}; },
    .formats = {"opencl", "cl"},
    .print = [](const IRModule& mod, const Target&, const std::string&,
                DebugLevel) { return kernels::EmitText(opencl::kLanguage, mod); },
});

}  // namespace
}  // namespace baton::codegen
