// SPDX-License-Identifier: Apache-2.0
#include "rpc/confine/filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <vector>

#include "rpc/confine/calls.h"
#include "rpc/errors.h"

namespace baton::rpc {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kMachine = AUDIT_ARCH_AARCH64;
#elif defined(__riscv) && __riscv_xlen == 64
constexpr uint32_t kMachine = AUDIT_ARCH_RISCV64;
#else
constexpr uint32_t kMachine = 0;
#endif

constexpr uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS, kEqual = BPF_JMP | BPF_JEQ | BPF_K,
                   kAnyBit = BPF_JMP | BPF_JSET | BPF_K, kAnd = BPF_ALU | BPF_AND | BPF_K, kReturn = BPF_RET | BPF_K;
constexpr uint32_t kDeny = SECCOMP_RET_ERRNO | EPERM;

// As the headers of newer systems have them.
constexpr uint32_t kNewListener = 1 << 3, kSyncError = 1 << 4;
constexpr uint32_t kVmaName = 0x53564d41;  // PR_SET_VMA
constexpr uint32_t kTmpFile = 020000000;   // __O_TMPFILE
constexpr uint32_t kFirstXFeature = 0x1021, kLastXFeature = 0x1025;
#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif

/// Calls that a process needs until its supervisor has the listener.
constexpr uint32_t kUntilSealed[] = {SYS_sendmsg, SYS_seccomp};

using Code = std::vector<sock_filter>;

/// The action for a call whose condition holds, or does not.
class Snippet {
 public:
  explicit Snippet(FilterKind kind) : kind_(kind), ask_(kind.asks ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW) {}

  Code Of(Check check) {
    code_.clear();
    switch (check) {
      case Check::kPass:
        return End(SECCOMP_RET_ALLOW);
      case Check::kAsk:
        return End(ask_);
      case Check::kEmulate:
        return End(SECCOMP_RET_TRAP);
      case Check::kMissing:
        return End(SECCOMP_RET_ERRNO | ENOSYS);
      case Check::kOwnProcess:
        Argument(0);
        return AllowOneOf({static_cast<uint32_t>(getpid())});
      case Check::kSelf:
        Argument(0);
        return AllowOneOf({0, static_cast<uint32_t>(getpid())});
      case Check::kOpenFirst:
        return Open(1);
      case Check::kOpenSecond:
        return Open(2);
      case Check::kMap:
        return Map();
      case Check::kClone:
        return Clone();
      case Check::kThreadName:
        Argument(0);
        return AllowOneOf({PR_SET_NAME, PR_GET_NAME, PR_GET_NO_NEW_PRIVS, kVmaName});
      case Check::kTileState:
        Argument(0);
        return AllowOneOf({kFirstXFeature, kFirstXFeature + 1, kFirstXFeature + 2, kFirstXFeature + 3, kLastXFeature});
      case Check::kControlFd:
        return ControlFd();
      case Check::kTimeouts:
        Argument(1);
        Add(kEqual, SOL_SOCKET, 1, 0);
        Add(kReturn, kDeny);
        Argument(2);
        return AllowOneOf({SO_RCVTIMEO, SO_SNDTIMEO});
      case Check::kHandler:  // LLVM sets its own handler of each signal that ends a program
        Argument(0);
        Add(kEqual, SIGSYS, 0, 1);
        Add(kReturn, SECCOMP_RET_ERRNO | 0);
        return End(SECCOMP_RET_ALLOW);
      case Check::kReadLimits:
        return ReadLimits();
      case Check::kDevice:
        return Device();
    }
    return End(kDeny);
  }

