// SPDX-License-Identifier: Apache-2.0
// Kernels: the threads of a block are run together, or one after the other between barriers.
#include <algorithm>
#include <map>

#include "tir/interpreter/interpreter_impl.h"

namespace baton::tir::interpreter {

void Interpreter::Launch(const Stmt& kernel) {
  axes_ = AxesOf(kernel);
  FindWaits(kernel);
  const std::vector<KernelAxis>& axes = axes_;
  int64_t blocks = 1, threads = 1;
  std::vector<int64_t> extents;
  for (const KernelAxis& a : axes) {
    extents.push_back(Int(a.extent));
    if (extents.back() < 0) throw RuntimeError("a kernel of a negative number of threads");
    (IsBlockAxis(a.axis) ? blocks : threads) *= extents.back();
  }
  // The index of a block, or thread, in its variables.
  auto number = [&](int64_t n, bool block, State* state) {
    for (size_t i = axes.size(); i-- > 0;) {
      if (IsBlockAxis(axes[i].axis) != block) continue;
      for (const VarNode* v : axes[i].vars) state->vars[v] = {n % extents[i], 0};
      n /= extents[i];
    }
  };
  in_kernel_ = true;
  if (races_) races_->BeginKernel(axes, extents);
  for (int64_t b = 0; b < blocks && threads; ++b) {
    of_block_.clear();
    if (races_) races_->BeginBlock(b);
    number(b, true, &now_);
    std::vector<State> states(static_cast<size_t>(threads), now_);
    Team team;
    for (int64_t t = 0; t < threads; ++t) {
      const bool back = options_.threads == Threads::kApartBackwards;
      State& state = states[static_cast<size_t>(back ? threads - 1 - t : t)];
      state.thread = back ? threads - 1 - t : t;
      number(state.thread, false, &state);
      team.push_back(&state);
    }
    block_ = team.size();
    ExecAll(kernel, team);
  }
  in_kernel_ = false;
}

void Interpreter::FindWaits(const Stmt& kernel) {
  struct Finder : StmtVisitor {
    std::unordered_set<const Object*>* waits;
    size_t barriers = 0;
    void VisitStmt(const Stmt& s) final {
      const size_t before = barriers;
      barriers += SyncOf(s) || AllreduceOf(s) ? 1 : 0;
      StmtVisitor::VisitStmt(s);
      if (barriers > before) waits->insert(s.get());
    }
  } finder;
  finder.waits = &waits_;
  finder.VisitStmt(kernel);
}

void Interpreter::ExecAll(const Stmt& s, const Team& team) {
  Step();
  place_ = s.get();
  support::WithStack([&] { ExecAllNode(s, team); });
}

void Interpreter::ExecAllNode(const Stmt& s, const Team& team) {
  if (options_.threads != Threads::kTogether && !waits_.count(s.get())) {
    for (State* t : team) As(t, [&] { Exec(s); });
    return;
  }
  if (const auto* q = s.as<SeqStmtNode>()) {
    for (const Stmt& x : q->seq) ExecAll(x, team);
  } else if (const auto* a = s.as<AttrStmtNode>()) {
    WithReducer(a->attr_key == kReduceScope ? a : reduce_, [&] { ExecAll(a->body, team); });
  } else if (const auto* f = s.as<ForNode>()) {
    std::vector<int64_t> begins, counts;
    int64_t most = 0;
    for (State* t : team) {
      As(t, [&] {
        begins.push_back(Int(f->min));
        counts.push_back(Int(f->extent));
        most = std::max(most, counts.back());
      });
    }
    for (int64_t round = 0; round < most; ++round) {
      Team still;
      for (size_t i = 0; i < team.size(); ++i) {
        if (round >= counts[i]) continue;
        team[i]->vars[f->loop_var.get()] = {begins[i] + round, 0};
        still.push_back(team[i]);
      }
      ExecAll(f->body, still);
    }
  } else if (const auto* w = s.as<WhileNode>()) {
    Team still = team;
    while (true) {
      Team on;
      place_ = s.get();
      for (State* t : still)
        As(t, [&] {
          if (Int(w->condition)) on.push_back(t);
        });
      if (on.empty()) break;
      ExecAll(w->body, on);
      still = std::move(on);
    }
  } else if (const auto* i = s.as<IfThenElseNode>()) {
    Team yes, no;
    for (State* t : team) As(t, [&] { (Int(i->condition) ? yes : no).push_back(t); });
    if (!yes.empty()) ExecAll(i->then_case, yes);
    if (!no.empty() && i->else_case.defined()) ExecAll(i->else_case, no);
  } else if (const auto* l = s.as<LetStmtNode>()) {
    for (State* t : team) As(t, [&] { Bind(l); });
    ExecAll(l->body, team);
  } else if (const auto* a = s.as<AllocateNode>()) {
    for (State* t : team) As(t, [&] { now_.memory[a->buffer->data.get()] = Allocated(a->buffer); });
    ExecAll(a->body, team);
  } else if (const auto* a = s.as<AssertStmtNode>()) {
    for (State* t : team) As(t, [&] { Check(a); });
    ExecAll(a->body, team);
  } else if (const auto* st = s.as<BufferStoreNode>()) {
    // All threads read before one writes.
    std::vector<Stores> stores;
    for (State* t : team) As(t, [&] { stores.push_back(StoresOf(st)); });
    size_t i = 0;
    for (State* t : team) As(t, [&] { Write(st->buffer, stores[i++]); });
  } else {
    const CallNode* allreduce = AllreduceOf(s);
    if ((allreduce || SyncOf(s)) && team.size() != block_) {
      throw RuntimeError("a barrier stands in a branch or loop that not all threads of the block take: " +
                         std::to_string(team.size()) + " of " + std::to_string(block_));
    }
    if (allreduce) return Allreduce(allreduce, team);
    for (State* t : team) As(t, [&] { Exec(s); });
    if (const CallNode* sync = SyncOf(s); sync && races_) {
      const auto* scope = sync->args.empty() ? nullptr : sync->args[0].as<StringImmNode>();
      races_->Wait(scope ? scope->value.str() : "shared");
    }
  }
}

void Interpreter::Allreduce(const CallNode* call, const Team& team) {
  const ThreadAllreduce all(call);
  if (races_) races_->Wait(kShared);  // its threads exchange values
  const CommReducer reducer = ReducerOf(reduce_, all);
  const size_t n = all.values.size();
  auto set = [&](const Array<Var>& to, const std::vector<Scalar>& values) {
    for (size_t i = 0; i < n; ++i) now_.vars[to[static_cast<int64_t>(i)].get()] = values[i];
  };
  // Threads that differ only in the variables of the reduction are one group.
  std::map<std::vector<int64_t>, std::vector<Scalar>> groups;
  std::vector<std::vector<int64_t>> key_of;
  for (State* t : team) {
    As(t, [&] {
      std::vector<int64_t> key;
      for (const KernelAxis& a : axes_) {
        bool over = false;
        for (const VarNode* v : all.vars) over = over || ThreadAxis(v) == a.axis;
        key.push_back(over ? 0 : now_.vars[a.vars[0]].i);
      }
      key_of.push_back(key);
      auto [it, fresh] = groups.try_emplace(key);
      if (fresh) {
        for (const PrimExpr& e : reducer->identity_element) it->second.push_back(Eval(e, 0));
      }
      if (!Int(all.condition)) return;
      std::vector<Scalar> mine, sum;
      for (const PrimExpr& e : all.values) mine.push_back(Eval(e, 0));
      set(reducer->lhs, it->second);
      set(reducer->rhs, mine);
      for (const PrimExpr& e : reducer->result) sum.push_back(Eval(e, 0));
      it->second = sum;
    });
  }
  if (races_) races_->Wait(kShared);
  RaceFinder* const finder = std::exchange(races_, nullptr);  // the threads of a group write one value
  for (size_t k = 0; k < team.size(); ++k) {
    As(team[k], [&] {
      for (size_t i = 0; i < n; ++i) {
        const BufferLoadNode* at = all.places[i];
        Store(at->buffer, Position(at->buffer, at->indices, 0), groups[key_of[k]][i]);
      }
    });
  }
  races_ = finder;
}

}  // namespace baton::tir::interpreter
