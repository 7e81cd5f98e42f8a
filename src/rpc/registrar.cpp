// SPDX-License-Identifier: Apache-2.0
#include "rpc/registrar.h"

#include <baton/runtime/bytes.h>
#include <baton/runtime/error.h>
#include <baton/runtime/module.h>
#include <baton/runtime/registry.h>
#include <baton/support/json.h>
#include <baton/support/sha256.h>
#include <baton/support/text.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace baton::rpc {
using namespace runtime;  // NOLINT
using support::Cat;
using support::Json;
namespace {

constexpr double kLook = 0.25;     // seconds between looks at whether a session is over
constexpr int kSlowest = 3000000;  // microseconds between two attempts to connect, at most
constexpr double kKillSeconds = 4;

double Now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// The computation of a device when a tracker asks whether it is well: y[i] = x[i] * x[n - 1 - i] + i, modulo 2^32.
std::string AnswerOf(int64_t seed) {
  constexpr uint32_t kElements = 64;
  uint32_t state = static_cast<uint32_t>(seed), x[kElements];
  unsigned char y[4 * kElements];
  for (uint32_t& one : x) one = state = 1664525u * state + 1013904223u;
  for (uint32_t i = 0; i < kElements; ++i) {
    const uint32_t value = x[i] * x[kElements - 1 - i] + i;
    for (uint32_t b = 0; b < 4; ++b) y[4 * i + b] = static_cast<unsigned char>(value >> (8 * b));
  }
  const auto digest = support::Sha256Of(y, sizeof y);
  return support::ToHex(digest.data(), digest.size());
}

class Registrar {
 public:
  Registrar(int door, int server, std::string url, std::string message, const Module& sessions)
      : door_(door),
        server_(server),
        url_(std::move(url)),
        message_(std::move(message)),
        begun_(sessions.GetFunction("begun")),
        active_(sessions.GetFunction("active")),
        evict_(sessions.GetFunction("evict")) {}

  void Connect() {
    line_ = (*Registry::Get("rpc.WireConnect"))(url_, 5.0).As<Module>();
    send_ = line_.GetFunction("send");
    receive_ = line_.GetFunction("recv");
    Send(Cat("{\"type\":\"register\",", message_, ",\"epoch\":", epoch_,
             resume_.empty() ? "" : Cat(",\"resume\":\"", resume_, "\""), "}"));
  }
  /// Until the tracker has taken the server; throws what it says instead.
  void AwaitRegistered() {
    while (resume_.empty()) Hear(5);
  }
  [[noreturn]] void Run() {
    for (int pause = 50000;;) {
      try {
        if (!line_.defined()) Connect();
        for (;; pause = 50000) {
          try {
            Hear(kLook);
          } catch (const Error& e) {
            if (e.kind() != "rpc.Timeout") throw;
          }
          Look();
        }
      } catch (const std::exception&) {
        line_ = Module();
        usleep(static_cast<useconds_t>(pause));
        pause = pause * 2 < kSlowest ? pause * 2 : kSlowest;
      }
    }
  }

  /// Says which lease is current; an empty ticket: none is.
  void Open(int64_t epoch, std::string_view ticket) const {
    unsigned char record[48] = {};
    for (int i = 0; i < 8; ++i) record[i] = static_cast<unsigned char>(static_cast<uint64_t>(epoch) >> (8 * i));
    for (size_t i = 0; i < 32 && ticket.size() == 64; ++i) {
      const char two[3] = {ticket[2 * i], ticket[2 * i + 1], 0};
      record[8 + i] = static_cast<unsigned char>(strtoul(two, nullptr, 16));
    }
    std::memcpy(record + 40, support::Sha256Of(record, 40).data(), 8);
    if (pwrite(door_, record, sizeof record, 0) != sizeof record) throw Error("OSError", "the door cannot be written");
  }

 private:
  void Send(const std::string& text) { send_(Bytes(text), 10.0); }

