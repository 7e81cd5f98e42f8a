// SPDX-License-Identifier: Apache-2.0
// The position of a thread within a pass: the pass, the function and, when a watchdog asks, the expression.
#pragma once

#include <baton/ir/module.h>
#include <baton/runtime/interrupt.h>

#include <atomic>
#include <string>

namespace baton::transform::progress {

/// Number of watchdogs that wait for an answer; almost always 0.
BATON_DLL extern std::atomic<int> asked;
/// Number of watchers that need the current function.
BATON_DLL extern std::atomic<int> watched;

/// While it lives, runs record the current function.
struct BATON_DLL Watched {
  Watched();
  ~Watched();
  Watched(const Watched&) = delete;
};

BATON_DLL void NoteFunction(const GlobalVar& var);
BATON_DLL void NoteExpr(const ObjectRef& expr);
/// Null: the evaluation has ended.
BATON_DLL void NoteWork(const ObjectRef& expr);

/// Called by a function pass with the function that it is about to rewrite.
inline void AtFunction(const GlobalVar& var) {
  if (watched.load(std::memory_order_relaxed) != 0) [[unlikely]]
    NoteFunction(var);
}
/// Called by a traversal with the expression that it visits; throws when the user interrupts. The usual cost is a
/// counter and a load of a variable that rarely changes.
inline void AtExpr(const ObjectRef& expr) {
  runtime::PollInterrupt();
  if (asked.load(std::memory_order_relaxed) != 0) [[unlikely]]
    NoteExpr(expr);
}

/// While it lives, the thread processes one expression without visiting others, for example to evaluate it. A watchdog
/// gets its answer without waiting for the next visit.
class WorkAt {
 public:
  explicit WorkAt(const ObjectRef& expr) : noted_(watched.load(std::memory_order_relaxed) != 0) {
    if (noted_) [[unlikely]]
      NoteWork(expr);
  }
  ~WorkAt() {
    if (noted_) [[unlikely]]
      NoteWork(ObjectRef());
  }
  WorkAt(const WorkAt&) = delete;

 private:
  bool noted_;
};

struct WatchState;
/// The watched thread ends: its watchers get no further answers.
void EndThread(WatchState* watching);

/// Lets a watchdog observe another thread. Made and destroyed on the observed thread.
class BATON_DLL Watch {
 public:
  Watch();
  ~Watch();
  Watch(const Watch&) = delete;
  /// Requests the position of the thread; `Answer` has it once the thread visits an expression.
  void Ask();
  /// The function being rewritten; "" if unknown.
  std::string Function() const;
  /// The expression visited since the last Ask, or the one being evaluated; "" if there is none.
  std::string Expr() const;

 private:
  WatchState* state_;
};

}  // namespace baton::transform::progress
