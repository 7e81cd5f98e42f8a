// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/support/pages.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/node_graph.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace baton::relay::transform {
namespace {

const ConstantNode* Scalar(const ExprNode* e) {
  const auto* c = e->IsInstance<ConstantNode>() ? static_cast<const ConstantNode*>(e) : nullptr;
  return c && c->is_scalar() ? c : nullptr;
}
const ConstantNode* Scalar(const Expr& e) { return e.defined() ? Scalar(e.get()) : nullptr; }

/// Whether two values may be equal, wherever they stand: most programs have none, and end here. As the eliminator
/// below, but by numbers of nodes, and without scopes and what a user excepts.
bool MayRepeat(const Expr& root) {
  const NodeGraph graph(root);
  // What has the same latest part hangs below it, so that what is looked up one after the other lies side by side. What
  // has no part, or one that many have, is found by hash.
  constexpr uint32_t kFew = 4;
  struct Users {
    uint32_t latest = NodeGraph::kNone, count = 0;
  };
  support::PageStack<Users> users;     // by number of the part
  support::PageStack<uint32_t> next;   // by number: the one before it below the same part
  support::PageStack<uint32_t> value;  // by number: the first node of that value
  std::unordered_multimap<uint64_t, uint32_t> others;
  users.Fill(graph.size(), Users());
  next.Fill(graph.size(), NodeGraph::kNone);
  auto same = [&](uint32_t a, uint32_t b) {
    const std::span<const uint32_t> x = graph.Parts(a), y = graph.Parts(b);
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i) {
      if (value[x[i]] != value[y[i]]) return false;
    }
    const ExprNode *n = graph[a], *o = graph[b];
    if (n->type_index() != o->type_index()) return false;
    if (n->IsInstance<TupleGetItemNode>()) {
      return static_cast<const TupleGetItemNode*>(n)->index == static_cast<const TupleGetItemNode*>(o)->index;
    }
    if (n->IsInstance<TupleNode>()) return true;
    const Attrs &p = static_cast<const CallNode*>(n)->attrs, &q = static_cast<const CallNode*>(o)->attrs;
    return p.same_as(q) || StructuralEqual(p, q);
  };
  uint32_t at = 0;
  for (const ExprNode* n : graph.nodes()) {
    runtime::PollInterrupt();
    const uint32_t i = at++;
    value.push_back(i);
    const bool call = n->IsInstance<CallNode>();
    if (!call && !n->IsInstance<TupleNode>() && !n->IsInstance<TupleGetItemNode>()) {
      if (!Scalar(n)) continue;
      const uint64_t h = StructuralHash(GetRef<Expr>(n));
      const auto [begin, end] = others.equal_range(h);
      for (auto it = begin; it != end && value[i] == i; ++it) {
        const ExprNode* o = graph[it->second];
        if (Scalar(o) && StructuralEqual(GetRef<Expr>(n), GetRef<Expr>(o))) value[i] = it->second;
      }
      if (value[i] == i) others.emplace(h, i);
      continue;
    }
    uint32_t part = NodeGraph::kNone;
    for (uint32_t p : graph.Parts(i)) {
      if (p == NodeGraph::kNone) return true;  // a missing part, which others refuse
      // Names of operators and literals are in everybody's calls; a variable has users of its own, as a node has.
      const bool own = !graph.atom(p) || graph[p]->IsInstance<VarNode>();
      if (own && (part == NodeGraph::kNone || p > part)) part = p;
    }
    if (part != NodeGraph::kNone) {
      Users& u = users[part];
      for (uint32_t o = u.latest; o != NodeGraph::kNone; o = next[o]) {
        if (same(i, o)) return true;
      }
      if (u.count < kFew) {
        next[i] = u.latest;
        u.latest = i;
        ++u.count;
        continue;
      }
    }
    uint64_t h = graph.Parts(i).size();
    for (uint32_t p : graph.Parts(i)) h = (h + value[p]) * 0x9e3779b97f4a7c15ull;
    if (call && static_cast<const CallNode*>(n)->attrs.defined()) {
      h = h * 31 + StructuralHash(static_cast<const CallNode*>(n)->attrs);
    } else if (n->IsInstance<TupleGetItemNode>()) {
      h = h * 31 + static_cast<uint64_t>(static_cast<const TupleGetItemNode*>(n)->index);
    }
    const auto [begin, end] = others.equal_range(h);
    for (auto it = begin; it != end; ++it) {
      if (!Scalar(graph[it->second]) && same(i, it->second)) return true;
    }
    others.emplace(h, i);
  }
  return false;
}

