// SPDX-License-Identifier: Apache-2.0
#include <baton/arith/analyzer.h>
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>
#include <tir/any_stmt.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace baton::tir {
namespace {

using arith::ConstIntBound;
using arith::LinearForm;

// Bounds beyond this count as none, so that sums of bounds stay far from wrapping.
constexpr int64_t kFar = int64_t{1} << 40;
// Indices of more terms than this have constant bounds only.
constexpr size_t kMaxTerms = 32;

bool Near(const ConstIntBound& b) { return b.min > -kFar && b.max < kFar; }

/// Whether its value is the same whenever it is evaluated during the life of its variables.
bool Steady(const PrimExpr& e) {
  bool steady = true;
  PostOrderVisitExpr(e, [&](const PrimExpr& x) {
    const NodeKind kind = KindOf(x.get());
    steady = steady && kind != NodeKind::kBufferLoad && kind != NodeKind::kCall && kind != NodeKind::kLet;
  });
  return steady;
}

constexpr ConstIntBound kAnything{-kFar, kFar};

ConstIntBound Sum(const ConstIntBound& a, const ConstIntBound& b) {
  return Near(a) && Near(b) ? ConstIntBound{a.min + b.min, a.max + b.max} : kAnything;
}
ConstIntBound Times(const ConstIntBound& a, int64_t k) {
  int64_t x, y;
  if (!Near(a) || __builtin_mul_overflow(a.min, k, &x) || __builtin_mul_overflow(a.max, k, &y)) return kAnything;
  const ConstIntBound product{std::min(x, y), std::max(x, y)};
  return Near(product) ? product : kAnything;
}
void Join(ConstIntBound* all, const ConstIntBound& one) {
  *all = all->min > all->max ? one : ConstIntBound{std::min(all->min, one.min), std::max(all->max, one.max)};
}

/// A sum of terms that stay the same during an allocation, each with its bounds, and a range.
struct AffineIndex {
  struct Term {
    PrimExpr atom;
    int64_t coeff;
    ConstIntBound bound;
  };
  std::vector<Term> terms;
  ConstIntBound range{0, -1};

  Term* Find(const Term& t) {
    for (Term& u : terms) {
      if (t.coeff == u.coeff && ExprDeepEqual(t.atom, u.atom)) return &u;
    }
    return nullptr;
  }
  /// Terms that `other` lacks are added to the range.
  void KeepCommon(AffineIndex* other) {
    std::erase_if(terms, [&](const Term& t) {
      if (other->Find(t)) return false;
      range = Sum(range, Times(t.bound, t.coeff));
      return true;
    });
  }
  /// Widens it to cover both.
  void Cover(AffineIndex other) {
    if (range.min > range.max) {
      *this = std::move(other);
      return;
    }
    KeepCommon(&other);
    other.KeepCommon(this);
    for (Term& t : terms) Join(&t.bound, other.Find(t)->bound);
    Join(&range, other.range);
  }
};

/// The indices of one dimension that are accessed. Two bounds that both hold: a constant range, and a range that begins
/// at a value which stays the same during the allocation.
struct Region {
  bool accessed = false;
  ConstIntBound fixed{0, -1};
  AffineIndex moving;
  bool moves = true;  ///< the second one is known
};

struct Allocation {
  Buffer buffer;
  size_t binder;  ///< variables of a larger number are bound within it
  std::vector<Region> regions;
  bool whole = false;  ///< stays as it is: its address escapes
};

/// Finds what of each allocated buffer is accessed.
class Collector : public StmtExprVisitor {
 public:
  std::unordered_map<const Object*, Allocation> allocations;  ///< by data variable
  using StmtExprVisitor::VisitExpr_;
  using StmtExprVisitor::VisitStmt_;

