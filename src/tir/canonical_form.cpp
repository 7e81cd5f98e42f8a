// SPDX-License-Identifier: Apache-2.0
// Forms that programs write and the steps of LowerPipeline do not take: loops and indices of narrow integers, which
// become int64, and tvm_access_ptr.
#include "tir/canonical_form.h"

#include <baton/runtime/registry.h>
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/lower.h>

#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "tir/thread_axes.h"

namespace baton::tir {
namespace {

bool IsWholeType(DataType t) { return (t.is_int() || t.is_uint()) && !t.is_bool(); }
bool IsNarrow(const PrimExpr& e) { return IsWholeType(e.dtype()) && e.dtype().bits() < 64; }
DataType Int64Like(const PrimExpr& e) { return DataType::Int(64, e.dtype().lanes()); }

/// Whether an expression is computed of variables and literals alone: index arithmetic, which does not overflow.
bool IsIndexArithmetic(const PrimExpr& e) {
  bool found = true;
  PostOrderVisitExpr(e, [&](const PrimExpr& x) { found = found && !x.as<BufferLoadNode>() && !x.as<CallNode>(); });
  return found;
}

/// Replaces buffers and indices everywhere.
class BufferMutator : public StmtExprMutator {
 public:
  using StmtExprMutator::VisitExpr_;
  using StmtExprMutator::VisitStmt_;

  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    const Buffer buffer = BufferOf(op->buffer);
    const Array<PrimExpr> indices = Indices(op->indices);
    if (buffer.same_as(op->buffer) && indices.same_as(op->indices)) return GetRef<PrimExpr>(op);
    return BufferLoad(buffer, indices);
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    const Buffer buffer = BufferOf(op->buffer);
    const Array<PrimExpr> indices = Indices(op->indices);
    const PrimExpr value = VisitExpr(op->value);
    if (buffer.same_as(op->buffer) && indices.same_as(op->indices) && value.same_as(op->value)) return GetRef<Stmt>(op);
    BufferStoreNode n = *op;
    n.buffer = buffer, n.indices = indices, n.value = value;
    return BufferStore(std::move(n));
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    const Buffer buffer = Declared(op->buffer);
    const Stmt body = VisitStmt(op->body);
    if (buffer.same_as(op->buffer) && body.same_as(op->body)) return GetRef<Stmt>(op);
    AllocateNode n = *op;
    n.buffer = buffer, n.body = body;
    return Allocate(std::move(n));
  }

 protected:
  /// A buffer where it is allocated.
  virtual Buffer Declared(const Buffer& b) { return BufferOf(b); }
  virtual Buffer BufferOf(const Buffer& b) = 0;
  virtual Array<PrimExpr> Indices(const Array<PrimExpr>& given) = 0;
};

class Canonical final : public BufferMutator {
 public:
  Canonical() = default;
  /// `wide`: the variables of int64 that stand for narrow ones.
  explicit Canonical(const Map<Var, Var>& wide) {
    for (const auto& [narrow, var] : wide) wide_[narrow.get()] = var, narrow_.emplace(var.get(), narrow);
  }
  using BufferMutator::VisitExpr_;
  using BufferMutator::VisitStmt_;

