// SPDX-License-Identifier: Apache-2.0
// A session on the server: what its client may do, and the processes around it.
#pragma once

#include <baton/runtime/packed_func.h>

#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "rpc/channel.h"

namespace baton::rpc {

/// What the processes of a server share: how many sessions there are, and what each process does.
struct Place {
  /// Its peer has not proved itself; serves a session; passes bytes of a session on; waits for a connection.
  enum Work : char { kUnknown, kSession, kPassage, kWarm };
  std::atomic<char> work;
  std::atomic<char> resumable;
  unsigned char name[32];  ///< SHA-256 of what names the session, and of its peer
};
struct Places {
  std::atomic<int> taken;
  int count;
  Place at[1];  ///< as many as processes at once
};
inline constexpr size_t kBegunBytes = sizeof(std::atomic<int>);  // a page of its own
inline size_t PlacesBytes(int count) { return sizeof(Places) + static_cast<size_t>(count) * sizeof(Place); }

struct ServerOptions {
  std::string policy;  ///< "trusted", "session"; empty: trusted for the own user, else as the key says
  std::vector<std::string> allow;
  Load load = Load::kAny;
  std::vector<std::string> signers;  ///< public keys, of what is loaded as signed
  std::vector<std::string> devices;  ///< that a session may use; none: any
  double wall_seconds = 0;           ///< of a session; 0: any number
  int max_sessions = 256;
  int warm = 4;                                ///< processes that wait for a connection
  double idle_seconds = 600;                   ///< a session without a call for so long ends
  uint64_t disk_bytes = uint64_t(4) << 30;     ///< of the files of a session
  uint64_t memory_bytes = uint64_t(64) << 30;  ///< of the arrays that a session asks for
  std::string module_path;                     ///< the module that `system_lib` gives
  bool quiet = true;                           ///< no audit lines
  uint64_t cpu_seconds = 0;                    ///< of a session's processor; 0: any number
  bool sandbox = false;                        ///< confine sessions that are not trusted
  int lifeline = -1;                           ///< the server ends when this descriptor does
  int door = -1;                               ///< a file with the current lease; sessions of no other are served
  std::atomic<int>* begun = nullptr;           ///< how many sessions there were, for what registers the server
  Places* places = nullptr;                    ///< of the server, and which of them this process has
  int place = 0;
  int control = -1;          ///< where connections in place of a lost one come from
  int front = -1;            ///< of a front: where the process of the session listens
  std::string first;         ///< bytes of the connection that were read already
  runtime::PackedFunc fork;  ///< how to fork; null: the system's
};

/// Serves one session on a connection until it ends. `folder` is its folder for files, which is there.
void ServeSession(std::unique_ptr<Channel> channel, const ServerOptions& options, const std::string& folder);
/// Ends the session of this process; for a handler of signals.
void EndSession() noexcept;
/// The connection that EndSession ends.
void SetSessionConnection(int fd) noexcept;
/// What a session is known by to its server.
std::array<unsigned char, 32> SessionName(std::string_view session, const Channel& channel);
/// The first frame of a connection, as far as it is a greeting.
std::string ReadFirst(Channel* channel, Deadline deadline);
/// Where the greeting asks for a session that lost its connection: has this one handed over, and passes its bytes on
/// until either side ends. False for any other greeting.
bool PassOn(Channel* channel, const std::string& first, const ServerOptions& options);
/// Where the greeting asks for a session with another server: opens it from here and passes its bytes on until either
/// side ends. False for any other greeting.
bool PassThrough(Channel* channel, const std::string& first, const ServerOptions& options);
/// Copies both ways until either side ends.
void PassBetween(Channel* one, Channel* other);
/// Makes sure of the peer of a connection, and sets what it may do. Does not come back where the connection is one in
/// place of a lost one.
using Prover = std::function<std::unique_ptr<Channel>(int fd, ServerOptions* options)>;
/// Has another process prove the peer. Gives where the bytes of the connection come, in plain; ends this process with
/// that one if there is no session.
std::unique_ptr<Channel> OpenFront(const Prover& prove, int fd, ServerOptions* options);
/// A line of the audit: a peer was refused.
void SayRefused(const std::exception& error, const ServerOptions& options);
/// A connection that was handed over, and what its client has taken; waits until the deadline.
int TakeConnection(int control, uint64_t* taken, Deadline deadline);
/// Sends a descriptor, and what its client has taken, to another process; `place`: of the session that it is for.
bool HandOver(int control, int fd, uint64_t taken, int place);
/// What came that way, if something did. Throws SessionLost when the other process is gone.
bool ReceiveHandedOver(int control, int* fd, uint64_t* taken, int* place);
/// Accepts connections, each served by a process of its own. Returns when told to end: by SIGTERM, by its lifeline.
void ServeForever(Listener* listener, const ServerOptions& options);
/// A new folder for a server's files; those of servers that were killed are removed.
std::string MakeServerFolder();
void RemoveFolder(const std::string& path) noexcept;
/// Confines this process to a session's folder and limits. False when the system cannot.
bool EnterSandbox(const std::string& folder, const ServerOptions& options);
/// Leaves a front what it needs: no files, programs, sockets or processes.
void ConfineFront();
bool SandboxWorks();

}  // namespace baton::rpc
