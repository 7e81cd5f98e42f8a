/* SPDX-License-Identifier: Apache-2.0 */
/* Disk, files, descriptors, threads and processor. `text` is the session's folder, `number` how much is taken; 0 when all
 * of it was. */
#include "attack.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char block[1 << 20];

static int Made(const struct Given* g, int64_t i) {
  char path[4200];
  snprintf(path, sizeof path, "%s/file-%lld", g->text, (long long)i);
  return open(path, O_RDWR | O_CREAT, 0600);
}
static int64_t Filled(int fd) {
  memset(block, 1, sizeof block);
  const ssize_t n = write(fd, block, sizeof block);
  return n < 0 ? errno : n != sizeof block ? ENOSPC : 0;
}
/* `number` MiB, each in a file. */
static int64_t ManyFiles(const struct Given* g) {
  for (int64_t i = 0; i < g->number; ++i) {
    const int fd = Made(g, i);
    if (fd < 0) return errno;
    const int64_t error = Filled(fd);
    close(fd);
    if (error) return error;
  }
  return 0;
}
static int64_t OneFile(const struct Given* g) {
  const int fd = Made(g, 0);
  if (fd < 0) return errno;
  int64_t error = 0;
  for (int64_t i = 0; i < g->number && !error; ++i) error = Filled(fd);
  close(fd);
  return error;
}
/* Files without a name, which a look at the folder does not find. */
static int64_t UnlinkedFiles(const struct Given* g) {
  char path[4200];
  for (int64_t i = 0; i < g->number; i += 8) {
    const int fd = Made(g, i);
    if (fd < 0) return errno;
    snprintf(path, sizeof path, "%s/file-%lld", g->text, (long long)i);
    unlink(path);
    for (int n = 0; n < 8; ++n) {
      const int64_t error = Filled(fd);
      if (error) return error;
    }
  }
  return 0;
}
/* The same, held by mappings alone. */
static int64_t MappedFiles(const struct Given* g) {
  char path[4200];
  for (int64_t i = 0; i < g->number; i += 8) {
    const int fd = Made(g, i);
    if (fd < 0) return errno;
    snprintf(path, sizeof path, "%s/file-%lld", g->text, (long long)i);
    unlink(path);
    if (ftruncate(fd, 8 << 20)) return errno;
    char* at = mmap(0, 8 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED) return errno;
    memset(at, 1, 8 << 20);
  }
  return 0;
}
static int64_t TemporaryFiles(const struct Given* g) {
  for (int64_t i = 0; i < g->number; i += 8) {
    const int fd = open(g->text, O_TMPFILE | O_RDWR, 0600);
    if (fd < 0) return errno;
    for (int n = 0; n < 8; ++n) {
      const int64_t error = Filled(fd);
      if (error) return error;
    }
  }
  return 0;
}
static int64_t Allocated(const struct Given* g) {
  for (int64_t i = 0; i < g->number; i += 8) {
    const int fd = Made(g, i);
    if (fd < 0) return errno;
    const int64_t error = FAILURE(fallocate(fd, 0, 0, 8 << 20));
    close(fd);
    if (error) return error;
  }
  return 0;
}
/* Bytes behind the end, which the size of the file does not tell of. */
static int64_t AllocatedBehind(const struct Given* g) {
  for (int64_t i = 0; i < g->number; i += 8) {
    const int fd = Made(g, i);
    if (fd < 0) return errno;
    const int64_t error = FAILURE(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 8 << 20));
    close(fd);
    if (error) return error;
  }
  return 0;
}
static int64_t SparseFile(const struct Given* g) {
  const int fd = Made(g, 0);
  if (fd < 0) return errno;
  const int64_t error = FAILURE(ftruncate(fd, g->number << 20));
  close(fd);
  return error;
}
static int64_t Inodes(const struct Given* g) {
  for (int64_t i = 0; i < g->number; ++i) {
    const int fd = Made(g, i);
    if (fd < 0) return errno;
    close(fd);
  }
  return 0;
}
static int64_t Symlinks(const struct Given* g) {
  char path[4200];
  for (int64_t i = 0; i < g->number; ++i) {
    snprintf(path, sizeof path, "%s/link-%lld", g->text, (long long)i);
    if (symlink("x", path)) return errno;
  }
  return 0;
}
static int64_t HardLinks(const struct Given* g) {
  char first[4200], path[4200];
  const int fd = Made(g, 0);
  if (fd < 0) return errno;
  close(fd);
  snprintf(first, sizeof first, "%s/file-0", g->text);
  for (int64_t i = 0; i < g->number; ++i) {
    snprintf(path, sizeof path, "%s/hard-%lld", g->text, (long long)i);
    if (link(first, path)) return errno;
  }
  return 0;
}
/* Folders in one another, deeper than a path can say. */
static int64_t DeepFolders(const struct Given* g) {
  int at = open(g->text, O_RDONLY | O_DIRECTORY);
  if (at < 0) return errno;
  int64_t error = 0;
  for (int64_t i = 0; i < g->number && !error; ++i) {
    error = FAILURE(mkdirat(at, "deep", 0700));
    if (error) break;
    const int next = openat(at, "deep", O_RDONLY | O_DIRECTORY);
    if (next < 0) error = errno;
    close(at);
    at = next;
  }
  if (at >= 0) close(at);
  return error;
}
/* A folder that its owner cannot look into is to be removed all the same. */
static int64_t ClosedFolder(const struct Given* g) {
  char path[4200];
  snprintf(path, sizeof path, "%s/closed", g->text);
  if (mkdir(path, 0700)) return errno;
  snprintf(path, sizeof path, "%s/closed/file", g->text);
  const int fd = open(path, O_WRONLY | O_CREAT, 0600);
  if (fd < 0) return errno;
  close(fd);
  snprintf(path, sizeof path, "%s/closed", g->text);
  chmod(path, 0);
  return 0;
}
/* Names that a terminal or a shell takes for something else. */
static int64_t OddNames(const struct Given* g) {
  static const char* const kNames[] = {"\n", "\033[2J", "-rf", "* *", "$(touch x)", "\377\376", " "};
  char path[4200];
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) {
    snprintf(path, sizeof path, "%s/%s", g->text, kNames[i]);
    const int fd = open(path, O_WRONLY | O_CREAT, 0600);
    if (fd < 0) return errno;
    close(fd);
  }
  return 0;
}
static int64_t Descriptors(const struct Given* g) {
  for (int64_t i = 0; i < g->number; ++i) {
    if (open("/dev/null", O_RDONLY) < 0) return errno;
  }
  return 0;
}
static int64_t DescriptorsAtOnce(const struct Given* g) { return FAILURE(dup2(2, (int)g->number)); }

