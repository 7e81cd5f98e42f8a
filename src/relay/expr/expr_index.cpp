// SPDX-License-Identifier: Apache-2.0
#include <relay/expr/expr_index.h>
#include <relay/expr/frontier.h>

#include <utility>

namespace baton::relay {
namespace {

ExprIndex::Kind IndexKindOf(const ExprNode* n) {
  if (n->IsInstance<CallNode>()) return ExprIndex::kDataflow;
  if (IsAtom(n)) return ExprIndex::kAtom;
  if (n->IsInstance<LetNode>()) return ExprIndex::kLet;
  if (n->IsInstance<FunctionNode>()) return ExprIndex::kFunction;
  if (n->IsInstance<IfNode>()) return ExprIndex::kIf;
  if (n->IsInstance<MatchNode>()) return ExprIndex::kMatch;
  return n->IsInstance<TupleNode>() || n->IsInstance<TupleGetItemNode>() ? ExprIndex::kDataflow : ExprIndex::kRef;
}

}  // namespace

/// A tree that grows at its leaves and finds the lowest common ancestor of two nodes in logarithmic time, by jumps
/// whose lengths grow as skew-binary numbers.
struct ExprIndex::JumpTree {
  struct Link {
    int32_t parent, depth, jump;
  };
  std::vector<Link> at;

