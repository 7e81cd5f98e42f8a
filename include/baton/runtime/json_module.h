/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An accelerator as a plug-in in plain C: a shared library that exports
 *
 *     const BatonJsonPlugin* baton_json_plugin(void);
 *
 * `baton.runtime.load_plugin(path)` loads it. Regions of a model that are for `key` (relay.ext.KEY) then reach it as
 * graphs in Relay's JSON schema. `init` makes code of a graph, `run` runs it, `free` drops it: where the model is
 * compiled, and, with the same graph, where a saved model is loaded by the runtime alone. Only graph and constants are
 * saved, so what `init` makes need not be movable.
 *
 * The library needs this header and no library of Baton's. C99 or later, or C++.
 */
#ifndef BATON_RUNTIME_JSON_MODULE_H_
#define BATON_RUNTIME_JSON_MODULE_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An output of a node. */
typedef struct {
  int32_t node, output;
} BatonJsonEntry;

/* An attribute: "strides" with the values "1" and "1"; a number outside a list has one value. */
typedef struct {
  const char* key;
  int32_t num_values;
  const char* const* values;
} BatonJsonAttr;

/* A tensor that a node gives. */
typedef struct {
  DLDataType dtype;
  int32_t ndim;
  const int64_t* shape;
} BatonJsonTensor;

enum { kBatonJsonInput = 0, kBatonJsonConst = 1, kBatonJsonKernel = 2 };
typedef struct {
  int32_t kind;     /* kBatonJson... */
  const char* name; /* of a kernel: the operator, as "nn.conv2d", or the name of a composite, as "chip.conv2d_relu" */
  int32_t num_inputs;
  const BatonJsonEntry* inputs;
  int32_t num_outputs;
  const BatonJsonTensor* outputs;
  int32_t num_attrs;
  const BatonJsonAttr* attrs;
  const DLTensor* constant; /* of a kBatonJsonConst: dense, on the CPU, as long as the graph */
} BatonJsonNode;

/* A region: nodes in an order in which each is behind its inputs. It stays until `free` has returned. */
typedef struct {
  uint32_t size;      /* sizeof(BatonJsonGraph) of the runtime; members are only added, at the end */
  const char* symbol; /* of the region, unique in its model */
  const char* json;   /* the same graph as text */
  int32_t num_nodes;
  const BatonJsonNode* nodes;
  int32_t num_inputs;
  const int32_t* inputs; /* nodes whose values are the first arguments of `run` */
  int32_t num_results;
  const BatonJsonEntry* results; /* whose values are the arguments behind them */
} BatonJsonGraph;

enum { kBatonJsonPluginVersion = 1 };
typedef struct {
  uint32_t size;    /* sizeof(BatonJsonPlugin) of the plug-in */
  uint32_t version; /* kBatonJsonPluginVersion */
  const char* key;  /* "chip": letters, digits and `_` */
  /*
   * Makes what `run` needs of a graph. Returns 0; or another value, and puts a text into *error that says what is wrong
   * and stays until the next call in this thread. `free` is not called then.
   */
  int (*init)(const BatonJsonGraph* graph, void** state, const char** error);
  /*
   * Reads the arguments and writes the results: dense tensors on the CPU of the graph's dtypes and shapes, in memory
   * that does not overlap. One call of a state at a time, from any thread. Returns as `init` does.
   */
  int (*run)(void* state, DLTensor* const* args, int32_t num_args, const char** error);
  void (*free)(void* state);
  /*
   * Whether a call of this operator goes to the accelerator; null: all that the program annotates. `node` has the
   * operator's attributes, and the tensors that it takes and gives are those of `inputs` and of the node.
   */
  int (*takes)(const BatonJsonNode* node, const BatonJsonTensor* inputs, int32_t num_inputs);
} BatonJsonPlugin;

/* ---- For plug-ins: how to read a graph ------------------------------------------------------------------------- */

/* The values of an attribute; null, and 0 in *num_values, where the node has none of that name. */
static inline const char* const* BatonJsonAttrOf(const BatonJsonNode* node, const char* key, int32_t* num_values) {
  int32_t i;
  for (i = 0; i < node->num_attrs; ++i) {
    if (strcmp(node->attrs[i].key, key) == 0) {
      *num_values = node->attrs[i].num_values;
      return node->attrs[i].values;
    }
  }
  *num_values = 0;
  return NULL;
}

/* Number of a tensor's elements. */
static inline int64_t BatonJsonCount(const BatonJsonTensor* t) {
  int64_t n = 1;
  int32_t i;
  for (i = 0; i < t->ndim; ++i) n *= t->shape[i];
  return n;
}

/* The elements of a dense tensor. */
static inline void* BatonJsonData(const DLTensor* t) { return (char*)t->data + t->byte_offset; }

#ifdef __cplusplus
}
#endif
#endif /* BATON_RUNTIME_JSON_MODULE_H_ */
