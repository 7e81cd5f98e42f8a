// SPDX-License-Identifier: Apache-2.0
#include "opencl/device.h"

#include <baton/runtime/array.h>
#include <baton/runtime/error.h>
#include <baton/runtime/registry.h>
#include <baton/support/text.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mutex>

#include "device/devices.h"

namespace baton::opencl {

using runtime::RuntimeError;
using runtime::ValueError;
using support::Cat;

namespace {

constexpr const char* kInstall =
    "install a driver of your device, or OpenCL on the CPU: apt-get install ocl-icd-libopencl1 pocl-opencl-icd";

struct Found {
  std::vector<std::unique_ptr<OneDevice>> devices;
  std::string why;

  Found() {
    const Api* api = Api::Find(&why);
    if (!api) {
      why = Cat("there is no OpenCL library (", why, "); ", kInstall);
      return;
    }
    cl_uint count = 0;
    api->clGetPlatformIDs(0, nullptr, &count);
    std::vector<cl_platform_id> platforms(count);
    if (count) api->clGetPlatformIDs(count, platforms.data(), nullptr);
    for (cl_platform_id p : platforms) {
      cl_uint n = 0;
      if (api->clGetDeviceIDs(p, kDeviceTypeAll, 0, nullptr, &n) != kSuccess) continue;
      std::vector<cl_device_id> ids(n);
      if (n == 0 || api->clGetDeviceIDs(p, kDeviceTypeAll, n, ids.data(), nullptr) != kSuccess) continue;
      for (cl_device_id id : ids)
        devices.push_back(std::make_unique<OneDevice>(api, id, static_cast<int>(devices.size())));
    }
    if (devices.empty()) {
      why = Cat("the OpenCL library is there but offers no device (", count, " platforms); ", kInstall);
    }
  }
};

}  // namespace

const std::vector<std::unique_ptr<OneDevice>>& Devices(std::string* why) {
  static const Found* found = new Found;
  if (why) *why = found->why;
  return found->devices;
}

OneDevice& DeviceOf(int index) {
  std::string why;
  const auto& all = Devices(&why);
  if (index >= 0 && static_cast<size_t>(index) < all.size()) return *all[static_cast<size_t>(index)];
  if (!all.empty()) {
    why = "there are";
    for (const auto& d : all) why += Cat(d.get() == all[0].get() ? " " : ", ", d->Name());
  }
  throw RuntimeError(Cat("device `opencl(", index, ")` does not exist on this machine: ", why));
}

std::string OneDevice::Text(Info what) const {
  size_t size = 0;
  if (api_->clGetDeviceInfo(id_, what, 0, nullptr, &size) != kSuccess || size == 0) return "";
  std::string s(size, '\0');
  if (api_->clGetDeviceInfo(id_, what, size, s.data(), nullptr) != kSuccess) return "";
  return s.substr(0, s.find('\0'));
}

std::string OneDevice::Name() const { return Cat("opencl(", index_, ") (", Text(kDeviceName), ")"); }

bool OneDevice::HasExtension(std::string_view name) const {
  return Cat(" ", Text(kDeviceExtensions), " ").find(Cat(" ", name, " ")) != std::string::npos;
}

void OneDevice::Check(cl_int code, std::string_view doing) const {
  if (code == kSuccess) [[likely]]
    return;
  if (code == kMemObjectAllocationFailure || code == kInvalidBufferSize) {
    throw runtime::Error(
        "MemoryError",
        Cat("no memory: ", doing, " ", Name(), " (", ErrorName(code), "); the device has ",
            static_cast<int64_t>(Number<cl_ulong>(kDeviceGlobalMemSize)), " bytes, of which one buffer takes at most ",
            static_cast<int64_t>(Number<cl_ulong>(kDeviceMaxMemAllocSize))));
  }
  if (code == kDeviceNotAvailable || code == kInvalidDevice || code == kInvalidContext ||
      code == kInvalidCommandQueue || code == kOutOfResources) {
    throw RuntimeError(Cat("the device opencl(", index_, ") has gone away or no longer answers (", ErrorName(code),
                           " when ", doing,
                           " it): what lay in its memory is lost; see that the device is there "
                           "(clinfo, baton doctor) and start the program again, or compile for cpu"));
  }
  throw RuntimeError(Cat(doing, " ", Name(), " failed: ", ErrorName(code)));
}

void OneDevice::Open() {
  std::unique_lock lock(mutex_);
  if (queue_) return;
  cl_int code = 0;
  cl_context context = api_->clCreateContext(nullptr, 1, &id_, nullptr, nullptr, &code);
  Check(context ? kSuccess : code, "opening");
  // In order: what is asked for first is done first.
  cl_command_queue queue = api_->clCreateCommandQueue(context, id_, 0, &code);
  Check(queue ? kSuccess : code, "opening");
  context_ = context;
  queue_ = queue;
}
cl_context OneDevice::context() {
  queue();
  return context_;
}
cl_command_queue OneDevice::queue() {
  {
    std::shared_lock lock(mutex_);
    if (queue_) return queue_;
  }
  Open();
  return queue_;
}

void* OneDevice::Alloc(size_t bytes) {
  cl_context c = context();
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (bytes > SIZE_MAX / 2) throw runtime::Error("MemoryError", Cat("cannot allocate ", bytes, " bytes on ", Name()));
  const std::string doing = Cat("allocating ", bytes, " bytes on");
  // Drivers may put off allocation and fail later; what the device says it cannot give is refused here.
  if (bytes > Number<cl_ulong>(kDeviceMaxMemAllocSize)) Check(kInvalidBufferSize, doing);
  Buffer b;
  b.bytes = bytes ? bytes : 1;
  b.reserved = (b.bytes + page - 1) / page * page;
  void* address = mmap(nullptr, b.reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    throw runtime::Error("MemoryError", Cat("no addresses are left for ", bytes, " bytes on ", Name()));
  }
  cl_int code = 0;
  b.mem = api_->clCreateBuffer(c, kMemReadWrite, b.bytes, nullptr, &code);
  if (!b.mem) {
    munmap(address, b.reserved);
    Check(code == kSuccess          ? kMemObjectAllocationFailure
          : code == kOutOfResources ? kMemObjectAllocationFailure
                                    : code,
          doing);
  }
  std::unique_lock lock(mutex_);
  buffers_[reinterpret_cast<uintptr_t>(address)] = b;
  return address;
}

void OneDevice::Free(void* data) noexcept {
  Buffer b;
  {
    std::unique_lock lock(mutex_);
    auto it = buffers_.find(reinterpret_cast<uintptr_t>(data));
    if (it == buffers_.end()) return;
    b = it->second;
    buffers_.erase(it);
  }
  api_->clReleaseMemObject(b.mem);  // kept by the driver until kernels that use it are done
  munmap(data, b.reserved);
}

BufferPlace OneDevice::Find(const void* address, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::shared_lock lock(mutex_);
  auto it = buffers_.upper_bound(at);
  if (it != buffers_.begin()) {
    --it;
    const size_t offset = at - it->first;
    if (offset <= it->second.bytes && bytes <= it->second.bytes - offset) return {it->second.mem, offset};
  }
  throw ValueError(Cat("an address that is not of memory which Baton has allocated on opencl(", index_,
                       "): arrays of other libraries on this device are copied through the CPU"));
}

void OneDevice::Write(const void* from, void* to, size_t bytes) {
  const BufferPlace p = Find(to, bytes);
  Check(api_->clEnqueueWriteBuffer(queue(), p.buffer, 1, p.offset, bytes, from, 0, nullptr, nullptr),
        Cat("copying ", bytes, " bytes to"));
}
void OneDevice::Read(const void* from, void* to, size_t bytes) {
  const BufferPlace p = Find(from, bytes);
  Check(api_->clEnqueueReadBuffer(queue(), p.buffer, 1, p.offset, bytes, to, 0, nullptr, nullptr),
        Cat("copying ", bytes, " bytes from"));
}
void OneDevice::CopyWithin(const void* from, void* to, size_t bytes) {
  const BufferPlace a = Find(from, bytes), b = Find(to, bytes);
  if (a.buffer == b.buffer && a.offset == b.offset) return;
  if (a.buffer == b.buffer) {  // the ranges may overlap, which OpenCL refuses
    std::string through(bytes, '\0');
    Read(from, through.data(), bytes);
    Write(through.data(), to, bytes);
    return;
  }
  Check(api_->clEnqueueCopyBuffer(queue(), a.buffer, b.buffer, a.offset, b.offset, bytes, 0, nullptr, nullptr),
        Cat("copying ", bytes, " bytes within"));
}
void OneDevice::Sync() { Check(api_->clFinish(queue()), "waiting for"); }

namespace {

struct Kind {
  static constexpr DLDeviceType kType = kDLOpenCL;
  static const auto& All() { return Devices(); }
  static OneDevice& Of(int number) { return DeviceOf(number); }
};
const bool registered_devices = device::RegisterDevices<Kind>();

/// The number in "OpenCL 3.0 PoCL ...": "3.0".
std::string VersionIn(const std::string& text) {
  const size_t at = text.find_first_of("0123456789");
  return at == std::string::npos ? "" : text.substr(at, text.find(' ', at) - at);
}

/// The attributes of Python's Device: an int or a string for each name, None where OpenCL does not say.
BATON_REGISTER_GLOBAL("opencl.DeviceAttribute").set_body_typed([](int index, std::string name) {
  using runtime::Any;
  const OneDevice& d = DeviceOf(index);
  if (name == "device_name") return Any(d.Text(kDeviceName));
  if (name == "vendor") return Any(d.Text(kDeviceVendor));
  if (name == "driver_version") return Any(d.Text(kDriverVersion));
  if (name == "compute_version") return Any(VersionIn(d.Text(kDeviceVersion)));
  if (name == "extensions") return Any(d.Text(kDeviceExtensions));
  if (name == "kind") {
    const auto type = d.Number<cl_bitfield>(kDeviceType);
    return Any(std::string(type & kDeviceTypeGpu           ? "gpu"
                           : type & kDeviceTypeCpu         ? "cpu"
                           : type & kDeviceTypeAccelerator ? "accelerator"
                                                           : "other"));
  }
  const auto integer = [](uint64_t v) { return Any(static_cast<int64_t>(v)); };
  if (name == "max_threads_per_block") return integer(d.Number<size_t>(kDeviceMaxWorkGroupSize));
  if (name == "max_shared_memory_per_block") return integer(d.Number<cl_ulong>(kDeviceLocalMemSize));
  if (name == "max_clock_rate") return integer(uint64_t{1000} * d.Number<cl_uint>(kDeviceMaxClockFrequency));
  if (name == "multi_processor_count") return integer(d.Number<cl_uint>(kDeviceMaxComputeUnits));
  if (name == "total_global_memory") return integer(d.Number<cl_ulong>(kDeviceGlobalMemSize));
  if (name == "l2_cache_size_bytes") return integer(d.Number<cl_ulong>(kDeviceGlobalMemCacheSize));
  if (name == "max_thread_dimensions") {
    struct Sizes {
      size_t n[3];
    };
    const auto sizes = d.Number<Sizes>(kDeviceMaxWorkItemSizes);
    runtime::Array<int64_t> out;
    for (size_t n : sizes.n) out.push_back(static_cast<int64_t>(n));
    return Any(out);
  }
  return Any();
});
/// How many devices there are; and what is missing where there are none.
BATON_REGISTER_GLOBAL("opencl.NumDevices").set_body_typed([] { return static_cast<int64_t>(Devices().size()); });
BATON_REGISTER_GLOBAL("opencl.WhyNone").set_body_typed([] {
  std::string why;
  Devices(&why);
  return why;
});

}  // namespace
}  // namespace baton::opencl