  /// `v` becomes a child of `parent`.
  void Hang(int32_t v, int32_t parent) {
    const Link& p = at[parent];
    const Link& j = at[p.jump];
    at[v] = {parent, p.depth + 1, p.depth - j.depth == j.depth - at[j.jump].depth ? j.jump : parent};
  }
  int32_t Common(int32_t a, int32_t b) const {
    if (at[a].depth < at[b].depth) std::swap(a, b);
    while (at[a].depth > at[b].depth) a = at[at[a].jump].depth >= at[b].depth ? at[a].jump : at[a].parent;
    while (a != b) {
      const bool far = at[a].jump != at[b].jump;
      a = far ? at[a].jump : at[a].parent;
      b = far ? at[b].jump : at[b].parent;
    }
    return a;
  }
};

struct ExprIndex::UserLists {
  std::vector<uint32_t> first, users;
};
struct ExprIndex::DominatorTree {
  JumpTree tree;
  std::vector<int32_t> enter, leave;  // of a walk over the tree
};
struct ExprIndex::ScopeTree {
  JumpTree tree;
  support::PageStack<Placement> placements;
};

ExprIndex::~ExprIndex() = default;

ExprIndex::ExprIndex(const Expr& root) : root_(root) {
  first_.push_back(0);
  if (!root.defined()) return;
  // Nodes as they are found, with the places of their operands in `operands`.
  Frontier frontier;
  support::PageStack<Kind> kinds;
  support::PageStack<uint32_t> first, operands;
  auto add = [&](const ExprNode* n) {
    if (!n) return kNone;
    bool fresh = false;
    uint32_t& at = found_.Insert(n, &fresh);
    if (fresh) {
      at = static_cast<uint32_t>(frontier.size());
      frontier.Add(n);
    }
    return at;
  };
  add(root.get());
  while (const ExprNode* n = frontier.Next()) {
    first.push_back(static_cast<uint32_t>(operands.size()));
    kinds.push_back(IndexKindOf(n));
    ForEachChild(n, [&](const ExprNode* child) { operands.push_back(add(child)); });
  }
  first.push_back(static_cast<uint32_t>(operands.size()));

  // Ids in post order, without reading the nodes again.
  constexpr uint32_t kOpen = kNone - 1;  // its operands get their ids
  id_of_found_.Fill(frontier.size(), kNone);
  struct Open {
    uint32_t found, next;  // the place of the next operand
  };
  support::PageStack<Open> stack;
  auto open = [&](uint32_t found) {
    id_of_found_[found] = kOpen;
    stack.push_back({found, first[found]});
  };
  open(0);
  while (!stack.empty()) {
    runtime::PollInterrupt();
    Open& top = stack.back();
    const uint32_t found = top.found, end = first[found + 1];
    while (top.next < end && (operands[top.next] == kNone || id_of_found_[operands[top.next]] != kNone)) ++top.next;
    if (top.next < end) {
      open(operands[top.next++]);
      continue;
    }
    stack.pop_back();
    for (uint32_t p = first[found]; p < end; ++p) {
      const uint32_t id = operands[p] == kNone ? kNone : id_of_found_[operands[p]];
      operands_.push_back(id == kOpen ? kNone : id);  // an operand of itself, which cannot be made
    }
    id_of_found_[found] = static_cast<uint32_t>(nodes_.size());
    nodes_.nodes_.push_back(frontier[found]);
    kinds_.push_back(kinds[found]);
    first_.push_back(static_cast<uint32_t>(operands_.size()));
  }
}

const ExprIndex::UserLists& ExprIndex::users() const {
  if (users_) return *users_;
  auto u = std::make_unique<UserLists>();
  u->first.assign(size() + 2, 0);
  for (uint32_t operand : operands_) {
    if (operand != kNone) ++u->first[operand + 2];
  }
  for (size_t i = 2; i < u->first.size(); ++i) u->first[i] += u->first[i - 1];
  u->users.resize(u->first.back());
  for (uint32_t id : ids()) {
    for (uint32_t operand : Operands(id)) {
      if (operand != kNone) u->users[u->first[operand + 1]++] = id;
    }
  }
  users_ = std::move(u);
  return *users_;
}

std::span<const uint32_t> ExprIndex::Users(size_t id) const {
  const UserLists& u = users();
  return {u.users.data() + u.first[id], u.users.data() + u.first[id + 1]};
}

const ExprIndex::DominatorTree& ExprIndex::dominators() const {
  if (dominators_) return *dominators_;
  auto d = std::make_unique<DominatorTree>();
  const auto n = static_cast<int32_t>(size());
  // Ids order the graph, so one pass from the root gives each node's nearest post-dominator. A recursive binding uses
  // its own variable, which is a leaf: there are no cycles.
  d->tree.at.assign(size(), {n - 1, 0, n - 1});
  for (int32_t i = n - 2; i >= 0; --i) {
    int32_t nearest = -1;
    for (uint32_t user : Users(i)) {
      const auto u = static_cast<int32_t>(user);
      nearest = nearest < 0 ? u : d->tree.Common(nearest, u);
    }
    d->tree.Hang(i, nearest < 0 ? n - 1 : nearest);
  }
  // Times of entering and leaving: children have smaller ids than their post-dominator, so sizes of subtrees add up in
  // order, and each child takes its place behind its elder siblings.
  std::vector<int32_t> count(size(), 1), next(size(), 0);
  for (int32_t i = 0; i + 1 < n; ++i) count[d->tree.at[i].parent] += count[i];
  d->enter.assign(size(), 0);
  d->leave.assign(size(), 0);
  for (int32_t i = n - 1; i >= 0; --i) {
    int32_t& enter = d->enter[i];
    if (i < n - 1) {
      enter = next[d->tree.at[i].parent];
      next[d->tree.at[i].parent] += count[i];
    }
    next[i] = enter + 1;
    d->leave[i] = enter + count[i];
  }
  dominators_ = std::move(d);
  return *dominators_;
}

uint32_t ExprIndex::PostDominator(size_t id) const {
  return id + 1 == size() ? kNone : static_cast<uint32_t>(dominators().tree.at[id].parent);
}

bool ExprIndex::PostDominates(size_t outer, size_t inner) const {
  const DominatorTree& d = dominators();
  return d.enter[outer] <= d.enter[inner] && d.leave[inner] <= d.leave[outer];
}

const ExprIndex::ScopeTree& ExprIndex::scopes() const {
  if (scopes_) return *scopes_;
  auto s = std::make_unique<ScopeTree>();
  s->tree.at.push_back({-1, 0, 0});
  s->placements.Fill(size(), Placement());
  if (size()) s->placements[size() - 1] = {0, -1, 1, true};
  // Users come before what they use, so the scope of each node is known when its operands are looked at.
  for (uint32_t id : ids_from_root()) {
    const int32_t here = s->placements[id].scope;
    int32_t own_scope = -1;
    ForEachEdge(id, [&](uint32_t operand, int own, bool tail) {
      int32_t at = here;
      if (own >= 0) {
        at = static_cast<int32_t>(s->tree.at.size());
        s->tree.at.emplace_back();
        s->tree.Hang(at, here);
        if (own == 0) own_scope = at;
      }
      if (operand == kNone || atom(operand)) return;
      Placement& p = s->placements[operand];
      p.scope = p.uses++ ? s->tree.Common(p.scope, at) : at;
      p.in_place = tail && p.uses == 1;
    });
    s->placements[id].own_scope = own_scope;
  }
  scopes_ = std::move(s);
  return *scopes_;
}

const ExprIndex::Placement& ExprIndex::placement(size_t id) const { return scopes().placements[id]; }
size_t ExprIndex::num_scopes() const { return scopes().tree.at.size(); }
int32_t ExprIndex::CommonScope(int32_t a, int32_t b) const { return scopes().tree.Common(a, b); }

}  // namespace baton::relay
