// SPDX-License-Identifier: Apache-2.0
#include "bytes.h"

#include <baton/support/file.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace baton::onnx {
namespace {

// Below this a file is read: a small mapping costs more than it saves, and a file that shrinks while mapped is a
// signal.
constexpr size_t kMapFrom = 1 << 20;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

/// Opens `path` beneath `dir` without following any link. Returns -1 and sets errno.
int OpenBeneath(int dir, const std::string& path) {
  struct open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  int fd = static_cast<int>(syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how));
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return fd;
  // A kernel or sandbox without openat2: one component after the other, none of them a link.
  int at = dup(dir);
  if (at < 0) return -1;
  size_t begin = 0;
  while (true) {
    size_t end = path.find('/', begin);
    bool last = end == std::string::npos;
    std::string part = path.substr(begin, last ? std::string::npos : end - begin);
    int next = at;
    if (!part.empty() && part != ".") {
      int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | (last ? 0 : O_DIRECTORY);
      next = openat(at, part.c_str(), flags);
      int saved = errno;
      close(at);
      errno = saved;
      if (next < 0) return -1;
    }
    if (last) return next;
    at = next;
    begin = end + 1;
  }
}

void CheckLocation(std::string_view location) {
  const std::string head = "external data " + Quote(location) + " is refused: ";
  const char* help = "; keep the data file beside the model and name it by a relative path";
  if (location.empty()) Throw("external data has an empty `location`" + std::string(help));
  if (location.size() > 4096) Throw(head + "the path is longer than 4096 bytes");
  if (location.find('\0') != std::string_view::npos) Throw(head + "the path holds a zero byte");
  if (location[0] == '/' || location[0] == '\\') Throw(head + "the path is absolute" + help);
  if (location.size() > 1 && location[1] == ':') Throw(head + "the path names a drive" + help);
  size_t begin = 0;
  while (begin <= location.size()) {
    size_t end = location.find_first_of("/\\", begin);
    if (end == std::string_view::npos) end = location.size();
    if (location.substr(begin, end - begin) == "..") Throw(head + "the path leaves the model's folder by `..`" + help);
    begin = end + 1;
  }
}

}  // namespace

std::string Printable(std::string_view text, size_t limit) {
  static const char* kHex = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (out.size() >= limit) return out + "...";
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c < 0x7f) {
      out += static_cast<char>(c);
    } else {
      out += "\\x";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    }
  }
  return out;
}

Bytes::~Bytes() {
  if (fd_ >= 0) close(fd_);
  if (mapped_) {
    munmap(const_cast<uint8_t*>(data_), size_);
  } else {
    delete[] data_;
  }
}

void Bytes::GiveBack(std::string_view part) const {
  if (mapped_) support::GiveBackPages(part);
}

