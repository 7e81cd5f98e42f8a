// SPDX-License-Identifier: Apache-2.0
// Where a thread is within a pass: which pass, which function, and, when a watchdog asks, which expression.
#pragma once

#include <baton/ir/module.h>
#include <baton/runtime/interrupt.h>

#include <atomic>
#include <string>

namespace baton::transform {
class PassNode;
}  // namespace baton::transform

namespace baton::transform::progress {

/// A pass that runs on this thread; frames nest as passes do. Lives on the stack of Pass::operator().
struct BATON_DLL Frame {
  Frame(const PassNode* pass, IRModule input);
  /// On a thread of the pool: a part of the work of `whole`, whose thread waits meanwhile. Null: of no pass.
  explicit Frame(const Frame* whole);
  ~Frame();
  Frame(const Frame&) = delete;
  const PassNode* pass;
  IRModule input;
  Frame* outer;
  GlobalVar function;  ///< that is being rewritten, as long as a watcher is there
  const Frame* whole;  ///< itself, or what it is a part of
  const char* action;  ///< what the sequence said of it: "ran" or "inserted"; "" outside of sequences
  std::string why;     ///< and the reason that it gave
};
/// The innermost pass of this thread, or null.
BATON_DLL Frame* Current();

/// Number of watchdogs that want to know now; almost always 0.
BATON_DLL extern std::atomic<int> asked;
/// Number of watchers that want to know functions.
BATON_DLL extern std::atomic<int> watched;

/// While it lives, functions are noted in frames.
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
  struct State;
  friend void NoteFunction(const GlobalVar& var);
  friend void NoteExpr(const ObjectRef& expr);
  friend void NoteWork(const ObjectRef& expr);
  State* state_;
};

}  // namespace baton::transform::progress
