// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "codegen/webgpu/webgpu.h"

namespace baton::codegen::webgpu {
namespace {

using source::Needs;

// ---- Syntax

std::string Cast(const std::string& type, const std::string& value) { return fmt::format("{}({})", type, value); }
/// Both values are computed, as those of a Select may be.
std::string Choose(const std::string& condition, const std::string& yes, const std::string& no) {
  return fmt::format("select({}, {}, {})", no, yes, condition);
}
std::string Constant(const std::string& type, const std::string& name, const std::string& value) {
  return fmt::format("let {}: {} = {}", name, type, value);
}
std::string Variable(const std::string& type, const std::string& name, const std::string& value) {
  return fmt::format("var {}: {}{}{}", name, type, value.empty() ? "" : " = ", value);
}
std::string ArrayOf(const std::string& type, const std::string& name, int64_t count) {
  return fmt::format("var {}: array<{}, {}>", name, type, count);
}
std::string Step(const std::string& name) { return name + "++"; }
std::string When(const std::string& condition, const std::string& statement) {
  return fmt::format("if ({}) {{ {} }}", condition, statement);
}
std::string NotFinite(double value, const std::string& /*type*/, Needs* needs) {
  const std::string name = std::isnan(value) ? "nan" : "inf";
  needs->builtins.insert(name);
  return value < 0 ? "(-baton_" + name + "())" : "baton_" + name + "()";
}
std::string Math(const std::string& name, DataType, Needs* needs) {
  if (name == "fabs") return "abs";
  if (name == "rint") return "round";  // to even
  for (const char* own : {"fmod", "round", "pow", "tanh", "erf", "log10", "log1p"}) {
    if (name != own) continue;
    needs->builtins.insert(name + "_f32");
    return "baton_" + name + "_f32";
  }
  return name;
}

const source::Syntax kSyntax = {.cast = Cast,
                                .choose = Choose,
                                .constant = Constant,
                                .variable = Variable,
                                .array = ArrayOf,
                                .step = Step,
                                .when = When,
                                .forever = "loop {",
                                .not_finite = NotFinite,
                                .math = Math,
                                .wraps = true};

// ---- Kernels

constexpr int64_t kItems = 64;  // threads of a block of a kernel of items

std::string BlockSize(const int64_t* threads) {
  return fmt::format("@workgroup_size({}, {}, {})", threads[0], threads[1], threads[2]);
}
std::string Shared(const kernels::Language&, const std::string& type, const std::string& name, int64_t count) {
  return fmt::format("var<workgroup> {}: array<{}, {}>;\n", name, type, count);
}
std::string Head(const kernels::Language&, const kernels::KernelHead& head) {
  if (!head.items && head.block_size.empty()) {
    throw UnsupportedError(
        fmt::format("`{}` cannot be compiled for WGSL: the number of threads of a block is open; let "
                    "it be a number, and that of blocks open",
                    head.name));
  }
  std::string text, numbers, first;
  size_t n = 0;
  for (const kernels::KernelHead::Buffer& b : head.buffers) {
    text += fmt::format("@group(0) @binding({}) var<storage, {}> {}: array<{}>;\n", n,
                        b.written ? "read_write" : "read", b.name, b.type);
    numbers += fmt::format("{}o{}: i32", n ? ", " : "", n);
    first += fmt::format("  let o{} = {}_numbers.o{};\n", n, head.name, n);
    ++n;
  }
  for (const std::string& size : head.sizes) {
    numbers += fmt::format("{}{}: i32", numbers.empty() ? "" : ", ", size);
    first += fmt::format("  let {} = {}_numbers.{};\n", size, head.name, size);
  }
  if (numbers.empty()) numbers = "none: i32";
  text += fmt::format("struct {}_Numbers {{ {} }}\n@group(0) @binding({}) var<uniform> {}_numbers: {}_Numbers;\n",
                      head.name, numbers, n, head.name, head.name);
  text += head.shared;
  text += fmt::format(
      "@compute {}\nfn {}(@builtin(workgroup_id) block_at: vec3<u32>, "
      "@builtin(local_invocation_id) thread_at: vec3<u32>{}) {{\n",
      head.items ? fmt::format("@workgroup_size({})", kItems) : head.block_size, head.name,
      head.items ? ", @builtin(num_workgroups) blocks: vec3<u32>" : "");
  return text + first;
}
std::string FloatToInt(const std::string& value, DataType, DataType to, const std::string&, Needs* needs) {
  if (to.bits() == 64) kLanguage.dialect.Lack(to, *needs);
  const std::string name = fmt::format("sat_{}_f32", source::SuffixOf(to));
  needs->builtins.insert(name);
  return fmt::format("baton_{}({})", name, value);
}
std::string Prelude(const Needs& needs) { return needs.fp16 ? "enable f16;\n" : ""; }

}  // namespace

const kernels::Language kLanguage = {
    .dialect =
        {
            .language = "WGSL",
            .syntax = &kSyntax,
            .ints = {nullptr, nullptr, "i32", "i32"},
            .uints = {nullptr, nullptr, "u32", nullptr},
            .floats = {"f16", nullptr, "f32", nullptr},
            .truth = "u32",
            .mend = "it has int32, uint32, float32, float16 and bool: cast to one of them before",
            .wide = {"", ""},
            .unsigned_wide = {"", ""},
            .least = {"(-2147483647 - 1)", ""},
            .most = {"2147483647", "", "4294967295u", ""},
            .suffixed = false,
            .narrow = true,
            .intrin = OwnText,
            .builtins = Builtins,
        },
    .fp64 = nullptr,
    .fp16 = "shader-f16",
    .device = "webgpu",
    .head = Head,
    .kernel = "",
    .memory = "",
    .restricted = "",
    .shared = "",
    .shared_first = true,
    .shared_array = Shared,
    .global_names = true,
    .wide_truth = true,
    .item = "i32((block_at.y * blocks.x + block_at.x) * 64u + thread_at.x)",
    .axes = {"block_at.x", "block_at.y", "block_at.z", "thread_at.x", "thread_at.y", "thread_at.z"},
    .block_size = BlockSize,
    .float_to_int = FloatToInt,
    .prelude = Prelude,
};

}  // namespace baton::codegen::webgpu
