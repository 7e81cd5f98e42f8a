// SPDX-License-Identifier: Apache-2.0
// What the supervisor and the processes of sessions tell each other, over a socket pair of theirs.
#pragma once

#include <cstdint>
#include <string>

#include "rpc/channel.h"
#include "rpc/confine/descriptor.h"

namespace baton::rpc {

struct ControlMessage {
  enum Kind : int32_t {
    kConnection,  ///< a connection, in `fd`; of a passage for the session of `place`, whose client has taken `taken`
                  ///< bytes
    kFront,       ///< `fd` is a pidfd of the process that has the connection from here on
    kConfined,    ///< the session is confined; `fd` tells of calls that need consent, `text` is a SessionTerms
    kBegins,      ///< the session begins: `text` is a SessionTerms, then its policy, a line end, its peer
    kEnds,        ///< `text` is what the session says of itself
    kRefused,     ///< `text` says why a peer was refused
  };
  Kind kind = kConnection;
  int place = -1;
  uint64_t taken = 0;
  std::string text;
  Descriptor fd;
};

/// Sends without waiting. `fd` is duplicated on its way, and stays the sender's. False when the other end is gone or
/// takes no more.
bool SendControl(int control, ControlMessage::Kind kind, std::string_view text = {}, int fd = -1, uint64_t taken = 0,
                 int place = -1);
/// A message that has come. False when there is none, or the other end is gone.
bool ReceiveControl(int control, ControlMessage* message);
/// The next connection of kConnection and what its client has taken; a newer one replaces an older one that waits.
/// Throws SessionLost at the deadline, when the server is gone, or when the session was told to end.
int TakeConnection(int control, uint64_t* taken, Deadline deadline);

}  // namespace baton::rpc
