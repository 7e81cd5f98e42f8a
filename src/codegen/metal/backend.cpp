// SPDX-License-Identifier: Apache-2.0
#include <baton/codegen/backend.h>

#include "codegen/kernels/kernel.h"
#include "codegen/metal/metal.h"

namespace baton::codegen {
namespace {

transform::Pass Pipeline() { return kernels::Pipeline("metal.LowerPipeline"); }

const RegisterBackendAs registered_backend({
    .kind = {.name = "metal",
             .devices = {kDLMetal},
             .work_items = true,
             .no_processor = "the device's driver compiles for it"},
    .tir_pipeline = Pipeline,
    .emit = [](const IRModule& mod, const Target&,
               const EmitOptions&) { return Code{.text = kernels::EmitText(metal::kLanguage, mod)}; },
    .formats = {"metal"},
    .print = [](const IRModule& mod, const Target&, const std::string&,
                DebugLevel) { return kernels::EmitText(metal::kLanguage, mod); },
    .lacks = {"float64"},
});

}  // namespace
}  // namespace baton::codegen