 private:
  void Add(uint16_t op, uint32_t k, size_t yes = 0, size_t no = 0) {
    code_.push_back({op, static_cast<uint8_t>(yes), static_cast<uint8_t>(no), k});
  }
  /// Loads the low half of an argument, which is all that the kernel takes of an int; or the high half.
  void Argument(size_t index, bool high = false) {
    Add(kLoad, static_cast<uint32_t>(offsetof(seccomp_data, args) + 8 * index + (high ? 4 : 0)));
  }
  Code End(uint32_t action) {
    Add(kReturn, action);
    return code_;
  }
  /// Lets what was loaded through when it is one of the values.
  Code AllowOneOf(std::initializer_list<uint32_t> values, uint32_t otherwise = kDeny) {
    for (const uint32_t value : values) {
      Add(kEqual, value, 0, 1);
      Add(kReturn, SECCOMP_RET_ALLOW);
    }
    return End(otherwise);
  }
  /// Without O_PATH, which Landlock lets through, and O_TMPFILE, whose files have no name to be counted by.
  Code Open(size_t flags) {
    Argument(flags);
    Add(kAnyBit, 010000000 /* O_PATH */ | kTmpFile | O_ASYNC, 0, 1);
    Add(kReturn, SECCOMP_RET_ERRNO | EACCES);
    Add(kAnyBit, O_CREAT, 0, 1);
    Add(kReturn, ask_);
    return End(SECCOMP_RET_ALLOW);
  }
  Code Map() {
    Argument(3);
    Add(kAnd, 0xf /* MAP_TYPE */);
    Add(kEqual, MAP_PRIVATE, 0, 1);
    Add(kReturn, SECCOMP_RET_ALLOW);
    if (kind_.devices) {
      Argument(3);
      Add(kAnyBit, MAP_ANONYMOUS, 1, 0);
      Add(kReturn, SECCOMP_RET_ALLOW);
    }
    return End(kDeny);
  }
  Code Clone() {
    constexpr uint32_t kThread = CLONE_THREAD | CLONE_VM | CLONE_SIGHAND;
    constexpr uint32_t kNever = CLONE_PTRACE | CLONE_UNTRACED | CLONE_VFORK | CLONE_PARENT | CLONE_PIDFD | CLONE_NEWNS |
                                CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |
                                CLONE_NEWCGROUP;
    Argument(0);
    Add(kAnd, kThread | kNever);
    Add(kEqual, kThread, 0, 1);
    Add(kReturn, kind_.front ? SECCOMP_RET_ALLOW : ask_);
    return End(kDeny);
  }
  Code ControlFd() {
    Argument(1);
    for (const uint32_t command : {F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC, F_DUPFD, F_GETLK, F_SETLK, F_SETLKW,
                                   F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW}) {
      Add(kEqual, command, 0, 1);
      Add(kReturn, SECCOMP_RET_ALLOW);
    }
    Add(kEqual, F_SETFL, 1, 0);
    Add(kReturn, kDeny);
    Argument(2);
    Add(kAnyBit, O_ASYNC, 0, 1);  // signals, which F_SETOWN sends to any process
    Add(kReturn, kDeny);
    return End(SECCOMP_RET_ALLOW);
  }
  Code ReadLimits() {
    Argument(0);
    Add(kEqual, 0, 2, 0);
    Add(kEqual, static_cast<uint32_t>(getpid()), 1, 0);
    Add(kReturn, kDeny);
    Argument(2);
    Add(kEqual, 0, 1, 0);
    Add(kReturn, kDeny);
    Argument(2, true);
    return AllowOneOf({0});
  }
  /// By the letter of the driver: DRM, NVIDIA, AMD. Those of terminals are never let through.
  Code Device() {
    Argument(1);
    Add(kEqual, TCGETS, 0, 1);
    Add(kReturn, SECCOMP_RET_ERRNO | ENOTTY);  // the C library asks whether a file is a terminal
    if (!kind_.devices) return End(kDeny);
    Add(kAnd, 0xff00);
    return AllowOneOf({'d' << 8, 'F' << 8, 'K' << 8});
  }

