// SPDX-License-Identifier: Apache-2.0
// Compilation under a limit of address space. LLVM ends the process where memory runs out, and an exception that leaves
// its frames skips their destructors. So memory is asked for before LLVM begins; what fails all the same throws, and
// leaks what LLVM was working on.
#pragma once

#include <cstdint>
#include <exception>

namespace baton::codegen {

/// Makes LLVM throw where it would end the process. Before anything else of LLVM.
void InstallErrorHandlers();

/// Throws MemoryError unless about `bytes` more of address space can be had. Asks only where the process has a limit.
void RequireMemory(uint64_t bytes);
/// The least that compiling or linking takes.
inline constexpr uint64_t kLeastMemory = uint64_t{32} << 20;

/// Whether an exception has passed since this was made: what LLVM holds may be half built, and is not touched again.
class Unwinding {
 public:
  explicit operator bool() const { return std::uncaught_exceptions() > before_; }

 private:
  int before_ = std::uncaught_exceptions();
};

}  // namespace baton::codegen
