// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/op.h>

#include <string>
#include <vector>

namespace baton::tir {

NodeKind KindOf(const Object* node) {
  if (node == nullptr) return NodeKind::kNone;
  static const std::vector<NodeKind> table = [] {
    std::vector<NodeKind> t;
    auto put = [&](uint32_t index, NodeKind k) {
      if (index >= t.size()) t.resize(index + 1, NodeKind::kNone);
      t[index] = k;
    };
#define BATON_TIR_PUT(Name) put(Name##Node::RuntimeTypeIndex(), NodeKind::k##Name);
    BATON_TIR_EXPR_LIST(BATON_TIR_PUT)
    BATON_TIR_STMT_LIST(BATON_TIR_PUT)
#undef BATON_TIR_PUT
    put(SizeVarNode::RuntimeTypeIndex(), NodeKind::kVar);
    return t;
  }();
  uint32_t i = node->type_index();
  return i < table.size() ? table[i] : NodeKind::kNone;
}

void ThrowNoVisit(const Object* node) {
  throw InternalError(node ? "no visit of " + node->GetTypeKey() + " here"
                           : std::string("null where a TIR node is wanted"));
}

// ---------------------------------------------------------------- spans
void MarkSpan(const PrimExpr& e, const Span& span) {
  if (e->span.defined()) return;
  NodeKind k = KindOf(e.get());
  if (k == NodeKind::kVar || k == NodeKind::kIntImm || k == NodeKind::kFloatImm || k == NodeKind::kStringImm) return;
  e->span = span;
}
void KeepSpan(const Stmt& from, const Stmt& to) {
  if (from->span.defined() && to.defined() && !to->span.defined()) to->span = from->span;
}

// ---------------------------------------------------------------- ExprVisitor
#define BATON_TIR_VISIT_BINARY(Name)                   \
  void ExprVisitor::VisitExpr_(const Name##Node* op) { \
    VisitExpr(op->a);                                  \
    VisitExpr(op->b);                                  \
  }
BATON_TIR_BINARY_LIST(BATON_TIR_VISIT_BINARY)
void ExprVisitor::VisitExpr_(const VarNode*) {}
void ExprVisitor::VisitExpr_(const IntImmNode*) {}
void ExprVisitor::VisitExpr_(const FloatImmNode*) {}
void ExprVisitor::VisitExpr_(const StringImmNode*) {}
void ExprVisitor::VisitExpr_(const AnyNode*) {}
void ExprVisitor::VisitExpr_(const CastNode* op) { VisitExpr(op->value); }
void ExprVisitor::VisitExpr_(const NotNode* op) { VisitExpr(op->a); }
void ExprVisitor::VisitExpr_(const SelectNode* op) {
  VisitExpr(op->condition);
  VisitExpr(op->true_value);
  VisitExpr(op->false_value);
}
void ExprVisitor::VisitExpr_(const BufferLoadNode* op) {
  for (const PrimExpr& i : op->indices) VisitExpr(i);
}
void ExprVisitor::VisitExpr_(const RampNode* op) {
  VisitExpr(op->base);
  VisitExpr(op->stride);
}
void ExprVisitor::VisitExpr_(const BroadcastNode* op) { VisitExpr(op->value); }
void ExprVisitor::VisitExpr_(const ShuffleNode* op) {
  for (const PrimExpr& v : op->vectors) VisitExpr(v);
}
void ExprVisitor::VisitExpr_(const LetNode* op) {
  VisitExpr(op->value);
  VisitExpr(op->body);
}
void ExprVisitor::VisitExpr_(const CallNode* op) {
  for (const PrimExpr& a : op->args) VisitExpr(a);
}
void ExprVisitor::VisitExpr_(const ReduceNode* op) {
  for (const IterVar& v : op->axis) {
    VisitExpr(v->dom->min);
    VisitExpr(v->dom->extent);
  }
  for (const PrimExpr& s : op->source) VisitExpr(s);
  if (op->condition.defined()) VisitExpr(op->condition);
}
void ExprVisitor::VisitExpr_(const ProducerLoadNode* op) {
  for (const PrimExpr& i : op->indices) VisitExpr(i);
}

// ---------------------------------------------------------------- ExprMutator
namespace {
template <class T, class F>
Array<T> MapArray(const Array<T>& a, F f) {
  Array<T> out = a;
  for (size_t i = 0; i < a.size(); ++i) {
    T x = f(a[i]);
    if (!x.same_as(a[i])) out.Set(i, x);
  }
  return out;
}
}  // namespace

PrimExpr ExprMutator::VisitExpr(const PrimExpr& e) {
  PrimExpr r = ExprFunctor::VisitExpr(e);
  KeepSpan(e, r);
  return r;
}
Array<PrimExpr> ExprMutator::VisitExprs(const Array<PrimExpr>& a) {
  return MapArray(a, [&](const PrimExpr& e) { return VisitExpr(e); });
}
#define BATON_TIR_MUTATE_BINARY(Name)                                      \
  PrimExpr ExprMutator::VisitExpr_(const Name##Node* op) {                 \
    PrimExpr a = VisitExpr(op->a), b = VisitExpr(op->b);                   \
    if (a.same_as(op->a) && b.same_as(op->b)) return GetRef<PrimExpr>(op); \
    return FoldBinary(NodeKind::k##Name, a, b);                            \
  }
BATON_TIR_BINARY_LIST(BATON_TIR_MUTATE_BINARY)
PrimExpr ExprMutator::VisitExpr_(const VarNode* op) { return GetRef<PrimExpr>(op); }
PrimExpr ExprMutator::VisitExpr_(const IntImmNode* op) { return GetRef<PrimExpr>(op); }
PrimExpr ExprMutator::VisitExpr_(const FloatImmNode* op) { return GetRef<PrimExpr>(op); }
PrimExpr ExprMutator::VisitExpr_(const StringImmNode* op) { return GetRef<PrimExpr>(op); }
PrimExpr ExprMutator::VisitExpr_(const AnyNode* op) { return GetRef<PrimExpr>(op); }
PrimExpr ExprMutator::VisitExpr_(const CastNode* op) {
  PrimExpr v = VisitExpr(op->value);
  return v.same_as(op->value) ? GetRef<PrimExpr>(op) : Cast(op->dtype.with_lanes(v.dtype().lanes()), v);
}
PrimExpr ExprMutator::VisitExpr_(const NotNode* op) {
  PrimExpr a = VisitExpr(op->a);
  return a.same_as(op->a) ? GetRef<PrimExpr>(op) : Not(a);
}
PrimExpr ExprMutator::VisitExpr_(const SelectNode* op) {
  PrimExpr c = VisitExpr(op->condition), t = VisitExpr(op->true_value), f = VisitExpr(op->false_value);
  if (c.same_as(op->condition) && t.same_as(op->true_value) && f.same_as(op->false_value)) return GetRef<PrimExpr>(op);
  return Select(c, t, f);
}
PrimExpr ExprMutator::VisitExpr_(const BufferLoadNode* op) {
  Array<PrimExpr> i = VisitExprs(op->indices);
  return i.same_as(op->indices) ? GetRef<PrimExpr>(op) : BufferLoad(op->buffer, i);
}
PrimExpr ExprMutator::VisitExpr_(const RampNode* op) {
  PrimExpr b = VisitExpr(op->base), s = VisitExpr(op->stride);
  return b.same_as(op->base) && s.same_as(op->stride) ? GetRef<PrimExpr>(op) : Ramp(b, s, op->lanes);
}
PrimExpr ExprMutator::VisitExpr_(const BroadcastNode* op) {
  PrimExpr v = VisitExpr(op->value);
  return v.same_as(op->value) ? GetRef<PrimExpr>(op) : Broadcast(v, op->lanes);
}
PrimExpr ExprMutator::VisitExpr_(const ShuffleNode* op) {
  Array<PrimExpr> v = VisitExprs(op->vectors);
  return v.same_as(op->vectors) ? GetRef<PrimExpr>(op) : Shuffle(v, op->indices);
}
PrimExpr ExprMutator::VisitExpr_(const LetNode* op) {
  PrimExpr v = VisitExpr(op->value), b = VisitExpr(op->body);
  return v.same_as(op->value) && b.same_as(op->body) ? GetRef<PrimExpr>(op) : Let(op->var, v, b);
}
PrimExpr ExprMutator::VisitExpr_(const CallNode* op) {
  Array<PrimExpr> a = VisitExprs(op->args);
  return a.same_as(op->args) ? GetRef<PrimExpr>(op) : Call(op->dtype, op->op, a);
}
PrimExpr ExprMutator::VisitExpr_(const ReduceNode* op) {
  Array<IterVar> axis = MapArray(op->axis, [&](const IterVar& v) {
    PrimExpr m = VisitExpr(v->dom->min), e = VisitExpr(v->dom->extent);
    if (m.same_as(v->dom->min) && e.same_as(v->dom->extent)) return v;
    return IterVar(Range(m, e, Span(nullptr)), v->var, v->iter_type);
  });
  Array<PrimExpr> source = VisitExprs(op->source);
  PrimExpr cond = op->condition.defined() ? VisitExpr(op->condition) : op->condition;
  if (axis.same_as(op->axis) && source.same_as(op->source) && cond.same_as(op->condition)) return GetRef<PrimExpr>(op);
  ReduceNode n = *op;
  n.axis = axis, n.source = source, n.condition = cond;
  return Reduce(std::move(n));
}
PrimExpr ExprMutator::VisitExpr_(const ProducerLoadNode* op) {
  Array<PrimExpr> i = VisitExprs(op->indices);
  if (i.same_as(op->indices)) return GetRef<PrimExpr>(op);
  ProducerLoadNode n = *op;
  n.indices = i;
  return ProducerLoad(std::move(n));
}

// ---------------------------------------------------------------- StmtVisitor
void StmtVisitor::VisitStmt_(const BufferStoreNode* op) {
  for (const PrimExpr& i : op->indices) OnExpr(i);
  OnExpr(op->value);
}
void StmtVisitor::VisitStmt_(const AllocateNode* op) {
  for (const PrimExpr& i : op->buffer->shape) OnExpr(i);
  VisitStmt(op->body);
}
void StmtVisitor::VisitStmt_(const ForNode* op) {
  OnExpr(op->min);
  OnExpr(op->extent);
  VisitStmt(op->body);
}
void StmtVisitor::VisitStmt_(const IfThenElseNode* op) {
  OnExpr(op->condition);
  VisitStmt(op->then_case);
  if (op->else_case.defined()) VisitStmt(op->else_case);
}
void StmtVisitor::VisitStmt_(const SeqStmtNode* op) {
  for (const Stmt& s : op->seq) VisitStmt(s);
}
void StmtVisitor::VisitStmt_(const EvaluateNode* op) { OnExpr(op->value); }
void StmtVisitor::VisitStmt_(const LetStmtNode* op) {
  OnExpr(op->value);
  VisitStmt(op->body);
}
void StmtVisitor::VisitStmt_(const AttrStmtNode* op) {
  if (op->value.defined()) OnExpr(op->value);
  VisitStmt(op->body);
}
void StmtVisitor::VisitStmt_(const AssertStmtNode* op) {
  OnExpr(op->condition);
  OnExpr(op->message);
  if (op->body.defined()) VisitStmt(op->body);
}

// ---------------------------------------------------------------- StmtMutator
Stmt StmtMutator::VisitStmt(const Stmt& s) {
  Stmt r = StmtFunctor::VisitStmt(s);
  KeepSpan(s, r);
  return r;
}
Array<PrimExpr> StmtMutator::OnExprs(const Array<PrimExpr>& a) {
  return MapArray(a, [&](const PrimExpr& e) { return OnExpr(e); });
}
Stmt StmtMutator::VisitStmt_(const BufferStoreNode* op) {
  Array<PrimExpr> i = OnExprs(op->indices);
  PrimExpr v = OnExpr(op->value);
  if (i.same_as(op->indices) && v.same_as(op->value)) return GetRef<Stmt>(op);
  BufferStoreNode n = *op;
  n.indices = i, n.value = v;
  return BufferStore(std::move(n));
}
Stmt StmtMutator::VisitStmt_(const AllocateNode* op) {
  // A shape that changes would change the buffer's identity; those who want that override this.
  Stmt b = VisitStmt(op->body);
  if (b.same_as(op->body)) return GetRef<Stmt>(op);
  AllocateNode n = *op;
  n.body = b;
  return Allocate(std::move(n));
}
Stmt StmtMutator::VisitStmt_(const ForNode* op) {
  PrimExpr m = OnExpr(op->min), e = OnExpr(op->extent);
  Stmt b = VisitStmt(op->body);
  if (m.same_as(op->min) && e.same_as(op->extent) && b.same_as(op->body)) return GetRef<Stmt>(op);
  ForNode n = *op;
  n.min = m, n.extent = e, n.body = b;
  return For(std::move(n));
}
Stmt StmtMutator::VisitStmt_(const IfThenElseNode* op) {
  PrimExpr c = OnExpr(op->condition);
  Stmt t = VisitStmt(op->then_case);
  Stmt e = op->else_case.defined() ? VisitStmt(op->else_case) : op->else_case;
  if (c.same_as(op->condition) && t.same_as(op->then_case) && e.same_as(op->else_case)) return GetRef<Stmt>(op);
  IfThenElseNode n = *op;
  n.condition = c, n.then_case = t, n.else_case = e;
  return IfThenElse(std::move(n));
}
Stmt StmtMutator::VisitStmt_(const SeqStmtNode* op) {
  Array<Stmt> s = MapArray(op->seq, [&](const Stmt& x) { return VisitStmt(x); });
  return s.same_as(op->seq) ? GetRef<Stmt>(op) : SeqStmt::Flatten(s);
}
Stmt StmtMutator::VisitStmt_(const EvaluateNode* op) {
  PrimExpr v = OnExpr(op->value);
  if (v.same_as(op->value)) return GetRef<Stmt>(op);
  EvaluateNode n = *op;
  n.value = v;
  return Evaluate(std::move(n));
}
Stmt StmtMutator::VisitStmt_(const LetStmtNode* op) {
  PrimExpr v = OnExpr(op->value);
  Stmt b = VisitStmt(op->body);
  if (v.same_as(op->value) && b.same_as(op->body)) return GetRef<Stmt>(op);
  LetStmtNode n = *op;
  n.value = v, n.body = b;
  return LetStmt(std::move(n));
}
Stmt StmtMutator::VisitStmt_(const AttrStmtNode* op) {
  PrimExpr v = op->value.defined() ? OnExpr(op->value) : op->value;
  Stmt b = VisitStmt(op->body);
  if (v.same_as(op->value) && b.same_as(op->body)) return GetRef<Stmt>(op);
  AttrStmtNode n = *op;
  n.value = v, n.body = b;
  return AttrStmt(std::move(n));
}
Stmt StmtMutator::VisitStmt_(const AssertStmtNode* op) {
  PrimExpr c = OnExpr(op->condition), m = OnExpr(op->message);
  Stmt b = op->body.defined() ? VisitStmt(op->body) : op->body;
  if (c.same_as(op->condition) && m.same_as(op->message) && b.same_as(op->body)) return GetRef<Stmt>(op);
  AssertStmtNode n = *op;
  n.condition = c, n.message = m, n.body = b;
  return AssertStmt(std::move(n));
}

// ---------------------------------------------------------------- substitution
namespace {
class Substituter : public StmtExprMutator {
 public:
  Substituter(const VarMap& vars, const BufferMap& buffers) : vars_(vars), buffers_(buffers) {}
  using StmtExprMutator::VisitExpr_;
  using StmtExprMutator::VisitStmt_;
  PrimExpr VisitExpr_(const VarNode* op) final {
    auto it = vars_.find(op);
    return it == vars_.end() ? GetRef<PrimExpr>(op) : it->second;
  }
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    Array<PrimExpr> i = VisitExprs(op->indices);
    auto it = buffers_.find(op->buffer.get());
    if (it != buffers_.end()) return BufferLoad(it->second, i);
    return i.same_as(op->indices) ? GetRef<PrimExpr>(op) : BufferLoad(op->buffer, i);
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    Stmt s = StmtExprMutator::VisitStmt_(op);
    auto it = buffers_.find(op->buffer.get());
    if (it == buffers_.end()) return s;
    BufferStoreNode n = *s.as<BufferStoreNode>();
    n.buffer = it->second;
    return BufferStore(std::move(n));
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    auto it = buffers_.find(op->buffer.get());
    Array<PrimExpr> shape = VisitExprs(op->buffer->shape);
    if (it == buffers_.end() && !shape.same_as(op->buffer->shape)) {
      BufferNode b = *op->buffer.get();
      b.shape = shape;
      BufferMap more = buffers_;
      more[op->buffer.get()] = Buffer(std::move(b));
      Substituter inner(vars_, more);
      return inner.VisitStmt_(op);
    }
    Stmt s = StmtExprMutator::VisitStmt_(op);
    if (it == buffers_.end()) return s;
    AllocateNode n = *s.as<AllocateNode>();
    n.buffer = it->second;
    return Allocate(std::move(n));
  }

 private:
  const VarMap& vars_;
  const BufferMap& buffers_;
};
VarMap ToVarMap(const Map<Var, PrimExpr>& map) {
  VarMap m;
  for (auto [k, v] : map) m.emplace(k.get(), v);
  return m;
}
const BufferMap kNoBuffers;

/// Gives new objects to everything that is bound.
class Renewer : public StmtExprMutator {
 public:
  using StmtExprMutator::VisitExpr_;
  using StmtExprMutator::VisitStmt_;
  PrimExpr VisitExpr_(const VarNode* op) final {
    auto it = vars_.find(op);
    return it == vars_.end() ? GetRef<PrimExpr>(op) : it->second;
  }
  PrimExpr VisitExpr_(const LetNode* op) final {
    PrimExpr v = VisitExpr(op->value);
    Var fresh = Renew(op->var);
    return Let(fresh, v, VisitExpr(op->body));
  }
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    Array<PrimExpr> i = VisitExprs(op->indices);
    auto it = buffers_.find(op->buffer.get());
    if (it != buffers_.end()) return BufferLoad(it->second, i);
    return i.same_as(op->indices) ? GetRef<PrimExpr>(op) : BufferLoad(op->buffer, i);
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    BufferStoreNode n = *op;
    n.indices = VisitExprs(op->indices);
    n.value = VisitExpr(op->value);
    auto it = buffers_.find(op->buffer.get());
    if (it != buffers_.end()) n.buffer = it->second;
    return BufferStore(std::move(n));
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    BufferNode b = *op->buffer.get();
    b.shape = VisitExprs(b.shape);
    b.data = Var(b.data->name_hint, b.data->type_annotation);
    Buffer fresh(std::move(b));
    buffers_[op->buffer.get()] = fresh;
    AllocateNode n = *op;
    n.buffer = fresh;
    n.body = VisitStmt(op->body);
    return Allocate(std::move(n));
  }
  Stmt VisitStmt_(const ForNode* op) final {
    ForNode n = *op;
    n.min = VisitExpr(op->min), n.extent = VisitExpr(op->extent);
    n.loop_var = Renew(op->loop_var);
    n.body = VisitStmt(op->body);
    return For(std::move(n));
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    LetStmtNode n = *op;
    n.value = VisitExpr(op->value);
    n.var = Renew(op->var);
    n.body = VisitStmt(op->body);
    return LetStmt(std::move(n));
  }

 private:
  Var Renew(const Var& v) {
    VarNode n = *v.get();
    Var fresh(std::move(n));
    vars_[v.get()] = fresh;
    return fresh;
  }
  VarMap vars_;
  BufferMap buffers_;
};
}  // namespace

