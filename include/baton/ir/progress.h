// SPDX-License-Identifier: Apache-2.0
// Where a thread is within a pass: which pass, which function, and, when a watchdog asks, which expression.
#pragma once

#include <baton/ir/module.h>
#include <baton/runtime/interrupt.h>

#include <atomic>
#include <string>

namespace baton::transform::progress {

/// Number of watchdogs that want to know now; almost always 0.
BATON_DLL extern std::atomic<int> asked;
/// Number of watchers that want to know functions.
BATON_DLL extern std::atomic<int> watched;

/// While it lives, functions are noted in runs.
struct BATON_DLL Watched {
  Watched();
  ~Watched();
  Watched(const Watched&) = delete;
};

BATON_DLL void NoteFunction(const GlobalVar& var);
BATON_DLL void NoteExpr(const ObjectRef& expr);
/// Null: the work is done.
BATON_DLL void NoteWork(const ObjectRef& expr);

/// A function pass says which function it is about to rewrite.
inline void AtFunction(const GlobalVar& var) {
  if (watched.load(std::memory_order_relaxed) != 0) [[unlikely]]
    NoteFunction(var);
}
/// A traversal says which expression it visits, and stops when the user wants to: a load of a variable that does not
/// change, and a counter.
inline void AtExpr(const ObjectRef& expr) {
  runtime::PollInterrupt();
  if (asked.load(std::memory_order_relaxed) != 0) [[unlikely]]
    NoteExpr(expr);
}

/// While it lives, the thread works on one expression and visits no other: it is evaluated, say. A watchdog that asks
/// then need not wait.
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
/// The thread of these watchers ends: they see nothing more.
void EndThread(WatchState* watching);

/// What a watchdog sees of another thread. Made and destroyed on the thread that it watches.
class BATON_DLL Watch {
 public:
  Watch();
  ~Watch();
  Watch(const Watch&) = delete;
  /// Asks the thread where it is; `Answer` has it as soon as the thread visits an expression.
  void Ask();
  /// The function that is being rewritten; "" where it is not known.
  std::string Function() const;
  /// The expression visited since the last Ask, or the one that is worked on; "" where there is none.
  std::string Expr() const;

 private:
  WatchState* state_;
};

}  // namespace baton::transform::progress
