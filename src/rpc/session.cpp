// SPDX-License-Identifier: Apache-2.0
// The process of a session, until it serves.
#include <baton/support/text.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

#include "rpc/confine/confine.h"
#include "rpc/control.h"
#include "rpc/errors.h"
#include "rpc/worker.h"

namespace baton::rpc {
using support::Cat;
namespace {

constexpr double kHandshakeSeconds = 2;

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

/// Makes sure of the peer, reads its greeting, and passes on what is not for this process.
std::unique_ptr<Channel> Prove(Listener* listener, int fd, ServerOptions* own) {
  auto channel = listener->Authenticate(fd, Deadline::In(kHandshakeSeconds));
  if (channel->grant) Grant(*channel->grant, own);
  if (own->policy.empty()) own->policy = channel->own_user ? "trusted" : "session";
  if (!listener->SharesKeys()) own->key_sessions = 0;  // the keys are the own user's
  listener->ForgetKeys();
  own->first = ReadFirst(channel.get(), Deadline::In(kHandshakeSeconds));
  if (!channel->key_id.empty() && PassOn(channel.get(), own->first, *own)) _exit(0);
  if (PassThrough(channel.get(), own->first, *own)) _exit(0);
  return channel;
}

/// Leaves the terminal of the server, whose input a program could write. `output`: takes what is printed here, and
/// what is there takes nothing else; -1: standard output and error stay.
void LeaveTerminal(int output) {
  setsid();
  if (output < 0) return;
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, 0);
  dup2(output, 1);
  dup2(output, 2);
}

/// Confines this process. The supervisor gets the descriptor on which it hears of calls; this process keeps none.
void Confine(const std::string& folder, const ServerOptions& options) {
  const SessionTerms terms = TermsOf(options);
  EnterConfinement(folder, terms, options.module_path, [&](int calls) {
    const std::string_view raw(reinterpret_cast<const char*>(&terms), sizeof terms);
    return SendControl(options.control, ControlMessage::kConfined, raw, calls);
  });
}

}  // namespace

void LoadVerifier() { VerifySignature(std::string(32, '\0'), "", std::string(64, '\0')); }

SessionTerms TermsOf(const ServerOptions& o) {
  SessionTerms terms;
  terms.wall_seconds = o.wall_seconds;
  terms.idle_seconds = o.idle_seconds;
  terms.memory_bytes = o.memory_bytes;
  terms.disk_bytes = o.disk_bytes;
  terms.files = o.files;
  terms.threads = o.threads;
  terms.cpu_seconds = o.cpu_seconds;
  terms.confined = o.sandbox && o.policy != "trusted";
  terms.devices = o.devices.empty();
  for (const std::string& one : o.devices) terms.devices = terms.devices || one != "cpu";
  return terms;
}

void RunWorker(Listener* listener, const ServerOptions& options, const std::string& folder, int parent, int output) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before it could be tied to
  prctl(PR_SET_NAME, "baton-idle");
  LeaveTerminal(options.sandbox ? output : -1);
  listener->Abandon();  // a server that comes after one that was killed finds its address free
  if (options.sandbox) CloseOthers({options.control, options.door});
  // Wakes the session, which ends as it does when its client goes, with its audit line.
  struct sigaction end{};
  end.sa_handler = [](int) { EndSession(); };
  sigaction(SIGTERM, &end, nullptr);
  signal(SIGINT, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (!options.sandbox && options.lifeline >= 0) close(options.lifeline);
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
    if (own.sandbox && own.policy != "trusted") Confine(folder, own);
    ServeSession(std::move(channel), own, folder);
  } catch (const std::exception& e) {
    code = 1;
    SayRefused(e, options);
  }
  _exit(code);
}

void RunPipeWorker(int in, int out, const ServerOptions& options, const std::string& folder, int parent, int output) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  LeaveTerminal(output);
  CloseOthers({in, out, options.control});
  int code = 0;
  try {
    auto channel = ChannelOfPipes(in, out);
    channel->own_user = true;
    channel->peer = "standard input";
    if (options.load == Load::kSigned) LoadVerifier();
    if (mkdir(folder.c_str(), 0700) != 0) ThrowSystem("OSError", "no folder for the session");
    Confine(folder, options);
    ServeSession(std::move(channel), options, folder);
  } catch (const std::exception& e) {
    code = 1;
    SayRefused(e, options);
  }
  _exit(code);
}

void SayRefused(const std::exception& error, const ServerOptions& options) {
  SendControl(options.control, ControlMessage::kRefused, error.what());
}

}  // namespace baton::rpc
