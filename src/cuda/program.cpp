// SPDX-License-Identifier: Apache-2.0
// Modules of kind "cuda": PTX whose first line says, in a comment, what functions it has and how each is launched. A
// kernel takes the address of each buffer, then all sizes. Programs are given to the driver's compiler when a function
// is first called on a device.
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <baton/support/text.h>

#include <charconv>
#include <mutex>

#include "cuda/device.h"
#include "device/module.h"

namespace baton::cuda {

using device::Function;
using runtime::RuntimeError;
using support::Cat;

namespace {

constexpr device::ModuleKind kKind = {.key = "cuda",
                                      .language = "CUDA",
                                      .head = "// baton-cuda ",
                                      .type = kDLCUDA,
                                      .device = "a CUDA device",
                                      .format = "ptx"};
constexpr size_t kGroup = 128;  // threads of a block where a kernel leaves it open

/// The program on one device.
struct Built {
  OneDevice* device = nullptr;
  CUmodule module = nullptr;
  std::vector<CUfunction> kernels;
  NDArray workspace;  // kernels run one after the other, so one place serves all
  std::mutex mutex;   // the workspace, from a function's first kernel to its last

  ~Built() {
    if (!module) return;
    try {
      device->Enter();
      device->api().cuModuleUnload(module);
    } catch (...) {  // the modules of a lost device are gone
    }
  }
};

class CudaModule final : public device::KernelModule<Built> {
 public:
  explicit CudaModule(std::string text) : KernelModule(kKind, std::move(text)) {
    try {
      arch_ = program().head().At("arch").AsString();
    } catch (const std::exception& e) {
      throw runtime::ValueError(e.what());
    }
  }

 private:
  /// Throws RuntimeError for a device that the program was not compiled for.
  void CheckChip(const OneDevice& d) const {
    int64_t wants = 0;
    const char* begin = arch_.data() + (arch_.starts_with("sm_") ? 3 : 0);
    const auto [at, error] = std::from_chars(begin, arch_.data() + arch_.size(), wants);
    const bool exact = at != arch_.data() + arch_.size() && *at == 'a';
    const int64_t has = d.Capability();
    if (error == std::errc() && has > 0 && (exact ? has != wants : has < wants)) {
      throw RuntimeError(Cat("the program is compiled for ", arch_, ", and ", d.Name(), " is sm_", has,
                             "; compile it for \"cuda -arch=sm_", has, "\""));
    }
  }

  std::unique_ptr<Built> Build(int number) final {
    auto b = std::make_unique<Built>();
    OneDevice& d = DeviceOf(number);
    b->device = &d;
    CheckChip(d);
    d.Enter();
    char log[4096] = {};
    JitOption options[] = {kJitErrorLog, kJitErrorLogBytes};
    void* values[] = {log, reinterpret_cast<void*>(sizeof(log) - 1)};
    const Api& api = d.api();
    const CUresult code = api.cuModuleLoadDataEx(&b->module, text().c_str(), 2, options, values);
    if (code != kSuccess) b->module = nullptr;
    if (code == kUnsupportedPtxVersion || code == kNoBinaryForGpu) {
      throw RuntimeError(Cat("the CUDA driver of ", d.Name(), " has version ", DriverVersion() / 1000, ".",
                             DriverVersion() % 1000 / 10, " and does not know the program's PTX (", api.ErrorName(code),
                             "): install a newer driver, or compile it for an older -arch than ", arch_));
    }
    if (code == kInvalidPtx) {
      throw RuntimeError(Cat("the compiler of ", d.Name(), " refuses the program: ", std::string(log).substr(0, 2000)));
    }
    d.Check(code, "loading the program on");
    for (const Function& f : program().functions()) {
      for (const device::Kernel& k : f.kernels) {
        CUfunction kernel = nullptr;
        d.Check(api.cuModuleGetFunction(&kernel, b->module, k.name.c_str()), Cat("finding kernel `", k.name, "` on"));
        b->kernels.push_back(kernel);
      }
    }
    return b;
  }

  void Launch(const Function& f, Built* b, void* const* places, const int64_t* sizes) final {
    OneDevice& d = *b->device;
    std::lock_guard lock(b->mutex);
    d.Enter();
    const std::vector<int64_t> offsets = f.WorkspaceFor(sizes);
    if (offsets.back() && (!b->workspace.defined() || b->workspace.nbytes() < static_cast<size_t>(offsets.back()))) {
      b->workspace = NDArray::Empty({offsets.back()}, DataType::UInt(8), d.device());
    }
    const auto most = static_cast<size_t>(d.Number(kMaxThreadsPerBlock));
    for (size_t i = 0; i < f.kernels.size(); ++i) {
      const device::Kernel& kernel = f.kernels[i];
      const device::Range range = device::RangeOf(f, kernel, sizes, kGroup, most, d.Name());
      if (range.empty) continue;
      uint32_t grid[3], block[3];
      for (size_t axis = 0; axis < 3; ++axis) {
        const size_t limit = axis == 0 ? INT32_MAX : UINT16_MAX;
        if (range.groups[axis] > limit) {
          throw runtime::ValueError(Cat("kernel `", kernel.name, "` of `", f.name, "` has ", range.groups[axis],
                                        " blocks along ", std::string(1, "xyz"[axis]), ", CUDA takes at most ", limit,
                                        "; let blockIdx.x be the longest axis"));
        }
        grid[axis] = static_cast<uint32_t>(range.groups[axis]);
        block[axis] = static_cast<uint32_t>(range.threads[axis]);
      }
      std::vector<uint64_t> values;
      for (int64_t a : kernel.args) {
        const void* p =
            a >= 0 ? places[a] : static_cast<const char*>(b->workspace.data()) + offsets[static_cast<size_t>(-1 - a)];
        values.push_back(reinterpret_cast<uint64_t>(p));
      }
      values.insert(values.end(), sizes, sizes + f.sizes);
      std::vector<void*> args;
      for (uint64_t& v : values) args.push_back(&v);
      const std::string name = Cat("kernel `", kernel.name, "` of `", f.name, "`");
      const CUresult code = d.api().cuLaunchKernel(b->kernels[f.first + i], grid[0], grid[1], grid[2], block[0],
                                                   block[1], block[2], 0, nullptr, args.data(), nullptr);
      if (code == kOutOfLaunchResources) {
        throw RuntimeError(Cat(name, " needs more registers or shared memory than ", d.Name(), " has for ",
                               block[0] * block[1] * block[2], " threads (", d.api().ErrorName(code),
                               "); give its blocks fewer threads"));
      }
      d.Check(code, Cat("launching ", name, " on"));
      d.Launched(name);
    }
  }

  std::string arch_;
};

/// (text of a program): a module.
BATON_REGISTER_GLOBAL("cuda.CreateModule").set_body_typed([](std::string text) {
  return runtime::MakeModule<CudaModule>(std::move(text));
});
/// (path of a .ptx file that such a module wrote): a module.
BATON_REGISTER_GLOBAL("cuda.LoadModule").set_body_typed([](std::string path) {
  return device::LoadText<CudaModule>(path);
});

}  // namespace
}  // namespace baton::cuda
