// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/expr.h>
#include <baton/ir/op.h>
#include <baton/ir/progress.h>
#include <baton/ir/transform.h>
#include <baton/runtime/registry.h>

#include <mutex>

#include "ir/pass/internal.h"

namespace baton::transform {

namespace {
thread_local const Because* pending = nullptr;
}
Because::Because(const char* action, std::string_view why) : action(action), why(why), outer_(pending) {
  pending = this;
}
Because::~Because() { pending = outer_; }
const Because* Because::Take() {
  const Because* b = pending;
  pending = nullptr;
  return b;
}
const Because* Because::Pending() { return pending; }

}  // namespace baton::transform

namespace baton::transform::progress {

std::atomic<int> asked{0};
std::atomic<int> watched{0};

namespace {
thread_local Frame* current = nullptr;
}

Frame::Frame(const PassNode* pass, IRModule input)
    : pass(pass), input(std::move(input)), outer(current), whole(this), action("") {
  if (const Because* b = Because::Take()) action = b->action, why = b->why;
  current = this;
}
Frame::Frame(const Frame* whole)
    : pass(whole ? whole->pass : nullptr),
      input(whole ? whole->input : IRModule()),
      outer(current),
      whole(whole ? whole->whole : this),
      action("") {
  current = this;
}
Frame::~Frame() {
  current = outer;
  // The pass around it goes on with its own function.
  if (watched.load(std::memory_order_relaxed) != 0) [[unlikely]]
    NoteFunction(outer ? outer->function : GlobalVar());
}
Frame* Current() { return current; }
Watched::Watched() { watched.fetch_add(1, std::memory_order_relaxed); }
Watched::~Watched() { watched.fetch_sub(1, std::memory_order_relaxed); }

struct Watch::State {
  std::mutex mutex;
  bool asked = false;
  std::string function, expr;
  ObjectRef work;
  State* outer = nullptr;
};
namespace {
// The type is private to Watch, the list to this file.
thread_local void* watching = nullptr;

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

Watch::Watch() : state_(new State) {
  state_->outer = static_cast<State*>(watching);
  watching = state_;
  watched.fetch_add(1, std::memory_order_relaxed);
}

Watch::~Watch() {
  watched.fetch_sub(1, std::memory_order_relaxed);
  if (watching == state_) {
    watching = state_->outer;
  } else {  // one that began later goes on
    auto* s = static_cast<State*>(watching);
    while (s->outer != state_) s = s->outer;
    s->outer = state_->outer;
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

void NoteFunction(const GlobalVar& var) {
  if (current) current->function = var;
  for (auto* s = static_cast<Watch::State*>(watching); s; s = s->outer) {
    std::lock_guard lock(s->mutex);
    s->function = var.defined() ? "@" + var->name_hint.str() : std::string();
  }
}

void NoteExpr(const ObjectRef& expr) {
  for (auto* s = static_cast<Watch::State*>(watching); s; s = s->outer) {
    std::lock_guard lock(s->mutex);
    if (!s->asked) continue;
    s->expr = Describe(expr);
    s->asked = false;
    asked.fetch_sub(1, std::memory_order_relaxed);
  }
}

void NoteWork(const ObjectRef& expr) {
  for (auto* s = static_cast<Watch::State*>(watching); s; s = s->outer) {
    std::lock_guard lock(s->mutex);
    s->work = expr;
  }
}

/// For front ends whose traversals are their own.
BATON_REGISTER_GLOBAL("transform.AtExpr").set_body_typed([](ObjectRef expr) {
  if (asked.load(std::memory_order_relaxed) != 0) NoteExpr(expr);
});

}  // namespace baton::transform::progress
