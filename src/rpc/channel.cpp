// SPDX-License-Identifier: Apache-2.0
#include "rpc/channel.h"

#include <baton/runtime/interrupt.h>
#include <baton/support/text.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "rpc/errors.h"
#include "rpc/serial.h"

namespace baton::rpc {
using support::Cat;

namespace {
constexpr size_t kTogether = 4096;  // bytes of a message that is sent in one piece
constexpr int kSlice = 50;          // milliseconds between two questions whether the user wants to stop
}  // namespace

Deadline Deadline::In(double seconds) {
  Deadline d;
  if (seconds > 0 && seconds < 1e9) {
    d.at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  return d;
}

int Deadline::Left(int most) const {
  if (at_ == Clock::time_point::max()) return most;
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(at_ - Clock::now()).count();
  if (left <= 0) return 0;
  return left / 1000 + 1 < most ? static_cast<int>(left / 1000 + 1) : most;
}

void WaitFd(int fd, short events, Deadline deadline, const char* what) {
  for (;;) {
    pollfd p{fd, events, 0};
    const int ready = poll(&p, 1, deadline.Left(kSlice));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) ThrowSystem(kSessionLost, what);
    runtime::CheckInterrupt();
    if (ready == 0 && deadline.Passed()) Throw(kTimeout, Cat(what, ": the deadline has passed"));
  }
}

bool Channel::ReadAll(void* data, size_t size, Deadline deadline) {
  char* at = static_cast<char*>(data);
  for (size_t got = 0; got < size;) {
    const size_t n = Read(at + got, size - got, deadline);
    if (n == 0 && got == 0) return false;
    if (n == 0) Throw(kSessionLost, "the connection ended within a message");
    got += n;
  }
  return true;
}

namespace {

/// Two descriptors, or one twice. Sockets wait within the read itself, at most a slice; others are polled first.
class FdChannel final : public Channel {
 public:
  FdChannel(int in, int out) : in_(in), out_(out) {
    int type = 0;
    socklen_t size = sizeof type;
    socket_ = in == out && getsockopt(in, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
    if (socket_) {
      const timeval slice{0, kSlice * 1000};
      setsockopt(in, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice);
      setsockopt(in, SOL_SOCKET, SO_SNDTIMEO, &slice, sizeof slice);
    }
  }
  ~FdChannel() override {
    close(in_);
    if (out_ != in_) close(out_);
    if (child_ > 0) Reap();
  }
  size_t Read(void* data, size_t size, Deadline deadline) override {
    for (;;) {
      if (!socket_) WaitFd(in_, POLLIN, deadline, "waiting for the peer");
      const ssize_t n = socket_ ? recv(in_, data, size, 0) : read(in_, data, size);
      if (n >= 0) return static_cast<size_t>(n);
      Again(deadline, "waiting for the peer");
    }
  }
  void Write(iovec* parts, int count, Deadline deadline) override {
    // One call for a message that is short; `sendmsg`, which would do for all, can send descriptors, and is refused to
    // a session that is confined.
    size_t size = 0;
    for (int i = 0; i < count; ++i) size += parts[i].iov_len;
    char together[kTogether];
    if (count > 1 && size <= sizeof together) {
      size_t at = 0;
      for (int i = 0; i < count; at += parts[i++].iov_len)
        std::memcpy(together + at, parts[i].iov_base, parts[i].iov_len);
      WritePart(together, size, deadline, false);
      return;
    }
    for (int i = 0; i < count; ++i) {
      WritePart(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len, deadline, i + 1 < count);
    }
  }
  bool Readable() override {
    pollfd p{in_, POLLIN, 0};
    return poll(&p, 1, 0) > 0;
  }
  void Shutdown() noexcept override {
    if (socket_) shutdown(in_, SHUT_RDWR);
  }
  int fd() const override { return in_; }

  int child_ = 0;  ///< process at the other end, which ends with this

 private:
  void Again(Deadline deadline, const char* what) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) ThrowSystem(kSessionLost, what);
    runtime::CheckInterrupt();
    if (deadline.Passed()) Throw(kTimeout, Cat(what, ": the deadline has passed"));
  }
  void Reap() {
    // Its input has ended, so it ends by itself; a program that does not is killed.
    for (int i = 0; i < 40; ++i) {
      if (waitpid(child_, nullptr, WNOHANG) != 0) return;
      usleep(5000);
    }
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

  void WritePart(const char* data, size_t size, Deadline deadline, bool more) {
    while (size > 0) {
      if (!socket_) WaitFd(out_, POLLOUT, deadline, "sending to the peer");
      const ssize_t n =
          socket_ ? send(out_, data, size, MSG_NOSIGNAL | (more ? MSG_MORE : 0)) : write(out_, data, size);
      if (n < 0) {
        Again(deadline, "sending to the peer");
        continue;
      }
      data += n;
      size -= static_cast<size_t>(n);
    }
  }

  int in_, out_;
  bool socket_;
};

/// Closes on the way out unless it is taken.
struct Fd {
  int fd;
  ~Fd() {
    if (fd >= 0) close(fd);
  }
  int Take() {
    const int taken = fd;
    fd = -1;
    return taken;
  }
};

sockaddr_un UnixName(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof name.sun_path) {
    Throw("ValueError", Cat("the path of a socket has 1 to ", sizeof name.sun_path - 1, " bytes: `", path, "`"));
  }
  std::memcpy(name.sun_path, path.data(), path.size());
  return name;
}

/// The process at the other end must be of this user.
void CheckPeer(int fd, Channel* channel) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) ThrowSystem(kDenied, "the peer is not known");
  if (peer.uid != geteuid()) {
    Throw(kDenied, Cat("the process at the other end is of user ", peer.uid, ", this one of user ", geteuid()));
  }
  channel->own_user = true;
  channel->peer = Cat("uid ", peer.uid, " pid ", peer.pid);
}

