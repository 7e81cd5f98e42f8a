// SPDX-License-Identifier: Apache-2.0
// Well-formedness of PrimFuncs.
#pragma once

#include <baton/tir/stmt.h>

#include <string>

namespace baton::tir {

/// Returns the faults, or "": every variable and buffer is bound where it is used and bound once, indices
/// are integers and as many as dimensions, stored values have the buffer's dtype, loops run over integers.
BATON_DLL std::string CheckWellFormed(const PrimFunc& func);
/// Returns the obstacle to static single assignment, or "": each variable and buffer is bound at one place of the
/// whole function.
BATON_DLL std::string CheckSSA(const PrimFunc& func);
/// Which memory a function for a device touches outside of parallel loops, or "". Its attribute "target", else the
/// current target, says what it is for; of functions for hosts, and of kernels, nothing is asked.
BATON_DLL std::string CheckMemory(const PrimFunc& func);
/// Which call of an intrinsic has another number or another kind of arguments than it takes, or "".
BATON_DLL std::string CheckIntrinsics(const PrimFunc& func);
/// Throws InternalError with the function's text if it is not well formed, CompileError for a call of an intrinsic with
/// wrong arguments.
BATON_DLL void VerifyWellFormed(const PrimFunc& func);

}  // namespace baton::tir
