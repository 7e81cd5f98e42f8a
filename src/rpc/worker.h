// SPDX-License-Identifier: Apache-2.0
// A session on the server: what its client may do, and the processes around it.
#pragma once

#include <baton/runtime/packed_func.h>

#include <atomic>
#include <string>
#include <vector>

#include "rpc/channel.h"

namespace baton::rpc {

/// What a client may do.
struct Policy {
  bool trusted = false;            ///< every registered function
  std::vector<std::string> allow;  ///< registered functions by name; `*` at the end: any that begin so
  bool load = true;                ///< modules of its uploads
  bool Allows(std::string_view name) const;
};

/// What the processes of a server share: how many sessions there are, and which processes serve one. Each other process
/// waits for its peer to prove itself.
struct Places {
  std::atomic<int> taken;
  std::atomic<char> serves[1];  ///< as many as processes at once
};

struct ServerOptions {
  std::string policy;  ///< "trusted", "session"; empty: trusted for the own user, else as the key says
  std::vector<std::string> allow;
  bool load = true;
  int max_sessions = 256;
  double idle_seconds = 600;                   ///< a session without a call for so long ends
  uint64_t disk_bytes = uint64_t(4) << 30;     ///< of the files of a session
  uint64_t memory_bytes = uint64_t(64) << 30;  ///< of the arrays that a session asks for
  std::string module_path;                     ///< the module that `system_lib` gives
  bool quiet = true;                           ///< no audit lines
  uint64_t cpu_seconds = 0;                    ///< of a session's processor; 0: any number
  bool sandbox = false;                        ///< confine sessions that are not trusted
  int lifeline = -1;                           ///< the server ends when this descriptor does
  int door = -1;                               ///< a file with the current lease; sessions of no other are served
  Places* places = nullptr;                    ///< of the server, and which of them this process has
  int place = 0;
  runtime::PackedFunc fork;  ///< how to fork; null: the system's
};

/// Serves one session on a connection until it ends. `folder` is its folder for files, which is there.
void ServeSession(std::unique_ptr<Channel> channel, const ServerOptions& options, const std::string& folder);
/// Accepts connections, each served by a process of its own. Returns when told to end: by SIGTERM, by its lifeline.
void ServeForever(Listener* listener, const ServerOptions& options);
/// A new folder for a server's files; those of servers that were killed are removed.
std::string MakeServerFolder();
void RemoveFolder(const std::string& path) noexcept;
/// Confines this process to a session's folder and limits. False when the system cannot.
bool EnterSandbox(const std::string& folder, const ServerOptions& options);
bool SandboxWorks();

}  // namespace baton::rpc
