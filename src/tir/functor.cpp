// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/op.h>
#include <ir/node/children.h>

#include <algorithm>
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
namespace {
/// Bound variables are not children: a traversal sees them where they are used. The axes of a reduction stand for their
/// domains.
using Operands = FamilyOfUses<PrimExpr, IterVar>;
using StmtChildren = FamilyOfUses<PrimExpr, Stmt>;
}  // namespace

#define BATON_TIR_VISIT(Name)                                      \
  void ExprVisitor::VisitExpr_(const Name##Node* op) {             \
    ForEachChildOf<Operands>(op, [this]<class T>(const T& child) { \
      if constexpr (std::is_same_v<T, IterVar>) {                  \
        VisitExpr(child->dom->min);                                \
        VisitExpr(child->dom->extent);                             \
      } else {                                                     \
        VisitExpr(child);                                          \
      }                                                            \
    });                                                            \
  }
BATON_TIR_EXPR_LIST(BATON_TIR_VISIT)
#undef BATON_TIR_VISIT

// ---------------------------------------------------------------- ExprMutator
PrimExpr ExprMutator::VisitExpr(const PrimExpr& e) {
  PrimExpr r = ExprFunctor::VisitExpr(e);
  KeepSpan(e, r);
  return r;
}
Array<PrimExpr> ExprMutator::VisitExprs(const Array<PrimExpr>& a) {
  const auto visit = [this](const PrimExpr& e) { return VisitExpr(e); };
  return detail::MapArray(a, visit);
}

