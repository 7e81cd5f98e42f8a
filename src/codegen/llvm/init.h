// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace baton::codegen {

/// Registers LLVM's targets, once; before anything else of LLVM.
void InitLLVM();

}  // namespace baton::codegen
