// SPDX-License-Identifier: Apache-2.0
#include <baton/support/text.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/confine/confine.h"
#include "rpc/confine/descriptor.h"
#include "rpc/confine/filter.h"
#include "rpc/confine/landlock.h"
#include "rpc/confine/process.h"
#include "rpc/errors.h"

namespace baton::rpc {
using support::Cat;
namespace {

constexpr uint64_t kDescriptors = 256;
constexpr uint64_t kStack = 8 << 20;  // of a thread, as a rule

/// Device nodes of GPUs; "/dev/nvidia0" to 3 are the cards.
constexpr const char* kGpus[] = {
    "/dev/dri",     "/dev/kfd",     "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
    "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2",   "/dev/nvidia3",    "/dev/mali0"};

/// Variables that compute libraries, the C library and this runtime read. `*` at the end: any that begin so.
constexpr std::string_view kVariables[] = {"BATON_NUM_THREADS",
                                           "BATON_BIND_THREADS",
                                           "BATON_COPY_CODE",
                                           "BATON_OPENCL_LIBRARY",
                                           "OMP_NUM_THREADS",
                                           "LANG",
                                           "LC_*",
                                           "TZ",
                                           "LD_LIBRARY_PATH",
                                           "OCL_*",
                                           "POCL_*",
                                           "CUDA_*",
                                           "NVIDIA_*",
                                           "HIP_*",
                                           "HSA_*",
                                           "ROCR_*"};

bool HasGpu() {
  return std::any_of(std::begin(kGpus), std::end(kGpus), [](const char* path) { return access(path, F_OK) == 0; });
}

void Limit(int what, uint64_t value) {
  rlimit limit{};
  getrlimit(static_cast<__rlimit_resource>(what), &limit);
  limit.rlim_cur = limit.rlim_max = std::min<rlim_t>(limit.rlim_max, value);
  setrlimit(static_cast<__rlimit_resource>(what), &limit);
}

/// Limits that the kernel counts for each process; the supervisor measures the rest.
void LimitResources(const SessionTerms& terms, uint64_t data_bytes) {
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_NOFILE, kDescriptors);
  Limit(RLIMIT_MSGQUEUE, 0);
  Limit(RLIMIT_FSIZE, terms.disk_bytes);
  if (terms.cpu_seconds) Limit(RLIMIT_CPU, terms.cpu_seconds);
  // Memory that is mapped to be written, used or not. Memory of this process before, and the stacks of the threads that
  // compute and that watch, come on top.
  if (terms.memory_bytes) {
    const auto threads = static_cast<uint64_t>(sysconf(_SC_NPROCESSORS_ONLN)) + 2;
    Limit(RLIMIT_DATA, data_bytes + terms.memory_bytes + threads * kStack);
  }
}

/// Gives up what root may do beyond other users. A program that ran could not get it back: it gains no rights.
void DropCapabilities() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  if (syscall(SYS_capset, &head, none) != 0) ThrowSystem(kRpcError, "the rights of this process cannot be given up");
}

void AllowPaths(Landlock* rules, const std::string& folder, const std::string& module_path, bool gpus) {
  rules->Allow(folder, Landlock::kOwn);
  Dl_info self{};
  dladdr(reinterpret_cast<const void*>(&EnterConfinement), &self);
  std::string own = self.dli_fname ? self.dli_fname : "";
  own.resize(own.rfind('/') == std::string::npos ? 0 : own.rfind('/'));
  if (!own.empty()) rules->Allow(own, Landlock::kRead);
  if (!module_path.empty()) rules->Allow(module_path, Landlock::kRead);
  for (const char* path :
       {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/OpenCL", "/usr/share",
        "/proc/cpuinfo", "/proc/meminfo", "/proc/driver", "/proc/self", "/sys/devices", "/sys/class/drm"}) {
    rules->Allow(path, Landlock::kRead);
  }
  for (const char* path : {"/dev/null", "/dev/zero", "/dev/urandom"}) rules->Allow(path, Landlock::kReadWrite);
  for (const char* path : kGpus) {
    if (gpus) rules->Allow(path, Landlock::kDevice);
  }
}

}  // namespace

bool ConfinementWorks() {
  const uint32_t action = 0x7fc00000;  // SECCOMP_RET_USER_NOTIF
  return Landlock::Version() >= 1 && syscall(SYS_seccomp, 2 /* whether there is */, 0, &action) == 0;
}

void EnterConfinement(const std::string& folder, const SessionTerms& terms, const std::string& module_path,
                      const std::function<bool(int calls)>& hand_over) {
  const ProcessStatus status = StatusOf(getpid());
  if (status.threads != 1) Throw(kRpcError, "a process with several threads cannot be confined");
  const bool gpus = terms.devices && HasGpu();
  for (const char* name : {"HOME", "TMPDIR", "XDG_CACHE_HOME", "POCL_CACHE_DIR"}) setenv(name, folder.c_str(), 1);
  setenv("BATON_CACHE", "0", 1);  // code that a session makes is for none but it
  if (chdir(folder.c_str()) != 0) ThrowSystem(kRpcError, "the session's folder cannot be entered");
  LimitResources(terms, status.data_bytes);
  DropCapabilities();
  EmulateQueries();
  Landlock rules;
  AllowPaths(&rules, folder, module_path, gpus);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !rules.Enter()) {
    Throw(kRpcError, "this system cannot confine a session: it has no Landlock; --no-sandbox serves it all the same");
  }
  const Descriptor calls(InstallFilter({.front = false, .devices = gpus, .asks = true}));
  if (!hand_over(calls.get())) Throw(kRpcError, "the supervisor of this session is gone");
  SealFilter();
}

void ConfineFront() {
  Limit(RLIMIT_CORE, 0);
  if (!ConfinementWorks()) return;
  DropCapabilities();
  EmulateQueries();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && Landlock().Enter()) InstallFilter({.front = true, .asks = false});
}

void ClearEnvironment() {
  std::vector<std::string> kept;
  for (char** one = environ; one && *one; ++one) {
    const std::string_view text = *one, name = text.substr(0, text.find('='));
    const bool keep = std::any_of(std::begin(kVariables), std::end(kVariables), [name](std::string_view variable) {
      return variable.back() == '*' ? name.substr(0, variable.size() - 1) == variable.substr(0, variable.size() - 1)
                                    : name == variable;
    });
    if (keep) kept.emplace_back(text);
    explicit_bzero(*one, text.size());
  }
  clearenv();
  for (const std::string& text : kept) {
    const size_t end = text.find('=');
    if (end != std::string::npos) setenv(text.substr(0, end).c_str(), text.c_str() + end + 1, 1);
  }
}

void CloseOthers(std::initializer_list<int> kept) {
  std::vector<int> found;
  DIR* all = opendir("/proc/self/fd");
  if (!all) return;
  while (const dirent* one = readdir(all)) {
    const int fd = atoi(one->d_name);
    if (fd > 2 && fd != dirfd(all) && std::find(kept.begin(), kept.end(), fd) == kept.end()) found.push_back(fd);
  }
  closedir(all);
  for (const int fd : found) close(fd);
}

std::string NameOfCall(int number) {
  static constexpr struct {
    int number;
    const char* name;
  } kNames[] = {
#include "rpc_call_names.inc"
  };
  for (const auto& one : kNames) {
    if (one.number == number) return one.name;
  }
  return Cat("call ", number);
}

}  // namespace baton::rpc
