// SPDX-License-Identifier: Apache-2.0
// Functions that Debian 12's headers and archives name and glibc 2.28 does not have. Linked, hidden, into each library of a
// portable build (portable.cmake).
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

// 0: a process of one thread is not assumed, reference counts are atomic always.
HIDDEN char __libc_single_threaded = 0;

// LLVM takes a seed for names of temporary files from it.
HIDDEN uint32_t arc4random(void) {
  uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) value = (uint32_t)(uintptr_t)&value;
  return value;
}

// LLVM prints it in statistics, which Baton does not ask for.
struct mallinfo2 {
  size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
HIDDEN struct mallinfo2 mallinfo2(void) {
  struct mallinfo2 none = {0};
  return none;
}

// Of glibc 2.30.
HIDDEN pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

// The time of the wall clock when `clock` will show `until`.
static struct timespec on_wall_clock(clockid_t clock, const struct timespec* until) {
  if (clock == CLOCK_REALTIME) return *until;
  const long kSecond = 1000000000;
  struct timespec now, wall;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  wall.tv_sec += until->tv_sec - now.tv_sec;
  wall.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (wall.tv_nsec >= kSecond) {
    wall.tv_nsec -= kSecond;
    wall.tv_sec += 1;
  } else if (wall.tv_nsec < 0) {
    wall.tv_nsec += kSecond;
    wall.tv_sec -= 1;
  }
  return wall;
}

// Of glibc 2.30; std::condition_variable and std::timed_mutex wait by them until a time of their steady clock. The
// functions that there are know the wall clock; callers look at their clock again afterwards, so a wall clock that is
// set meanwhile only wakes them early.
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  const struct timespec wall = on_wall_clock(clock, until);
  return pthread_cond_timedwait(condition, mutex, &wall);
}
HIDDEN int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  const struct timespec wall = on_wall_clock(clock, until);
  return pthread_mutex_timedlock(mutex, &wall);
}
