// SPDX-License-Identifier: Apache-2.0
// A run of a pass: the record that instruments receive.
#pragma once

#include <baton/ir/transform.h>

#include <set>
#include <string>

namespace baton::transform {

/// Record of one run of a pass. It lives as long as the run; every hook of an instrument receives it.
struct PassRun {
  PassInfo info;
  IRModule module;                  ///< the input
  IRModule result;                  ///< the output; null until the pass has ended, and if it failed or was skipped
  const PassNode* pass = nullptr;   ///< null where a context's hooks are called by hand
  const PassRun* parent = nullptr;  ///< the run around it on this thread; null: none
  /// On a thread of the pool: the run that started this task, whose own thread waits; else the run itself.
  const PassRun* whole = this;
  GlobalVar function;       ///< being rewritten; set while a watcher exists
  const char* action = "";  ///< what the sequence around it said: "ran" or "inserted"; "" outside of sequences
  std::string why;          ///< and the reason that it gave
  int depth = -1;           ///< of sequences within sequences, from 0; -1 outside of sequences
  int nesting = 0;          ///< runs around it
  const std::set<std::string>* holds = nullptr;  ///< properties that hold before it; only of Scheduled
  mutable bool journaled = false;                ///< its beginning is in the journal

  PassRun() = default;
  PassRun(const PassRun&) = delete;
};

/// The innermost run of this thread, or null.
BATON_DLL const PassRun* CurrentRun();

}  // namespace baton::transform
