// SPDX-License-Identifier: Apache-2.0
// The processes of a server: one that accepts connections and reads no byte of them, and one for each session.
#include <baton/runtime/array.h>
#include <baton/runtime/map.h>
#include <baton/runtime/module.h>
#include <baton/runtime/registry.h>
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
};

/// The process of a session: proves the peer, then serves it.
[[noreturn]] void RunWorker(Listener* listener, int fd, const ServerOptions& options, const std::string& folder,
                            pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before it could be tied to
  // Wakes the session, which ends as it does when its client goes, with its audit line.
  static int connection = -1;
  connection = fd;
  struct sigaction end{};
  end.sa_handler = [](int) { shutdown(connection, SHUT_RDWR); };
  sigaction(SIGTERM, &end, nullptr);
  signal(SIGINT, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (options.lifeline >= 0) close(options.lifeline);
  int code = 0;
  try {
    auto channel = listener->Authenticate(fd, Deadline::In(kHandshakeSeconds));
    ServerOptions own = options;
    for (const Key& key : listener->keys()) {
      if (own.policy.empty() && key.id == channel->key_id) own.policy = key.policy;
      if (key.id == channel->key_id) own.allow.insert(own.allow.end(), key.allow.begin(), key.allow.end());
    }
    if (own.policy.empty()) own.policy = channel->own_user ? "trusted" : "session";
    listener->Abandon();
    listener->ForgetKeys();
    if (mkdir(folder.c_str(), 0700) != 0) ThrowSystem("OSError", "no folder for the session");
    if (own.sandbox && own.policy != "trusted" && !EnterSandbox(folder, own)) {
      Throw(kRpcError, "this system cannot confine a session");
    }
    ServeSession(std::move(channel), own, folder);
  } catch (const std::exception& e) {
    code = 1;
    if (!options.quiet) {
      const std::string line = Cat("baton-rpc: refused: ", e.what(), "\n");
      if (write(2, line.data(), line.size()) < 0) code = 2;
    }
  }
  _exit(code);
}

pid_t Fork(const ServerOptions& options) {
  return options.fork.defined() ? static_cast<pid_t>(options.fork().As<int64_t>()) : fork();
}

void Reap(std::vector<Session>* sessions, Places* places, bool quiet) {
  for (size_t i = 0; i < sessions->size();) {
    const Session& s = (*sessions)[i];
    int status = 0;
    if (waitpid(s.pid, &status, WNOHANG) == 0) {
      ++i;
      continue;
    }
    const bool served = places->serves[s.place].exchange(0) != 0;
    if (served) places->taken.fetch_sub(1);
    if (!quiet && served && WIFSIGNALED(status)) {
      const std::string line = Cat("baton-rpc: session ", s.pid, " died of signal ", WTERMSIG(status), "\n");
      if (write(2, line.data(), line.size()) < 0) quiet = true;
    }
    RemoveFolder(s.folder);
    sessions->erase(sessions->begin() + static_cast<std::ptrdiff_t>(i));
  }
}

/// A place that no process has. When too many peers have not proved themselves, one of them is cut off at random: a
/// crowd of silent peers then cuts off its own, and a peer that speaks at once gets through.
int FreePlace(std::vector<Session>* sessions, Places* places, const ServerOptions& options) {
  std::vector<size_t> silent;
  for (size_t i = 0; i < sessions->size(); ++i) {
    if (!places->serves[(*sessions)[i].place]) silent.push_back(i);
  }
  if (silent.size() >= static_cast<size_t>(kHandshakes)) {
    const Session& s = (*sessions)[silent[static_cast<size_t>(random()) % silent.size()]];
    kill(s.pid, SIGKILL);
    waitpid(s.pid, nullptr, 0);
    if (places->serves[s.place].exchange(0)) places->taken.fetch_sub(1);
    RemoveFolder(s.folder);
    const int place = s.place;
    sessions->erase(sessions->begin() + (&s - sessions->data()));
    return place;
  }
  std::string used(static_cast<size_t>(options.max_sessions + kHandshakes), '\0');
  for (const Session& s : *sessions) used[static_cast<size_t>(s.place)] = 1;
  return static_cast<int>(used.find('\0'));
}

void EndAll(const std::vector<Session>& sessions) {
  for (const Session& s : sessions) kill(s.pid, SIGTERM);
  for (const Session& s : sessions) {
    bool ended = false;
    for (int i = 0; i < 50 && !ended; ++i) {
      ended = waitpid(s.pid, nullptr, WNOHANG) != 0;
      if (!ended) usleep(10000);
    }
    if (!ended) {
      for (const Session& other : sessions) kill(other.pid, SIGKILL);
      waitpid(s.pid, nullptr, 0);
    }
    RemoveFolder(s.folder);
  }
}

}  // namespace

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
  const std::string folder = MakeServerFolder();
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&set, s);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  const size_t bytes = sizeof(Places) + static_cast<size_t>(options.max_sessions + kHandshakes);
  void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) ThrowSystem("MemoryError", "no memory for the table of sessions");
  auto* places = static_cast<Places*>(shared);
  ServerOptions own_options = options;
  own_options.places = places;
  std::vector<Session> sessions;
  const pid_t self = getpid();
  for (uint64_t number = 0;;) {
    pollfd p[3] = {{listener->fd(), POLLIN, 0}, {signals, POLLIN, 0}, {options.lifeline, POLLIN, 0}};
    // While all places are taken, new connections wait in the queue of the socket.
    if (places->taken >= options.max_sessions) p[0].fd = -1;
    if (poll(p, 3, 1000) < 0 && errno != EINTR) break;
    signalfd_siginfo info{};
    bool stop = p[2].revents != 0;
    while (read(signals, &info, sizeof info) == sizeof info) stop = stop || info.ssi_signo != SIGCHLD;
    Reap(&sessions, places, options.quiet);
    if (stop) break;
    if (!(p[0].revents & POLLIN)) continue;
    const int fd = listener->AcceptFd(0);
    if (fd < 0) continue;
    const std::string own = Cat(folder, "/", ++number);
    own_options.place = FreePlace(&sessions, places, options);
    const pid_t pid = Fork(options);
    if (pid == 0) RunWorker(listener, fd, own_options, own, self);
    close(fd);
    if (pid > 0) sessions.push_back({pid, own, own_options.place});
  }
  EndAll(sessions);
  RemoveFolder(folder);
  munmap(shared, bytes);
  close(signals);
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
      o.load = value.As<bool>();
    } else if (name == "max_sessions") {
      o.max_sessions = value.As<int>();
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
  if (!o.policy.empty() && o.policy != "trusted" && o.policy != "session") {
    throw ValueError(Cat("policy `", o.policy, "` is unknown; there are session and trusted"));
  }
  return o;
}

/// A listening socket for another process of this program, which serves on it.
class ServerModule final : public ModuleNode {
 public:
  explicit ServerModule(const Address& address) : listener_(address) {}
  const char* type_key() const override { return "rpc.server"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    if (name == "url") return PackedFunc([this, self](Args, RetValue* rv) { *rv = listener_.address().Text(); });
    if (name == "port") return PackedFunc([this, self](Args, RetValue* rv) { *rv = listener_.address().port; });
    if (name == "close") return PackedFunc([this, self](Args, RetValue*) { listener_.Close(); });
    if (name == "abandon") return PackedFunc([this, self](Args, RetValue*) { listener_.Abandon(); });
    if (name == "serve") {
      return PackedFunc(
          [this, self](Args args, RetValue*) { ServeForever(&listener_, ReadOptions(args[0].As<Map<Any, Any>>())); });
    }
    return PackedFunc();
  }

 private:
  Listener listener_;
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
  if (options.sandbox && options.policy == "session" && !EnterSandbox(folder, options)) {
    Throw(kRpcError, "this system cannot confine a session; --no-sandbox serves it all the same");
  }
  ServeSession(std::move(channel), options, folder);
  RemoveFolder(folder);
}));

}  // namespace
}  // namespace baton::rpc
