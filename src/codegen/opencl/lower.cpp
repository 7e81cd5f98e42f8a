// SPDX-License-Identifier: Apache-2.0
#include <baton/codegen/opencl.h>
#include <baton/support/json.h>
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "codegen/opencl/emitter.h"

namespace baton::codegen {

using opencl::KernelBody;
using opencl::Needs;
using tir::Buffer;
using tir::PrimFunc;
using tir::Stmt;
using tir::Var;

namespace {

/// Loops that were marked for a processor's vectors are plain loops here.
class LoopsAsWritten : public tir::StmtMutator {
 public:
  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const tir::ForNode* op) final {
    Stmt s = StmtMutator::VisitStmt_(op);
    const auto* f = s.as<tir::ForNode>();
    if (!f || f->kind == tir::ForKind::kSerial || f->kind == tir::ForKind::kParallel) return s;
    tir::ForNode n = *f;
    n.kind = tir::ForKind::kSerial;
    return tir::For(std::move(n));
  }
};

PrimFunc Prepare(PrimFunc f) {
  f = tir::SimplifyFunc(tir::FlattenStorage(f));
  f.CopyOnWrite()->body = LoopsAsWritten()(f->body);
  return tir::SimplifyFunc(tir::LowerIntrinsics(tir::ComputeHalfInFloat(f)));
}

bool ReadsMemory(const PrimExpr& e) {
  bool found = false;
  tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) { found = found || x.as<tir::BufferLoadNode>(); });
  return found;
}

/// A function cut into kernels.
class Cutter {
 public:
  Cutter(std::string name, Needs* needs) : name_(std::move(name)), symbol_(name_), needs_(needs) {
    for (char& c : symbol_) c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }

  void Run(const PrimFunc& f, std::string* text, support::JsonWriter* w) {
    w->BeginObject();
    w->Key("name");
    w->String(name_);
    w->Key("params");
    w->BeginArray();
    for (const Var& p : f->params) {
      if (!f->buffer_map.count(p)) {
        throw UnsupportedError(
            fmt::format("`{}` cannot be compiled for OpenCL: parameter `{}` is no buffer; shapes and numbers must be "
                        "known when it is "
                        "compiled",
                        name_, p->name_hint.str()));
      }
      const Buffer& b = f->buffer_map.at(p);
      place_[b->data.get()] = static_cast<int64_t>(place_.size());
      Param(p, b, w);
    }
    w->EndArray();
    Cut(f->body, {});
    Flush();
    w->Key("workspace");
    w->Int(static_cast<int64_t>(workspace_));
    w->Key("kernels");
    w->BeginArray();
    for (const KernelBody& k : kernels_) {
      std::vector<const Object*> args;
      *text += "\n" + opencl::EmitKernel(k, name_, needs_, &args);
      w->BeginObject();
      w->Key("name");
      w->String(k.name);
      w->Key("items");
      w->Int(k.items);
      w->Key("args");
      w->BeginArray();
      for (const Object* a : args) {
        auto it = place_.find(a);
        if (it == place_.end()) throw InternalError("a buffer of `" + name_ + "` has no memory");
        w->Int(it->second);
      }
      w->EndArray();
      w->EndObject();
    }
    w->EndArray();
    w->EndObject();
  }

 private:
  using Lets = std::vector<std::pair<Var, PrimExpr>>;

  void Param(const Var& p, const Buffer& b, support::JsonWriter* w) {
    w->BeginObject();
    w->Key("name");
    w->String(p->name_hint.str());
    w->Key("dtype");
    w->String(DataType2String(b->dtype));
    w->Key("shape");
    w->BeginArray();
    for (const PrimExpr& d : b->shape) {
      const int64_t* n = tir::as_const_int(d);
      if (!n) {
        throw UnsupportedError(fmt::format(
            "`{}` cannot be compiled for OpenCL: a dimension of `{}` is not known; give the shape when it is compiled",
            name_, p->name_hint.str()));
      }
      w->Int(*n);
    }
    w->EndArray();
    w->EndObject();
  }

  void Workspace(const Buffer& b) {
    int64_t bytes = b->dtype.bytes();
    for (const PrimExpr& d : b->shape) {
      const int64_t* n = tir::as_const_int(d);
      if (!n) {
        throw UnsupportedError(
            fmt::format("`{}` cannot be compiled for OpenCL: the size of `{}` is not known", name_, b->name.str()));
      }
      bytes *= *n;
    }
    place_[b->data.get()] = -1 - static_cast<int64_t>(workspace_);
    workspace_ += (static_cast<uint64_t>(bytes) + 63) / 64 * 64;
  }

