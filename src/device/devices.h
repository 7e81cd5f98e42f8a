// SPDX-License-Identifier: Apache-2.0
// The devices of one kind, as the runtime asks for them.
#pragma once

#include <baton/runtime/device_api.h>

#include <string>

namespace baton::device {

/// `Kind` has the type `kType`, the devices `All()` and the device `Of(number)`, which throws where there is none. A
/// device has Alloc, Free, Read, Write, CopyWithin and Sync.
template <class Kind>
class Devices final : public runtime::DeviceAPI {
 public:
  bool Exists(Device d) override { return d.device_id >= 0 && static_cast<size_t>(d.device_id) < Kind::All().size(); }
  void* Alloc(Device d, size_t bytes, size_t) override { return Kind::Of(d.device_id).Alloc(bytes); }
  void Free(Device d, void* data) noexcept override {
    if (Exists(d)) Kind::All()[static_cast<size_t>(d.device_id)]->Free(data);
  }
  void Copy(const void* from, Device a, void* to, Device b, size_t bytes) override {
    if (bytes == 0) return;
    const bool of = a.device_type == Kind::kType, on = b.device_type == Kind::kType;
    if (of && on && a.device_id == b.device_id) return Kind::Of(a.device_id).CopyWithin(from, to, bytes);
    if (on && a.device_type == kDLCPU) return Kind::Of(b.device_id).Write(from, to, bytes);
    if (of && b.device_type == kDLCPU) return Kind::Of(a.device_id).Read(from, to, bytes);
    // Two devices that do not know each other: through the host.
    std::string through(bytes, '\0');
    Get(a)->Copy(from, a, through.data(), runtime::Cpu(), bytes);
    Get(b)->Copy(through.data(), runtime::Cpu(), to, b, bytes);
  }
  void Sync(Device d) override { Kind::Of(d.device_id).Sync(); }
};

/// Registers the devices of a kind, for as long as the process lives. Returns true.
template <class Kind>
bool RegisterDevices() {
  runtime::DeviceAPI::Register(Kind::kType, new Devices<Kind>);
  return true;
}

}  // namespace baton::device
