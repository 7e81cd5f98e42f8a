// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>
#include <tir/any_stmt.h>

#include <algorithm>

#include "tir/thread_axes.h"

namespace baton::tir {
namespace {

Stmt Store(const Buffer& b, const PrimExpr& value, const Array<PrimExpr>& at) {
  BufferStoreNode n;
  n.buffer = b, n.value = value, n.indices = at;
  return BufferStore(std::move(n));
}
Stmt If(const PrimExpr& condition, const Stmt& then) {
  IfThenElseNode n;
  n.condition = condition, n.then_case = then;
  return IfThenElse(std::move(n));
}

class Lowerer : public StmtMutator {
 public:
  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key == kThreadExtent && axes_.empty()) {
      axes_ = AxesOf(GetRef<Stmt>(op));
      Stmt out = StmtMutator::VisitStmt_(op);
      axes_.clear();
      return out;
    }
    if (op->attr_key != kReduceScope) return StmtMutator::VisitStmt_(op);
    const AttrStmtNode* outer = reduce_;
    reduce_ = op;
    const Stmt body = VisitStmt(op->body);
    reduce_ = outer;
    // The mark is removed with its call.
    return body.same_as(op->body) ? GetRef<Stmt>(op) : body;
  }
  Stmt VisitStmt_(const EvaluateNode* op) final {
    const Stmt s = GetRef<Stmt>(op);
    const CallNode* call = AllreduceOf(s);
    if (!call) return s;
    if (axes_.empty())
      throw CompileError("tvm_thread_allreduce stands in no kernel: no mark \"thread_extent\" is around it");
    const ThreadAllreduce all(call);
    Stmt out = Lowered(all, ReducerOf(reduce_, all));
    KeepSpan(s, out);
    return out;
  }

 private:
  /// A tree of halves in memory that the block shares: the threads of a group lie side by side.
  Stmt Lowered(const ThreadAllreduce& all, const CommReducer& reducer) const {
    int64_t threads = 1, size = 1;
    PrimExpr group, lane;
    for (const KernelAxis& a : axes_) {
      if (IsBlockAxis(a.axis)) continue;
      const int64_t* extent = as_const_int(a.extent);
      if (!extent || *extent < 1) {
        throw CompileError("LowerThreadAllreduce: the extent of `" + std::string(ThreadAxisName(a.axis)) +
                           "` is no positive literal; shared memory is as large as there are threads");
      }
      const bool over =
          std::any_of(all.vars.begin(), all.vars.end(), [&](const VarNode* v) { return ThreadAxis(v) == a.axis; });
      PrimExpr& number = over ? lane : group;
      const auto var = GetRef<PrimExpr>(a.vars[0]);
      number = number.defined() ? number * *extent + var : var;
      (over ? threads : size) *= *extent;
    }
    for (const VarNode* v : all.vars) {
      const bool there =
          std::any_of(axes_.begin(), axes_.end(), [&](const KernelAxis& a) { return a.axis == ThreadAxis(v); });
      if (!there)
        throw CompileError("tvm_thread_allreduce goes over `" + v->name_hint.str() + "`, which the kernel has not");
    }
    const size_t n = all.values.size();
    Array<Stmt> out;
    if (threads == 1) {
      for (size_t i = 0; i < n; ++i) out.push_back(Result(all, i, Guarded(all, reducer, i)));
      return SeqStmt::Flatten(out);
    }
    std::vector<Buffer> shared;
    for (size_t i = 0; i < n; ++i)
      shared.push_back(Buffer::Make({PrimExpr(size * threads)}, all.values[i].dtype(), "red", kShared));
    const PrimExpr base = group.defined() ? group * threads : PrimExpr(int64_t{0});
    const PrimExpr own = group.defined() ? base + lane : lane;
    // Reads of the previous round must have finished.
    out.push_back(StorageSync(kShared));
    for (size_t i = 0; i < n; ++i) out.push_back(Store(shared[i], Guarded(all, reducer, i), {own}));
    out.push_back(StorageSync(kShared));
    int64_t half = 1;
    while (half * 2 < threads) half *= 2;
    for (; half >= 1; half /= 2) {
      std::vector<PrimExpr> a, b;
      for (const Buffer& s : shared) {
        a.push_back(BufferLoad(s, {own}));
        b.push_back(BufferLoad(s, {own + half}));
      }
      // All of several values are read before one is written.
      const std::vector<PrimExpr> sums = Combined(reducer, a, b);
      Array<Stmt> stores;
      std::vector<Var> held;
      for (size_t i = 0; i < n; ++i) {
        held.push_back(n > 1 ? Var("sum", sums[i].dtype()) : Var());
        stores.push_back(Store(shared[i], n > 1 ? PrimExpr(held[i]) : sums[i], {own}));
      }
      Stmt step = SeqStmt::Flatten(stores);
      for (size_t i = n; n > 1 && i-- > 0;) {
        LetStmtNode let;
        let.var = held[i], let.value = sums[i], let.body = step;
        step = LetStmt(std::move(let));
      }
      out.push_back(If(lane < std::min(half, threads - half), step));
      out.push_back(StorageSync(kShared));
    }
    for (size_t i = 0; i < n; ++i) out.push_back(Result(all, i, BufferLoad(shared[i], {base})));
    Stmt body = SeqStmt::Flatten(out);
    for (size_t i = n; i-- > 0;) {
      AllocateNode a;
      a.buffer = shared[i], a.body = body;
      body = Allocate(std::move(a));
    }
    return body;
  }
  static PrimExpr Guarded(const ThreadAllreduce& all, const CommReducer& reducer, size_t i) {
    if (is_one(all.condition)) return all.values[i];
    return if_then_else(all.condition, all.values[i], reducer->identity_element[static_cast<int64_t>(i)]);
  }
  static Stmt Result(const ThreadAllreduce& all, size_t i, const PrimExpr& value) {
    return Store(all.places[i]->buffer, value, all.places[i]->indices);
  }

  std::vector<KernelAxis> axes_;
  const AttrStmtNode* reduce_ = nullptr;
};

}  // namespace

namespace transform {
Pass LowerThreadAllreduce() {
  return MakePass<LowerThreadAllreduce>({
      .doc = "tvm_thread_allreduce becomes a tree of halves in memory that the block shares, with barriers between its "
             "steps; how values are combined is said by the mark \"reduce_scope\" around it. Sums of floats are in "
             "another order than by one thread.",
      .reassociates = true,
      .run =
          [](PrimFunc f, IRModule, PassContext) {
            const auto call = [](const EvaluateNode* e) { return AllreduceOf(GetRef<Stmt>(e)) != nullptr; };
            return AnyStmtOf<EvaluateNode>(f->body, call) ? WithBody(f, Lowerer()(f->body)) : f;
          },
  });
}
namespace {
const RegisterPass<LowerThreadAllreduce> registered_lower_thread_allreduce("tir.transform.");
}
}  // namespace transform
}  // namespace baton::tir