  void Hear(double seconds) {
    const Any got = receive_(seconds);
    if (got.is_null()) throw Error("rpc.SessionLost", "the tracker closed the connection");
    const Json message = Json::Parse(got.As<std::string>(), "message of the tracker");
    const std::string& kind = message.At("type").AsString();
    if (kind == "registered") {
      resume_ = message.At("resume").AsString();
    } else if (kind == "error") {
      throw Error("rpc.Denied", Cat("the tracker: ", message.At("message").AsString()));
    } else if (kind == "prepare") {
      Prepare(message);
    } else if (kind == "end" && message.At("epoch").AsInt() >= epoch_) {
      epoch_ = message.At("epoch").AsInt();
      Over();
    }
  }

  void Prepare(const Json& message) {
    const int64_t epoch = message.At("epoch").AsInt();
    if (epoch <= epoch_) return Send(Cat("{\"type\":\"ended\",\"epoch\":", epoch, "}"));  // of a tracker that forgot
    epoch_ = epoch;
    const std::string& ticket = message.At("ticket").AsString();
    const std::string answer = AnswerOf(message.At("question").AsInt());
    before_ = begun_().As<int64_t>();
    Open(epoch, ticket);
    leased_ = !ticket.empty();
    seen_ = false;
    Send(Cat("{\"type\":\"ready\",\"epoch\":", epoch, ",\"answer\":\"", answer, "\"}"));
  }

  void Over() {
    leased_ = false;
    Open(epoch_, "");
    const double end = Now() + kKillSeconds;
    evict_();
    kill(server_, SIGCHLD);  // its supervisor wakes
    while (active_().As<int64_t>() > 0 && Now() < end) usleep(5000);
    Send(Cat("{\"type\":\"ended\",\"epoch\":", epoch_, "}"));
  }

  void Look() {
    if (!leased_) return;
    if (active_().As<int64_t>() > 0) {
      seen_ = true;
    } else if (seen_ || begun_().As<int64_t>() != before_) {  // it may have been too short to be seen
      Over();
    }
  }

  int door_, server_;
  std::string url_, message_, resume_;
  Module line_;
  PackedFunc send_, receive_, begun_, active_, evict_;
  int64_t epoch_ = 0, before_ = 0;
  bool leased_ = false, seen_ = false;  // a lease is under way; a session of it was seen
};

}  // namespace

int StartRegistrar(const std::string& tracker, const std::string& kind, const std::string& url, int port,
                   const Module& sessions) {
  for (const char c : kind) {
    if (c < '!' || c > '~' || c == '"' || c == '\\') throw ValueError(Cat("`", kind, "` is no kind of device"));
  }
  const int written = memfd_create("baton-door", MFD_CLOEXEC);
  const int door = open(Cat("/proc/self/fd/", written).c_str(), O_RDONLY | O_CLOEXEC);
  if (written < 0 || door < 0) throw Error("OSError", "no file for the current lease");
  const size_t slash = url.rfind('/');
  const std::string where =
      url.compare(0, 5, "unix:") == 0 ? Cat("\"socket\":\"", url.substr(slash + 1), "\"") : Cat("\"port\":", port);
  int told[2];
  if (pipe2(told, O_CLOEXEC) != 0) throw Error("OSError", "no pipe");
  const int server = getpid();
  Registrar registrar(written, server, tracker, Cat("\"key\":\"", kind, "\",", where), sessions);
  registrar.Open(0, "");
  // The connection is the child's from the start: two processes cannot share the state of TLS.
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "baton-registrar");
    if (getppid() != server) _exit(1);
    close(told[0]);
    std::string why;
    try {
      registrar.Connect();
      registrar.AwaitRegistered();
    } catch (const std::exception& e) {
      why = e.what();
    }
    if (write(told[1], why.data(), why.size()) < 0 || !why.empty()) _exit(1);
    close(told[1]);
    registrar.Run();
  }
  close(written);
  close(told[1]);
  char why[1024] = "";
  size_t size = 0;
  for (ssize_t n = 0; size < sizeof why && (n = read(told[0], why + size, sizeof why - size)) > 0;) {
    size += static_cast<size_t>(n);
  }
  close(told[0]);
  if (child < 0 || size) throw Error("rpc.SessionLost", Cat("not registered: ", std::string_view(why, size)));
  return door;
}

}  // namespace baton::rpc