  PrimExpr VisitExpr_(const VarNode* op) final {
    auto it = wide_.find(op);
    return it == wide_.end() ? GetRef<PrimExpr>(op) : PrimExpr(Cast(op->dtype, it->second));
  }
  PrimExpr VisitExpr_(const CastNode* op) final {
    if (op->dtype.element_of() == DataType::Int(64) && IsNarrow(op->value) && IsIndexArithmetic(op->value))
      return Wide(op->value);
    return StmtExprMutator::VisitExpr_(op);
  }
#define BATON_WIDEN_COMPARE(Name) \
  PrimExpr VisitExpr_(const Name##Node* op) final { return Compare<Name>(op); }
  BATON_WIDEN_COMPARE(EQ)
  BATON_WIDEN_COMPARE(NE)
  BATON_WIDEN_COMPARE(LT)
  BATON_WIDEN_COMPARE(LE)
  BATON_WIDEN_COMPARE(GT)
  BATON_WIDEN_COMPARE(GE)
#undef BATON_WIDEN_COMPARE
  /// (dtype, data, offset, extent, access): the address of the element at `offset`.
  PrimExpr VisitExpr_(const CallNode* op) final {
    if (op->op != intrin::tvm_access_ptr || op->args.size() != 5 || !op->args[1].as<VarNode>())
      return StmtExprMutator::VisitExpr_(op);
    const Var data = Downcast<Var>(op->args[1]);
    const PrimExpr at = Wide(op->args[2]);
    if (is_const_int(at, 0)) return data;
    BufferNode view;
    view.data = data, view.dtype = op->args[0].dtype(), view.name = data->name_hint;
    view.shape = {at + Wide(op->args[3])};
    return address_of(BufferLoad(Buffer(std::move(view)), {at}));
  }
  PrimExpr VisitExpr_(const ProducerLoadNode* op) final {
    const Array<PrimExpr> indices = Indices(op->indices);
    if (indices.same_as(op->indices)) return GetRef<PrimExpr>(op);
    ProducerLoadNode n = *op;
    n.indices = indices;
    return ProducerLoad(std::move(n));
  }
  Stmt VisitStmt_(const ForNode* op) final {
    const PrimExpr min = Wide(op->min), extent = Wide(op->extent);
    Var var = op->loop_var;
    if (IsNarrow(var)) {
      var = Var(op->loop_var->name_hint);
      wide_[op->loop_var.get()] = var;
      narrow_.emplace(var.get(), op->loop_var);
    }
    const Stmt body = VisitStmt(op->body);
    if (var.same_as(op->loop_var) && min.same_as(op->min) && extent.same_as(op->extent) && body.same_as(op->body))
      return GetRef<Stmt>(op);
    ForNode n = *op;
    n.loop_var = var, n.min = min, n.extent = extent, n.body = body;
    return For(std::move(n));
  }

  /// The buffer with dimensions of int64, which stands for it from here on.
  Buffer Declared(const Buffer& b) final {
    const Array<PrimExpr> shape = Indices(b->shape);
    if (shape.same_as(b->shape)) return b;
    BufferNode n = *b.get();
    n.shape = shape;
    const Buffer made(std::move(n));
    as_written_.emplace(made.get(), b);
    return buffers_[b.get()] = made;
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    const VarNode* bound = BoundThreadVar(op);
    if (!bound || !IsNarrow(GetRef<PrimExpr>(bound))) return StmtExprMutator::VisitStmt_(op);
    if (!wide_.count(bound)) {
      wide_[bound] = Var(bound->name_hint);
      narrow_.emplace(wide_.at(bound).get(), GetRef<Var>(bound));
    }
    const Var var = wide_.at(bound);
    AttrStmtNode n = *op;
    if (const auto* axis = op->node.as<IterVarNode>()) {
      IterVarNode of_wide = *axis;
      of_wide.var = var;
      n.node = IterVar(std::move(of_wide));
      axes_.emplace(n.node.get(), op->node);
    } else {
      n.node = var;
    }
    n.value = Wide(op->value);
    n.body = VisitStmt(op->body);
    return AttrStmt(std::move(n));
  }
  PrimExpr VisitExpr_(const ReduceNode* op) final {
    const PrimExpr out = StmtExprMutator::VisitExpr_(op);
    const Array<PrimExpr> result = VisitExprs(op->combiner->result),
                          identity = VisitExprs(op->combiner->identity_element);
    if (result.same_as(op->combiner->result) && identity.same_as(op->combiner->identity_element)) return out;
    CommReducerNode combiner = *op->combiner.get();
    combiner.result = result, combiner.identity_element = identity;
    ReduceNode n = *out.as<ReduceNode>();
    n.combiner = CommReducer(std::move(combiner));
    return Reduce(std::move(n));
  }
  /// The narrow variable of a loop, by the one of int64 that stands for it.
  const std::unordered_map<const Object*, Var>& narrow() const { return narrow_; }
  /// The buffer that a program wrote, by the one that stands for it.
  const BufferMap& as_written() const { return as_written_; }
  /// The axis of threads that a program wrote, by the one of int64.
  const std::unordered_map<const Object*, ObjectRef>& axes() const { return axes_; }

 private:
  Buffer BufferOf(const Buffer& b) final {
    auto it = buffers_.find(b.get());
    return it == buffers_.end() ? Declared(b) : it->second;
  }
  Array<PrimExpr> Indices(const Array<PrimExpr>& given) final {
    Array<PrimExpr> out = given;
    for (size_t i = 0; i < given.size(); ++i) {
      const auto k = static_cast<int64_t>(i);
      if (PrimExpr e = Wide(given[k]); !e.same_as(given[k])) out.Set(k, e);
    }
    return out;
  }
  /// The expression in int64: its operators are those of int64, so that a sum of narrow numbers does not wrap around.
  PrimExpr Wide(const PrimExpr& e) {
    if (!IsNarrow(e)) return VisitExpr(e);
    return support::WithStack([&]() -> PrimExpr {
      if (const auto* v = e.as<IntImmNode>()) return make_int(DataType::Int(64), v->value);
      if (const auto* v = e.as<VarNode>()) {
        auto it = wide_.find(v);
        return it == wide_.end() ? cast(DataType::Int(64), e) : PrimExpr(it->second);
      }
      if (const auto* r = e.as<RampNode>()) return Ramp(Wide(r->base), Wide(r->stride), r->lanes);
      if (const auto* b = e.as<BroadcastNode>()) return Broadcast(Wide(b->value), b->lanes);
      if (const auto* s = e.as<SelectNode>())
        return Select(VisitExpr(s->condition), Wide(s->true_value), Wide(s->false_value));
      switch (const NodeKind kind = KindOf(e.get())) {
#define BATON_WIDEN(Name)                                     \
  case NodeKind::k##Name: {                                   \
    const auto* op = static_cast<const Name##Node*>(e.get()); \
    return FoldBinary(kind, Wide(op->a), Wide(op->b));        \
  }
        BATON_WIDEN(Add)
        BATON_WIDEN(Sub)
        BATON_WIDEN(Mul)
        BATON_WIDEN(Div)
        BATON_WIDEN(Mod)
        BATON_WIDEN(FloorDiv)
        BATON_WIDEN(FloorMod)
        BATON_WIDEN(Min)
        BATON_WIDEN(Max)
#undef BATON_WIDEN
        default:
          return cast(Int64Like(e), VisitExpr(e));
      }
    });
  }
  template <class T, class N>
  PrimExpr Compare(const N* op) {
    if (IsNarrow(op->a) && IsIndexArithmetic(op->a) && IsIndexArithmetic(op->b) && Runs(op->a, op->b))
      return T(Wide(op->a), Wide(op->b));
    return StmtExprMutator::VisitExpr_(op);
  }
  /// Whether a loop's variable occurs in them, which is a variable of int64 now.
  bool Runs(const PrimExpr& a, const PrimExpr& b) const {
    bool found = false;
    auto look = [&](const PrimExpr& x) { found = found || wide_.count(x.get()); };
    PostOrderVisitExpr(a, look);
    PostOrderVisitExpr(b, look);
    return found;
  }