/// Expressions by hash, of which the latest can be forgotten. Each hangs below one of its parts, the first that only a
/// few have in common: what is looked up one after the other then lies side by side, as the parts do. Places by hash
/// lie in no order, so that each look-up misses the cache; they are for what has no such part.
class Seen {
 public:
  size_t size() const { return entries_.size(); }
  /// What is the `same` as `e`; null if there is none: then `e` is added, and must outlive this.
  template <class Same>
  const ExprNode* FindOrAdd(uint64_t hash, const ExprNode* e, Same same) {
    Place place = PlaceOf(e, hash);
    if (Has(place, hash)) {
      uint32_t length = 0;
      for (uint32_t i = *place.latest; i; i = entries_[i - 1].next, ++length) {
        const Entry& at = entries_[i - 1];
        if (at.hash == hash && same(at.expr)) return at.expr;
      }
      if (place.users && length >= kFew) {
        Share(place.users);
        place = PlaceOf(e, hash);
      }
    }
    entries_.push_back({e, hash, 0});
    Hang(static_cast<uint32_t>(entries_.size() - 1), place);
    return nullptr;
  }
  /// Those behind the first `count`.
  void Forget(size_t count) {
    for (; entries_.size() > count; entries_.pop_back()) {
      const Place place = PlaceOf(entries_.back().expr, entries_.back().hash);
      uint32_t* at = place.latest;
      while (*at != entries_.size()) at = &entries_[*at - 1].next;
      *at = entries_.back().next;
      if (!place.users) --hashed_;
    }
  }

 private:
  static constexpr uint32_t kFew = 4;
  struct Entry {
    const ExprNode* expr;
    uint64_t hash;
    uint32_t next;  ///< place of another in the same list, from 1; 0: none
  };
  /// What hangs below a part.
  struct Users {
    using ZeroIsDefault = void;
    uint32_t latest = 0;
    bool many = false;  ///< then they hang elsewhere
  };
  /// The latest entry of a bucket, and a bit for each hash in it: most look-ups that find nothing end here.
  struct Head {
    uint32_t latest = 0, tags = 0;
  };
  struct Place {
    uint32_t* latest;
    Users* users;  ///< null where it is by hash
    Head* head;
  };

  static uint64_t Mixed(uint64_t hash) { return hash * 0x9e3779b97f4a7c15u; }
  static uint32_t Tag(uint64_t hash) { return uint32_t{1} << (Mixed(hash) >> 32 & 31); }
  // As many as a power of two; the upper bits of a product are the mixed ones.
  Head* HeadOf(uint64_t hash) { return &heads_[Mixed(hash) >> (64 - __builtin_ctzll(heads_.size()))]; }
  static bool Has(const Place& place, uint64_t hash) { return !place.head || place.head->tags & Tag(hash); }

  /// Until the next call.
  Place PlaceOf(const ExprNode* e, uint64_t hash) {
    auto below = [&](const Expr& part) -> Users* {
      if (!part.defined() || Scalar(part)) return nullptr;  // scalars are equal by value
      Users& u = users_[part.get()];
      return u.many ? nullptr : &u;
    };
    auto any = [&](const Array<Expr>& parts) -> Users* {
      for (const Expr& part : parts) {
        if (Users* u = below(part)) return u;
      }
      return nullptr;
    };
    Users* users = nullptr;
    if (e->IsInstance<CallNode>()) {
      users = any(static_cast<const CallNode*>(e)->args);
    } else if (e->IsInstance<TupleNode>()) {
      users = any(static_cast<const TupleNode*>(e)->fields);
    } else {
      users = below(static_cast<const TupleGetItemNode*>(e)->tuple);
    }
    if (users) return {&users->latest, users, nullptr};
    if (hashed_ >= heads_.size()) Widen();
    Head* head = HeadOf(hash);
    return {&head->latest, nullptr, head};
  }
  void Hang(uint32_t i, const Place& place) {
    entries_[i].next = *place.latest;
    *place.latest = i + 1;
    if (!place.users) {
      place.head->tags |= Tag(entries_[i].hash);
      ++hashed_;
    }
  }
  /// Many have this part: they hang below another, or by hash.
  void Share(Users* users) {
    uint32_t i = users->latest;
    *users = {0, true};
    while (i) {
      const uint32_t next = entries_[i - 1].next;
      Hang(i - 1, PlaceOf(entries_[i - 1].expr, entries_[i - 1].hash));
      i = next;
    }
  }
  void Widen() {
    std::vector<Head> old(std::max<size_t>(64, 2 * heads_.size()));
    old.swap(heads_);
    hashed_ = 0;
    for (const Head& head : old) {
      for (uint32_t i = head.latest; i;) {
        const uint32_t next = entries_[i - 1].next;
        Head* to = HeadOf(entries_[i - 1].hash);
        Hang(i - 1, {&to->latest, nullptr, to});
        i = next;
      }
    }
  }

  support::PageStack<Entry> entries_;
  PointerMap<Users> users_;  ///< by part
  std::vector<Head> heads_;
  size_t hashed_ = 0;  ///< how many hang there
};

