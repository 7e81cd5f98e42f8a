// SPDX-License-Identifier: Apache-2.0
#include "rpc/serial.h"

#include <baton/runtime/interrupt.h>
#include <baton/runtime/packed_func.h>
#include <baton/runtime/registry.h>
#include <baton/support/sha256.h>
#include <baton/support/text.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "rpc/errors.h"

namespace baton::rpc {
using support::Cat;
namespace {

constexpr size_t kMost = 512;  // bytes of a record's content
constexpr size_t kMac = 16, kCrc = 4, kNonce = 16;
constexpr double kAsk = 0.5;  // seconds after which the server is asked again

std::string Little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

std::string One(char c) { return std::string(1, c); }

std::string Crc32(std::string_view data) {
  uint32_t crc = ~0u;
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return Little(~crc, 4);
}

}  // namespace

std::string Stuffed(std::string_view data) {
  std::string out(1, '\0');
  size_t code = 0;
  const auto end_block = [&] {
    out[code] = static_cast<char>(out.size() - code);
    code = out.size();
    out.push_back('\0');
  };
  for (const char c : data) {
    if (c) out.push_back(c);
    if (!c || out.size() - code == 255) end_block();
  }
  out[code] = static_cast<char>(out.size() - code);
  out.push_back('\0');
  return out;
}

std::string Unstuffed(std::string_view data) {
  std::string out;
  for (size_t at = 0; at < data.size();) {
    const size_t code = static_cast<unsigned char>(data[at]);
    if (code == 0 || at + code > data.size()) return "";
    out.append(data.substr(at + 1, code - 1));
    at += code;
    if (code != 255 && at < data.size()) out.push_back('\0');
  }
  return out;
}

namespace {

speed_t SpeedOf(int baud) {
  static constexpr struct {
    int baud;
    speed_t speed;
  } kSpeeds[] = {{9600, B9600},       {19200, B19200},     {38400, B38400},    {57600, B57600},
                 {115200, B115200},   {230400, B230400},   {460800, B460800},  {921600, B921600},
                 {1000000, B1000000}, {2000000, B2000000}, {4000000, B4000000}};
  for (const auto& s : kSpeeds) {
    if (s.baud == baud) return s.speed;
  }
  Throw("ValueError", Cat("a serial line has no speed of ", baud, "; usual ones are 9600, 115200, 921600"));
}

class SerialChannel final : public Channel {
 public:
  explicit SerialChannel(int fd) : fd_(fd) {}
  ~SerialChannel() override { close(fd_); }

  void Start(const std::string& key, const std::string& what, Deadline deadline) {
    std::string mine(kNonce, '\0');
    if (getrandom(mine.data(), mine.size(), 0) != static_cast<ssize_t>(mine.size()))
      ThrowSystem(kRpcError, "no random bytes");
    const std::string start = Cat(One('S'), One(key.empty() ? 0 : 1), mine);
    for (;;) {
      // A zero byte first: bytes on the line before it are not part of the record.
      const std::string record = Cat(One(0), Stuffed(Cat(start, CheckOf('C', 0, start))));
      Send(record, deadline);
      const Deadline soon = deadline.Earlier(Deadline::In(kAsk));
      std::string got;
      while (Next(&got, soon)) {
        if (got.size() > 1 + kCrc && got[0] == 'R' && Checks(got, 'S', 0))
          Throw(kDenied, Cat(what, ": ", got.substr(1, got.size() - 1 - kCrc)));
        if (got.size() < 1 + 2 * kNonce + kCrc || got[0] != 'A' || got.compare(1, kNonce, mine) != 0) continue;
        if (!key.empty()) session_key_ = HmacSha256(key, Cat("session", got.substr(1, 2 * kNonce)));
        if (!Checks(got, 'S', 0)) Throw(kDenied, Cat(what, ": the server does not have the same key"));
        return;
      }
      if (deadline.Passed()) Throw(kTimeout, Cat(what, ": no server answers on the line"));
    }
  }

  size_t Read(void* data, size_t size, Deadline deadline) override {
    while (at_ == content_.size()) {
      std::string record;
      if (!Next(&record, deadline)) {
        if (closed_) return 0;
        Throw(kTimeout, "waiting for the peer: the deadline has passed");
      }
      if (record.empty() || record[0] != 'D' || !Checks(record, 'S', ++received_)) {
        closed_ = true;
        Throw(kProtocolError,
              "bytes on the serial line were lost or changed; a lower speed or a shorter cable may help");
      }
      content_ = record.substr(1, record.size() - 1 - (session_key_.empty() ? kCrc : kMac));
      at_ = 0;
    }
    const size_t n = content_.size() - at_ < size ? content_.size() - at_ : size;
    std::memcpy(data, content_.data() + at_, n);
    at_ += n;
    return n;
  }

  void Write(iovec* parts, int count, Deadline deadline) override {
    std::string all;
    for (int i = 0; i < count; ++i) {
      const char* data = static_cast<const char*>(parts[i].iov_base);
      for (size_t left = parts[i].iov_len; left > 0;) {
        const size_t n = left < kMost - all.size() ? left : kMost - all.size();
        all.append(data, n);
        data += n;
        left -= n;
        if (all.size() == kMost) SendData(&all, deadline);
      }
    }
    if (!all.empty()) SendData(&all, deadline);
  }

  bool Readable() override {
    pollfd p{fd_, POLLIN, 0};
    return at_ < content_.size() || line_.find('\0') != std::string::npos || poll(&p, 1, 0) > 0;
  }
  void Shutdown() noexcept override { closed_ = true; }
  int fd() const override { return fd_; }

