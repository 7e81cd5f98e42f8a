// SPDX-License-Identifier: Apache-2.0
#include <baton/codegen/backend.h>

namespace baton::codegen {
namespace {

// `ext_dev` is the host's processor with a memory of its own.
const RegisterBackendAs registered_backend({
    .kind = {.name = "llvm", .devices = {kDLCPU, kDLExtDev}, .on_host = true, .vector_kernels = true},
});
// A name that programs of Relay give the host.
const RegisterBackendAs registered_c({
    .kind = {.name = "c", .devices = {kDLCPU}, .on_host = true, .vector_kernels = true},
});

}  // namespace
}  // namespace baton::codegen
