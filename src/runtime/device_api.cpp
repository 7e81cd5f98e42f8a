// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/device_api.h>
#include <baton/runtime/device_types.h>
#include <baton/runtime/error.h>
#include <baton/runtime/registry.h>
#include <baton/support/machine.h>
#include <baton/support/text.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace baton::runtime {
using support::Cat;

/// Loads a library beside this one, which registers its functions. Returns null, or what went
/// wrong.
const char* LoadBeside(const char* library) {
  Dl_info self{};
  dladdr(reinterpret_cast<const void*>(&LoadBeside), &self);
  const char* name = self.dli_fname ? self.dli_fname : "";
  const char* slash = std::strrchr(name, '/');
  std::string path(name, slash ? static_cast<size_t>(slash + 1 - name) : 0);
  path += library;
  return dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) ? nullptr : dlerror();
}

namespace {

struct Named {
  int type;
  const char* name;
};
// The first name of a type is the one that is printed.
constexpr Named kNames[] = {{kDLCPU, "cpu"},
                            {kDLCUDA, "cuda"},
                            {kDLCUDAHost, "cuda_host"},
                            {kDLOpenCL, "opencl"},
                            {kDLVulkan, "vulkan"},
                            {kDLMetal, "metal"},
                            {kDLROCM, "rocm"},
                            {kDLExtDev, "ext_dev"},
                            {kDLCUDAManaged, "cuda_managed"},
                            {kDLHexagon, "hexagon"},
                            {kDLWebGPU, "webgpu"},
                            {kDLVPI, "vpi"},
                            {kDLROCMHost, "rocm_host"},
                            {kDLOneAPI, "oneapi"},
                            {kDLCPU, "llvm"},
                            {kDLCUDA, "gpu"},
                            {kDLOpenCL, "cl"}};

constexpr int kMaxType = 64;
std::atomic<DeviceAPI*> table[kMaxType];

class CpuApi final : public DeviceAPI {
 public:
  bool Exists(Device d) override { return d.device_id >= 0; }
  void* Alloc(Device, size_t bytes, size_t alignment) override {
    // Large blocks lie on huge pages where the system has them: fewer misses when kernels stream through them.
    constexpr size_t kHuge = size_t(2) << 20;
    const bool large = bytes >= 2 * kHuge;
    if (large && alignment < kHuge) alignment = kHuge;
    if (alignment < 64) alignment = 64;
    // Requests beyond the memory of the machine fail here: the system would overcommit, and kill the process on first
    // access.
    const size_t memory = bytes > (size_t(1) << 30) ? support::Machine().memory : 0;
    if (memory && bytes / 2 > memory) {
      throw Error("MemoryError", Cat("cannot allocate ", bytes, " bytes on the CPU: there are ", memory));
    }
    void* p = nullptr;
    if (bytes > SIZE_MAX / 2 || posix_memalign(&p, alignment, bytes ? bytes : 1) != 0) {
      throw Error("MemoryError", Cat("cannot allocate ", bytes, " bytes on the CPU"));
    }
    if (large) madvise(p, bytes & ~(kHuge - 1), MADV_HUGEPAGE);
    return p;
  }
  void Free(Device, void* data) noexcept override { free(data); }
  void Copy(const void* from, Device, void* to, Device, size_t bytes) override {
    if (bytes) std::memmove(to, from, bytes);
  }
};

/// The implementation, null if there is none. Those outside the runtime lie in libraries that are loaded when first
/// asked for.
DeviceAPI* Find(Device d) {
  if (d.device_type >= kRemoteDevice) return table[0].load(std::memory_order_acquire);
  if (d.device_type <= 0 || d.device_type >= kMaxType) return nullptr;
  std::atomic<DeviceAPI*>& slot = table[d.device_type];
  if (!slot.load(std::memory_order_acquire)) {
    if (d.device_type == kDLOpenCL) LoadBeside("libbaton_opencl.so");
    if (d.device_type == kDLCUDA) LoadBeside("libbaton_cuda.so");
    if (d.device_type == kDLExtDev) LoadBeside("libbaton_vm.so");
  }
  return slot.load(std::memory_order_acquire);
}

}  // namespace

