// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <baton/tir/transform.h>
#include <tir/any_stmt.h>

#include <unordered_set>
#include <vector>

namespace baton::tir {
namespace {

constexpr const char* kMark = "double_buffer_scope";

/// The memory that a statement reads and writes, by data variable, and whether it has other effects.
struct Effects : StmtExprVisitor {
  std::unordered_set<const Object*> reads, writes;
  bool unknown = false;
  using StmtExprVisitor::VisitExpr_;
  using StmtExprVisitor::VisitStmt_;
  void VisitExpr_(const VarNode* op) final {
    // A pointer that escapes.
    if (op->dtype.is_handle()) unknown = true;
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    reads.insert(op->buffer->data.get());
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const CallNode* op) final {
    unknown = unknown || CallHasSideEffect(op);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    writes.insert(op->buffer->data.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const AllocateNode* op) final {
    own.insert(op->buffer->data.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const AssertStmtNode* op) final {
    unknown = true;
    StmtExprVisitor::VisitStmt_(op);
  }
  std::unordered_set<const Object*> own;  ///< allocated within
};

/// Accesses of one buffer become accesses of a half of another.
class Redirect : public StmtExprMutator {
 public:
  Redirect(const Buffer& from, const Buffer& to, PrimExpr half) : from_(from), to_(to), half_(std::move(half)) {}
  using StmtExprMutator::VisitExpr_;
  using StmtExprMutator::VisitStmt_;
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    if (!op->buffer.same_as(from_)) return StmtExprMutator::VisitExpr_(op);
    return BufferLoad(to_, At(VisitExprs(op->indices)));
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    if (!op->buffer.same_as(from_)) return StmtExprMutator::VisitStmt_(op);
    BufferStoreNode n = *op;
    n.buffer = to_, n.value = VisitExpr(op->value), n.indices = At(VisitExprs(op->indices));
    return BufferStore(std::move(n));
  }

 private:
  Array<PrimExpr> At(const Array<PrimExpr>& indices) const {
    if (indices.size() == 1) return {half_ * from_->shape[0] + indices[0]};
    Array<PrimExpr> out{half_};
    for (const PrimExpr& i : indices) out.push_back(i);
    return out;
  }
  const Buffer& from_;
  const Buffer& to_;
  PrimExpr half_;
};

/// A body for each iteration of a loop, with its own bindings.
Stmt Round(const Stmt& body, const Var& var, const PrimExpr& value) {
  return RenewBindings(Substitute(body, VarMap{{var.get(), value}}));
}
Stmt Loop(const Var& var, PrimExpr min, PrimExpr extent, Stmt body, ForKind kind = ForKind::kSerial) {
  ForNode n;
  n.loop_var = var, n.min = std::move(min), n.extent = std::move(extent), n.body = std::move(body), n.kind = kind;
  return For(std::move(n));
}

class Injector : public StmtMutator {
 public:
  explicit Injector(int64_t split) : split_(split) {}
  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const ForNode* op) final {
    Stmt s = StmtMutator::VisitStmt_(op);
    Stmt made = Doubled(s.as<ForNode>());
    return made.defined() ? made : s;
  }

