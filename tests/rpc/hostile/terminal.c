/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal that the server was started at, and its standard streams. */
#include "attack.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

enum { kMostDescriptors = 256 };

static int64_t OnEach(int64_t (*action)(int fd, const struct Given* g), const struct Given* g) {
  int64_t result = ENOTTY;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) continue;
    const int64_t error = action(fd, g);
    if (error == 0) return 0;
    if (Said(error)) result = error;
  }
  return result;
}

static int64_t OpenTerminal(const struct Given* g) {
  const int fd = open(g->text, O_RDWR | O_NOCTTY | O_NONBLOCK);
  return fd < 0 ? errno : (close(fd), 0);
}
/* As if typed at the terminal: run by the shell when the server ends. */
static int64_t TypeOne(int fd, const struct Given* g) {
  for (const char* c = g->text; *c; ++c) {
    if (ioctl(fd, TIOCSTI, c)) return errno;
  }
  return 0;
}
static int64_t Type(const struct Given* g) { return OnEach(TypeOne, g); }
static int64_t TypeAtTerminal(const struct Given* g) {
  const int fd = open("/dev/tty", O_RDWR);
  if (fd < 0) return errno;
  const int64_t error = TypeOne(fd, g);
  close(fd);
  return error;
}
static int64_t CopyOne(int fd, const struct Given* g) {
  char request[2] = {2 /* TIOCL_SETSEL */, 0};
  (void)g;
  return FAILURE(ioctl(fd, TIOCLINUX, request));
}
static int64_t Paste(const struct Given* g) { return OnEach(CopyOne, g); }
static int64_t TakeOne(int fd, const struct Given* g) { return (void)g, FAILURE(ioctl(fd, TIOCSCTTY, 0)); }
static int64_t TakeTerminal(const struct Given* g) { return OnEach(TakeOne, g); }
static int64_t LeaveOne(int fd, const struct Given* g) { return (void)g, FAILURE(ioctl(fd, TIOCNOTTY, 0)); }
static int64_t LeaveTerminal(const struct Given* g) { return OnEach(LeaveOne, g); }
static int64_t SizeOne(int fd, const struct Given* g) {
  struct winsize size;
  (void)g;
  return FAILURE(ioctl(fd, TIOCGWINSZ, &size));
}
static int64_t Size(const struct Given* g) { return OnEach(SizeOne, g); }
static int64_t ModesOne(int fd, const struct Given* g) {
  struct termios modes;
  (void)g;
  if (ioctl(fd, TCGETS, &modes)) return errno;
  return FAILURE(ioctl(fd, TCSETS, &modes));
}
static int64_t Modes(const struct Given* g) { return OnEach(ModesOne, g); }
static int64_t GroupOne(int fd, const struct Given* g) {
  int group = (int)g->number;
  return FAILURE(ioctl(fd, TIOCSPGRP, &group));
}
static int64_t ForegroundGroup(const struct Given* g) { return OnEach(GroupOne, g); }
/* Whether one of the descriptors is a terminal, by its device number: pseudo-terminals and consoles. */
static int64_t HasTerminal(const struct Given* g) {
  struct stat info;
  (void)g;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    if (fstat(fd, &info) || !S_ISCHR(info.st_mode)) continue;
    const unsigned major = (unsigned)(info.st_rdev >> 8) & 0xfff;
    if (major == 4 || major == 5 || (major >= 136 && major <= 143)) return 0;
  }
  return ENOTTY;
}
/* A controlling terminal, of which the kernel tells by number 7 of /proc/self/stat. */
static int64_t HasControllingTerminal(const struct Given* g) {
  char text[1024];
  int terminal = 0;
  (void)g;
  FILE* file = fopen("/proc/self/stat", "r");
  if (!file) return errno;
  const size_t n = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[n] = 0;
  const char* rest = strrchr(text, ')');
  if (!rest || sscanf(rest + 2, "%*c %*d %*d %*d %d", &terminal) != 1) return EINVAL;
  return terminal ? 0 : ENOTTY;
}
/* Text as it is to one of the standard streams. */
static int64_t Say(const struct Given* g) { return FAILURE(write((int)g->number, g->text, strlen(g->text))); }
static int64_t SayMuch(const struct Given* g) {
  char block[4096];
  memset(block, 'x', sizeof block);
  for (int64_t sent = 0; sent < g->other; sent += (int64_t)sizeof block) {
    if (write((int)g->number, block, sizeof block) < 0) return errno;
  }
  return 0;
}
static int64_t Listen(const struct Given* g) {
  char byte;
  const int flags = fcntl(0, F_GETFL);
  (void)g;
  fcntl(0, F_SETFL, flags | O_NONBLOCK);
  const ssize_t n = read(0, &byte, 1);
  const int64_t error = n < 0 ? errno : n == 0 ? ENODATA : 0;
  fcntl(0, F_SETFL, flags);
  return error;
}
/* Stops the parent where they share a description of stdin: it reads no more, or gets EAGAIN. */
static int64_t MakeNonBlocking(const struct Given* g) { return FAILURE(fcntl((int)g->number, F_SETFL, O_NONBLOCK)); }

const struct Attack kTerminalAttacks[] = {
    {"open terminal", OpenTerminal},
    {"type", Type},
    {"type at terminal", TypeAtTerminal},
    {"paste", Paste},
    {"take terminal", TakeTerminal},
    {"leave terminal", LeaveTerminal},
    {"terminal size", Size},
    {"terminal modes", Modes},
    {"foreground group", ForegroundGroup},
    {"has terminal", HasTerminal},
    {"has controlling terminal", HasControllingTerminal},
    {"say", Say},
    {"say much", SayMuch},
    {"read input", Listen},
    {"make non-blocking", MakeNonBlocking},
    {0, 0},
};
