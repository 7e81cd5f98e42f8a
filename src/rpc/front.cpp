// SPDX-License-Identifier: Apache-2.0
// The process that has the keys. That of a confined session forks it before a byte of the connection is read: it reads
// the keys, proves the peer, says what the peer may do, and passes bytes from there on. So what a hostile module could
// find in its own process is neither a key of the server nor one of its connection.
#include <baton/runtime/array.h>
#include <baton/runtime/map.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "rpc/confine/confine.h"
#include "rpc/control.h"
#include "rpc/endpoint.h"
#include "rpc/errors.h"
#include "rpc/worker.h"

namespace baton::rpc {
using namespace runtime;  // NOLINT
namespace {

constexpr int kLastSeconds = 3;
constexpr double kProofSeconds = 6;  // of the front: a handshake, a greeting and all between

Array<Any> ListOf(const std::vector<std::string>& names) {
  Array<Any> out;
  for (const std::string& one : names) out.push_back(Any(one));
  return out;
}

std::vector<std::string> NamesOf(const Any& list) {
  std::vector<std::string> out;
  for (const Any& one : list.As<Array<Any>>()) out.push_back(one.As<std::string>());
  return out;
}

/// The facts of its peer for the process of a session.
Map<Any, Any> Said(const Channel& channel, const ServerOptions& o) {
  Map<Any, Any> said;
  const auto number = [&said](const char* name, uint64_t value) {
    said.Set(Any(name), Any(static_cast<int64_t>(value)));
  };
  said.Set(Any("peer"), Any(channel.peer));
  said.Set(Any("key_id"), Any(channel.key_id));
  said.Set(Any("policy"), Any(o.policy));
  said.Set(Any("allow"), Any(ListOf(o.allow)));
  said.Set(Any("devices"), Any(ListOf(o.devices)));
  said.Set(Any("wall"), Any(o.wall_seconds));
  number("load", static_cast<uint64_t>(o.load));
  number("memory", o.memory_bytes);
  number("disk", o.disk_bytes);
  number("cpu", o.cpu_seconds);
  return said;
}

void Take(const Any& said, Channel* channel, ServerOptions* o) {
  const auto number = [&said](const char* name) { return static_cast<uint64_t>(NumberOption(said, name)); };
  const auto map = said.As<Map<Any, Any>>();
  channel->peer = TextOption(said, "peer");
  channel->key_id = TextOption(said, "key_id");
  o->policy = TextOption(said, "policy");
  o->allow = NamesOf(map[Any("allow")]);
  o->devices = NamesOf(map[Any("devices")]);
  o->wall_seconds = map[Any("wall")].As<double>();
  o->load = static_cast<Load>(number("load"));
  o->memory_bytes = number("memory");
  o->disk_bytes = number("disk");
  o->cpu_seconds = number("cpu");
}

[[noreturn]] void RunFront(const Prover& prove, int fd, ServerOptions options, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  prctl(PR_SET_NAME, "baton-front");
  prctl(PR_SET_DUMPABLE, 0);  // another process of the user reads no memory of this one
  try {
    SetSessionConnection(fd);
    auto inner = ChannelOfSocket(options.front);
    ServerOptions own = options;
    const auto channel = prove(fd, &own);
    close(options.control);
    prctl(PR_SET_PDEATHSIG, 0);  // what the session says last is passed on
    ConfineFront();
    const Deadline deadline = Deadline::In(kProofSeconds);
    WriteGreeting(inner.get(), Said(*channel, own), deadline);
    iovec part{own.first.data(), own.first.size()};
    inner->Write(&part, 1, deadline);
    std::thread([&] {
      PassBetween(channel.get(), inner.get());
      _exit(0);
    }).detach();
    // A client that takes nothing does not keep this process when the one of its session is gone.
    pollfd gone{inner->fd(), POLLRDHUP, 0};
    while (poll(&gone, 1, -1) < 0 && errno == EINTR) {
    }
    sleep(kLastSeconds);
  } catch (const std::exception& e) {
    SayRefused(e, options);
    _exit(1);
  }
  _exit(0);
}

}  // namespace

std::unique_ptr<Channel> OpenFront(const Prover& prove, int fd, ServerOptions* options) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) ThrowSystem("OSError", "no sockets for a session");
  const pid_t self = getpid(), front = fork();
  if (front == 0) {
    close(ends[0]);
    options->front = ends[1];
    RunFront(prove, fd, *options, self);
  }
  close(ends[1]);
  auto channel = ChannelOfSocket(ends[0]);
  try {
    if (front < 0) ThrowSystem("OSError", "no process for a connection");
    const Descriptor alive(static_cast<int>(syscall(SYS_pidfd_open, front, 0)));
    SendControl(options->control, ControlMessage::kFront, {}, alive.get());
    Take(ReadGreeting(channel.get(), Deadline::In(kProofSeconds)), channel.get(), options);
  } catch (const std::exception&) {
    // It has said why; or it passes the bytes of another session.
    int status = 1;
    while (front > 0 && waitpid(front, &status, 0) < 0 && errno == EINTR) {
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  SetSessionConnection(channel->fd());
  close(fd);
  return channel;
}

}  // namespace baton::rpc
