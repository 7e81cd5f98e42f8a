// SPDX-License-Identifier: Apache-2.0
// The part of the CUDA driver's API that is used, found in the system's libcuda when it is first asked for. Names and
// values are those of NVIDIA's documentation; declared here so that neither headers nor the library are needed to
// build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace baton::cuda {

using CUresult = int32_t;
using CUdevice = int32_t;
using CUdeviceptr = uint64_t;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;

constexpr CUresult kSuccess = 0, kOutOfMemory = 2, kNoDevice = 100, kNoBinaryForGpu = 209, kInvalidPtx = 218,
                   kUnsupportedPtxVersion = 222, kOutOfLaunchResources = 701, kDriverMismatch = 803;
enum Attribute : int32_t {
  kMaxThreadsPerBlock = 1,
  kMaxBlockDimX = 2,
  kMaxSharedMemoryPerBlock = 8,
  kWarpSize = 10,
  kMaxRegistersPerBlock = 12,
  kClockRate = 13,
  kMultiprocessorCount = 16,
  kL2CacheSize = 38,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
};
enum JitOption : int32_t { kJitErrorLog = 5, kJitErrorLogBytes = 6 };

// Name here, name in the library, parameters. All return a CUresult.
#define BATON_CUDA_FUNCTIONS(X)                                                                       \
  X(cuInit, "cuInit", (uint32_t))                                                                     \
  X(cuDriverGetVersion, "cuDriverGetVersion", (int32_t*))                                             \
  X(cuGetErrorName, "cuGetErrorName", (CUresult, const char**))                                       \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int32_t*))                                                 \
  X(cuDeviceGet, "cuDeviceGet", (CUdevice*, int32_t))                                                 \
  X(cuDeviceGetName, "cuDeviceGetName", (char*, int32_t, CUdevice))                                   \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int32_t*, Attribute, CUdevice))                    \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t*, CUdevice))                                     \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext*, CUdevice))                     \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", (CUcontext))                                                  \
  X(cuCtxSynchronize, "cuCtxSynchronize", ())                                                         \
  X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t*, size_t*))                                              \
  X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr*, size_t))                                              \
  X(cuMemFree, "cuMemFree_v2", (CUdeviceptr))                                                         \
  X(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (CUdeviceptr, const void*, size_t))                              \
  X(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void*, CUdeviceptr, size_t))                                    \
  X(cuMemcpyDtoD, "cuMemcpyDtoD_v2", (CUdeviceptr, CUdeviceptr, size_t))                              \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx", (CUmodule*, const void*, uint32_t, JitOption*, void**)) \
  X(cuModuleUnload, "cuModuleUnload", (CUmodule))                                                     \
  X(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction*, CUmodule, const char*))                 \
  X(cuLaunchKernel, "cuLaunchKernel",                                                                 \
    (CUfunction, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, CUstream, void**, void**))

struct Api {
#define BATON_CUDA_MEMBER(Name, Symbol, Params) CUresult(*Name) Params = nullptr;
  BATON_CUDA_FUNCTIONS(BATON_CUDA_MEMBER)
#undef BATON_CUDA_MEMBER

  /// The functions of the system's driver, or of the library that the environment variable BATON_CUDA_LIBRARY names.
  /// Null where there is none, and then `*why` says what was tried.
  static const Api* Find(std::string* why);
  /// "CUDA_ERROR_OUT_OF_MEMORY", or the number of one that the driver has no name for.
  std::string ErrorName(CUresult code) const;
};

}  // namespace baton::cuda
