// SPDX-License-Identifier: Apache-2.0
// Modules of kind "opencl": OpenCL C whose first line says, in a comment, what functions it has and how each is
// launched. A function is a row of kernels; it takes a tensor for each parameter, then the sizes that its shapes follow
// from, and has no result. Programs are built for a device when a function is first called there.
#include <baton/runtime/array.h>
#include <baton/runtime/module.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <baton/support/file.h>
#include <baton/support/json.h>
#include <baton/support/text.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <unordered_map>

#include "opencl/device.h"
#include "opencl/formula.h"

namespace baton::opencl {

using runtime::Args;
using runtime::RetValue;
using runtime::RuntimeError;
using runtime::TypeError;
using runtime::ValueError;
using support::Cat;
using support::Json;

namespace {

constexpr std::string_view kHead = "// baton-opencl ";

struct Kernel {
  std::string name;
  std::vector<int64_t> args;  // parameter, or -1 - (number in the workspace)
  Formula items;
};
struct Param {
  std::string name;
  DataType dtype;
  std::vector<Formula> shape;
};
struct Function {
  std::string name;
  std::vector<Param> params;
  size_t sizes = 0;
  std::vector<Formula> workspace;  // bytes of each piece
  std::vector<Kernel> kernels;
  size_t first = 0;  // number of its first kernel in the program
};

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

class OpenCLModule final : public runtime::ModuleNode {
 public:
  explicit OpenCLModule(std::string text) : text_(std::move(text)) {
    if (text_.compare(0, kHead.size(), kHead) != 0) {
      throw ValueError("this is no OpenCL program of Baton: its first line does not say what functions it has");
    }
    const std::string head = text_.substr(kHead.size(), text_.find('\n') - kHead.size());
    try {
      const Json j = Json::Parse(head, "OpenCL program");
      for (const Json& n : j.At("needs").AsArray()) needs_.push_back(n.AsString());
      for (const Json& f : j.At("functions").AsArray()) Read(f);
    } catch (const runtime::Error&) {
      throw;
    } catch (const std::exception& e) {
      throw ValueError(e.what());
    }
  }
  const char* type_key() const override { return "opencl"; }
  std::string GetSource(std::string_view format) override {
    if (format.empty() || format == "cl" || format == "opencl") return text_;
    return ModuleNode::GetSource(format);
  }
  void SaveToFile(const std::string& path, std::string_view format) override {
    if (!format.empty() && format != "cl" && format != "opencl") {
      throw runtime::UnsupportedError(Cat("no file format \"", format, "\" for OpenCL programs; there is cl"));
    }
    support::WriteFileAtomic(path, text_);
  }
  /// "name": a function of tensors, which say the device. "name@1": the same on that device, of addresses.
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    const size_t at = name.find('@');
    int number = -1;
    if (at != name.npos) std::from_chars(name.data() + at + 1, name.data() + name.size(), number);
    for (const Function& f : functions_) {
      if (f.name != name.substr(0, at)) continue;
      const Function* function = &f;
      if (number < 0) {
        return PackedFunc([self, this, function](Args args, RetValue*) { CallWithTensors(*function, args); });
      }
      Built* built = &On(number);
      return PackedFunc([self, this, function, built](Args args, RetValue*) {
        std::vector<void*> places(function->params.size());
        if (args.size() != static_cast<int>(places.size() + function->sizes)) {
          throw runtime::InternalError(
              Cat("`", function->name, "` takes ", places.size(), " addresses and ", function->sizes, " sizes"));
        }
        for (size_t i = 0; i < places.size(); ++i) places[i] = args[static_cast<int>(i)].As<void*>();
        Launch(*function, built, places.data(), SizesBehind(*function, args).data());
      });
    }
    return PackedFunc();
  }

 private:
  static constexpr int64_t kMostSizes = 1024, kMostItems = int64_t{1} << 40;

  /// The shape that a parameter has with these sizes.
  static std::vector<int64_t> ShapeOf(const Param& p, const int64_t* sizes) {
    std::vector<int64_t> shape;
    for (const Formula& extent : p.shape) shape.push_back(extent(sizes));
    return shape;
  }
  /// The sizes behind the tensors.
  static std::vector<int64_t> SizesBehind(const Function& f, const Args& args) {
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < f.sizes; ++i) sizes.push_back(args[static_cast<int>(f.params.size() + i)].As<int64_t>());
    return sizes;
  }

