// SPDX-License-Identifier: Apache-2.0
#include <baton/support/nearest.h>
#include <fmt/format.h>

#include <algorithm>

#include "codegen/cuda/cuda.h"
#include "codegen/llvm/kernels.h"

namespace baton::codegen::cuda {
namespace {

/// A generation of chips, and the least version of PTX that knows it: older drivers take older versions.
struct Chip {
  const char *name, *ptx;
};
constexpr Chip kChips[] = {{"sm_60", "60"}, {"sm_61", "60"}, {"sm_62", "60"}, {"sm_70", "60"},
                           {"sm_72", "61"}, {"sm_75", "63"}, {"sm_80", "70"}, {"sm_86", "71"},
                           {"sm_87", "74"}, {"sm_89", "78"}, {"sm_90", "78"}, {"sm_90a", "80"}};
constexpr const char* kUsualChip = "sm_80";

Chip ChipOf(const Target& target) {
  std::string name = kUsualChip;
  const std::string options = " " + target->options.str() + " ", key = " -arch=";
  if (const size_t at = options.find(key); at != std::string::npos) {
    name = options.substr(at + key.size(), options.find(' ', at + key.size()) - at - key.size());
  }
  std::vector<std::string> known;
  for (const Chip& c : kChips) {
    if (name == c.name) return c;
    known.emplace_back(c.name);
  }
  std::string list;
  for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
  throw runtime::ValueError(
      fmt::format("unknown chip \"{}\" in target option -arch{}; there are {}; newer chips run "
                  "the code of older ones",
                  name.substr(0, 40), support::DidYouMean(name, known), list));
}

}  // namespace

std::string EmitPtx(const IRModule& mod, const Target& target, const std::string& format) {
  const Chip chip = ChipOf(target);
  KernelModule module({"nvptx64-nvidia-cuda", chip.name, std::string("+ptx") + chip.ptx}, target);
  const kernels::Program program =
      kernels::CutProgram({kLanguage.dialect.language,
                           [&](const kernels::KernelBody& k, const std::vector<tir::Var>& sizes,
                               const std::string& function, std::vector<const Object*>* args) {
                             module.Add(WithoutLibrary(k, function), sizes, function, args);
                             return std::string();
                           }},
                          mod);
  module.Optimize();
  if (format == "nvvm") return module.Ir();
  return fmt::format("// baton-cuda {{\"arch\":\"{}\",\"needs\":[],\"functions\":{}}}\n", chip.name,
                     program.functions) +
         module.Assembly();
}

}  // namespace baton::codegen::cuda