void Bytes::Read(std::string_view part, void* to) const {
  if (fd_ < 0) {
    std::memcpy(to, part.data(), part.size());
    return;
  }
  const char* changed = "the file of the model's weights was written to while the model was compiled; compile it again";
  struct stat st;
  if (fstat(fd_, &st) != 0 || st.st_mtim.tv_sec != written_s_ || st.st_mtim.tv_nsec != written_ns_) Throw(changed);
  const auto begin = reinterpret_cast<const uint8_t*>(part.data()) - data_;
  for (size_t at = 0; at < part.size();) {
    const ssize_t n = pread(fd_, static_cast<char*>(to) + at, part.size() - at, begin + static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Throw(std::string("the model's weights cannot be read: ") + std::strerror(errno));
    if (n == 0) Throw(changed);
    at += static_cast<size_t>(n);
  }
}

std::shared_ptr<const Bytes> Bytes::Copy(std::string_view text) {
  std::shared_ptr<Bytes> bytes(new Bytes());
  auto* copy = new uint8_t[text.size() + 1];
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  bytes->data_ = copy;
  bytes->size_ = text.size();
  return bytes;
}

std::shared_ptr<const Bytes> Bytes::FromDescriptor(int fd, const std::string& what) {
  struct stat st;
  if (fstat(fd, &st) != 0) Throw(what + ": cannot be examined: " + std::strerror(errno));
  if (S_ISDIR(st.st_mode)) Throw(what + " is a directory; name the model file in it");
  if (!S_ISREG(st.st_mode)) Throw(what + " is not a regular file (a device, pipe or socket); copy it to a file first");
  std::shared_ptr<Bytes> bytes(new Bytes());
  size_t size = static_cast<size_t>(st.st_size);
  if (size >= kMapFrom) {
    void* at = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) Throw(what + ": cannot be mapped: " + std::strerror(errno));
    bytes->data_ = static_cast<const uint8_t*>(at);
    bytes->size_ = size;
    bytes->mapped_ = true;
    bytes->fd_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    bytes->written_s_ = st.st_mtim.tv_sec, bytes->written_ns_ = st.st_mtim.tv_nsec;
    return bytes;
  }
  auto* copy = new uint8_t[size + 1];
  bytes->data_ = copy;
  while (bytes->size_ < size) {
    ssize_t n = pread(fd, copy + bytes->size_, size - bytes->size_, static_cast<off_t>(bytes->size_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Throw(what + ": cannot be read: " + std::strerror(errno));
    if (n == 0) break;
    bytes->size_ += static_cast<size_t>(n);
  }
  return bytes;
}

std::shared_ptr<const Bytes> Bytes::FromFile(const std::string& path) {
  if (path.empty()) Throw("the path of the model is empty; give the path of an .onnx file");
  const std::string what = Quote(path);
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) {
    if (errno == ENOENT) Throw(what + ": no such file; check the path (relative paths start at the working directory)");
    if (errno == EACCES) Throw(what + ": permission denied; make the file readable for this user");
    Throw(what + ": cannot be opened: " + std::strerror(errno));
  }
  return FromDescriptor(fd.get(), what);
}

ExternalData::ExternalData(const std::string& folder) : folder_(folder.empty() ? "." : folder) {
  dir_ = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir_ < 0) Throw("folder " + Quote(folder_) + " of external data cannot be opened: " + std::strerror(errno));
}

ExternalData::~ExternalData() {
  if (dir_ >= 0) close(dir_);
}

std::string_view ExternalData::Read(std::string_view location, int64_t offset, int64_t length,
                                    std::shared_ptr<const Bytes>* keep) {
  CheckLocation(location);
  const std::string what = "external data " + Quote(location);
  std::shared_ptr<const Bytes> bytes;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = files_.find(location);
    if (it != files_.end()) {
      bytes = it->second;
    } else {
      Descriptor fd(OpenBeneath(dir_, std::string(location)));
      if (fd.get() < 0) {
        if (errno == ENOENT) {
          Throw(what + ": no such file in " + Quote(folder_) + "; put the data file beside the model");
        }
        if (errno == ELOOP || errno == EXDEV) {
          Throw(what + " is refused: the path goes through a link; put the file itself beside the model");
        }
        Throw(what + ": cannot be opened: " + std::strerror(errno));
      }
      struct stat st;
      if (fstat(fd.get(), &st) != 0) Throw(what + ": cannot be examined: " + std::strerror(errno));
      if (!S_ISREG(st.st_mode)) Throw(what + " is refused: it is not a regular file");
      if (st.st_nlink > 1) {
        Throw(what + " is refused: it is a hard link (" + std::to_string(st.st_nlink) +
              " names); put a copy of the file beside the model");
      }
      bytes = Bytes::FromDescriptor(fd.get(), what);
      files_.emplace(std::string(location), bytes);
    }
  }
  uint64_t size = bytes->size();
  if (offset < 0 || static_cast<uint64_t>(offset) > size) {
    Throw(what + ": offset " + std::to_string(offset) + " lies outside its " + std::to_string(size) + " bytes");
  }
  uint64_t rest = size - static_cast<uint64_t>(offset);
  if (length < -1 || (length >= 0 && static_cast<uint64_t>(length) > rest)) {
    Throw(what + ": " + std::to_string(length) + " bytes at offset " + std::to_string(offset) + " lie outside its " +
          std::to_string(size) + " bytes; the data file is truncated or belongs to another model");
  }
  if (length >= 0) rest = static_cast<uint64_t>(length);
  *keep = bytes;
  return bytes->view().substr(static_cast<size_t>(offset), static_cast<size_t>(rest));
}

}  // namespace baton::onnx
