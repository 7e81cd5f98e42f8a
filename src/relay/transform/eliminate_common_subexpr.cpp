// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/support/scoped_table.h>
#include <baton/support/stack.h>
#include <relay/expr/equal_constants.h>
#include <relay/expr/expr_index.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace baton::relay::transform {
namespace {

/// Smaller tensors are not worth comparing.
constexpr size_t kFewestBytes = 1024;
bool IsLarge(const ConstantNode* c) { return c->data.nbytes() >= kFewestBytes; }

/// Value numbering, operands first: finds for each call of an operator, tuple and tuple access the first one of equal
/// value. Operands are compared by their first equals; scalars and large constants, by value. A branch's values are
/// forgotten at its end. Each function has its own table, for its values are computed when it is called.
class ValueNumbers {
 public:
  ValueNumbers(const Expr& root, PackedFunc fskip)
      : index_(root), fskip_(std::move(fskip)), first_(index_.size(), ExprIndex::kNone) {
    FindRegions();
    for (uint32_t id : index_.ids()) {
      if (index_.atom(id)) Number(id);
    }
    NumberRegion(0);
  }
  bool any_equal() const { return any_equal_; }
  /// `n` itself if there is none before it.
  const ExprNode* FirstEqual(const ExprNode* n) const {
    const uint32_t id = index_.IdOf(n);
    return id == ExprIndex::kNone ? n : index_[first_[id]];
  }

 private:
  using Table = support::ScopedTable<uint32_t>;
  /// Parts evaluated together: the whole but branches and functions, a branch, or a function's body.
  struct Region {
    bool function = false;
    std::vector<uint32_t> nodes;  // without atoms
  };
  struct InnerRegions {
    uint32_t first = 0, count = 0;
  };

  void FindRegions() {
    regions_.emplace_back();
    bool one = true;
    for (uint32_t id : index_.ids()) one = one && !OpensRegions(index_.kind(id));
    inner_.resize(one ? 0 : index_.size());
    std::vector<uint32_t> region_of(one ? 0 : index_.num_scopes(), 0);
    for (uint32_t id : index_.ids_from_root()) {
      if (one || index_.atom(id)) continue;
      const ExprIndex::Placement& at = index_.placement(id);
      index_.ForEachEdge(id, [&](uint32_t, int own, bool) {
        if (own < 0) return;
        uint32_t& region = region_of[at.own_scope + own];
        region = region_of[at.scope];
        if (!OpensRegions(index_.kind(id))) return;
        region = static_cast<uint32_t>(regions_.size());
        if (!inner_[id].count++) inner_[id].first = region;
        regions_.emplace_back().function = index_.kind(id) == ExprIndex::kFunction;
      });
    }
    for (uint32_t id : index_.ids()) {
      if (!index_.atom(id)) regions_[one ? 0 : region_of[index_.placement(id).scope]].nodes.push_back(id);
    }
  }
  static bool OpensRegions(ExprIndex::Kind kind) {
    return kind == ExprIndex::kFunction || kind == ExprIndex::kIf || kind == ExprIndex::kMatch;
  }

  void NumberRegion(uint32_t r) {
    support::WithStack([&] {
      Table outer;
      if (regions_[r].function) std::swap(outer, values_);
      {
        Table::Scope scope(&values_);
        for (uint32_t id : regions_[r].nodes) {
          for (uint32_t i = 0; !inner_.empty() && i < inner_[id].count; ++i) NumberRegion(inner_[id].first + i);
          Number(id);
        }
      }
      if (regions_[r].function) std::swap(outer, values_);
    });
  }