PrimExpr Substitute(const PrimExpr& e, const VarMap& map) { return Substituter(map, kNoBuffers)(e); }
Stmt Substitute(const Stmt& s, const VarMap& map) { return Substituter(map, kNoBuffers)(s); }
PrimExpr Substitute(const PrimExpr& e, const Map<Var, PrimExpr>& map) { return Substitute(e, ToVarMap(map)); }
Stmt Substitute(const Stmt& s, const Map<Var, PrimExpr>& map) { return Substitute(s, ToVarMap(map)); }
Stmt SubstituteBuffers(const Stmt& s, const BufferMap& buffers, const VarMap& vars) {
  return Substituter(vars, buffers)(s);
}
Stmt RenewBindings(const Stmt& s) { return Renewer()(s); }

// ---------------------------------------------------------------- equality
namespace {
bool EqualArrays(const Array<PrimExpr>& a, const Array<PrimExpr>& b) {
  if (a.same_as(b)) return true;
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!ExprDeepEqual(a[i], b[i])) return false;
  }
  return true;
}
size_t Mix(size_t h, size_t x) { return (h ^ x) * 0x9E3779B97F4A7C15ull + (h >> 29); }
}  // namespace

bool ExprDeepEqual(const PrimExpr& a, const PrimExpr& b) {
  if (a.same_as(b)) return true;
  if (!a.defined() || !b.defined() || a.type_index() != b.type_index() || !(a.dtype() == b.dtype())) return false;
  return support::WithStack([&]() -> bool {
    switch (KindOf(a.get())) {
#define BATON_TIR_EQ_BINARY(Name)                                  \
  case NodeKind::k##Name: {                                        \
    auto* x = static_cast<const Name##Node*>(a.get());             \
    auto* y = static_cast<const Name##Node*>(b.get());             \
    return ExprDeepEqual(x->a, y->a) && ExprDeepEqual(x->b, y->b); \
  }
      BATON_TIR_BINARY_LIST(BATON_TIR_EQ_BINARY)
#define BATON_TIR_EQ(Name, cond)                       \
  case NodeKind::k##Name: {                            \
    auto* x = static_cast<const Name##Node*>(a.get()); \
    auto* y = static_cast<const Name##Node*>(b.get()); \
    return cond;                                       \
  }
      BATON_TIR_EQ(IntImm, x->value == y->value)
      // By bits: -0 and 0 differ, a NaN equals itself.
      BATON_TIR_EQ(FloatImm, std::memcmp(&x->value, &y->value, sizeof(double)) == 0)
      BATON_TIR_EQ(StringImm, x->value == y->value)
      BATON_TIR_EQ(Cast, ExprDeepEqual(x->value, y->value))
      BATON_TIR_EQ(Not, ExprDeepEqual(x->a, y->a))
      BATON_TIR_EQ(Select, ExprDeepEqual(x->condition, y->condition) && ExprDeepEqual(x->true_value, y->true_value) &&
                               ExprDeepEqual(x->false_value, y->false_value))
      BATON_TIR_EQ(BufferLoad, x->buffer.same_as(y->buffer) && EqualArrays(x->indices, y->indices))
      BATON_TIR_EQ(Ramp, x->lanes == y->lanes && ExprDeepEqual(x->base, y->base) && ExprDeepEqual(x->stride, y->stride))
      BATON_TIR_EQ(Broadcast, x->lanes == y->lanes && ExprDeepEqual(x->value, y->value))
      BATON_TIR_EQ(Call, x->op.same_as(y->op) && EqualArrays(x->args, y->args))
      BATON_TIR_EQ(ProducerLoad, x->producer.same_as(y->producer) && EqualArrays(x->indices, y->indices))
      BATON_TIR_EQ(Let, x->var.same_as(y->var) && ExprDeepEqual(x->value, y->value) && ExprDeepEqual(x->body, y->body))
      case NodeKind::kShuffle: {
        auto* x = static_cast<const ShuffleNode*>(a.get());
        auto* y = static_cast<const ShuffleNode*>(b.get());
        if (!EqualArrays(x->vectors, y->vectors) || x->indices.size() != y->indices.size()) return false;
        for (size_t i = 0; i < x->indices.size(); ++i) {
          if (x->indices[i] != y->indices[i]) return false;
        }
        return true;
      }
      default:  // variables and reductions: by identity, which was asked above
        return false;
    }
  });
}

