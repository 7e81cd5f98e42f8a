// SPDX-License-Identifier: Apache-2.0
// The files of a session: in one folder, by name, with their digests, so that content that is there is not sent again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace baton::rpc {

class SessionFiles {
 public:
  SessionFiles(std::string folder, uint64_t most) : folder_(std::move(folder)), most_(most) {}
  /// The path of a file. Names are names, not paths.
  std::string PathOf(const std::string& name) const;
  /// Whether content with this digest is there; it is under `name`, too, from then on.
  bool Take(const std::string& name, uint64_t size, const std::string& digest);
  /// Throws OutOfMemory when there is no room for a file of this size.
  void NeedRoom(const std::string& name, uint64_t size) const;
  /// Gives a file that was written under another path its name. False when it cannot.
  bool Add(const std::string& written, const std::string& name, uint64_t size, const std::string& digest);
  const std::string& folder() const { return folder_; }

 private:
  struct File {
    std::string name, digest;
    uint64_t size;
  };
  void Remember(File file);
  std::string folder_;
  uint64_t most_;
  std::vector<File> files_;
};

}  // namespace baton::rpc