/// A connection whose other end vanished without a word is found in 10 s.
void SetTcpOptions(int fd) {
  const int on = 1, idle = 5, interval = 2, count = 2, unanswered = 9000;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered, sizeof unanswered);
}

struct Resolved {
  addrinfo* list = nullptr;
  Resolved(const Address& a, bool passive) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = passive ? AI_PASSIVE : 0;
    const int code = getaddrinfo(a.host.c_str(), Cat(a.port).c_str(), &hints, &list);
    if (code != 0) Throw(kSessionLost, Cat("`", a.host, "`: ", gai_strerror(code)));
  }
  ~Resolved() {
    if (list) freeaddrinfo(list);
  }
};

int ConnectTcp(const Address& address, Deadline deadline) {
  const Resolved found(address, false);
  std::string why;
  for (const addrinfo* a = found.list; a; a = a->ai_next) {
    Fd s{socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (s.fd < 0) continue;
    int code = connect(s.fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    if (code == EINPROGRESS) {
      WaitFd(s.fd, POLLOUT, deadline, "connecting");
      socklen_t size = sizeof code;
      getsockopt(s.fd, SOL_SOCKET, SO_ERROR, &code, &size);
    }
    if (code == 0) {
      SetTcpOptions(s.fd);
      return s.Take();
    }
    why = std::strerror(code);
  }
  Throw(kSessionLost, Cat("cannot connect to ", address.Text(), ": ", why, "; is the server running?"));
}

std::unique_ptr<Channel> ConnectExec(const std::string& command) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) ThrowSystem(kSessionLost, "no socket");
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 0);
    dup2(ends[1], 1);
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    ThrowSystem(kSessionLost, Cat("cannot start `", command, "`"));
  }
  auto channel = std::make_unique<FdChannel>(ends[0], ends[0]);
  channel->child_ = child;
  channel->own_user = true;
  channel->peer = Cat("exec ", command);
  return channel;
}

/// A text as one word of a shell.
std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

Key ClientKey(const Address& a) {
  if (!a.key_file.empty()) return Key::Read(a.key_file);
  if (const char* file = getenv("BATON_RPC_KEY"); file && *file) return Key::Read(file);
  const std::string path = a.IsLoopback() ? LoopbackKeyPath(a.port) : "";
  if (!path.empty() && access(path.c_str(), R_OK) == 0) return Key::Read(path);
  Throw(kDenied, Cat(a.Text(), " needs a key",
                     path.empty() ? "" : " (no server of this user wrote one for this port; is it running?)",
                     ": give `key_file=`, or set BATON_RPC_KEY to its path; `baton rpc-key new` writes one"));
}

}  // namespace

