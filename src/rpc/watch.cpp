// SPDX-License-Identifier: Apache-2.0
#include "rpc/watch.h"

#include <baton/support/sha256.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <system_error>
#include <thread>

#include "rpc/endpoint.h"
#include "rpc/errors.h"
#include "rpc/worker.h"

namespace baton::rpc {

void ConnectionWatch::Start(int fd, int control, double seconds) {
  fd_ = fd;
  control_ = control;
  SetSessionConnection(fd);
  try {
    std::thread([self = shared_from_this(), end = Deadline::In(seconds), limited = seconds > 0] {
      self->Run(end, limited);
    }).detach();
  } catch (const std::system_error&) {
    Throw(kOutOfMemory, "a session needs more memory than this one may have: there is no room for a thread");
  }
}

void ConnectionWatch::Replace(int fd) {
  std::lock_guard lock(mutex_);
  fd_ = fd;
  SetSessionConnection(fd);
  ++turn_;
}

void ConnectionWatch::Run(Deadline end, bool limited) {
  for (;;) {
    const int turn = turn_;
    int fd;
    {
      std::lock_guard lock(mutex_);
      fd = fd_;
    }
    pollfd p[2] = {{fd, POLLRDHUP, 0}, {control_, POLLIN, 0}};
    const int ready = poll(p, 2, control_ >= 0 ? 200 : limited ? end.Left(1000) : -1);
    if (limited && end.Passed()) _exit(3);
    if (ready <= 0) continue;
    if (p[1].revents) {  // the client comes back, be it that the old connection does not know that it is dead
      std::lock_guard lock(mutex_);
      if (turn_ == turn) shutdown(fd_, SHUT_RDWR);
    }
    const Deadline wait = Deadline::In(control_ >= 0 ? kLingerSeconds : 2);
    while (turn_ == turn && !wait.Passed()) {
      if (limited && end.Passed()) _exit(3);
      usleep(p[1].revents ? 5000 : 50000);
    }
    if (turn_ == turn) _exit(4);  // it had the time to end by itself
  }
}

/// The file has the epoch, the SHA-256 of the ticket, and 8 bytes of the SHA-256 of both, as one process may write
/// while another reads.
void CheckLease(int door, std::string_view match) {
  unsigned char record[48] = {};
  bool whole = false;
  for (int i = 0; i < 50 && !whole; ++i) {
    if (i) usleep(1000);
    whole = pread(door, record, sizeof record, 0) == sizeof record &&
            std::memcmp(support::Sha256Of(record, 40).data(), record + 40, 8) == 0;
  }
  match.remove_prefix(match.rfind(':') + 1);
  const auto digest = support::Sha256Of(match.data(), match.size());
  if (!SameSecret(record + 8, digest.data(), digest.size()) || !whole || match.empty()) {
    Throw(kDenied,
          "a tracker leases this server out, and the lease is not the current one; "
          "baton.rpc.connect_tracker(...).request(...) gives one");
  }
}

}  // namespace baton::rpc
