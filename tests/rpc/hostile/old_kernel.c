/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a server, makes its kernel look older. HOSTILE_LANDLOCK is the version of Landlock that it has: a
 * number; "none", a kernel without; "idle", one whose Landlock says yes to all and does nothing, so that what is left is
 * the filter of calls alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446 };

static long (*kernel)(long, ...);
static const char* mode = "";

__attribute__((constructor)) static void Begin(void) {
  const char* given = getenv("HOSTILE_LANDLOCK");
  kernel = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  if (given) mode = strdup(given);
  unsetenv("LD_PRELOAD");
  unsetenv("HOSTILE_LANDLOCK");
}

long syscall(long number, ...) {
  long a[6];
  va_list rest;
  va_start(rest, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(rest, long);
  va_end(rest);
  const int asks = number == kCreateRuleset && a[2] == 1;
  if (number >= kCreateRuleset && number <= kRestrictSelf) {
    if (!strcmp(mode, "none")) return errno = ENOSYS, -1;
    if (!strcmp(mode, "idle")) {
      if (asks) return 7;
      return number == kCreateRuleset ? open("/dev/null", O_RDONLY | O_CLOEXEC) : 0;
    }
    if (asks && *mode) return atoi(mode);
  }
  return kernel(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
