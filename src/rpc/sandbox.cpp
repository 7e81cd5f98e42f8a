// SPDX-License-Identifier: Apache-2.0
// Confines the process of a session, which runs code of the peer's. Landlock: files are written in one folder, and read
// there and where the system's libraries lie; no TCP. seccomp: no new processes, programs, sockets, and none of the
// calls that reach around a sandbox. What a GPU driver needs stays.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "rpc/worker.h"

namespace baton::rpc {
namespace {

// Rights by the version of Landlock that brought them; the headers may be older than the kernel.
constexpr uint64_t kExecute = 1, kWriteFile = 2, kReadFile = 4, kReadDir = 8, kFirst = (1 << 13) - 1;
constexpr uint64_t kRefer = 1 << 13, kTruncate = 1 << 14;
constexpr uint64_t kNoTcp = 3;   // binding and connecting
constexpr uint64_t kScopes = 3;  // abstract sockets and signals of others

struct Ruleset {
  uint64_t files, net, scopes;
};

class Rules {
 public:
  Rules() {
    version_ = static_cast<int>(syscall(SYS_landlock_create_ruleset, nullptr, 0, 1 /* version */));
    if (version_ < 1) return;
    Ruleset set{kFirst | (version_ >= 2 ? kRefer : 0) | (version_ >= 3 ? kTruncate : 0), version_ >= 4 ? kNoTcp : 0,
                version_ >= 6 ? kScopes : 0};
    all_ = set.files;
    const size_t size = version_ >= 6 ? 24 : version_ >= 4 ? 16 : 8;
    fd_ = static_cast<int>(syscall(SYS_landlock_create_ruleset, &set, size, 0));
  }
  ~Rules() {
    if (fd_ >= 0) close(fd_);
  }
  /// Lets a path through, if it is there.
  void Allow(const char* path, uint64_t rights) {
    const int at = open(path, O_PATH | O_CLOEXEC);
    if (at < 0) return;
    struct stat info{};
    if (fstat(at, &info) == 0 && !S_ISDIR(info.st_mode)) rights &= kExecute | kWriteFile | kReadFile | kTruncate;
    landlock_path_beneath_attr rule{};
    rule.allowed_access = rights & all_;
    rule.parent_fd = at;
    ok_ = syscall(SYS_landlock_add_rule, fd_, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0 && ok_;
    close(at);
  }
  bool Enter() { return fd_ >= 0 && ok_ && syscall(SYS_landlock_restrict_self, fd_, 0) == 0; }
  uint64_t all() const { return all_; }

 private:
  int version_ = 0, fd_ = -1;
  uint64_t all_ = 0;
  bool ok_ = true;
};

constexpr long kRefused[] = {
    // NOLINT(google-runtime-int)
    SYS_execve,
    SYS_execveat,
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_pidfd_getfd,
    SYS_pidfd_open,
    SYS_kcmp,
    SYS_personality,
    SYS_acct,
    SYS_quotactl,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setgroups,
    SYS_fanotify_init,
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
};

bool RefuseCalls() {
#if defined(__x86_64__)
  constexpr uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
  constexpr uint32_t kMachine = AUDIT_ARCH_AARCH64;
#elif defined(__riscv) && __riscv_xlen == 64
  constexpr uint32_t kMachine = AUDIT_ARCH_RISCV64;
#else
  constexpr uint32_t kMachine = 0;
#endif
  if (kMachine == 0) return false;
  std::vector<sock_filter> code;
  const auto add = [&code](uint16_t op, uint32_t k, uint8_t yes = 0, uint8_t no = 0) {
    code.push_back({op, yes, no, k});
  };
  constexpr uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS, kEqual = BPF_JMP | BPF_JEQ | BPF_K, kReturn = BPF_RET | BPF_K;
  add(kLoad, offsetof(seccomp_data, arch));
  add(kEqual, kMachine, 1, 0);
  add(kReturn, SECCOMP_RET_KILL_PROCESS);
  add(kLoad, offsetof(seccomp_data, nr));
#if defined(__x86_64__)
  add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);  // calls of the x32 interface
  add(kReturn, SECCOMP_RET_KILL_PROCESS);
#endif
  add(kEqual, SYS_clone3, 0, 1);  // its flags cannot be seen from here: the C library then uses clone
  add(kReturn, SECCOMP_RET_ERRNO | ENOSYS);
  for (const long nr : kRefused) {  // NOLINT(google-runtime-int)
    add(kEqual, static_cast<uint32_t>(nr), 0, 1);
    add(kReturn, SECCOMP_RET_ERRNO | EPERM);
  }
  add(kEqual, SYS_clone, 0, 4);  // threads, not processes
  add(kLoad, offsetof(seccomp_data, args[0]));
  add(BPF_JMP | BPF_JSET | BPF_K, 0x10000 /* CLONE_THREAD */, 1, 0);
  add(kReturn, SECCOMP_RET_ERRNO | EPERM);
  add(kReturn, SECCOMP_RET_ALLOW);
  add(kReturn, SECCOMP_RET_ALLOW);
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};  // NOLINT(google-runtime-int)
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

void Limit(int what, uint64_t value) {
  rlimit limit{};
  getrlimit(static_cast<__rlimit_resource>(what), &limit);
  if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < value) value = limit.rlim_max;
  limit.rlim_cur = limit.rlim_max = value;
  setrlimit(static_cast<__rlimit_resource>(what), &limit);
}

}  // namespace

bool SandboxWorks() { return syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) >= 1; }

bool EnterSandbox(const std::string& folder, const ServerOptions& options) {
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_NOFILE, 1024);
  Limit(RLIMIT_FSIZE, options.disk_bytes);
  Limit(RLIMIT_DATA, options.memory_bytes);
  if (options.cpu_seconds) Limit(RLIMIT_CPU, options.cpu_seconds);
  Rules rules;
  rules.Allow(folder.c_str(), rules.all());
  Dl_info self{};
  dladdr(reinterpret_cast<const void*>(&EnterSandbox), &self);
  std::string own = self.dli_fname ? self.dli_fname : "";
  own.resize(own.rfind('/') == std::string::npos ? 0 : own.rfind('/'));
  constexpr uint64_t kRead = kReadFile | kReadDir | kExecute;
  if (!own.empty()) rules.Allow(own.c_str(), kRead);
  if (!options.module_path.empty()) rules.Allow(options.module_path.c_str(), kRead);
  for (const char* path :
       {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/OpenCL", "/usr/share",
        "/proc/cpuinfo", "/proc/meminfo", "/proc/driver", "/sys/devices", "/sys/class/drm"}) {
    rules.Allow(path, kRead);
  }
  rules.Allow("/proc/self", kReadFile | kReadDir);
  for (const char* path :
       {"/dev/null", "/dev/zero", "/dev/urandom", "/dev/dri", "/dev/kfd", "/dev/nvidiactl", "/dev/nvidia-uvm",
        "/dev/nvidia-uvm-tools", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2", "/dev/nvidia3", "/dev/mali0"}) {
    rules.Allow(path, kReadFile | kWriteFile | kReadDir);
  }
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && rules.Enter() && RefuseCalls();
}

void ConfineFront() {
  Limit(RLIMIT_CORE, 0);
  // Where the system has no Landlock, the server was told to do without.
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) Rules().Enter() && RefuseCalls();
}

}  // namespace baton::rpc
