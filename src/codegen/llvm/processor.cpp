// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/processor.h"

#include <baton/codegen/codegen.h>

namespace baton::codegen {
namespace {

constexpr std::string_view kThisMachine =
#if defined(__aarch64__)
    "aarch64";
#else
    "x86_64";
#endif

const std::vector<Processor>& Processors() {
  static const std::vector<Processor> all = {
      {"x86_64",
       "",
       "f16c",
       false,
       {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vbmi", "avx512vnni", "avx512bf16",
        "amx-tile", "amx-bf16", "amx-int8"}},
      {"aarch64", "", "", true, {"fullfp16", "dotprod", "lse", "sve", "sve2", "i8mm", "bf16"}},
      {"riscv64", "+m,+a,+f,+d,+c", "zfhmin", true, {"v"}},
      // ARMv7 without NEON, whose floats are not IEEE's: results below the smallest normal number are 0.
      {"arm", "+armv7-a,+vfp3d16,-neon,-d32", "-", false, {"neon", "vfp4"}},
      {"nvptx64", "", "", true, {}},
      {"", "", "-", false, {}},
  };
  return all;
}

/// The name that artifacts have for the first part of a triple.
std::string_view NameOf(std::string_view triple) {
  const std::string_view cpu = triple.substr(0, triple.find('-'));
  if (cpu.empty()) return kThisMachine;
  if (cpu == "amd64") return "x86_64";
  if (cpu == "arm64") return "aarch64";
  // armv8l is the 32-bit mode of a 64-bit processor; code for microcontrollers (thumb) is not loaded from files.
  if (cpu.starts_with("arm") && !cpu.starts_with("armeb")) return "arm";
  return cpu;
}

}  // namespace

const Processor& ProcessorOf(std::string_view triple) {
  const std::string_view name = NameOf(triple);
  for (const Processor& p : Processors()) {
    if (p.name == name) return p;
  }
  return Processors().back();
}

bool IsOtherProcessor(const Target& target) { return IsOtherProcessor(target->mtriple.view()); }
bool IsOtherProcessor(std::string_view triple) { return NameOf(triple) != kThisMachine; }

std::vector<std::string> SystemLibraries(std::string_view triple) {
  if (triple.find("android") != std::string_view::npos) return {"libm.so", "libc.so"};
  if (triple.find("musl") != std::string_view::npos) return {"libc.so"};
  // Of 32-bit processors the division of int64 is a function too.
  if (NameOf(triple) == "arm") return {"libm.so.6", "libgcc_s.so.1", "libc.so.6"};
  return {"libm.so.6", "libc.so.6"};
}

}  // namespace baton::codegen
