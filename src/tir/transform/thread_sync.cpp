// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/registry.h>
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "tir/thread_axes.h"

namespace baton::tir {
namespace {

/// Most accesses of one buffer that are told apart between two barriers; more count as an access of the whole buffer.
constexpr size_t kTold = 64;

/// An index as c + a sum of variables with literal factors.
struct AffineIndex {
  bool known = true;
  int64_t constant = 0;
  std::map<const Object*, int64_t> factors;
};
AffineIndex AffineIndexOf(const PrimExpr& index) {
  AffineIndex out;
  std::vector<std::pair<PrimExpr, int64_t>> work{{index, 1}};
  while (!work.empty()) {
    const auto [e, factor] = work.back();
    work.pop_back();
    const auto* mul = e.as<MulNode>();
    const int64_t* by = mul ? as_const_int(mul->b) : nullptr;
    const int64_t* before = mul ? as_const_int(mul->a) : nullptr;
    if (const int64_t* c = as_const_int(e)) {
      out.constant += factor * *c;
    } else if (e.as<VarNode>()) {
      out.factors[e.get()] += factor;
    } else if (const auto* add = e.as<AddNode>()) {
      work.push_back({add->a, factor});
      work.push_back({add->b, factor});
    } else if (const auto* sub = e.as<SubNode>()) {
      work.push_back({sub->a, factor});
      work.push_back({sub->b, -factor});
    } else if (by || before) {
      work.push_back({by ? mul->a : mul->b, factor * (by ? *by : *before)});
    } else {
      out.known = false;
    }
    if (std::abs(factor) > (int64_t{1} << 40)) out.known = false;
  }
  return out;
}

struct Access {
  bool write = false;
  bool all = false;  ///< somewhere in the buffer
  Array<PrimExpr> indices;
};
/// By a buffer's data.
using Accesses = std::unordered_map<const Object*, std::vector<Access>>;

/// Whether `a` covers `b`.
bool Covers(const Access& a, const Access& b) {
  if (b.write && !a.write) return false;
  if (a.all || b.all) return a.all;
  if (a.indices.same_as(b.indices)) return true;
  bool same = a.indices.size() == b.indices.size();
  for (int64_t i = 0; same && i < static_cast<int64_t>(a.indices.size()); ++i)
    same = ExprDeepEqual(a.indices[i], b.indices[i]);
  return same;
}
void Put(Accesses* to, const Object* data, const Access& a) {
  std::vector<Access>& list = (*to)[data];
  for (const Access& known : list) {
    if (Covers(known, a)) return;
  }
  if (list.size() < kTold) {
    list.push_back(a);
  } else {
    list.back().all = true;
    list.back().write = list.back().write || a.write;
    // One access that stands for all.
    for (const Access& each : list) list.back().write = list.back().write || each.write;
  }
}
void Put(Accesses* to, const Accesses& more) {
  for (const auto& [data, list] : more) {
    for (const Access& a : list) Put(to, data, a);
  }
}

class Syncer : public StmtMutator {
 public:
  explicit Syncer(std::string scope) : scope_(std::move(scope)) {}
  using StmtMutator::VisitStmt_;

  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key == kThreadExtent && !in_kernel_) {
      axes_.clear();
      divergent_.clear();
      num_axes_ = 0;
      for (const KernelAxis& a : AxesOf(GetRef<Stmt>(op))) {
        if (IsBlockAxis(a.axis) || is_one(a.extent)) continue;
        const int64_t* extent = as_const_int(a.extent);
        ++num_axes_;
        for (const VarNode* v : a.vars) {
          axes_[v] = {a.axis, extent ? *extent : 0};
          divergent_.insert(v);
        }
      }
      in_kernel_ = true;
      pending_.clear(), head_.clear();
      Stmt out = StmtMutator::VisitStmt_(op);
      in_kernel_ = false;
      return out;
    }
    if (!in_kernel_ || !op->value.defined()) return StmtMutator::VisitStmt_(op);
    const bool sync = Header({op->value});
    return Behind(sync, StmtMutator::VisitStmt_(op));
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final { return Leaf(GetRef<Stmt>(op)); }
  Stmt VisitStmt_(const EvaluateNode* op) final {
    const Stmt s = GetRef<Stmt>(op);
    if (!in_kernel_) return s;
    if (const CallNode* sync = SyncOf(s)) {
      const auto* scope = sync->args.empty() ? nullptr : sync->args[0].as<StringImmNode>();
      if (scope && scope->value == scope_) Synced();
      return s;
    }
    return Leaf(s);
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    if (!in_kernel_) return StmtMutator::VisitStmt_(op);
    if (!Uniform(op->value)) divergent_.insert(op->var.get());
    const bool sync = Header({op->value});
    return Behind(sync, StmtMutator::VisitStmt_(op));
  }
  Stmt VisitStmt_(const AssertStmtNode* op) final {
    if (!in_kernel_) return StmtMutator::VisitStmt_(op);
    const bool sync = Header({op->condition});
    return Behind(sync, StmtMutator::VisitStmt_(op));
  }
  Stmt VisitStmt_(const IfThenElseNode* op) final {
    if (!in_kernel_) return StmtMutator::VisitStmt_(op);
    const Stmt s = GetRef<Stmt>(op);
    // Within a branch of some threads a needed barrier is an error.
    if (!within_branch_ && !Uniform(op->condition)) {
      return Divergent(s, [&] {
        const Accesses before = pending_;
        VisitStmt(op->then_case);
        pending_ = before;
        if (op->else_case.defined()) VisitStmt(op->else_case);
      });
    }
    const bool sync = Header({op->condition});
    const Accesses before = pending_;
    const bool open = head_open_;
    IfThenElseNode n = *op;
    n.then_case = VisitStmt(op->then_case);
    Accesses then = std::move(pending_);
    const bool then_open = head_open_;
    pending_ = before, head_open_ = open;
    if (op->else_case.defined()) n.else_case = VisitStmt(op->else_case);
    Put(&pending_, then);
    head_open_ = head_open_ || then_open;
    const bool same = n.then_case.same_as(op->then_case) && n.else_case.same_as(op->else_case);
    return Behind(sync, same ? s : Stmt(IfThenElse(std::move(n))));
  }
  Stmt VisitStmt_(const WhileNode* op) final {
    Collector shared(*this);
    shared.VisitStmt(GetRef<Stmt>(op));
    if (in_kernel_ && !shared.found.empty())
      throw UnsupportedError("a `while` loop reads or writes memory that threads share; use a loop with a bound");
    return StmtMutator::VisitStmt_(op);
  }
  Stmt VisitStmt_(const ForNode* op) final {
    if (!in_kernel_) return StmtMutator::VisitStmt_(op);
    const Stmt s = GetRef<Stmt>(op);
    const bool uniform = Uniform(op->min) && Uniform(op->extent);
    if (!uniform) divergent_.insert(op->loop_var.get());
    if (!uniform && !within_branch_) {
      return Divergent(s, [&] {
        head_.clear();
        head_open_ = true;
        VisitStmt(op->body);
        if (Conflict(pending_, head_)) Barrier(s);
      });
    }
    const bool sync = Header({op->min, op->extent});
    const Accesses before = pending_;
    Accesses outer = std::move(head_);
    const bool open = head_open_;
    head_.clear();
    head_open_ = true;
    Stmt body = VisitStmt(op->body);
    // The end of an iteration meets the begin of the next one.
    Accesses head = std::move(head_);
    if (Conflict(pending_, head)) {
      body = SeqStmt::Flatten({body, Barrier(s)});
      Synced();
    }
    // A loop without iterations changes nothing.
    head_ = std::move(outer);
    head_open_ = open;
    if (open) Put(&head_, head), Put(&head_, pending_);
    Put(&pending_, before);
    if (body.same_as(op->body)) return Behind(sync, s);
    ForNode n = *op;
    n.body = body;
    return Behind(sync, For(std::move(n)));
  }

