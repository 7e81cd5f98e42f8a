// SPDX-License-Identifier: Apache-2.0
// What a triple says of the machine that code is made for, which need not be this one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton::codegen {

struct Processor {
  std::string_view name;      ///< as artifacts have it; "" for one that is not known here
  std::string_view features;  ///< of the least machine that Debian runs on; LLVM's own least has no floating point, say
  std::string_view float16;  ///< the feature that converts float16 by an instruction; "" if all have it, "-" if none do
  bool has_fma;              ///< whether all multiply and add in one instruction
  std::vector<std::string_view> known;  ///< features that the runtime there finds out about
};

/// The processor of a triple, "" for this machine's.
const Processor& ProcessorOf(std::string_view triple);
/// Whether a triple names another processor than this machine's.
bool IsOtherProcessor(std::string_view triple);
/// The libraries of the system that code may call functions of (expf, memcpy), by the names that its loader knows.
std::vector<std::string> SystemLibraries(std::string_view triple);

}  // namespace baton::codegen
