// SPDX-License-Identifier: Apache-2.0
// The text of a kernel.
#include "codegen/opencl/kernel.h"

#include <baton/tir/lower.h>
#include <fmt/format.h>

#include <unordered_map>

#include "codegen/source/printer.h"

namespace baton::codegen::opencl {

using namespace tir;  // NOLINT: node kinds are named below

const source::Dialect kDialect = {
    .language = "OpenCL",
    .ints = {"char", "short", "int", "long"},
    .uints = {"uchar", "ushort", "uint", "ulong"},
    .wide = {"", "L"},
    .unsigned_wide = {"", "UL"},
    .least = {"(-2147483647 - 1)", "(-9223372036854775807L - 1L)"},
    .suffixed = false,
    .intrin = OwnText,
    .builtins = Builtins,
};

namespace {

/// Bytes of an array that a work-item may keep to itself.
constexpr int64_t kMaxPrivateBytes = 16 << 10;

class KernelPrinter final : public source::Printer {
 public:
  KernelPrinter(const std::string& function, Needs* needs) : Printer(kDialect, function, needs) {}

  std::string Kernel(const KernelBody& k, const std::vector<Var>& sizes, std::vector<const Object*>* args) {
    indent_ = 1;
    for (const Var& v : sizes) names_[v.get()] = Fresh(v->name_hint.str());
    if (k.index.defined()) {
      const std::string i = Fresh(k.index->name_hint.str());
      names_[k.index.get()] = i;
      Line(fmt::format("const long {} = get_global_id(0);", i));
      Line(fmt::format("if ({} >= {}) return;", i, Position(k.items)));
    }
    for (const auto& [var, value] : k.lets) Define(var, VisitExpr(value));
    VisitStmt(k.body);
    std::string head = fmt::format("__kernel void {}(", k.name), pointers;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const BufferUse& u = used_.at(buffers_[i]);
      head += fmt::format("{}__global uchar* a{}, const long o{}", i ? ", " : "", i, i);
      const char* qualifier = u.written ? "" : "const ";
      pointers += fmt::format("  __global {}{}* restrict {} = (__global {}{}*)(a{} + o{});\n", qualifier, u.type,
                              u.name, qualifier, u.type, i, i);
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      head += fmt::format("{}const long {}", i || !buffers_.empty() ? ", " : "", names_.at(sizes[i].get()));
    }
    *args = buffers_;
    return head + ") {\n" + pointers + text_ + "}\n";
  }

 private:
  struct BufferUse {
    std::string name, type;
    bool written = false;
  };

  std::string WhyNoVectors() const final {
    return "it was written for a processor's vectors; write it for this target, as in te.create_prim_func(..., "
           "target=\"opencl\") (loops that are only marked as vectors are taken as they are)";
  }
  std::string FloatToInt(const std::string& v, DataType, DataType to) final {
    return fmt::format("convert_{}_sat({})", Type(to), v);
  }
  std::string Element(const Buffer& b, const std::string& index, bool write) final {
    return fmt::format("{}[{}]", Pointer(b, write), index);
  }
  std::string Pointer(const Buffer& b, bool write) {
    if (auto it = names_.find(b->data.get()); it != names_.end()) return it->second;  // private
    auto [it, fresh] = used_.try_emplace(b->data.get());
    if (fresh) {
      it->second.name = Fresh(b->name.str());
      it->second.type = dialect_.MemoryTypeName(b->dtype.element_of(), needs_);
      buffers_.push_back(b->data.get());
    }
    it->second.written |= write;
    return it->second.name;
  }

  void VisitStmt_(const AllocateNode* op) final {
    const Buffer& b = op->buffer;
    int64_t count = 1;
    for (const PrimExpr& d : b->shape) {
      const int64_t* n = as_const_int(d);
      if (!n) No("buffer `" + b->name.str() + "` has a size that is not known");
      count *= *n;
    }
    if (count * b->dtype.bytes() > kMaxPrivateBytes) {
      No(fmt::format("buffer `{}` of {} bytes in a loop is too large for a work-item", b->name.str(),
                     count * b->dtype.bytes()));
    }
    const std::string name = Fresh(b->name.str());
    Line(
        fmt::format("{} {}[{}];", dialect_.MemoryTypeName(b->dtype.element_of(), needs_), name, count > 0 ? count : 1));
    names_[b->data.get()] = name;
    VisitStmt(op->body);
  }
  void VisitStmt_(const AssertStmtNode* op) final {
    if (!is_const_int(op->condition, 1)) No("it checks a condition while it runs, which a device cannot report");
    VisitStmt(op->body);
  }
  using Printer::VisitStmt_;

  std::unordered_map<const Object*, BufferUse> used_;
  std::vector<const Object*> buffers_;
};

}  // namespace

std::string EmitKernel(const KernelBody& kernel, const std::vector<Var>& sizes, const std::string& function,
                       Needs* needs, std::vector<const Object*>* args) {
  return KernelPrinter(function, needs).Kernel(kernel, sizes, args);
}

}  // namespace baton::codegen::opencl
