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

/* The table for loaded artifacts. Entries are only ever added, at the end; `size` says how far it goes. */
typedef struct {
  uint32_t size;    /* sizeof(BatonBackendApi) of the runtime */
  uint32_t version; /* 1 */
  int (*parallel_launch)(BatonParallelTask fn, void* closure, int num_tasks);
  int (*num_threads)(void);
  int (*set_error)(const char* message);
  void* (*alloc)(uint64_t size);
  void (*free)(void* memory);
} BatonBackendApi;

BATON_DLL const BatonBackendApi* BatonBackendGetApi(void);

#ifdef __cplusplus
}
#endif
#endif /* BATON_RUNTIME_C_BACKEND_API_H_ */
