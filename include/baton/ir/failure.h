// SPDX-License-Identifier: Apache-2.0
// Records of failures, which capsules are made of, and a journal of running passes, which survives a crash of the
// process.
#pragma once

#include <baton/ir/module.h>

#include <atomic>
#include <string>
#include <string_view>

namespace baton::transform {
class PassInfo;
}  // namespace baton::transform

namespace baton::transform::failure {

/// A step other than a pass that a global function of this name performs on a module, such as compilation or code
/// generation. If an exception leaves the block while recording is on, the inputs needed to repeat the step are kept.
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

/// A global function failed on these arguments, from which no module was made; call inside `catch`.
BATON_DLL void NoteImport(const char* function, Array<Any> arguments);

/// Nonzero while a journal is kept or a stop point is set.
BATON_DLL extern std::atomic<int> journaling;
BATON_DLL void Begin(std::string_view what, std::string_view name);
/// Ends the innermost entry of this thread. LeaveOpen ends it on an exception: its record stays open.
BATON_DLL void End();
BATON_DLL void LeaveOpen();

}  // namespace baton::transform::failure
