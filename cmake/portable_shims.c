// SPDX-License-Identifier: Apache-2.0
// Functions that Debian 12's headers and archives name and glibc 2.28 does not have. Linked, hidden, into each library of a
// portable build (portable.cmake).
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>

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
