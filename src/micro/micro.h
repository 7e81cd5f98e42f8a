/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server of remote sessions for machines without a system: C11, one arena, no threads, no files. A client of
 * baton.rpc talks to it as to any other server: values, arrays in its memory, registered functions, a compiled model
 * that is linked in, times taken here.
 *
 * Functions are written against <baton/runtime/c_runtime_api.h>; of that, this library has
 *     BatonAbiVersion, BatonObjectRetain, BatonObjectRelease, BatonObjectTypeIndex, BatonFuncCall, BatonStringCreate,
 *     BatonBytesCreate, BatonStringView, BatonArrayCreate, BatonArrayView, BatonTensorView, BatonErrorSet,
 *     BatonErrorKind, BatonErrorMessage
 * One session at a time, on one thread.
 */
#ifndef BATON_MICRO_MICRO_H_
#define BATON_MICRO_MICRO_H_

#include <baton/runtime/c_backend_api.h>
#include <baton/runtime/c_runtime_api.h>

/* Where bytes come from and go to. */
typedef struct {
  void* self;
  /* Reads 1 to `most` bytes, waiting for the first; 0 when the connection has ended. */
  size_t (*read)(void* self, void* to, size_t most);
  /* Writes all bytes; 0, or another value when the connection has ended. */
  int (*write)(void* self, const void* from, size_t size);
} BatonMicroWire;

/* A registered function: `remote.get_function(name)`. */
typedef struct {
  const char* name;
  BatonCFunc call;
  void* self;
} BatonMicroFunction;

/* An input or output of a model. */
typedef struct {
  const char* name;
  DLDataType dtype;
  int32_t ndim;
  const int64_t* shape;
} BatonMicroTensorInfo;

/* A compiled model with fixed shapes, as baton.rpc.micro writes it. */
typedef struct {
  int32_t (*entry)(void** io, const uint8_t* constants, uint8_t* workspace, const int64_t* sizes);
  const BatonBackendApi** api; /* the variable of its code */
  const uint8_t* constants;
  size_t workspace_bytes;
  int32_t num_inputs, num_outputs;
  const BatonMicroTensorInfo* tensors; /* inputs, then outputs */
} BatonMicroModel;

typedef struct {
  BatonMicroWire wire;
  void* arena; /* all memory that a session takes */
  size_t arena_bytes;
  const char* machine; /* what the server tells of itself */
  const BatonMicroFunction* functions;
  size_t num_functions;
  const BatonMicroModel* model;  /* what `remote.system_lib()` gives; null if there is none */
  uint64_t (*nanoseconds)(void); /* a clock, for time_evaluator; null if there is none */
} BatonMicroConfig;

/* Serves one session. 0 when the client ended it, 1 when the connection ended, 2 after bytes that are none of the
 * protocol. Memory of the session is free again. */
int BatonMicroServe(const BatonMicroConfig* config);

#endif /* BATON_MICRO_MICRO_H_ */