  /// What is left to one work-item in order, gathered until a parallel loop comes.
  void Serial(const Stmt& s, const Lets& lets) {
    if (!serial_.empty() && serial_lets_ != lets.size()) Flush();
    serial_.push_back(s);
    serial_lets_ = lets.size();
    pending_ = lets;
  }
  void Flush() {
    if (serial_.empty()) return;
    Stmt body = tir::SeqStmt::Flatten(serial_);
    serial_ = {};
    // Large arrays of a single work-item lie in the workspace.
    struct Hoist : tir::StmtMutator {
      Cutter* c;
      explicit Hoist(Cutter* c) : c(c) {}
      using StmtMutator::VisitStmt_;
      Stmt VisitStmt_(const tir::AllocateNode* op) final {
        c->Workspace(op->buffer);
        return VisitStmt(op->body);
      }
    } hoist(this);
    Add(1, Var(), pending_, hoist(body));
  }
  void Add(int64_t items, const Var& index, const Lets& lets, const Stmt& body) {
    kernels_.push_back({fmt::format("k_{}_{}", symbol_, kernels_.size()), items, index, lets, body});
  }

  void Cut(const Stmt& s, const Lets& lets) {
    if (const auto* seq = s.as<tir::SeqStmtNode>()) {
      for (const Stmt& x : seq->seq) Cut(x, lets);
    } else if (const auto* a = s.as<tir::AllocateNode>()) {
      Workspace(a->buffer);
      Cut(a->body, lets);
    } else if (const auto* attr = s.as<tir::AttrStmtNode>()) {
      tir::CheckNoThreadAxes(attr);
      Cut(attr->body, lets);
    } else if (const auto* let = s.as<tir::LetStmtNode>(); let && !ReadsMemory(let->value)) {
      Flush();
      Lets more = lets;
      more.push_back({let->var, let->value});
      Cut(let->body, more);
      Flush();
    } else if (const auto* e = s.as<tir::EvaluateNode>(); e && !tir::HasSideEffect(e->value)) {
      return;
    } else if (const auto* f = s.as<tir::ForNode>(); f && f->kind == tir::ForKind::kParallel && Parallel(f, lets)) {
      return;
    } else {
      Serial(s, lets);
    }
  }

  /// Parallel loops directly within each other are one; false where a bound is not known.
  bool Parallel(const tir::ForNode* f, const Lets& lets) {
    int64_t items = 1;
    std::vector<const tir::ForNode*> loops;
    for (const auto* at = f; at && at->kind == tir::ForKind::kParallel; at = at->body.as<tir::ForNode>()) {
      const int64_t *n = tir::as_const_int(at->extent), *begin = tir::as_const_int(at->min);
      if (!n || !begin || *n < 0 || (*n > 0 && items > (int64_t{1} << 40) / *n)) break;
      items *= *n;
      loops.push_back(at);
    }
    if (loops.empty()) return false;
    Flush();
    if (items == 0) return true;
    Var index("item");
    Lets more = lets;
    PrimExpr rest = index;
    Lets own;
    for (size_t i = loops.size(); i-- > 0;) {
      PrimExpr at = i == 0 ? rest : truncmod(rest, loops[i]->extent);
      if (i > 0) rest = truncdiv(rest, loops[i]->extent);
      own.push_back({loops[i]->loop_var, at + loops[i]->min});
    }
    more.insert(more.end(), own.rbegin(), own.rend());
    Add(items, index, more, loops.back()->body);
    return true;
  }

  std::string name_, symbol_;
  Needs* needs_;
  std::unordered_map<const Object*, int64_t> place_;  // data variable -> parameter, or -1 - (offset in the workspace)
  uint64_t workspace_ = 0;
  Array<Stmt> serial_;
  size_t serial_lets_ = 0;
  Lets pending_;
  std::vector<KernelBody> kernels_;
};

}  // namespace

std::string CompileToOpenCL(const IRModule& mod) {
  Needs needs;
  std::string text, functions;
  support::JsonWriter w(&functions);
  w.BeginArray();
  for (const auto& [var, func] : mod->functions) {
    const auto* f = func.as<tir::PrimFuncNode>();
    if (!f)
      throw runtime::TypeError("@" + var->name_hint.str() + " is no PrimFunc; a model of Relay is for relay.build");
    const std::string name = func->GetAttr<String>(attr::kGlobalSymbol, var->name_hint).str();
    Cutter(name, &needs).Run(Prepare(GetRef<PrimFunc>(f)), &text, &w);
  }
  w.EndArray();
  std::string out = "// baton-opencl {\"needs\":[";
  if (needs.fp64) out += "\"cl_khr_fp64\"";
  out += "],\"functions\":" + functions + "}\n";
  // What is written is what is computed: no sums and products joined behind our back.
  out += "#pragma OPENCL FP_CONTRACT OFF\n";
  if (needs.fp64) out += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
  return out + "\n" + opencl::Definitions(needs.builtins) + text;
}

}  // namespace baton::codegen