  std::unordered_map<const Object*, Var> wide_;  ///< variables of loops, in int64
  std::unordered_map<const Object*, Var> narrow_;
  std::unordered_map<const Object*, ObjectRef> axes_;
  BufferMap buffers_, as_written_;  ///< those whose sizes were narrow
};

/// Takes back what Canonical did: loops run over narrow variables, and what is computed of them is narrow. Loops that a
/// pass made are narrow where their bounds are.
class Narrow final : public BufferMutator {
 public:
  explicit Narrow(const Canonical& done) : narrow_(done.narrow()), axes_(done.axes()), buffers_(done.as_written()) {}
  using BufferMutator::VisitExpr_;
  using BufferMutator::VisitStmt_;

  PrimExpr VisitExpr_(const VarNode* op) final {
    auto it = narrow_.find(op);
    return it == narrow_.end() ? GetRef<PrimExpr>(op) : cast(DataType::Int(64), it->second);
  }
  PrimExpr VisitExpr_(const CastNode* op) final {
    if (op->value.dtype().element_of() == DataType::Int(64)) {
      if (PrimExpr e = Of(op->value); e.defined() && e.dtype() == op->dtype) return e;
    }
    return StmtExprMutator::VisitExpr_(op);
  }
#define BATON_NARROW_COMPARE(Name) \
  PrimExpr VisitExpr_(const Name##Node* op) final { return Compare<Name>(op); }
  BATON_NARROW_COMPARE(EQ)
  BATON_NARROW_COMPARE(NE)
  BATON_NARROW_COMPARE(LT)
  BATON_NARROW_COMPARE(LE)
  BATON_NARROW_COMPARE(GT)
  BATON_NARROW_COMPARE(GE)
#undef BATON_NARROW_COMPARE
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    const VarNode* bound = BoundThreadVar(op);
    auto it = bound ? narrow_.find(bound) : narrow_.end();
    if (it == narrow_.end()) return StmtExprMutator::VisitStmt_(op);
    AttrStmtNode n = *op;
    auto axis = axes_.find(op->node.get());
    if (axis != axes_.end()) {
      n.node = axis->second;
    } else if (const auto* of_wide = op->node.as<IterVarNode>()) {
      IterVarNode made = *of_wide;
      made.var = it->second;
      n.node = IterVar(std::move(made));
    } else {
      n.node = it->second;
    }
    const PrimExpr value = Of(op->value);
    n.value = value.defined() ? value : VisitExpr(op->value);
    n.body = VisitStmt(op->body);
    return AttrStmt(std::move(n));
  }
  Stmt VisitStmt_(const ForNode* op) final {
    PrimExpr min = Of(op->min), extent = Of(op->extent);
    auto it = narrow_.find(op->loop_var.get());
    if (it == narrow_.end() && min.defined() && extent.defined())
      it = narrow_.emplace(op->loop_var.get(), Var(op->loop_var->name_hint, DataType::Int(32))).first;
    if (it == narrow_.end()) return StmtExprMutator::VisitStmt_(op);
    ForNode n = *op;
    n.loop_var = it->second;
    const auto as_loop = [&](const PrimExpr& found, const PrimExpr& e) {
      return cast(n.loop_var.dtype(), found.defined() ? found : VisitExpr(e));
    };
    n.min = as_loop(min, op->min), n.extent = as_loop(extent, op->extent);
    n.body = VisitStmt(op->body);
    return For(std::move(n));
  }

