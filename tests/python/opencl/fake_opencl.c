// SPDX-License-Identifier: Apache-2.0
// A stand-in for the system's OpenCL library: memory is the host's, kernels do nothing, and what goes wrong is told by
// environment variables: FAKE_DEVICES (how many there are), FAKE_GONE_AFTER (commands until the device does not answer),
// FAKE_EXTENSIONS, FAKE_BUILD_LOG (the compiler refuses programs and says this), FAKE_MEMORY (bytes of the device, which
// all buffers share), FAKE_LEAK (released buffers keep their share).
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
#define API __attribute__((visibility("default")))

static long number(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text ? atol(text) : otherwise;
}
static cl_int command(void) {
  static long count = 0;
  return ++count > number("FAKE_GONE_AFTER", 1L << 30) ? -2 : 0;  // CL_DEVICE_NOT_AVAILABLE
}
static cl_int answer(const void* value, size_t bytes, size_t room, void* out, size_t* size) {
  if (size) *size = bytes;
  if (out) memcpy(out, value, bytes < room ? bytes : room);
  return 0;
}
static char objects[64];

API cl_int clGetPlatformIDs(cl_uint n, void** out, cl_uint* count) {
  if (count) *count = 1;
  if (out && n) out[0] = objects;
  return 0;
}
API cl_int clGetDeviceIDs(void* p, uint64_t type, cl_uint n, void** out, cl_uint* count) {
  (void)p, (void)type;
  const long there = number("FAKE_DEVICES", 1);
  if (there == 0) return -1;
  if (count) *count = (cl_uint)there;
  for (cl_uint i = 0; out && i < n; ++i) out[i] = objects + 1 + i;
  return 0;
}
API cl_int clGetDeviceInfo(void* d, cl_uint what, size_t room, void* out, size_t* size) {
  (void)d;
  const char* text = what == 0x102B   ? "stand-in"
                     : what == 0x102F ? "OpenCL 1.2 stand-in"
                     : what == 0x1030 ? (getenv("FAKE_EXTENSIONS") ? getenv("FAKE_EXTENSIONS") : "cl_khr_fp64")
                                      : "";
  if (what >= 0x102B) return answer(text, strlen(text) + 1, room, out, size);
  uint64_t value = what == 0x1010 || what == 0x101F ? (uint64_t)number("FAKE_MEMORY", 1L << 30) : 1;
  return answer(&value, room < 8 ? room : 8, room, out, size);
}
API void* clCreateContext(const intptr_t* p, cl_uint n, void* const* d, void* f, void* u, cl_int* code) {
  (void)p, (void)n, (void)d, (void)f, (void)u;
  *code = command();
  return *code ? NULL : objects + 20;
}
API void* clCreateCommandQueue(void* c, void* d, uint64_t p, cl_int* code) {
  (void)c, (void)d, (void)p;
  *code = 0;
  return objects + 21;
}
static size_t in_use = 0;  // bytes of all buffers
enum { kHeader = 64 };      // before each buffer: its size
API void* clCreateBuffer(void* c, uint64_t f, size_t bytes, void* h, cl_int* code) {
  (void)c, (void)f, (void)h;
  char* m = in_use + bytes > (size_t)number("FAKE_MEMORY", 1L << 30) ? NULL : malloc(kHeader + bytes);
  *code = m ? 0 : -4;  // CL_MEM_OBJECT_ALLOCATION_FAILURE
  if (!m) return NULL;
  in_use += bytes;
  memcpy(m, &bytes, sizeof bytes);
  return m + kHeader;
}
API cl_int clReleaseMemObject(void* m) {
  size_t bytes;
  memcpy(&bytes, (char*)m - kHeader, sizeof bytes);
  const char* leak = getenv("FAKE_LEAK");
  if (!leak || !*leak) in_use -= bytes;
  free((char*)m - kHeader);
  return 0;
}
API cl_int clEnqueueReadBuffer(void* q, char* m, cl_uint b, size_t at, size_t bytes, void* to, cl_uint n, void* e, void* v) {
  (void)q, (void)b, (void)n, (void)e, (void)v;
  cl_int code = command();
  if (!code) memcpy(to, m + at, bytes);
  return code;
}
API cl_int clEnqueueWriteBuffer(void* q, char* m, cl_uint b, size_t at, size_t bytes, const void* from, cl_uint n, void* e,
                                void* v) {
  (void)q, (void)b, (void)n, (void)e, (void)v;
  cl_int code = command();
  if (!code) memcpy(m + at, from, bytes);
  return code;
}
API cl_int clEnqueueCopyBuffer(void* q, char* a, char* b, size_t i, size_t j, size_t bytes, cl_uint n, void* e, void* v) {
  (void)q, (void)n, (void)e, (void)v;
  cl_int code = command();
  if (!code) memcpy(b + j, a + i, bytes);
  return code;
}
API cl_int clFlush(void* q) { return q ? 0 : -36; }
API cl_int clFinish(void* q) { return q ? command() : -36; }
API void* clCreateProgramWithSource(void* c, cl_uint n, const char** s, const size_t* z, cl_int* code) {
  (void)c, (void)n, (void)s, (void)z;
  *code = 0;
  return objects + 30;
}
API cl_int clBuildProgram(void* p, cl_uint n, void* const* d, const char* o, void* f, void* u) {
  (void)p, (void)n, (void)d, (void)o, (void)f, (void)u;
  return getenv("FAKE_BUILD_LOG") ? -11 : 0;
}
API cl_int clGetProgramBuildInfo(void* p, void* d, cl_uint what, size_t room, void* out, size_t* size) {
  (void)p, (void)d, (void)what;
  const char* log = getenv("FAKE_BUILD_LOG");
  return answer(log, strlen(log) + 1, room, out, size);
}
API cl_int clReleaseProgram(void* p) { return p ? 0 : -44; }
API void* clCreateKernel(void* p, const char* name, cl_int* code) {
  (void)p, (void)name;
  *code = 0;
  return objects + 31;
}
API cl_int clReleaseKernel(void* k) { return k ? 0 : -48; }
API cl_int clSetKernelArg(void* k, cl_uint i, size_t bytes, const void* value) {
  (void)k, (void)i;
  return bytes && value ? 0 : -51;
}
API cl_int clEnqueueNDRangeKernel(void* q, void* k, cl_uint dims, const size_t* o, const size_t* g, const size_t* l, cl_uint n,
                                  void* e, void* v) {
  (void)q, (void)k, (void)dims, (void)o, (void)n, (void)e, (void)v;
  return *g % *l ? -54 : command();
}
