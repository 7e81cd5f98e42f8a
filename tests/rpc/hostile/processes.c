/* SPDX-License-Identifier: Apache-2.0 */
/* Other processes: to make them, and to reach those that are there. `number` is the one that is attacked. */
#include "attack.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif

/* ---- To make them ---- */

static int64_t Child(long pid) {
  if (pid == 0) Raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
  if (pid < 0) return -pid;
  waitpid((pid_t)pid, 0, __WALL);
  return 0;
}
static int64_t Fork(const struct Given* g) {
  (void)g;
  const pid_t child = fork();
  return Child(child < 0 ? -errno : child);
}
#ifdef SYS_fork
static int64_t RawFork(const struct Given* g) { return (void)g, Child(Raw(SYS_fork, 0, 0, 0, 0, 0, 0)); }
#endif
static int64_t Vfork(const struct Given* g) {
  (void)g;
  const pid_t child = vfork();
  if (child == 0) _exit(0);
  return child < 0 ? errno : 0;
}
static int64_t Clone(const struct Given* g) { return Child(Raw(SYS_clone, SIGCHLD | (long)g->number, 0, 0, 0, 0, 0)); }
static int64_t Clone3(const struct Given* g) {
  struct clone_args args = {0};
  args.flags = (uint64_t)g->number;
  args.exit_signal = SIGCHLD;
  return Child(Raw(SYS_clone3, (long)&args, sizeof args, 0, 0, 0, 0));
}
static int64_t Unshare(const struct Given* g) { return FAILURE(unshare((int)g->number)); }
static int64_t SetNamespace(const struct Given* g) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/ns/%s", g->text);
  const int fd = open(path, O_RDONLY);
  if (fd < 0) return errno;
  const int64_t error = FAILURE(setns(fd, 0));
  close(fd);
  return error;
}
static int64_t SetNamespaceOf(const struct Given* g) {
  const long fd = Raw(SYS_pidfd_open, g->number, 0, 0, 0, 0, 0);
  if (fd < 0) return -fd;
  const int64_t error = FAILURE(setns((int)fd, CLONE_NEWUTS));
  close((int)fd);
  return error;
}
/* A program that is not there: a call that is let through says so. */
static int64_t Exec(const struct Given* g) {
  char* const arguments[] = {(char*)g->text, 0};
  return RAW(SYS_execve, g->text, arguments, 0);
}
static int64_t Execveat(const struct Given* g) {
  char* const arguments[] = {(char*)g->text, 0};
  return RAW(SYS_execveat, AT_FDCWD, g->text, arguments, 0, 0);
}
/* Code that is in no file, by its descriptor: it is no program, which only a kernel that looks at it says. */
static int64_t ExecMemory(const struct Given* g) {
  (void)g;
  char* const arguments[] = {"x", 0};
  const int fd = memfd_create("x", 0);
  if (fd < 0) return errno;
  if (write(fd, "no program", 10) != 10) return errno;
  const int64_t error = RAW(SYS_execveat, fd, "", arguments, 0, AT_EMPTY_PATH);
  close(fd);
  return error;
}

/* ---- To reach those that are there ---- */

static pid_t Pid(const struct Given* g) { return (pid_t)g->number; }

