// SPDX-License-Identifier: Apache-2.0
// The program baton-rpc-server: a server on the runtime and the library of sessions alone.
#include <baton/runtime/array.h>
#include <baton/runtime/map.h>
#include <baton/runtime/module.h>
#include <baton/runtime/registry.h>
#include <baton/support/text.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

#include "rpc/registrar.h"

using namespace baton::runtime;  // NOLINT
using baton::support::Cat;

namespace {

constexpr const char* kUsage = R"(usage: baton-rpc-server [--listen URL | --stdio] [options]

Runs what clients send: modules that they upload, and registered functions as far as the policy goes.

  --listen URL       unix:/path, tls://host:port, or tls://host:port?key=FILE (default: tls://127.0.0.1:9090).
                     Beyond this machine a key is needed: `baton rpc-key new` writes one.
  --stdio            one session on standard input and output, as for ssh://user@host
  --policy WORD      trusted (every registered function) or session (uploads, and what --allow names).
                     Default: trusted for this user on this machine, else as the key says
  --allow NAMES      registered functions that clients may call, with commas; `*` at the end: any that begin so
  --cpu SECONDS      of the processor for a session (default: any number)
  --no-sandbox       do not confine sessions that are not trusted (by Landlock and seccomp: files, processes, network)
  --load WORD        modules of a client's: any (default), signed (by a key of --signers), none; --no-load is none
  --signers FILE     public keys (Ed25519, PEM) of those that sign modules with `baton sign`
  --module FILE      the module that a client's system_lib() gives
  --tracker URL      register there (tls://host:port, ?key=FILE behind it); sessions need a lease of it then
  --key KIND         the kind of device that the tracker leases out (default: cpu); no secret
  --max-sessions N   sessions at once (default: 256)
  --key-sessions N   of these, sessions of one key (default: three quarters)
  --warm N           processes that wait for a client (default: 4)
  --idle SECONDS     a session without a call for so long ends (default: 600)
  --disk MIB         files of a session (default: 4096)
  --files N          names in its folder (default: 10000)
  --memory MIB       memory of a session (default: half of the machine's)
  --threads N        threads of a session (default: 512)
  --verbose          lines on standard error when a session begins and ends: its peer, calls, bytes

Exit codes: 0 ended, 1 failure, 2 wrong usage.
)";

bool ReadNumber(const char* text, double* out) {
  const char* end = text + std::strlen(text);
  return std::from_chars(text, end, *out).ptr == end && *text && *out > 0;
}

struct Command {
  std::string url = "tls://127.0.0.1:9090";
  std::string tracker, kind = "cpu";
  bool stdio = false;
  Map<Any, Any> options;
};

/// 0 to go on, else the exit code plus one.
int Parse(int argc, char** argv, Command* c) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--help" || arg == "-h") return fputs(kUsage, stdout), 1;
    if (arg == "--stdio") {
      c->stdio = true;
      continue;
    }
    if (arg == "--no-load" || arg == "--verbose" || arg == "--no-sandbox") {
      c->options.Set(Any(arg == "--verbose" ? "quiet" : arg == "--no-load" ? "load" : "sandbox"), Any(false));
      continue;
    }
    static constexpr struct {
      std::string_view flag;
      const char* name;
      double unit;  // 0: a text; -1: seconds
    } kFlags[] = {{"--tracker", "", 0},
                  {"--key", "", 0},
                  {"--listen", "", 0},
                  {"--policy", "policy", 0},
                  {"--allow", "allow", 0},
                  {"--module", "module", 0},
                  {"--load", "load", 0},
                  {"--signers", "signers", 0},
                  {"--idle", "idle_seconds", -1},
                  {"--max-sessions", "max_sessions", 1},
                  {"--key-sessions", "key_sessions", 1},
                  {"--files", "files", 1},
                  {"--threads", "threads", 1},
                  {"--warm", "warm", 1},
                  {"--cpu", "cpu_seconds", 1},
                  {"--disk", "disk_bytes", 1 << 20},
                  {"--memory", "memory_bytes", 1 << 20}};
    const auto* found = std::begin(kFlags);
    while (found != std::end(kFlags) && found->flag != arg) ++found;
    if (found == std::end(kFlags) || i + 1 == argc) {
      fprintf(stderr, "baton-rpc-server: %s `%s`; see --help\n",
              found == std::end(kFlags) ? "there is no option" : "a value is missing behind", argv[i]);
      return 3;
    }
    const char* value = argv[++i];
    double number = 0;
    if (found->unit != 0 && !ReadNumber(value, &number)) {
      fprintf(stderr, "baton-rpc-server: %s takes a number above 0, not `%s`\n", argv[i - 1], value);
      return 3;
    }
    if (found->unit > 0) {
      c->options.Set(Any(found->name), Any(static_cast<int64_t>(number * found->unit)));
    } else if (found->unit < 0) {
      c->options.Set(Any(found->name), Any(number));
    } else if (arg == "--listen") {
      c->url = value;
    } else if (arg == "--tracker") {
      c->tracker = value;
    } else if (arg == "--key") {
      c->kind = value;
    } else if (arg == "--allow") {
      Array<String> names;
      for (std::string_view rest = value; !rest.empty();) {
        const size_t comma = rest.find(',');
        names.push_back(String(rest.substr(0, comma)));
        rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
      }
      c->options.Set(Any(found->name), Any(names));
    } else {
      c->options.Set(Any(found->name), Any(value));
    }
  }
  return 0;
}

int Run(Command& c) {
  if (c.stdio) {
    // Functions that print must not print into the protocol.
    const int out = fcntl(1, F_DUPFD_CLOEXEC, 3), in = fcntl(0, F_DUPFD_CLOEXEC, 3);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, 0);
    dup2(2, 1);
    (*Registry::Get("rpc.ServePipes"))(in, out, c.options);
    return 0;
  }
  // From here on they are read where the server waits, be it that they come before it does.
  sigset_t ends;
  sigemptyset(&ends);
  for (const int s : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&ends, s);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  const Module server = (*Registry::Get("rpc.ServerListen"))(c.url).As<Module>();
  const std::string url = server.GetFunction("url")().As<std::string>();
  if (!c.tracker.empty()) {
    const int port = server.GetFunction("port")().As<int>();
    const int door = baton::rpc::StartRegistrar(c.tracker, c.kind, url, port, server);
    c.options.Set(Any("door"), Any(static_cast<int64_t>(door)));
  }
  printf("baton-rpc-server: listening on %s\n", url.c_str());
  fflush(stdout);
  server.GetFunction("serve")(c.options);
  server.GetFunction("close")();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  Command command;
  command.options.Set(Any("sandbox"), Any(true));
  if (const int code = Parse(argc, argv, &command)) return code - 1;
  try {
    return Run(command);
  } catch (const std::exception& e) {
    fprintf(stderr, "baton-rpc-server: %s\n", e.what());
    return 1;
  }
}
