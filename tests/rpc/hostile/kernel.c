/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the kernel that a session has no need of. Those that would change the machine are asked with arguments that
 * are refused for another reason than rights. */
#include "attack.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t Made(long fd) {
  if (fd >= 0) close((int)fd);
  return Refusal(fd);
}

static int64_t Mount(const struct Given* g) { return FAILURE(mount("none", g->more, "nosuchfs", 0, 0)); }
static int64_t BindMount(const struct Given* g) { return FAILURE(mount("/nosuch", g->more, 0, MS_BIND, 0)); }
static int64_t Umount(const struct Given* g) { return (void)g, FAILURE(umount2("/nosuch", MNT_DETACH)); }
static int64_t PivotRoot(const struct Given* g) { return (void)g, RAW(SYS_pivot_root, "/nosuch", "/nosuch"); }
static int64_t ChangeRoot(const struct Given* g) { return FAILURE(chroot(g->text)); }
static int64_t FsOpen(const struct Given* g) { return (void)g, Made(Raw(430, (long)"tmpfs", 0, 0, 0, 0, 0)); }
static int64_t OpenTree(const struct Given* g) { return (void)g, Made(Raw(428, AT_FDCWD, (long)"/", 0, 0, 0, 0)); }
static int64_t CloneTree(const struct Given* g) { return (void)g, Made(Raw(428, AT_FDCWD, (long)"/", 1, 0, 0, 0)); }
static int64_t MoveMount(const struct Given* g) { return (void)g, RAW(429, -1, "", -1, "", 4); }
static int64_t MountSetattr(const struct Given* g) {
  uint64_t attributes[4] = {0};
  (void)g;
  return RAW(442, AT_FDCWD, "/nosuch", 0, attributes, sizeof attributes);
}
static int64_t FsPick(const struct Given* g) { return (void)g, Made(Raw(433, AT_FDCWD, (long)"/nosuch", 0, 0, 0, 0)); }
static int64_t SwapOn(const struct Given* g) { return (void)g, RAW(SYS_swapon, "/nosuch", 0); }
static int64_t SwapOff(const struct Given* g) { return (void)g, RAW(SYS_swapoff, "/nosuch"); }
static int64_t Quota(const struct Given* g) { return (void)g, RAW(SYS_quotactl, 0x7fff0000, 0, 0, 0); }
static int64_t Account(const struct Given* g) { return (void)g, RAW(SYS_acct, "/nosuch/x"); }

static int64_t IoUring(const struct Given* g) {
  char parameters[120] = {0};
  (void)g;
  return Made(Raw(425, 1, (long)parameters, 0, 0, 0, 0));
}
static int64_t IoUringEnter(const struct Given* g) { return (void)g, RAW(426, -1, 0, 0, 0, 0, 0); }
static int64_t IoUringRegister(const struct Given* g) { return (void)g, RAW(427, -1, 0, 0, 0); }
static int64_t AioSetup(const struct Given* g) {
  unsigned long context = 0;
  (void)g;
  const long result = Raw(SYS_io_setup, 1, (long)&context, 0, 0, 0, 0);
  if (result == 0) Raw(SYS_io_destroy, (long)context, 0, 0, 0, 0, 0);
  return Refusal(result);
}
static int64_t Bpf(const struct Given* g) {
  union bpf_attr map;
  (void)g;
  memset(&map, 0, sizeof map);
  map.map_type = BPF_MAP_TYPE_ARRAY;
  map.key_size = 4, map.value_size = 4, map.max_entries = 1;
  return Made(Raw(SYS_bpf, BPF_MAP_CREATE, (long)&map, sizeof map, 0, 0, 0));
}
static int64_t PerfEvent(const struct Given* g) {
  struct perf_event_attr event;
  (void)g;
  memset(&event, 0, sizeof event);
  event.type = PERF_TYPE_SOFTWARE;
  event.size = sizeof event;
  event.config = PERF_COUNT_SW_TASK_CLOCK;
  return Made(Raw(SYS_perf_event_open, (long)&event, 0, -1, -1, 0, 0));
}
static int64_t UserFault(const struct Given* g) { return Made(Raw(SYS_userfaultfd, g->number, 0, 0, 0, 0, 0)); }
static int64_t KeyControl(const struct Given* g) { return (void)g, RAW(SYS_keyctl, 0, -3 /* of the session */, 1); }
static int64_t AddKey(const struct Given* g) { return (void)g, RAW(SYS_add_key, "user", "x", "x", 1, -2); }
static int64_t RequestKey(const struct Given* g) { return (void)g, RAW(SYS_request_key, "user", "nosuch", 0, 0); }

