// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

namespace baton::rpc {

/// Removes a folder and what is in it, however deep it is nested.
void RemoveFolder(const std::string& path) noexcept;

/// Bytes of the files of a session: those in its folder, and those that have no name any more but that its process
/// has open or mapped. The kernel tells no size of a file that is mapped alone; it is what the file had when it was
/// seen last, and all that was written since.
class FileUsage {
 public:
  FileUsage(pid_t pid, std::string folder) : pid_(pid), folder_(std::move(folder)) {}
  /// Measures. `written`: bytes that the process has written until now.
  void Measure(uint64_t written);
  uint64_t bytes() const { return named_ + nameless_; }
  /// Of files without a name, those in memory among them.
  uint64_t nameless_bytes() const { return nameless_; }
  uint64_t names() const { return names_; }
  /// Folders are nested deeper than a session has use for.
  bool too_deep() const { return too_deep_; }

 private:
  using File = std::pair<dev_t, ino_t>;
  using Sizes = std::map<File, uint64_t>;
  void AddFolder(int fd, int depth, Sizes* sizes);
  void AddOpen(Sizes* sizes);
  void AddMapped(uint64_t grown, Sizes* sizes);

  pid_t pid_;
  std::string folder_;
  Sizes seen_, mapped_;
  uint64_t written_ = 0, named_ = 0, nameless_ = 0, names_ = 0;
  bool too_deep_ = false;
};

}  // namespace baton::rpc
