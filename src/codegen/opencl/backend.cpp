// SPDX-License-Identifier: Apache-2.0
#include <baton/codegen/backend.h>

#include "codegen/kernels/kernel.h"
#include "codegen/opencl/opencl.h"

namespace baton::codegen {
namespace {

/// The driver's compiler unrolls and vectorises.
transform::Pass Pipeline() {
  using transform::GetPass;
  return transform::Sequential(
      Array<transform::Pass>{
          GetPass("tir.UnifyThreadBinding"),
          GetPass("tir.LowerThreadAllreduce"),
          GetPass("tir.ThreadSync"),
          GetPass("tir.InjectVirtualThread"),
          GetPass("tir.StorageFlatten"),  // one index from here on
          GetPass("tir.Simplify"),        // loop bounds are literals where they can be
          GetPass("tir.VectorizeLoop", {{"enable_vectorize", runtime::Any(false)}}),  // plain and parallel loops alone
          GetPass("tir.BF16Legalize"),  // no arithmetic on half floats from here on
          GetPass("tir.LowerIntrin"),   // what is left is a function of OpenCL C
          GetPass("tir.Simplify"),
      },
      "opencl.LowerPipeline");
}

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
