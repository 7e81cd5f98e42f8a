/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the attacks a function of the session's, `hostile.try`: (name, text, text, number, number) -> what came out. */
#include <baton/runtime/c_runtime_api.h>
#include <string.h>

#include "attack.h"

static const struct Attack* const kTables[] = {kFileAttacks,   kProcessAttacks,  kSelfAttacks,   kKernelAttacks, kSharedAttacks,
                                               kSocketAttacks, kTerminalAttacks, kMemoryAttacks, kTakingAttacks, kWatchAttacks};

long Raw(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  long result = number;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#else
#error "the attacks are written for x86_64 and aarch64"
#endif
}

static int Text(const BatonValue* value, const char** text) {
  size_t size;
  if (value->type_code == kBatonStr) return *text = value->v_str, 0;
  return BatonStringView(value->v_obj, text, &size);
}

static int Call(void* self, const BatonValue* args, int num_args, BatonValue* ret) {
  (void)self;
  const char* name;
  struct Given given = {"", "", 0, 0};
  if (num_args != 5 || Text(&args[0], &name) || Text(&args[1], &given.text) || Text(&args[2], &given.more)) return -1;
  given.number = args[3].v_int64;
  given.other = args[4].v_int64;
  ret->type_code = kBatonInt;
  ret->v_int64 = -1; /* no attack of this name */
  for (size_t t = 0; t < sizeof kTables / sizeof *kTables; ++t) {
    for (const struct Attack* a = kTables[t]; a->name; ++a) {
      if (strcmp(a->name, name)) continue;
      errno = 0;
      ret->v_int64 = a->run(&given);
    }
  }
  return 0;
}

__attribute__((constructor)) static void Register(void) {
  BatonObject* f;
  if (BatonFuncCreate(Call, 0, 0, &f) == 0) BatonFuncRegisterGlobal("hostile.try", f, 1);
}