Address Address::Parse(std::string_view url) {
  Address a;
  const auto begins = [&url](std::string_view head) {
    if (url.substr(0, head.size()) != head) return false;
    url.remove_prefix(head.size());
    return true;
  };
  if (begins("unix:")) {
    a.path = url;
    UnixName(a.path);
    return a;
  }
  if (begins("exec:")) {
    a.kind = kExec;
    a.path = url;
    return a;
  }
  if (begins("serial:")) return ParseSerial(url);
  if (begins("ssh://")) {
    if (url.empty() || url[0] == '-') Throw("ValueError", Cat("`ssh://", url, "` names no host"));
    a.kind = kExec;
    a.path = Cat("exec ssh -T -- ", Quoted(url), " baton-rpc-server --stdio");
    return a;
  }
  const std::string whole(url);
  if (url.substr(0, 6) == "wss://" || url.substr(0, 5) == "ws://") {
    Throw("UnsupportedError", Cat("`", whole,
                                  "`: this program speaks no WebSocket; the server listens at tls://host:port, a proxy "
                                  "before it takes WebSockets (baton rpc-proxy --web-port), and clients are "
                                  "baton.rpc.connect(\"wss://host:port/ticket\")"));
  }
  a.kind = kTls;
  begins("tls://");
  if (const size_t query = url.find('?'); query != std::string_view::npos) {
    for (std::string_view rest = url.substr(query + 1); !rest.empty();) {
      const std::string_view one = rest.substr(0, rest.find('&'));
      rest.remove_prefix(one.size() < rest.size() ? one.size() + 1 : one.size());
      const size_t equals = one.find('=');
      const std::string_view word = one.substr(0, equals);
      std::string* slot = word == "key"        ? &a.key_file
                          : word == "cert"     ? &a.cert_file
                          : word == "ca"       ? &a.ca_file
                          : word == "policies" ? &a.policies
                                               : nullptr;
      if (!slot || equals == std::string_view::npos) {
        Throw("ValueError",
              Cat("`", whole, "`: the options are ?key=FILE, or ?cert=FILE&ca=FILE (and policies=FOLDER)"));
      }
      *slot = one.substr(equals + 1);
    }
    if (a.cert_file.empty() != a.ca_file.empty() || (!a.cert_file.empty() && !a.key_file.empty())) {
      Throw("ValueError", Cat("`", whole, "`: a certificate needs `ca`, which says whose it trusts, and no key"));
    }
    url = url.substr(0, query);
  }
  const size_t colon = url.rfind(':');
  const std::string_view digits = colon == std::string_view::npos ? "" : url.substr(colon + 1);
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), a.port);
  std::string_view host = url.substr(0, colon);
  if (host.size() > 1 && host[0] == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  a.host = host;
  if (digits.empty() || end.ec != std::errc() || end.ptr != digits.data() + digits.size() || a.port < 0 ||
      a.port > 65535 || a.host.empty() || a.host.find('/') != std::string::npos) {
    Throw(
        "ValueError",
        Cat("`", whole,
            "` is no address; write unix:/path, tls://host:port, ssh://user@host, serial:/dev/tty... or exec:COMMAND"));
  }
  return a;
}

std::string Address::Text() const {
  if (kind == kUnix) return Cat("unix:", path);
  if (kind == kExec) return Cat("exec:", path);
  if (kind == kSerial) return Cat("serial:", path);
  return Cat("tls://", host.find(':') == std::string::npos ? host : Cat("[", host, "]"), ":", port);
}

