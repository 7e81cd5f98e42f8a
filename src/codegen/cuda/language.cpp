// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "codegen/cuda/cuda.h"

namespace baton::codegen::cuda {
namespace {

std::string BlockSize(const int64_t* threads) {
  return fmt::format("__launch_bounds__({}) ", threads[0] * threads[1] * threads[2]);
}
std::string FloatToInt(const std::string& value, DataType from, DataType to, const std::string&, source::Needs* needs) {
  const std::string name = fmt::format("sat_{}_{}", source::SuffixOf(to), source::SuffixOf(from));
  needs->builtins.insert(name);
  return fmt::format("baton_{}({})", name, value);
}
std::string Prelude(const source::Needs&) {
  return "// Compile it with -fmad=false: sums and products are not joined.\n"
         "typedef unsigned short uint16_t;\ntypedef unsigned int uint32_t;\ntypedef int int32_t;\n";
}

}  // namespace

const kernels::Language kLanguage = {
    .dialect =
        {
            .language = "CUDA",
            .syntax = &source::kSyntaxSuffixed,
            .ints = {"signed char", "short", "int", "long long"},
            .uints = {"unsigned char", "unsigned short", "unsigned int", "unsigned long long"},
            .floats = {"unsigned short", "unsigned short", "float", "double"},
            .truth = "unsigned char",
            .mend = nullptr,
            .wide = {"", "LL"},
            .unsigned_wide = {"", "ULL"},
            .least = {"(-2147483647 - 1)", "(-9223372036854775807LL - 1LL)"},
            .most = {"2147483647", "9223372036854775807LL", "4294967295u", "18446744073709551615ULL"},
            .suffixed = true,
            .narrow = false,
            .intrin = OwnText,
            .builtins = Builtins,
        },
    .fp64 = nullptr,
    .fp16 = nullptr,
    .device = "cuda",
    .head = kernels::HeadC,
    .kernel = "extern \"C\" __global__ ",
    .memory = "",
    .restricted = "__restrict__",
    .shared = "__shared__ ",
    .shared_first = false,
    .shared_array = kernels::SharedArrayC,
    .global_names = false,
    .wide_truth = false,
    .item = "(long long)blockIdx.x * blockDim.x + threadIdx.x",
    .axes = {"blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z"},
    .block_size = BlockSize,
    .float_to_int = FloatToInt,
    .prelude = Prelude,
};

}  // namespace baton::codegen::cuda