  void Read(const Json& j) {
    Function f;
    f.name = j.At("name").AsString();
    f.first = num_kernels_;
    const int64_t workspace = static_cast<int64_t>(j.At("workspace").AsArray().size());
    const int64_t sizes = j.At("sizes").AsInt();
    if (sizes < 0 || sizes > kMostSizes) throw ValueError("a number of sizes that is not possible");
    f.sizes = static_cast<size_t>(sizes);
    for (const Json& piece : j.At("workspace").AsArray()) f.workspace.push_back(Formula(piece, f.sizes));
    for (const Json& p : j.At("params").AsArray()) {
      Param t{p.At("name").AsString(), String2DataType(p.At("dtype").AsString()), {}};
      bool literal = true;
      for (const Json& d : p.At("shape").AsArray()) {
        t.shape.push_back(Formula(d, f.sizes));
        literal = literal && t.shape.back().IsLiteral();
      }
      if (literal) runtime::TensorBytes(ShapeOf(t, nullptr), t.dtype);  // refuses what overflows, or is negative
      f.params.push_back(std::move(t));
    }
    for (const Json& k : j.At("kernels").AsArray()) {
      Kernel kernel;
      kernel.name = k.At("name").AsString();
      kernel.items = Formula(k.At("items"), f.sizes);
      if (!f.sizes && kernel.items(nullptr) < 1) throw ValueError("a kernel without work-items");
      for (const Json& a : k.At("args").AsArray()) {
        const int64_t v = a.AsInt();
        if (v >= static_cast<int64_t>(f.params.size()) || (v < 0 && -1 - v >= workspace)) {
          throw ValueError(Cat("kernel `", kernel.name, "` has an argument that its function lacks"));
        }
        kernel.args.push_back(v);
      }
      f.kernels.push_back(std::move(kernel));
    }
    num_kernels_ += f.kernels.size();
    functions_.push_back(std::move(f));
  }

  /// The program on a device; built there once.
  Built& On(int number) {
    std::lock_guard lock(mutex_);
    std::unique_ptr<Built>& b = built_[number];
    if (!b) b = Build(number);
    return *b;
  }
  std::unique_ptr<Built> Build(int number) {
    auto b = std::make_unique<Built>();
    OneDevice& d = DeviceOf(number);
    b->device = &d;
    const size_t most = d.Number<size_t>(kDeviceMaxWorkGroupSize);
    if (most > 0 && most < b->group) b->group = most;
    for (const std::string& extension : needs_) {
      if (d.HasExtension(extension)) continue;
      throw RuntimeError(Cat("the program needs ", extension, ", which ", d.Name(), " does not have",
                             extension == "cl_khr_fp64"
                                 ? ": it computes in float64; convert it to float32, or choose another device"
                                 : "; choose another device"));
    }
    const Api& api = d.api();
    const char* source = text_.data();
    const size_t size = text_.size();
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
    for (const Function& f : functions_) {
      for (const Kernel& k : f.kernels) {
        cl_kernel kernel = api.clCreateKernel(b->program, k.name.c_str(), &code);
        d.Check(kernel ? kSuccess : code, Cat("making kernel `", k.name, "` for"));
        b->kernels.push_back(kernel);
      }
    }
    return b;
  }

  void CallWithTensors(const Function& f, const Args& args) {
    if (args.size() != static_cast<int>(f.params.size() + f.sizes)) {
      throw TypeError(Cat("`", f.name, "` takes ", f.params.size(), " tensors",
                          f.sizes ? Cat(" and ", f.sizes, " sizes") : std::string(), ", got ", args.size()));
    }
    const std::vector<int64_t> sizes = SizesBehind(f, args);
    std::vector<void*> places;
    int number = -1;
    for (int i = 0; i < static_cast<int>(f.params.size()); ++i) {
      const Param& want = f.params[static_cast<size_t>(i)];
      const std::string where = Cat("`", f.name, "`: argument ", i, " (`", want.name, "`) must ");
      if (args[i].is_null() || !args[i].Is<DLTensor*>()) {
        throw TypeError(Cat(where, "be a tensor, got ", runtime::ValueKindName(args[i].raw())));
      }
      const DLTensor* t = args[i].As<DLTensor*>();
      if (t->device.device_type != kDLOpenCL || (number >= 0 && t->device.device_id != number)) {
        throw ValueError(Cat(where, "lie on ", number < 0 ? "an OpenCL device" : Cat("opencl(", number, ")"),
                             ", it lies on ", runtime::Device2String(t->device)));
      }
      number = t->device.device_id;
      const std::vector<int64_t> shape = ShapeOf(want, sizes.data());
      const auto ndim = static_cast<int>(shape.size());
      if (t->ndim != ndim || DataType(t->dtype) != want.dtype || !std::equal(shape.begin(), shape.end(), t->shape)) {
        throw ValueError(Cat(where, "be ", runtime::TensorTypeString(shape.data(), ndim, want.dtype), ", got ",
                             runtime::TensorTypeString(t->shape, t->ndim, t->dtype)));
      }
      if (!runtime::IsContiguous(t)) throw ValueError(Cat(where, "be dense: give a copy"));
      places.push_back(static_cast<char*>(t->data) + t->byte_offset);
    }
    Launch(f, &On(number < 0 ? 0 : number), places.data(), sizes.data());
  }

