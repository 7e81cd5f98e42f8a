// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace baton::rpc {

/// Rules of Landlock for this process: files beneath the paths that are allowed, no TCP, no signals and abstract
/// sockets of processes outside (as far as the kernel's version has them).
class Landlock {
 public:
  enum Rights : uint8_t { kNone, kRead, kReadWrite, kDevice, kOwn };
  Landlock();
  ~Landlock();
  Landlock(const Landlock&) = delete;
  Landlock& operator=(const Landlock&) = delete;
  /// Lets a path through, if it is there.
  void Allow(const std::string& path, Rights rights);
  /// Restricts this thread and those that it makes. False where the kernel cannot.
  bool Enter();
  /// The version of the kernel's interface; 0: none.
  static int Version();

 private:
  int version_, fd_ = -1;
  uint64_t all_ = 0;
  bool ok_ = true;
};

}  // namespace baton::rpc
