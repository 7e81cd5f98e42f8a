// SPDX-License-Identifier: Apache-2.0
#include <baton/codegen/backend.h>

#include "codegen/kernels/kernel.h"
#include "codegen/webgpu/webgpu.h"

namespace baton::codegen {
namespace {

/// WGSL lets compilers reorder sums, which a polynomial with a rounding by addition does not bear.
transform::Pass Pipeline() { return kernels::Pipeline("webgpu.LowerPipeline", /*strict=*/false); }

const RegisterBackendAs registered_backend({
    .kind = {.name = "webgpu",
             .devices = {kDLWebGPU},
             .work_items = true,
             .no_processor = "the device's driver compiles for it"},
    .tir_pipeline = Pipeline,
    .emit = [](const IRModule& mod, const Target&,
               const EmitOptions&) { return Code{.text = kernels::EmitText(webgpu::kLanguage, mod)}; },
    .formats = {"webgpu", "wgsl"},
    .print = [](const IRModule& mod, const Target&, const std::string&,
                DebugLevel) { return kernels::EmitText(webgpu::kLanguage, mod); },
    .lacks = {"float64", "bfloat16", "int64", "int16", "int8", "uint64", "uint16", "uint8"},
});

}  // namespace
}  // namespace baton::codegen
