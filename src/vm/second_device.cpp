// SPDX-License-Identifier: Apache-2.0
// `ext_dev`: a second device whose memory is the host's, apart from that of `cpu`. Programs for two devices run on it
// where there is no accelerator: what is planned for it lives in its memory, and gets there by copies alone.
#include <baton/runtime/device_api.h>
#include <baton/runtime/error.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace baton::vm {
namespace {

using runtime::Device;

class SecondDevice final : public runtime::DeviceAPI {
 public:
  bool Exists(Device d) override { return d.device_id >= 0 && d.device_id < 4; }
  void* Alloc(Device, size_t bytes, size_t alignment) override {
    void* p = nullptr;
    if (bytes > SIZE_MAX / 2 || posix_memalign(&p, alignment < 64 ? 64 : alignment, bytes ? bytes : 1) != 0)
      throw runtime::Error("MemoryError", "cannot allocate " + std::to_string(bytes) + " bytes on ext_dev");
    return p;
  }
  void Free(Device, void* data) noexcept override { free(data); }
  void Copy(const void* from, Device a, void* to, Device b, size_t bytes) override {
    // Memory of a third device is not host memory: that device's implementation copies, and treats this one as the CPU.
    for (const Device& other : {a, b}) {
      if (other.device_type == kDLCPU || other.device_type == kDLExtDev) continue;
      const Device host{kDLCPU, 0};
      return Get(other)->Copy(from, runtime::operator==(other, a) ? a : host, to,
                              runtime::operator==(other, b) ? b : host, bytes);
    }
    if (bytes) std::memmove(to, from, bytes);
  }
};

const bool registered_second_device = [] {
  runtime::DeviceAPI::Register(kDLExtDev, new SecondDevice);  // lives as long as the process
  return true;
}();

}  // namespace
}  // namespace baton::vm
