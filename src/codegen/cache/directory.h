// SPDX-License-Identifier: Apache-2.0
// A folder of files that processes of one user read and write at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::codegen::cache {

/// A folder whose files are run as code, so it must be this user's alone: `Open` refuses one of another user, or one
/// that others can write to, and `Read` refuses such files and links. No function throws for what the system says;
/// they give its reason.
class Directory {
 public:
  struct File {
    std::string name;
    uint64_t bytes;
    int64_t used;  ///< when it was read or written last, in nanoseconds since 1970
  };
  /// A failure to get a folder or a file that is there.
  struct Problem {
    const char* reason = "";  ///< "untrusted" or "unreadable"
    std::string why;
  };

  /// Null where there is no such folder and none can be made, or it is not trusted; with `make` false, also (without a
  /// problem) where there is none yet.
  static std::shared_ptr<Directory> Open(const std::string& path, bool make, Problem* problem);
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  /// The bytes of a file; nothing where there is none (without a problem), or it cannot be read or is not trusted.
  std::optional<std::string> Read(const std::string& name, uint64_t most, Problem* problem) const;
  /// Writes a file that appears whole or not at all, whatever else writes it and whenever this process ends. Gives
  /// "", or why it is not written.
  std::string Write(const std::string& name, std::string_view bytes) const;
  /// Adds a line to a file; at `most` bytes the file becomes NAME.old, in place of the one before it.
  void Append(const std::string& name, const std::string& line, uint64_t most) const;
  /// Notes that a file is used now.
  void Touch(const std::string& name) const;
  /// Whether a file was there and is gone.
  bool Remove(const std::string& name) const;
  std::vector<File> List() const;
  /// Removes what writers left that were killed.
  void RemoveLeftovers() const;

 private:
  explicit Directory(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace baton::codegen::cache