 private:
  Buffer BufferOf(const Buffer& b) final {
    auto it = buffers_.find(b.get());
    if (it != buffers_.end()) return it->second;
    const Array<PrimExpr> shape = Narrowed(b->shape, /*literals=*/false);
    Buffer made = b;
    if (!shape.same_as(b->shape)) {
      BufferNode n = *b.get();
      n.shape = shape;
      made = Buffer(std::move(n));
    }
    return buffers_[b.get()] = made;
  }
  Array<PrimExpr> Indices(const Array<PrimExpr>& given) final { return Narrowed(given, /*literals=*/true); }
  Array<PrimExpr> Narrowed(const Array<PrimExpr>& given, bool literals) {
    Array<PrimExpr> out = given;
    for (size_t i = 0; i < given.size(); ++i) {
      const auto k = static_cast<int64_t>(i);
      PrimExpr e = literals || !given[k].as<IntImmNode>() ? Of(given[k]) : PrimExpr();
      if (!e.defined()) e = VisitExpr(given[k]);
      if (!e.same_as(given[k])) out.Set(k, e);
    }
    return out;
  }
  template <class T, class N>
  PrimExpr Compare(const N* op) {
    if (op->a.dtype() == DataType::Int(64)) {
      const PrimExpr a = Of(op->a), b = Of(op->b);
      if (a.defined() && b.defined()) return T(a, b);
    }
    return StmtExprMutator::VisitExpr_(op);
  }
  /// The expression of int64 as one of int32; null where a part is none.
  PrimExpr Of(const PrimExpr& e) {
    if (!(e.dtype().element_of() == DataType::Int(64))) return PrimExpr();
    return support::WithStack([&]() -> PrimExpr {
      if (const auto* v = e.as<IntImmNode>())
        return v->value == static_cast<int32_t>(v->value) ? PrimExpr(IntImm(DataType::Int(32), v->value)) : PrimExpr();
      if (e.as<VarNode>()) {
        auto it = narrow_.find(e.get());
        return it == narrow_.end() || !(it->second.dtype() == DataType::Int(32)) ? PrimExpr() : PrimExpr(it->second);
      }
      if (const auto* c = e.as<CastNode>())
        return c->value.dtype() == DataType::Int(32) ? VisitExpr(c->value) : PrimExpr();
      const auto both = [&](const PrimExpr& x, const PrimExpr& y, auto make) {
        const PrimExpr a = Of(x), b = Of(y);
        return a.defined() && b.defined() ? PrimExpr(make(a, b)) : PrimExpr();
      };
      if (const auto* r = e.as<RampNode>())
        return both(r->base, r->stride, [&](PrimExpr a, PrimExpr b) { return Ramp(a, b, r->lanes); });
      if (const auto* b = e.as<BroadcastNode>()) {
        const PrimExpr value = Of(b->value);
        return value.defined() ? PrimExpr(Broadcast(value, b->lanes)) : PrimExpr();
      }
      if (const auto* s = e.as<SelectNode>())
        return both(s->true_value, s->false_value,
                    [&](PrimExpr a, PrimExpr b) { return Select(VisitExpr(s->condition), a, b); });
      switch (KindOf(e.get())) {
#define BATON_NARROW(Name)                                                        \
  case NodeKind::k##Name: {                                                       \
    const auto* op = static_cast<const Name##Node*>(e.get());                     \
    return both(op->a, op->b, [](PrimExpr a, PrimExpr b) { return Name(a, b); }); \
  }
        BATON_NARROW(Add)
        BATON_NARROW(Sub)
        BATON_NARROW(Mul)
        BATON_NARROW(Div)
        BATON_NARROW(Mod)
        BATON_NARROW(FloorDiv)
        BATON_NARROW(FloorMod)
        BATON_NARROW(Min)
        BATON_NARROW(Max)
#undef BATON_NARROW
        default:
          return PrimExpr();
      }
    });
  }
  std::unordered_map<const Object*, Var> narrow_;
  std::unordered_map<const Object*, ObjectRef> axes_;
  BufferMap buffers_;
};