 private:
  struct Axis {
    int axis = 0;
    int64_t extent = 0;  ///< 0: not known
  };
  /// Collects what a statement or expression accesses of the scope.
  struct Collector : StmtExprVisitor {
    const Syncer& in;
    Accesses found;
    explicit Collector(const Syncer& s) : in(s) {}
    using StmtExprVisitor::VisitExpr_;
    using StmtExprVisitor::VisitStmt_;
    void Touch(const Buffer& b, bool write, const Array<PrimExpr>& indices) {
      if (in.OfScope(b->data.get())) Put(&found, b->data.get(), {write, false, indices});
    }
    void VisitStmt_(const BufferStoreNode* op) final {
      Touch(op->buffer, true, op->indices);
      StmtExprVisitor::VisitStmt_(op);
    }
    void VisitExpr_(const BufferLoadNode* op) final {
      Touch(op->buffer, false, op->indices);
      StmtExprVisitor::VisitExpr_(op);
    }
    void VisitExpr_(const VarNode* op) final {
      // Its address escapes.
      if (in.OfScope(op)) Put(&found, op, {true, true, {}});
    }
    void VisitExpr_(const CallNode* op) final {
      if (IsAllreduce(op)) {
        for (const BufferLoadNode* place : ThreadAllreduce(op).places) Touch(place->buffer, true, place->indices);
      } else if (const PlaceUse use = PlaceOf(op); use == PlaceUse::kWrites || use == PlaceUse::kAddress) {
        if (const auto* place = op->args[0].as<BufferLoadNode>()) {
          if (in.OfScope(place->buffer->data.get()))
            Put(&found, place->buffer->data.get(), {true, use == PlaceUse::kAddress, place->indices});
        }
      }
      StmtExprVisitor::VisitExpr_(op);
    }
  };

