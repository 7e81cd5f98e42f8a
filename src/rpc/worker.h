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
#include "rpc/confine/terms.h"

namespace baton::rpc {

struct Census;
struct Places;

struct ServerOptions {
  std::string policy;  ///< "trusted", "session"; empty: trusted for the own user, else as the key says
  std::vector<std::string> allow;
  Load load = Load::kAny;
  std::vector<std::string> signers;  ///< public keys, of what is loaded as signed
  std::vector<std::string> devices;  ///< that a session may use; none: any
  double wall_seconds = 0;           ///< of a session; 0: any number
  int max_sessions = 256;
  int key_sessions = 0;                     ///< of one key; 0: three quarters of all
  int warm = 4;                             ///< processes that wait for a connection
  double idle_seconds = 600;                ///< a session without a call for so long ends
  uint64_t disk_bytes = uint64_t(4) << 30;  ///< of the files of a session
  uint64_t memory_bytes = 0;                ///< of a session; 0: half of the machine's, in all
  uint64_t files = 10000;                   ///< names in the folder of a session that is confined
  uint64_t threads = 512;                   ///< of a session that is confined
  std::string module_path;                  ///< the module that `system_lib` gives
  bool quiet = true;                        ///< no audit lines
  uint64_t cpu_seconds = 0;                 ///< of a session's processor; 0: any number
  bool sandbox = false;                     ///< confine sessions that are not trusted
  int lifeline = -1;                        ///< the server ends when this descriptor does
  int door = -1;                            ///< a file with the current lease; sessions of no other are served
  Census* census = nullptr;                 ///< for the process that registers the server
  SessionPulse* pulses = nullptr;           ///< a page each place; null: no supervisor looks at them
  Places* places = nullptr;                 ///< of the server, and which of them this process has
  int place = 0;
  int control = -1;          ///< where connections in place of a lost one come from
  int front = -1;            ///< of a front: where the process of the session listens
  std::string first;         ///< bytes of the connection that were read already
  runtime::PackedFunc fork;  ///< how to fork; null: the system's
};

/// Folder for temporary files of this user.
std::string TemporaryFolder();
/// A new folder for a server's files; those of servers that were killed are removed.
std::string MakeServerFolder();
/// Has OpenSSL read its files, which a confined process cannot.
void LoadVerifier();
/// The process of a session, from its fork on: waits for a connection, proves the peer, serves it. `parent` is the
/// supervisor, `folder` where its files will be.
[[noreturn]] void RunWorker(Listener* listener, const ServerOptions& options, const std::string& folder, int parent,
                            int output);
/// The same for a session on two descriptors.
[[noreturn]] void RunPipeWorker(int in, int out, const ServerOptions& options, const std::string& folder, int parent,
                                int output);
/// The machine's resources for a session.
SessionTerms TermsOf(const ServerOptions& options);
/// The memory of both in which a session writes its pulse.
inline constexpr size_t kPulseBytes = 4096;
inline SessionPulse* PulseOf(SessionPulse* pulses, int place) {
  return reinterpret_cast<SessionPulse*>(reinterpret_cast<char*>(pulses) + static_cast<size_t>(place) * kPulseBytes);
}

/// Serves one session on a connection until it ends. `folder` is its folder for files, which is there.
void ServeSession(std::unique_ptr<Channel> channel, const ServerOptions& options, const std::string& folder);
/// Ends the session of this process; for a handler of signals.
void EndSession() noexcept;
/// Whether EndSession was called.
bool SessionEnds() noexcept;
/// The connection that EndSession ends.
void SetSessionConnection(int fd) noexcept;
/// The identity of a session for its server.
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
/// Accepts connections, each served by a separate process. Returns when told to end: by SIGTERM, by its lifeline.
void ServeForever(Listener* listener, const ServerOptions& options);
/// Serves one session, in a separate, confined process, on two descriptors. Returns when it is over.
void ServeOne(int in, int out, const ServerOptions& options);
}  // namespace baton::rpc