 private:
  std::string CheckOf(char direction, uint64_t number, std::string_view record) const {
    const std::string text = Cat(One(direction), Little(number, 8), record);
    return session_key_.empty() ? Crc32(text) : HmacSha256(session_key_, text).substr(0, kMac);
  }
  bool Checks(std::string_view record, char direction, uint64_t number) const {
    const size_t size = session_key_.empty() ? kCrc : kMac;
    if (record.size() < size + 1) return false;
    const std::string want = CheckOf(direction, number, record.substr(0, record.size() - size));
    return SameSecret(want.data(), record.data() + record.size() - size, size);
  }
  void SendData(std::string* content, Deadline deadline) {
    const std::string record = Cat(One('D'), *content);
    content->clear();
    Send(Stuffed(Cat(record, CheckOf('C', ++sent_, record))), deadline);
  }

  void Send(std::string_view bytes, Deadline deadline) {
    while (!bytes.empty()) {
      if (closed_) Throw(kSessionLost, "the session is over");
      WaitFd(fd_, POLLOUT, deadline, "sending to the peer");
      const ssize_t n = write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno != EAGAIN && errno != EINTR) ThrowSystem(kSessionLost, "sending to the peer");
      if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  /// The next record, empty for one that makes no sense. False when the deadline passes, or this end was closed.
  bool Next(std::string* record, Deadline deadline) {
    for (;;) {
      const size_t end = line_.find('\0');
      if (end != std::string::npos) {
        *record = Unstuffed(std::string_view(line_).substr(0, end));
        line_.erase(0, end + 1);
        if (end > 0) return true;
        continue;
      }
      if (line_.size() > 2 * kMost) line_.clear();
      pollfd p{fd_, POLLIN, 0};
      const int ready = poll(&p, 1, deadline.Left(50));
      runtime::CheckInterrupt();
      if (closed_ || (ready <= 0 && deadline.Passed())) return false;
      if (ready <= 0) continue;
      char more[1024];
      const ssize_t n = read(fd_, more, sizeof more);
      if (n > 0) line_.append(more, static_cast<size_t>(n));
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) Throw(kSessionLost, "the serial device is gone");
    }
  }

  int fd_;
  std::string session_key_;  ///< empty: checks are sums
  std::string line_, content_;
  size_t at_ = 0;
  uint64_t sent_ = 0, received_ = 0;
  std::atomic<bool> closed_{false};
};

BATON_REGISTER_GLOBAL("rpc.SerialKey").set_body(runtime::PackedFunc([](runtime::Args args, runtime::RetValue* rv) {
  const std::string key = SerialKey(Key::Read(args[0].As<std::string>()));
  *rv = support::ToHex(reinterpret_cast<const uint8_t*>(key.data()), key.size());
}));

}  // namespace

Address ParseSerial(std::string_view rest) {
  Address a;
  a.kind = Address::kSerial;
  a.port = 115200;
  const size_t options = rest.find('?');
  a.path = rest.substr(0, options);
  if (a.path.empty() || a.path[0] != '/') Throw("ValueError", "a serial line is written serial:/dev/ttyACM0");
  for (rest = options == std::string_view::npos ? "" : rest.substr(options); !rest.empty();) {
    rest.remove_prefix(1);
    const std::string_view one = rest.substr(0, rest.find_first_of("?&"));
    rest.remove_prefix(one.size());
    const std::string_view value = one.substr(one.find('=') + 1);
    if (one.substr(0, 4) == "key=") {
      a.key_file = value;
      continue;
    }
    const auto end = std::from_chars(value.data(), value.data() + value.size(), a.port);
    if (one.substr(0, 5) != "baud=" || value.empty() || end.ec != std::errc() || a.port < 1 ||
        end.ptr != value.data() + value.size()) {
      Throw("ValueError", Cat("`", one, "`: the options of a serial line are ?baud=N and ?key=FILE"));
    }
  }
  return a;
}

std::string SerialKey(const Key& key) { return HmacSha256(key.secret, Cat("baton-rpc 1 serial ", key.id)); }

std::unique_ptr<Channel> SerialOn(int fd, const std::string& key, const std::string& what, Deadline deadline) {
  auto channel = std::make_unique<SerialChannel>(fd);
  channel->Start(key, what, deadline);
  return channel;
}

std::unique_ptr<Channel> ConnectSerial(const Address& address, Deadline deadline) {
  const speed_t speed = SpeedOf(address.port);
  std::string key, id;
  if (!address.key_file.empty()) {
    const Key read = Key::Read(address.key_file);
    key = SerialKey(read);
    id = read.id;
  }
  const int fd = open(address.path.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) ThrowSystem(kSessionLost, Cat("cannot open `", address.path, "`"));
  auto channel = std::make_unique<SerialChannel>(fd);
  termios t{};
  if (tcgetattr(fd, &t) != 0) ThrowSystem("ValueError", Cat("`", address.path, "` is no serial line"));
  cfmakeraw(&t);
  cfsetspeed(&t, speed);
  t.c_cflag |= CLOCAL | CREAD;
  if (tcsetattr(fd, TCSANOW, &t) != 0)
    ThrowSystem("ValueError", Cat("`", address.path, "` does not take a speed of ", address.port));
  tcflush(fd, TCIOFLUSH);
  channel->Start(key, address.path, deadline);
  channel->peer = id.empty() ? Cat("serial ", address.path) : Cat("key ", id);
  channel->key_id = id;
  return channel;
}

}  // namespace baton::rpc