  void VisitStmt_(const AllocateNode* op) final {
    auto [it, fresh] = allocations.try_emplace(op->buffer->data.get());
    if (fresh)
      it->second = {op->buffer, binders_, std::vector<Region>(op->buffer->shape.size())};
    else
      it->second.whole = true;
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    Access(op->buffer, op->indices);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    Access(op->buffer, op->indices);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const VarNode* op) final { Escape(op); }
  void VisitExpr_(const ReduceNode* op) final {
    // Its axes are bound by no statement.
    ++opaque_;
    StmtExprVisitor::VisitExpr_(op);
    --opaque_;
  }
  void VisitExpr_(const CallNode* op) final {
    if (IsChoice(op)) {
      VisitExpr(op->args[0]);
      Under(op->args[0], false, [&] { VisitExpr(op->args[1]); });
      Under(op->args[0], true, [&] { VisitExpr(op->args[2]); });
      return;
    }
    // An address, not the value there.
    if (const PlaceUse use = PlaceOf(op);
        use == PlaceUse::kAddress || (use == PlaceUse::kNone && CallHasSideEffect(op))) {
      for (const PrimExpr& a : op->args) {
        if (const auto* load = a.as<BufferLoadNode>()) Escape(load->buffer->data.get());
      }
    }
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const LetNode* op) final {
    VisitExpr(op->value);
    BindValue(op->var, op->value);
    VisitExpr(op->body);
  }
  void VisitStmt_(const LetStmtNode* op) final {
    VisitExpr(op->value);
    BindValue(op->var, op->value);
    VisitStmt(op->body);
  }
  void VisitStmt_(const ForNode* op) final {
    VisitExpr(op->min);
    VisitExpr(op->extent);
    const size_t mark = Mark();
    const int64_t* extent = as_const_int(op->extent);
    Bind(op->loop_var, as_const_int(op->min) || !extent ? PrimExpr() : op->min, extent ? *extent - 1 : 0);
    analyzer_.Bind(op->loop_var, op->min, op->extent);
    VisitStmt(op->body);
    analyzer_.Forget(mark);
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    // Bounds checks use the size given here.
    if (op->attr_key == "buffer_bound" && op->node.defined()) {
      const auto* b = op->node.as<BufferNode>();
      Escape(b ? b->data.get() : op->node.get());
    }
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const IfThenElseNode* op) final {
    VisitExpr(op->condition);
    Under(op->condition, false, [&] { VisitStmt(op->then_case); });
    if (op->else_case.defined()) Under(op->condition, true, [&] { VisitStmt(op->else_case); });
  }

 private:
  struct Binding {
    size_t number = 0;
    PrimExpr base;  ///< the variable is this and at most `range` more; null: its bounds are all that is known
    int64_t range = 0;
  };

  void Bind(const Var& var, const PrimExpr& base, int64_t range) {
    bindings_[var.get()] = {++binders_, base.defined() && range >= 0 && Steady(base) ? base : PrimExpr(), range};
  }
  void BindValue(const Var& var, const PrimExpr& value) {
    const bool index = value.dtype() == DataType::Int(64);
    Bind(var, index ? value : PrimExpr(), 0);
    if (!index) return;
    const ConstIntBound b = analyzer_.Bound(value);
    if (Near(b)) analyzer_.Bind(var, b.min, b.max - b.min + 1);
  }
  size_t Mark() { return analyzer_.Assume(IntImm(DataType::Bool(), 1)); }
  template <class F>
  void Under(const PrimExpr& condition, bool negated, const F& visit) {
    const size_t mark = Mark();
    if (condition.dtype().is_scalar() && Steady(condition)) analyzer_.Assume(negated ? !condition : condition);
    visit();
    analyzer_.Forget(mark);
  }
  void Escape(const Object* data) {
    if (auto it = allocations.find(data); it != allocations.end()) it->second.whole = true;
  }
  /// Whether a variable of the expression is bound within, or its value may change there.
  bool Moves(const PrimExpr& e, size_t binder) const {
    bool moves = !Steady(e);
    PostOrderVisitExpr(e, [&](const PrimExpr& x) {
      if (!x.as<VarNode>()) return;
      auto it = bindings_.find(x.get());
      moves = moves || (it != bindings_.end() && it->second.number > binder);
    });
    return moves;
  }

  void Access(const Buffer& buffer, const Array<PrimExpr>& indices) {
    auto it = allocations.find(buffer->data.get());
    if (it == allocations.end() || it->second.whole) return;
    Allocation& a = it->second;
    if (opaque_ || !a.buffer.same_as(buffer) || indices.size() != a.regions.size()) {
      a.whole = true;
      return;
    }
    for (size_t d = 0; d < a.regions.size(); ++d) Add(&a.regions[d], indices[d], a.binder);
  }

