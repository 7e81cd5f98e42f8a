// SPDX-License-Identifier: Apache-2.0
// A stream of bytes to a peer that is known: a socket of this machine, TLS, or the pipes of a program.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/key.h"

namespace baton::rpc {

/// A point in time after which waiting ends with a Timeout. Every wait of this library has one.
class Deadline {
 public:
  /// `seconds` from now; 0 and less: never.
  static Deadline In(double seconds);
  static Deadline Never() { return {}; }
  /// Milliseconds that are left, 0 when it has passed, at most `most`.
  int Left(int most) const;
  bool Passed() const { return Left(1) == 0; }
  Deadline Earlier(Deadline other) const { return other.at_ < at_ ? other : *this; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point at_ = Clock::time_point::max();
};

/// Waits until `fd` can be read (POLLIN) or written (POLLOUT). Throws Timeout; lets the user interrupt.
void WaitFd(int fd, short events, Deadline deadline, const char* what);

class Channel {
 public:
  virtual ~Channel() = default;
  /// Reads 1 to `size` bytes; 0 at the end of the stream.
  virtual size_t Read(void* data, size_t size, Deadline deadline) = 0;
  /// Writes all parts; changes them.
  virtual void Write(iovec* parts, int count, Deadline deadline) = 0;
  /// Whether Read would give something at once.
  virtual bool Readable() = 0;
  /// Ends both directions; a thread that waits in Read or Write wakes.
  virtual void Shutdown() noexcept = 0;
  /// Descriptor that becomes readable, or hangs up, with the peer.
  virtual int fd() const = 0;

  /// Reads exactly `size` bytes. False when the stream ends before the first of them.
  bool ReadAll(void* data, size_t size, Deadline deadline);

  std::string peer;                  ///< of the peer, as it was proved: "uid 1000", "key 5f0a..."
  std::string key_id;                ///< id of the key that the peer proved; empty for the own user
  std::shared_ptr<const Key> grant;  ///< that key, or the key of a token with the token's caveats; without the secret
  bool own_user = false;             ///< the peer is a process of this user on this machine
};

/// Where a server is: "unix:/path", "tls://host:port?key=FILE", "tls://host:port?cert=FILE&ca=FILE", "host:port",
/// "exec:COMMAND", "ssh://user@host", "serial:/dev/ttyACM0?baud=N&key=FILE".
struct Address {
  enum Kind { kUnix, kTls, kExec, kSerial } kind = kUnix;
  std::string path;  ///< of the socket or the serial device; of exec, the command
  std::string host;
  int port = 0;  ///< of a serial line its speed
  std::string key_file;
  std::string cert_file;  ///< certificate chain and private key (PEM), in place of a key
  std::string ca_file;    ///< certificates that those of peers are signed by
  std::string policies;   ///< of a server: a folder with what the owner of each certificate may do (NAME.policy)

  static Address Parse(std::string_view url);
  std::string Text() const;
  bool IsLoopback() const;
};

/// Connects; of TLS, also shakes hands.
std::unique_ptr<Channel> Connect(const Address& address, Deadline deadline);

/// A listening socket. The keys are those of the address, read for each connection, else the loopback key that it
/// makes.
class Listener {
 public:
  explicit Listener(const Address& address);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  /// A connection that nothing is known of yet; -1 when `milliseconds` pass without one.
  int AcceptFd(int milliseconds);
  /// Makes sure of the peer on a connection of AcceptFd, which it owns from here on.
  std::unique_ptr<Channel> Authenticate(int fd, Deadline deadline) const;
  /// Only closes: the files stay for another process that has the socket.
  void Abandon();
  /// Whether its keys, in files, are those of more than the user of this machine.
  bool SharesKeys() const { return from_file_ || !address_.cert_file.empty(); }
  /// Overwrites the secrets, in a process that needs them no more.
  void ForgetKeys();
  void Close();

  const Address& address() const { return address_; }
  int fd() const { return fd_; }

 private:
  Address address_;
  std::vector<Key> keys_;
  bool from_file_ = false;
  std::string remove_[2];  // files that end with the listener
  int fd_ = -1;
  int owner_ = 0;  // process that removes them
};

/// The two descriptors of a stream that another program opened (standard input and output).
std::unique_ptr<Channel> ChannelOfPipes(int in, int out);
/// A connected socket, which it owns.
std::unique_ptr<Channel> ChannelOfSocket(int fd);
/// TLS over a connected socket, which it owns; shakes hands. With the keys (a client has one), or with the certificates
/// of the address.
std::unique_ptr<Channel> TlsClient(int fd, const Address& address, const std::vector<Key>& keys, Deadline deadline);
std::unique_ptr<Channel> TlsServer(int fd, const Address& address, const std::vector<Key>& keys, Deadline deadline);
/// Whether a signature (Ed25519) is of a text and a public key.
bool VerifySignature(std::string_view key, std::string_view text, std::string_view signature);
/// Loads OpenSSL; throws with what to install when it is not there.
void LoadTls();

}  // namespace baton::rpc
