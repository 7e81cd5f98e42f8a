// SPDX-License-Identifier: Apache-2.0
// The processes of a server: one that accepts connections and reads no byte of them, and one for each session.
#include <baton/runtime/array.h>
#include <baton/runtime/map.h>
#include <baton/runtime/module.h>
#include <baton/runtime/registry.h>
#include <baton/support/machine.h>
#include <baton/support/text.h>
#include <dirent.h>
#include <ftw.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "rpc/errors.h"
#include "rpc/worker.h"

namespace baton::rpc {
using namespace runtime;  // NOLINT
using support::Cat;
namespace {

constexpr double kHandshakeSeconds = 2;
constexpr const char* kFolderHead = "baton-rpc-server-";

std::string TemporaryFolder() {
  const char* given = getenv("TMPDIR");
  return given && *given == '/' ? given : "/tmp";
}

constexpr int kHandshakes = 64;  // processes whose peer has not proved itself; one more ends one of them

struct Session {
  pid_t pid;
  std::string folder;
  int place;
  int control;  ///< where its process takes connections in place of a lost one
};

/// Zeros that this process and those that it forks read and write.
void* SharedMemory(size_t bytes) {
  void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) ThrowSystem("MemoryError", "no memory for the table of sessions");
  return shared;
}

/// Gives a session what its key and the server do; the caveats of a token take of both.
void Grant(const Key& key, ServerOptions* options) {
  Key sum = key;
  if (!options->policy.empty()) sum.policy = options->policy;
  sum.allow.insert(sum.allow.end(), options->allow.begin(), options->allow.end());
  if (options->load < sum.load) sum.load = options->load;
  for (const std::string& caveat : key.caveats) sum.Narrow(caveat);
  options->policy = sum.policy;
  options->allow = sum.allow;
  options->load = sum.load;
  options->devices = sum.devices;
  const auto less = [](uint64_t given, uint64_t* slot) {
    if (given && (*slot == 0 || given < *slot)) *slot = given;
  };
  less(sum.memory, &options->memory_bytes);
  less(sum.disk, &options->disk_bytes);
  less(sum.cpu, &options->cpu_seconds);
  options->wall_seconds = static_cast<double>(sum.wall);
  if (sum.expires) {
    const double left = static_cast<double>(sum.expires - time(nullptr));
    if (options->wall_seconds == 0 || left < options->wall_seconds) options->wall_seconds = left < 1 ? 1 : left;
  }
}

/// Has OpenSSL read its files, which a confined process cannot.
void LoadVerifier() { VerifySignature(std::string(32, '\0'), "", std::string(64, '\0')); }

/// Makes sure of the peer, reads its greeting, and passes on what is not for this process.
std::unique_ptr<Channel> Prove(Listener* listener, int fd, ServerOptions* own) {
  auto channel = listener->Authenticate(fd, Deadline::In(kHandshakeSeconds));
  if (channel->grant) Grant(*channel->grant, own);
  if (own->policy.empty()) own->policy = channel->own_user ? "trusted" : "session";
  listener->ForgetKeys();
  own->first = ReadFirst(channel.get(), Deadline::In(kHandshakeSeconds));
  if (!channel->key_id.empty() && PassOn(channel.get(), own->first, *own)) _exit(0);
  if (PassThrough(channel.get(), own->first, *own)) _exit(0);
  return channel;
}

/// The process of a session: waits for a connection, proves the peer, then serves it.
[[noreturn]] void RunWorker(Listener* listener, const ServerOptions& options, const std::string& folder, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before it could be tied to
  prctl(PR_SET_NAME, "baton-idle");
  listener->Abandon();  // a server that comes after one that was killed finds its address free
  // Wakes the session, which ends as it does when its client goes, with its audit line.
  struct sigaction end{};
  end.sa_handler = [](int) { EndSession(); };
  sigaction(SIGTERM, &end, nullptr);
  signal(SIGINT, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (options.lifeline >= 0) close(options.lifeline);
  int code = 0;
  try {
    uint64_t unused = 0;
    const int fd = TakeConnection(options.control, &unused, Deadline::Never());
    prctl(PR_SET_NAME, "baton-handshake");
    SetSessionConnection(fd);
    ServerOptions own = options;
    const Prover prove = [listener](int at, ServerOptions* to) { return Prove(listener, at, to); };
    const bool apart = options.sandbox && listener->SharesKeys();
    auto channel = apart ? OpenFront(prove, fd, &own) : prove(fd, &own);
    if (own.load == Load::kSigned) LoadVerifier();
    if (mkdir(folder.c_str(), 0700) != 0) ThrowSystem("OSError", "no folder for the session");
    if (own.sandbox && own.policy != "trusted" && !EnterSandbox(folder, own)) {
      Throw(kRpcError, "this system cannot confine a session");
    }
    ServeSession(std::move(channel), own, folder);
  } catch (const std::exception& e) {
    code = 1;
    SayRefused(e, options);
  }
  _exit(code);
}

/// The process that accepts connections. It reads no byte of them: it hands each to a process that it made before.
class Supervisor {
 public:
  Supervisor(Listener* listener, const ServerOptions& options)
      : listener_(listener), options_(options), folder_(MakeServerFolder()) {
    sigset_t set;
    sigemptyset(&set);
    for (const int s : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&set, s);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    // A session, and what passes its bytes on.
    const int count = 2 * options.max_sessions + kHandshakes + options.warm;
    places_ = static_cast<Places*>(SharedMemory(PlacesBytes(count)));
    places_->count = count;
    options_.places = places_;
    support::Machine();  // asked here, and not once in each process that is forked
  }
  ~Supervisor() {
    EndAll();
    RemoveFolder(folder_);
    munmap(places_, PlacesBytes(places_->count));
    close(signals_);
  }

  void Run() {
    while (Wait()) {
      // While all places are taken, new connections wait in the queue of the socket.
      const bool accepts = places_->taken < options_.max_sessions;
      if (const int fd = accepts ? listener_->AcceptFd(0) : -1; fd >= 0) {
        Give(fd);
      } else if (Warm() < options_.warm && !Start()) {
        usleep(100000);  // no processes or descriptors are left
      }
    }
  }

 private:
  bool Wait() {
    std::vector<pollfd> p = {{listener_->fd(), POLLIN, 0}, {signals_, POLLIN, 0}, {options_.lifeline, POLLIN, 0}};
    if (places_->taken >= options_.max_sessions) p[0].fd = -1;
    for (const Session& s : sessions_) {
      // One whose peer proves itself now may turn out to pass bytes on.
      if (WorkOf(s) == Place::kPassage || WorkOf(s) == Place::kUnknown) p.push_back({s.control, POLLIN, 0});
    }
    const bool full = Warm() >= options_.warm;
    if (poll(p.data(), p.size(), full ? 500 : 0) < 0 && errno != EINTR) return false;
    signalfd_siginfo info{};
    bool stop = p[2].revents != 0;
    while (read(signals_, &info, sizeof info) == sizeof info) stop = stop || info.ssi_signo != SIGCHLD;
    for (const Session& s : sessions_) {
      if (WorkOf(s) == Place::kPassage) Relay(s);
    }
    Reap();
    return !stop;
  }

  Place::Work WorkOf(const Session& s) const { return static_cast<Place::Work>(places_->at[s.place].work.load()); }

  int Warm() const {
    int count = 0;
    for (const Session& s : sessions_) count += WorkOf(s) == Place::kWarm;
    return count;
  }

  /// Hands a connection to a process that waits for one.
  void Give(int fd) {
    MakeRoom();
    for (int attempt = 0; attempt < 2; ++attempt) {
      for (const Session& s : sessions_) {
        if (WorkOf(s) != Place::kWarm) continue;
        places_->at[s.place].work = Place::kUnknown;
        if (HandOver(s.control, fd, 0, -1)) {
          close(fd);
          return;
        }
      }
      if (!Start(fd)) break;
    }
    close(fd);  // no processes or descriptors are left
  }

  /// A passage has a connection for a session that lost its own.
  void Relay(const Session& passage) {
    int fd = -1, place = -1;
    uint64_t taken = 0;
    if (!ReceiveHandedOver(passage.control, &fd, &taken, &place)) return;
    for (const Session& s : sessions_) {
      if (s.place == place && places_->at[place].resumable) HandOver(s.control, fd, taken, -1);
    }
    close(fd);
  }

  /// A process that waits for a connection; `given`: a connection of this process that is not for it to keep.
  bool Start(int given = -1) {
    int control[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0) return false;
    std::string used(static_cast<size_t>(places_->count), '\0');
    for (const Session& s : sessions_) used[static_cast<size_t>(s.place)] = 1;
    const size_t place = used.find('\0');
    const pid_t self = getpid();
    pid_t pid = -1;
    if (place != std::string::npos) {
      options_.place = static_cast<int>(place);
      options_.control = control[1];
      places_->at[place].work = Place::kWarm;
      pid = options_.fork.defined() ? static_cast<pid_t>(options_.fork().As<int64_t>()) : fork();
    }
    const std::string own = Cat(folder_, "/", ++number_);
    if (pid == 0) {
      close(control[0]);
      close(signals_);
      if (given >= 0) close(given);
      for (const Session& s : sessions_) close(s.control);
      RunWorker(listener_, options_, own, self);
    }
    close(control[1]);
    if (pid < 0) {
      close(control[0]);
      return false;
    }
    sessions_.push_back({pid, own, static_cast<int>(place), control[0]});
    return true;
  }

  /// Gives the place of a process that ended back; whether it served a session.
  bool Leave(const Session& s) {
    Place& place = places_->at[s.place];
    place.resumable = 0;
    const bool served = place.work.exchange(Place::kUnknown) == Place::kSession;
    if (served) places_->taken.fetch_sub(1);
    close(s.control);
    RemoveFolder(s.folder);
    return served;
  }

  void Reap() {
    for (size_t i = 0; i < sessions_.size();) {
      const Session& s = sessions_[i];
      int status = 0;
      if (waitpid(s.pid, &status, WNOHANG) == 0) {
        ++i;
        continue;
      }
      const bool served = Leave(s);
      if (!options_.quiet && served && WIFSIGNALED(status)) {
        const std::string line = Cat("baton-rpc: session ", s.pid, " died of signal ", WTERMSIG(status), "\n");
        if (write(2, line.data(), line.size()) < 0) options_.quiet = true;
      }
      sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  /// When too many peers have not proved themselves, one of them is cut off at random: a crowd of silent peers then
  /// cuts off its own, and a peer that speaks at once gets through.
  void MakeRoom() {
    std::vector<size_t> silent, passages;
    for (size_t i = 0; i < sessions_.size(); ++i) {
      if (WorkOf(sessions_[i]) == Place::kUnknown) silent.push_back(i);
      if (WorkOf(sessions_[i]) == Place::kPassage) passages.push_back(i);
    }
    const bool full = sessions_.size() >= static_cast<size_t>(places_->count);
    if (silent.size() < static_cast<size_t>(kHandshakes) && !full) return;
    if (silent.empty()) silent = passages;
    if (silent.empty()) return;
    const size_t i = silent[static_cast<size_t>(random()) % silent.size()];
    kill(sessions_[i].pid, SIGKILL);
    waitpid(sessions_[i].pid, nullptr, 0);
    Leave(sessions_[i]);
    sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  void EndAll() {
    for (const Session& s : sessions_) kill(s.pid, WorkOf(s) == Place::kWarm ? SIGKILL : SIGTERM);
    for (const Session& s : sessions_) {
      bool ended = false;
      for (int i = 0; i < 50 && !ended; ++i) {
        ended = waitpid(s.pid, nullptr, WNOHANG) != 0;
        if (!ended) usleep(i < 10 ? 1000 : 10000);
      }
      if (!ended) {
        for (const Session& other : sessions_) kill(other.pid, SIGKILL);
        waitpid(s.pid, nullptr, 0);
      }
      RemoveFolder(s.folder);
    }
  }

  Listener* listener_;
  ServerOptions options_;
  std::string folder_;
  int signals_ = -1;
  Places* places_ = nullptr;
  std::vector<Session> sessions_;
  uint64_t number_ = 0;
};

}  // namespace

void SayRefused(const std::exception& error, const ServerOptions& options) {
  const std::string line = Cat("baton-rpc: refused: ", error.what(), "\n");
  if (!options.quiet && write(2, line.data(), line.size()) < 0) _exit(2);
}

void RemoveFolder(const std::string& path) noexcept {
  nftw(
      path.c_str(), [](const char* name, const struct stat*, int, FTW*) { return remove(name), 0; }, 16,
      FTW_DEPTH | FTW_PHYS);
}

std::string MakeServerFolder() {
  const std::string parent = TemporaryFolder();
  if (DIR* all = opendir(parent.c_str())) {
    while (const dirent* e = readdir(all)) {
      if (std::strncmp(e->d_name, kFolderHead, std::strlen(kFolderHead)) != 0) continue;
      const std::string path = Cat(parent, "/", e->d_name);
      const int pid = atoi(e->d_name + std::strlen(kFolderHead));
      struct stat info{};
      if (pid > 1 && lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
          kill(pid, 0) != 0 && errno == ESRCH) {
        RemoveFolder(path);
      }
    }
    closedir(all);
  }
  std::string path = Cat(parent, "/", kFolderHead, getpid(), "-XXXXXX");
  if (!mkdtemp(path.data())) ThrowSystem("OSError", Cat("cannot make a folder in `", parent, "`"));
  return path;
}

void ServeForever(Listener* listener, const ServerOptions& options) {
  if (options.sandbox && !listener->address().IsLoopback() && !SandboxWorks()) {
    Throw(
        kRpcError,
        "this system has no Landlock, which confines what clients run: a server that others can reach does not start; "
        "--no-sandbox starts it all the same");
  }
  Supervisor(listener, options).Run();
}

namespace {

ServerOptions ReadOptions(const Map<Any, Any>& given) {
  ServerOptions o;
  for (const auto& [key, value] : given) {
    const std::string name = key.As<std::string>();
    if (name == "policy") {
      o.policy = value.As<std::string>();
    } else if (name == "allow") {
      const Array<String> allow = value.As<Array<String>>();
      for (const String& one : allow) o.allow.push_back(one);
    } else if (name == "load") {
      const bool word = value.Is<std::string>();
      Key rule;
      rule.Narrow(Cat("load=", word ? value.As<std::string>() : value.As<bool>() ? "any" : "none"));
      o.load = rule.load;
    } else if (name == "signers") {
      o.signers = ReadSigners(value.As<std::string>());
    } else if (name == "max_sessions") {
      o.max_sessions = value.As<int>();
    } else if (name == "warm") {
      o.warm = value.As<int>();
    } else if (name == "idle_seconds") {
      o.idle_seconds = value.As<double>();
    } else if (name == "disk_bytes") {
      o.disk_bytes = static_cast<uint64_t>(value.As<int64_t>());
    } else if (name == "memory_bytes") {
      o.memory_bytes = static_cast<uint64_t>(value.As<int64_t>());
    } else if (name == "module") {
      o.module_path = value.As<std::string>();
    } else if (name == "quiet") {
      o.quiet = value.As<bool>();
    } else if (name == "sandbox") {
      o.sandbox = value.As<bool>();
    } else if (name == "cpu_seconds") {
      o.cpu_seconds = static_cast<uint64_t>(value.As<int64_t>());
    } else if (name == "lifeline") {
      o.lifeline = value.As<int>();
    } else if (name == "door") {
      o.door = value.As<int>();
    } else if (name == "fork") {
      o.fork = value.As<PackedFunc>();
    } else {
      throw ValueError(Cat("a server has no option `", name, "`"));
    }
  }
  if (o.load == Load::kSigned && o.signers.empty()) {
    throw ValueError("modules are to be signed, but by which keys? --signers FILE names the public keys");
  }
  if (!o.policy.empty() && o.policy != "trusted" && o.policy != "session") {
    throw ValueError(Cat("policy `", o.policy, "` is unknown; there are session and trusted"));
  }
  return o;
}

/// A listening socket for another process of this program, which serves on it.
class ServerModule final : public ModuleNode {
 public:
  explicit ServerModule(const Address& address) : listener_(address) {
    begun_ = static_cast<std::atomic<int>*>(SharedMemory(kBegunBytes));
  }
  ~ServerModule() override { munmap(begun_, kBegunBytes); }
  const char* type_key() const override { return "rpc.server"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    if (name == "url") return PackedFunc([this, self](Args, RetValue* rv) { *rv = listener_.address().Text(); });
    if (name == "port") return PackedFunc([this, self](Args, RetValue* rv) { *rv = listener_.address().port; });
    if (name == "close") return PackedFunc([this, self](Args, RetValue*) { listener_.Close(); });
    if (name == "abandon") return PackedFunc([this, self](Args, RetValue*) { listener_.Abandon(); });
    if (name == "begun") return PackedFunc([this, self](Args, RetValue* rv) { *rv = begun_->load(); });
    if (name == "serve") {
      return PackedFunc([this, self](Args args, RetValue*) {
        ServerOptions options = ReadOptions(args[0].As<Map<Any, Any>>());
        options.begun = begun_;
        ServeForever(&listener_, options);
      });
    }
    return PackedFunc();
  }

 private:
  Listener listener_;
  std::atomic<int>* begun_;
};

BATON_REGISTER_GLOBAL("rpc.ServerListen").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = MakeModule<ServerModule>(Address::Parse(args[0].As<std::string>()));
}));
/// (in, out, options): serves the session at the other end of two descriptors, in this process.
BATON_REGISTER_GLOBAL("rpc.ServePipes").set_body(PackedFunc([](Args args, RetValue*) {
  const ServerOptions options = ReadOptions(args[2].As<Map<Any, Any>>());
  auto channel = ChannelOfPipes(args[0].As<int>(), args[1].As<int>());
  channel->own_user = true;
  channel->peer = "standard input";
  const std::string folder = MakeServerFolder();
  if (options.load == Load::kSigned) LoadVerifier();
  if (options.sandbox && options.policy == "session" && !EnterSandbox(folder, options)) {
    Throw(kRpcError, "this system cannot confine a session; --no-sandbox serves it all the same");
  }
  ServeSession(std::move(channel), options, folder);
  RemoveFolder(folder);
}));

}  // namespace
}  // namespace baton::rpc
