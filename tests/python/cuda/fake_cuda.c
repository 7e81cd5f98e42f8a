// SPDX-License-Identifier: Apache-2.0
// A stand-in for the CUDA driver: memory is the host's, and a launch calls a function that the test gives, which runs
// the kernel's PTX. Environment variables say what goes wrong: FAKE_FAIL ("cuMemAlloc_v2:2:700": the second call of
// this function fails with this code), FAKE_DEVICES, FAKE_CAPABILITY (80), FAKE_VERSION (of CUDA, 12020), FAKE_MEMORY
// (bytes), FAKE_LOG (a file to which the names of calls are written).
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
typedef void (*Runner)(const char* ptx, const char* kernel, const uint32_t* grid, const uint32_t* block, void** args);

static Runner runner;
API void fake_cuda_run_with(Runner r) { runner = r; }

static long number(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text ? atol(text) : otherwise;
}
/// The answer of a call: 0, or the code of the failure that the test asks for. An illegal access stays.
static int32_t answer(const char* call) {
  static long counted = 0;
  static int32_t stays = 0;
  const char* log = getenv("FAKE_LOG");
  if (log) {
    FILE* f = fopen(log, "a");
    if (f) fprintf(f, "%s\n", call), fclose(f);
  }
  if (stays) return stays;
  const char* fail = getenv("FAKE_FAIL");
  const size_t length = strlen(call);
  if (!fail || strncmp(fail, call, length) || fail[length] != ':') return 0;
  char* end;
  const long at = strtol(fail + length + 1, &end, 10);
  const int32_t code = (int32_t)atol(end + 1);
  if (++counted != at) return 0;
  if (code >= 700 && code < 800 && code != 701) stays = code;
  return code;
}
#define ANSWER(call)                   \
  do {                                 \
    const int32_t code = answer(call); \
    if (code) return code;             \
  } while (0)

struct Module {
  char* text;
};
struct Function {
  struct Module* module;
  char name[256];
};
enum { kMost = 1 << 16 };
static struct {
  uint64_t at;
  size_t bytes;
} buffers[kMost];
static size_t in_use = 0, ends = 0;
static long modules = 0;

API size_t fake_cuda_in_use(void) { return in_use; }
API long fake_cuda_modules(void) { return modules; }

/// The buffer that an address is in; 1 where there is none.
API int fake_cuda_find(uint64_t p, uint64_t* base, size_t* bytes) {
  for (size_t slot = 0; slot < ends; ++slot) {
    if (!buffers[slot].at || p < buffers[slot].at || p >= buffers[slot].at + buffers[slot].bytes + 1) continue;
    *base = buffers[slot].at, *bytes = buffers[slot].bytes;
    return 0;
  }
  return 1;
}