static int64_t Kill(const struct Given* g) { return FAILURE(kill(Pid(g), (int)g->other)); }
static int64_t Tkill(const struct Given* g) { return RAW(SYS_tkill, g->number, g->other); }
static int64_t Tgkill(const struct Given* g) { return RAW(SYS_tgkill, g->number, g->number, g->other); }
static int64_t KillGroup(const struct Given* g) { return FAILURE(kill(-Pid(g), (int)g->other)); }
/* Signal 0 goes to nobody, and says whether one could. */
static int64_t KillAll(const struct Given* g) { return (void)g, FAILURE(kill(-1, 0)); }
static int64_t QueueSignal(const struct Given* g) {
  siginfo_t info = {0};
  info.si_code = SI_QUEUE;
  info.si_signo = (int)g->other;
  return RAW(SYS_rt_sigqueueinfo, g->number, g->other, &info);
}
static int64_t QueueThreadSignal(const struct Given* g) {
  siginfo_t info = {0};
  info.si_code = SI_QUEUE;
  info.si_signo = (int)g->other;
  return RAW(SYS_rt_tgsigqueueinfo, g->number, g->number, g->other, &info);
}
static int64_t PidfdOpen(const struct Given* g) {
  const long fd = Raw(SYS_pidfd_open, g->number, 0, 0, 0, 0, 0);
  return fd < 0 ? -fd : (close((int)fd), 0);
}
/* By a descriptor of /proc, where no other is given. */
static int64_t PidfdSignal(const struct Given* g) {
  char path[64];
  long fd = Raw(SYS_pidfd_open, g->number, 0, 0, 0, 0, 0);
  if (fd < 0) {
    snprintf(path, sizeof path, "/proc/%lld", (long long)g->number);
    fd = open(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return errno;
  }
  const int64_t error = RAW(SYS_pidfd_send_signal, fd, g->other, 0, 0);
  close((int)fd);
  return error;
}
static int64_t PidfdGetfd(const struct Given* g) {
  const long pid = Raw(SYS_pidfd_open, g->number, 0, 0, 0, 0, 0);
  /* Where there is no such descriptor, the call itself is asked for. */
  const long got = Raw(SYS_pidfd_getfd, pid < 0 ? -1 : pid, 0, 0, 0, 0, 0);
  if (pid >= 0) close((int)pid);
  return got < 0 ? -got : (close((int)got), 0);
}
/* The kernel sends what a descriptor's owner is to get; the owner is another process. */
static int64_t OwnerSignal(const struct Given* g) {
  int ends[2];
  if (pipe(ends)) return errno;
  int64_t error = FAILURE(fcntl(ends[0], F_SETOWN, Pid(g)));
  if (!error) error = FAILURE(fcntl(ends[0], F_SETSIG, (int)g->other));
  if (!error) error = FAILURE(fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK));
  if (!error) error = FAILURE(write(ends[1], "x", 1));
  close(ends[0]);
  close(ends[1]);
  return error;
}
static int64_t OwnerExtended(const struct Given* g) {
  int ends[2];
  const struct f_owner_ex owner = {F_OWNER_PID, Pid(g)};
  if (pipe(ends)) return errno;
  int64_t error = FAILURE(fcntl(ends[0], F_SETOWN_EX, &owner));
  if (!error) error = FAILURE(fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK));
  close(ends[0]);
  close(ends[1]);
  return error;
}
/* FIOSETOWN does the same to a socket, and the session has one. */
static int64_t OwnerBySocket(const struct Given* g) {
  int pid = (int)g->number;
  int64_t last = ENOTSOCK;
  for (int fd = 0; fd < 256; ++fd) {
    if (!ioctl(fd, 0x8901 /* FIOSETOWN */, &pid)) {
      pid = 0;
      ioctl(fd, 0x8901, &pid);
      return 0;
    }
    if (Said(errno)) last = errno;
  }
  return last;
}
static int64_t Lease(const struct Given* g) {
  int fd = open(g->more, O_RDWR | O_CREAT, 0600);
  if (fd < 0) return errno;
  int64_t error = FAILURE(fcntl(fd, F_SETLEASE, F_WRLCK));
  close(fd);
  return error;
}

static int64_t PtraceAttach(const struct Given* g) {
  const int64_t error = FAILURE(ptrace(PTRACE_ATTACH, Pid(g), 0, 0));
  if (!error) {
    waitpid(Pid(g), 0, __WALL);
    ptrace(PTRACE_DETACH, Pid(g), 0, 0);
  }
  return error;
}
static int64_t PtraceSeize(const struct Given* g) {
  const int64_t error = FAILURE(ptrace(PTRACE_SEIZE, Pid(g), 0, 0));
  if (!error) ptrace(PTRACE_DETACH, Pid(g), 0, 0);
  return error;
}
static int64_t PtraceMe(const struct Given* g) { return (void)g, FAILURE(ptrace(PTRACE_TRACEME, 0, 0, 0)); }
/* Addresses that are not there: a call that is let through says EFAULT. */
static int64_t ReadMemory(const struct Given* g) {
  char byte;
  struct iovec mine = {&byte, 1}, theirs = {(void*)8, 1};
  return FAILURE(process_vm_readv(Pid(g), &mine, 1, &theirs, 1, 0));
}
static int64_t WriteMemory(const struct Given* g) {
  char byte = 0;
  struct iovec mine = {&byte, 1}, theirs = {(void*)8, 1};
  return FAILURE(process_vm_writev(Pid(g), &mine, 1, &theirs, 1, 0));
}
static int64_t OpenOf(const struct Given* g, const char* file, int flags) {
  char path[96], byte;
  snprintf(path, sizeof path, "/proc/%lld/%s", (long long)g->number, file);
  const int fd = open(path, flags);
  if (fd < 0) return errno;
  const int64_t error = flags == O_RDONLY ? FAILURE(read(fd, &byte, 1)) : 0;
  close(fd);
  return error;
}
static int64_t OpenMemory(const struct Given* g) { return OpenOf(g, "mem", O_RDWR); }
static int64_t OpenFileOf(const struct Given* g) { return OpenOf(g, g->text, O_RDONLY); }
static int64_t WriteFileOf(const struct Given* g) { return OpenOf(g, g->text, O_WRONLY); }
static int64_t AdviseMemory(const struct Given* g) {
  struct iovec theirs = {(void*)0x1000, 0};
  const long pid = Raw(SYS_pidfd_open, g->number, 0, 0, 0, 0, 0);
  const int64_t error = RAW(SYS_process_madvise, pid < 0 ? -1 : pid, &theirs, 1, 20 /* MADV_COLD */, 0);
  if (pid >= 0) close((int)pid);
  return error;
}
static int64_t ReleaseMemory(const struct Given* g) {
  const long pid = Raw(SYS_pidfd_open, g->number, 0, 0, 0, 0, 0);
  const int64_t error = RAW(SYS_process_mrelease, pid < 0 ? -1 : pid, 0);
  if (pid >= 0) close((int)pid);
  return error;
}
static int64_t MovePages(const struct Given* g) { return RAW(SYS_move_pages, g->number, 0, 0, 0, 0, 0); }
static int64_t MigratePages(const struct Given* g) {
  unsigned long from = 0, to = 0;
  return RAW(SYS_migrate_pages, g->number, 8, &from, &to);
}
static int64_t Kcmp(const struct Given* g) { return RAW(SYS_kcmp, getpid(), g->number, 2 /* files */, 0, 0); }
static int64_t RobustList(const struct Given* g) {
  void* head;
  size_t size;
  return RAW(SYS_get_robust_list, g->number, &head, &size);
}

