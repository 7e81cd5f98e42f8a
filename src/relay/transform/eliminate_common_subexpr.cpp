// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/support/scoped_table.h>
#include <relay/expr/children.h>

#include <utility>
#include <vector>

namespace baton::relay::transform {
namespace {

/// Value numbering, operands first: a call of an operator, a tuple or a tuple access that is in the table already is
/// replaced by the one that is there. Operands have been replaced before, so they are compared by identity; scalars,
/// by value. What a branch computes is forgotten at its end, and a function has a table of its own: its values are
/// computed when it is called.
class SubexprEliminator : public MixedModeMutator {
 public:
  explicit SubexprEliminator(PackedFunc fskip) : fskip_(std::move(fskip)) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr Rewrite_(const CallNode*, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const OpDef* def = call ? DefOf(call->op) : nullptr;
    if (!def || def->stateful || (fskip_.defined() && fskip_(post).As<bool>())) return post;
    return Merge(call, post);
  }
  Expr Rewrite_(const TupleNode*, const Expr& post) final { return Merge(post.as<TupleNode>(), post); }
  Expr Rewrite_(const TupleGetItemNode*, const Expr& post) final { return Merge(post.as<TupleGetItemNode>(), post); }

  Expr VisitExpr_(const FunctionNode* f) final {
    Table outer;
    std::swap(outer, values_);
    Expr out = MixedModeMutator::VisitExpr_(f);
    std::swap(outer, values_);
    return out;
  }
  Expr VisitExpr_(const IfNode* op) final {
    VisitExpr(op->cond);
    for (const Expr& branch : {op->true_branch, op->false_branch}) {
      Table::Scope scope(&values_);
      VisitExpr(branch);
    }
    return MixedModeMutator::VisitExpr_(op);  // of what has been visited
  }

  template <class N>
  Expr Merge(const N* node, const Expr& e) {
    const uint64_t hash = HashOf(node);
    const Expr* known = values_.Find(hash, [&](const Expr& other) {
      const auto* o = other.as<N>();
      return o && SameBeside(node, o) && SameOperands(node, o);
    });
    if (known) return *known;
    values_.Add(hash, e);
    return e;
  }

  static bool IsScalar(const Expr& e) {
    const auto* c = e.as<ConstantNode>();
    return c && c->is_scalar();
  }
  static uint64_t OperandHash(const Expr& e) { return IsScalar(e) ? StructuralHash(e) : ObjectHash()(e); }
  static bool SameOperand(const Expr& a, const Expr& b) {
    return a.same_as(b) || (IsScalar(a) && IsScalar(b) && StructuralEqual(a, b));
  }
  template <class N>
  static uint64_t HashOf(const N* node) {
    uint64_t h = node->type_index();
    ForEachChildOf<Family<Expr>>(node, [&](const Expr& e) { h = h * 0x9e3779b97f4a7c15ull + OperandHash(e); });
    if constexpr (std::is_same_v<N, CallNode>) return node->attrs.defined() ? h * 31 + StructuralHash(node->attrs) : h;
    if constexpr (std::is_same_v<N, TupleGetItemNode>) return h * 31 + static_cast<uint64_t>(node->index);
    return h;
  }
  template <class N>
  static bool SameOperands(const N* a, const N* b) {
    std::vector<Expr> of_a;
    ForEachChildOf<Family<Expr>>(a, [&](const Expr& e) { of_a.push_back(e); });
    size_t i = 0;
    bool same = true;
    ForEachChildOf<Family<Expr>>(b, [&](const Expr& e) {
      same = same && i < of_a.size() && SameOperand(of_a[i], e);
      ++i;
    });
    return same && i == of_a.size();
  }
  /// Equal in everything but the operands.
  static bool SameBeside(const CallNode* a, const CallNode* b) {
    return a->attrs.same_as(b->attrs) || StructuralEqual(a->attrs, b->attrs);
  }
  static bool SameBeside(const TupleGetItemNode* a, const TupleGetItemNode* b) { return a->index == b->index; }
  static bool SameBeside(const TupleNode*, const TupleNode*) { return true; }

  using Table = support::ScopedTable<Expr>;
  PackedFunc fskip_;
  Table values_;
};

}  // namespace

Pass EliminateCommonSubexpr(const EliminateCommonSubexprOptions& options) {
  return MakePass<EliminateCommonSubexpr>(options, {
      .doc = "One computation for equal calls of operators without effects. `fskip(call)` true leaves a call alone.",
      .opt_level = 3,
      .required = {"InferType"},
      .run = [fskip = options.fskip](Function f, IRModule, PassContext) -> Function {
        return SubexprEliminator(fskip).Mutate(f);
      },
  });
}

namespace {
const RegisterPass<EliminateCommonSubexpr> registered_eliminate_common_subexpr;
}  // namespace

}  // namespace baton::relay::transform
