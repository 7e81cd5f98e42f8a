// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tir/transform/workspace.h"

namespace baton::tir {
namespace {

constexpr int64_t kAlign = kArenaAlign;

/// Which of the buffers a statement touches.
struct Toucher : StmtExprVisitor {
  const std::unordered_map<const Object*, size_t>& index;
  std::vector<size_t> touched;
  explicit Toucher(const std::unordered_map<const Object*, size_t>& i) : index(i) {}
  using StmtExprVisitor::VisitExpr_;
  using StmtExprVisitor::VisitStmt_;
  void Touch(const Object* data) {
    auto it = index.find(data);
    if (it != index.end()) touched.push_back(it->second);
  }
  void VisitExpr_(const VarNode* op) final { Touch(op); }
  void VisitExpr_(const BufferLoadNode* op) final {
    Touch(op->buffer->data.get());
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    Touch(op->buffer->data.get());
    StmtExprVisitor::VisitStmt_(op);
  }
};

/// When a buffer is used, in steps of the body, what it needs, and where it is put, in bytes.
struct Life {
  int64_t first = -1, last = -1, size = 0, offset = 0;
  bool used() const { return first >= 0; }
};

/// The lives that are used, by a key; equal ones in their order.
template <class F>
std::vector<size_t> OrderBy(const std::vector<Life>& lives, F key) {
  std::vector<size_t> order;
  for (size_t i = 0; i < lives.size(); ++i) {
    if (lives[i].used()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(lives[a]) < key(lives[b]); });
  return order;
}

/// For each life the lives that overlap it; nothing if there are more such pairs than `most`.
std::optional<std::vector<std::vector<uint32_t>>> Meetings(const std::vector<Life>& lives, size_t most) {
  std::vector<std::vector<uint32_t>> meets(lives.size());
  std::vector<size_t> alive;
  size_t pairs = 0;
  for (size_t i : OrderBy(lives, [](const Life& l) { return l.first; })) {
    std::erase_if(alive, [&](size_t a) { return lives[a].last < lives[i].first; });
    pairs += alive.size();
    if (pairs > most) return std::nullopt;
    for (size_t a : alive) {
      meets[a].push_back(static_cast<uint32_t>(i));
      meets[i].push_back(static_cast<uint32_t>(a));
    }
    alive.push_back(i);
  }
  return meets;
}

/// Largest first, each at the lowest place that is free during its life. Returns the bytes of all.
int64_t PlaceBySize(const std::vector<std::vector<uint32_t>>& meets, std::vector<Life>* lives) {
  int64_t total = 0;
  std::vector<bool> placed(lives->size());
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (size_t i : OrderBy(*lives, [](const Life& l) { return -l.size; })) {
    Life& life = (*lives)[i];
    taken.clear();
    for (size_t p : meets[i]) {
      if (placed[p]) taken.push_back({(*lives)[p].offset, (*lives)[p].offset + (*lives)[p].size});
    }
    std::sort(taken.begin(), taken.end());
    for (auto [b, e] : taken) {
      if (life.offset + life.size <= b) break;
      life.offset = std::max(life.offset, e);
    }
    total = std::max(total, life.offset + life.size);
    placed[i] = true;
  }
  return total;
}

/// In order of time, each in the smallest free block that has room, as far down as there is one; a block at the end
/// grows. O(n log n) for any lives. Returns the bytes of all.
int64_t PlaceByTime(std::vector<Life>* lives) {
  std::map<int64_t, int64_t> by_offset;           // begin and size of free blocks, no two of which touch
  std::set<std::pair<int64_t, int64_t>> by_size;  // the same as (size, begin)
  int64_t total = 0;
  auto add = [&](int64_t begin, int64_t size) {
    by_offset[begin] = size;
    by_size.insert({size, begin});
  };
  auto drop = [&](std::map<int64_t, int64_t>::iterator block) {
    by_size.erase({block->second, block->first});
    return by_offset.erase(block);
  };
  auto give_back = [&](int64_t begin, int64_t size) {
    auto next = by_offset.lower_bound(begin);
    if (next != by_offset.end() && begin + size == next->first) {
      size += next->second;
      next = drop(next);
    }
    if (next != by_offset.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == begin) {
        begin = before->first, size += before->second;
        drop(before);
      }
    }
    add(begin, size);
  };
  auto take = [&](int64_t size) {
    int64_t begin = total, room = 0;
    if (auto fit = by_size.lower_bound({size, 0}); fit != by_size.end()) {
      std::tie(room, begin) = *fit;
    } else if (!by_offset.empty() && by_offset.rbegin()->first + by_offset.rbegin()->second == total) {
      std::tie(begin, room) = *by_offset.rbegin();
    }
    if (room) drop(by_offset.find(begin));
    if (room > size) add(begin + size, room - size);
    total = std::max(total, begin + size);
    return begin;
  };
  // Buffers that become live at the same time are placed largest first.
  const std::vector<size_t> ends = OrderBy(*lives, [](const Life& l) { return l.last; });
  size_t ended = 0;
  for (size_t i : OrderBy(*lives, [](const Life& l) { return std::pair(l.first, -l.size); })) {
    Life& life = (*lives)[i];
    for (; (*lives)[ends[ended]].last < life.first; ++ended) {
      if ((*lives)[ends[ended]].size) give_back((*lives)[ends[ended]].offset, (*lives)[ends[ended]].size);
    }
    if (life.size) life.offset = take(life.size);
  }
  return total;
}

/// Offsets such that no two overlapping lives share memory. Returns the bytes of all.
int64_t Place(std::vector<Life>* lives) {
  // Placing by size wastes the least, but needs all overlapping pairs, a quadratic number where everything is live at
  // one time. This many pairs take a fraction of a second.
  const size_t most = 32 * lives->size() + (size_t{1} << 20);
  if (auto meets = Meetings(*lives, most)) return PlaceBySize(*meets, lives);
  return PlaceByTime(lives);
}

}  // namespace

