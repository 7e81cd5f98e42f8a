/* SPDX-License-Identifier: Apache-2.0 */
/* The process itself: what it would change to be rid of its limits and of those that watch it, and secrets in its own
 * memory. */
#include "attack.h"

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

extern char** environ;

static int64_t Prctl(const struct Given* g) { return FAILURE(prctl((int)g->number, (unsigned long)g->other, 0, 0, 0)); }
static int64_t SetName(const struct Given* g) { return FAILURE(prctl(PR_SET_NAME, g->text)); }
static int64_t SetMemoryMap(const struct Given* g) {
  (void)g;
  return FAILURE(prctl(PR_SET_MM, PR_SET_MM_ARG_START, (unsigned long)&environ, 0, 0));
}
/* A filter that lets all through: adding it would show that filters can be added. */
static int64_t AddFilter(const struct Given* g) {
  struct sock_filter all = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  const struct sock_fprog program = {1, &all};
  return RAW(SYS_seccomp, SECCOMP_SET_MODE_FILTER, g->number, &program);
}
static int64_t AddFilterByPrctl(const struct Given* g) {
  (void)g;
  struct sock_filter all = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  const struct sock_fprog program = {1, &all};
  return FAILURE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}
static int64_t AskFilter(const struct Given* g) {
  uint32_t action = SECCOMP_RET_USER_NOTIF;
  (void)g;
  return RAW(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);
}
static int64_t MakeLandlock(const struct Given* g) {
  (void)g;
  const uint64_t files = 4;
  const long fd = Raw(444, (long)&files, sizeof files, 0, 0, 0, 0);
  return fd < 0 ? -fd : (close((int)fd), 0);
}
static int64_t EnterLandlock(const struct Given* g) { return (void)g, RAW(446, -1, 0); }

static int64_t SetCapabilities(const struct Given* g) {
  struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2] = {{0}};
  (void)g;
  const int64_t error = RAW(SYS_capget, &head, data);
  return error ? error : RAW(SYS_capset, &head, data);
}
/* All that a process could have: 0 while it has any of them. */
static int64_t HasCapabilities(const struct Given* g) {
  (void)g;
  unsigned long long any = 0, one;
  char line[256], name[32];
  FILE* status = fopen("/proc/self/status", "r");
  if (!status) return errno;
  while (fgets(line, sizeof line, status)) {
    if (sscanf(line, "%31s %llx", name, &one) == 2 && (!strcmp(name, "CapPrm:") || !strcmp(name, "CapEff:") ||
                                                       !strcmp(name, "CapInh:") || !strcmp(name, "CapAmb:"))) {
      any |= one;
    }
  }
  fclose(status);
  return any ? 0 : EPERM;
}
/* Whether programs could gain rights. */
static int64_t GainsRights(const struct Given* g) { return (void)g, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? EPERM : 0; }
static int64_t SetUser(const struct Given* g) { return RAW(SYS_setuid, g->number); }
static int64_t SetGroupId(const struct Given* g) { return RAW(SYS_setgid, g->number); }
static int64_t SetUsers(const struct Given* g) { return RAW(SYS_setresuid, g->number, g->number, g->number); }
static int64_t SetFsUser(const struct Given* g) { return RAW(SYS_setfsuid, g->number) ; }
static int64_t SetGroups(const struct Given* g) { return (void)g, RAW(SYS_setgroups, 0, 0); }
static int64_t NewSession(const struct Given* g) { return (void)g, FAILURE(setsid()); }
static int64_t Personality(const struct Given* g) { return FAILURE(personality((unsigned long)g->number)); }

static int64_t RaiseLimit(const struct Given* g) {
  struct rlimit limit;
  if (getrlimit((int)g->number, &limit)) return errno;
  limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
  if (g->number == RLIMIT_NOFILE) limit.rlim_cur = limit.rlim_max = 65536;
  return FAILURE(setrlimit((int)g->number, &limit));
}
static int64_t HighPriority(const struct Given* g) { return (void)g, FAILURE(setpriority(PRIO_PROCESS, 0, -10)); }
static int64_t RealTime(const struct Given* g) {
  const struct sched_param one = {1}, none = {0};
  (void)g;
  const int64_t error = FAILURE(sched_setscheduler(0, SCHED_RR, &one));
  if (!error) sched_setscheduler(0, SCHED_OTHER, &none);
  return error;
}
static int64_t IoRealTime(const struct Given* g) { return (void)g, RAW(SYS_ioprio_set, 1, 0, 1 << 13 /* real time */); }
static int64_t OomScore(const struct Given* g) {
  (void)g;
  FILE* file = fopen("/proc/self/oom_score_adj", "w");
  if (!file) return errno;
  const int failed = fputs("-1000", file) < 0;
  return fclose(file) || failed ? errno : 0;
}
/* Files of the process itself that change it. */
static int64_t WriteOwnFile(const struct Given* g) {
  char path[96];
  snprintf(path, sizeof path, "/proc/self/%s", g->text);
  FILE* file = fopen(path, "w");
  if (!file) return errno;
  fclose(file);
  return 0;
}

