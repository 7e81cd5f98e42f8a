/* SPDX-License-Identifier: Apache-2.0 */
/* A program that serves one session on standard input and output, or with --serial [KEY, 64 hexadecimal digits] one
 * after the other on the line that they are: for `exec:`, PopenSession, and for trying functions on this machine before
 * a microcontroller has them. It is linked with what it serves: a model (model.c of baton.rpc.micro), functions, or
 * neither. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "serial.h"

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

static void Random(uint8_t* to, size_t size) {
  if (getentropy(to, size) != 0) abort();
}

static int ServeLine(BatonMicroConfig config, const char* hex) {
  static uint8_t key[32];
  BatonMicroSerial serial = {.line = config.wire, .random = Random};
  for (size_t i = 0; hex && i < sizeof key; ++i) {
    if (sscanf(hex + 2 * i, "%2hhx", &key[i]) != 1)
      return fprintf(stderr, "micro: a key has 64 hexadecimal digits\n"), 2;
    serial.key = key;
  }
  while (BatonMicroSerialAccept(&serial, &config.wire)) BatonMicroServe(&config);
  return 0;
}

int main(int argc, char** argv) {
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
  if (argc > 1 && strcmp(argv[1], "--serial") == 0) return ServeLine(config, argc > 2 ? argv[2] : NULL);
  return BatonMicroServe(&config);
}
