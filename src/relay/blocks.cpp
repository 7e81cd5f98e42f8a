// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/runtime/interrupt.h>
#include <relay/blocks.h>

#include <utility>

namespace baton::relay {

int32_t Blocks::Make(int32_t parent) {
  Block b{parent, 0, 0};
  if (parent >= 0) {
    // Skew-binary jumps: the innermost common block is found in logarithmic time, however long a chain of lets is.
    const Block& p = blocks_[parent];
    const Block& j = blocks_[p.jump];
    b.depth = p.depth + 1;
    b.jump = p.depth - j.depth == j.depth - blocks_[j.jump].depth ? j.jump : parent;
  }
  blocks_.push_back(b);
  return static_cast<int32_t>(blocks_.size()) - 1;
}

int32_t Blocks::Common(int32_t a, int32_t b) const {
  if (blocks_[a].depth < blocks_[b].depth) std::swap(a, b);
  while (blocks_[a].depth > blocks_[b].depth) {
    a = blocks_[blocks_[a].jump].depth >= blocks_[b].depth ? blocks_[a].jump : blocks_[a].parent;
  }
  while (a != b) {
    if (blocks_[a].jump != blocks_[b].jump)
      a = blocks_[a].jump, b = blocks_[b].jump;
    else
      a = blocks_[a].parent, b = blocks_[b].parent;
  }
  return a;
}

Blocks::Blocks(const Expr& root) : order_(root), info_(order_.nodes.size()) {
  Make(-1);
  for (size_t i = 0; i < order_.nodes.size(); ++i) At(i).atom = order_.atoms[i];
  Info& top = Of(root.get());
  top.block = 0;
  top.uses = 1;
  top.in_place = true;
  // Users come before what they use, so the block of each node is known when its parts are looked at.
  constexpr size_t kSoon = 12;
  for (size_t i = order_.nodes.size(); i-- > 0;) {
    runtime::PollInterrupt();
    // What a node uses mostly comes right before it: it is on its way when its users ask for it.
    if (i >= 2 * kSoon) {
      __builtin_prefetch(order_.nodes[i - 2 * kSoon]);
      order_.Prefetch(order_.nodes[i - kSoon]);
    }
    const ExprNode* n = order_.nodes[i];
    if (order_.atoms[i]) continue;
    const int32_t here = At(i).block;
    int32_t first = -1;
    ForEachEdge(n, [&](const ExprNode* part, int own, bool tail) {
      int32_t at = here;
      if (own >= 0) {
        at = Make(here);
        if (own == 0) first = at;
      }
      if (!part) return;
      Info& p = Of(part);
      if (p.atom) return;
      p.block = p.uses++ ? Common(p.block, at) : at;
      p.in_place = tail && p.uses == 1;
    });
    At(i).first = first;
  }
}

}  // namespace baton::relay
