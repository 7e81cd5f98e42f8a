// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "codegen/metal/metal.h"

namespace baton::codegen::metal {
namespace {

std::string BlockSize(const int64_t* threads) {
  return fmt::format("[[max_total_threads_per_threadgroup({})]] ", threads[0] * threads[1] * threads[2]);
}
/// The buffers, then one of numbers: offsets in bytes, and sizes.
std::string Head(const kernels::Language& language, const kernels::KernelHead& head) {
  std::string text = fmt::format("{}{}void {}(", head.block_size, language.kernel, head.name), first;
  size_t n = head.buffers.size();
  for (size_t i = 0; i < n; ++i) {
    const kernels::KernelHead::Buffer& b = head.buffers[i];
    text += fmt::format("device uchar* a{} [[buffer({})]], ", i, i);
    const std::string type = fmt::format("device {}{}*", b.written ? "" : "const ", b.type);
    first += fmt::format("  {} {} = ({})(a{} + numbers[{}]);\n", type, b.name, type, i, i);
  }
  text += fmt::format("constant long* numbers [[buffer({})]], ", n);
  for (const std::string& size : head.sizes) first += fmt::format("  const long {} = numbers[{}];\n", size, n++);
  text += head.items ? "uint3 item_at [[thread_position_in_grid]]"
                     : "uint3 block_at [[threadgroup_position_in_grid]], "
                       "uint3 thread_at [[thread_position_in_threadgroup]]";
  return text + ") {\n" + first + head.shared;
}
std::string FloatToInt(const std::string& value, DataType, DataType to, const std::string&, source::Needs* needs) {
  const std::string name = fmt::format("sat_{}_f32", source::SuffixOf(to));
  needs->builtins.insert(name);
  return fmt::format("baton_{}({})", name, value);
}
std::string Prelude(const source::Needs&) {
  return "// Compile it with -fno-fast-math: NaN counts, and sums and products are not joined.\n"
         "#include <metal_stdlib>\nusing namespace metal;\n#pragma METAL fp contract(off)\n";
}

}  // namespace

const kernels::Language kLanguage = {
    .dialect =
        {
            .language = "Metal",
            .syntax = &source::kSyntaxC,
            .ints = {"char", "short", "int", "long"},
            .uints = {"uchar", "ushort", "uint", "ulong"},
            .floats = {"ushort", "ushort", "float", nullptr},
            .truth = "uchar",
            .mend = "let it be computed in float32",
            .wide = {"", "L"},
            .unsigned_wide = {"", "UL"},
            .least = {"(-2147483647 - 1)", "(-9223372036854775807L - 1L)"},
            .most = {"2147483647", "9223372036854775807L", "4294967295u", "18446744073709551615UL"},
            .suffixed = false,
            .narrow = false,
            .intrin = OwnText,
            .builtins = Builtins,
        },
    .fp64 = nullptr,
    .fp16 = nullptr,
    .device = "metal",
    .head = Head,
    .kernel = "kernel ",
    .memory = "device ",
    .restricted = "",
    .shared = "threadgroup ",
    .shared_first = true,
    .shared_array = kernels::SharedArrayC,
    .global_names = false,
    .wide_truth = false,
    .item = "item_at.x",
    .axes = {"block_at.x", "block_at.y", "block_at.z", "thread_at.x", "thread_at.y", "thread_at.z"},
    .block_size = BlockSize,
    .float_to_int = FloatToInt,
    .prelude = Prelude,
};

}  // namespace baton::codegen::metal
