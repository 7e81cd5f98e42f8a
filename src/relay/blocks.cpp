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

Blocks::Blocks(const Expr& root) : order_(PostOrderNodes(root)) {
  Make(-1);
  Info& top = info_[root.get()];
  top.block = 0;
  top.uses = 1;
  top.in_place = true;
  // Users come before what they use, so the block of each node is known when its parts are looked at.
  for (size_t i = order_.size(); i-- > 0;) {
    runtime::PollInterrupt();
    const ExprNode* n = order_[i];
    if (IsAtom(n)) continue;
    const int32_t here = info_[n].block;
    int32_t first = -1;
    ForEachEdge(n, [&](const ExprNode* part, int own, bool tail) {
      int32_t at = here;
      if (own >= 0) {
        at = Make(here);
        if (own == 0) first = at;
      }
      if (!part || IsAtom(part)) return;
      Info& p = info_[part];
      p.block = p.uses++ ? Common(p.block, at) : at;
      p.in_place = tail && p.uses == 1;
    });
    info_[n].first = first;
  }
}

}  // namespace baton::relay
