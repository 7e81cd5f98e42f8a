// SPDX-License-Identifier: Apache-2.0
// The memory that the processes of a server share: what each of them does, and how many sessions there are.
#pragma once

#include <atomic>
#include <cstddef>
#include <string_view>

#include "rpc/worker.h"

namespace baton::rpc {

/// The shared state of a server's processes: how many sessions there are, and what each process does.
struct Place {
  /// Its peer has not proved itself; serves a session; passes bytes of a session on; waits for a connection.
  enum Work : char { kUnknown, kSession, kPassage, kWarm };
  std::atomic<char> work;
  std::atomic<char> resumable;
  unsigned char name[32];  ///< SHA-256 of what names the session, and of its peer
  unsigned char key[32];   ///< SHA-256 of the key that its peer proved; of a token, the key that it was made of
};
struct Places {
  std::atomic<int> taken;
  int count;
  Place at[1];  ///< as many as processes at once
};
inline size_t PlacesBytes(int count) { return sizeof(Places) + static_cast<size_t>(count) * sizeof(Place); }

/// The shared state of a server and the process that registers it with a tracker.
struct Census {
  std::atomic<int> begun;   ///< sessions so far
  std::atomic<int> active;  ///< sessions now
  std::atomic<int> evict;   ///< counts how often all sessions were to end; a SIGCHLD wakes the supervisor
};

/// Zeros that this process and those that it forks read and write.
void* SharedMemory(size_t bytes);

/// Counts the session of this process. Throws where the server has too many, or too many of this key. `name`: what a
/// client says that comes back after a lost connection; empty: none does.
void TakePlace(const ServerOptions& options, const Channel& channel, std::string_view name);
/// Gives up all of that memory but the page of this process's own pulse; null where there is none.
SessionPulse* LeaveSharedMemory(const ServerOptions& options);

}  // namespace baton::rpc
