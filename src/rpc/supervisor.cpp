// SPDX-License-Identifier: Apache-2.0
// The processes of a server: one that accepts connections and reads no byte of them, and one for each session, whose
// limits it keeps.
#include <baton/support/machine.h>
#include <baton/support/sha256.h>
#include <baton/support/text.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "rpc/audit.h"
#include "rpc/confine/confine.h"
#include "rpc/confine/control_group.h"
#include "rpc/confine/process.h"
#include "rpc/confine/warden.h"
#include "rpc/control.h"
#include "rpc/errors.h"
#include "rpc/places.h"
#include "rpc/worker.h"

namespace baton::rpc {
using support::Cat;

namespace {

constexpr int kHandshakes = 64;  // processes whose peer has not proved itself; one more ends one of them
constexpr int kRestMs = 500, kWatchMs = 50;
constexpr rlim_t kDescriptors = 65536;

/// Lives as long as the client of a process is there.
struct Link {
  Descriptor fd;       ///< its connection; or a pidfd of the process that has it
  bool front = false;  ///< the latter

  bool Over() const {
    pollfd p{fd.get(), static_cast<short>(front ? POLLIN : POLLRDHUP), 0};  // NOLINT(google-runtime-int)
    return !fd || (poll(&p, 1, 0) > 0 && p.revents != 0);
  }
};

/// A process of a session, from its fork on.
struct Session {
  pid_t pid = -1;
  std::string folder;
  int place = 0;
  Descriptor control;  ///< where its process takes connections, and says what it does
  Link client;
  SessionOutput output;
  std::unique_ptr<Warden> warden;
  bool begun = false;
  bool grouped = false;  ///< in its own control group
  int passes_for = -1;   ///< place of the session whose bytes it passes on
  std::string policy, peer;
  std::string account;  ///< what it says of itself at its end
  std::string doom;     ///< why it was killed
};

/// The process that accepts connections. It reads no byte of them: it hands each to a process that it made before.
class Supervisor {
 public:
  /// `listener` is null where there is one session alone, on descriptors.
  Supervisor(Listener* listener, const ServerOptions& options)
      : listener_(listener), options_(options), folder_(MakeServerFolder()) {
    sigset_t set;
    sigemptyset(&set);
    for (const int s : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&set, s);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    signals_ = Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
      files.rlim_cur = std::min(files.rlim_max, kDescriptors);
      setrlimit(RLIMIT_NOFILE, &files);
    }
    // A session, and what passes its bytes on.
    const int count = 2 * options.max_sessions + kHandshakes + options.warm;
    places_ = static_cast<Places*>(SharedMemory(PlacesBytes(count)));
    places_->count = count;
    options_.places = places_;
    options_.pulses = static_cast<SessionPulse*>(SharedMemory(static_cast<size_t>(count) * kPulseBytes));
    support::Machine();  // asked here, and not once in each process that is forked
    if (!options_.sandbox) return;
    ClearEnvironment();
    groups_ = ControlGroups::Take();
  }
  ~Supervisor() {
    EndAll();
    groups_.GiveBack();
    RemoveFolder(folder_);
    munmap(options_.pulses, static_cast<size_t>(places_->count) * kPulseBytes);
    munmap(places_, PlacesBytes(places_->count));
  }

  void Run() {
    while (Wait()) {
      // While all places are taken, new connections wait in the queue of the socket.
      const bool accepts = places_->taken < options_.max_sessions;
      if (const int fd = accepts ? listener_->AcceptFd(0) : -1; fd >= 0) {
        Give(Descriptor(fd));
      } else if (Warm() < options_.warm && !Start()) {
        usleep(100000);  // no processes or descriptors are left
      }
    }
  }

  void RunOne(int in, int out) {
    if (!Start(in, out)) ThrowSystem("OSError", "no process for the session");
    while (!sessions_.empty() && Wait()) {
    }
  }

 private:
  bool Wait() {
    const bool accepts = listener_ && places_->taken < options_.max_sessions;
    std::vector<pollfd> p = {
        {accepts ? listener_->fd() : -1, POLLIN, 0}, {signals_.get(), POLLIN, 0}, {options_.lifeline, POLLIN, 0}};
    bool confined = false;
    for (const Session& s : sessions_) {
      p.push_back({s.account.empty() ? s.control.get() : -1, POLLIN, 0});
      p.push_back({s.output.fd(), POLLIN, 0});
      p.push_back({s.warden ? s.warden->calls() : -1, POLLIN, 0});
      confined = confined || (s.warden && s.warden->calls() >= 0);
    }
    const bool full = !listener_ || Warm() >= options_.warm;
    if (poll(p.data(), p.size(), !full ? 0 : confined ? kWatchMs : kRestMs) < 0 && errno != EINTR) return false;
    signalfd_siginfo info{};
    bool stop = p[2].revents != 0;
    while (read(signals_.get(), &info, sizeof info) == sizeof info) stop = stop || info.ssi_signo != SIGCHLD;
    for (size_t i = 0; i < sessions_.size(); ++i) {
      Session& s = sessions_[i];
      const pollfd* at = &p[3 + 3 * i];
      if (at[0].revents) Hear(&s);
      if (at[1].revents) s.output.Pass(s.pid, false);
      if (at[2].revents) AnswerCalls(&s);
    }
    Evict();
    if (const int64_t now = NowMs(); now >= watch_ms_) {
      watch_ms_ = now + kWatchMs;
      for (Session& s : sessions_) Watch(&s);
    }
    Reap();
    return !stop;
  }