size_t ExprHash(const PrimExpr& e) {
  struct Hasher : ExprVisitor {
    size_t h = 0;
    using ExprVisitor::VisitExpr_;
    void VisitExpr(const PrimExpr& x) final {
      h = Mix(h, static_cast<size_t>(KindOf(x.get())));
      ExprVisitor::VisitExpr(x);
    }
    void VisitExpr_(const VarNode* op) final { h = Mix(h, reinterpret_cast<size_t>(op)); }
    void VisitExpr_(const IntImmNode* op) final { h = Mix(h, static_cast<size_t>(op->value)); }
    void VisitExpr_(const FloatImmNode* op) final {
      uint64_t bits;
      std::memcpy(&bits, &op->value, 8);
      h = Mix(h, bits);
    }
    void VisitExpr_(const BufferLoadNode* op) final {
      h = Mix(h, reinterpret_cast<size_t>(op->buffer.get()));
      ExprVisitor::VisitExpr_(op);
    }
    void VisitExpr_(const CallNode* op) final {
      h = Mix(h, reinterpret_cast<size_t>(op->op.get()));
      ExprVisitor::VisitExpr_(op);
    }
    void VisitExpr_(const ProducerLoadNode* op) final {
      h = Mix(h, reinterpret_cast<size_t>(op->producer.get()));
      ExprVisitor::VisitExpr_(op);
    }
    void VisitExpr_(const ReduceNode* op) final { h = Mix(h, reinterpret_cast<size_t>(op)); }
  } hasher;
  hasher.VisitExpr(e);
  return hasher.h;
}

