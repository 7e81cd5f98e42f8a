/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What generated code may call, in plain C.
 *
 * Code that is linked into the process (the JIT) may call the functions by name. An artifact that is loaded with dlopen
 * need not link with the runtime: it defines and exports the variable
 *     const BatonBackendApi* baton_backend_api = 0;
 * and calls through it; the loader sets it before anything of the artifact runs.
 */
#ifndef BATON_RUNTIME_C_BACKEND_API_H_
#define BATON_RUNTIME_C_BACKEND_API_H_

#include <baton/runtime/c_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifndef BATON_DLL
#define BATON_DLL __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* One of `num_tasks` equal parts of a loop. Returns 0, or another value after BatonBackendSetError. */
typedef int (*BatonParallelTask)(int task_id, int num_tasks, void* closure);

/*
 * Runs fn(0, n, closure) ... fn(n - 1, n, closure), each exactly once, on the threads of the pool, and returns when all
 * have ended: 0, or the value of the lowest failed task, whose error then is this thread's pending one.
 * num_tasks = 0 means one task for each thread of the pool. The number of tasks never depends on load or nesting: what
 * cannot run in parallel (nested, or while another thread uses the pool) runs one after the other on this thread.
 */
BATON_DLL int BatonBackendParallelLaunch(BatonParallelTask fn, void* closure, int num_tasks);

/* Threads of the pool, the calling one included. */
BATON_DLL int BatonBackendNumThreads(void);

/* Stores the error of this thread; the message is copied. Returns -1, so that code can `return` the call. */
BATON_DLL int BatonBackendSetError(const char* message);

/* Memory for the time of a call, aligned to 64 bytes; null when there is none. */
BATON_DLL void* BatonBackendAlloc(uint64_t size);
BATON_DLL void BatonBackendFree(void* memory);

/*
 * The function that compiled code of `module` (what the loader put into its variable baton_module) calls by this name:
 * one of the modules it imports, else a registered one. *out is borrowed and stays as long as the module, so that the
 * code may keep it: it asks once for each place that calls. Returns 0, or another value with an error stored.
 */
BATON_DLL int BatonBackendGetFunction(void* module, const char* name, void** out);
/* Calls what BatonBackendGetFunction gave. */
BATON_DLL int BatonBackendCallFunction(void* function, const BatonValue* args, int num_args, BatonValue* ret);

/*
 * How a function of compiled code is called with tensors and numbers. The code exports for each function NAME a
 *     const BatonFunctionSpec baton_spec_NAME
 * and the runtime checks the arguments against it, fills two slots for each parameter and calls. Slots of a tensor:
 * address of the first element, address of the shape (int64_t). Of a number: its int64_t or double, and 1 if it was
 * given, 0 if it was left out. Of a pointer: itself, and 1. Behind them are two for the result, an int64_t or double.
 */
enum { kBatonParamTensor = 0, kBatonParamInt = 1, kBatonParamFloat = 2, kBatonParamPointer = 3 };
typedef struct {
  const char* name;
  uint8_t dtype_code, dtype_bits;
  uint16_t dtype_lanes;
  int32_t kind;         /* kBatonParam... */
  int32_t ndim;         /* of a tensor */
  const int64_t* shape; /* of a tensor; -1: any, the code checks it */
} BatonParamSpec;
typedef struct {
  int32_t version; /* kBatonFunctionSpecVersion */
  int32_t num_params;
  int32_t num_required; /* those behind are sizes, which may be left out: they are read from the tensors */
  int32_t result;       /* kBatonParamInt or kBatonParamFloat; 0: none */
  const char* name;
  const BatonParamSpec* params;
  int (*call)(void** slots);
} BatonFunctionSpec;
enum { kBatonFunctionSpecVersion = 1 };

/* The table for loaded artifacts. Entries are only ever added, at the end; `size` says how far it goes. */
typedef struct {
  uint32_t size;    /* sizeof(BatonBackendApi) of the runtime */
  uint32_t version; /* 1 */
  int (*parallel_launch)(BatonParallelTask fn, void* closure, int num_tasks);
  int (*num_threads)(void);
  int (*set_error)(const char* message);
  void* (*alloc)(uint64_t size);
  void (*free)(void* memory);
  int (*get_function)(void* module, const char* name, void** out);
  int (*call_function)(void* function, const BatonValue* args, int num_args, BatonValue* ret);
  /* Stores an IndexError; the message is made as printf does of a format with two numbers (%ld). Returns -1. */
  int (*set_index_error)(const char* format, int64_t index, int64_t extent);
} BatonBackendApi;

BATON_DLL const BatonBackendApi* BatonBackendGetApi(void);

#ifdef __cplusplus
}
#endif
#endif /* BATON_RUNTIME_C_BACKEND_API_H_ */