/* ---- Secrets in its own memory ---- */

static int64_t Environment(const struct Given* g) { return getenv(g->text) ? 0 : ENOENT; }
static int64_t AnyEnvironment(const struct Given* g) { return (void)g, environ && *environ ? 0 : ENOENT; }

static int Holds(const char* from, size_t size, const char* hidden, size_t length) {
  for (size_t i = 0; i + length <= size; ++i) {
    size_t n = 0;
    while (n < length && from[i + n] == (char)(hidden[n] ^ 1)) ++n;
    if (n == length) return 1;
  }
  return 0;
}
/* The kernel's file of what the process began with. `text` is the secret with each bit 0 turned, so that it is no copy. */
static int64_t EnvironmentFile(const struct Given* g) {
  static char text[1 << 16];
  FILE* file = fopen(g->more, "r");
  if (!file) return errno;
  const size_t size = fread(text, 1, sizeof text, file);
  fclose(file);
  return Holds(text, size, g->text, strlen(g->text)) ? 0 : ENOENT;
}
/* All that the process can read of itself, or with `more` the mappings of that name ("[stack]"). */
static int64_t SearchMemory(const struct Given* g) {
  char line[4400], rights[8], name[4200];
  FILE* maps = fopen("/proc/self/maps", "r");
  if (!maps) return errno;
  int64_t result = ENOENT;
  while (result && fgets(line, sizeof line, maps)) {
    unsigned long begin, end;
    name[0] = 0;
    if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %4199s", &begin, &end, rights, name) < 3) continue;
    if (rights[0] != 'r' || !strcmp(name, "[vvar]") || !strcmp(name, "[vsyscall]") || !strncmp(name, "[vvar", 5)) continue;
    if (*g->more && strcmp(name, g->more)) continue;
    if (end - begin > (64ul << 20)) continue;
    if (Holds((const char*)begin, end - begin, g->text, strlen(g->text))) result = 0;
  }
  fclose(maps);
  return result;
}
/* Memory that other processes see, but for the page of the session's pulse. */
static int64_t SharedMappings(const struct Given* g) {
  char line[4400], rights[8];
  unsigned long from = 0, to = 0, bytes = 0;
  (void)g;
  FILE* maps = fopen("/proc/self/maps", "r");
  if (!maps) return errno;
  while (fgets(line, sizeof line, maps)) {
    if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && rights[1] == 'w' && rights[3] == 's') bytes += to - from;
  }
  fclose(maps);
  return bytes > 4096 ? 0 : ENOENT;
}

const struct Attack kSelfAttacks[] = {
    {"prctl", Prctl},
    {"set name", SetName},
    {"set memory map", SetMemoryMap},
    {"add filter", AddFilter},
    {"add filter by prctl", AddFilterByPrctl},
    {"ask filter", AskFilter},
    {"make landlock", MakeLandlock},
    {"enter landlock", EnterLandlock},
    {"capset", SetCapabilities},
    {"has capabilities", HasCapabilities},
    {"gains rights", GainsRights},
    {"setuid", SetUser},
    {"setgid", SetGroupId},
    {"setresuid", SetUsers},
    {"setfsuid", SetFsUser},
    {"setgroups", SetGroups},
    {"setsid", NewSession},
    {"personality", Personality},
    {"raise limit", RaiseLimit},
    {"high priority", HighPriority},
    {"real time", RealTime},
    {"io real time", IoRealTime},
    {"oom score", OomScore},
    {"write own file", WriteOwnFile},
    {"environment", Environment},
    {"any environment", AnyEnvironment},
    {"environment file", EnvironmentFile},
    {"search memory", SearchMemory},
    {"shared mappings", SharedMappings},
    {0, 0},
};