/// An expression with variables of int64 in place of narrow ones: in indices as they are, elsewhere converted back.
BATON_REGISTER_GLOBAL("tir.OfWideVars").set_body_typed([](PrimExpr e, Map<Var, Var> wide) {
  return Canonical(wide)(e);
});

/// Dimensions of types are int64: variables of int64 that stand for narrow ones that programs make, each for one.
struct Doubles {
  std::mutex mutex;
  std::unordered_map<const Object*, std::pair<Var, Var>> of;  ///< keeps the narrow one alive, so that addresses stay
};
Doubles& TheDoubles() {
  static auto* doubles = new Doubles;
  return *doubles;
}
Var DoubleOf(const Var& v) {
  Doubles& d = TheDoubles();
  const std::lock_guard<std::mutex> lock(d.mutex);
  auto it = d.of.find(v.get());
  if (it == d.of.end()) {
    const Var wide = v.as<SizeVarNode>() ? Var(SizeVar(v->name_hint)) : Var(v->name_hint);
    it = d.of.emplace(v.get(), std::pair(v, wide)).first;
  }
  return it->second.second;
}
/// A dimension in int64; the same for the same variables each time.
BATON_REGISTER_GLOBAL("ir.WideExtent").set_body_typed([](PrimExpr e) {
  if (!IsNarrow(e)) return e;
  Map<Var, Var> wide;
  PostOrderVisitExpr(e, [&](const PrimExpr& x) {
    if (x.as<VarNode>() && IsNarrow(x)) wide.Set(Downcast<Var>(x), DoubleOf(Downcast<Var>(x)));
  });
  return Canonical(wide)(cast(DataType::Int(64), e));
});

}  // namespace