static int64_t Prlimit(const struct Given* g) {
  struct rlimit limit;
  int64_t error = RAW(SYS_prlimit64, g->number, RLIMIT_NOFILE, 0, &limit);
  if (!error) error = RAW(SYS_prlimit64, g->number, RLIMIT_NOFILE, &limit, 0);
  return error;
}
static int64_t ReadLimits(const struct Given* g) {
  struct rlimit limit;
  return RAW(SYS_prlimit64, g->number, RLIMIT_NOFILE, 0, &limit);
}
static int64_t SetPriority(const struct Given* g) { return FAILURE(setpriority(PRIO_PROCESS, (id_t)g->number, 19)); }
static int64_t SetPriorityOfUser(const struct Given* g) {
  /* Its own user's processes; a user that is not there says ESRCH. */
  return FAILURE(setpriority(PRIO_USER, (id_t)g->number, 19));
}
static int64_t SetScheduler(const struct Given* g) {
  const struct sched_param none = {0};
  return FAILURE(sched_setscheduler(Pid(g), SCHED_IDLE, &none));
}
static int64_t SetSchedulerParameters(const struct Given* g) {
  const struct sched_param none = {0};
  return FAILURE(sched_setparam(Pid(g), &none));
}
static int64_t SetSchedulerAttributes(const struct Given* g) {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes = {48, SCHED_OTHER, 0, 19, 0, 0, 0, 0};
  return RAW(SYS_sched_setattr, g->number, &attributes, 0);
}
static int64_t SetAffinity(const struct Given* g) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  return FAILURE(sched_setaffinity(Pid(g), sizeof one, &one));
}
static int64_t SetIoPriority(const struct Given* g) {
  return RAW(SYS_ioprio_set, 1 /* a process */, g->number, 3 << 13 /* idle */);
}
static int64_t SetGroup(const struct Given* g) { return FAILURE(setpgid(Pid(g), 0)); }
static int64_t JoinGroup(const struct Given* g) { return FAILURE(setpgid(0, Pid(g))); }

const struct Attack kProcessAttacks[] = {
    {"fork", Fork},
#ifdef SYS_fork
    {"raw fork", RawFork},
#endif
    {"vfork", Vfork},
    {"clone", Clone},
    {"clone3", Clone3},
    {"unshare", Unshare},
    {"setns", SetNamespace},
    {"setns of", SetNamespaceOf},
    {"execve", Exec},
    {"execveat", Execveat},
    {"exec memory", ExecMemory},
    {"kill", Kill},
    {"tkill", Tkill},
    {"tgkill", Tgkill},
    {"killpg", KillGroup},
    {"kill all", KillAll},
    {"sigqueue", QueueSignal},
    {"tgsigqueue", QueueThreadSignal},
    {"pidfd open", PidfdOpen},
    {"pidfd signal", PidfdSignal},
    {"pidfd getfd", PidfdGetfd},
    {"owner signal", OwnerSignal},
    {"owner extended", OwnerExtended},
    {"owner by socket", OwnerBySocket},
    {"lease", Lease},
    {"ptrace attach", PtraceAttach},
    {"ptrace seize", PtraceSeize},
    {"ptrace me", PtraceMe},
    {"read memory", ReadMemory},
    {"write memory", WriteMemory},
    {"open memory", OpenMemory},
    {"open file of", OpenFileOf},
    {"write file of", WriteFileOf},
    {"process madvise", AdviseMemory},
    {"process mrelease", ReleaseMemory},
    {"move pages", MovePages},
    {"migrate pages", MigratePages},
    {"kcmp", Kcmp},
    {"robust list", RobustList},
    {"prlimit", Prlimit},
    {"read limits", ReadLimits},
    {"setpriority", SetPriority},
    {"setpriority of user", SetPriorityOfUser},
    {"sched_setscheduler", SetScheduler},
    {"sched_setparam", SetSchedulerParameters},
    {"sched_setattr", SetSchedulerAttributes},
    {"sched_setaffinity", SetAffinity},
    {"ioprio_set", SetIoPriority},
    {"setpgid", SetGroup},
    {"join group", JoinGroup},
    {0, 0},
};