  bool OfScope(const VarNode* data) const {
    const auto* pointer = data->type_annotation.as<PointerTypeNode>();
    if (!pointer) return false;
    const std::string_view scope = pointer->storage_scope.view();
    return scope == scope_ || (scope.empty() && scope_ == "global");
  }

  /// Whether all threads of a block have the same value.
  bool Uniform(const PrimExpr& e) const {
    bool uniform = true;
    PostOrderVisitExpr(e, [&](const PrimExpr& x) {
      if (x.as<BufferLoadNode>() || divergent_.count(x.get())) uniform = false;
      if (const auto* call = x.as<CallNode>(); call && CallHasSideEffect(call)) uniform = false;
    });
    return uniform;
  }

  /// Whether two accesses at these indices, where they meet in one element, are of one thread.
  bool OneThread(const Access& a, const Access& b) const {
    if (axes_.empty()) return true;
    if (a.all || b.all || a.indices.size() != b.indices.size()) return false;
    std::unordered_set<int> told;
    for (size_t d = 0; d < a.indices.size(); ++d) {
      const auto at = static_cast<int64_t>(d);
      const AffineIndex x = AffineIndexOf(a.indices[at]), y = AffineIndexOf(b.indices[at]);
      if (!x.known || !y.known) continue;
      Tell(x, y, &told);
    }
    return told.size() == num_axes_;
  }
  /// The axes whose thread an index determines. Both indices must be the same sum: of threads by rising factors, each
  /// beyond the reach of those before, and of other variables in steps beyond all of them.
  void Tell(const AffineIndex& x, const AffineIndex& y, std::unordered_set<int>* told) const {
    std::map<int64_t, int64_t> by_factor;  // extents of axes
    std::map<int, int64_t> of_x, of_y, extents;
    for (const AffineIndex* s : {&x, &y}) {
      for (const auto& [var, factor] : s->factors) {
        if (auto it = axes_.find(var); it != axes_.end()) {
          (s == &x ? of_x : of_y)[it->second.axis] += factor;
          extents[it->second.axis] = it->second.extent;
        }
      }
    }
    for (const auto& [axis, factor] : of_x) by_factor[factor] = extents[axis];
    if (of_x != of_y || of_x.empty() || by_factor.size() != of_x.size()) return;
    int64_t span = 1;  // how far the threads' part reaches; 0: not known
    for (const auto& [factor, extent] : by_factor) {
      if (factor < span || span == 0 || factor % span) return;
      span = factor * extent;
    }
    const auto apart = [&](int64_t n) { return span ? n % span == 0 : n == 0; };
    // The least factor may be more than one: no other thread accesses the elements in between.
    if (!apart(x.constant - y.constant)) return;
    for (const AffineIndex* s : {&x, &y}) {
      for (const auto& [var, factor] : s->factors) {
        if (!axes_.count(var) && !apart(factor)) return;
      }
    }
    for (const auto& [axis, factor] : of_x) told->insert(axis);
  }

