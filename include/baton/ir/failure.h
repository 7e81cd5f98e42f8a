// SPDX-License-Identifier: Apache-2.0
// What failed, for those who keep it (capsules), and a journal of what runs, for processes that may die of it.
#pragma once

#include <baton/ir/module.h>

#include <atomic>
#include <string>
#include <string_view>

namespace baton::transform {
class PassInfo;
}  // namespace baton::transform

namespace baton::transform::failure {

/// Work on a module beyond passes that a global function of this name does: compiling it, making code of it. Where an
/// exception leaves the block while somebody records, what is needed to do it again is kept.
class BATON_DLL Entry {
 public:
  Entry(const char* function, IRModule mod, ObjectRef target, std::string argument = {});
  ~Entry();
  Entry(const Entry&) = delete;

 private:
  const char* function_;
  IRModule mod_;
  ObjectRef target_;
  std::string argument_;
  ObjectRef context_;
  int uncaught_;
  bool journaled_;
};

/// An instrument or the verifier threw around this pass; call inside `catch`.
BATON_DLL void NoteRejected(const PassInfo& info);

/// Nonzero while a journal is kept or a stop is set.
BATON_DLL extern std::atomic<int> journaling;
BATON_DLL void Begin(std::string_view what, std::string_view name);
/// What began last on this thread ends; by an exception, it stands open: whoever catches it goes on less deep.
BATON_DLL void End();
BATON_DLL void LeaveOpen();

}  // namespace baton::transform::failure
