// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/plan_memory.h>

#include <algorithm>
#include <map>

namespace baton::runtime {
namespace {

constexpr uint64_t kAlign = 64;
// Beyond this many buffers the quadratic plan gives way to a linear one.
constexpr size_t kMaxQuadratic = 4000;

/// Largest first, each at the lowest place that is free during its life: within a few percent of the optimum on models.
uint64_t PlanBySize(std::vector<PlannedBuffer>* buffers) {
  std::vector<PlannedBuffer*> order, placed;
  for (PlannedBuffer& b : *buffers) order.push_back(&b);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->bytes > b->bytes; });
  uint64_t total = 0;
  for (PlannedBuffer* b : order) {
    uint64_t at = 0;
    for (PlannedBuffer* p : placed) {  // sorted by offset
      if (p->last < b->first || p->first > b->last) continue;
      if (p->offset >= at + b->bytes) break;
      at = std::max(at, p->offset + p->bytes);
    }
    b->offset = at;
    total = std::max(total, at + b->bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), b, [](auto* x, auto* y) { return x->offset < y->offset; }), b);
  }
  return total;
}

/// In order of time, with a list of free pieces by size.
uint64_t PlanByTime(std::vector<PlannedBuffer>* buffers) {
  std::vector<PlannedBuffer*> order;
  for (PlannedBuffer& b : *buffers) order.push_back(&b);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->first < b->first; });
  std::multimap<uint64_t, uint64_t> free_pieces;           // size to offset
  std::multimap<int, std::pair<uint64_t, uint64_t>> busy;  // last step to (offset, size)
  uint64_t total = 0;
  for (PlannedBuffer* b : order) {
    while (!busy.empty() && busy.begin()->first < b->first) {
      free_pieces.emplace(busy.begin()->second.second, busy.begin()->second.first);
      busy.erase(busy.begin());
    }
    uint64_t size = b->bytes;
    auto it = free_pieces.lower_bound(b->bytes);
    if (it != free_pieces.end() && it->first <= 2 * b->bytes) {
      b->offset = it->second;
      size = it->first;
      free_pieces.erase(it);
    } else {
      b->offset = total;
      total += b->bytes;
    }
    busy.emplace(b->last, std::make_pair(b->offset, size));
  }
  return total;
}

}  // namespace

uint64_t PlanMemory(std::vector<PlannedBuffer>* buffers) {
  for (PlannedBuffer& b : *buffers) b.bytes = std::max<uint64_t>((b.bytes + kAlign - 1) / kAlign * kAlign, kAlign);
  return buffers->size() <= kMaxQuadratic ? PlanBySize(buffers) : PlanByTime(buffers);
}

}  // namespace baton::runtime