  /// Offsets of the pieces of a function's workspace, and behind them its bytes.
  static std::vector<int64_t> WorkspaceOf(const Function& f, const int64_t* sizes) {
    std::vector<int64_t> offsets{0};
    for (const Formula& piece : f.workspace) {
      const int64_t bytes = piece(sizes);
      if (bytes < 0 || bytes > kMostItems || offsets.back() > kMostItems) {
        throw ValueError(Cat("`", f.name, "` asks for more workspace than there is"));
      }
      offsets.push_back(offsets.back() + (bytes + 63) / 64 * 64);
    }
    return offsets;
  }

  void Launch(const Function& f, Built* b, void* const* places, const int64_t* sizes) {
    OneDevice& d = *b->device;
    const Api& api = d.api();
    std::lock_guard lock(b->mutex);
    const std::vector<int64_t> offsets = WorkspaceOf(f, sizes);
    const auto workspace = static_cast<uint64_t>(offsets.back());
    if (workspace && (!b->workspace.defined() || b->workspace.nbytes() < workspace)) {
      b->workspace = NDArray::Empty({offsets.back()}, DataType::UInt(8), d.device());
    }
    // Buffers found once a function: its kernels share them.
    std::vector<BufferPlace> found;
    for (size_t i = 0; i < f.params.size(); ++i) {
      found.push_back(d.Find(places[i], runtime::TensorBytes(ShapeOf(f.params[i], sizes), f.params[i].dtype)));
    }
    const BufferPlace space = workspace ? d.Find(b->workspace.data(), workspace) : BufferPlace{};
    for (size_t k = 0; k < f.kernels.size(); ++k) {
      const Kernel& kernel = f.kernels[k];
      cl_kernel handle = b->kernels[f.first + k];
      const int64_t items = kernel.items(sizes);
      if (items == 0) continue;
      if (items < 0 || items > kMostItems) throw ValueError(Cat("`", f.name, "` asks for ", items, " work-items"));
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
      // Kernels pass over what is beyond their items, so that groups are full.
      const auto all = static_cast<size_t>(items);
      const size_t local = all < b->group ? all : b->group;
      const size_t global = (all + local - 1) / local * local;
      code = api.clEnqueueNDRangeKernel(d.queue(), handle, 1, nullptr, &global, &local, 0, nullptr, nullptr);
      if (code == kInvalidWorkGroupSize) {  // too large for what this kernel needs: the driver chooses
        code = api.clEnqueueNDRangeKernel(d.queue(), handle, 1, nullptr, &global, nullptr, 0, nullptr, nullptr);
      }
      d.Check(code, Cat("launching kernel `", kernel.name, "` on"));
    }
    d.Check(api.clFlush(d.queue()), "launching kernels on");
  }

  std::string text_;
  std::vector<std::string> needs_;
  std::vector<Function> functions_;
  size_t num_kernels_ = 0;
  std::mutex mutex_;
  std::unordered_map<int, std::unique_ptr<Built>> built_;
};

/// (text of a program): a module.
BATON_REGISTER_GLOBAL("opencl.CreateModule").set_body_typed([](std::string text) {
  return runtime::MakeModule<OpenCLModule>(std::move(text));
});
/// (path of a .cl file that such a module wrote): a module.
BATON_REGISTER_GLOBAL("opencl.LoadModule").set_body_typed([](std::string path) {
  std::string text;
  try {
    const support::MappedFile file(path);
    text = std::string(file.text());
  } catch (const std::runtime_error& e) {
    throw RuntimeError(e.what());
  }
  try {
    return runtime::MakeModule<OpenCLModule>(std::move(text));
  } catch (const runtime::Error& e) {
    throw RuntimeError(Cat("cannot load `", path, "`: ", e.message()));
  }
});

}  // namespace
}  // namespace baton::opencl