PrimFunc PlanStorage(const PrimFunc& f) {
  // The allocations around the whole body, whose size is known.
  std::vector<Buffer> buffers;
  Stmt body = f->body;
  std::vector<Buffer> dynamic;
  while (const auto* a = body.as<AllocateNode>()) {
    const int64_t* n = as_const_int(a->buffer->shape.size() == 1 ? a->buffer->shape[0] : PrimExpr(AnyDim()));
    // Registers, and memory shared by the threads of a block, are not workspace.
    const String scope = a->buffer->scope();
    bool plan = n && (scope == "" || scope == "global") && a->buffer->name != kArenaName;
    (plan ? buffers : dynamic).push_back(a->buffer);
    body = a->body;
  }
  if (buffers.empty()) return f;
  std::unordered_map<const Object*, size_t> index;
  for (size_t i = 0; i < buffers.size(); ++i) index[buffers[i]->data.get()] = i;
  std::vector<Stmt> steps;
  if (const auto* q = body.as<SeqStmtNode>())
    steps.assign(q->seq.begin(), q->seq.end());
  else
    steps.push_back(body);
  std::vector<Life> life(buffers.size());
  for (size_t s = 0; s < steps.size(); ++s) {
    Toucher t(index);
    t.VisitStmt(steps[s]);
    for (size_t i : t.touched) {
      if (life[i].first < 0) life[i].first = static_cast<int64_t>(s);
      life[i].last = static_cast<int64_t>(s);
    }
  }
  for (size_t i = 0; i < life.size(); ++i) {
    life[i].size = (*as_const_int(buffers[i]->shape[0]) * buffers[i]->dtype.bytes() + kAlign - 1) / kAlign * kAlign;
  }
  const int64_t total = Place(&life);
  Buffer arena = Buffer::Make({PrimExpr(total)}, DataType::UInt(8), kArenaName);
  for (size_t i = buffers.size(); i-- > 0;) {
    if (!life[i].used()) continue;
    LetStmtNode let;
    let.var = buffers[i]->data;
    let.value = ptr_offset(arena->data, PrimExpr(life[i].offset));
    let.body = body;
    body = LetStmt(std::move(let));
  }
  AllocateNode a;
  a.buffer = arena, a.body = body;
  body = Allocate(std::move(a));
  for (size_t i = dynamic.size(); i-- > 0;) {
    AllocateNode d;
    d.buffer = dynamic[i], d.body = body;
    body = Allocate(std::move(d));
  }
  PrimFunc out = f;
  out.CopyOnWrite()->body = body;
  return out;
}

namespace transform {
Pass StorageRewrite() {
  return MakePass<StorageRewrite>({
      .doc = "The workspace of a function becomes one arena, shared by life times.",
      .run = [](PrimFunc f, IRModule, PassContext) { return PlanStorage(f); },
  });
}
const RegisterPass<StorageRewrite> registered_storage("tir.transform.");
}  // namespace transform

}  // namespace baton::tir
