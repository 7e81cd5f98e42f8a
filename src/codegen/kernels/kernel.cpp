// SPDX-License-Identifier: Apache-2.0
// The text of a kernel.
#include "codegen/kernels/kernel.h"

#include <baton/tir/lower.h>
#include <fmt/format.h>

#include <algorithm>
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
    if (language_.global_names) prefix_ = k.name + "_";
    std::vector<std::string> given;
    for (const Var& v : sizes) {
      given.push_back(Fresh(v->name_hint.str()));
      names_[v.get()] = given.back();
      if (v.dtype() == DataType::Int(64)) continue;
      names_[v.get()] = Fresh(v->name_hint.str());
      Constant(v.dtype(), names_.at(v.get()), dialect_.syntax->cast(Type(v.dtype()), given.back()));
    }
    for (const KernelAxis& axis : k.axes) Define(axis);
    if (k.index.defined()) {
      const std::string i = Fresh(k.index->name_hint.str());
      names_[k.index.get()] = i;
      Constant(DataType::Int(64), i, language_.item);
      Line(dialect_.syntax->when(fmt::format("{} >= {}", i, Position(k.items)), "return;"));
    }
    for (const auto& [var, value] : k.lets) DefineValue(var, value);
    VisitStmt(k.body);
    KernelHead head{
        .name = k.name, .block_size = BlockSize(k.axes), .sizes = given, .shared = shared_, .items = k.axes.empty()};
    for (const Object* b : buffers_) {
      const BufferUse& u = used_.at(b);
      head.buffers.push_back({u.name, u.type, u.written});
    }
    *args = buffers_;
    return language_.head(language_, head) + text_ + "}\n";
  }

 private:
  using Printer::Define;
  void Constant(DataType t, const std::string& name, const std::string& value) {
    Line(dialect_.syntax->constant(Type(t), name, value) + ";");
  }
  void Define(const KernelAxis& axis) {
    const std::string name =
        Fresh(fmt::format("{}Idx_{}", IsBlockAxis(axis.axis) ? "block" : "thread", "xyz"[axis.axis % 3]));
    const DataType type = axis.vars[0]->dtype;
    Constant(type, name, dialect_.syntax->cast(Type(type), language_.axes[axis.axis]));
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
    size_t number = 0;
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
    const std::string name = Pointer(b, write);
    const auto used = used_.find(b->data.get());
    if (!language_.global_names || used == used_.end()) return fmt::format("{}[{}]", name, index);
    return fmt::format("{}[o{} + {}]", name, used->second.number, index);
  }
  std::string Pointer(const Buffer& b, bool write) {
    if (auto it = names_.find(b->data.get()); it != names_.end()) return it->second;  // private
    auto [it, fresh] = used_.try_emplace(b->data.get());
    if (fresh) {
      int64_t elements = 1;
      for (const PrimExpr& d : b->shape) elements *= as_const_int(d) ? *as_const_int(d) : 1;
      if (dialect_.narrow && elements > INT32_MAX) {
        No(fmt::format("buffer `{}` has {} elements, and its indices have 32 bits", b->name.str(), elements));
      }
      it->second.name = prefix_ + Fresh(b->name.str());
      it->second.number = buffers_.size();
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
    const std::string name = (shared ? prefix_ : "") + Fresh(b->name.str());
    const std::string type = dialect_.MemoryTypeName(b->dtype.element_of(), needs_);
    const int64_t elements = std::max<int64_t>(count, 1);
    if (shared && language_.shared_first) {
      shared_ += language_.shared_array(language_, type, name, elements);
    } else if (shared) {
      Line(language_.shared + dialect_.syntax->array(type, name, elements) + ";");
    } else {
      Line(dialect_.syntax->array(type, name, elements) + ";");
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
  std::string prefix_;  // of names of the whole program
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

std::string HeadC(const Language& language, const KernelHead& head) {
  std::string text = fmt::format("{}{}void {}(", language.kernel, head.block_size, head.name), pointers;
  const std::string byte = language.dialect.uints[0], number = fmt::format("const {}", language.dialect.ints[3]);
  for (size_t i = 0; i < head.buffers.size(); ++i) {
    const KernelHead::Buffer& b = head.buffers[i];
    text += fmt::format("{}{}{}* a{}, {} o{}", i ? ", " : "", language.memory, byte, i, number, i);
    const std::string type = fmt::format("{}{}{}*", language.memory, b.written ? "" : "const ", b.type);
    pointers += fmt::format("  {} {} {} = ({})(a{} + o{});\n", type, language.restricted, b.name, type, i, i);
  }
  for (size_t i = 0; i < head.sizes.size(); ++i) {
    text += fmt::format("{}{} {}", i || !head.buffers.empty() ? ", " : "", number, head.sizes[i]);
  }
  return text + ") {\n" + pointers + head.shared;
}

std::string SharedArrayC(const Language& language, const std::string& type, const std::string& name, int64_t count) {
  return fmt::format("  {}{};\n", language.shared, language.dialect.syntax->array(type, name, count));
}

std::string EmitKernel(const Language& language, const KernelBody& kernel, const std::vector<Var>& sizes,
                       const std::string& function, Needs* needs, std::vector<const Object*>* args) {
  return KernelPrinter(language, function, needs).Kernel(kernel, sizes, args);
}

}  // namespace baton::codegen::kernels
