// SPDX-License-Identifier: Apache-2.0
#include <baton/support/file.h>
#include <baton/support/text.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>

namespace baton::support {
namespace {

std::string Reason(int error) {
  char buffer[128];
  // The GNU form, which returns the text, whatever it does with the buffer.
  return strerror_r(error, buffer, sizeof(buffer));
}

[[noreturn]] void FailPath(const char* action, std::string_view path, std::string_view reason) {
  throw std::runtime_error(Cat("cannot ", action, " `", path, "`: ", reason));
}

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

void CheckPath(const char* action, const std::string& path) {
  if (path.empty()) FailPath(action, path, "the name is empty");
  if (path.find('\0') != std::string::npos) FailPath(action, path.c_str(), "the name contains a zero byte");
}

/// Opens a regular file and tells its size; never waits on a pipe.
int OpenRegular(const std::string& path, size_t* size) {
  CheckPath("read", path);
  int fd;
  do {
    fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) FailPath("read", path, Reason(errno));
  struct stat st;
  if (fstat(fd, &st) != 0) {
    const int error = errno;
    close(fd);
    FailPath("read", path, Reason(error));
  }
  if (!S_ISREG(st.st_mode)) {
    close(fd);
    FailPath("read", path, S_ISDIR(st.st_mode) ? "it is a directory" : "it is not a regular file");
  }
  *size = static_cast<size_t>(st.st_size);
  return fd;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  size_t size = 0;
  Fd fd(OpenRegular(path, &size));
  if (size == 0) return;
  void* p = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (p == MAP_FAILED) FailPath("map", path, Reason(errno));
  data_ = p;
  size_ = size;
}

MappedFile& MappedFile::operator=(MappedFile&& o) noexcept {
  if (this != &o) {
    if (data_) munmap(data_, size_);
    data_ = o.data_, size_ = o.size_;
    o.data_ = nullptr, o.size_ = 0;
  }
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) munmap(data_, size_);
}

void GiveBackPages(std::string_view part) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data()), end = begin + part.size();
  const uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

std::string ReadFile(const std::string& path, size_t limit) {
  size_t size = 0;
  Fd fd(OpenRegular(path, &size));
  if (size > limit) {
    FailPath("read", path, Cat("it has ", size, " bytes, the limit is ", limit));
  }
  std::string out;
  out.resize(size);
  size_t got = 0;
  while (got < size) {
    const ssize_t n = read(fd.get(), out.data() + got, size - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) FailPath("read", path, Reason(errno));
    if (n == 0) break;  // it became shorter since we asked
    got += static_cast<size_t>(n);
  }
  out.resize(got);
  return out;
}

AtomicFile::AtomicFile(const std::string& path, bool executable) : path_(path) {
  CheckPath("write", path);
  struct stat st;
  if (stat(path.c_str(), &st) == 0) {
    if (S_ISDIR(st.st_mode)) FailPath("write", path, "it is a directory");
    if (!S_ISREG(st.st_mode)) {
      fd_ = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
      if (fd_ < 0) FailPath("write", path, Reason(errno));
      return;
    }
    char* real = realpath(path.c_str(), nullptr);
    if (real) {
      path_ = real;
      free(real);
    }
  }
  static std::atomic<unsigned> counter{0};
  const size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path_.substr(0, slash + 1);
  const std::string name = path_.substr(folder.size());
  if (name.empty()) FailPath("write", path, "it names a directory");
  for (;;) {
    // Names may be as long as the file system allows already, so the temporary one does not contain them.
    temporary_ = Cat(folder, ".baton-", getpid(), "-", counter.fetch_add(1), ".tmp");
    fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, executable ? 0777 : 0666);
    if (fd_ >= 0) break;
    if (errno == EINTR || errno == EEXIST) continue;
    const int error = errno;
    temporary_.clear();
    FailPath("write", path_, error == ENOENT ? std::string("its folder does not exist") : Reason(error));
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::Fail(const char* action, int error) {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
  FailPath(action, path_, Reason(error));
}

void AtomicFile::Write(const void* data, size_t size) {
  if (fd_ < 0) FailPath("write", path_, "it is closed");
  const char* p = static_cast<const char*>(data);
  while (size) {
    const ssize_t n = write(fd_, p, size < (size_t(1) << 30) ? size : size_t(1) << 30);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Fail("write", errno);
    p += n;
    size -= static_cast<size_t>(n);
  }
}

void AtomicFile::Commit() {
  if (fd_ < 0) FailPath("write", path_, "it is closed");
  if (temporary_.empty()) {
    const int fd = fd_;
    fd_ = -1;
    if (close(fd) != 0 && errno != EINTR) Fail("write", errno);
    return;
  }
  if (fsync(fd_) != 0) Fail("flush", errno);
  const int fd = fd_;
  fd_ = -1;
  if (close(fd) != 0 && errno != EINTR) Fail("write", errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) Fail("rename to", errno);
  temporary_.clear();
  // The new name reaches the disk with its folder; that this fails does not unmake the file.
  const size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  const Fd dir(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir.get() >= 0) fsync(dir.get());
}

void WriteFileAtomic(const std::string& path, std::string_view bytes, bool executable) {
  AtomicFile file(path, executable);
  file.Write(bytes);
  file.Commit();
}

}  // namespace baton::support