namespace {
struct UseFinder : StmtExprVisitor {
  const VarNode* var;
  bool found = false;
  explicit UseFinder(const VarNode* v) : var(v) {}
  using StmtExprVisitor::VisitExpr_;
  void VisitExpr(const PrimExpr& e) final {
    if (!found) StmtExprVisitor::VisitExpr(e);
  }
  void VisitExpr_(const VarNode* op) final { found = found || op == var; }
};
}  // namespace
bool UsesVar(const PrimExpr& e, const VarNode* var) {
  UseFinder f(var);
  f.VisitExpr(e);
  return f.found;
}
bool UsesVar(const Stmt& s, const VarNode* var) {
  UseFinder f(var);
  f.VisitStmt(s);
  return f.found;
}
bool CallHasSideEffect(const CallNode* call) {
  const auto* op = call->op.as<OpNode>();
  if (!op) return true;
  std::string_view n = op->name.view();
  return n == "tir.masked_store" || n.substr(0, 9) == "tir.call_" || n.substr(0, 8) == "tir.amx_" ||
         n == "tir.prefetch" || n == "tir.tvm_storage_sync" || n == "tir.tvm_thread_allreduce";
}
bool HasSideEffect(const PrimExpr& e) {
  struct Finder : ExprVisitor {
    bool found = false;
    using ExprVisitor::VisitExpr_;
    void VisitExpr_(const CallNode* op) final {
      found = found || CallHasSideEffect(op);
      ExprVisitor::VisitExpr_(op);
    }
  } f;
  f.VisitExpr(e);
  return f.found;
}

}  // namespace baton::tir
