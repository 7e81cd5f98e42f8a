/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up accelerator as a plug-in in C99: additions, products and relus of float32 of one shape, one instruction
 * each.
 *
 *     cc -std=c99 -O2 -fPIC -shared $(python -m baton.config --cflags) plugin.c -o libtiny.so
 */
#include <baton/runtime/json_module.h>
#include <stdlib.h>

struct instruction {
  char what; /* '+', '*' or 'r' */
  int32_t inputs[2];
};

struct program {
  const BatonJsonGraph* graph;
  struct instruction* code; /* of each node */
  float** values;           /* of each node */
};

static char instruction_of(const BatonJsonNode* node) {
  if (strcmp(node->name, "add") == 0) return '+';
  if (strcmp(node->name, "multiply") == 0) return '*';
  if (strcmp(node->name, "nn.relu") == 0) return 'r';
  return 0;
}

static int same_floats(const BatonJsonTensor* a, const BatonJsonTensor* b) {
  int32_t d;
  if (a->dtype.code != kDLFloat || a->dtype.bits != 32 || a->dtype.lanes != 1 || a->ndim != b->ndim) return 0;
  for (d = 0; d < a->ndim; ++d) {
    if (a->shape[d] != b->shape[d]) return 0;
  }
  return b->dtype.code == kDLFloat && b->dtype.bits == 32 && b->dtype.lanes == 1;
}

static int takes(const BatonJsonNode* node, const BatonJsonTensor* inputs, int32_t num_inputs) {
  int32_t i;
  if (!instruction_of(node)) return 0;
  for (i = 0; i < num_inputs; ++i) {
    if (!same_floats(&inputs[i], &node->outputs[0])) return 0;
  }
  return 1;
}

static void drop(void* state) {
  struct program* p = state;
  int32_t i;
  if (!p) return;
  for (i = 0; p->values && i < p->graph->num_nodes; ++i) {
    if (p->graph->nodes[i].kind == kBatonJsonKernel) free(p->values[i]);
  }
  free(p->values);
  free(p->code);
  free(p);
}

static int init(const BatonJsonGraph* graph, void** state, const char** error) {
  struct program* p = calloc(1, sizeof *p);
  int32_t i, k;
  *error = "no memory";
  if (!p) return 1;
  p->graph = graph;
  p->code = calloc((size_t)graph->num_nodes + 1, sizeof *p->code);
  p->values = calloc((size_t)graph->num_nodes + 1, sizeof *p->values);
  if (!p->code || !p->values) goto failed;
  for (i = 0; i < graph->num_nodes; ++i) {
    const BatonJsonNode* node = &graph->nodes[i];
    if (node->kind == kBatonJsonConst) p->values[i] = BatonJsonData(node->constant);
    if (node->kind != kBatonJsonKernel) continue;
    *error = "the chip has no instruction for an operator of the graph";
    p->code[i].what = instruction_of(node);
    if (!p->code[i].what || node->num_inputs < 1 || node->num_inputs > 2) goto failed;
    for (k = 0; k < node->num_inputs; ++k) p->code[i].inputs[k] = node->inputs[k].node;
    *error = "no memory";
    p->values[i] = malloc((size_t)BatonJsonCount(node->outputs) * sizeof(float) + 1);
    if (!p->values[i]) goto failed;
  }
  *state = p;
  return 0;
failed:
  drop(p);
  return 1;
}

static int run(void* state, DLTensor* const* args, int32_t num_args, const char** error) {
  struct program* p = state;
  const BatonJsonGraph* g = p->graph;
  int32_t i;
  (void)error;
  for (i = 0; i < g->num_inputs; ++i) p->values[g->inputs[i]] = BatonJsonData(args[i]);
  for (i = 0; i < g->num_nodes; ++i) {
    const struct instruction* c = &p->code[i];
    const float *a = p->values[c->inputs[0]], *b = p->values[c->inputs[1]];
    const int64_t n = BatonJsonCount(g->nodes[i].outputs);
    int64_t k;
    for (k = 0; c->what && k < n; ++k) {
      p->values[i][k] = c->what == '+' ? a[k] + b[k] : c->what == '*' ? a[k] * b[k] : a[k] > 0 ? a[k] : 0;
    }
  }
  for (i = g->num_inputs; i < num_args; ++i) {
    const BatonJsonEntry* result = &g->results[i - g->num_inputs];
    const size_t bytes = (size_t)BatonJsonCount(g->nodes[result->node].outputs) * sizeof(float);
    memcpy(BatonJsonData(args[i]), p->values[result->node], bytes);
  }
  return 0;
}

const BatonJsonPlugin* baton_json_plugin(void) {
  static const BatonJsonPlugin plugin = {sizeof(BatonJsonPlugin), kBatonJsonPluginVersion, "tiny", init, run, drop, takes};
  return &plugin;
}
