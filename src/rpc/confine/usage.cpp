// SPDX-License-Identifier: Apache-2.0
#include "rpc/confine/usage.h"

#include <baton/support/text.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "rpc/confine/descriptor.h"
#include "rpc/confine/process.h"

namespace baton::rpc {
namespace {

constexpr int kDeepest = 64;
constexpr size_t kMapsBytes = 16 << 20;
constexpr uint64_t kBlock = 512;  // of st_blocks
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

bool IsEntry(const char* name) { return std::strcmp(name, ".") != 0 && std::strcmp(name, "..") != 0; }

/// Calls `action(name)` for each entry of a folder.
template <class Action>
void ForEntries(int folder, Action action) {
  DIR* all = fdopendir(folder);
  if (!all) {
    close(folder);
    return;
  }
  while (const dirent* entry = readdir(all)) {
    if (IsEntry(entry->d_name)) action(dirfd(all), entry->d_name);
  }
  closedir(all);
}

}  // namespace

void RemoveFolder(const std::string& path) noexcept {
  const Descriptor root(open(path.c_str(), kFolderFlags));
  // Folders within folders move up, so that none is deeper than two levels and no path too long.
  uint64_t number = 0;
  for (bool more = static_cast<bool>(root); more;) {
    more = false;
    ForEntries(dup(root.get()), [&](int at, const char* name) {
      if (unlinkat(at, name, 0) == 0) return;
      const int inner = openat(at, name, kFolderFlags);
      if (inner < 0) return;
      fchmod(inner, 0700);
      ForEntries(inner, [&](int within, const char* child) {
        if (unlinkat(within, child, 0) == 0 || unlinkat(within, child, AT_REMOVEDIR) == 0) return;
        char fresh[32];
        snprintf(fresh, sizeof fresh, ".%llx", static_cast<unsigned long long>(++number));  // NOLINT
        renameat(within, child, root.get(), fresh);
      });
      unlinkat(at, name, AT_REMOVEDIR);
      more = true;
    });
    if (number > 10000000) break;
    lseek(root.get(), 0, SEEK_SET);
  }
  rmdir(path.c_str());
}

void FileUsage::AddFolder(int fd, int depth, Sizes* sizes) {
  ForEntries(fd, [&](int at, const char* name) {
    ++names_;
    struct stat info{};
    if (fstatat(at, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return;
    const File file{info.st_dev, info.st_ino};
    const uint64_t bytes = static_cast<uint64_t>(info.st_blocks) * kBlock;
    if (sizes->emplace(file, bytes).second) named_ += bytes;
    if (!S_ISDIR(info.st_mode)) return;
    if (depth >= kDeepest) {
      too_deep_ = true;
    } else if (const int inner = openat(at, name, kFolderFlags); inner >= 0) {
      AddFolder(inner, depth + 1, sizes);
    }
  });
}

void FileUsage::AddOpen(Sizes* sizes) {
  const int all = open(support::Cat("/proc/", pid_, "/fd").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (all < 0) return;
  ForEntries(all, [&](int at, const char* name) {
    struct stat info{};
    if (fstatat(at, name, &info, 0) != 0 || !S_ISREG(info.st_mode) || info.st_nlink > 0) return;
    const uint64_t bytes = static_cast<uint64_t>(info.st_blocks) * kBlock;
    if (sizes->emplace(File{info.st_dev, info.st_ino}, bytes).second) nameless_ += bytes;
  });
}

void FileUsage::AddMapped(uint64_t grown, Sizes* sizes) {
  const std::string text = ReadProc(pid_, "maps", kMapsBytes);
  constexpr std::string_view kDeleted = " (deleted)";
  Sizes mapped;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string_view line(text.data() + at, (end == std::string::npos ? text.size() : end) - at);
    at = end == std::string::npos ? text.size() : end + 1;
    if (line.size() < kDeleted.size() || line.substr(line.size() - kDeleted.size()) != kDeleted) continue;
    unsigned major_number = 0, minor_number = 0;
    unsigned long inode = 0;  // NOLINT(google-runtime-int)
    if (sscanf(std::string(line).c_str(), "%*s %*s %*s %x:%x %lu", &major_number, &minor_number, &inode) != 3) continue;
    const File file{makedev(major_number, minor_number), inode};
    if (sizes->count(file) || mapped.count(file)) continue;  // it is open, too
    uint64_t bytes = grown;
    if (const auto known = mapped_.find(file); known != mapped_.end()) {
      bytes = known->second;
    } else if (const auto last = seen_.find(file); last != seen_.end()) {
      bytes += last->second;
    }
    mapped.emplace(file, bytes);
    nameless_ += bytes;
  }
  mapped_.swap(mapped);
}

void FileUsage::Measure(uint64_t written) {
  named_ = nameless_ = names_ = 0;
  too_deep_ = false;
  Sizes sizes;
  if (const int root = open(folder_.c_str(), kFolderFlags); root >= 0) AddFolder(root, 0, &sizes);
  AddOpen(&sizes);
  AddMapped(written - written_, &sizes);
  seen_.swap(sizes);
  written_ = written;
}

}  // namespace baton::rpc
