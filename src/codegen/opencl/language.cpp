// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "codegen/opencl/opencl.h"

namespace baton::codegen::opencl {
namespace {

std::string BlockSize(const int64_t* threads) {
  return fmt::format("__attribute__((reqd_work_group_size({}, {}, {}))) ", threads[0], threads[1], threads[2]);
}
std::string FloatToInt(const std::string& value, DataType, DataType, const std::string& type, source::Needs*) {
  return fmt::format("convert_{}_sat({})", type, value);
}
/// The text is the computation: sums and products are not joined.
std::string Prelude(const source::Needs& needs) {
  return std::string("#pragma OPENCL FP_CONTRACT OFF\n") +
         (needs.fp64 ? "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" : "");
}

}  // namespace

const kernels::Language kLanguage = {
    .dialect =
        {
            .language = "OpenCL",
            .syntax = &source::kSyntaxC,
            .ints = {"char", "short", "int", "long"},
            .uints = {"uchar", "ushort", "uint", "ulong"},
            .floats = {"ushort", "ushort", "float", "double"},
            .truth = "uchar",
            .mend = nullptr,
            .wide = {"", "L"},
            .unsigned_wide = {"", "UL"},
            .least = {"(-2147483647 - 1)", "(-9223372036854775807L - 1L)"},
            .most = {"2147483647", "9223372036854775807L", "4294967295u", "18446744073709551615UL"},
            .suffixed = false,
            .narrow = false,
            .intrin = OwnText,
            .builtins = Builtins,
        },
    .fp64 = "cl_khr_fp64",
    .fp16 = nullptr,
    .device = "opencl",
    .head = kernels::HeadC,
    .kernel = "__kernel ",
    .memory = "__global ",
    .restricted = "restrict",
    .shared = "__local ",
    .shared_first = true,
    .shared_array = kernels::SharedArrayC,
    .global_names = false,
    .wide_truth = false,
    .item = "get_global_id(0)",
    .axes = {"get_group_id(0)", "get_group_id(1)", "get_group_id(2)", "get_local_id(0)", "get_local_id(1)",
             "get_local_id(2)"},
    .block_size = BlockSize,
    .float_to_int = FloatToInt,
    .prelude = Prelude,
};

}  // namespace baton::codegen::opencl
