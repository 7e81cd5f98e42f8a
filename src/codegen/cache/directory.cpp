// SPDX-License-Identifier: Apache-2.0
#include "codegen/cache/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

namespace baton::codegen::cache {
namespace {

constexpr std::string_view kTemporary = ".tmp-";
constexpr int64_t kSecond = 1000000000;
constexpr int64_t kLeftOver = 600 * kSecond;  // a file that no writer has touched for so long has no writer

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  ~Fd() { Close(); }
  /// Whether all that was written has been taken.
  bool Close() {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 || close(fd) == 0 || errno == EINTR;
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string Reason(int error) { return strerror(error); }

int64_t Nanoseconds(const timespec& t) { return int64_t{t.tv_sec} * kSecond + t.tv_nsec; }

/// Whether what `st` is of is this user's alone; else says why not.
bool Trusted(const struct stat& st, const char* what, std::string* why) {
  if (st.st_uid != geteuid()) {
    *why = std::string(what) + " belongs to user " + std::to_string(st.st_uid) + ", this process is user " +
           std::to_string(geteuid());
    return false;
  }
  if (st.st_mode & (S_IWGRP | S_IWOTH)) {
    *why = std::string(what) + " can be written by other users; mend with chmod go-w";
    return false;
  }
  return true;
}

/// Makes a folder and those above it, for this user alone.
int MakeFolders(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string folder = path.substr(0, at);
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST && at == std::string::npos) return errno;
    if (at == std::string::npos) return 0;
  }
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

std::shared_ptr<Directory> Directory::Open(const std::string& path, bool make, Problem* problem) {
  const auto open_it = [&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); };
  int fd = open_it();
  if (fd < 0 && errno == ENOENT) {
    if (!make) return nullptr;
    if (const int error = MakeFolders(path)) {
      *problem = {"unreadable", "the folder " + path + " cannot be made: " + Reason(error)};
      return nullptr;
    }
    fd = open_it();
  }
  const std::shared_ptr<Directory> out(new Directory(fd));
  struct stat st;
  if (fd < 0 || fstat(fd, &st) != 0) {
    *problem = {"unreadable", "the folder " + path + " cannot be read: " + Reason(errno)};
    return nullptr;
  }
  std::string why;
  if (!Trusted(st, ("the folder " + path).c_str(), &why)) {
    *problem = {"untrusted", why};
    return nullptr;
  }
  return out;
}

Directory::~Directory() {
  if (fd_ >= 0) close(fd_);
}

std::optional<std::string> Directory::Read(const std::string& name, uint64_t most, Problem* problem) const {
  const auto fail = [&](const char* reason, std::string why) {
    *problem = {reason, std::move(why)};
    return std::nullopt;
  };
  // A link leads elsewhere, and opening a pipe would wait.
  const Fd fd(openat(fd_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) {
    if (errno == ENOENT) return std::nullopt;
    return fail(errno == ELOOP ? "untrusted" : "unreadable", errno == ELOOP ? "its file is a link" : Reason(errno));
  }
  struct stat st;
  if (fstat(fd.get(), &st) != 0) return fail("unreadable", Reason(errno));
  std::string why;
  if (!S_ISREG(st.st_mode)) return fail("untrusted", "it is not a regular file");
  if (!Trusted(st, "its file", &why)) return fail("untrusted", why);
  if (static_cast<uint64_t>(st.st_size) > most) return fail("unreadable", "its file is too large");
  std::string bytes(static_cast<size_t>(st.st_size), '\0');
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t n = read(fd.get(), bytes.data() + got, bytes.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail("unreadable", Reason(errno));
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  bytes.resize(got);
  return bytes;
}

std::string Directory::Write(const std::string& name, std::string_view bytes) const {
  static std::atomic<unsigned> counter{0};
  std::string temporary;
  int made = -1;
  do {
    temporary = std::string(kTemporary) + std::to_string(getpid()) + "-" + std::to_string(counter++);
    made = openat(fd_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  } while (made < 0 && (errno == EEXIST || errno == EINTR));
  if (made < 0) return Reason(errno);
  Fd fd(made);
  // Not flushed to the disk: after a crash of the system the checksum tells what did not arrive.
  if (WriteAll(fd.get(), bytes) && fd.Close() && renameat(fd_, temporary.c_str(), fd_, name.c_str()) == 0) return "";
  const int error = errno;
  unlinkat(fd_, temporary.c_str(), 0);
  return Reason(error);
}

void Directory::Append(const std::string& name, const std::string& line, uint64_t most) const {
  const Fd fd(openat(fd_, name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  struct stat st;
  if (fd.get() < 0 || fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) return;
  WriteAll(fd.get(), line);
  if (static_cast<uint64_t>(st.st_size) + line.size() >= most) {
    renameat(fd_, name.c_str(), fd_, (name + ".old").c_str());
  }
}

void Directory::Touch(const std::string& name) const { utimensat(fd_, name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW); }

bool Directory::Remove(const std::string& name) const { return unlinkat(fd_, name.c_str(), 0) == 0; }

std::vector<Directory::File> Directory::List() const {
  std::vector<File> out;
  const int fd = openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* folder = fd < 0 ? nullptr : fdopendir(fd);
  if (!folder) {
    if (fd >= 0) close(fd);
    return out;
  }
  while (const dirent* entry = readdir(folder)) {
    struct stat st;
    if (fstatat(fd_, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode)) continue;
    out.push_back({entry->d_name, static_cast<uint64_t>(st.st_size), Nanoseconds(st.st_mtim)});
  }
  closedir(folder);
  return out;
}

void Directory::RemoveLeftovers() const {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  for (const File& file : List()) {
    if (file.name.starts_with(kTemporary) && file.used < Nanoseconds(now) - kLeftOver) Remove(file.name);
  }
}

}  // namespace baton::codegen::cache
