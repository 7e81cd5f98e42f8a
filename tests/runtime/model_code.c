/* SPDX-License-Identifier: Apache-2.0 */
/* What the code generator makes of a small model: out[i] = x[i] * weight[i] + y[i] for 8 floats, in parallel; a negative
 * x[0] is refused by an error, so that tests see one cross. */
#include <baton/runtime/c_backend_api.h>

BATON_DLL const BatonBackendApi* baton_backend_api = 0;

typedef struct {
  const float *x, *y, *weight;
  float* out;
} Closure;

static int Part(int task, int num_tasks, void* p) {
  const Closure* c = (const Closure*)p;
  for (int i = task * 8 / num_tasks; i < (task + 1) * 8 / num_tasks; ++i) c->out[i] = c->x[i] * c->weight[i] + c->y[i];
  return 0;
}

BATON_DLL int32_t baton_entry(void** io, const uint8_t* constants, uint8_t* arena) {
  Closure c = {(const float*)io[0], (const float*)io[1], (const float*)constants, (float*)io[2]};
  if (c.x[0] < 0) return baton_backend_api->set_error("x[0] is negative");
  for (int i = 0; i < 64; ++i) arena[i] = 0xff; /* all of it is ours */
  return baton_backend_api->parallel_launch(Part, &c, 0);
}
