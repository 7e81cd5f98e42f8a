/* SPDX-License-Identifier: Apache-2.0 */
/* Memory by each way that there is. `number` MiB are taken and written to, and kept; 0 when all of them were. */
#include "attack.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

enum { kStep = 4 << 20 };

static int64_t TakeMapped(const struct Given* g, int flags, int fd) {
  for (int64_t taken = 0; taken < g->number << 20; taken += kStep) {
    char* at = mmap(0, kStep, PROT_READ | PROT_WRITE, flags, fd, fd < 0 ? 0 : taken);
    if (at == MAP_FAILED) return errno;
    memset(at, 1, kStep);
  }
  return 0;
}
static int64_t Private(const struct Given* g) { return TakeMapped(g, MAP_PRIVATE | MAP_ANONYMOUS, -1); }
static int64_t Shared(const struct Given* g) { return TakeMapped(g, MAP_SHARED | MAP_ANONYMOUS, -1); }
static int64_t Huge(const struct Given* g) { return TakeMapped(g, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1); }
static int64_t Locked(const struct Given* g) { return TakeMapped(g, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1); }
static int64_t Growing(const struct Given* g) {
  return TakeMapped(g, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1);
}
/* Copies of a file's pages: written to, they are the process's own. */
static int64_t PrivateFile(const struct Given* g) {
  for (int64_t taken = 0; taken < g->number << 20; taken += kStep) {
    const int fd = open("/proc/self/exe", O_RDONLY);
    if (fd < 0) return errno;
    char* at = mmap(0, kStep, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    close(fd);
    if (at == MAP_FAILED) return errno;
    /* Only what the file has can be written to: its first page, a mapping each. */
    *at = 1;
  }
  return 0;
}
static int64_t MemoryFile(const struct Given* g) {
  const int fd = memfd_create("x", 0);
  if (fd < 0) return errno;
  if (ftruncate(fd, g->number << 20)) return errno;
  return TakeMapped(g, MAP_SHARED, fd);
}
/* Files in memory, each smaller than the largest file of the session's. */
static int64_t MemoryFiles(const struct Given* g) {
  for (int64_t taken = 0; taken < g->number; taken += 8) {
    const int fd = memfd_create("x", 0);
    if (fd < 0) return errno;
    if (fallocate(fd, 0, 0, 8 << 20)) return errno;
  }
  return 0;
}
static int64_t SystemV(const struct Given* g) {
  const int id = shmget(IPC_PRIVATE, (size_t)g->number << 20, 0600);
  if (id < 0) return errno;
  char* at = shmat(id, 0, 0);
  const int64_t error = at == (void*)-1 ? errno : 0;
  if (!error) memset(at, 1, (size_t)g->number << 20);
  shmctl(id, IPC_RMID, 0);
  return error;
}
static void* Wait(void* stack) {
  volatile char* at = stack;
  (void)at;
  pause();
  return 0;
}
static void* FillStack(void* bytes) {
  volatile char here[7 << 20];
  for (size_t i = 0; i < sizeof here; i += 4096) here[i] = 1;
  return Wait(bytes);
}
static int64_t Stacks(const struct Given* g) {
  pthread_attr_t large;
  pthread_t thread;
  pthread_attr_init(&large);
  pthread_attr_setstacksize(&large, 8 << 20);
  for (int64_t taken = 0; taken < g->number; taken += 8) {
    const int error = pthread_create(&thread, &large, FillStack, 0);
    if (error) return error;
  }
  return 0;
}
/* Buffers of pipes are the kernel's memory. */
static int64_t Pipes(const struct Given* g) {
  static char block[1 << 16];
  for (int64_t taken = 0; taken < g->number << 20;) {
    int ends[2];
    if (pipe(ends)) return errno;
    if (fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) < 0) return errno;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    for (ssize_t n; (n = write(ends[1], block, sizeof block)) > 0;) taken += n;
  }
  return 0;
}
static int64_t PageTables(const struct Given* g) {
  const size_t span = (size_t)1 << 21;
  char* at = mmap(0, span * (size_t)g->number * 256, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return errno;
  madvise(at, span * (size_t)g->number * 256, MADV_NOHUGEPAGE);
  volatile char sum = 0;
  for (size_t i = 0; i < (size_t)g->number * 256; ++i) sum += at[i * span];
  return 0;
}
static int64_t Lock(const struct Given* g) {
  const size_t size = (size_t)g->number << 20;
  void* at = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return errno;
  const int64_t error = FAILURE(mlock(at, size));
  munmap(at, size);
  return error;
}
static int64_t LockAll(const struct Given* g) {
  (void)g;
  const int64_t error = FAILURE(mlockall(MCL_FUTURE));
  munlockall();
  return error;
}

const struct Attack kMemoryAttacks[] = {
    {"private memory", Private},
    {"shared memory", Shared},
    {"huge pages", Huge},
    {"locked memory", Locked},
    {"growing memory", Growing},
    {"private file", PrivateFile},
    {"memory file", MemoryFile},
    {"memory files", MemoryFiles},
    {"system v memory", SystemV},
    {"stacks", Stacks},
    {"pipes", Pipes},
    {"page tables", PageTables},
    {"mlock", Lock},
    {"mlockall", LockAll},
    {0, 0},
};