static void* Sleep(void* none) {
  for (;;) pause();
  return none;
}
static int64_t Threads(const struct Given* g) {
  pthread_attr_t small;
  pthread_t thread;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 16 << 10);
  for (int64_t i = 0; i < g->number; ++i) {
    const int error = pthread_create(&thread, &small, Sleep, 0);
    if (error) return error;
  }
  return 0;
}
static int64_t Timers(const struct Given* g) {
  for (int64_t i = 0; i < g->number; ++i) {
    int timer;
    const int64_t error = RAW(SYS_timer_create, CLOCK_MONOTONIC, 0, &timer);
    if (error) return error;
  }
  return 0;
}
static int64_t Locks(const struct Given* g) {
  const int fd = Made(g, 0);
  if (fd < 0) return errno;
  for (int64_t i = 0; i < g->number; ++i) {
    const struct flock one = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 2 * i, .l_len = 1};
    if (fcntl(fd, F_SETLK, &one)) return errno;
  }
  return 0;
}

const struct Attack kTakingAttacks[] = {
    {"many files", ManyFiles},
    {"one file", OneFile},
    {"unlinked files", UnlinkedFiles},
    {"mapped files", MappedFiles},
    {"temporary files", TemporaryFiles},
    {"allocated files", Allocated},
    {"allocated behind the end", AllocatedBehind},
    {"sparse file", SparseFile},
    {"inodes", Inodes},
    {"symlinks", Symlinks},
    {"hard links", HardLinks},
    {"deep folders", DeepFolders},
    {"closed folder", ClosedFolder},
    {"odd names", OddNames},
    {"descriptors", Descriptors},
    {"descriptor number", DescriptorsAtOnce},
    {"threads", Threads},
    {"timers", Timers},
    {"locks", Locks},
    {0, 0},
};
