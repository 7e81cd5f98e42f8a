/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets: new ones, and those that the process has already. */
#include "attack.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { kMostDescriptors = 256, kFamilies = 47 };

static int64_t Socket(const struct Given* g) {
  const int fd = socket((int)g->number, (int)g->other, 0);
  return fd < 0 ? errno : (close(fd), 0);
}
/* All families and types: 0 if any is let through, else an error that is no refusal, if there is one. */
static int64_t AnySocket(const struct Given* g) {
  int64_t result = EPERM;
  (void)g;
  for (int family = 0; family < kFamilies; ++family) {
    for (int type = SOCK_STREAM; type <= SOCK_PACKET; ++type) {
      const int fd = socket(family, type, 0);
      if (fd >= 0) return close(fd), 0;
      if (!Said(errno)) result = errno;
    }
  }
  return result;
}
static int64_t SocketPair(const struct Given* g) {
  int ends[2];
  if (socketpair(AF_UNIX, (int)g->number, 0, ends)) return errno;
  close(ends[0]);
  close(ends[1]);
  return 0;
}
static struct sockaddr_un UnixAddress(const char* path) {
  struct sockaddr_un address;
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  return address;
}
/* A server of the test's at a path, as a session would reach a service of the user. */
static int64_t ConnectUnix(const struct Given* g) {
  const struct sockaddr_un address = UnixAddress(g->text);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  const int64_t error = FAILURE(connect(fd, (const struct sockaddr*)&address, sizeof address));
  close(fd);
  return error;
}
static int64_t ConnectTcp(const struct Given* g) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)g->number)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  const int64_t error = FAILURE(connect(fd, (const struct sockaddr*)&address, sizeof address));
  close(fd);
  return error;
}
static int64_t SendUdp(const struct Given* g) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)g->number)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  const int64_t error = FAILURE(sendto(fd, "x", 1, 0, (const struct sockaddr*)&address, sizeof address));
  close(fd);
  return error;
}
static int64_t Listen(const struct Given* g) {
  (void)g;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  const int64_t error = FAILURE(listen(fd, 1));
  close(fd);
  return error;
}

/* ---- Those that the process has ---- */

static int IsSocket(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
}
/* Each socket is asked; the call got through if one gives anything but a refusal. */
static int64_t OnEach(int64_t (*action)(int fd, const struct Given* g), const struct Given* g) {
  int64_t result = ENOTSOCK;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    if (!IsSocket(fd)) continue;
    const int64_t error = action(fd, g);
    if (!Said(error)) return error;
    result = error;
  }
  return result;
}
static int64_t ConnectOne(int fd, const struct Given* g) {
  const struct sockaddr_un address = UnixAddress(g->text);
  return FAILURE(connect(fd, (const struct sockaddr*)&address, sizeof address));
}
static int64_t ConnectInherited(const struct Given* g) { return OnEach(ConnectOne, g); }
static int64_t BindOne(int fd, const struct Given* g) {
  const struct sockaddr_un address = UnixAddress(g->more);
  return FAILURE(bind(fd, (const struct sockaddr*)&address, sizeof address));
}
static int64_t BindInherited(const struct Given* g) { return OnEach(BindOne, g); }
static int64_t ListenOne(int fd, const struct Given* g) { return (void)g, FAILURE(listen(fd, 1)); }
static int64_t ListenInherited(const struct Given* g) { return OnEach(ListenOne, g); }
/* A socket of the server's that takes connections. */
static int64_t ListensInherited(const struct Given* g) {
  (void)g;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    int listens = 0;
    socklen_t size = sizeof listens;
    if (IsSocket(fd) && getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens) return 0;
  }
  return ENOENT;
}
static int64_t AcceptOne(int fd, const struct Given* g) {
  (void)g;
  const int flags = fcntl(fd, F_GETFL);
  fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  const int got = accept(fd, 0, 0);
  const int64_t error = got < 0 ? errno : 0;
  fcntl(fd, F_SETFL, flags);
  return error;
}
static int64_t AcceptInherited(const struct Given* g) { return OnEach(AcceptOne, g); }
/* Hands a descriptor to the process at the other end of the control socket, which keeps it. */
static int64_t PassDescriptor(const struct Given* g) {
  int64_t result = ENOTSOCK;
  (void)g;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    struct stat info;
    if (fstat(fd, &info) || !S_ISSOCK(info.st_mode)) continue;
    struct sockaddr_un address;
    socklen_t size = sizeof address;
    if (!getsockname(fd, (struct sockaddr*)&address, &size) && address.sun_family != AF_UNIX) continue;
    int type = SOCK_SEQPACKET;
    size = sizeof type;
    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
    if (type != SOCK_SEQPACKET) continue;
    char byte[16] = {0};
    union {
      struct cmsghdr head;
      char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {byte, sizeof byte};
    struct msghdr message = {0};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    const int64_t error = FAILURE(sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
    if (!Said(error)) return error;
    result = error;
  }
  return result;
}
/* Credentials of another process with a message. */
static int64_t PassCredentials(const struct Given* g) {
  const int on = 1;
  int64_t result = ENOTSOCK;
  (void)g;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    if (!IsSocket(fd)) continue;
    const int64_t error = FAILURE(setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
    if (!Said(error)) return error;
    result = error;
  }
  return result;
}
static int64_t BufferOne(int fd, const struct Given* g) {
  const int bytes = 1 << 30;
  (void)g;
  return FAILURE(setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes));
}
static int64_t GrowBuffers(const struct Given* g) { return OnEach(BufferOne, g); }

const struct Attack kSocketAttacks[] = {
    {"socket", Socket},
    {"any socket", AnySocket},
    {"socketpair", SocketPair},
    {"connect unix", ConnectUnix},
    {"connect tcp", ConnectTcp},
    {"send udp", SendUdp},
    {"listen", Listen},
    {"connect inherited", ConnectInherited},
    {"bind inherited", BindInherited},
    {"listen inherited", ListenInherited},
    {"listens inherited", ListensInherited},
    {"accept inherited", AcceptInherited},
    {"pass descriptor", PassDescriptor},
    {"pass credentials", PassCredentials},
    {"grow buffers", GrowBuffers},
    {0, 0},
};
