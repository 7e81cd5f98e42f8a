// SPDX-License-Identifier: Apache-2.0
#include "rpc/confine/calls.h"

#include <sys/syscall.h>

namespace baton::rpc {
namespace {

// A model needs the first six groups; an OpenCL driver (PoCL) names and folders, too; drivers of GPUs ioctl.
// `sendmsg` has no row: it would send descriptors, which count against all processes of the user.
constexpr CallRow kCalls[] = {
    // A message from or to the client, and waiting for it.
    {SYS_recvfrom, Check::kPass, true},
    {SYS_sendto, Check::kPass, true},
    {SYS_read, Check::kPass, true},
    {SYS_write, Check::kPass, true},
    {SYS_futex, Check::kPass, true},
    {SYS_ppoll, Check::kPass, true},
#ifdef SYS_poll
    {SYS_poll, Check::kPass, true},
#endif
    {SYS_readv, Check::kPass, true},
    {SYS_writev, Check::kPass, true},
    {SYS_recvmsg, Check::kPass, true},  // a connection in place of a lost one
    {SYS_shutdown, Check::kPass, true},
    {SYS_getsockopt, Check::kPass, true},
    {SYS_setsockopt, Check::kTimeouts, true},
    // Time and chance.
    {SYS_clock_gettime, Check::kPass, true},
    {SYS_clock_getres, Check::kPass, true},
    {SYS_clock_nanosleep, Check::kPass, true},
    {SYS_nanosleep, Check::kPass, true},
    {SYS_gettimeofday, Check::kPass, true},
#ifdef SYS_time
    {SYS_time, Check::kPass, true},
#endif
    {SYS_times, Check::kPass, true},
    {SYS_getrandom, Check::kPass, true},
    // Its memory.
    {SYS_mmap, Check::kMap, true},
    {SYS_munmap, Check::kPass, true},
    {SYS_mprotect, Check::kPass, true},
    {SYS_mremap, Check::kPass, true},
    {SYS_madvise, Check::kPass, true},
    {SYS_brk, Check::kPass, true},
    {SYS_memfd_create, Check::kPass, false},  // code of artifacts
    // Its threads.
    {SYS_clone, Check::kClone, true},
    {SYS_clone3, Check::kMissing, true},  // its flags are out of a filter's sight
    {SYS_set_robust_list, Check::kPass, true},
    {SYS_rseq, Check::kPass, true},
    {SYS_sched_yield, Check::kPass, true},
    {SYS_sched_getaffinity, Check::kSelf, true},
    {SYS_sched_setaffinity, Check::kSelf, false},
    {SYS_sched_getparam, Check::kSelf, false},
    {SYS_sched_getscheduler, Check::kSelf, false},
    {SYS_getcpu, Check::kPass, true},
    {SYS_membarrier, Check::kMissing, true},
    {SYS_exit, Check::kPass, true},
    {SYS_exit_group, Check::kPass, true},
    {SYS_prctl, Check::kThreadName, true},
#ifdef SYS_arch_prctl
    {SYS_arch_prctl, Check::kTileState, false},
#endif
    // Signals among its threads.
    {SYS_rt_sigaction, Check::kHandler, true},
    {SYS_rt_sigprocmask, Check::kPass, true},
    {SYS_rt_sigreturn, Check::kPass, true},
    {SYS_restart_syscall, Check::kPass, true},
    {SYS_sigaltstack, Check::kPass, true},
    {SYS_tgkill, Check::kOwnProcess, true},
    {SYS_kill, Check::kOwnProcess, true},
    // Questions about itself and the machine.
    {SYS_getpid, Check::kPass, true},
    {SYS_getppid, Check::kPass, true},
    {SYS_gettid, Check::kPass, true},
    {SYS_getuid, Check::kPass, true},
    {SYS_geteuid, Check::kPass, true},
    {SYS_getgid, Check::kPass, true},
    {SYS_getegid, Check::kPass, true},
    {SYS_getrusage, Check::kPass, true},
    {SYS_prlimit64, Check::kReadLimits, true},
    {SYS_sysinfo, Check::kPass, true},
    {SYS_uname, Check::kPass, true},
// Files that Landlock lets through.
#ifdef SYS_open
    {SYS_open, Check::kOpenFirst, false},
#endif
    {SYS_openat, Check::kOpenSecond, false},
    {SYS_openat2, Check::kMissing, false},  // its flags are out of a filter's sight
    {SYS_close, Check::kPass, true},
#ifdef SYS_dup2
    {SYS_dup2, Check::kPass, false},
#endif
    {SYS_dup, Check::kPass, false},
    {SYS_dup3, Check::kPass, false},
    {SYS_fstat, Check::kPass, true},
    {SYS_lseek, Check::kPass, false},
    {SYS_pread64, Check::kPass, false},
    {SYS_pwrite64, Check::kPass, false},
    {SYS_ftruncate, Check::kPass, false},
    {SYS_fsync, Check::kPass, false},
    {SYS_fdatasync, Check::kPass, false},
    {SYS_fcntl, Check::kControlFd, true},
    {SYS_flock, Check::kPass, false},
    {SYS_getdents64, Check::kPass, false},
    {SYS_getcwd, Check::kPass, false},
    {SYS_ioctl, Check::kDevice, true},
    {SYS_newfstatat, Check::kEmulate, true},
    {SYS_faccessat, Check::kEmulate, false},
    {SYS_faccessat2, Check::kMissing, false},
    {SYS_readlinkat, Check::kEmulate, false},
    {SYS_statx, Check::kMissing, true},
#ifdef SYS_stat
    {SYS_stat, Check::kEmulate, false},
    {SYS_lstat, Check::kEmulate, false},
    {SYS_access, Check::kEmulate, false},
    {SYS_readlink, Check::kEmulate, false},
#endif
// Names in its folder.
#ifdef SYS_unlink
    {SYS_unlink, Check::kPass, false},
    {SYS_rmdir, Check::kPass, false},
    {SYS_rename, Check::kPass, false},
    {SYS_mkdir, Check::kAsk, false},
    {SYS_link, Check::kAsk, false},
#endif
#ifdef SYS_renameat
    {SYS_renameat, Check::kPass, false},
#endif
    {SYS_unlinkat, Check::kPass, false},
    {SYS_renameat2, Check::kPass, false},
    {SYS_mkdirat, Check::kAsk, false},
    {SYS_linkat, Check::kAsk, false},
};

}  // namespace

std::span<const CallRow> SessionCalls() { return kCalls; }

}  // namespace baton::rpc
