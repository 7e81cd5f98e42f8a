// SPDX-License-Identifier: Apache-2.0
// OpenCL devices of this machine, in the order of the platforms and of each platform's devices. Memory has addresses:
// an inaccessible address range stands for each buffer, so that places in it are found by plain arithmetic on pointers,
// as views and planned storage need it, and a host that reads such a place faults instead of reading something else.
#pragma once

#include <baton/runtime/device_api.h>

#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "opencl/cl_api.h"

namespace baton::opencl {

using runtime::Device;

/// A place in a buffer.
struct BufferPlace {
  cl_mem buffer = nullptr;
  size_t offset = 0;
};

/// One device with what everything on it shares. Lives as long as the process.
class OneDevice {
 public:
  OneDevice(const Api* api, cl_device_id id, int index) : api_(api), id_(id), index_(index) {}

  const Api& api() const { return *api_; }
  cl_device_id id() const { return id_; }
  Device device() const { return {kDLOpenCL, index_}; }
  /// "opencl(0) (name of the device)".
  std::string Name() const;
  std::string Text(Info what) const;
  template <class T>
  T Number(Info what) const {
    T value{};
    api_->clGetDeviceInfo(id_, what, sizeof(value), &value, nullptr);
    return value;
  }
  bool HasExtension(std::string_view name) const;

  /// Made when first needed.
  cl_context context();
  cl_command_queue queue();

  void* Alloc(size_t bytes);
  void Free(void* data) noexcept;
  /// Returns the place of an address of this device; throws ValueError if `bytes` from there are not of one buffer.
  BufferPlace Find(const void* address, size_t bytes);
  void Write(const void* from, void* to, size_t bytes);
  void Read(const void* from, void* to, size_t bytes);
  void CopyWithin(const void* from, void* to, size_t bytes);
  void Sync();

  /// Throws the error of an OpenCL function's answer, if it has one. `doing`: "copying 16 bytes to".
  void Check(cl_int code, std::string_view doing) const;

 private:
  void Open();
  struct Buffer {
    cl_mem mem = nullptr;
    size_t bytes = 0, reserved = 0;
  };
  const Api* api_;
  cl_device_id id_;
  int index_;
  std::shared_mutex mutex_;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  std::map<uintptr_t, Buffer> buffers_;  // by first address
};

/// All there are; empty without OpenCL, and then `*why` says what is missing and how to mend it.
const std::vector<std::unique_ptr<OneDevice>>& Devices(std::string* why = nullptr);
/// The device of a number; throws RuntimeError with what there is and how to get one.
OneDevice& DeviceOf(int index);

}  // namespace baton::opencl
