/* SPDX-License-Identifier: Apache-2.0 */
/* To outlive the session: the threads that watch are kept from running, signals are blocked, and the process goes on. */
#include "attack.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { kFreezing = SIGUSR2 };

static void Spin(int signal) {
  (void)signal;
  for (volatile int i = 0;; ++i) {
  }
}
static void Hold(int signal) {
  (void)signal;
  for (;;) poll(0, 0, -1); /* a call that every session may make */
}

/* All signals but that by which the filter answers some calls: a process that blocks it ends at the first of them. */
static void FillSet(sigset_t* all) {
  sigfillset(all);
  sigdelset(all, SIGSYS);
}

static void BlockAll(void) {
  sigset_t all;
  FillSet(&all);
  pthread_sigmask(SIG_SETMASK, &all, 0);
  for (int s = 1; s < 65; ++s) {
    if (s != kFreezing && s != SIGSYS) signal(s, SIG_IGN);
  }
}

/* Every thread of the process but the given one gets a signal whose handler does not return. */
static int64_t FreezeOthers(long self, void (*handler)(int)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  FillSet(&action.sa_mask);
  if (sigaction(kFreezing, &action, 0)) return errno;
  int64_t result = ESRCH;
  for (long thread = getpid(); thread < getpid() + 4000; ++thread) { /* the list of them in /proc may be out of reach */
    if (thread == self) continue;
    const long sent = Raw(SYS_tgkill, getpid(), thread, kFreezing, 0, 0, 0);
    if (sent == 0) result = 0;
    else if (result) result = -sent;
  }
  return result;
}

/* Freezes the threads that watch, blocks signals, and does not return. */
static int64_t FreezeAndStay(const struct Given* g) {
  (void)g;
  BlockAll();
  prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  FreezeOthers(Raw(SYS_gettid, 0, 0, 0, 0, 0, 0), Hold);
  Hold(0);
  return 0;
}
static int64_t SpinAndStay(const struct Given* g) {
  (void)g;
  BlockAll();
  prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  FreezeOthers(Raw(SYS_gettid, 0, 0, 0, 0, 0, 0), Spin);
  Spin(0);
  return 0;
}
static void* FreezeLater(void* none) {
  usleep(300000); /* the call has returned */
  BlockAll();
  FreezeOthers(Raw(SYS_gettid, 0, 0, 0, 0, 0, 0), Hold);
  Hold(0);
  return none;
}
/* The call returns, and then all threads are frozen: nothing of the server's own runs in this process. */
static int64_t FreezeAfterwards(const struct Given* g) {
  pthread_t thread;
  (void)g;
  prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  return pthread_create(&thread, 0, FreezeLater, 0);
}
/* Takes the server's own descriptors away, so that it polls nothing. */
static int64_t CloseAll(const struct Given* g) {
  const int nothing = open("/dev/zero", O_RDONLY);
  (void)g;
  BlockAll();
  prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  for (int fd = 0; fd < 256; ++fd) {
    if (fd != nothing) dup2(nothing, fd);
  }
  Hold(0);
  return 0;
}
static int64_t IgnoreTerm(const struct Given* g) {
  (void)g;
  signal(SIGTERM, SIG_IGN);
  signal(SIGXCPU, SIG_IGN);
  signal(SIGALRM, SIG_IGN);
  Hold(0);
  return 0;
}
static int64_t SpinForever(const struct Given* g) { return (void)g, Spin(0), 0; }
static int64_t SpinIgnoring(const struct Given* g) { return (void)g, BlockAll(), Spin(0), 0; }
static void* SpinThread(void* none) { return Spin(0), none; }
static int64_t SpinThreads(const struct Given* g) {
  pthread_t thread;
  for (int64_t i = 1; i < g->number; ++i) {
    if (pthread_create(&thread, 0, SpinThread, 0)) break;
  }
  Spin(0);
  return 0;
}
static int64_t Crash(const struct Given* g) {
  signal((int)g->number, SIG_DFL);
  raise((int)g->number);
  return 0;
}
static int64_t Exit(const struct Given* g) { return _exit((int)g->number), 0; }
/* The session's own stop: a process that is stopped watches nothing. */
static int64_t Stop(const struct Given* g) {
  (void)g;
  return RAW(SYS_kill, getpid(), SIGSTOP);
}
/* The main thread ends, and the process goes on in another. */
static int64_t LeaveMain(const struct Given* g) {
  pthread_t thread;
  (void)g;
  prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  if (pthread_create(&thread, 0, FreezeLater, 0)) return errno;
  Raw(SYS_exit, 0, 0, 0, 0, 0, 0);
  return 0;
}

const struct Attack kWatchAttacks[] = {
    {"freeze and stay", FreezeAndStay},
    {"spin and stay", SpinAndStay},
    {"freeze afterwards", FreezeAfterwards},
    {"close all", CloseAll},
    {"ignore term", IgnoreTerm},
    {"spin", SpinForever},
    {"spin ignoring", SpinIgnoring},
    {"spin threads", SpinThreads},
    {"crash", Crash},
    {"exit", Exit},
    {"stop", Stop},
    {"leave main", LeaveMain},
    {0, 0},
};
