// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/interrupt.h>
#include <relay/expr/node_graph.h>

namespace baton::relay {
namespace {

NodeGraph::Kind KindOf(const ExprNode* n) {
  if (n->IsInstance<CallNode>()) return NodeGraph::kDataflow;
  if (IsAtom(n)) return NodeGraph::kAtom;
  if (n->IsInstance<LetNode>()) return NodeGraph::kLet;
  if (n->IsInstance<FunctionNode>()) return NodeGraph::kFunction;
  if (n->IsInstance<IfNode>()) return NodeGraph::kIf;
  if (n->IsInstance<MatchNode>()) return NodeGraph::kMatch;
  return n->IsInstance<TupleNode>() || n->IsInstance<TupleGetItemNode>() ? NodeGraph::kDataflow : NodeGraph::kRef;
}

struct Found {
  const ExprNode* node;
  uint32_t first;   ///< place of its parts
  uint32_t number;  ///< kNone until it is known, kOpen while its parts get theirs
};
constexpr uint32_t kOpen = NodeGraph::kNone - 1;

}  // namespace

NodeGraph::NodeGraph(const Expr& root) {
  first_.push_back(0);
  if (!root.defined()) return;
  // What is found first is looked at first, users before inputs: mostly against the order in which it was made, so in
  // the order of memory, and what comes next is known long before.
  constexpr size_t kSoon = 16;
  support::PageStack<Found> found;
  support::PageStack<Kind> kinds;
  support::PageStack<uint32_t> parts;
  auto number = [&](const ExprNode* n) {
    if (!n) return kNone;
    bool fresh = false;
    uint32_t& id = ids_.Insert(n, &fresh);
    if (fresh) {
      id = static_cast<uint32_t>(found.size());
      found.push_back({n, 0, kNone});
    }
    return id;
  };
  number(root.get());
  Ahead ahead;
  for (size_t i = 0; i < found.size(); ++i) {
    runtime::PollInterrupt();
    const ExprNode* n = found[i].node;
    if (i + kSoon < found.size()) {
      Ahead::Soon(found[i + kSoon].node);
      Ahead::PartsSoon(found[i + kSoon / 2].node);
    } else {
      if (const void* next = ahead.At(n)) ids_.Prefetch(next);
    }
    found[i].first = static_cast<uint32_t>(parts.size());
    kinds.push_back(KindOf(n));
    ForEachPart(n, [&](const ExprNode* part) { parts.push_back(number(part)); });
  }
  found.push_back({nullptr, static_cast<uint32_t>(parts.size()), kOpen});

  struct Frame {
    uint32_t id, next;  // the place of the next part
  };
  support::PageStack<Frame> stack;
  uint32_t next = 0;
  auto open = [&](uint32_t id) {
    found[id].number = kOpen;
    stack.push_back({id, found[id].first});
    for (uint32_t p = found[id].first; p < found[id + 1].first; ++p) {
      if (parts[p] != kNone) __builtin_prefetch(&found[parts[p]], 1);
    }
  };
  open(0);
  while (!stack.empty()) {
    runtime::PollInterrupt();
    Frame& f = stack.back();
    const uint32_t id = f.id, end = found[id + 1].first;
    while (f.next < end && (parts[f.next] == kNone || found[parts[f.next]].number != kNone)) ++f.next;
    if (f.next < end) {
      open(parts[f.next++]);
      continue;
    }
    stack.pop_back();
    for (uint32_t p = found[id].first; p < end; ++p) {
      const uint32_t k = parts[p] == kNone ? kNone : found[parts[p]].number;
      parts_.push_back(k == kOpen ? kNone : k);  // a part of itself, which nobody can make
    }
    nodes_.nodes_.push_back(found[id].node);
    kinds_.push_back(kinds[id]);
    first_.push_back(static_cast<uint32_t>(parts_.size()));
    found[id].number = next++;
  }
  for (size_t i = 0; i + 1 < found.size(); ++i) number_.push_back(found[i].number);
}

}  // namespace baton::relay
