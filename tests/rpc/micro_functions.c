/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for tests of the micro server, written against the C interface alone. */
#include <string.h>

#include "micro.h"

static int Echo(void* self, const BatonValue* args, int n, BatonValue* ret) {
  (void)self;
  if (n != 1) return BatonErrorSet("TypeError", "echo takes one value"), -1;
  *ret = args[0];
  if (ret->type_code == kBatonObject) BatonObjectRetain(ret->v_obj);
  return 0;
}

static int Add(void* self, const BatonValue* args, int n, BatonValue* ret) {
  (void)self;
  if (n != 2 || args[0].type_code != kBatonInt || args[1].type_code != kBatonInt)
    return BatonErrorSet("TypeError", "add takes two ints"), -1;
  ret->type_code = kBatonInt;
  ret->v_int64 = args[0].v_int64 + args[1].v_int64;
  return 0;
}

/* Calls a function of the client's. */
static int Apply(void* self, const BatonValue* args, int n, BatonValue* ret) {
  (void)self;
  return n < 1 || args[0].type_code != kBatonObject ? (BatonErrorSet("TypeError", "apply takes a function"), -1)
                                                    : BatonFuncCall(args[0].v_obj, args + 1, n - 1, ret);
}

static int FailWith(void* self, const BatonValue* args, int n, BatonValue* ret) {
  const char *kind, *text;
  size_t size;
  (void)self, (void)ret;
  if (n != 2 || args[0].type_code != kBatonObject || args[1].type_code != kBatonObject) return -1;
  if (BatonStringView(args[0].v_obj, &kind, &size) || BatonStringView(args[1].v_obj, &text, &size)) return -1;
  BatonErrorSet(kind, text);
  return -1;
}

/* The sum of a tensor of float32. */
static int Sum(void* self, const BatonValue* args, int n, BatonValue* ret) {
  DLTensor* t;
  (void)self;
  if (n != 1 || args[0].type_code != kBatonObject || BatonTensorView(args[0].v_obj, &t))
    return BatonErrorSet("TypeError", "sum takes a tensor"), -1;
  int64_t count = 1;
  for (int i = 0; i < t->ndim; ++i) count *= t->shape[i];
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += ((const float*)t->data)[i];
  ret->type_code = kBatonFloat;
  ret->v_float64 = sum;
  return 0;
}

const BatonMicroFunction baton_micro_functions[] = {{"test.echo", Echo, NULL},
                                                    {"test.add", Add, NULL},
                                                    {"test.apply", Apply, NULL},
                                                    {"test.fail", FailWith, NULL},
                                                    {"test.sum", Sum, NULL}};
const size_t baton_micro_num_functions = sizeof baton_micro_functions / sizeof baton_micro_functions[0];