  Place::Work WorkOf(const Session& s) const { return static_cast<Place::Work>(places_->at[s.place].work.load()); }

  int Warm() const {
    return static_cast<int>(std::count_if(sessions_.begin(), sessions_.end(),
                                          [this](const Session& s) { return WorkOf(s) == Place::kWarm; }));
  }

  /// Hands a connection to a process that waits for one.
  void Give(Descriptor fd) {
    MakeRoom();
    for (int attempt = 0; attempt < 2; ++attempt) {
      for (Session& s : sessions_) {
        if (WorkOf(s) != Place::kWarm) continue;
        places_->at[s.place].work = Place::kUnknown;
        if (SendControl(s.control.get(), ControlMessage::kConnection, {}, fd.get())) {
          s.client.fd = std::move(fd);
          return;
        }
      }
      if (!Start()) break;  // no processes or descriptors are left
    }
  }

  /// Takes what the process of a session says. Once its session has begun, what runs there may be hostile: it is heard
  /// once more, and what it says is shown, not acted upon.
  void Hear(Session* s) {
    for (ControlMessage m; ReceiveControl(s->control.get(), &m);) {
      if (s->begun) {
        if (m.kind == ControlMessage::kEnds && s->account.empty()) s->account = m.text.empty() ? "?" : m.text;
        continue;
      }
      SessionTerms terms;
      const bool has_terms = m.text.size() >= sizeof terms;
      if (has_terms) std::memcpy(static_cast<void*>(&terms), m.text.data(), sizeof terms);
      if (m.kind == ControlMessage::kConnection) {
        PassOn(s, m);
      } else if (m.kind == ControlMessage::kFront) {
        s->client = {std::move(m.fd), true};  // a connection that were open here, too, would not end with that process
      } else if (m.kind == ControlMessage::kRefused && !options_.quiet) {
        Say(Cat("refused: ", Shown(m.text)));
      } else if (m.kind == ControlMessage::kConfined && has_terms && !s->warden) {
        s->warden =
            std::make_unique<Warden>(s->pid, s->folder, terms, std::move(m.fd), PulseOf(options_.pulses, s->place));
        s->grouped = groups_.there() && groups_.Enter(s->pid, terms);
      } else if (m.kind == ControlMessage::kBegins && has_terms) {
        Begin(s, terms, m.text.substr(sizeof terms));
      }
    }
  }

  void Begin(Session* s, const SessionTerms& terms, const std::string& text) {
    s->begun = true;
    s->policy = text.substr(0, text.find('\n'));
    s->peer = Shown(text.substr(s->policy.size() + 1));
    Descriptor none;
    if (!s->warden) {
      s->warden =
          std::make_unique<Warden>(s->pid, s->folder, terms, std::move(none), PulseOf(options_.pulses, s->place));
    }
    s->warden->Begin(terms);
    if (!options_.quiet) Say(Cat("session ", s->pid, " of ", s->peer, " begins"));
  }

  /// A passage has a connection for a session that lost its own.
  void PassOn(Session* passage, const ControlMessage& m) {
    for (Session& s : sessions_) {
      if (s.place != m.place || !places_->at[m.place].resumable) continue;
      SendControl(s.control.get(), ControlMessage::kConnection, {}, m.fd.get(), m.taken);
      passage->passes_for = s.place;
    }
  }

  void AnswerCalls(Session* s) {
    for (const std::string& name : s->warden->Answer()) {
      if (!options_.quiet) Say(Cat("session ", s->pid, " may not call ", name));
    }
  }

  bool ClientIsHere(const Session& s) const {
    if (!s.client.Over()) return true;
    return std::any_of(sessions_.begin(), sessions_.end(),
                       [&s](const Session& other) { return other.passes_for == s.place && !other.client.Over(); });
  }

  void Watch(Session* s) {
    if (!s->warden || !s->doom.empty()) return;
    s->doom = s->warden->Check(ClientIsHere(*s));
    if (!s->doom.empty()) kill(s->pid, SIGKILL);
  }

  /// Ends all sessions when the process that registers this server asks for it.
  void Evict() {
    if (!options_.census || options_.census->evict == evicted_) return;
    evicted_ = options_.census->evict;
    for (Session& s : sessions_) {
      if (WorkOf(s) != Place::kSession) continue;
      s.doom = "its lease is over";
      kill(s.pid, SIGKILL);
    }
  }