std::string Device2String(Device d) {
  if (d.device_type >= kRemoteDevice) {
    const Device there{static_cast<DLDeviceType>(d.device_type % kRemoteDevice), d.device_id};
    return Cat("remote[", d.device_type / kRemoteDevice - 1, "]:", Device2String(there));
  }
  for (const Named& n : kNames) {
    if (n.type == d.device_type) return Cat(n.name, "(", d.device_id, ")");
  }
  return Cat("device ", d.device_type, "(", d.device_id, ")");
}

bool IsDeviceType(int64_t type) {
  for (const Named& n : kNames) {
    if (n.type == type) return true;
  }
  return type > 0 && type < kMaxType && table[type].load() != nullptr;
}

std::string DeviceTypes() {
  std::string out;
  for (const Named& n : kNames) {
    if (out.find(Cat(" ", n.type, " (")) != std::string::npos) continue;
    out += Cat(out.empty() ? "" : ",", " ", n.type, " (", n.name, ")");
  }
  return out.substr(1);
}

Device String2Device(std::string_view s) {
  std::string_view name = s, number;
  if (const size_t open = s.find('('); open != std::string_view::npos && s.back() == ')') {
    name = s.substr(0, open);
    number = s.substr(open + 1, s.size() - open - 2);
  } else if (const size_t colon = s.find(':'); colon != std::string_view::npos) {
    name = s.substr(0, colon);
    number = s.substr(colon + 1);
  }
  int id = 0;
  const char* end = number.data() + number.size();
  const bool good =
      name.size() == s.size() || (std::from_chars(number.data(), end, id).ptr == end && !number.empty() && id >= 0);
  for (const Named& n : kNames) {
    if (good && name == n.name) return {n.type, id};
  }
  std::string known;
  for (const Named& n : kNames) known.append(known.empty() ? "" : ", ").append(n.name);
  throw ValueError(
      Cat("unknown device `", s.substr(0, 60), "`; known are ", known, ", each with a number as in cpu(0)"));
}

DeviceAPI* DeviceAPI::Get(Device d) {
  if (d.device_type == kDLCPU) {
    static CpuApi cpu;
    return &cpu;
  }
  DeviceAPI* api = Find(d);
  if (!api) {
    throw RuntimeError(
        Cat("device `", Device2String(d), "` is not available: this build of Baton has no support for it"));
  }
  if (!api->Exists(d)) {
    api->Sync(d);  // an implementation that knows why says so
    throw RuntimeError(Cat("device `", Device2String(d), "` does not exist on this machine"));
  }
  return api;
}

void DeviceAPI::Register(int device_type, DeviceAPI* api) {
  const int slot = device_type == kRemoteDevice ? 0 : device_type;
  if (device_type <= 0 || slot >= kMaxType || device_type == kDLCPU) {
    throw ValueError(Cat("no device can be registered for type ", device_type));
  }
  DeviceAPI* none = nullptr;
  if (!table[slot].compare_exchange_strong(none, api) && none != api) {
    throw ValueError(Cat("a device is registered already for type ", device_type));
  }
}

namespace {
BATON_REGISTER_GLOBAL("runtime.Device2String").set_body_typed(Device2String);
BATON_REGISTER_GLOBAL("runtime.String2Device").set_body_typed([](std::string s) { return String2Device(s); });
BATON_REGISTER_GLOBAL("runtime.DeviceExists").set_body_typed([](Device d) {
  if (d.device_type == kDLCPU) return d.device_id >= 0;
  DeviceAPI* api = Find(d);
  return api && api->Exists(d);
});
BATON_REGISTER_GLOBAL("runtime.DeviceSync").set_body_typed([](Device d) { DeviceAPI::Get(d)->Sync(d); });
}  // namespace

}  // namespace baton::runtime
