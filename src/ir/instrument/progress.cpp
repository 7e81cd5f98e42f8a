// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/expr.h>
#include <baton/ir/op.h>
#include <baton/ir/progress.h>
#include <baton/ir/transform.h>
#include <baton/runtime/registry.h>

#include <mutex>

#include "ir/thread_state.h"

namespace baton::transform {

RunScope::RunScope(PassRun* run) : outer_(ThreadState::Get().run) {
  run->parent = outer_;
  run->nesting = outer_ ? outer_->nesting + 1 : run->whole->nesting;
  ThreadState::Get().run = run;
}
RunScope::~RunScope() {
  ThreadState::Get().run = outer_;
  // The enclosing pass continues with its own function.
  if (progress::watched.load(std::memory_order_relaxed) != 0) [[unlikely]]
    progress::NoteFunction(outer_ ? outer_->function : GlobalVar());
}
const PassRun* CurrentRun() { return ThreadState::Get().run; }

}  // namespace baton::transform

namespace baton::transform::progress {

std::atomic<int> asked{0};
std::atomic<int> watched{0};

Watched::Watched() { watched.fetch_add(1, std::memory_order_relaxed); }
Watched::~Watched() { watched.fetch_sub(1, std::memory_order_relaxed); }

struct WatchState {
  std::mutex mutex;
  bool asked = false, ended = false;
  std::string function, expr;
  ObjectRef work;
  WatchState* outer = nullptr;
};
namespace {

/// "call of nn.conv2d at conv1 (Conv)": kind, operator and place, as far as they are known.
std::string Describe(const ObjectRef& expr) {
  if (!expr.defined()) return "a null expression";
  std::string text = expr.get()->GetTypeKey();
  const auto* info = runtime::TypeInfo::Get(expr.get()->type_index());
  if (const auto* f = info ? info->Find("op") : nullptr) {  // calls of every layer
    Any op = f->Get(expr.get());
    if (op.Is<RelayExpr>() && !op.is_null()) {
      if (const auto* o = op.As<RelayExpr>().as<OpNode>()) text = "call of " + o->name.str();
    }
  }
  if (const auto* e = expr.as<BaseExprNode>(); e && e->span.defined() && e->span->source_name.defined()) {
    text += " at " + e->span->source_name->name.str();
    if (e->span->line > 0) text += ":" + std::to_string(e->span->line);
  }
  return text;
}
}  // namespace

Watch::Watch() : state_(new WatchState) {
  state_->outer = ThreadState::Get().watching;
  ThreadState::Get().watching = state_;
  watched.fetch_add(1, std::memory_order_relaxed);
}

Watch::~Watch() {
  watched.fetch_sub(1, std::memory_order_relaxed);
  bool ended;
  {
    std::lock_guard lock(state_->mutex);
    ended = state_->ended;
  }
  if (!ended) {  // on its thread: those that began later go on
    WatchState** at = &ThreadState::Get().watching;
    while (*at != state_) at = &(*at)->outer;
    *at = state_->outer;
  }
  if (state_->asked) asked.fetch_sub(1, std::memory_order_relaxed);
  delete state_;
}

void Watch::Ask() {
  std::lock_guard lock(state_->mutex);
  if (!state_->asked) asked.fetch_add(1, std::memory_order_relaxed);
  state_->asked = true;
  state_->expr.clear();
}

std::string Watch::Function() const {
  std::lock_guard lock(state_->mutex);
  return state_->function;
}

std::string Watch::Expr() const {
  std::lock_guard lock(state_->mutex);
  return state_->expr.empty() && state_->work.defined() ? Describe(state_->work) : state_->expr;
}

void EndThread(WatchState* watching) {
  for (WatchState* s = watching; s;) {
    WatchState* outer = s->outer;
    std::lock_guard lock(s->mutex);
    s->ended = true;
    s = outer;
  }
}

void NoteFunction(const GlobalVar& var) {
  if (PassRun* run = ThreadState::Get().run) run->function = var;
  for (auto* s = ThreadState::Get().watching; s; s = s->outer) {
    std::lock_guard lock(s->mutex);
    s->function = var.defined() ? "@" + var->name_hint.str() : std::string();
  }
}

void NoteExpr(const ObjectRef& expr) {
  for (auto* s = ThreadState::Get().watching; s; s = s->outer) {
    std::lock_guard lock(s->mutex);
    if (!s->asked) continue;
    s->expr = Describe(expr);
    s->asked = false;
    asked.fetch_sub(1, std::memory_order_relaxed);
  }
}

void NoteWork(const ObjectRef& expr) {
  for (auto* s = ThreadState::Get().watching; s; s = s->outer) {
    std::lock_guard lock(s->mutex);
    s->work = expr;
  }
}

/// For front ends with their own traversals.
BATON_REGISTER_GLOBAL("transform.AtExpr").set_body_typed([](ObjectRef expr) {
  if (asked.load(std::memory_order_relaxed) != 0) NoteExpr(expr);
});

}  // namespace baton::transform::progress