bool Address::IsLoopback() const {
  return kind != kTls || host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

std::unique_ptr<Channel> ChannelOfPipes(int in, int out) { return std::make_unique<FdChannel>(in, out); }
std::unique_ptr<Channel> ChannelOfSocket(int fd) { return std::make_unique<FdChannel>(fd, fd); }

std::unique_ptr<Channel> Connect(const Address& address, Deadline deadline) {
  if (address.kind == Address::kExec) return ConnectExec(address.path);
  if (address.kind == Address::kSerial) return ConnectSerial(address, deadline);
  if (address.kind == Address::kTls) {
    std::vector<Key> keys;
    if (address.cert_file.empty()) keys.push_back(ClientKey(address));
    return TlsClient(ConnectTcp(address, deadline), address, keys, deadline);
  }
  const sockaddr_un name = UnixName(address.path);
  Fd s{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (s.fd < 0 || connect(s.fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    ThrowSystem(kSessionLost, Cat("cannot connect to ", address.Text(), " (is the server running?)"));
  }
  auto channel = ChannelOfSocket(s.Take());
  CheckPeer(channel->fd(), channel.get());
  return channel;
}

/// Takes the place of a socket that no process listens on: it is left from one that was killed.
static bool BindUnix(int fd, const sockaddr_un& name) {
  const auto* address = reinterpret_cast<const sockaddr*>(&name);
  if (Fd probe{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
      connect(probe.fd, address, sizeof name) != 0 && errno == ECONNREFUSED) {
    unlink(name.sun_path);
  }
  return bind(fd, address, sizeof name) == 0;
}

Listener::Listener(const Address& address) : address_(address), owner_(getpid()) {
  if (address.kind == Address::kExec || address.kind == Address::kSerial)
    Throw("ValueError", "a server listens on unix:/path or tls://host:port");
  if (address.kind == Address::kUnix) {
    const sockaddr_un name = UnixName(address.path);
    fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const mode_t before = umask(0177);
    bool bound = BindUnix(fd_, name);
    // The processes of a server that was killed just now may still be ending, and hold its socket until then.
    // Each try costs a server that lives a process, so they are few.
    for (useconds_t wait = 30'000; !bound && errno == EADDRINUSE && wait <= 480'000; wait *= 2) {
      usleep(wait);
      bound = BindUnix(fd_, name);
    }
    umask(before);
    if (!bound || listen(fd_, 128) != 0) {
      close(fd_);
      ThrowSystem("OSError", Cat("cannot listen on ", address.Text()));
    }
    remove_[0] = address.path;
    return;
  }
  LoadTls();
  if (!address.key_file.empty()) {
    keys_ = Key::ReadAll(address.key_file);  // says now what is wrong with them
    ForgetKeys();
    keys_.clear();
    from_file_ = true;
  } else if (!address.IsLoopback() && address.cert_file.empty()) {
    Throw(kDenied, Cat("a server that others can reach needs a key: `baton rpc-key new --name lab -o lab.key`, then ",
                       address.Text(), "?key=lab.key; without one it listens on 127.0.0.1 alone"));
  }
  const Resolved found(address, true);
  const addrinfo* a = found.list;
  fd_ = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd_, a->ai_addr, a->ai_addrlen) != 0 || listen(fd_, 128) != 0) {
    close(fd_);
    ThrowSystem("OSError", Cat("cannot listen on ", address.Text()));
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(fd_, reinterpret_cast<sockaddr*>(&bound), &size);
  address_.port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                                    : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  if (!SharesKeys()) {
    Key key = Key::New("loopback");
    key.policy = "trusted";
    remove_[0] = LoopbackKeyPath(address_.port);
    key.Save(remove_[0]);
    keys_.push_back(std::move(key));
  }
}

Listener::~Listener() { Close(); }

void Listener::Abandon() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void Listener::ForgetKeys() {
  for (Key& key : keys_) explicit_bzero(key.secret.data(), key.secret.size());
}

void Listener::Close() {
  if (fd_ < 0) return;
  Abandon();
  if (owner_ != getpid()) return;
  for (const std::string& path : remove_) {
    if (!path.empty()) unlink(path.c_str());
  }
}

int Listener::AcceptFd(int milliseconds) {
  pollfd p{fd_, POLLIN, 0};
  if (poll(&p, 1, milliseconds) <= 0) return -1;
  const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  // No descriptors are left: connections that wait are served when others end.
  if (fd < 0 && (errno == EMFILE || errno == ENFILE)) usleep(10000);
  return fd;
}

std::unique_ptr<Channel> Listener::Authenticate(int fd, Deadline deadline) const {
  if (address_.kind == Address::kTls) {
    SetTcpOptions(fd);
    // Keys that were taken away, or came, since the server began.
    return TlsServer(fd, address_, from_file_ ? Key::ReadAll(address_.key_file) : keys_, deadline);
  }
  auto channel = ChannelOfSocket(fd);
  CheckPeer(fd, channel.get());
  return channel;
}

}  // namespace baton::rpc
