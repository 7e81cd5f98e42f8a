// SPDX-License-Identifier: Apache-2.0
// The thread that ends a session's process when its client is gone, whatever runs there; and the lease that is current.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>

#include "rpc/channel.h"

namespace baton::rpc {

/// The connection of a session as the thread that watches it sees it; it may outlive the session.
class ConnectionWatch : public std::enable_shared_from_this<ConnectionWatch> {
 public:
  /// `control`: where connections in place of a lost one come from, -1 if none do. `seconds`: of the session, 0: any.
  void Start(int fd, int control, double seconds);
  /// There is another connection.
  void Replace(int fd);

 private:
  void Run(Deadline end, bool limited);
  std::mutex mutex_;
  int fd_ = -1, control_ = -1;
  std::atomic<int> turn_{0};  // counts connections
};

/// Throws Denied unless `match` ends with the ticket of the lease that the file `door` says is current.
void CheckLease(int door, std::string_view match);

}  // namespace baton::rpc