  FilterKind kind_;
  uint32_t ask_;
  Code code_;
};

/// Finds the row of the number that was loaded by bisection: the kernel tries a filter on each number when it is
/// installed, to remember those that always pass.
Code Search(std::span<const CallRow> rows, uint32_t otherwise, Snippet* snippet) {
  Code code;
  if (rows.size() > 3) {
    const size_t middle = rows.size() / 2;
    const Code below = Search(rows.first(middle), otherwise, snippet),
               above = Search(rows.subspan(middle), otherwise, snippet);
    code = {{BPF_JMP | BPF_JGE | BPF_K, 0, 1, static_cast<uint32_t>(rows[middle].number)},
            {BPF_JMP | BPF_JA, 0, 0, static_cast<uint32_t>(below.size())}};
    code.insert(code.end(), below.begin(), below.end());
    code.insert(code.end(), above.begin(), above.end());
    return code;
  }
  for (const CallRow& row : rows) {
    const Code body = snippet->Of(row.check);
    code.push_back({kEqual, 0, static_cast<uint8_t>(body.size()), static_cast<uint32_t>(row.number)});
    code.insert(code.end(), body.begin(), body.end());
  }
  code.push_back({kReturn, 0, 0, otherwise});
  return code;
}

Code ProgramOf(FilterKind kind) {
  Code code;
  const auto add = [&code](uint16_t op, uint32_t k, uint8_t yes = 0, uint8_t no = 0) {
    code.push_back({op, yes, no, k});
  };
  add(kLoad, offsetof(seccomp_data, arch));
  add(kEqual, kMachine, 1, 0);
  add(kReturn, SECCOMP_RET_KILL_PROCESS);
  add(kLoad, offsetof(seccomp_data, nr));
#if defined(__x86_64__)
  add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);  // calls of the x32 interface
  add(kReturn, SECCOMP_RET_KILL_PROCESS);
#endif
  if (kind.asks) {
    for (const uint32_t number : kUntilSealed) {
      add(kEqual, number, 0, 1);
      add(kReturn, SECCOMP_RET_ALLOW);
    }
  }
  std::vector<CallRow> rows;
  for (const CallRow& row : SessionCalls()) {
    if (row.front || !kind.front) rows.push_back(row);
  }
  std::sort(rows.begin(), rows.end(), [](const CallRow& a, const CallRow& b) { return a.number < b.number; });
  Snippet snippet(kind);
  const Code tree = Search(rows, kind.asks ? SECCOMP_RET_USER_NOTIF : kDeny, &snippet);
  code.insert(code.end(), tree.begin(), tree.end());
  return code;
}

/// Returns what the kernel does: the listener, or 0. Throws RPCError.
int Install(Code code, uint32_t flags) {
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};     // NOLINT(google-runtime-int)
  const long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);  // NOLINT(google-runtime-int)
  if (result < 0 && errno == EBUSY) {
    Throw(kRpcError,
          "this server is itself within a filter with a listener, as some containers have, and cannot add one");
  }
  if (result < 0) ThrowSystem(kRpcError, "this system does not filter system calls");
  if (result > 0 && !(flags & kNewListener)) Throw(kRpcError, "a thread of this process cannot be filtered");
  return static_cast<int>(result);
}

}  // namespace

int InstallFilter(FilterKind kind) {
  if (kMachine == 0) Throw(kRpcError, "sessions are not confined on this kind of processor");
  const uint32_t flags = SECCOMP_FILTER_FLAG_TSYNC | (kind.asks ? kNewListener | kSyncError : 0);
  const int listener = Install(ProgramOf(kind), flags);
  return kind.asks ? listener : -1;
}

void SealFilter() {
  Code code = {{kLoad, 0, 0, offsetof(seccomp_data, nr)}};
  for (const uint32_t number : kUntilSealed) {
    code.push_back({kEqual, 0, 1, number});
    code.push_back({kReturn, 0, 0, kDeny});
  }
  code.push_back({kReturn, 0, 0, SECCOMP_RET_ALLOW});
  Install(std::move(code), SECCOMP_FILTER_FLAG_TSYNC);
}

}  // namespace baton::rpc
