// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/plan_memory.h>

#include <algorithm>

namespace baton::runtime {
namespace {

constexpr uint64_t kAlign = 64;
// Beyond this many buffers the quadratic plan gives way to a linear one.
constexpr size_t kMaxQuadratic = 4000;

using Order = bool (*)(const PlannedBuffer*, const PlannedBuffer*);

/// The buffers in an order; equal ones keep their order.
std::vector<PlannedBuffer*> Sorted(std::vector<PlannedBuffer>* buffers, Order before) {
  std::vector<PlannedBuffer*> order;
  order.reserve(buffers->size());
  for (PlannedBuffer& b : *buffers) order.push_back(&b);
  std::make_heap(order.begin(), order.end(), before);  // smaller code than std::sort's
  std::sort_heap(order.begin(), order.end(), before);
  return order;
}

/// Largest first, each at the lowest place that is free during its life: within a few percent of the optimum on models.
uint64_t PlanBySize(std::vector<PlannedBuffer>* buffers) {
  const auto order = Sorted(buffers, [](const PlannedBuffer* a, const PlannedBuffer* b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a < b;
  });
  std::vector<PlannedBuffer*> placed;  // sorted by offset
  uint64_t total = 0;
  for (PlannedBuffer* b : order) {
    uint64_t at = 0;
    for (PlannedBuffer* p : placed) {
      if (p->last < b->first || p->first > b->last) continue;
      if (p->offset >= at + b->bytes) break;
      at = std::max(at, p->offset + p->bytes);
    }
    b->offset = at;
    total = std::max(total, at + b->bytes);
    size_t place = placed.size();
    while (place > 0 && placed[place - 1]->offset > at) --place;
    placed.insert(placed.begin() + static_cast<std::ptrdiff_t>(place), b);
  }
  return total;
}

/// In order of time, with a list of free pieces by size.
uint64_t PlanByTime(std::vector<PlannedBuffer>* buffers) {
  const auto order = Sorted(buffers, [](const PlannedBuffer* a, const PlannedBuffer* b) {
    return a->first != b->first ? a->first < b->first : a < b;
  });
  struct Piece {
    uint64_t size, offset;
    int last;  // step that reads it last
  };
  std::vector<Piece> free_pieces;  // sorted by size
  std::vector<Piece> busy;         // a heap, the first that ends on top
  const auto later = [](const Piece& a, const Piece& b) { return a.last > b.last; };
  const auto smaller = [](const Piece& a, const Piece& b) { return a.size < b.size; };
  uint64_t total = 0;
  for (PlannedBuffer* b : order) {
    while (!busy.empty() && busy.front().last < b->first) {
      std::pop_heap(busy.begin(), busy.end(), later);
      free_pieces.insert(std::upper_bound(free_pieces.begin(), free_pieces.end(), busy.back(), smaller), busy.back());
      busy.pop_back();
    }
    Piece piece{b->bytes, total, b->last};
    const auto fit = std::lower_bound(free_pieces.begin(), free_pieces.end(), piece, smaller);
    if (fit != free_pieces.end() && fit->size <= 2 * b->bytes) {
      piece.size = fit->size;
      piece.offset = fit->offset;
      free_pieces.erase(fit);
    } else {
      total += b->bytes;
    }
    b->offset = piece.offset;
    busy.push_back(piece);
    std::push_heap(busy.begin(), busy.end(), later);
  }
  return total;
}

}  // namespace

uint64_t PlanMemory(std::vector<PlannedBuffer>* buffers) {
  for (PlannedBuffer& b : *buffers) b.bytes = std::max<uint64_t>((b.bytes + kAlign - 1) / kAlign * kAlign, kAlign);
  return buffers->size() <= kMaxQuadratic ? PlanBySize(buffers) : PlanByTime(buffers);
}

}  // namespace baton::runtime
