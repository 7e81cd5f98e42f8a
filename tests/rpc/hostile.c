/* SPDX-License-Identifier: Apache-2.0 */
/* What hostile code in a session would try, as functions: each gives errno, 0 if it had its way. Preloaded into the server by a test. */
#define _GNU_SOURCE
#include <baton/runtime/c_runtime_api.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t Try(const char* what, const char* path) {
  errno = 0;
  if (!strcmp(what, "read")) return open(path, O_RDONLY) < 0 ? errno : 0;
  if (!strcmp(what, "write")) return open(path, O_WRONLY | O_CREAT, 0600) < 0 ? errno : 0;
  if (!strcmp(what, "mkdir")) return mkdir(path, 0700) ? errno : 0;
  if (!strcmp(what, "remove")) return unlink(path) ? errno : 0;
  if (!strcmp(what, "link")) return symlink("/etc/passwd", path) ? errno : 0;
  if (!strcmp(what, "fork")) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    return child < 0 ? errno : 0;
  }
  if (!strcmp(what, "exec")) return execl(path, path, (char*)0), errno;
  if (!strcmp(what, "socket")) return socket(AF_INET, SOCK_STREAM, 0) < 0 ? errno : 0;
  if (!strcmp(what, "unix")) return socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? errno : 0;
  if (!strcmp(what, "ptrace")) return ptrace(PTRACE_ATTACH, getppid(), 0, 0) ? errno : 0;
  if (!strcmp(what, "kill")) return kill(getppid(), SIGKILL) ? errno : 0;
  if (!strcmp(what, "memory")) {
    return mmap(0, (size_t)8 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0;
  }
  if (!strcmp(what, "spin")) {
    for (volatile int i = 0;; ++i) {
    }
  }
  return -1;
}

static int Call(void* self, const BatonValue* args, int num_args, BatonValue* ret) {
  (void)self;
  const char* text[2] = {"", ""};
  size_t size;
  for (int i = 0; i < num_args && i < 2; ++i) {
    if (args[i].type_code == kBatonStr) text[i] = args[i].v_str;
    else if (BatonStringView(args[i].v_obj, &text[i], &size)) return -1;
  }
  ret->type_code = kBatonInt;
  ret->v_int64 = Try(text[0], text[1]);
  return 0;
}

__attribute__((constructor)) static void Register(void) {
  BatonObject* f;
  unsetenv("LD_PRELOAD");
  if (BatonFuncCreate(Call, 0, 0, &f) == 0) BatonFuncRegisterGlobal("hostile.try", f, 1);
}