  void Add(Region* region, PrimExpr index, size_t binder) {
    ConstIntBound lanes{0, 0};
    if (const auto* ramp = index.as<RampNode>()) {
      const int64_t* stride = as_const_int(ramp->stride);
      if (stride && *stride > -kFar && *stride < kFar) {
        const int64_t last = *stride * (ramp->lanes - 1);
        lanes = {std::min<int64_t>(0, last), std::max<int64_t>(0, last)};
        index = ramp->base;
      }
    } else if (const auto* all = index.as<BroadcastNode>()) {
      index = all->value;
    }
    region->accessed = true;
    if (!(index.dtype() == DataType::Int(64))) {
      region->fixed = kAnything;
      region->moves = false;
      return;
    }
    const ConstIntBound bound = analyzer_.Bound(index);
    if (bound.min > bound.max) return;  // a loop without rounds, or a condition that never holds
    Join(&region->fixed, Sum(bound, lanes));
    AffineIndex place;
    region->moves = region->moves && Split(index, binder, &place);
    if (!region->moves || place.range.min > place.range.max) return;
    place.range = Sum(place.range, lanes);
    region->moving.Cover(std::move(place));
  }

  /// `index` as a sum of terms that stay the same during the allocation, and the range of the rest. False: it has too
  /// many terms.
  bool Split(const PrimExpr& index, size_t binder, AffineIndex* place) {
    LinearForm todo = analyzer_.Linear(index), rest, from;
    ConstIntBound range{0, 0};
    rest.constant = todo.constant;
    size_t steps = 0;
    auto add = [](LinearForm* f, const LinearForm::Term& t) {
      for (size_t i = 0; i < f->terms.size(); ++i) {
        if (!ExprDeepEqual(f->terms[i].atom, t.atom)) continue;
        f->terms[i].coeff += t.coeff;
        if (!f->terms[i].coeff) f->terms.erase(f->terms.begin() + static_cast<std::ptrdiff_t>(i));
        return;
      }
      f->terms.push_back(t);
    };
    while (!todo.terms.empty()) {
      if (++steps > kMaxTerms || todo.terms.size() > kMaxTerms) return false;
      const LinearForm::Term t = todo.terms.back();
      todo.terms.pop_back();
      if (t.coeff <= -kFar || t.coeff >= kFar) return false;
      auto it = bindings_.find(t.atom.get());
      if (it == bindings_.end() || it->second.number <= binder || !it->second.base.defined()) {
        add(Moves(t.atom, binder) ? &rest : &from, t);
        continue;
      }
      // The bounds of its terms, and the range that is added to them.
      const LinearForm base = analyzer_.Linear(it->second.base);
      for (const auto& u : base.terms) {
        int64_t coeff;
        if (__builtin_mul_overflow(t.coeff, u.coeff, &coeff)) return false;
        add(&todo, {u.atom, coeff});
      }
      int64_t constant;
      if (__builtin_mul_overflow(t.coeff, base.constant, &constant) ||
          __builtin_add_overflow(rest.constant, constant, &rest.constant))
        return false;
      range = Sum(range, Times({0, it->second.range}, t.coeff));
    }
    const ConstIntBound b = analyzer_.Bound(analyzer_.FromLinear(rest, DataType::Int(64)));
    place->range = b.min > b.max ? b : Sum(range, b);
    for (const auto& t : from.terms) place->terms.push_back({t.atom, t.coeff, analyzer_.Bound(t.atom)});
    return true;
  }