/// One computation for calls of equal operator, arguments and attributes. Arguments are compared by identity: they have
/// been merged before, so each call is looked up once.
class SubexprEliminator : public MixedModeMutator {
 public:
  explicit SubexprEliminator(PackedFunc fskip) : fskip_(std::move(fskip)) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    if (!call) return post;
    const OpDef* def = DefOf(call->op);
    if (!def || def->stateful) return post;
    if (fskip_.defined() && fskip_(post).As<bool>()) return post;
    uint64_t h = ObjectHash()(call->op);
    for (const Expr& a : call->args) h = h * 0x9e3779b97f4a7c15ull + ArgHash(a);
    if (call->attrs.defined()) h = h * 31 + StructuralHash(call->attrs);
    return Merge(h, pre, post, [&](const ExprNode* other) {
      const auto* o = As<CallNode>(other);
      if (!o || !o->op.same_as(call->op) || o->args.size() != call->args.size()) return false;
      for (size_t i = 0; i < o->args.size(); ++i) {
        if (!SameArg(o->args[i], call->args[i])) return false;
      }
      return o->attrs.same_as(call->attrs) || StructuralEqual(o->attrs, call->attrs);
    });
  }
  Expr Rewrite_(const TupleGetItemNode* pre, const Expr& post) final {
    const auto* g = post.as<TupleGetItemNode>();
    const uint64_t h = ObjectHash()(g->tuple) * 31 + static_cast<uint64_t>(g->index) + 7;
    return Merge(h, pre, post, [&](const ExprNode* other) {
      const auto* o = As<TupleGetItemNode>(other);
      return o && o->index == g->index && o->tuple.same_as(g->tuple);
    });
  }
  Expr Rewrite_(const TupleNode* pre, const Expr& post) final {
    const auto* t = post.as<TupleNode>();
    uint64_t h = 99;
    for (const Expr& f : t->fields) h = h * 0x9e3779b97f4a7c15ull + ArgHash(f);
    return Merge(h, pre, post, [&](const ExprNode* other) {
      const auto* o = As<TupleNode>(other);
      if (!o || o->fields.size() != t->fields.size()) return false;
      for (size_t i = 0; i < o->fields.size(); ++i) {
        if (!SameArg(o->fields[i], t->fields[i])) return false;
      }
      return true;
    });
  }
  // Values of one branch must not be shared with what lies outside of it: a branch or closure is a world of its own.
  Expr VisitExpr_(const FunctionNode* f) final {
    Seen outer;
    std::swap(outer, seen_);
    Expr out = MixedModeMutator::VisitExpr_(f);
    std::swap(outer, seen_);
    return out;
  }
  Expr VisitExpr_(const IfNode* op) final {
    Expr cond = VisitExpr(op->cond);
    const size_t outside = seen_.size();
    Expr t = VisitExpr(op->true_branch);
    seen_.Forget(outside);
    Expr f = VisitExpr(op->false_branch);
    seen_.Forget(outside);
    if (cond.same_as(op->cond) && t.same_as(op->true_branch) && f.same_as(op->false_branch)) return GetRef<Expr>(op);
    If out(cond, t, f);
    out->span = op->span;
    return out;
  }

  template <class N>
  static const N* As(const ExprNode* e) {
    return e->IsInstance<N>() ? static_cast<const N*>(e) : nullptr;
  }
  static uint64_t ArgHash(const Expr& e) { return Scalar(e) ? StructuralHash(e) : ObjectHash()(e); }
  static bool SameArg(const Expr& a, const Expr& b) {
    return a.same_as(b) || (Scalar(a) && Scalar(b) && StructuralEqual(a, b));
  }
  template <class Same>
  Expr Merge(uint64_t h, const ExprNode* pre, const Expr& e, Same same) {
    if (const ExprNode* o = seen_.FindOrAdd(h, e.get(), same)) return GetRef<Expr>(o);
    if (e.get() != pre) made_.push_back(e);  // the program keeps what is as it was
    return e;
  }

  PackedFunc fskip_;
  Seen seen_;
  std::vector<Expr> made_;  ///< for `seen_`
};

}  // namespace

Pass EliminateCommonSubexpr(const EliminateCommonSubexprOptions& options) {
  return MakePass<EliminateCommonSubexpr>(options, {
      .doc = "One computation for equal calls of operators without effects. `fskip(call)` true leaves a call alone.",
      .opt_level = 3,
      .required = {"InferType"},
      .run = [fskip = options.fskip](Function f, IRModule, PassContext) -> Function {
        return MayRepeat(f) ? SubexprEliminator(fskip).Mutate(f) : f;
      },
  });
}

namespace {
const RegisterPass<EliminateCommonSubexpr> registered_eliminate_common_subexpr;
}  // namespace

}  // namespace baton::relay::transform
