// SPDX-License-Identifier: Apache-2.0
// CUDA devices of this machine, by the driver's numbers. Work is done in the order in which it is asked for.
#pragma once

#include <baton/runtime/device_api.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/cu_api.h"

namespace baton::cuda {

using runtime::Device;

/// One device with its primary context, which other libraries of the process share. Lives as long as the process.
class OneDevice {
 public:
  OneDevice(const Api* api, CUdevice id, int index) : api_(api), id_(id), index_(index) {}

  const Api& api() const { return *api_; }
  Device device() const { return {kDLCUDA, index_}; }
  /// "cuda(0) (name of the device)".
  std::string Name() const;
  std::string ModelName() const;
  /// 0 where the driver does not say.
  int64_t Number(Attribute what) const;
  /// 80 for compute capability 8.0.
  int64_t Capability() const;
  int64_t TotalMemory() const;

  /// Makes the device this thread's. Throws RuntimeError for a device that is lost, and in a child of a fork.
  void Enter();
  void* Alloc(size_t bytes);
  void Free(void* data) noexcept;
  void Write(const void* from, void* to, size_t bytes);
  void Read(const void* from, void* to, size_t bytes);
  void CopyWithin(const void* from, void* to, size_t bytes);
  void Sync();
  /// Says which kernel was launched last, for errors that the driver tells later.
  void Launched(const std::string& kernel);

  /// Throws the error of a driver's answer, if it has one. `doing`: "copying 16 bytes to".
  void Check(CUresult code, std::string_view doing);

 private:
  [[noreturn]] void ThrowOutOfMemory(CUresult code, std::string_view doing);
  const Api* api_;
  CUdevice id_;
  int index_;
  std::mutex mutex_;
  CUcontext context_ = nullptr;
  int process_ = 0;                 // that opened the context
  std::string last_kernel_, lost_;  // why the device is lost; "": it is not
};

/// All there are; empty without a driver, and then `*why` says what is missing and how to mend it.
const std::vector<std::unique_ptr<OneDevice>>& Devices(std::string* why = nullptr);
/// The device of a number; throws RuntimeError with what there is and how to get one.
OneDevice& DeviceOf(int index);
/// The version of CUDA that the driver has: 12020 for 12.2.
int32_t DriverVersion();

}  // namespace baton::cuda
