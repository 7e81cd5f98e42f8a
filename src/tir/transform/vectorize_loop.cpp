// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>
#include <tir/any_stmt.h>

namespace baton::tir {
namespace {

/// Thrown where the body has no vector form; the loop then stays a loop.
struct NoVectorForm {};

/// Writes the body of one loop for all iterations at once.
class Vectorizer : public StmtExprMutator {
 public:
  Vectorizer(const Var& var, const PrimExpr& min, int lanes)
      : var_(var), lanes_(lanes), ramp_(Ramp(min, make_int(min.dtype(), 1), lanes)) {}
  using StmtExprMutator::VisitExpr_;
  using StmtExprMutator::VisitStmt_;

  PrimExpr VisitExpr_(const VarNode* op) final {
    if (op == var_.get()) return ramp_;
    auto it = lets_.find(op);
    return it == lets_.end() ? GetRef<PrimExpr>(op) : it->second;
  }
  PrimExpr VisitExpr_(const SelectNode* op) final {
    PrimExpr c = VisitExpr(op->condition), t = VisitExpr(op->true_value), f = VisitExpr(op->false_value);
    if (c.same_as(op->condition) && t.same_as(op->true_value) && f.same_as(op->false_value))
      return GetRef<PrimExpr>(op);
    int lanes = Widest({c, t, f});
    return Select(c, broadcast_to(t, lanes), broadcast_to(f, lanes));
  }
  PrimExpr VisitExpr_(const CastNode* op) final {
    PrimExpr v = VisitExpr(op->value);
    return v.same_as(op->value) ? GetRef<PrimExpr>(op) : cast(op->dtype.with_lanes(v.dtype().lanes()), v);
  }
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    PrimExpr index = Index(op->indices);
    auto wide = wide_.find(op->buffer.get());
    if (wide != wide_.end()) return BufferLoad(wide->second, {WideIndex(index)});
    if (index.same_as(op->indices[0])) return GetRef<PrimExpr>(op);
    PrimExpr load = BufferLoad(op->buffer, {index});
    return mask_.defined() ? masked_load(load, mask_) : load;
  }
  PrimExpr VisitExpr_(const RampNode* op) final { return NoChange(op); }
  PrimExpr VisitExpr_(const BroadcastNode* op) final { return NoChange(op); }
  PrimExpr VisitExpr_(const ShuffleNode* op) final { return NoChange(op); }
  PrimExpr VisitExpr_(const LetNode* op) final {
    PrimExpr v = VisitExpr(op->value);
    Var var = Rebind(op->var, v);
    PrimExpr b = VisitExpr(op->body);
    if (v.same_as(op->value) && b.same_as(op->body)) return GetRef<PrimExpr>(op);
    return Let(var, v, b);
  }
  PrimExpr VisitExpr_(const CallNode* op) final {
    if (IsChoice(op)) {
      PrimExpr c = VisitExpr(op->args[0]);
      if (c.dtype().is_scalar()) {
        PrimExpr t = VisitExpr(op->args[1]), f = VisitExpr(op->args[2]);
        int lanes = Widest({t, f});
        t = broadcast_to(t, lanes), f = broadcast_to(f, lanes);
        if (c.same_as(op->args[0]) && t.same_as(op->args[1]) && f.same_as(op->args[2])) return GetRef<PrimExpr>(op);
        return Call(t.dtype(), op->op, {c, t, f});
      }
      PrimExpr saved = mask_;
      mask_ = saved.defined() ? saved && c : c;
      PrimExpr t = broadcast_to(VisitExpr(op->args[1]), lanes_);
      mask_ = saved.defined() ? saved && !c : !c;
      PrimExpr f = broadcast_to(VisitExpr(op->args[2]), lanes_);
      mask_ = saved;
      return Select(c, t, f);
    }
    Array<PrimExpr> args = VisitExprs(op->args);
    if (args.same_as(op->args)) {
      // The same in all iterations; an effect must happen once in each.
      if (HasSideEffect(GetRef<PrimExpr>(op))) throw NoVectorForm();
      return GetRef<PrimExpr>(op);
    }
    if (!IsLaneByLane(op) || op->dtype.is_vector()) throw NoVectorForm();
    Array<PrimExpr> wide;
    for (const PrimExpr& a : args) wide.push_back(broadcast_to(a, lanes_));
    return Call(op->dtype.with_lanes(lanes_), op->op, wide);
  }