  bool Conflict(const Accesses& before, const Accesses& now) const {
    for (const auto& [data, list] : now) {
      auto it = before.find(data);
      if (it == before.end()) continue;
      for (const Access& a : list) {
        for (const Access& b : it->second) {
          if ((a.write || b.write) && !OneThread(a, b)) return true;
        }
      }
    }
    return false;
  }

  void Synced() {
    pending_.clear();
    head_open_ = false;
  }
  void Add(const Accesses& now) {
    Put(&pending_, now);
    if (head_open_) Put(&head_, now);
  }
  Stmt Barrier(const Stmt& at) const {
    if (within_branch_) {
      throw CompileError("ThreadSync: threads of a block exchange values of \"" + scope_ +
                         "\" memory within a branch or loop that not all of them take, where they cannot wait for each "
                         "other; make its "
                         "condition the same for all threads, or exchange the values behind it");
    }
    Stmt sync = StorageSync(scope_.c_str());
    if (at.defined()) KeepSpan(at, sync);
    return sync;
  }
  /// Records accesses; whether a barrier has to come before them.
  bool Meet(const Accesses& now, const Stmt& at) {
    const bool sync = Conflict(pending_, now);
    if (sync) {
      Barrier(at);  // throws where none can be
      Synced();
    }
    Add(now);
    return sync;
  }
  bool Header(const Array<PrimExpr>& exprs) {
    Collector c(*this);
    for (const PrimExpr& e : exprs) c.VisitExpr(e);
    return Meet(c.found, Stmt());
  }
  Stmt Behind(bool sync, const Stmt& s) const { return sync ? SeqStmt::Flatten({Barrier(s), s}) : s; }
  Stmt Leaf(const Stmt& s) {
    if (!in_kernel_) return s;
    Collector c(*this);
    c.VisitStmt(s);
    return Behind(Meet(c.found, s), s);
  }
  /// A statement that some threads run: a barrier may come before it, not within.
  template <class F>
  Stmt Divergent(const Stmt& s, F inside) {
    Collector c(*this);
    c.VisitStmt(s);
    const bool sync = Conflict(pending_, c.found);
    if (sync) Barrier(s), Synced();
    const Accesses before = pending_, head = head_;
    const bool open = head_open_, branch = within_branch_;
    within_branch_ = true;
    pending_.clear();
    inside();
    within_branch_ = branch;
    pending_ = before, head_ = head, head_open_ = open;
    Add(c.found);
    return Behind(sync, s);
  }

  std::string scope_;
  bool in_kernel_ = false, within_branch_ = false;
  size_t num_axes_ = 0;
  std::unordered_map<const Object*, Axis> axes_;  // of a block's threads, by variable
  std::unordered_set<const Object*> divergent_;   // variables that threads have different values of
  Accesses pending_;                              // since the last barrier
  Accesses head_;                                 // from the begin of the loop's body to the first barrier
  bool head_open_ = true;
};

}  // namespace

namespace transform {
struct ThreadSyncOptions : PassOptions<ThreadSyncOptions> {
  static constexpr auto _type_key = "tir.transform.ThreadSyncOptions";
  String storage_scope = "shared";
  static constexpr void Describe(auto& d) {
    d(F<&ThreadSyncOptions::storage_scope>,
      "Memory that threads exchange values in: \"shared\" (of a block) or \"global\".");
  }
};

Pass ThreadSync(const ThreadSyncOptions& options) {
  const String& storage_scope = options.storage_scope;
  if (storage_scope != "shared" && storage_scope != "global") {
    throw runtime::ValueError("ThreadSync: memory of scope \"" + storage_scope.str() +
                              "\" is not exchanged between threads; storage_scope is \"shared\" or \"global\"");
  }
  return MakePass<ThreadSync>(
      options,
      {
          .doc =
              "Barriers (tvm_storage_sync) between the threads of a block where one reads what another wrote, or "
              "writes "
              "what another read or wrote, in memory of a scope: \"shared\", or \"global\". An element that an index "
              "keeps to one thread needs none. Throws where a barrier would stand in a branch that not all threads "
              "take. Blocks never wait for each other.",
          .run = [scope = options.storage_scope.str()](PrimFunc f, IRModule,
                                                       PassContext) { return WithBody(f, Syncer(scope)(f->body)); },
      });
}
namespace {
const RegisterPass<ThreadSync> registered_thread_sync("tir.transform.");
}  // namespace
}  // namespace transform
}  // namespace baton::tir