API int32_t cuInit(uint32_t flags) {
  ANSWER("cuInit");
  return flags ? 1 : 0;
}
API int32_t cuDriverGetVersion(int32_t* out) {
  ANSWER("cuDriverGetVersion");
  *out = (int32_t)number("FAKE_VERSION", 12020);
  return 0;
}
API int32_t cuGetErrorName(int32_t code, const char** out) {
  static const struct {
    int32_t code;
    const char* name;
  } names[] = {{2, "CUDA_ERROR_OUT_OF_MEMORY"},
               {100, "CUDA_ERROR_NO_DEVICE"},
               {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
               {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
               {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
               {999, "CUDA_ERROR_UNKNOWN"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    if (names[i].code == code) return *out = names[i].name, 0;
  }
  return 1;
}
API int32_t cuDeviceGetCount(int32_t* out) {
  ANSWER("cuDeviceGetCount");
  *out = (int32_t)number("FAKE_DEVICES", 1);
  return 0;
}
API int32_t cuDeviceGet(int32_t* out, int32_t i) {
  ANSWER("cuDeviceGet");
  *out = i;
  return 0;
}
API int32_t cuDeviceGetName(char* out, int32_t room, int32_t d) {
  ANSWER("cuDeviceGetName");
  (void)d;
  snprintf(out, (size_t)room, "stand-in");
  return 0;
}
API int32_t cuDeviceGetAttribute(int32_t* out, int32_t what, int32_t d) {
  ANSWER("cuDeviceGetAttribute");
  (void)d;
  const long capability = number("FAKE_CAPABILITY", 80);
  *out = what == 75 ? (int32_t)(capability / 10) : what == 76 ? (int32_t)(capability % 10) : what == 10 ? 32 : 1024;
  return 0;
}
API int32_t cuDeviceTotalMem_v2(size_t* out, int32_t d) {
  ANSWER("cuDeviceTotalMem_v2");
  (void)d;
  *out = (size_t)number("FAKE_MEMORY", 1L << 30);
  return 0;
}
API int32_t cuDevicePrimaryCtxRetain(void** out, int32_t d) {
  ANSWER("cuDevicePrimaryCtxRetain");
  static char contexts[64];
  *out = contexts + d;
  return 0;
}
API int32_t cuCtxSetCurrent(void* c) {
  ANSWER("cuCtxSetCurrent");
  return c ? 0 : 201;
}
API int32_t cuCtxSynchronize(void) {
  ANSWER("cuCtxSynchronize");
  return 0;
}
API int32_t cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  ANSWER("cuMemGetInfo_v2");
  *total = (size_t)number("FAKE_MEMORY", 1L << 30);
  *free_bytes = *total - in_use;
  return 0;
}
API int32_t cuMemAlloc_v2(uint64_t* out, size_t bytes) {
  ANSWER("cuMemAlloc_v2");
  if (bytes > (size_t)number("FAKE_MEMORY", 1L << 30) - in_use) return 2;
  char* m = aligned_alloc(256, (bytes + 511) / 256 * 256);
  size_t slot = 0;
  while (slot < ends && buffers[slot].at) ++slot;
  if (!m || slot == kMost) return 2;
  if (slot == ends) ++ends;
  memset(m, 0xff, bytes);
  buffers[slot].at = (uint64_t)(uintptr_t)m;
  buffers[slot].bytes = bytes;
  in_use += bytes;
  *out = buffers[slot].at;
  return 0;
}
API int32_t cuMemFree_v2(uint64_t p) {
  ANSWER("cuMemFree_v2");
  for (size_t slot = 0; slot < ends; ++slot) {
    if (buffers[slot].at != p) continue;
    in_use -= buffers[slot].bytes;
    buffers[slot].at = 0;
    free((void*)(uintptr_t)p);
    return 0;
  }
  return 1;
}
API int32_t cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  ANSWER("cuMemcpyHtoD_v2");
  memcpy((void*)(uintptr_t)to, from, bytes);
  return 0;
}
API int32_t cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  ANSWER("cuMemcpyDtoH_v2");
  memcpy(to, (const void*)(uintptr_t)from, bytes);
  return 0;
}
API int32_t cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) {
  ANSWER("cuMemcpyDtoD_v2");
  memcpy((void*)(uintptr_t)to, (const void*)(uintptr_t)from, bytes);
  return 0;
}
API int32_t cuModuleLoadDataEx(void** out, const void* text, uint32_t n, int32_t* options, void** values) {
  const int32_t code = answer("cuModuleLoadDataEx");
  if (code == 218) {
    for (uint32_t i = 0; i < n; ++i) {
      if (options[i] == 5) strcpy(values[i], "ptxas application ptx input, line 7; fatal: stand-in");
    }
  }
  if (code) return code;
  struct Module* m = malloc(sizeof *m);
  m->text = strdup(text);
  ++modules;
  *out = m;
  return 0;
}
API int32_t cuModuleUnload(void* m) {
  ANSWER("cuModuleUnload");
  --modules;  // its functions may be asked for their text still
  return m ? 0 : 1;
}
API int32_t cuModuleGetFunction(void** out, void* m, const char* name) {
  ANSWER("cuModuleGetFunction");
  struct Function* f = malloc(sizeof *f);
  f->module = m;
  snprintf(f->name, sizeof f->name, "%s", name);
  *out = f;
  return 0;
}
API int32_t cuLaunchKernel(void* function, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz,
                           uint32_t shared, void* stream, void** args, void** extra) {
  (void)shared, (void)stream, (void)extra;
  ANSWER("cuLaunchKernel");
  const struct Function* f = function;
  const uint32_t grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  if (runner) runner(f->module->text, f->name, grid, block, args);
  return 0;
}
