// SPDX-License-Identifier: Apache-2.0
// The part of the OpenCL 1.2 API that is used, found in the system's libOpenCL when it is first asked for. Names and
// values are those of the Khronos specification; declared here so that neither headers nor the library are needed to
// build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace baton::opencl {

using cl_int = int32_t;
using cl_uint = uint32_t;
using cl_ulong = uint64_t;
using cl_bool = cl_uint;
using cl_bitfield = cl_ulong;
using cl_platform_id = struct _cl_platform_id*;
using cl_device_id = struct _cl_device_id*;
using cl_context = struct _cl_context*;
using cl_command_queue = struct _cl_command_queue*;
using cl_mem = struct _cl_mem*;
using cl_program = struct _cl_program*;
using cl_kernel = struct _cl_kernel*;
using cl_event = struct _cl_event*;

constexpr cl_int kSuccess = 0, kDeviceNotFound = -1, kDeviceNotAvailable = -2, kMemObjectAllocationFailure = -4,
                 kOutOfResources = -5, kOutOfHostMemory = -6, kBuildProgramFailure = -11, kInvalidDevice = -33,
                 kInvalidContext = -34, kInvalidCommandQueue = -36, kInvalidWorkGroupSize = -54,
                 kInvalidBufferSize = -61, kPlatformNotFoundKhr = -1001;
constexpr cl_bitfield kDeviceTypeAll = 0xFFFFFFFF, kDeviceTypeCpu = 1 << 1, kDeviceTypeGpu = 1 << 2,
                      kDeviceTypeAccelerator = 1 << 3, kMemReadWrite = 1 << 0;
enum Info : cl_uint {
  kDeviceType = 0x1000,
  kDeviceMaxComputeUnits = 0x1002,
  kDeviceMaxWorkGroupSize = 0x1004,
  kDeviceMaxWorkItemSizes = 0x1005,
  kDeviceMaxClockFrequency = 0x100C,
  kDeviceMaxMemAllocSize = 0x1010,
  kDeviceSingleFpConfig = 0x101B,
  kDeviceGlobalMemCacheSize = 0x101E,
  kDeviceGlobalMemSize = 0x101F,
  kDeviceLocalMemSize = 0x1023,
  kDeviceName = 0x102B,
  kDeviceVendor = 0x102C,
  kDriverVersion = 0x102D,
  kDeviceVersion = 0x102F,
  kDeviceExtensions = 0x1030,
  kDeviceOpenCLCVersion = 0x103D,
  kProgramBuildLog = 0x1183,
  kKernelPreferredWorkGroupSizeMultiple = 0x11B3,
};
constexpr cl_bitfield kFpDenorm = 1 << 0, kFpCorrectlyRoundedDivideSqrt = 1 << 7;

// Name, result, parameters.
#define BATON_OPENCL_FUNCTIONS(X)                                                                                 \
  X(clGetPlatformIDs, cl_int, (cl_uint, cl_platform_id*, cl_uint*))                                               \
  X(clGetDeviceIDs, cl_int, (cl_platform_id, cl_bitfield, cl_uint, cl_device_id*, cl_uint*))                      \
  X(clGetDeviceInfo, cl_int, (cl_device_id, cl_uint, size_t, void*, size_t*))                                     \
  X(clCreateContext, cl_context,                                                                                  \
    (const intptr_t*, cl_uint, const cl_device_id*, void (*)(const char*, const void*, size_t, void*), void*,     \
     cl_int*))                                                                                                    \
  X(clCreateCommandQueue, cl_command_queue, (cl_context, cl_device_id, cl_bitfield, cl_int*))                     \
  X(clCreateBuffer, cl_mem, (cl_context, cl_bitfield, size_t, void*, cl_int*))                                    \
  X(clReleaseMemObject, cl_int, (cl_mem))                                                                         \
  X(clEnqueueReadBuffer, cl_int,                                                                                  \
    (cl_command_queue, cl_mem, cl_bool, size_t, size_t, void*, cl_uint, const cl_event*, cl_event*))              \
  X(clEnqueueWriteBuffer, cl_int,                                                                                 \
    (cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void*, cl_uint, const cl_event*, cl_event*))        \
  X(clEnqueueCopyBuffer, cl_int,                                                                                  \
    (cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_event*, cl_event*))              \
  X(clFlush, cl_int, (cl_command_queue))                                                                          \
  X(clFinish, cl_int, (cl_command_queue))                                                                         \
  X(clCreateProgramWithSource, cl_program, (cl_context, cl_uint, const char**, const size_t*, cl_int*))           \
  X(clBuildProgram, cl_int,                                                                                       \
    (cl_program, cl_uint, const cl_device_id*, const char*, void (*)(cl_program, void*), void*))                  \
  X(clGetProgramBuildInfo, cl_int, (cl_program, cl_device_id, cl_uint, size_t, void*, size_t*))                   \
  X(clReleaseProgram, cl_int, (cl_program))                                                                       \
  X(clCreateKernel, cl_kernel, (cl_program, const char*, cl_int*))                                                \
  X(clReleaseKernel, cl_int, (cl_kernel))                                                                         \
  X(clSetKernelArg, cl_int, (cl_kernel, cl_uint, size_t, const void*))                                            \
  X(clEnqueueNDRangeKernel, cl_int,                                                                               \
    (cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*, const size_t*, cl_uint, const cl_event*, \
     cl_event*))

struct Api {
#define BATON_OPENCL_MEMBER(Name, Result, Params) Result(*Name) Params = nullptr;
  BATON_OPENCL_FUNCTIONS(BATON_OPENCL_MEMBER)
#undef BATON_OPENCL_MEMBER

  /// The functions of the system's library, or of the one that the environment variable BATON_OPENCL_LIBRARY names.
  /// Null where there is none, and then `*why` says what was tried.
  static const Api* Find(std::string* why);
};

/// "CL_DEVICE_NOT_AVAILABLE", or the number of one without a name here.
std::string ErrorName(cl_int code);

}  // namespace baton::opencl
