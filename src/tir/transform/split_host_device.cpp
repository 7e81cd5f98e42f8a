// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>

#include <string>
#include <unordered_set>
#include <vector>

#include "tir/thread_axes.h"

namespace baton::tir {
namespace {

constexpr const char* kCallingConv = "calling_conv";
constexpr int64_t kDeviceKernel = 2;

/// Free variables and buffers of a kernel, in order of first use.
struct Uses : StmtExprVisitor {
  std::vector<Buffer> buffers;  ///< one for each data pointer
  std::vector<const VarNode*> numbers;
  std::unordered_set<const Object*> bound, seen;
  BufferMap views;  ///< every buffer object over data from outside; values are filled in later

  using StmtExprVisitor::VisitExpr_;
  using StmtExprVisitor::VisitStmt_;
  void VisitStmt_(const AttrStmtNode* op) final {
    if (const VarNode* v = BoundThreadVar(op)) {
      VisitExpr(op->value);
      bound.insert(v);
      VisitStmt(op->body);
      return;
    }
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const ForNode* op) final {
    bound.insert(op->loop_var.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const LetStmtNode* op) final {
    bound.insert(op->var.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const LetNode* op) final {
    bound.insert(op->var.get());
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const AllocateNode* op) final {
    bound.insert(op->buffer->data.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    Use(op->buffer);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    Use(op->buffer);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const VarNode* op) final {
    if (bound.count(op) || !seen.insert(op).second) return;
    if (op->dtype.is_handle()) {
      throw UnsupportedError("SplitHostDevice: the kernel uses the pointer `" + op->name_hint.str() +
                             "` by itself; access the buffer of it");
    }
    numbers.push_back(op);
  }
  void Use(const Buffer& b) {
    if (bound.count(b->data.get()) || views.count(b.get())) return;
    views[b.get()] = Buffer();
    for (const PrimExpr& d : b->shape) VisitExpr(d);
    if (seen.insert(b->data.get()).second) buffers.push_back(b);
  }
};

class Splitter : public StmtMutator {
 public:
  Splitter(IRModule* out, const PrimFunc& host, std::string name) : out_(out), host_(host), name_(std::move(name)) {}
  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key != kThreadExtent) return StmtMutator::VisitStmt_(op);
    const Stmt kernel = GetRef<Stmt>(op);
    AxesOf(kernel);  // throws unless it is a kernel
    Uses uses;
    uses.VisitStmt(kernel);
    Array<Var> params;
    Array<PrimExpr> args;
    VarMap vars;
    std::unordered_map<const Object*, Var> data;
    Map<Var, Buffer> map;
    for (const VarNode* v : uses.numbers) {
      params.push_back(Var(v->name_hint, v->dtype));
      vars[v] = params.back();
      args.push_back(GetRef<PrimExpr>(v));
    }
    for (const Buffer& b : uses.buffers) data[b->data.get()] = Var(b->data->name_hint, b->data->type_annotation);
    for (auto& [view, renewed] : uses.views) {
      const auto* b = static_cast<const BufferNode*>(view);
      auto n = BufferNode(*b);
      n.data = data.at(b->data.get());
      Array<PrimExpr> shape;
      for (const PrimExpr& d : b->shape) shape.push_back(Substitute(d, vars));
      n.shape = shape;
      renewed = Buffer(std::move(n));
    }
    for (const Buffer& b : uses.buffers) {
      params.push_back(Var(b->name, DataType::Handle()));
      map.Set(params.back(), uses.views.at(b.get()));
      args.push_back(b->data);
    }
    PrimFunc f(params, SubstituteBuffers(kernel, uses.views, vars), map);
    std::string name;
    do {
      name = name_ + "_kernel" + std::to_string(count_++);
    } while ((*out_)->ContainGlobalVar(name));
    f = WithAttr(f, baton::attr::kGlobalSymbol, Any(String(name)));
    f = WithAttr(f, kCallingConv, Any(kDeviceKernel));
    if (const auto target = host_->GetAttr<Target>(baton::attr::kTarget); target.defined())
      f = WithAttr(f, baton::attr::kTarget, Any(target));
    f.CopyOnWrite()->span = op->span;
    const GlobalVar var{String(name)};
    out_->CopyOnWrite()->Add(var, f);
    EvaluateNode call;
    call.value = Call(DataType::Int(32), var, args);
    return Evaluate(std::move(call));
  }

 private:
  IRModule* out_;
  PrimFunc host_;
  std::string name_;
  int64_t count_ = 0;
};

}  // namespace

namespace transform {
Pass SplitHostDevice() {
  return MakePass<SplitHostDevice>({
      .doc =
          "Each kernel of a function (the outermost mark \"thread_extent\" and what is within) becomes a function of "
          "its own, `f_kernel0`, with the attribute calling_conv=2: numbers that it uses are its first parameters, "
          "then the buffers. The function calls it in its place. Kernels are not split again.",
      .run =
          [](IRModule mod, PassContext) {
            IRModule out = mod;
            for (const auto& [var, func] : mod->functions) {
              const auto* f = func.as<PrimFuncNode>();
              if (!f || f->GetAttr<int64_t>(kCallingConv, 0) == kDeviceKernel) continue;
              const auto host = GetRef<PrimFunc>(f);
              const std::string name = f->GetAttr<String>(baton::attr::kGlobalSymbol, var->name_hint).str();
              const PrimFunc left = WithBody(host, Splitter(&out, host, name)(f->body));
              if (!left.same_as(host)) out.CopyOnWrite()->Update(var, left);
            }
            return out;
          },
  });
}
namespace {
const RegisterPass<SplitHostDevice> registered_split_host_device("tir.transform.");
}
}  // namespace transform
}  // namespace baton::tir
