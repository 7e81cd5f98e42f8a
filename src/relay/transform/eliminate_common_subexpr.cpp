// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <relay/node_graph.h>

#include <algorithm>
#include <vector>

namespace baton::relay::transform {
namespace {

/// Entries by hash, of which the latest can be forgotten.
template <class T>
class Seen {
 public:
  size_t size() const { return entries_.size(); }
  template <class Same>
  const T* Find(uint64_t hash, Same same) const {
    if (heads_.empty()) return nullptr;
    const Head& h = heads_[Bucket(hash)];
    for (uint32_t i = h.tags & Tag(hash) ? h.place : 0; i; i = entries_[i - 1].next) {
      const Entry& e = entries_[i - 1];
      if (e.hash == hash && same(e.value)) return &e.value;
    }
    return nullptr;
  }
  void Add(uint64_t hash, T value) {
    if (entries_.size() >= heads_.size()) Reserve(std::max<size_t>(64, 2 * heads_.size()));
    entries_.push_back({std::move(value), hash, 0});
    Link(static_cast<uint32_t>(entries_.size() - 1));
  }
  /// Those behind the first `count`.
  void Forget(size_t count) {
    for (; entries_.size() > count; entries_.pop_back())
      heads_[Bucket(entries_.back().hash)].place = entries_.back().next;
  }
  void Reserve(size_t count) {
    size_t n = 64;
    while (n < count) n *= 2;
    heads_.assign(n, Head());
    entries_.reserve(n);
    for (size_t i = 0; i < entries_.size(); ++i) Link(static_cast<uint32_t>(i));
  }
  /// Brings the place of a hash into the cache.
  void Soon(uint64_t hash) const {
    if (!heads_.empty()) __builtin_prefetch(&heads_[Bucket(hash)], 1);
  }

