// SPDX-License-Identifier: Apache-2.0
#include "cuda/device.h"

#include <baton/runtime/array.h>
#include <baton/runtime/error.h>
#include <baton/runtime/registry.h>
#include <baton/support/text.h>
#include <unistd.h>

#include "device/devices.h"

namespace baton::cuda {

using runtime::RuntimeError;
using support::Cat;

namespace {

constexpr const char* kInstall = "install the driver of your NVIDIA GPU, or compile for cpu";

struct Found {
  std::vector<std::unique_ptr<OneDevice>> devices;
  std::string why;
  int32_t version = 0;

  Found() {
    const Api* api = Api::Find(&why);
    if (!api) {
      why = Cat("there is no CUDA driver (", why, "); ", kInstall);
      return;
    }
    const CUresult code = api->cuInit(0);
    int32_t count = 0;
    if (code == kDriverMismatch) {
      why = Cat("the CUDA driver's library is of another version than the driver in the kernel (", api->ErrorName(code),
                "); start the machine again after its update");
    } else if (code != kSuccess && code != kNoDevice) {
      why =
          Cat("the CUDA driver does not start (", api->ErrorName(code), "); look at `nvidia-smi`, or compile for cpu");
    } else if (code == kNoDevice || api->cuDeviceGetCount(&count) != kSuccess || count == 0) {
      why = Cat("the CUDA driver is there but offers no device; ", kInstall);
    }
    if (!why.empty()) return;
    api->cuDriverGetVersion(&version);
    for (int32_t i = 0; i < count; ++i) {
      CUdevice id = 0;
      if (api->cuDeviceGet(&id, i) == kSuccess) devices.push_back(std::make_unique<OneDevice>(api, id, i));
    }
    if (devices.empty()) why = Cat("the CUDA driver gives none of its ", count, " devices; look at `nvidia-smi`");
  }
};
const Found& All() {
  static const Found* found = new Found;
  return *found;
}

/// Whether an error leaves the context unusable: a kernel's fault, or a device that does not answer.
bool Loses(CUresult code) {
  constexpr CUresult kLost[] = {4, 46, 201, 202, 214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719};
  for (CUresult c : kLost) {
    if (c == code) return true;
  }
  return false;
}

CUdeviceptr Address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

}  // namespace

const std::vector<std::unique_ptr<OneDevice>>& Devices(std::string* why) {
  if (why) *why = All().why;
  return All().devices;
}
int32_t DriverVersion() { return All().version; }

OneDevice& DeviceOf(int index) {
  std::string why;
  const auto& all = Devices(&why);
  if (index >= 0 && static_cast<size_t>(index) < all.size()) return *all[static_cast<size_t>(index)];
  if (!all.empty()) {
    why = "there are";
    for (const auto& d : all) why += Cat(d.get() == all[0].get() ? " " : ", ", d->Name());
  }
  throw RuntimeError(Cat("device `cuda(", index, ")` does not exist on this machine: ", why));
}

std::string OneDevice::ModelName() const {
  char text[256] = {};
  return api_->cuDeviceGetName(text, sizeof(text) - 1, id_) == kSuccess ? text : "";
}
std::string OneDevice::Name() const { return Cat("cuda(", index_, ") (", ModelName(), ")"); }
int64_t OneDevice::Number(Attribute what) const {
  int32_t value = 0;
  return api_->cuDeviceGetAttribute(&value, what, id_) == kSuccess ? value : 0;
}
int64_t OneDevice::Capability() const { return 10 * Number(kComputeCapabilityMajor) + Number(kComputeCapabilityMinor); }
int64_t OneDevice::TotalMemory() const {
  size_t bytes = 0;
  return api_->cuDeviceTotalMem(&bytes, id_) == kSuccess ? static_cast<int64_t>(bytes) : 0;
}

void OneDevice::ThrowOutOfMemory(CUresult code, std::string_view doing) {
  size_t free = 0, total = 0;
  const bool known = api_->cuMemGetInfo(&free, &total) == kSuccess;
  throw runtime::Error("MemoryError", Cat("no memory: ", doing, " ", Name(), " (", api_->ErrorName(code), ")",
                                          known ? Cat("; the device has ", static_cast<int64_t>(total),
                                                      " bytes, of which ", static_cast<int64_t>(free), " are free")
                                                : std::string(),
                                          "; release arrays there, or take a smaller batch"));
}

void OneDevice::Check(CUresult code, std::string_view doing) {
  if (code == kSuccess) [[likely]]
    return;
  if (code == kOutOfMemory) ThrowOutOfMemory(code, doing);
  std::lock_guard lock(mutex_);
  const std::string after = last_kernel_.empty() ? "" : Cat(", after ", last_kernel_);
  if (!Loses(code)) throw RuntimeError(Cat(doing, " ", Name(), " failed: ", api_->ErrorName(code), after));
  lost_ = Cat("the device cuda(", index_, ") is lost (", api_->ErrorName(code), " when ", doing, " it", after,
              "): its memory is gone for this process; start the program again, or compile for cpu. "
              "`compute-sanitizer` names the access of a kernel that is at fault");
  throw RuntimeError(lost_);
}

void OneDevice::Enter() {
  CUresult code = kSuccess;
  {
    std::lock_guard lock(mutex_);
    if (!lost_.empty()) throw RuntimeError(lost_);
    if (context_ && process_ != getpid()) {
      throw RuntimeError(Cat("cuda(", index_,
                             ") was opened before this process was forked, and a driver does not follow "
                             "a fork; open it in the child alone, or start the child by spawn"));
    }
    if (!context_) {
      code = api_->cuDevicePrimaryCtxRetain(&context_, id_);
      if (code != kSuccess) context_ = nullptr;
      process_ = getpid();
    }
  }
  Check(code, "opening");
  Check(api_->cuCtxSetCurrent(context_), "opening");
}

void* OneDevice::Alloc(size_t bytes) {
  if (bytes > SIZE_MAX / 2) throw runtime::Error("MemoryError", Cat("cannot allocate ", bytes, " bytes on ", Name()));
  Enter();
  CUdeviceptr p = 0;
  Check(api_->cuMemAlloc(&p, bytes ? bytes : 1), Cat("allocating ", bytes, " bytes on"));
  return reinterpret_cast<void*>(p);
}
void OneDevice::Free(void* data) noexcept {
  try {
    Enter();
    api_->cuMemFree(Address(data));
  } catch (...) {  // the memory of a lost device is gone
  }
}
void OneDevice::Write(const void* from, void* to, size_t bytes) {
  Enter();
  Check(api_->cuMemcpyHtoD(Address(to), from, bytes), Cat("copying ", bytes, " bytes to"));
}
void OneDevice::Read(const void* from, void* to, size_t bytes) {
  Enter();
  Check(api_->cuMemcpyDtoH(to, Address(from), bytes), Cat("copying ", bytes, " bytes from"));
}
void OneDevice::CopyWithin(const void* from, void* to, size_t bytes) {
  if (from == to) return;
  const auto a = Address(from), b = Address(to);
  if (a < b + bytes && b < a + bytes) {  // the driver does not say in which order it copies
    std::string through(bytes, '\0');
    Read(from, through.data(), bytes);
    Write(through.data(), to, bytes);
    return;
  }
  Enter();
  Check(api_->cuMemcpyDtoD(b, a, bytes), Cat("copying ", bytes, " bytes within"));
}
void OneDevice::Sync() {
  Enter();
  Check(api_->cuCtxSynchronize(), "waiting for");
}
void OneDevice::Launched(const std::string& kernel) {
  std::lock_guard lock(mutex_);
  last_kernel_ = kernel;
}

namespace {

struct Kind {
  static constexpr DLDeviceType kType = kDLCUDA;
  static const auto& All() { return Devices(); }
  static OneDevice& Of(int number) { return DeviceOf(number); }
};
const bool registered_devices = device::RegisterDevices<Kind>();

/// "8.0" of 80 and 10.
std::string Version(int64_t number, int64_t unit) { return Cat(number / unit, ".", number % unit); }

/// The attributes of Python's Device: an int or a string for each name, None where the driver does not say.
BATON_REGISTER_GLOBAL("cuda.DeviceAttribute").set_body_typed([](int index, std::string name) {
  using runtime::Any;
  const OneDevice& d = DeviceOf(index);
  if (name == "device_name") return Any(d.ModelName());
  if (name == "vendor") return Any(std::string("NVIDIA"));
  if (name == "kind") return Any(std::string("gpu"));
  if (name == "compute_version") return Any(Version(d.Capability(), 10));
  if (name == "driver_version") return Any(Version(DriverVersion() / 10, 100));
  if (name == "total_global_memory") return Any(d.TotalMemory());
  constexpr struct {
    const char* name;
    Attribute what;
  } kNumbers[] = {{"max_threads_per_block", kMaxThreadsPerBlock},
                  {"max_shared_memory_per_block", kMaxSharedMemoryPerBlock},
                  {"max_registers_per_block", kMaxRegistersPerBlock},
                  {"warp_size", kWarpSize},
                  {"max_clock_rate", kClockRate},
                  {"multi_processor_count", kMultiprocessorCount},
                  {"l2_cache_size_bytes", kL2CacheSize}};
  for (const auto& n : kNumbers) {
    if (name == n.name) return Any(d.Number(n.what));
  }
  if (name == "max_thread_dimensions") {
    runtime::Array<int64_t> out;
    for (int axis = 0; axis < 3; ++axis) out.push_back(d.Number(static_cast<Attribute>(kMaxBlockDimX + axis)));
    return Any(out);
  }
  return Any();
});
/// How many devices there are; and what is missing where there are none.
BATON_REGISTER_GLOBAL("cuda.NumDevices").set_body_typed([] { return static_cast<int64_t>(Devices().size()); });
BATON_REGISTER_GLOBAL("cuda.WhyNone").set_body_typed([] {
  std::string why;
  Devices(&why);
  return why;
});

}  // namespace
}  // namespace baton::cuda
