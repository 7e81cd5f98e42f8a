// SPDX-License-Identifier: Apache-2.0
#include "rpc/confine/control_group.h"

#include <baton/support/text.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "rpc/confine/descriptor.h"
#include "rpc/confine/process.h"
#include "rpc/confine/warden.h"

namespace baton::rpc {
using support::Cat;
namespace {

bool WriteTo(const std::string& path, const std::string& text) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::string TextOf(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[4096];
  const ssize_t size = file ? read(file.get(), text, sizeof text) : -1;
  return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
}

bool HasWord(const std::string& text, std::string_view word) {
  return Cat(" ", text.substr(0, text.find('\n')), " ").find(Cat(" ", word, " ")) != std::string::npos;
}

/// systemd marks a group that it delegates. Root could write into every group, and has to leave the others alone.
bool IsDelegated(const std::string& folder) {
  char value = 0;
  for (const char* name : {"user.delegate", "trusted.delegate"}) {
    if (getxattr(folder.c_str(), name, &value, 1) == 1 && value == '1') return true;
  }
  return geteuid() != 0 && access(folder.c_str(), W_OK) == 0;
}

constexpr std::string_view kOwnGroup = "/baton-rpc-server";

}  // namespace

ControlGroups ControlGroups::Take(const std::string& root) {
  std::string own = Cat("\n", ReadProc(getpid(), "cgroup"));
  const size_t at = own.find("\n0::/");
  if (at == std::string::npos) return {};
  own = own.substr(at + 4, own.find('\n', at + 1) - at - 4);
  const std::string folder = own == "/" ? root : Cat(root, own);
  const std::string controllers = TextOf(Cat(folder, "/cgroup.controllers"));
  if (!HasWord(controllers, "memory") || !HasWord(controllers, "pids") || !IsDelegated(folder)) return {};
  const std::string inner = Cat(folder, kOwnGroup);
  mkdir(inner.c_str(), 0755);
  const std::string processes = TextOf(Cat(folder, "/cgroup.procs"));
  for (size_t begin = 0; begin < processes.size();) {
    const size_t end = processes.find('\n', begin);
    WriteTo(Cat(inner, "/cgroup.procs"), processes.substr(begin, end - begin));
    begin = end == std::string::npos ? processes.size() : end + 1;
  }
  if (!WriteTo(Cat(folder, "/cgroup.subtree_control"), "+memory +pids")) return {};
  return ControlGroups(folder);
}

std::string ControlGroups::GroupOf(pid_t pid) const { return Cat(folder_, "/baton-rpc-session-", pid); }

bool ControlGroups::Enter(pid_t pid, const SessionTerms& terms) const {
  const std::string group = GroupOf(pid);
  if (mkdir(group.c_str(), 0755) != 0) return false;
  bool done = WriteTo(Cat(group, "/pids.max"), Cat(terms.threads));
  if (terms.memory_bytes) {
    done = WriteTo(Cat(group, "/memory.max"), Cat(terms.memory_bytes + kOwnBytes)) && done;
    WriteTo(Cat(group, "/memory.swap.max"), "0");  // a kernel without swap has no such file
    WriteTo(Cat(group, "/memory.oom.group"), "1");
  }
  return WriteTo(Cat(group, "/cgroup.procs"), Cat(pid)) && done;
}

void ControlGroups::Leave(pid_t pid) const {
  const std::string group = GroupOf(pid);
  WriteTo(Cat(group, "/cgroup.kill"), "1");
  rmdir(group.c_str());
}

void ControlGroups::GiveBack() const {
  if (!there()) return;
  WriteTo(Cat(folder_, "/cgroup.subtree_control"), "-memory -pids");
  WriteTo(Cat(folder_, "/cgroup.procs"), Cat(getpid()));
  rmdir(Cat(folder_, kOwnGroup).c_str());
}

}  // namespace baton::rpc
