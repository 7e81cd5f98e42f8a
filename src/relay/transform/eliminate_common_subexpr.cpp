// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/support/pointer_map.h>

#include <vector>

namespace baton::relay::transform {
namespace {

/// One computation for calls of equal operator, arguments and attributes. Arguments are compared by identity: they have
/// been merged before, so each call is looked up once.
class Eliminator : public MixedModeMutator {
 public:
  explicit Eliminator(PackedFunc fskip) : fskip_(std::move(fskip)) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr Rewrite_(const CallNode*, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    if (!call) return post;
    const OpDef* def = DefOf(call->op);
    if (!def || def->stateful) return post;
    if (fskip_.defined() && fskip_(post).As<bool>()) return post;
    uint64_t h = ObjectHash()(call->op);
    for (const Expr& a : call->args) h = h * 0x9e3779b97f4a7c15ull + ArgHash(a);
    if (call->attrs.defined()) h = h * 31 + StructuralHash(call->attrs);
    return Merge(h, post, [&](const Expr& other) {
      const auto* o = other.as<CallNode>();
      if (!o || !o->op.same_as(call->op) || o->args.size() != call->args.size()) return false;
      for (size_t i = 0; i < o->args.size(); ++i) {
        if (!SameArg(o->args[i], call->args[i])) return false;
      }
      return o->attrs.same_as(call->attrs) || StructuralEqual(o->attrs, call->attrs);
    });
  }
  Expr Rewrite_(const TupleGetItemNode*, const Expr& post) final {
    const auto* g = post.as<TupleGetItemNode>();
    return Merge(ObjectHash()(g->tuple) * 31 + static_cast<uint64_t>(g->index) + 7, post, [&](const Expr& other) {
      const auto* o = other.as<TupleGetItemNode>();
      return o && o->index == g->index && o->tuple.same_as(g->tuple);
    });
  }
  Expr Rewrite_(const TupleNode*, const Expr& post) final {
    const auto* t = post.as<TupleNode>();
    uint64_t h = 99;
    for (const Expr& f : t->fields) h = h * 0x9e3779b97f4a7c15ull + ArgHash(f);
    return Merge(h, post, [&](const Expr& other) {
      const auto* o = other.as<TupleNode>();
      if (!o || o->fields.size() != t->fields.size()) return false;
      for (size_t i = 0; i < o->fields.size(); ++i) {
        if (!SameArg(o->fields[i], t->fields[i])) return false;
      }
      return true;
    });
  }
  // Values of one branch must not be shared with what lies outside of it: a branch or closure is a world of its own.
  Expr VisitExpr_(const FunctionNode* f) final {
    PointerMap<int> heads;
    std::vector<Entry> entries;
    std::swap(heads, heads_);
    std::swap(entries, entries_);
    Expr out = MixedModeMutator::VisitExpr_(f);
    std::swap(heads, heads_);
    std::swap(entries, entries_);
    return out;
  }
  Expr VisitExpr_(const IfNode* op) final {
    Expr cond = VisitExpr(op->cond);
    const size_t outside = entries_.size();
    Expr t = VisitExpr(op->true_branch);
    Forget(outside);
    Expr f = VisitExpr(op->false_branch);
    Forget(outside);
    if (cond.same_as(op->cond) && t.same_as(op->true_branch) && f.same_as(op->false_branch)) return GetRef<Expr>(op);
    If out(cond, t, f);
    out->span = op->span;
    return out;
  }

  static const ConstantNode* Scalar(const Expr& e) {
    const auto* c = e.as<ConstantNode>();
    return c && c->is_scalar() ? c : nullptr;
  }
  static uint64_t ArgHash(const Expr& e) { return Scalar(e) ? StructuralHash(e) : ObjectHash()(e); }
  static bool SameArg(const Expr& a, const Expr& b) {
    return a.same_as(b) || (Scalar(a) && Scalar(b) && StructuralEqual(a, b));
  }
  /// Expressions that have been seen, chained where their hashes are equal; those of a scope are the last.
  struct Entry {
    Expr expr;
    uint64_t hash;
    int next;  ///< place of the one before, from 1; 0: none
  };
  static const void* Key(uint64_t hash) { return reinterpret_cast<const void*>(hash | 1); }
  template <class Same>
  Expr Merge(uint64_t h, const Expr& e, Same same) {
    int& head = heads_.Insert(Key(h));
    int last = head;
    for (int i = head; i; i = entries_[static_cast<size_t>(i) - 1].next) {
      const Expr& o = entries_[static_cast<size_t>(i) - 1].expr;
      if (same(o)) return o;
    }
    entries_.push_back({e, h, last});
    head = static_cast<int>(entries_.size());
    return e;
  }
  void Forget(size_t from) {
    while (entries_.size() > from) {
      heads_.Insert(Key(entries_.back().hash)) = entries_.back().next;
      entries_.pop_back();
    }
  }

  PackedFunc fskip_;
  PointerMap<int> heads_;
  std::vector<Entry> entries_;
};

}  // namespace

Pass EliminateCommonSubexpr(PackedFunc fskip) {
  return MakePass<EliminateCommonSubexpr>({
      .doc = "One computation for equal calls of operators without effects. `fskip(call)` true leaves a call alone.",
      .opt_level = 3,
      .required = {"InferType"},
      .run = [fskip](Function f, IRModule, PassContext) { return Eliminator(fskip).Mutate(f); },
  });
}

namespace {
const struct Registered {
  Registered() {
    baton::transform::RegisterPassGlobal(
        "relay._transform.EliminateCommonSubexpr", PackedFunc([](runtime::Args a, runtime::RetValue* rv) {
          *rv = EliminateCommonSubexpr(a.size() > 0 ? a[0].As<PackedFunc>() : PackedFunc());
        }));
  }
} registered;
}  // namespace

}  // namespace baton::relay::transform
