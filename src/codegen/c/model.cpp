// SPDX-License-Identifier: Apache-2.0
// A static model as one C file and its header: code, weights, workspace, and a function that runs it.
#include <baton/runtime/error.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "codegen/c/c.h"

namespace baton::codegen::c {
namespace {

using runtime::TensorInfo;

/// A type that has elements of this dtype in memory.
std::string ElementOf(DataType t) {
  source::Needs ignored;
  return kDialect.MemoryTypeName(t, &ignored);
}

/// An element as a literal, which has its bits wherever numbers have this form.
std::string Literal(const char* at, DataType t) {
  const auto load = [at]<class T>(T v) {
    std::memcpy(&v, at, sizeof v);
    return v;
  };
  if (t.is_floating() && t.bits() >= 32) {
    const double v = t.bits() == 32 ? static_cast<double>(load(0.0F)) : load(0.0);
    if (std::isnan(v)) return "NAN";
    if (std::isinf(v)) return v < 0 ? "-INFINITY" : "INFINITY";
    char text[48];
    snprintf(text, sizeof text, "%a%s", v, t.bits() == 32 ? "f" : "");
    return text;
  }
  switch (t.bits()) {
    case 64:
      if (t.is_uint()) return fmt::format("UINT64_C({})", load(uint64_t{}));
      return load(int64_t{}) == INT64_MIN ? "INT64_MIN" : fmt::format("INT64_C({})", load(int64_t{}));
    case 32:
      if (t.is_uint()) return fmt::format("{}u", load(uint32_t{}));
      return load(int32_t{}) == INT32_MIN ? "INT32_MIN" : fmt::format("{}", load(int32_t{}));
    case 16:
      return t.is_int() ? fmt::format("{}", load(int16_t{})) : fmt::format("{}", load(uint16_t{}));
    default:
      return t.is_int() ? fmt::format("{}", load(int8_t{})) : fmt::format("{}", load(uint8_t{}));
  }
}

/// A struct whose members lie where the code looks for constants.
std::string Weights(const StaticModel& model) {
  std::string members, values;
  uint64_t at = 0;
  int number = 0;
  for (const auto& [offset, value] : model.constants) {
    const DataType t = value.dtype();
    const int64_t count = value.numel();
    if (count == 0) continue;
    if (offset > at) {
      members += fmt::format("  uint8_t gap{}[{}];\n", number, offset - at);
      values += "  {0},\n";
    }
    members += fmt::format("  {} constant{}[{}];\n", ElementOf(t), number, count);
    const NDArray dense = value.Contiguous();
    const auto* bytes = static_cast<const char*>(dense.data());
    values += "  {";
    for (int64_t i = 0; i < count; ++i) {
      if (i) values += i % 8 ? ", " : ",\n   ";
      values += Literal(bytes + i * t.bytes(), t);
    }
    values += "},\n";
    at = offset + static_cast<uint64_t>(count * t.bytes());
    ++number;
  }
  if (members.empty()) return "";
  return "\nstatic const struct {\n" + members + "} weights = {\n" + values + "};\n";
}

std::string ShapeOf(const TensorInfo& t) {
  std::string out;
  for (const int64_t d : t.shape) out += fmt::format("{}{}", out.empty() ? "" : ", ", d);
  return fmt::format("({}{})", out, t.shape.size() == 1 ? "," : "");
}

/// Tensors with names that C takes, each once.
std::vector<std::string> Fields(const std::vector<TensorInfo>& tensors) {
  std::set<std::string> taken;
  std::vector<std::string> out;
  for (const TensorInfo& t : tensors) {
    std::string name = Word(t.name);
    for (int i = 1; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", Word(t.name), i);
    out.push_back(name);
  }
  return out;
}

std::string Struct(const std::string& name, const std::vector<TensorInfo>& tensors, const char* qualifier) {
  std::string out = fmt::format("struct {} {{\n", name);
  const std::vector<std::string> fields = Fields(tensors);
  for (size_t i = 0; i < tensors.size(); ++i) {
    out += fmt::format("  {}{}* {};  /* {} {} */\n", qualifier, ElementOf(tensors[i].dtype), fields[i],
                       DataType2String(tensors[i].dtype), ShapeOf(tensors[i]));
  }
  return out + (tensors.empty() ? "  char unused;\n};\n" : "};\n");
}

}  // namespace

SourceFiles PrintModel(const StaticModel& model) {
  const runtime::ExecutableDesc& desc = model.desc;
  const std::string& name = model.name;
  if (desc.dynamic.defined()) {
    throw UnsupportedError(
        "a model with open extents is not written as C source; give the shapes of its inputs when it is compiled, or "
        "save a library (.so)");
  }
  std::string guard;
  for (const char c : name) guard += static_cast<char>(toupper(static_cast<unsigned char>(c)));
  const std::string head =
      fmt::format("int {}_run(const struct {}_inputs* inputs, const struct {}_outputs* outputs)", name, name, name);
  std::string header = fmt::format(
      "/* A model, written by Baton; {0}.c has its code and weights. */\n#ifndef {1}_H_\n#define {1}_H_\n\n"
      "#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
      name, guard);
  header += Struct(name + "_inputs", desc.inputs, "const ") + "\n" + Struct(name + "_outputs", desc.outputs, "") + "\n";
  header += fmt::format(
      "/* Bytes of the file's static memory, which calls share: one at a time. */\n#define {0}_WORKSPACE_BYTES {1}\n\n"
      "/* Runs the model; arrays are dense. Returns 0, or another number where an input has a value that it cannot "
      "have. "
      "*/\n{2};\n\n#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {0}_H_ */\n",
      guard, desc.arena_bytes, head);
  std::string source = PrintModule(model.mod, true);
  const std::string weights = Weights(model);
  source += weights;
  if (desc.arena_bytes) {
    source += fmt::format(
        "\nstatic union {{\n  uint8_t bytes[{}];\n  int64_t aligned;\n  double real;\n  void* pointer;\n}} "
        "workspace;\n",
        desc.arena_bytes);
  }
  source += fmt::format("\n#include \"{}.h\"\n\n{} {{\n", name, head);
  const std::vector<std::string> in = Fields(desc.inputs), out = Fields(desc.outputs);
  source += fmt::format("  void* io[{}];\n", std::max<size_t>(in.size() + out.size(), 1));
  if (in.size() + out.size() == 0) source += "  io[0] = NULL;\n";
  if (in.empty()) source += "  (void)inputs;\n";
  if (out.empty()) source += "  (void)outputs;\n";
  size_t number = 0;
  for (const std::string& f : in) source += fmt::format("  io[{}] = (void*)(uintptr_t)inputs->{};\n", number++, f);
  for (const std::string& f : out) source += fmt::format("  io[{}] = outputs->{};\n", number++, f);
  source += fmt::format("  return {}(io, {}, {}, NULL);\n}}\n", Word(desc.entry),
                        weights.empty() ? "NULL" : "(void*)(uintptr_t)&weights",
                        desc.arena_bytes ? "workspace.bytes" : "NULL");
  return {{"c", source}, {"h", header}};
}

}  // namespace baton::codegen::c