static int64_t InitModule(const struct Given* g) { return (void)g, RAW(SYS_init_module, "no module", 9, ""); }
static int64_t FinitModule(const struct Given* g) { return (void)g, RAW(SYS_finit_module, -1, "", 0); }
static int64_t DeleteModule(const struct Given* g) { return (void)g, RAW(SYS_delete_module, "nosuch", 0x800); }
static int64_t KexecLoad(const struct Given* g) { return (void)g, RAW(SYS_kexec_load, 0, 0, 0, 0x7fff); }
static int64_t Reboot(const struct Given* g) { return (void)g, RAW(SYS_reboot, 1, 2, 3, 0); }
static int64_t SetHostName(const struct Given* g) { return (void)g, RAW(SYS_sethostname, "x", -1); }
static int64_t SetDomainName(const struct Given* g) { return (void)g, RAW(SYS_setdomainname, "x", -1); }
static int64_t SetTime(const struct Given* g) { return (void)g, RAW(SYS_settimeofday, 0, 0); }
static int64_t SetClock(const struct Given* g) {
  const struct timespec never = {0, -1};
  (void)g;
  return RAW(SYS_clock_settime, CLOCK_REALTIME, &never);
}
static int64_t AdjustClock(const struct Given* g) {
  char change[256] = {0};
  (void)g;
  return RAW(SYS_clock_adjtime, CLOCK_REALTIME, change);
}
static int64_t KernelLog(const struct Given* g) { return (void)g, RAW(SYS_syslog, 10 /* its size */, 0, 0); }
static int64_t MemoryPolicy(const struct Given* g) { return (void)g, RAW(SYS_set_mempolicy, 0, 0, 0); }
static int64_t BindMemory(const struct Given* g) { return (void)g, RAW(SYS_mbind, 0, 0, 0, 0, 0, 0); }
static int64_t LookupCookie(const struct Given* g) { return (void)g, RAW(SYS_lookup_dcookie, 1, 0, 0); }
static int64_t NewestCall(const struct Given* g) { return RAW(g->number, 0, 0, 0, 0, 0, 0); }

#if defined(__x86_64__)
static int64_t IoPrivilege(const struct Given* g) { return (void)g, RAW(SYS_iopl, 0); }
static int64_t IoPermission(const struct Given* g) { return (void)g, RAW(SYS_ioperm, 0x80, 1, 0); }
static int64_t ModifyLdt(const struct Given* g) {
  char table[16];
  (void)g;
  return RAW(SYS_modify_ldt, 0, table, sizeof table);
}
/* getpid of the interface of x32. */
static int64_t X32(const struct Given* g) { return RAW(0x40000000 | g->number, 0, 0, 0); }
/* The interface of 32-bit programs, whose numbers are others: 20 is getpid. */
static int64_t Interrupt80(const struct Given* g) {
  long result = g->number;
  __asm__ volatile("int $0x80" : "+a"(result) : "b"(0), "c"(0), "d"(0) : "memory", "r8", "r9", "r10", "r11");
  return (int)result < 0 && (int)result > -4096 ? -(int)result : 0;
}
#endif

/* Calls with which a session ends or waits by its own hand: those behind it would not come to be tried. */
static int Ends(long number) {
  static const long kEnds[] = {SYS_exit,   SYS_exit_group, SYS_rt_sigreturn, SYS_futex,          SYS_munmap,
                               SYS_mremap, SYS_mprotect,   SYS_close,        SYS_rt_sigprocmask, SYS_rt_sigaction};
  for (unsigned i = 0; i < sizeof kEnds / sizeof *kEnds; ++i) {
    if (number == kEnds[i]) return 1;
  }
  return 0;
}
/* Calls by chance: `number` is the seed, `other` how many, the texts a path and a process that arguments are aimed at. */
static int64_t RandomCalls(const struct Given* g) {
  static char page[65536];
  unsigned seed = (unsigned)g->number;
  const long aims[] = {0, 1, 2, 3, 7, -1, -100, 4096, 1 << 20, (long)page, (long)(page + 4096), (long)g->text, atol(g->more), getpid()};
  const unsigned count = sizeof aims / sizeof *aims;
  for (int64_t i = 0; i < g->other; ++i) {
    const long number = rand_r(&seed) % 480;
    long a[6];
    for (int k = 0; k < 6; ++k) a[k] = rand_r(&seed) % 4 ? aims[(unsigned)rand_r(&seed) % count] : (long)rand_r(&seed);
    if (!Ends(number)) Raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  }
  return 0;
}

const struct Attack kKernelAttacks[] = {
    {"mount", Mount},
    {"bind mount", BindMount},
    {"umount", Umount},
    {"pivot_root", PivotRoot},
    {"chroot", ChangeRoot},
    {"fsopen", FsOpen},
    {"open_tree", OpenTree},
    {"clone tree", CloneTree},
    {"move_mount", MoveMount},
    {"mount_setattr", MountSetattr},
    {"fspick", FsPick},
    {"swapon", SwapOn},
    {"swapoff", SwapOff},
    {"quotactl", Quota},
    {"acct", Account},
    {"io_uring_setup", IoUring},
    {"io_uring_enter", IoUringEnter},
    {"io_uring_register", IoUringRegister},
    {"io_setup", AioSetup},
    {"bpf", Bpf},
    {"perf_event_open", PerfEvent},
    {"userfaultfd", UserFault},
    {"keyctl", KeyControl},
    {"add_key", AddKey},
    {"request_key", RequestKey},
    {"init_module", InitModule},
    {"finit_module", FinitModule},
    {"delete_module", DeleteModule},
    {"kexec_load", KexecLoad},
    {"reboot", Reboot},
    {"sethostname", SetHostName},
    {"setdomainname", SetDomainName},
    {"settimeofday", SetTime},
    {"clock_settime", SetClock},
    {"clock_adjtime", AdjustClock},
    {"syslog", KernelLog},
    {"set_mempolicy", MemoryPolicy},
    {"mbind", BindMemory},
    {"lookup_dcookie", LookupCookie},
    {"call", NewestCall},
    {"random calls", RandomCalls},
#if defined(__x86_64__)
    {"iopl", IoPrivilege},
    {"ioperm", IoPermission},
    {"modify_ldt", ModifyLdt},
    {"x32", X32},
    {"int 0x80", Interrupt80},
#endif
    {0, 0},
};