namespace {
// The expression that a copy with new children stands for: constructors find its dtype anew and fold.
#define BATON_TIR_REMAKE(Name) \
  PrimExpr Remake(ObjectPtr<Name##Node> n) { return FoldBinary(NodeKind::k##Name, n->a, n->b); }
BATON_TIR_BINARY_LIST(BATON_TIR_REMAKE)
#undef BATON_TIR_REMAKE
PrimExpr Remake(ObjectPtr<CastNode> n) { return Cast(n->dtype.with_lanes(n->value.dtype().lanes()), n->value); }
PrimExpr Remake(ObjectPtr<NotNode> n) { return Not(n->a); }
PrimExpr Remake(ObjectPtr<SelectNode> n) { return Select(n->condition, n->true_value, n->false_value); }
PrimExpr Remake(ObjectPtr<BufferLoadNode> n) { return BufferLoad(n->buffer, n->indices); }
PrimExpr Remake(ObjectPtr<RampNode> n) { return Ramp(n->base, n->stride, n->lanes); }
PrimExpr Remake(ObjectPtr<BroadcastNode> n) { return Broadcast(n->value, n->lanes); }
PrimExpr Remake(ObjectPtr<ShuffleNode> n) { return Shuffle(n->vectors, n->indices); }
PrimExpr Remake(ObjectPtr<LetNode> n) { return Let(n->var, n->value, n->body); }
PrimExpr Remake(ObjectPtr<CallNode> n) { return Call(n->dtype, n->op, n->args); }
template <class N>
PrimExpr Remake(ObjectPtr<N> n) {
  return PrimExpr(n);
}
}  // namespace

#define BATON_TIR_MUTATE(Name)                                                                \
  PrimExpr ExprMutator::VisitExpr_(const Name##Node* op) {                                    \
    auto copy = MapChildren<Operands>(op, [this]<class T>(const T& child) {                   \
      if constexpr (std::is_same_v<T, IterVar>) {                                             \
        PrimExpr min = VisitExpr(child->dom->min), extent = VisitExpr(child->dom->extent);    \
        if (min.same_as(child->dom->min) && extent.same_as(child->dom->extent)) return child; \
        return IterVar(Range(min, extent, Span(nullptr)), child->var, child->iter_type);      \
      } else {                                                                                \
        return VisitExpr(child);                                                              \
      }                                                                                       \
    });                                                                                       \
    return copy.get() ? Remake(std::move(copy)) : GetRef<PrimExpr>(op);                       \
  }
BATON_TIR_EXPR_LIST(BATON_TIR_MUTATE)
#undef BATON_TIR_MUTATE

// ---------------------------------------------------------------- StmtVisitor
namespace {
/// Expressions of a statement that no child of it holds.
const Array<PrimExpr>* OwnShape(const AllocateNode* op) { return &op->buffer->shape; }
const Array<PrimExpr>* OwnShape(const StmtNode*) { return nullptr; }
}  // namespace

#define BATON_TIR_VISIT(Name)                                          \
  void StmtVisitor::VisitStmt_(const Name##Node* op) {                 \
    if (const Array<PrimExpr>* shape = OwnShape(op)) {                 \
      for (const PrimExpr& extent : *shape) OnExpr(extent);            \
    }                                                                  \
    ForEachChildOf<StmtChildren>(op, [this]<class T>(const T& child) { \
      if constexpr (std::is_base_of_v<Stmt, T>) {                      \
        VisitStmt(child);                                              \
      } else {                                                         \
        OnExpr(child);                                                 \
      }                                                                \
    });                                                                \
  }
BATON_TIR_STMT_LIST(BATON_TIR_VISIT)
#undef BATON_TIR_VISIT

// ---------------------------------------------------------------- StmtMutator
Stmt StmtMutator::VisitStmt(const Stmt& s) {
  Stmt r = StmtFunctor::VisitStmt(s);
  KeepSpan(s, r);
  return r;
}
Array<PrimExpr> StmtMutator::OnExprs(const Array<PrimExpr>& a) {
  const auto visit = [this](const PrimExpr& e) { return OnExpr(e); };
  return detail::MapArray(a, visit);
}
namespace {
Stmt RemakeStmt(const ObjectPtr<SeqStmtNode>& n) { return SeqStmt::Flatten(n->seq); }
template <class N>
Stmt RemakeStmt(const ObjectPtr<N>& n) {
  return Stmt(n);
}
}  // namespace

// The shape of an allocation is not visited: a change would give the buffer another identity. A mutator that wants
// that overrides this.
#define BATON_TIR_MUTATE(Name)                                                  \
  Stmt StmtMutator::VisitStmt_(const Name##Node* op) {                          \
    auto copy = MapChildren<StmtChildren>(op, [this]<class T>(const T& child) { \
      if constexpr (std::is_base_of_v<Stmt, T>) {                               \
        return VisitStmt(child);                                                \
      } else {                                                                  \
        return OnExpr(child);                                                   \
      }                                                                         \
    });                                                                         \
    return copy.get() ? RemakeStmt(copy) : GetRef<Stmt>(op);                    \
  }
BATON_TIR_STMT_LIST(BATON_TIR_MUTATE)
#undef BATON_TIR_MUTATE

// ---------------------------------------------------------------- substitution
namespace {
/// `made`, the rebuilt form of a store or an allocation `op`, with the buffer that takes the place of op's.
template <class N>
Stmt WithBuffer(const N* op, Stmt made, const BufferMap& buffers) {
  auto it = buffers.find(op->buffer.get());
  if (it == buffers.end()) return made;
  auto copy = make_object<N>(*made.template as<N>());
  copy->buffer = it->second;
  return Stmt(copy);
}

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
    PrimExpr e = StmtExprMutator::VisitExpr_(op);
    auto it = buffers_.find(op->buffer.get());
    return it == buffers_.end() ? e : BufferLoad(it->second, e.as<BufferLoadNode>()->indices);
  }
  /// The variables of a combiner are its own; the rest may name loops around the reduction.
  PrimExpr VisitExpr_(const ReduceNode* op) final {
    PrimExpr e = StmtExprMutator::VisitExpr_(op);
    const CommReducer& c = op->combiner;
    Array<PrimExpr> result = VisitExprs(c->result), identity = VisitExprs(c->identity_element);
    if (result.same_as(c->result) && identity.same_as(c->identity_element)) return e;
    CommReducerNode combiner = *c.get();
    combiner.result = result, combiner.identity_element = identity;
    ReduceNode n = *e.as<ReduceNode>();
    n.combiner = CommReducer(std::move(combiner));
    return Reduce(std::move(n));
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final { return WithBuffer(op, StmtExprMutator::VisitStmt_(op), buffers_); }
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
    return WithBuffer(op, StmtExprMutator::VisitStmt_(op), buffers_);
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
    PrimExpr e = StmtExprMutator::VisitExpr_(op);
    auto it = buffers_.find(op->buffer.get());
    return it == buffers_.end() ? e : BufferLoad(it->second, e.as<BufferLoadNode>()->indices);
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final { return WithBuffer(op, StmtExprMutator::VisitStmt_(op), buffers_); }
  Stmt VisitStmt_(const AllocateNode* op) final {
    BufferNode b = *op->buffer.get();
    b.shape = VisitExprs(b.shape);
    b.data = Var(b.data->name_hint, b.data->type_annotation);
    Buffer fresh(std::move(b));
    buffers_[op->buffer.get()] = fresh;
    return WithBuffer(op, StmtExprMutator::VisitStmt_(op), buffers_);
  }
  Stmt VisitStmt_(const ForNode* op) final {
    Var fresh = Renew(op->loop_var);
    ForNode n = *StmtExprMutator::VisitStmt_(op).as<ForNode>();
    n.loop_var = fresh;
    return For(std::move(n));
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    Var fresh = Renew(op->var);
    LetStmtNode n = *StmtExprMutator::VisitStmt_(op).as<LetStmtNode>();
    n.var = fresh;
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

namespace {
/// Whether all fields are equal, operands as expressions and other objects by identity.
template <class N>
bool EqualFields(const N* x, const N* y) {
  bool equal = true;
  ForEachField<N>([&]<auto M>(runtime::FieldTag<M>, unsigned flags) {
    using T = typename runtime::MemberOf<decltype(M)>::Type;
    if (!equal || (flags & runtime::kIgnored)) return;
    const auto &a = x->*M, &b = y->*M;
    if constexpr (std::is_base_of_v<PrimExpr, T>) {
      equal = ExprDeepEqual(a, b);
    } else if constexpr (std::is_same_v<T, Array<PrimExpr>>) {
      equal = EqualArrays(a, b);
    } else if constexpr (std::is_same_v<T, Array<int64_t>>) {
      equal = std::equal(a.begin(), a.end(), b.begin(), b.end());
    } else if constexpr (std::is_same_v<T, double>) {
      equal = std::memcmp(&a, &b, sizeof(double)) == 0;  // by bits: -0 and 0 differ, a NaN equals itself
    } else if constexpr (std::is_base_of_v<ObjectRef, T> && !std::is_same_v<T, String>) {
      equal = a.same_as(b);
    } else {
      equal = a == b;
    }
  });
  return equal;
}
}  // namespace

bool ExprDeepEqual(const PrimExpr& a, const PrimExpr& b) {
  if (a.same_as(b)) return true;
  if (!a.defined() || !b.defined() || a.type_index() != b.type_index() || !(a.dtype() == b.dtype())) return false;
  return support::WithStack([&]() -> bool {
    const NodeKind kind = KindOf(a.get());
    // By identity, which was compared above.
    if (kind == NodeKind::kVar || kind == NodeKind::kAny || kind == NodeKind::kReduce) return false;
    switch (kind) {
#define BATON_TIR_EQUAL(Name) \
  case NodeKind::k##Name:     \
    return EqualFields(static_cast<const Name##Node*>(a.get()), static_cast<const Name##Node*>(b.get()));
      BATON_TIR_EXPR_LIST(BATON_TIR_EQUAL)
#undef BATON_TIR_EQUAL
      default:
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
