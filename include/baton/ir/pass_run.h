// SPDX-License-Identifier: Apache-2.0
// A run of a pass: the record that instruments are handed.
#pragma once

#include <baton/ir/transform.h>

#include <set>
#include <string>

namespace baton::transform {

/// What is known of one run of a pass: it lives as long as the run does, and instruments get it at every point.
struct PassRun {
  PassInfo info;
  IRModule module;                 ///< what the pass is given
  IRModule result;                 ///< what it made; null before it has ended, and where it failed or was skipped
  const PassNode* pass = nullptr;  ///< null where a context's hooks are called by hand
  const PassRun* parent = nullptr;  ///< the run around it on this thread; null: none
  /// The run of which this is a part on a thread of the pool, whose thread waits meanwhile; else the run itself.
  const PassRun* whole = this;
  GlobalVar function;        ///< that is being rewritten, as long as a watcher is there
  const char* action = "";   ///< what the sequence around it said: "ran" or "inserted"; "" outside of sequences
  std::string why;           ///< and the reason that it gave
  int depth = -1;            ///< of sequences within sequences, from 0; -1 outside of sequences
  int nesting = 0;           ///< runs around it
  const std::set<std::string>* holds = nullptr;  ///< properties that hold before it; only of Scheduled
  mutable bool journaled = false;                ///< the journal has its beginning

  PassRun() = default;
  PassRun(const PassRun&) = delete;
};

/// The innermost run of this thread, or null.
BATON_DLL const PassRun* CurrentRun();

}  // namespace baton::transform
