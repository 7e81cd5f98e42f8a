// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "rpc/confine/terms.h"

namespace baton::rpc {

/// The control groups (version 2) of sessions, a child each of the group that the server was given: a service of
/// systemd with `Delegate=yes` has one. The kernel then keeps memory and threads of a session exactly; without, the
/// warden measures them.
class ControlGroups {
 public:
  ControlGroups() = default;
  /// Takes the group of this process below `root` into use, if it is delegated and has the controllers memory and pids.
  /// Moves the processes of that group into a child of it, as the kernel demands. Makes none where any of this fails.
  static ControlGroups Take(const std::string& root = "/sys/fs/cgroup");

  bool there() const { return !folder_.empty(); }
  /// Puts a process into a new group with limits. False when the kernel refuses.
  bool Enter(pid_t pid, const SessionTerms& terms) const;
  /// Ends what is left of a group, and removes it.
  void Leave(pid_t pid) const;
  /// Removes the group of the server's own processes, which then are in the group that they came from.
  void GiveBack() const;

 private:
  explicit ControlGroups(std::string folder) : folder_(std::move(folder)) {}
  std::string GroupOf(pid_t pid) const;
  std::string folder_;
};

}  // namespace baton::rpc
