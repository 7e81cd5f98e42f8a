// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace baton::rpc {

/// The resources of a session. The supervisor gets it as bytes, from a process that is not confined yet.
struct SessionTerms {
  double wall_seconds = 0;    ///< of the session; 0: any number
  double idle_seconds = 0;    ///< without a call; 0: any number
  double linger_seconds = 0;  ///< without its client
  uint64_t memory_bytes = 0;  ///< private and shared memory, and files that have no name any more; 0: any number
  uint64_t disk_bytes = 0;    ///< of its files
  uint64_t files = 0;         ///< names in its folder
  uint64_t threads = 0;
  uint64_t cpu_seconds = 0;  ///< 0: any number
  bool confined = false;
  bool devices = true;  ///< its policy lets it use devices other than the CPU
};

/// A session's record for its supervisor, in memory of both. A session can deceive here: it gains what its client has
/// by sending a call now and then.
struct SessionPulse {
  std::atomic<int64_t> waits_since_ms{0};  ///< for its client, on the monotonic clock; 0: it computes
};

}  // namespace baton::rpc
