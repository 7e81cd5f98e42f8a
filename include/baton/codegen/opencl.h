// SPDX-License-Identifier: Apache-2.0
// From PrimFuncs to OpenCL C.
#pragma once

#include <baton/ir/module.h>

#include <string>

namespace baton::codegen {

/// OpenCL C 1.2 of the PrimFuncs of `mod`, which may be as they are written; shapes must be known. A function becomes a
/// row of kernels: one for each parallel loop at its top, whose rounds are work-items, and one of a single work-item
/// for what stands between them. The first line says, in a comment, how functions are launched: it is the text that
/// "opencl.CreateModule" takes. Throws UnsupportedError that names the function for what OpenCL cannot do.
BATON_DLL std::string CompileToOpenCL(const IRModule& mod);

}  // namespace baton::codegen