PrimFunc CanonicalForm(const PrimFunc& f) {
  // Sizes are of int64, as shapes are.
  Map<Var, Var> sizes;
  for (const auto& [p, b] : f->buffer_map) {
    for (const PrimExpr& d : b->shape) {
      if (d.as<VarNode>() && IsNarrow(d) && !sizes.count(Downcast<Var>(d)))
        sizes.Set(Downcast<Var>(d), SizeVar(Downcast<Var>(d)->name_hint));
    }
  }
  Canonical canonical(sizes);
  PrimFunc out = f;
  if (!sizes.empty()) {
    Array<Var> params;
    for (const Var& p : f->params) params.push_back(sizes.count(p) ? sizes.at(p) : p);
    Map<Var, Buffer> buffers;
    for (const auto& [p, b] : f->buffer_map) buffers.Set(p, canonical.Declared(b));
    out.CopyOnWrite()->params = params;
    out.CopyOnWrite()->buffer_map = buffers;
  }
  return WithBody(out, canonical(f->body));
}

Stmt CanonicalForm(const Stmt& s) { return Canonical()(s); }

/// Whether a statement of a body binds a parameter of its function anew.
class BindsAgain : public StmtVisitor {
 public:
  explicit BindsAgain(const PrimFunc& f) : params_(f->params) { VisitStmt(f->body); }
  explicit operator bool() const { return found_; }

 private:
  using StmtVisitor::VisitStmt_;
  void VisitStmt_(const LetStmtNode* op) final { Look(op->var), StmtVisitor::VisitStmt_(op); }
  void VisitStmt_(const ForNode* op) final { Look(op->loop_var), StmtVisitor::VisitStmt_(op); }
  void Look(const Var& bound) {
    for (const Var& p : params_) found_ |= p.same_as(bound);
  }
  const Array<Var>& params_;
  bool found_ = false;
};

PrimFunc OnCanonicalForm(const PrimFunc& given, const std::function<PrimFunc(PrimFunc)>& step) {
  const PrimFunc f = BindsAgain(given) ? WithBody(given, RenewBindings(given->body)) : given;
  // Parameters and sizes are variables of int64 in the body; a step that changes the parameters gets them as they
  // are.
  for (const bool with_params : {true, false}) {
    Map<Var, Var> params;
    const auto add = [&](const PrimExpr& e) {
      if (e.as<VarNode>() && IsNarrow(e)) params.Set(Downcast<Var>(e), Var(Downcast<Var>(e)->name_hint));
    };
    for (const Var& p : f->params) add(p);
    for (const auto& [p, b] : f->buffer_map) {
      for (const PrimExpr& d : b->shape) add(d);
    }
    Canonical canonical(with_params ? params : Map<Var, Var>());
    if (canonical.narrow().empty()) return step(f);
    PrimFunc wide = WithBody(f, canonical(f->body));
    if (with_params) {
      Array<Var> own;
      for (const Var& p : f->params) own.push_back(params.count(p) ? params.at(p) : p);
      wide.CopyOnWrite()->params = own;
    }
    PrimFunc out = step(wide);
    if (out.same_as(wide)) return given;
    if (with_params && !out->params.same_as(wide->params)) continue;
    out.CopyOnWrite()->params = with_params ? f->params : out->params;
    return WithBody(out, Narrow(canonical)(out->body));
  }
  return f;
}

}  // namespace baton::tir