  Stmt VisitStmt_(const BufferStoreNode* op) final {
    PrimExpr index = Index(op->indices), value = VisitExpr(op->value);
    BufferStoreNode n = *op;
    auto wide = wide_.find(op->buffer.get());
    if (wide != wide_.end()) {
      n.buffer = wide->second;
      index = WideIndex(index);
    } else if (index.dtype().is_scalar()) {
      // All iterations write one place: the last one wins, which only holds for a value that is the same in all.
      if (value.dtype().is_vector() || mask_.defined()) throw NoVectorForm();
      if (index.same_as(op->indices[0]) && value.same_as(op->value)) return GetRef<Stmt>(op);
    }
    value = broadcast_to(value, index.dtype().lanes());
    if (mask_.defined() && wide == wide_.end()) {
      EvaluateNode e;
      e.value = masked_store(BufferLoad(n.buffer, {index}), value, mask_);
      return Evaluate(std::move(e));
    }
    if (mask_.defined()) {
      // Registers of lanes that are off keep their value.
      value = Select(mask_, value, BufferLoad(n.buffer, {index}));
    }
    n.indices = {index}, n.value = value;
    return BufferStore(std::move(n));
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    if (op->buffer->dtype.is_vector()) throw NoVectorForm();
    BufferNode b = *op->buffer.get();
    b.shape = {b.shape[0] * PrimExpr(static_cast<int64_t>(lanes_))};
    b.data = Var(b.data->name_hint, b.data->type_annotation);
    Buffer fresh(std::move(b));
    wide_[op->buffer.get()] = fresh;
    AllocateNode n = *op;
    n.buffer = fresh;
    n.body = VisitStmt(op->body);
    return Allocate(std::move(n));
  }
  Stmt VisitStmt_(const ForNode* op) final {
    PrimExpr min = VisitExpr(op->min), extent = VisitExpr(op->extent);
    if (min.dtype().is_vector() || extent.dtype().is_vector() || op->kind == ForKind::kVectorized) throw NoVectorForm();
    ForNode n = *op;
    n.min = min, n.extent = extent;
    if (n.kind == ForKind::kParallel) n.kind = ForKind::kSerial;
    n.body = VisitStmt(op->body);
    return For(std::move(n));
  }
  Stmt VisitStmt_(const IfThenElseNode* op) final {
    PrimExpr c = VisitExpr(op->condition);
    if (c.dtype().is_scalar()) return StmtExprMutator::VisitStmt_(op);
    // Evaluated once: the guarded statement may write what the condition reads.
    bool reads = false;
    PostOrderVisitExpr(c, [&](const PrimExpr& x) { reads = reads || x.as<BufferLoadNode>(); });
    const PrimExpr asked = c;
    Var held;
    if (reads) c = held = Var(String("mask"), c.dtype());
    PrimExpr saved = mask_;
    mask_ = saved.defined() ? saved && c : c;
    Stmt t = VisitStmt(op->then_case), e;
    if (op->else_case.defined()) {
      mask_ = saved.defined() ? saved && !c : !c;
      e = VisitStmt(op->else_case);
    }
    mask_ = saved;
    Stmt both = SeqStmt::Flatten({t, e});
    if (!reads) return both;
    LetStmtNode n;
    n.var = held, n.value = asked, n.body = both;
    return LetStmt(std::move(n));
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    PrimExpr v = VisitExpr(op->value);
    LetStmtNode n = *op;
    n.var = Rebind(op->var, v), n.value = v;
    n.body = VisitStmt(op->body);
    return LetStmt(std::move(n));
  }
  Stmt VisitStmt_(const AssertStmtNode*) final { throw NoVectorForm(); }
  Stmt VisitStmt_(const WhileNode*) final { throw NoVectorForm(); }