  arith::Analyzer analyzer_;
  std::unordered_map<const Object*, Binding> bindings_;
  size_t binders_ = 0;
  int opaque_ = 0;
};

/// The range of a dimension that is kept.
struct KeptRange {
  PrimExpr begin;  ///< null: all of it
  PrimExpr extent;
};

KeptRange Kept(const Region& region, const PrimExpr& size, arith::Analyzer* analyzer) {
  if (!region.accessed) return {};
  // A range without a bound reaches to the end of the dimension.
  ConstIntBound fixed = region.fixed;
  if (fixed.min < 0) fixed.min = 0;
  const int64_t* known = as_const_int(size);
  if (known && fixed.max >= *known) fixed.max = *known - 1;
  auto smaller = [&](const ConstIntBound& b) {
    return Near(b) && b.min <= b.max && analyzer->CanProveGreaterEqual(size, b.max - b.min + 2);
  };
  const ConstIntBound& moving = region.moving.range;
  const bool move =
      region.moves && smaller(moving) && (!smaller(fixed) || moving.max - moving.min < fixed.max - fixed.min);
  if (!move && !smaller(fixed)) return {};
  const ConstIntBound& range = move ? moving : fixed;
  LinearForm begin;
  begin.constant = range.min;
  if (move) {
    for (const AffineIndex::Term& t : region.moving.terms) begin.terms.push_back({t.atom, t.coeff});
  }
  return {analyzer->FromLinear(begin, DataType::Int(64)), make_int(DataType::Int(64), range.max - range.min + 1)};
}

/// Replaces allocated buffers by smaller ones.
class Compactor : public StmtExprMutator {
 public:
  explicit Compactor(const Collector& found) {
    for (const auto& [data, a] : found.allocations) {
      if (a.whole) continue;
      New made;
      BufferNode b = *a.buffer.get();
      Array<PrimExpr> shape;
      bool changed = false;
      for (size_t d = 0; d < a.regions.size(); ++d) {
        made.kept.push_back(Kept(a.regions[d], b.shape[d], &analyzer_));
        const bool shrinks = made.kept.back().begin.defined();
        shape.push_back(shrinks ? made.kept.back().extent : b.shape[d]);
        changed = changed || shrinks;
      }
      if (!changed) continue;
      b.shape = shape;
      made.buffer = Buffer(std::move(b));
      news_.emplace(a.buffer.get(), std::move(made));
    }
  }
  bool empty() const { return news_.empty(); }
  using StmtExprMutator::VisitExpr_;
  using StmtExprMutator::VisitStmt_;

  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    auto it = news_.find(op->buffer.get());
    if (it == news_.end()) return StmtExprMutator::VisitExpr_(op);
    return BufferLoad(it->second.buffer, Moved(it->second, VisitExprs(op->indices)));
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    auto it = news_.find(op->buffer.get());
    if (it == news_.end()) return StmtExprMutator::VisitStmt_(op);
    BufferStoreNode n = *op;
    n.value = VisitExpr(op->value);
    n.buffer = it->second.buffer, n.indices = Moved(it->second, VisitExprs(op->indices));
    return BufferStore(std::move(n));
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    auto it = news_.find(op->buffer.get());
    if (it == news_.end()) return StmtExprMutator::VisitStmt_(op);
    AllocateNode n = *op;
    n.buffer = it->second.buffer;
    n.body = VisitStmt(op->body);
    return Allocate(std::move(n));
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    Stmt s = StmtExprMutator::VisitStmt_(op);
    auto it = news_.find(op->node.get());
    if (it == news_.end()) return s;
    AttrStmtNode n = *s.as<AttrStmtNode>();
    n.node = it->second.buffer;
    return AttrStmt(std::move(n));
  }

 private:
  struct New {
    Buffer buffer;
    std::vector<KeptRange> kept;
  };
  Array<PrimExpr> Moved(const New& to, const Array<PrimExpr>& indices) {
    Array<PrimExpr> out;
    for (size_t d = 0; d < indices.size(); ++d) {
      const PrimExpr& begin = to.kept[d].begin;
      out.push_back(!begin.defined() || is_zero(begin) ? indices[d] : From(indices[d], begin));
    }
    return out;
  }
  PrimExpr From(const PrimExpr& index, const PrimExpr& begin) {
    if (const auto* ramp = index.as<RampNode>()) return Ramp(From(ramp->base, begin), ramp->stride, ramp->lanes);
    if (const auto* all = index.as<BroadcastNode>()) return Broadcast(From(all->value, begin), all->lanes);
    return index.dtype().is_vector() ? index - Broadcast(begin, index.dtype().lanes())
                                     : analyzer_.Simplify(index - begin);
  }
  std::unordered_map<const Object*, New> news_;
  arith::Analyzer analyzer_;
};

PrimFunc CompactBuffers(const PrimFunc& f) {
  if (!AnyStmtOf<AllocateNode>(f->body)) return f;
  Collector found;
  found(f->body);
  if (found.allocations.empty()) return f;
  Compactor compact(found);
  return compact.empty() ? f : WithBody(f, compact(f->body));
}

}  // namespace

namespace transform {
Pass CompactBufferAllocation() {
  return MakePass<CompactBufferAllocation>({
      .doc = "An allocated buffer becomes as large as the region of it that is accessed while it is allocated, and its "
             "indices count from that region's begin: of `B[i, j]`, allocated for each i, a row is left. Regions are "
             "boxes, whose extents must be known; conditions around an access narrow it. Buffers whose address goes "
             "elsewhere stay as they are.",
      .run = [](PrimFunc f, IRModule, PassContext) { return CompactBuffers(f); },
  });
}
const RegisterPass<CompactBufferAllocation> registered_compact("tir.transform.");
}  // namespace transform

}  // namespace baton::tir
