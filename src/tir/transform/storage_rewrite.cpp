// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <baton/tir/transform.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace baton::tir {
namespace {

constexpr int64_t kAlign = 64;
constexpr const char* kArenaName = "workspace";

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

}  // namespace

PrimFunc PlanStorage(const PrimFunc& f) {
  // The allocations around the whole body, whose size is known.
  std::vector<Buffer> buffers;
  Stmt body = f->body;
  std::vector<Buffer> dynamic;
  while (const auto* a = body.as<AllocateNode>()) {
    const int64_t* n = as_const_int(a->buffer->shape.size() == 1 ? a->buffer->shape[0] : PrimExpr(AnyDim()));
    bool plan = n && a->buffer->scope() != "local" && a->buffer->name != kArenaName;
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
  struct Life {
    int64_t first = -1, last = -1, size = 0, offset = 0;
  };
  std::vector<Life> life(buffers.size());
  for (size_t s = 0; s < steps.size(); ++s) {
    Toucher t(index);
    t.VisitStmt(steps[s]);
    for (size_t i : t.touched) {
      if (life[i].first < 0) life[i].first = static_cast<int64_t>(s);
      life[i].last = static_cast<int64_t>(s);
    }
  }
  // Largest first, each at the lowest place that is free during its life.
  std::vector<size_t> order(buffers.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    life[i].size = (*as_const_int(buffers[i]->shape[0]) * buffers[i]->dtype.bytes() + kAlign - 1) / kAlign * kAlign;
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return life[a].size > life[b].size; });
  int64_t total = 0;
  std::vector<size_t> placed;
  for (size_t i : order) {
    if (life[i].first < 0) continue;
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t p : placed) {
      if (life[p].first <= life[i].last && life[i].first <= life[p].last)
        taken.push_back({life[p].offset, life[p].offset + life[p].size});
    }
    std::sort(taken.begin(), taken.end());
    int64_t at = 0;
    for (auto [b, e] : taken) {
      if (at + life[i].size <= b) break;
      at = std::max(at, e);
    }
    life[i].offset = at;
    total = std::max(total, at + life[i].size);
    placed.push_back(i);
  }
  Buffer arena = Buffer::Make({PrimExpr(total)}, DataType::UInt(8), kArenaName);
  for (size_t i = buffers.size(); i-- > 0;) {
    if (life[i].first < 0) continue;
    LetStmtNode let;
    let.var = buffers[i]->data;
    let.value = call_intrin(DataType::Handle(), "tir.ptr_offset", {arena->data, PrimExpr(life[i].offset)});
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

PrimFunc WorkspaceToParameter(const PrimFunc& f) {
  const auto* a = f->body.as<AllocateNode>();
  if (!a || a->buffer->name != kArenaName) return f;
  int64_t bytes = *as_const_int(a->buffer->shape[0]);
  PrimFunc out = f;
  PrimFuncNode* n = out.CopyOnWrite();
  Var p(String(kArenaName), DataType::Handle());
  n->params.push_back(p);
  n->buffer_map.Set(p, a->buffer);
  n->body = a->body;
  return WithAttr(out, attr::kWorkspaceBytes, Any(bytes));
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