 private:
  template <class N>
  PrimExpr NoChange(const N* op) {
    PrimExpr r = StmtExprMutator::VisitExpr_(op);
    if (!r.same_as(GetRef<PrimExpr>(op)) || op->dtype.is_vector()) throw NoVectorForm();
    return r;
  }
  static int Widest(std::initializer_list<PrimExpr> es) {
    int lanes = 1;
    for (const PrimExpr& e : es) lanes = e.dtype().lanes() > lanes ? e.dtype().lanes() : lanes;
    return lanes;
  }
  PrimExpr Index(const Array<PrimExpr>& indices) {
    ICHECK(indices.size() == 1) << "VectorizeLoop wants flat storage";
    if (indices[0].dtype().is_vector()) throw NoVectorForm();
    return VisitExpr(indices[0]);
  }
  /// A register of each lane: element i of lane l is at i * lanes + l.
  PrimExpr WideIndex(const PrimExpr& i) {
    PrimExpr lanes(static_cast<int64_t>(lanes_));
    const PrimExpr one = make_int(i.dtype().element_of(), 1);
    if (i.dtype().is_scalar()) return Ramp(i * lanes, one, lanes_);
    return i * lanes + Ramp(make_int(one.dtype(), 0), one, lanes_);
  }
  Var Rebind(const Var& var, const PrimExpr& value) {
    if (value.dtype() == var.dtype()) return var;
    Var wide(var->name_hint, value.dtype());
    lets_[var.get()] = wide;
    return wide;
  }
  Var var_;
  int lanes_;
  PrimExpr ramp_, mask_;
  VarMap lets_;
  BufferMap wide_;
};

class LoopVectorizer : public StmtMutator {
 public:
  explicit LoopVectorizer(bool enabled) : enabled_(enabled) {}
  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const ForNode* op) final {
    Stmt s = StmtMutator::VisitStmt_(op);
    op = s.as<ForNode>();
    if (op->kind != ForKind::kVectorized) return s;
    const int64_t* extent = as_const_int(op->extent);
    if (enabled_ && extent && *extent == 1) return Substitute(op->body, VarMap{{op->loop_var.get(), op->min}});
    if (enabled_ && extent && *extent > 1 && *extent <= 1024) {
      try {
        return Vectorizer(op->loop_var, op->min, static_cast<int>(*extent))(op->body);
      } catch (const NoVectorForm&) {
      }
    }
    ForNode n = *op;
    n.kind = ForKind::kSerial;
    return For(std::move(n));
  }

 private:
  bool enabled_;
};

PrimFunc Vectorized(const PrimFunc& f, bool enabled) {
  const auto marked = [](const ForNode* l) { return l->kind == ForKind::kVectorized; };
  return AnyStmtOf<ForNode>(f->body, marked) ? WithBody(f, LoopVectorizer(enabled)(f->body)) : f;
}

}  // namespace

PrimFunc VectorizeLoops(const PrimFunc& f) { return Vectorized(f, true); }

namespace transform {
struct VectorizeLoopOptions : PassOptions<VectorizeLoopOptions> {
  static constexpr auto _type_key = "tir.transform.VectorizeLoopOptions";
  bool enable_vectorize = true;
  static constexpr void Describe(auto& d) {
    d(F<&VectorizeLoopOptions::enable_vectorize>,
      "Vectorized loops become vector expressions; else they become plain loops.");
  }
};

Pass VectorizeLoop(const VectorizeLoopOptions& options) {
  return MakePass<VectorizeLoop>(
      options, {
                   .doc = "Vectorized loops become vector expressions; conditions become masks. Without "
                          "enable_vectorize they become "
                          "loops that run a round after the other.",
                   .run = [enabled = options.enable_vectorize](PrimFunc f, IRModule,
                                                               PassContext) { return Vectorized(f, enabled); },
               });
}
namespace {
const RegisterPass<VectorizeLoop> registered_vectorize("tir.transform.");
}  // namespace
}  // namespace transform

}  // namespace baton::tir
