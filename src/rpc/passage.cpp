// SPDX-License-Identifier: Apache-2.0
// A connection in place of one that was lost. The process that proved its peer hands one end of a socket pair to the
// process of the session, and passes bytes between it and the connection, whose keys it alone has.
#include <baton/runtime/map.h>
#include <baton/support/sha256.h>
#include <baton/support/text.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "rpc/control.h"
#include "rpc/endpoint.h"
#include "rpc/errors.h"
#include "rpc/places.h"
#include "rpc/worker.h"

namespace baton::rpc {
using namespace runtime;  // NOLINT
namespace {

std::atomic<int> session_connection{-1};
volatile std::sig_atomic_t session_ends = 0;
constexpr uint32_t kMostGreeting = 64 << 10;
constexpr double kGreetSeconds = 10;

/// Copies from one channel to the other until either ends.
void Pass(Channel* from, Channel* to) {
  try {
    std::string piece(128 << 10, '\0');
    for (;;) {
      const size_t n = from->Read(piece.data(), piece.size(), Deadline::Never());
      if (n == 0) break;
      iovec part{piece.data(), n};
      to->Write(&part, 1, Deadline::Never());
    }
  } catch (const std::exception&) {
    // It was cut.
  }
  from->Shutdown();
  to->Shutdown();
}

}  // namespace

void PassBetween(Channel* one, Channel* other) {
  std::thread up([&] { Pass(one, other); });
  Pass(other, one);
  up.join();
}

void SetSessionConnection(int fd) noexcept { session_connection = fd; }

bool SessionEnds() noexcept { return session_ends != 0; }

void EndSession() noexcept {
  session_ends = 1;
  shutdown(session_connection, SHUT_RDWR);
}

std::array<unsigned char, 32> SessionName(std::string_view session, const Channel& channel) {
  const std::string text = support::Cat(session, "\n", channel.key_id);
  const auto digest = support::Sha256Of(text.data(), text.size());
  std::array<unsigned char, 32> out;
  std::memcpy(out.data(), digest.data(), out.size());
  return out;
}

std::string ReadFirst(Channel* channel, Deadline deadline) {
  std::string bytes(kHeaderBytes, '\0');
  size_t have = 0;
  for (size_t want = kHeaderBytes; have < want;) {
    const size_t n = channel->Read(bytes.data() + have, want - have, deadline);
    if (n == 0) break;
    have += n;
    if (have != kHeaderBytes || want != kHeaderBytes) continue;
    FrameHeader h;
    try {
      h = DecodeHeader(reinterpret_cast<const unsigned char*>(bytes.data()));
    } catch (const Error&) {
      break;  // the session says what is wrong with it
    }
    if (h.type != FrameType::kHello || h.length > kMostGreeting) break;
    want += h.length;
    bytes.resize(want);
  }
  bytes.resize(have);
  // Other bytes are read as far as they are here: a connection that is closed with bytes unread takes the answer
  // along.
  if (have == kHeaderBytes && channel->Readable()) {
    bytes.resize(have + kMostGreeting);
    bytes.resize(have + channel->Read(bytes.data() + have, kMostGreeting, deadline));
  }
  return bytes;
}

/// Says the error in flight in place of a greeting.
static void Refuse(Channel* channel) {
  const std::string why = WriteError();
  unsigned char head[kHeaderBytes];
  EncodeHeader({static_cast<uint32_t>(why.size()), FrameType::kError, 0, 0, 0, 0}, head);
  iovec parts[2] = {{head, kHeaderBytes}, {const_cast<char*>(why.data()), why.size()}};
  channel->Write(parts, 2, Deadline::In(1));
  channel->Shutdown();
}

/// Leaves the table of processes: this one serves no session.
static void LeavePlaces(Channel* channel, const ServerOptions& options) {
  options.places->at[options.place].work = Place::kPassage;
  if (options.front >= 0) shutdown(options.front, SHUT_RDWR);  // there is no session in the process before this one
  SetSessionConnection(channel->fd());
  munmap(options.places, PlacesBytes(options.places->count));
  prctl(PR_SET_NAME, "baton-passage");
}

bool PassThrough(Channel* channel, const std::string& first, const ServerOptions& options) {
  if (first.size() <= kHeaderBytes) return false;
  std::string url;
  Map<Any, Any> said;
  try {
    const Any greeting = ReadHello(first.substr(kHeaderBytes));
    url = TextOption(greeting, "through");
    if (url.empty()) return false;
    for (const auto& [key, value] : greeting.As<Map<Any, Any>>()) {
      if (key.As<std::string>() != "through") said.Set(key, value);
    }
  } catch (const std::exception&) {
    return false;
  }
  LeavePlaces(channel, options);
  try {
    if (options.policy != "trusted" || options.door >= 0) {
      Throw(kDenied,
            "this server opens sessions with other servers for clients that it trusts, and when it is not leased out");
    }
    const Address address = Address::Parse(url);
    if (address.kind != Address::kTls && address.kind != Address::kUnix) {
      Throw("ValueError",
            "a server opens sessions with others at tls://host:port and unix:/path");  // and starts no programs
    }
    const auto further = Connect(address, Deadline::In(kGreetSeconds));
    WriteGreeting(further.get(), said, Deadline::In(kGreetSeconds));
    PassBetween(channel, further.get());
  } catch (...) {
    Refuse(channel);
  }
  return true;
}

bool PassOn(Channel* channel, const std::string& first, const ServerOptions& options) {
  if (first.size() <= kHeaderBytes) return false;
  std::string session;
  uint64_t taken = 0;
  try {
    const Any said = ReadHello(first.substr(kHeaderBytes));
    session = TextOption(said, "resume");
    if (session.empty()) return false;
    taken = static_cast<uint64_t>(NumberOption(said, "taken"));
  } catch (const std::exception&) {
    return false;
  }
  Places* places = options.places;
  const auto name = SessionName(session, *channel);
  int found = -1;
  for (int i = 0; i < places->count; ++i) {
    const bool same = SameSecret(places->at[i].name, name.data(), name.size());
    if (same && places->at[i].resumable) found = i;
  }
  LeavePlaces(channel, options);
  int ends[2];
  std::unique_ptr<Channel> inner;
  if (found >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0) {
    SendControl(options.control, ControlMessage::kConnection, {}, ends[1], taken, found);
    close(ends[1]);
    inner = ChannelOfSocket(ends[0]);
  }
  // The first that comes of it is the session's greeting, unless the session is not there.
  unsigned char greeting[kHeaderBytes];
  if (!inner || !inner->ReadAll(greeting, sizeof greeting, Deadline::Never())) {
    try {
      Throw(kSessionLost, kGone);
    } catch (...) {
      Refuse(channel);
    }
    return true;
  }
  iovec part{greeting, sizeof greeting};
  channel->Write(&part, 1, Deadline::In(kGreetSeconds));
  PassBetween(channel, inner.get());
  return true;
}

}  // namespace baton::rpc
