// SPDX-License-Identifier: Apache-2.0
// The text of a kernel.
#include "codegen/kernels/kernel.h"

#include <baton/tir/lower.h>
#include <fmt/format.h>

#include <unordered_map>

#include "codegen/source/printer.h"

namespace baton::codegen::kernels {

using namespace tir;  // NOLINT: node kinds are named below

namespace {

class KernelPrinter final : public source::Printer {
 public:
  KernelPrinter(const Language& language, const std::string& function, Needs* needs)
      : Printer(language.dialect, function, needs), language_(language) {}

  std::string Kernel(const KernelBody& k, const std::vector<Var>& sizes, std::vector<const Object*>* args) {
    indent_ = 1;
    std::vector<std::string> given;
    for (const Var& v : sizes) {
      given.push_back(Fresh(v->name_hint.str()));
      names_[v.get()] = given.back();
      if (v.dtype() == DataType::Int(64)) continue;
      names_[v.get()] = Fresh(v->name_hint.str());
      Line(fmt::format("const {} {} = ({}){};", Type(v.dtype()), names_.at(v.get()), Type(v.dtype()), given.back()));
    }
    for (const KernelAxis& axis : k.axes) Define(axis);
    if (k.index.defined()) {
      const std::string i = Fresh(k.index->name_hint.str());
      names_[k.index.get()] = i;
      Line(fmt::format("const {} {} = {};", Type(DataType::Int(64)), i, language_.item));
      Line(fmt::format("if ({} >= {}) return;", i, Position(k.items)));
    }
    for (const auto& [var, value] : k.lets) Define(var, VisitExpr(value));
    VisitStmt(k.body);
    std::string head = fmt::format("{}{}void {}(", language_.kernel, BlockSize(k.axes), k.name), pointers;
    const std::string byte = dialect_.uints[0], number = "const " + Type(DataType::Int(64));
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const BufferUse& u = used_.at(buffers_[i]);
      head += fmt::format("{}{}{}* a{}, {} o{}", i ? ", " : "", language_.memory, byte, i, number, i);
      const std::string type = fmt::format("{}{}{}*", language_.memory, u.written ? "" : "const ", u.type);
      pointers += fmt::format("  {} {} {} = ({})(a{} + o{});\n", type, language_.restricted, u.name, type, i, i);
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      head += fmt::format("{}{} {}", i || !buffers_.empty() ? ", " : "", number, given[i]);
    }
    *args = buffers_;
    return head + ") {\n" + pointers + shared_ + text_ + "}\n";
  }

 private:
  using Printer::Define;
  void Define(const KernelAxis& axis) {
    const std::string name =
        Fresh(fmt::format("{}Idx_{}", IsBlockAxis(axis.axis) ? "block" : "thread", "xyz"[axis.axis % 3]));
    const DataType type = axis.vars[0]->dtype;
    Line(fmt::format("const {} {} = ({}){};", Type(type), name, Type(type), language_.axes[axis.axis]));
    for (const VarNode* v : axis.vars) names_[v] = name;
  }
  std::string BlockSize(const std::vector<KernelAxis>& axes) const {
    if (axes.empty()) return "";
    int64_t sizes[3] = {1, 1, 1};
    for (const KernelAxis& axis : axes) {
      if (IsBlockAxis(axis.axis)) continue;
      const int64_t* n = as_const_int(axis.extent);
      if (!n) return "";
      sizes[axis.axis - 3] = *n;
    }
    return language_.block_size(sizes);
  }

  struct BufferUse {
    std::string name, type;
    bool written = false;
  };

  std::string WhyNoVectors() const final {
    return fmt::format(
        "it was written for a processor's vectors; write it for this target, as in te.create_prim_func(..., "
        "target=\"{}\") (loops that are only marked as vectors are taken as they are)",
        language_.device);
  }
  std::string FloatToInt(const std::string& v, DataType from, DataType to) final {
    return language_.float_to_int(v, from, to, Type(to), needs_);
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
    const std::string scope = b->scope().str();
    const bool shared = scope == kShared;
    if (!shared && !scope.empty() && scope != "local" && scope != "global") {
      No(fmt::format("buffer `{}` has the scope \"{}\"; in a kernel there are \"local\" and \"shared\"", b->name.str(),
                     scope));
    }
    if (!shared && count * b->dtype.bytes() > kMaxPrivateBytes) {
      No(fmt::format("buffer `{}` of {} bytes in a loop is too large for a work-item", b->name.str(),
                     count * b->dtype.bytes()));
    }
    const std::string name = Fresh(b->name.str());
    const std::string array =
        fmt::format("{} {}[{}];", dialect_.MemoryTypeName(b->dtype.element_of(), needs_), name, count > 0 ? count : 1);
    if (shared && language_.shared_first) {
      shared_ += std::string("  ") + language_.shared + array + "\n";
    } else {
      Line((shared ? language_.shared : "") + array);
    }
    names_[b->data.get()] = name;
    VisitStmt(op->body);
  }
  void VisitStmt_(const AssertStmtNode* op) final {
    if (!is_const_int(op->condition, 1)) No("it checks a condition while it runs, which a device cannot report");
    VisitStmt(op->body);
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    if (ThreadAxis(op) < 0) return Printer::VisitStmt_(op);
    if (!names_.count(BoundThreadVar(op))) {
      No("thread axes are within a loop or a condition; let the axes be around it, so that all of it is one kernel");
    }
    VisitStmt(op->body);  // the kernel defines the variable
  }
  using Printer::VisitStmt_;

  const Language& language_;
  std::string shared_;  // declarations of memory that a block shares
  std::unordered_map<const Object*, BufferUse> used_;
  std::vector<const Object*> buffers_;
};

}  // namespace

std::string BarrierOf(const CallNode* op, const Barriers& barriers) {
  const auto* scope = op->args.empty() ? nullptr : op->args[0].as<StringImmNode>();
  const std::pair<const char*, const char*> known[] = {
      {"shared", barriers.shared}, {"global", barriers.global}, {"warp", barriers.warp}};
  std::string names;
  for (const auto& [name, call] : known) {
    if (!call) continue;
    if (scope && scope->value == name) return call;
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name);
  }
  throw UnsupportedError(fmt::format("tvm_storage_sync: threads wait for each other in the scopes {}{}", names,
                                     scope ? ", not in \"" + scope->value.str() + "\"" : std::string()));
}

std::string EmitKernel(const Language& language, const KernelBody& kernel, const std::vector<Var>& sizes,
                       const std::string& function, Needs* needs, std::vector<const Object*>* args) {
  return KernelPrinter(language, function, needs).Kernel(kernel, sizes, args);
}

}  // namespace baton::codegen::kernels