 private:
  /// The loop with its first marked buffer doubled; null if there is none, or the order of effects would change.
  Stmt Doubled(const ForNode* op) {
    if (op->kind != ForKind::kSerial) return Stmt();
    std::vector<const AllocateNode*> allocations;
    Stmt body = op->body;
    while (const auto* a = body.as<AllocateNode>()) {
      allocations.push_back(a);
      body = a->body;
    }
    if (allocations.empty()) return Stmt();
    Array<Stmt> steps{body};
    if (const auto* q = body.as<SeqStmtNode>()) steps = q->seq;
    const AttrStmtNode* mark = nullptr;
    const AllocateNode* of = nullptr;
    Array<Stmt> rest;
    Effects others;
    for (const Stmt& step : steps) {
      const auto* a = mark ? nullptr : step.as<AttrStmtNode>();
      if (a && a->attr_key == kMark) {
        for (const AllocateNode* x : allocations) {
          if (a->node.same_as(x->buffer) || a->node.same_as(x->buffer->data)) of = x;
        }
      }
      if (a && of) {
        mark = a;
        if (others.reads.count(of->buffer->data.get()) || others.writes.count(of->buffer->data.get())) return Stmt();
      } else {
        rest.push_back(step);
        others.VisitStmt(step);
      }
    }
    if (!mark) return Stmt();
    for (const PrimExpr& d : of->buffer->shape) {
      if (UsesVar(d, op->loop_var.get())) return Stmt();
    }
    Effects fill;
    fill.VisitStmt(mark->body);
    // The next iteration's half is filled before this iteration continues.
    bool alone = !fill.unknown && !others.unknown;
    const Object* data = of->buffer->data.get();
    for (const Object* w : fill.writes) alone = alone && (w == data || fill.own.count(w));
    for (const Object* r : fill.reads) {
      alone = alone && (r == data || fill.own.count(r) || !others.writes.count(r));
      for (const AllocateNode* x : allocations) alone = alone && (x == of || r != x->buffer->data.get());
    }
    if (!alone) return Stmt();

    BufferNode b = *of->buffer.get();
    b.data = Var(b.data->name_hint, b.data->type_annotation);
    if (b.shape.size() == 1) {
      b.shape = {b.shape[0] * 2};
    } else {
      Array<PrimExpr> shape{PrimExpr(2)};
      for (const PrimExpr& d : b.shape) shape.push_back(d);
      b.shape = shape;
    }
    const Buffer both(std::move(b));
    auto filled = [&](const PrimExpr& round, const PrimExpr& half) {
      return Redirect(of->buffer, both, half)(Round(mark->body, op->loop_var, round));
    };
    auto iff = [](const PrimExpr& condition, const Stmt& then) -> Stmt {
      if (const int64_t* known = as_const_int(condition)) return *known ? then : Stmt();
      IfThenElseNode n;
      n.condition = condition, n.then_case = then;
      return IfThenElse(std::move(n));
    };
    const PrimExpr number = op->loop_var - op->min;
    Stmt inner = SeqStmt::Flatten(
        {iff(op->loop_var + 1 < op->min + op->extent, filled(op->loop_var + 1, floormod(number + 1, PrimExpr(2)))),
         Redirect(of->buffer, both, floormod(number, PrimExpr(2)))(SeqStmt::Flatten(rest))});
    for (size_t i = allocations.size(); i-- > 0;) {
      if (allocations[i] == of) continue;
      AllocateNode n = *allocations[i];
      n.body = inner;
      inner = Allocate(std::move(n));
    }
    AllocateNode out;
    out.buffer = both;
    out.body = SeqStmt::Flatten({iff(op->extent > 0, filled(op->min, PrimExpr(0))), Rounds(op, inner)});
    return Allocate(std::move(out));
  }

  /// The loop with enough iterations written out that the index of the half is a literal.
  Stmt Rounds(const ForNode* op, const Stmt& body) const {
    if (split_ < 2) {
      ForNode n = *op;
      n.body = body;
      return For(std::move(n));
    }
    const PrimExpr k(split_), whole = floordiv(op->extent, k), left = floormod(op->extent, k);
    const std::string name = op->loop_var->name_hint.str();
    Var outer(String(name + "_outer")), inner(String(name + "_inner")), tail(String(name + "_tail"));
    Stmt main = Loop(outer, 0, whole,
                     Loop(inner, 0, k, Round(body, op->loop_var, op->min + outer * k + inner), ForKind::kUnrolled));
    if (is_zero(left)) return main;
    return SeqStmt::Flatten({main, Loop(tail, 0, left, Round(body, op->loop_var, op->min + whole * k + tail))});
  }

  int64_t split_;
};

}  // namespace

namespace transform {
Pass InjectDoubleBuffer(const InjectDoubleBufferConfigNode& options) {
  return MakePass<InjectDoubleBuffer>(
      options,
      {
          .doc =
              "A buffer that each round of a loop allocates, and fills under the mark \"double_buffer_scope\", becomes "
              "one of two halves: a round fills one for the next while it uses the other. Loops in which the order of "
              "reads and writes would change stay as they are.",
          .run =
              [split_loop = options.split_loop](PrimFunc f, IRModule, PassContext) {
                const auto marked = [](const AttrStmtNode* a) { return a->attr_key == kMark; };
                if (!AnyStmtOf<AttrStmtNode>(f->body, marked)) return f;
                return WithBody(f, Injector(split_loop)(f->body));
              },
      });
}
namespace {
const RegisterPass<InjectDoubleBuffer> registered_inject_double_buffer("tir.transform.");
}  // namespace
}  // namespace transform
}  // namespace baton::tir
