// SPDX-License-Identifier: Apache-2.0
#include "rpc/confine/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rpc/confine/descriptor.h"

namespace baton::rpc {
namespace {

// Rights by the version of Landlock that brought them; the headers may be older than the kernel.
constexpr uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadDir = 1 << 3, kRemoveDir = 1 << 4,
                   kRemoveFile = 1 << 5, kMakeDir = 1 << 7, kMakeReg = 1 << 8, kFirst = (1 << 13) - 1;
constexpr uint64_t kRefer = 1 << 13, kTruncate = 1 << 14, kIoctlDevice = 1 << 15;
constexpr uint64_t kNoTcp = 3;   // binding and connecting
constexpr uint64_t kScopes = 3;  // abstract sockets and signals of others

/// As the kernel's newest headers have it.
struct Attributes {
  uint64_t files, net, scopes;
};

constexpr uint64_t RightsOf(Landlock::Rights rights) {
  constexpr uint64_t kReads = kReadFile | kReadDir;
  switch (rights) {
    case Landlock::kNone:
      return 0;
    case Landlock::kRead:
      return kReads | kExecute;
    case Landlock::kReadWrite:
      return kReads | kWriteFile;
    case Landlock::kDevice:
      return kReads | kWriteFile | kIoctlDevice;
    case Landlock::kOwn:  // no devices, sockets, pipes or symbolic links
      return kReads | kExecute | kWriteFile | kTruncate | kMakeReg | kMakeDir | kRemoveFile | kRemoveDir | kRefer;
  }
  return 0;
}

}  // namespace

int Landlock::Version() {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, 1 /* its version */);  // NOLINT(*-int)
  return version < 1 ? 0 : static_cast<int>(version);
}

Landlock::Landlock() : version_(Version()) {
  if (version_ < 1) return;
  all_ = kFirst | (version_ >= 2 ? kRefer : 0) | (version_ >= 3 ? kTruncate : 0) | (version_ >= 5 ? kIoctlDevice : 0);
  const Attributes set{all_, version_ >= 4 ? kNoTcp : 0, version_ >= 6 ? kScopes : 0};
  const size_t size = version_ >= 6 ? 24 : version_ >= 4 ? 16 : 8;
  fd_ = static_cast<int>(syscall(SYS_landlock_create_ruleset, &set, size, 0));
}

Landlock::~Landlock() {
  if (fd_ >= 0) close(fd_);
}

void Landlock::Allow(const std::string& path, Rights which) {
  const Descriptor at(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!at) return;
  uint64_t rights = RightsOf(which);
  struct stat info{};
  if (fstat(at.get(), &info) == 0 && !S_ISDIR(info.st_mode)) {
    rights &= kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDevice;
  }
  landlock_path_beneath_attr rule{};
  rule.allowed_access = rights & all_;
  rule.parent_fd = at.get();
  ok_ = syscall(SYS_landlock_add_rule, fd_, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0 && ok_;
}

bool Landlock::Enter() { return fd_ >= 0 && ok_ && syscall(SYS_landlock_restrict_self, fd_, 0) == 0; }

}  // namespace baton::rpc
