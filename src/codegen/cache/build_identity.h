// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace baton::codegen::cache {

/// The identity of this build of the compiler, and of the LLVM that has the function at `in_llvm`: the build
/// ids that the linker wrote into their libraries; of a library without one its size and the time of its file. "" where
/// a library cannot be told from others.
std::string BuildIdentity(const void* in_llvm);

}  // namespace baton::codegen::cache
