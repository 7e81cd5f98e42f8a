// SPDX-License-Identifier: Apache-2.0
// Modules of kind "opencl": OpenCL C whose first line says, in a comment, what functions it has and how each is
// launched. A function is a row of kernels; it takes a tensor for each parameter, then the sizes that its shapes follow
// from, and has no result. Programs are built for a device when a function is first called there.
#include <baton/runtime/array.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <baton/support/text.h>

#include <algorithm>
#include <mutex>

#include "device/module.h"
#include "opencl/device.h"

namespace baton::opencl {

using device::Function;
using device::Kernel;
using runtime::RuntimeError;
using support::Cat;

namespace {

constexpr device::ModuleKind kKind = {.key = "opencl",
                                      .language = "OpenCL",
                                      .head = "// baton-opencl ",
                                      .type = kDLOpenCL,
                                      .device = "an OpenCL device",
                                      .format = "cl",
                                      .same_as = "opencl"};

/// The program on one device.
struct Built {
  OneDevice* device = nullptr;
  cl_program program = nullptr;
  std::vector<cl_kernel> kernels;
  size_t group = 64;  // work-items that run together, at most
  NDArray workspace;  // kernels run one after the other, so one place serves all
  std::mutex mutex;   // arguments of kernels, and the workspace from a function's first kernel to its last

  ~Built() {
    if (!device) return;
    for (cl_kernel k : kernels) device->api().clReleaseKernel(k);
    if (program) device->api().clReleaseProgram(program);
  }
};

class OpenCLModule final : public device::KernelModule<Built> {
 public:
  explicit OpenCLModule(std::string text) : KernelModule(kKind, std::move(text)) {}

 private:
  std::unique_ptr<Built> Build(int number) final {
    auto b = std::make_unique<Built>();
    OneDevice& d = DeviceOf(number);
    b->device = &d;
    const size_t most = d.Number<size_t>(kDeviceMaxWorkGroupSize);
    if (most > 0 && most < b->group) b->group = most;
    for (const std::string& extension : program().needs()) {
      if (d.HasExtension(extension)) continue;
      throw RuntimeError(Cat("the program needs ", extension, ", which ", d.Name(), " does not have",
                             extension == "cl_khr_fp64"
                                 ? ": it computes in float64; convert it to float32, or choose another device"
                                 : "; choose another device"));
    }
    const Api& api = d.api();
    const char* source = text().data();
    const size_t size = text().size();
    cl_int code = 0;
    b->program = api.clCreateProgramWithSource(d.context(), 1, &source, &size, &code);
    d.Check(b->program ? kSuccess : code, "making a program for");
    std::string options = "-cl-std=CL1.2";
    if (d.Number<cl_bitfield>(kDeviceSingleFpConfig) & kFpCorrectlyRoundedDivideSqrt) {
      options += " -cl-fp32-correctly-rounded-divide-sqrt";
    }
    const cl_device_id id = d.id();
    code = api.clBuildProgram(b->program, 1, &id, options.c_str(), nullptr, nullptr);
    if (code == kBuildProgramFailure) {
      size_t length = 0;
      api.clGetProgramBuildInfo(b->program, id, kProgramBuildLog, 0, nullptr, &length);
      std::string log(length, '\0');
      if (length) api.clGetProgramBuildInfo(b->program, id, kProgramBuildLog, length, log.data(), nullptr);
      log = log.substr(0, log.find('\0'));
      throw RuntimeError(Cat("the OpenCL compiler of ", d.Name(), " refuses the program: ", log.substr(0, 2000)));
    }
    d.Check(code, "building the program for");
    for (const Function& f : program().functions()) {
      for (const Kernel& k : f.kernels) {
        cl_kernel kernel = api.clCreateKernel(b->program, k.name.c_str(), &code);
        d.Check(kernel ? kSuccess : code, Cat("making kernel `", k.name, "` for"));
        b->kernels.push_back(kernel);
      }
    }
    return b;
  }

  void Launch(const Function& f, Built* b, void* const* places, const int64_t* sizes) final {
    OneDevice& d = *b->device;
    const Api& api = d.api();
    std::lock_guard lock(b->mutex);
    const std::vector<int64_t> offsets = f.WorkspaceFor(sizes);
    const auto workspace = static_cast<uint64_t>(offsets.back());
    if (workspace && (!b->workspace.defined() || b->workspace.nbytes() < workspace)) {
      b->workspace = NDArray::Empty({offsets.back()}, DataType::UInt(8), d.device());
    }
    // Buffers found once a function: its kernels share them.
    std::vector<BufferPlace> found;
    for (size_t i = 0; i < f.params.size(); ++i) {
      found.push_back(d.Find(places[i], runtime::TensorBytes(f.params[i].ShapeFor(sizes), f.params[i].dtype)));
    }
    const BufferPlace space = workspace ? d.Find(b->workspace.data(), workspace) : BufferPlace{};
    for (size_t k = 0; k < f.kernels.size(); ++k) {
      const Kernel& kernel = f.kernels[k];
      cl_kernel handle = b->kernels[f.first + k];
      const device::Range range =
          device::RangeOf(f, kernel, sizes, b->group, d.Number<size_t>(kDeviceMaxWorkGroupSize), d.Name());
      if (range.empty) continue;
      const cl_uint dims = kernel.groups.empty() ? 1 : 3;
      size_t all[3];
      for (size_t axis = 0; axis < 3; ++axis) all[axis] = range.groups[axis] * range.threads[axis];
      cl_uint slot = 0;
      cl_int code = kSuccess;
      for (int64_t a : kernel.args) {
        const BufferPlace p = a >= 0 ? found[static_cast<size_t>(a)] : space;
        const int64_t offset = static_cast<int64_t>(p.offset) + (a < 0 ? offsets[static_cast<size_t>(-1 - a)] : 0);
        if (code == kSuccess) code = api.clSetKernelArg(handle, slot++, sizeof(p.buffer), &p.buffer);
        if (code == kSuccess) code = api.clSetKernelArg(handle, slot++, sizeof(offset), &offset);
      }
      for (size_t i = 0; i < f.sizes && code == kSuccess; ++i) {
        code = api.clSetKernelArg(handle, slot++, sizeof(sizes[i]), &sizes[i]);
      }
      d.Check(code, Cat("giving arguments of kernel `", kernel.name, "` to"));
      code = api.clEnqueueNDRangeKernel(d.queue(), handle, dims, nullptr, all, range.threads, 0, nullptr, nullptr);
      if (code == kInvalidWorkGroupSize && kernel.groups.empty()) {  // too large for this kernel: the driver chooses
        code = api.clEnqueueNDRangeKernel(d.queue(), handle, 1, nullptr, all, nullptr, 0, nullptr, nullptr);
      }
      d.Check(code, Cat("launching kernel `", kernel.name, "` on"));
    }
    d.Check(api.clFlush(d.queue()), "launching kernels on");
  }
};

/// (text of a program): a module.
BATON_REGISTER_GLOBAL("opencl.CreateModule").set_body_typed([](std::string text) {
  return runtime::MakeModule<OpenCLModule>(std::move(text));
});
/// (path of a .cl file that such a module wrote): a module.
BATON_REGISTER_GLOBAL("opencl.LoadModule").set_body_typed([](std::string path) {
  return device::LoadText<OpenCLModule>(path);
});

}  // namespace
}  // namespace baton::opencl
