// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/cuda.h"

namespace baton::codegen::cuda {
namespace {

constexpr const char* kHead = "static __device__ inline ";

}  // namespace

const std::map<std::string, std::string>& Builtins() {
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> made = source::CommonBuiltins(kLanguage.dialect, kHead);
    source::AddPlainBuiltins(&made, kLanguage.dialect, kHead);
    return made;
  }();
  return all;
}

}  // namespace baton::codegen::cuda
