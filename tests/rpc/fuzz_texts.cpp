// SPDX-License-Identifier: Apache-2.0
// Mutated keys, tokens, signatures, addresses, serial lines and messages; RPC-011. A few hundred of each with the
// other tests; `./dev fuzz rpc` runs many under sanitizers.
#include <baton/runtime/bytes.h>
#include <baton/runtime/module.h>
#include <baton/runtime/registry.h>
#include <baton/support/json.h>
#include <baton/support/sha256.h>
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <thread>

#include "fuzz_streams.h"
#include "rpc/key.h"
#include "rpc/serial.h"
#include "rpc/watch.h"

namespace baton::rpc::fuzzing {
using namespace runtime;  // NOLINT
using fuzz::Fuzz;

namespace {

std::string MutateWords(const std::string& s, const Corpus& all, Random* r) {
  return r->OneIn(2) ? fuzz::MutateBytes(s, all, r) : fuzz::MutateText(s, all, r);
}

/// A file that its owner alone may read.
struct Scratch {
  explicit Scratch(const char* name)
      : path(std::filesystem::temp_directory_path() / ("baton-" + std::string(name) + "-" + std::to_string(getpid()))),
        file(path) {}
  ~Scratch() { unlink(path.c_str()); }
  std::string path;
  fuzz::Kept file;
};

}  // namespace

TEST_CASE("rpc fuzz: identities of tokens") {
  Key lab = Key::New("lab");
  lab.id = "0123456789abcdef";
  lab.secret = std::string(32, 's');
  Corpus corpus;
  for (const char* caveat : {"allow=a.*,b", "policy=session", "load=none", "expires=9999999999", "memory=1000000",
                             "devices=cpu,cuda:1", "wall=60"}) {
    corpus.push_back(";" + std::string(caveat) + ";load=signed");
  }
  Fuzz("tokens", corpus, MutateWords, [&](const std::string& mutant) {
    const Key token = lab.TokenOf(lab.id + mutant);
    // What was taken is what its holder could have made, and gives no more than the key.
    if (!mutant.empty() && token.TlsKey() == lab.TlsKey()) throw InternalError("the key of a token is that of its key");
    if (token.load > lab.load || token.id != lab.id + mutant) throw InternalError("a caveat gives something");
    Key again = lab;
    for (const std::string& caveat : token.caveats) again = again.Narrowed(caveat);
    if (again.secret != token.secret) throw InternalError("another token than its holder has");
    if (!mutant.empty() && token.caveats.empty()) throw InternalError("a token without caveats");
  });
}

TEST_CASE("rpc fuzz: files of keys and policies") {
  const std::string secret(64, 'a');
  const Corpus corpus = {
      "baton-rpc-key 1\nid: 0123456789abcdef\nname: lab\nkey: " + secret +
          "\npolicy: session\nload: signed\nallow: a.b c.*\n",
      "baton-rpc-key 1\nid: 0123456789abcdef\nname: lab\nkey: " + secret +
          "\npolicy: trusted\nexpires: 99999999999\nmemory: 5\n",
      "baton-rpc-token 1\nid: 0123456789abcdef;load=none\nname: job\nkey: " + secret + "\n",
      "baton-rpc-policy 1\npolicy: session\nallow: runtime.DeviceExists\ndevices: cpu,cuda:0\nwall: 60\n"};
  const Scratch key("fuzz-key");
  const auto folder = std::filesystem::temp_directory_path() / ("baton-fuzz-policies-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  {
    const fuzz::Kept policy(folder / "ci.policy"), revoked(folder / "revoked");
    Fuzz("keys", corpus, MutateWords, [&](const std::string& mutant) {
      if (mutant.compare(0, 16, "baton-rpc-policy") == 0) {
        policy.Write(mutant.substr(0, 60000));
        Key::OfCertificate(folder, "ci");
        return;
      }
      key.file.Write(mutant.substr(0, 60000));  // what is longer is no key file, says what reads it
      const Key read = Key::Read(key.path);
      if (read.secret.size() != 32) throw InternalError("a key without its secret");
      if (read.policy != "session" && read.policy != "trusted") throw InternalError("a policy that does not exist");
      read.TlsKey();
      read.Expired();
    });
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("rpc fuzz: public keys and signatures") {
  const std::string pem =
      "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC "
      "KEY-----\n";
  const Corpus corpus = {pem, pem + pem, "baton-signature-1 " + std::string(86, 'A') + "==\n", "text\n" + pem + "end"};
  const Scratch file("fuzz-pem");
  bool tls = true;
  try {
    VerifySignature(std::string(32, 'k'), "text", std::string(64, 's'));
  } catch (const Error&) {
    tls = false;  // no OpenSSL here
  }
  Fuzz("signatures", corpus, MutateWords, [&](const std::string& mutant) {
    const std::string signature = ReadSignature(mutant);
    if (!signature.empty() && signature.size() != 64) throw InternalError("a signature of another size");
    if (!signature.empty() && tls && VerifySignature(std::string(32, 'k'), "text", signature))
      throw InternalError("a signature of no key");
    if (mutant.compare(0, 15, "baton-signature") == 0) {
      if (signature.empty()) Throw(kDenied, "no signature");
      return;
    }
    file.file.Write(mutant.substr(0, 1 << 20));
    for (const std::string& key : ReadSigners(file.path)) {
      if (key.size() != 32) throw InternalError("a public key of another size");
      if (tls && VerifySignature(key, "text", std::string(64, 's'))) throw InternalError("anything is signed");
    }
  });
}

TEST_CASE("rpc fuzz: addresses") {
  const Corpus corpus = {"unix:/run/socket",
                         "tls://host:9090?key=lab.key",
                         "tls://[::1]:1?cert=a.pem&ca=b.pem&policies=folder",
                         "127.0.0.1:80",
                         "ssh://pi@board",
                         "exec:docker exec -i board baton-rpc-server --stdio",
                         "serial:/dev/ttyACM0?baud=921600&key=k"};
  Fuzz("addresses", corpus, MutateWords, [](const std::string& mutant) {
    const Address a = Address::Parse(mutant);
    a.IsLoopback();
    if (a.port < 0 || (a.kind == Address::kTls && (a.port > 65535 || a.host.empty())))
      throw InternalError("an address without a place");
    // What is shown can be typed again, but for its options.
    if (a.kind == Address::kTls && Address::Parse(a.Text()).Text() != a.Text())
      throw InternalError("not the same when shown");
  });
}

TEST_CASE("rpc fuzz: the lease of a door") {
  std::string record(40, '\0');
  const auto ticket = support::Sha256Of("abc", 3);
  std::memcpy(record.data() + 8, ticket.data(), 32);
  const auto check = support::Sha256Of(record.data(), 40);
  record.append(reinterpret_cast<const char*>(check.data()), 8);
  const auto mutate = [](const std::string& s, const Corpus& all, Random* r) {
    std::string out = r->OneIn(8) ? s : fuzz::MutateBytes(s, all, r);
    // What is not whole is read again for 50 ms, as a process may be writing it.
    if (out.size() >= 48 && !r->OneIn(500)) {
      const auto check = support::Sha256Of(out.data(), 40);
      std::memcpy(out.data() + 40, check.data(), 8);
    } else if (!r->OneIn(500)) {
      out = s;
    }
    return out;
  };
  const Scratch file("fuzz-door");
  Fuzz("doors", {record}, mutate, [&](const std::string& mutant) {
    file.file.Write(mutant);
    bool good = true;
    try {
      CheckLease(open(file.path.c_str(), O_RDONLY | O_CLOEXEC), "kind:abc");
    } catch (const Error&) {
      good = false;
    }
    const bool right = mutant.size() >= 48 && mutant.compare(8, 32, record, 8, 32) == 0 &&
                       std::memcmp(support::Sha256Of(mutant.data(), 40).data(), mutant.data() + 40, 8) == 0;
    if (good != right) throw InternalError("another lease than the door's");
    if (!good) Throw(kDenied, "not the current lease");
  });
}

// ---- A serial line: a microcontroller in a thread, which answers each start and then says what it is told.

namespace {

class LinePeer {
 public:
  LinePeer() : thread_([this] { Run(); }) {}
  ~LinePeer() {
    Say(-1, "", "");
    thread_.join();
  }
  /// Takes the other end of a line; an empty `answer`: the right one.
  void Say(int fd, std::string answer, std::string after) {
    std::lock_guard lock(mutex_);
    fd_ = fd;
    answer_ = std::move(answer);
    after_ = std::move(after);
    waiting_ = true;
    told_.notify_one();
  }

 private:
  void Run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      told_.wait(lock, [this] { return waiting_; });
      waiting_ = false;
      if (fd_ < 0) return;
      char got[256];
      size_t have = 0;
      // A zero byte, and the record with its own.
      for (ssize_t n; have < 2 || std::memchr(got + 1, 0, have - 1) == nullptr; have += static_cast<size_t>(n)) {
        n = read(fd_, got + have, sizeof got - have);
        if (n <= 0) break;
      }
      std::string all = answer_;
      if (all.empty() && have > 2) {
        const std::string start = Unstuffed(std::string_view(got + 1, have - 2));
        const std::string record = "A" + start.substr(std::min<size_t>(2, start.size()), 16) + std::string(16, 'n');
        all = Stuffed(record + Crc('S', 0, record));
      }
      all += after_;
      if (write(fd_, all.data(), all.size()) < 0) std::perror("fuzz: the line");
      shutdown(fd_, SHUT_WR);
      close(fd_);
    }
  }

 public:
  /// The check of a record without a key: CRC-32 of direction, number and record.
  static std::string Crc(char direction, uint64_t number, const std::string& record) {
    std::string text(1, direction), out;
    for (int i = 0; i < 8; ++i) text.push_back(static_cast<char>(number >> (8 * i)));
    uint32_t crc = ~0u;
    for (const char c : text + record) {
      crc ^= static_cast<unsigned char>(c);
      for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(~crc >> (8 * i)));
    return out;
  }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  std::string answer_, after_;
  int fd_ = -1;
  bool waiting_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("rpc fuzz: serial lines") {
  std::signal(SIGPIPE, SIG_IGN);
  const auto data = [](uint64_t number, const std::string& content) {
    const std::string record = "D" + content;
    return Stuffed(record + LinePeer::Crc('S', number, record));
  };
  const std::string refusal = "R" + std::string("has a key");
  const Corpus corpus = {data(1, "abc") + data(2, std::string(5, '\0')) + data(3, std::string(500, 'x')),
                         data(1, Frame(FrameType::kReply, 1, std::string(300, '\0'))),
                         Stuffed(refusal + LinePeer::Crc('S', 0, refusal))};
  const auto mutate = [](const std::string& s, const Corpus& all, Random* r) {
    return r->OneIn(6) ? s : fuzz::MutateBytes(s, all, r);
  };
  LinePeer peer;
  Fuzz("lines", corpus, mutate, [&](const std::string& mutant) {
    // Stuffing alone, then a line that begins right, or wrong.
    const std::string stuffed = Stuffed(mutant);
    if (stuffed.find('\0') != stuffed.size() - 1 ||
        Unstuffed(std::string_view(stuffed).substr(0, stuffed.size() - 1)) != mutant)
      throw InternalError("stuffing changes bytes");
    Unstuffed(mutant);
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    const bool begins = mutant.size() % 4 != 0;
    peer.Say(ends[1], begins ? "" : mutant, begins ? mutant : "");
    const auto channel = SerialOn(ends[0], mutant.size() % 5 ? "" : std::string(32, 'k'), "line", Deadline::In(5));
    char piece[100];
    try {
      while (channel->Read(piece, sizeof piece, Deadline::In(5)) > 0) continue;
    } catch (const Error& e) {
      if (e.kind() != kSessionLost) throw;  // else: all that came was right
    }
  });
}

// ---- Before a peer has proved itself.

TEST_CASE("rpc fuzz: handshakes") {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    LoadTls();
  } catch (const Error& e) {
    MESSAGE(e.what());
    return;
  }
  const Address address = Address::Parse("tls://127.0.0.1:1");
  const std::vector<Key> keys = {Key::New("lab")};
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  std::thread client([&] { CHECK_THROWS(TlsClient(ends[0], address, keys, Deadline::In(5))); });
  std::string hello(4096, '\0');
  const ssize_t got = read(ends[1], hello.data(), hello.size());
  close(ends[1]);
  client.join();
  REQUIRE(got > 50);
  hello.resize(static_cast<size_t>(got));
  const auto mutate = [](const std::string& s, const Corpus& all, Random* r) {
    std::string out = r->OneIn(20) ? s : fuzz::MutateBytes(s, all, r);
    if (out.size() > 5 && !r->OneIn(4)) {  // the lengths of record and message, so that what is in them is read
      out[0] = 22, out[1] = 3, out[5] = 1;
      const size_t record = out.size() - 5, message = record < 4 ? 0 : record - 4;
      out[3] = static_cast<char>(record >> 8), out[4] = static_cast<char>(record);
      if (out.size() > 9) out[7] = static_cast<char>(message >> 8), out[8] = static_cast<char>(message);
    }
    return out.substr(0, 16000);
  };
  Fuzz("handshakes", {hello}, mutate, [&](const std::string& mutant) {
    int both[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0);
    const bool sent = write(both[1], mutant.data(), mutant.size()) == static_cast<ssize_t>(mutant.size());
    shutdown(both[1], SHUT_WR);
    bool proved = true;
    std::string why;
    try {
      TlsServer(both[0], address, keys, Deadline::In(5));
    } catch (const Error& e) {
      proved = false;
      why = e.message();
    }
    close(both[1]);
    REQUIRE(sent);
    if (proved) throw InternalError("a peer got in that proved nothing");
    if (why.find("unexpected eof") == std::string::npos) Throw(kDenied, why);  // else: right so far
  });
}

// ---- Messages of trackers.

TEST_CASE("rpc fuzz: messages on a connection") {
  std::signal(SIGPIPE, SIG_IGN);
  const Scratch at("fuzz-socket");
  unlink(at.path.c_str());
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, at.path.c_str(), std::min(at.path.size(), sizeof name.sun_path - 1));
  REQUIRE(bind(listener, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
  REQUIRE(listen(listener, 8) == 0);
  const auto message = [](std::string_view text) {
    return Bytes().Raw(static_cast<uint32_t>(text.size())).Take().append(text);
  };
  const Corpus corpus = {message(R"({"type":"registered","server":"d1","resume":"00112233445566778899aabbccddeeff"})"),
                         message(R"({"type":"prepare","epoch":7,"ticket":"00ff","question":4294967295})") +
                             message(R"({"type":"end","epoch":7})"),
                         message("") + message("x") + message(std::string(3000, 'y'))};
  const auto mutate = [](const std::string& s, const Corpus& all, Random* r) {
    std::string out = r->OneIn(2) ? s : MutateWords(s, all, r);
    if (r->OneIn(3)) Overwrite(&out, r->OneIn(2) ? 0 : r->Below(out.size()), Hard(r), 4);
    return out.substr(0, 60000);  // as much as a socket takes that is not read
  };
  const PackedFunc* connect = Registry::Get("rpc.WireConnect");
  REQUIRE(connect != nullptr);
  Fuzz("messages", corpus, mutate, [&](const std::string& mutant) {
    const Module connection = (*connect)("unix:" + at.path, 5.0).As<Module>();
    const int peer = accept(listener, nullptr, nullptr);
    REQUIRE(peer >= 0);
    const bool sent = write(peer, mutant.data(), mutant.size()) >= 0;
    close(peer);
    REQUIRE(sent);
    const PackedFunc receive = connection.GetFunction("recv");
    for (Any got = receive(5.0); !got.is_null(); got = receive(5.0)) {
      const std::string text = got.As<std::string>();
      try {
        const support::Json json = support::Json::Parse(text, "message");
        json.At("type").AsString();
        json.At("epoch").AsInt();
      } catch (const Error&) {
        throw;
      } catch (const std::runtime_error& e) {
        Throw(kProtocolError, e.what());
      }
    }
  });
  close(listener);
}

}  // namespace baton::rpc::fuzzing
