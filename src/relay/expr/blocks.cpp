// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/runtime/interrupt.h>
#include <relay/expr/blocks.h>

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

Blocks::Blocks(const Expr& root) : graph_(root) {
  Make(-1);
  info_.Fill(graph_.size(), Info());
  if (!graph_.size()) return;
  Info& top = At(graph_.size() - 1);
  top.block = 0;
  top.uses = 1;
  top.in_place = true;
  // Users come before what they use, so the block of each node is known when its parts are looked at.
  constexpr size_t kSoon = 12;
  for (size_t i = graph_.size(); i-- > 0;) {
    runtime::PollInterrupt();
    if (i >= kSoon) {
      for (uint32_t part : graph_.Parts(i - kSoon)) __builtin_prefetch(info_.begin() + part, 1);
    }
    const int32_t here = At(i).block;
    int32_t first = -1;
    graph_.ForEachEdge(i, [&](uint32_t part, int own, bool tail) {
      int32_t at = here;
      if (own >= 0) {
        at = Make(here);
        if (own == 0) first = at;
      }
      if (part == NodeGraph::kNone || graph_.atom(part)) return;
      Info& p = At(part);
      p.block = p.uses++ ? Common(p.block, at) : at;
      p.in_place = tail && p.uses == 1;
    });
    At(i).first = first;
  }
}

}  // namespace baton::relay
