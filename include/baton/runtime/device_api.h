// SPDX-License-Identifier: Apache-2.0
// Devices, and the interface that each kind of device implements.
#pragma once

#include <baton/runtime/data_type.h>

#include <string>
#include <string_view>

namespace baton::runtime {

using Device = DLDevice;
inline constexpr Device Cpu(int id = 0) { return {kDLCPU, id}; }
inline constexpr bool operator==(const Device& a, const Device& b) {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}
inline constexpr bool operator!=(const Device& a, const Device& b) { return !(a == b); }

/// "cpu(0)", "cuda(1)".
BATON_DLL std::string Device2String(Device d);
/// Reads such a name; the number may be missing ("cpu"). Throws ValueError with the known names for another.
BATON_DLL Device String2Device(std::string_view s);

/// Memory of a kind of device. Implementations are safe to call from any thread and live as long as the process.
class BATON_DLL DeviceAPI {
 public:
  virtual ~DeviceAPI() = default;
  /// True if there is such a device on this machine.
  virtual bool Exists(Device d) = 0;
  /// Memory aligned to `alignment` (a power of two) bytes, never null. Throws MemoryError when there is none.
  virtual void* Alloc(Device d, size_t bytes, size_t alignment) = 0;
  virtual void Free(Device d, void* data) noexcept = 0;
  /// Copies `bytes` between this device and itself or the CPU.
  virtual void Copy(const void* from, Device from_device, void* to, Device to_device, size_t bytes) = 0;
  /// Waits until all that was asked of the device is done.
  virtual void Sync(Device) {}

  /// The implementation for a device; throws RuntimeError when this build or machine has none.
  static DeviceAPI* Get(Device d);
  /// Puts an implementation in place, once for each type of device. It must live as long as the process.
  static void Register(int device_type, DeviceAPI* api);
};

}  // namespace baton::runtime

namespace baton {
using runtime::Cpu;
using runtime::Device;
}  // namespace baton
