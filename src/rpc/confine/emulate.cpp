// SPDX-License-Identifier: Apache-2.0
// Queries of files by name. The kernel lets a confined process ask about every file, whatever Landlock says of it; so
// the filter stops these calls, and a handler here answers them by opening the file, which Landlock decides.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "rpc/confine/filter.h"

namespace baton::rpc {
namespace {

/// Registers of a call: its arguments, and the place of its result.
struct CallRegisters {
  long arguments[4];  // NOLINT(google-runtime-int)
  long* result;       // NOLINT(google-runtime-int)
};

CallRegisters RegistersOf(ucontext_t* context) {
#if defined(__x86_64__)
  greg_t* r = context->uc_mcontext.gregs;
  return {{r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10]}, reinterpret_cast<long*>(&r[REG_RAX])};  // NOLINT
#elif defined(__aarch64__)
  auto* r = reinterpret_cast<long*>(context->uc_mcontext.regs);  // NOLINT
  return {{r[0], r[1], r[2], r[3]}, &r[0]};
#elif defined(__riscv)
  auto* r = reinterpret_cast<long*>(context->uc_mcontext.__gregs);  // NOLINT
  return {{r[10], r[11], r[12], r[13]}, &r[10]};
#else
  (void)context;
  static long none;  // NOLINT
  return {{0, 0, 0, 0}, &none};
#endif
}

/// The result of a system call: a value, or an errno below zero.
long Result(long value) { return value < 0 ? -errno : value; }  // NOLINT(google-runtime-int)

long Open(int folder, const char* name, int flags) {  // NOLINT(google-runtime-int)
  if (!name) return -EFAULT;
  return Result(syscall(SYS_openat, folder, name, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

long Stat(int folder, const char* name, void* out, int flags) {  // NOLINT(google-runtime-int)
  if (name && !*name && (flags & AT_EMPTY_PATH)) return Result(syscall(SYS_fstat, folder, out));
  const long fd = Open(folder, name, O_RDONLY | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0));  // NOLINT
  if (fd < 0) return fd;
  const long result = Result(syscall(SYS_fstat, fd, out));  // NOLINT
  close(static_cast<int>(fd));
  return result;
}

long Access(int folder, const char* name, int mode) {               // NOLINT(google-runtime-int)
  long fd = Open(folder, name, mode & W_OK ? O_WRONLY : O_RDONLY);  // NOLINT
  if (fd == -EISDIR) fd = Open(folder, name, O_RDONLY);
  if (fd < 0) return fd;
  close(static_cast<int>(fd));
  return 0;
}

/// A file other than a link, as those of the session's folder, or one that it may not ask about.
long ReadLink(int folder, const char* name) {                 // NOLINT(google-runtime-int)
  const long fd = Open(folder, name, O_RDONLY | O_NOFOLLOW);  // NOLINT(google-runtime-int)
  if (fd >= 0) close(static_cast<int>(fd));
  return fd == -ELOOP ? -EACCES : fd == -ENOENT || fd == -EFAULT ? fd : -EINVAL;
}

void Answer(int, siginfo_t* info, void* raw) {
  const int before = errno;
  const CallRegisters call = RegistersOf(static_cast<ucontext_t*>(raw));
  const long* a = call.arguments;  // NOLINT(google-runtime-int)
  const auto folder = static_cast<int>(a[0]);
  const auto name = [a](int i) { return reinterpret_cast<const char*>(a[i]); };
  const auto memory = [a](int i) { return reinterpret_cast<void*>(a[i]); };
  switch (info->si_syscall) {
    case SYS_newfstatat:
      *call.result = Stat(folder, name(1), memory(2), static_cast<int>(a[3]));
      break;
    case SYS_faccessat:
      *call.result = Access(folder, name(1), static_cast<int>(a[2]));
      break;
#ifdef SYS_stat
    case SYS_stat:
      *call.result = Stat(AT_FDCWD, name(0), memory(1), 0);
      break;
    case SYS_lstat:
      *call.result = Stat(AT_FDCWD, name(0), memory(1), AT_SYMLINK_NOFOLLOW);
      break;
    case SYS_access:
      *call.result = Access(AT_FDCWD, name(0), static_cast<int>(a[1]));
      break;
    case SYS_readlink:
      *call.result = ReadLink(AT_FDCWD, name(0));
      break;
#endif
    case SYS_readlinkat:
      *call.result = ReadLink(folder, name(1));
      break;
    default:
      *call.result = -EPERM;
  }
  errno = before;
}

}  // namespace

void EmulateQueries() {
  struct sigaction action{};
  action.sa_sigaction = Answer;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
  sigaction(SIGSYS, &action, nullptr);
}

}  // namespace baton::rpc
