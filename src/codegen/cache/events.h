// SPDX-License-Identifier: Apache-2.0
// What became of look-ups: in this process, and in the log beside the entries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/cache/directory.h"

namespace baton::codegen::cache {

/// The log's file; NAME.old is the one before it.
inline constexpr const char* kLog = "log";

/// The most bytes of a line of the log.
inline constexpr size_t kMostLine = 1024;

struct Event {
  std::string what;    ///< hit, miss, kept, not kept, evicted
  std::string reason;  ///< of a miss, a word
  std::string why;     ///< the same in a sentence
  std::string name;    ///< of the entry
  std::string functions;
};

/// Notes an event; `folder` may be null. `most`: bytes of the log.
void Note(const Event& event, const Directory* folder, uint64_t most);
/// One line of JSON for each of the last events of this process.
std::vector<std::string> Events();
/// The lines of the log, the oldest first.
std::vector<std::string> LogLines(const Directory& folder);
/// Whether the last that the log says of an entry is that it was evicted.
bool WasEvicted(const Directory& folder, std::string_view name);

}  // namespace baton::codegen::cache
