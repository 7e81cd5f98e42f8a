// SPDX-License-Identifier: Apache-2.0
#include "rpc/control.h"

#include <poll.h>
#include <sys/socket.h>

#include <cstring>

#include "rpc/errors.h"
#include "rpc/worker.h"

namespace baton::rpc {
namespace {

constexpr size_t kMostText = 4096;

struct Head {
  uint64_t taken;
  int32_t place;
  int32_t kind;
};

}  // namespace

bool SendControl(int control, ControlMessage::Kind kind, std::string_view text, int fd, uint64_t taken, int place) {
  Head head{taken, place, kind};
  text = text.substr(0, kMostText);
  iovec parts[2] = {{&head, sizeof head}, {const_cast<char*>(text.data()), text.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof fd)] = {};
  if (fd < 0) {
    const std::string whole = std::string(reinterpret_cast<const char*>(&head), sizeof head) + std::string(text);
    return send(control, whole.data(), whole.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(whole.size());
  }
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  cmsghdr* attached = CMSG_FIRSTHDR(&message);
  attached->cmsg_level = SOL_SOCKET;
  attached->cmsg_type = SCM_RIGHTS;
  attached->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(attached), &fd, sizeof fd);
  const ssize_t size = static_cast<ssize_t>(sizeof head + text.size());
  return sendmsg(control, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == size;
}

bool ReceiveControl(int control, ControlMessage* to) {
  Head head{};
  to->text.assign(kMostText, '\0');
  iovec parts[2] = {{&head, sizeof head}, {to->text.data(), to->text.size()}};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  const ssize_t n = recvmsg(control, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n < static_cast<ssize_t>(sizeof head)) return false;
  const cmsghdr* attached = CMSG_FIRSTHDR(&message);
  to->fd.Close();
  if (attached && attached->cmsg_type == SCM_RIGHTS && attached->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(attached), sizeof fd);
    to->fd = Descriptor(fd);
  }
  to->text.resize(static_cast<size_t>(n) - sizeof head);
  to->kind = static_cast<ControlMessage::Kind>(head.kind);
  to->place = head.place;
  to->taken = head.taken;
  return true;
}

int TakeConnection(int control, uint64_t* taken, Deadline deadline) {
  Descriptor found;
  for (;;) {
    pollfd p{control, POLLIN, 0};
    const int ready = poll(&p, 1, found ? 0 : deadline.Left(1000));
    if (SessionEnds()) Throw(kSessionLost, "the server ends");
    if (ready > 0) {
      ControlMessage message;
      if (!ReceiveControl(control, &message) || !message.fd) Throw(kSessionLost, "the server is gone");
      found = std::move(message.fd);  // the client gave an older one up
      *taken = message.taken;
      continue;
    }
    if (found) return found.Take();
    if (ready == 0 && deadline.Passed()) Throw(kSessionLost, "the client did not come back");
  }
}

}  // namespace baton::rpc