  void Number(uint32_t id) {
    first_[id] = id;
    const ExprNode* n = index_.Visit(id);
    if (!Comparable(n)) return;
    const uint64_t hash = HashOf(id);
    Table& table = index_.atom(id) ? atoms_ : values_;
    if (const uint32_t* known = table.Find(hash, [&](uint32_t other) { return Equal(id, other); })) {
      first_[id] = *known;
      const auto* constant = As<ConstantNode>(n);
      any_equal_ = any_equal_ || !constant || IsLarge(constant);
    } else {
      table.Add(hash, id);
    }
  }
  bool Comparable(const ExprNode* n) const {
    if (const auto* call = As<CallNode>(n)) {
      const OpDef* def = DefOf(call->op);
      return def && !def->stateful && !(fskip_.defined() && fskip_(GetRef<Expr>(n)).As<bool>());
    }
    if (const auto* constant = As<ConstantNode>(n)) return constant->is_scalar() || IsLarge(constant);
    return n->IsInstance<TupleNode>() || n->IsInstance<TupleGetItemNode>();
  }
  uint64_t HashOf(uint32_t id) const {
    const ExprNode* n = index_[id];
    if (const auto* constant = As<ConstantNode>(n))
      return IsLarge(constant) ? SampleHash(constant->data) : StructuralHash(GetRef<Expr>(n));
    uint64_t h = n->type_index();
    for (uint32_t operand : index_.Operands(id)) h = h * 0x9e3779b97f4a7c15ull + FirstOf(operand);
    if (const auto* call = As<CallNode>(n)) return call->attrs.defined() ? h * 31 + StructuralHash(call->attrs) : h;
    if (const auto* item = As<TupleGetItemNode>(n)) return h * 31 + static_cast<uint64_t>(item->index);
    return h;
  }
  bool Equal(uint32_t a, uint32_t b) const {
    const ExprNode *x = index_[a], *y = index_[b];
    if (x->type_index() != y->type_index()) return false;
    if (const auto* constant = As<ConstantNode>(x)) {
      const auto* other = static_cast<const ConstantNode*>(y);
      return IsLarge(constant) ? SameElements(constant->data, other->data)
                               : StructuralEqual(GetRef<Expr>(x), GetRef<Expr>(y));
    }
    const auto same = [this](uint32_t p, uint32_t q) { return FirstOf(p) == FirstOf(q); };
    if (!std::ranges::equal(index_.Operands(a), index_.Operands(b), same)) return false;
    if (const auto* call = As<CallNode>(x)) {
      const Attrs& attrs = static_cast<const CallNode*>(y)->attrs;
      return call->attrs.same_as(attrs) || StructuralEqual(call->attrs, attrs);
    }
    const auto* item = As<TupleGetItemNode>(x);
    return !item || item->index == static_cast<const TupleGetItemNode*>(y)->index;
  }
  uint32_t FirstOf(uint32_t operand) const { return operand == ExprIndex::kNone ? operand : first_[operand]; }
  template <class N>
  static const N* As(const ExprNode* n) {
    return n->IsInstance<N>() ? static_cast<const N*>(n) : nullptr;
  }

  const ExprIndex index_;
  PackedFunc fskip_;
  std::vector<Region> regions_;      // the whole, then users before what they use
  std::vector<InnerRegions> inner_;  // by id; empty if the whole is one region
  std::vector<uint32_t> first_;      // by id
  Table values_, atoms_;
  bool any_equal_ = false;
};

/// Replaces each expression by its first equal.
class SubexprReplacer : public MixedModeMutator {
 public:
  explicit SubexprReplacer(const ValueNumbers& values) : values_(values) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const ConstantNode* c) final { return GetRef<Expr>(values_.FirstEqual(c)); }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final { return Replace(pre, post); }
  Expr Rewrite_(const TupleNode* pre, const Expr& post) final { return Replace(pre, post); }
  Expr Rewrite_(const TupleGetItemNode* pre, const Expr& post) final { return Replace(pre, post); }
  Expr Replace(const ExprNode* pre, const Expr& post) {
    const ExprNode* first = values_.FirstEqual(pre);
    return first == pre ? post : VisitExpr(GetRef<Expr>(first));
  }
  const ValueNumbers& values_;
};

}  // namespace

Pass EliminateCommonSubexpr(const EliminateCommonSubexprOptions& options) {
  return MakePass<EliminateCommonSubexpr>(
      options,
      {
          .doc = "One computation for equal calls of operators without effects, one constant for equal large ones. "
                 "`fskip(call)` true leaves a call alone.",
          .opt_level = 3,
          .required = {"InferType"},
          .run = [fskip = options.fskip](Function f, IRModule, PassContext) -> Function {
            const ValueNumbers values(f->body, fskip);
            return values.any_equal() ? SubexprReplacer(values).Mutate(f) : f;
          },
      });
}

namespace {
const RegisterPass<EliminateCommonSubexpr> registered_eliminate_common_subexpr;
}  // namespace

}  // namespace baton::relay::transform