  /// Forks the process of a session: on two descriptors, or one that waits for a connection.
  bool Start(int in = -1, int out = -1) {
    int control[2], printed[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0) return false;
    Session s;
    s.control = Descriptor(control[0]);
    Descriptor theirs(control[1]);
    if (options_.sandbox && pipe2(printed, O_CLOEXEC) != 0) return false;
    s.output = SessionOutput(Descriptor(printed[0]));
    const Descriptor prints(printed[1]);
    if (printed[0] >= 0) fcntl(printed[0], F_SETFL, O_NONBLOCK);
    std::string used(static_cast<size_t>(places_->count), '\0');
    for (const Session& other : sessions_) used[static_cast<size_t>(other.place)] = 1;
    const size_t place = used.find('\0');
    if (place == std::string::npos) return false;
    s.place = options_.place = static_cast<int>(place);
    options_.control = theirs.get();
    places_->at[place].work = in < 0 ? Place::kWarm : Place::kUnknown;
    PulseOf(options_.pulses, s.place)->waits_since_ms = 0;
    const std::string random = RandomBytes(8);
    s.folder = Cat(folder_, "/", support::ToHex(reinterpret_cast<const uint8_t*>(random.data()), random.size()));
    const pid_t self = getpid();
    s.pid = options_.fork.defined() ? static_cast<pid_t>(options_.fork().As<int64_t>()) : fork();
    if (s.pid == 0) {
      signals_.Close();
      sessions_.clear();
      s.control.Close();
      s.output = SessionOutput();
      if (in >= 0) RunPipeWorker(in, out, options_, s.folder, self, prints.get());
      RunWorker(listener_, options_, s.folder, self, prints.get());
    }
    if (s.pid < 0) return false;
    if (in >= 0) s.client.fd = Descriptor(fcntl(in, F_DUPFD_CLOEXEC, 3));
    sessions_.push_back(std::move(s));
    return true;
  }

  /// Gives the place of a process that ended back, and says how its session ended.
  void Leave(Session* s, int status) {
    Hear(s);
    s->output.Pass(s->pid, true);
    Place& place = places_->at[s->place];
    place.resumable = 0;
    if (place.work.exchange(Place::kUnknown) == Place::kSession) {
      places_->taken.fetch_sub(1);
      if (options_.census) options_.census->active.fetch_sub(1);
    }
    if (s->grouped) groups_.Leave(s->pid);
    RemoveFolder(s->folder);
    if (options_.quiet || !s->begun) return;
    if (!s->doom.empty()) {
      Say(Cat("session ", s->pid, " of ", s->peer, " was ended: ", s->doom));
    } else if (!s->account.empty()) {
      Say(Cat("session ", s->pid, " of ", s->peer, ", policy ", s->policy, ": ", Shown(s->account)));
    } else if (WIFSIGNALED(status)) {
      Say(Cat("session ", s->pid, " died of signal ", WTERMSIG(status)));
    } else {
      Say(Cat("session ", s->pid, " of ", s->peer, " ended with code ", WEXITSTATUS(status)));
    }
  }

  void Reap() {
    for (size_t i = 0; i < sessions_.size();) {
      int status = 0;
      if (waitpid(sessions_[i].pid, &status, WNOHANG) == 0) {
        ++i;
        continue;
      }
      Leave(&sessions_[i], status);
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
    int status = 0;
    waitpid(sessions_[i].pid, &status, 0);
    Leave(&sessions_[i], status);
    sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  void EndAll() {
    for (const Session& s : sessions_) kill(s.pid, WorkOf(s) == Place::kWarm ? SIGKILL : SIGTERM);
    for (Session& s : sessions_) {
      int status = 0;
      bool ended = false;
      for (int i = 0; i < 50 && !ended; ++i) {
        ended = waitpid(s.pid, &status, WNOHANG) != 0;
        if (!ended && s.warden) AnswerCalls(&s);
        if (!ended) usleep(i < 10 ? 1000 : 10000);
      }
      if (!ended) {
        for (const Session& other : sessions_) kill(other.pid, SIGKILL);
        waitpid(s.pid, &status, 0);
      }
      Leave(&s, status);
    }
    sessions_.clear();
  }

  Listener* listener_;
  ServerOptions options_;
  std::string folder_;
  Descriptor signals_;
  ControlGroups groups_;
  Places* places_ = nullptr;
  std::vector<Session> sessions_;
  int64_t watch_ms_ = 0;
  int evicted_ = 0;
};

}  // namespace

void ServeForever(Listener* listener, const ServerOptions& options) {
  if (options.sandbox && !listener->address().IsLoopback() && !ConfinementWorks()) {
    Throw(kRpcError,
          "this system has no Landlock, or no seccomp with a listener, which confine what clients run: a server that "
          "others can reach does not start; --no-sandbox starts it all the same");
  }
  Supervisor(listener, options).Run();
}

void ServeOne(int in, int out, const ServerOptions& options) { Supervisor(nullptr, options).RunOne(in, out); }

}  // namespace baton::rpc
