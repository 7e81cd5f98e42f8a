// SPDX-License-Identifier: Apache-2.0
// The thread-local state of this layer.
#pragma once

#include <baton/ir/pass_run.h>
#include <baton/ir/target.h>

#include <memory>
#include <vector>

namespace baton::transform {

class Inherited;
class RewriteScope;
namespace progress {
struct WatchState;
}

/// A context of a thread's stack.
struct ContextEntry {
  PassContext ctx;
  std::shared_ptr<Inherited> inherited;  ///< instruments of the contexts around it that observe; may be null
  bool entered = false;                  ///< not only made current
};

/// The contexts of a thread and its position in them. The only thread-local of src/ir.
struct ThreadState {
  PassContext fallback;  ///< the context of a thread that entered none
  std::vector<ContextEntry> contexts;
  int entered = 0;  ///< of the contexts, those that were entered and not only made current
  std::vector<Target> targets;
  PassRun* run = nullptr;                    ///< the innermost pass
  RewriteScope* rewrites = nullptr;          ///< counts rewrites
  progress::WatchState* watching = nullptr;  ///< the watchers of this thread, the last first
  ObjectRef timing;                          ///< the timing instrument that was made last
  static ThreadState& Get();
  /// A thread may end without leaving its contexts; they are then removed.
  void GiveBack();
  ~ThreadState();
};

/// Makes a run the innermost one of this thread.
class RunScope {
 public:
  explicit RunScope(PassRun* run);
  ~RunScope();
  RunScope(const RunScope&) = delete;

 private:
  PassRun* outer_;
};

}  // namespace baton::transform
