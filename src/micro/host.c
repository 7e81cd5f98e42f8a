/* SPDX-License-Identifier: Apache-2.0 */
/* A program that serves one session on standard input and output: for `exec:`, PopenSession, and for trying functions
 * on this machine before a microcontroller has them. It is linked with what it serves: a model (model.c of
 * baton.rpc.micro), functions, or neither. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "micro.h"

#ifndef BATON_MICRO_ARENA
#define BATON_MICRO_ARENA (8 << 20)
#endif

extern const BatonMicroModel baton_micro_model __attribute__((weak));
extern const BatonMicroFunction baton_micro_functions[] __attribute__((weak));
extern const size_t baton_micro_num_functions __attribute__((weak));

static int out; /* not 1: functions that print must not print into the protocol */

static size_t Read(void* self, void* to, size_t most) {
  (void)self;
  ssize_t n;
  do n = read(0, to, most);
  while (n < 0 && errno == EINTR);
  return n > 0 ? (size_t)n : 0;
}

static int Write(void* self, const void* from, size_t size) {
  (void)self;
  const char* at = from;
  while (size) {
    ssize_t n = write(out, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 1;
    at += n;
    size -= (size_t)n;
  }
  return 0;
}

static uint64_t Nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(void) {
  static _Alignas(64) uint8_t arena[BATON_MICRO_ARENA];
  out = dup(1);
  dup2(2, 1);
  const BatonMicroConfig config = {
      .wire = {NULL, Read, Write},
      .arena = arena,
      .arena_bytes = sizeof arena,
      .machine = "micro",
      .functions = &baton_micro_num_functions ? baton_micro_functions : NULL,
      .num_functions = &baton_micro_num_functions ? baton_micro_num_functions : 0,
      .model = &baton_micro_model,
      .nanoseconds = Nanoseconds,
  };
  return BatonMicroServe(&config);
}