 private:
  struct Entry {
    T value;
    uint64_t hash;
    uint32_t next;  ///< place of the one before it in its bucket, from 1; 0: none
  };
  /// The latest entry of a bucket, and a bit for each hash in it: most look-ups that find nothing end here.
  struct Head {
    uint32_t place = 0, tags = 0;
  };
  static uint32_t Tag(uint64_t hash) { return uint32_t{1} << (Mixed(hash) >> 32 & 31); }
  // As many as a power of two; the upper bits of a product are the mixed ones.
  size_t Bucket(uint64_t hash) const { return Mixed(hash) >> (64 - __builtin_ctzll(heads_.size())); }
  static uint64_t Mixed(uint64_t hash) { return hash * 0x9e3779b97f4a7c15u; }
  void Link(uint32_t i) {
    Head& head = heads_[Bucket(entries_[i].hash)];
    entries_[i].next = head.place;
    head.place = i + 1;
    head.tags |= Tag(entries_[i].hash);
  }
  std::vector<Entry> entries_;
  std::vector<Head> heads_;
};

const ConstantNode* Scalar(const ExprNode* e) {
  const auto* c = e->IsInstance<ConstantNode>() ? static_cast<const ConstantNode*>(e) : nullptr;
  return c && c->is_scalar() ? c : nullptr;
}

/// Whether two values may be equal, wherever they stand: most programs have none, and end here. As the eliminator
/// below, but by numbers of nodes, and without scopes and what a user excepts.
bool MayRepeat(const Expr& root) {
  const NodeGraph graph(root);
  Seen<uint32_t> seen;
  seen.Reserve(graph.size());
  support::PageStack<uint32_t>
      value;  // the first node of the same value: of scalars, as a repeated call ends the search
  uint32_t at = 0;
  constexpr uint64_t kMix = 0x9e3779b97f4a7c15u;
  // The table is asked some nodes later, when its place has arrived.
  struct Asked {
    uint32_t node;
    uint64_t hash;
  };
  constexpr uint32_t kLater = 8;
  Asked asked[kLater];
  uint32_t first = 0, last = 0;
  auto repeats = [&](const Asked& a) {
    const ExprNode* n = graph[a.node];
    const std::span<const uint32_t> parts = graph.Parts(a.node);
    const uint32_t* same = seen.Find(a.hash, [&](uint32_t other) {
      const ExprNode* o = graph[other];
      const std::span<const uint32_t> others = graph.Parts(other);
      if (o->type_index() != n->type_index() || others.size() != parts.size()) return false;
      for (size_t i = 0; i < parts.size(); ++i) {
        if (value[parts[i]] != value[others[i]]) return false;
      }
      if (n->IsInstance<TupleGetItemNode>()) {
        return static_cast<const TupleGetItemNode*>(n)->index == static_cast<const TupleGetItemNode*>(o)->index;
      }
      if (!n->IsInstance<CallNode>()) return true;
      const Attrs &x = static_cast<const CallNode*>(n)->attrs, &y = static_cast<const CallNode*>(o)->attrs;
      return x.same_as(y) || StructuralEqual(x, y);
    });
    if (!same) seen.Add(a.hash, a.node);
    return same != nullptr;
  };
  for (const ExprNode* n : graph.nodes()) {
    runtime::PollInterrupt();
    value.push_back(at);
    const std::span<const uint32_t> parts = graph.Parts(at);
    for (uint32_t p : parts) {
      if (p == NodeGraph::kNone) return true;  // a missing part, which others refuse
    }
    uint64_t h = parts.size();
    bool look = true;
    if (n->IsInstance<CallNode>()) {
      const auto* c = static_cast<const CallNode*>(n);
      for (uint32_t p : parts) h = (h + value[p]) * kMix;
      if (c->attrs.defined()) h = h * 31 + StructuralHash(c->attrs);
    } else if (n->IsInstance<TupleNode>()) {
      for (uint32_t p : parts) h = (h + value[p]) * kMix;
    } else if (n->IsInstance<TupleGetItemNode>()) {
      h = value[parts[0]] * kMix + static_cast<uint64_t>(static_cast<const TupleGetItemNode*>(n)->index);
    } else {
      look = false;
      if (Scalar(n)) {
        const uint64_t scalar = StructuralHash(GetRef<Expr>(n));
        const uint32_t* same = seen.Find(scalar, [&](uint32_t other) {
          return Scalar(graph[other]) && StructuralEqual(GetRef<Expr>(n), GetRef<Expr>(graph[other]));
        });
        if (same)
          value[at] = *same;
        else
          seen.Add(scalar, at);
      }
    }
    if (look) {
      seen.Soon(h);
      asked[last++ % kLater] = {at, h};
      if (last - first == kLater && repeats(asked[first++ % kLater])) return true;
    }
    ++at;
  }
  while (first != last) {
    if (repeats(asked[first++ % kLater])) return true;
  }
  return false;
}

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
    Seen<Expr> outer;
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

  static uint64_t ArgHash(const Expr& e) { return Scalar(e.get()) ? StructuralHash(e) : ObjectHash()(e); }
  static bool SameArg(const Expr& a, const Expr& b) {
    return a.same_as(b) || (Scalar(a.get()) && Scalar(b.get()) && StructuralEqual(a, b));
  }
  template <class Same>
  Expr Merge(uint64_t h, const Expr& e, Same same) {
    const Expr* o = seen_.Find(h, same);
    if (o) return *o;
    seen_.Add(h, e);
    return e;
  }

  PackedFunc fskip_;
  Seen<Expr> seen_;
};

}  // namespace

Pass EliminateCommonSubexpr(PackedFunc fskip) {
  return MakePass<EliminateCommonSubexpr>({
      .doc = "One computation for equal calls of operators without effects. `fskip(call)` true leaves a call alone.",
      .opt_level = 3,
      .required = {"InferType"},
      .run = [fskip](Function f, IRModule, PassContext) -> Function {
        return MayRepeat(f) ? Eliminator(fskip).Mutate(f) : f;
      },
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
