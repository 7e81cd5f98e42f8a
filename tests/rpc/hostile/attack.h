/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables of attacks share. */
#ifndef BATON_TESTS_RPC_HOSTILE_ATTACK_H_
#define BATON_TESTS_RPC_HOSTILE_ATTACK_H_

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>

/* What the test hands to an attack: a path or a text, another, and two numbers. */
struct Given {
  const char* text;
  const char* more;
  int64_t number, other;
};

/* 0 when the attack had its way, else errno. */
typedef int64_t (*AttackFunction)(const struct Given* given);

struct Attack {
  const char* name;
  AttackFunction run;
};

extern const struct Attack kFileAttacks[], kProcessAttacks[], kSelfAttacks[], kKernelAttacks[], kSharedAttacks[],
    kSocketAttacks[], kTerminalAttacks[], kMemoryAttacks[], kTakingAttacks[], kWatchAttacks[];

/* A system call without the C library, which a test may have wrapped: -errno or the result. */
long Raw(long number, long a, long b, long c, long d, long e, long f);

/* errno of a call of the C library that failed, else 0. */
#define FAILURE(call) ((call) < 0 ? (int64_t)errno : 0)
/* The same of a system call by its number, with up to six arguments. */
#define RAW6(n, a, b, c, d, e, f, ...) Raw(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define RAW(...) Refusal(RAW6(__VA_ARGS__, 0, 0, 0, 0, 0, 0))

static inline int64_t Refusal(long result) { return result < 0 && result > -4096 ? -result : 0; }

/* Whether a layer said no, be it that the attack was called wrongly. */
static inline int Said(int64_t error) { return error == EPERM || error == EACCES || error == ENOSYS; }

#endif
