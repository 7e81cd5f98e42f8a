// SPDX-License-Identifier: Apache-2.0
#include <baton/codegen/backend.h>
#include <baton/codegen/opencl.h>

namespace baton::codegen {
namespace {

const RegisterBackendAs registered_backend({
    .kind = {.name = "opencl",
             .devices = {kDLOpenCL},
             .work_items = true,
             .no_processor = "the device's driver compiles for it"},
    .formats = {"opencl", "cl"},
    .device_code = CompileToOpenCL,
});

}  // namespace
}  // namespace baton::codegen
