/* SPDX-License-Identifier: Apache-2.0 */
/* The micro server on a Cortex-M4 as QEMU has it (mps2-an386): the session goes over the serial port. Ends by
 * semihosting. */
#include <string.h>

#include "micro.h"

extern uint32_t bss_begin[], bss_end[], stack_begin[], stack_end[];
extern const BatonMicroModel baton_micro_model;
extern const BatonMicroFunction baton_micro_functions[];
extern const size_t baton_micro_num_functions;

static volatile uint32_t* const kUart = (volatile uint32_t*)0x40004000; /* data, state, control, -, baud rate divider */
static volatile uint32_t* const kTimer =
    (volatile uint32_t*)0x40000000; /* control, value, reload: counts down at 25 MHz */

static size_t Read(void* self, void* to, size_t most) {
  uint8_t* at = to;
  size_t n = 0;
  (void)self;
  while (n < most && (n == 0 || (kUart[1] & 2))) {
    while (!(kUart[1] & 2)) {
    }
    at[n++] = (uint8_t)kUart[0];
  }
  return n;
}

static int Write(void* self, const void* from, size_t size) {
  const uint8_t* at = from;
  (void)self;
  for (; size; --size) {
    while (kUart[1] & 1) {
    }
    kUart[0] = *at++;
  }
  return 0;
}

static uint64_t Nanoseconds(void) { return (uint64_t)(UINT32_MAX - kTimer[1]) * 40; }

/* () -> bytes of stack that were used since the start. */
static int Stack(void* self, const BatonValue* args, int n, BatonValue* ret) {
  const uint32_t* at = stack_begin;
  (void)self, (void)args, (void)n;
  while (*at == 0xa5a5a5a5u) ++at;
  ret->type_code = kBatonInt;
  ret->v_int64 = (stack_end - at) * 4;
  return 0;
}

static void Exit(void) {
  register uint32_t op __asm__("r0") = 0x18, why __asm__("r1") = 0x20026;
  __asm__ volatile("bkpt 0xab" : : "r"(op), "r"(why) : "memory");
}

static void __attribute__((used, noreturn)) Main(void) {
  static uint8_t arena[256 << 10] __attribute__((section(".arena"), aligned(64)));
  static BatonMicroFunction functions[16];
  kUart[4] = 16;
  kUart[2] = 3;
  kTimer[2] = UINT32_MAX;
  kTimer[0] = 1;
  memcpy(functions, baton_micro_functions, baton_micro_num_functions * sizeof functions[0]);
  functions[baton_micro_num_functions] = (BatonMicroFunction){"micro.stack", Stack, NULL};
  const BatonMicroConfig config = {{NULL, Read, Write}, arena,      sizeof arena,
                                   "Cortex-M4",         functions,  baton_micro_num_functions + 1,
                                   &baton_micro_model,  Nanoseconds};
  BatonMicroServe(&config);
  for (;;) Exit();
}

void __attribute__((naked, used)) Reset(void) {
  __asm__ volatile(
      "ldr r0, =0xe000ed88\n ldr r1, [r0]\n orr r1, #0xf00000\n str r1, [r0]\n dsb\n isb\n" /* the floating-point unit
                                                                                             */
      "ldr r0, =bss_begin\n ldr r1, =bss_end\n movs r2, #0\n"
      "1: cmp r0, r1\n bhs 2f\n str r2, [r0], #4\n b 1b\n"
      "2: ldr r0, =stack_begin\n mov r1, sp\n ldr r2, =0xa5a5a5a5\n"
      "3: cmp r0, r1\n bhs 4f\n str r2, [r0], #4\n b 3b\n"
      "4: bl Main\n");
}

static void Fault(void) {
  for (;;) Exit();
}

const void* const vectors[16] __attribute__((section(".vectors"), used)) = {stack_end,    (void*)Reset, (void*)Fault,
                                                                            (void*)Fault, (void*)Fault, (void*)Fault};
