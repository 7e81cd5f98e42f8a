// SPDX-License-Identifier: Apache-2.0
// Files, read whole or mapped, written whole or not at all.
#pragma once

#include <baton/support/export.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace baton::support {

/// A regular file mapped for reading. Errors (missing, a directory, a device, no permission) name the path.
/// A file that another program cuts while it is mapped raises SIGBUS on access; read what must survive that.
class BATON_DLL MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& o) noexcept : data_(o.data_), size_(o.size_) { o.data_ = nullptr, o.size_ = 0; }
  MappedFile& operator=(MappedFile&& o) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const uint8_t* data() const { return static_cast<const uint8_t*>(data_); }
  size_t size() const { return size_; }
  std::string_view text() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

/// Takes the whole pages of a part of a mapped file, which was mapped privately and not written to, out of this
/// process's memory; reading them again brings them back.
BATON_DLL void GiveBackPages(std::string_view part);

/// The bytes of a regular file, refused when there are more than `limit`.
BATON_DLL std::string ReadFile(const std::string& path, size_t limit = SIZE_MAX);

/// Writes a file that appears under its name whole or not at all: the bytes go to a temporary name in the same folder,
/// are flushed to the disk and renamed. Without Commit nothing is left behind. A name that is a device or a pipe
/// (/dev/stdout) is written to directly; a link is followed.
class BATON_DLL AtomicFile {
 public:
  /// `executable`: gives the permission to run or load it.
  explicit AtomicFile(const std::string& path, bool executable = false);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Write(const void* data, size_t size);
  void Write(std::string_view bytes) { Write(bytes.data(), bytes.size()); }
  void Commit();

 private:
  [[noreturn]] void Fail(const char* action, int error);

  std::string path_, temporary_;
  int fd_ = -1;
};

/// `bytes` under `path`, whole or not at all.
BATON_DLL void WriteFileAtomic(const std::string& path, std::string_view bytes, bool executable = false);

}  // namespace baton::support
