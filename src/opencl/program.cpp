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
  std::vector<int64_t> args;             // parameter, or -1 - (number in the workspace)
  Formula items;                         // of one dimension, where there are no groups
  std::vector<Formula> groups, threads;  // of three dimensions each: work-groups, and work-items of one
};
struct Param {
  std::string name;
  DataType dtype;
  std::vector<Formula> shape;
};
struct Function {
  std::string name;
  std::vector<Param> params;
  size_t sizes = 0;                             // all of them: those given, then those read
  std::vector<std::pair<size_t, size_t>> read;  // parameter and dimension of each that its shape says
  std::vector<int64_t> order;                   // parameters, and -1 - (number of a size), as arguments come
  size_t given() const { return sizes - read.size(); }
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
    const bool only = name == "main" && functions_.size() == 1;
    for (const Function& f : functions_) {
      if (f.name != name.substr(0, at) && !only) continue;
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
    const int64_t given = j.At("sizes").AsInt();
    if (given < 0 || given > kMostSizes) throw ValueError("a number of sizes that is not possible");
    const Json* read = j.Find("read");
    f.sizes = static_cast<size_t>(given) + (read ? read->AsArray().size() : 0);
    if (f.sizes > kMostSizes) throw ValueError("a number of sizes that is not possible");
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
    if (read) ReadPlaces(read->AsArray(), &f);
    ReadOrder(j.Find("order"), &f);
    for (const Json& k : j.At("kernels").AsArray()) {
      Kernel kernel;
      kernel.name = k.At("name").AsString();
      if (const Json* groups = k.Find("groups")) {
        kernel.groups = Extents(*groups, f);
        kernel.threads = Extents(k.At("threads"), f);
      } else {
        kernel.items = Formula(k.At("items"), f.sizes);
        if (!f.sizes && kernel.items(nullptr) < 1) throw ValueError("a kernel without work-items");
      }
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

  /// Where sizes that are not given are read: (parameter, dimension) of each.
  static void ReadPlaces(const std::vector<Json>& places, Function* f) {
    for (const Json& place : places) {
      const std::vector<Json>& at = place.AsArray();
      const int64_t param = at.size() == 2 ? at[0].AsInt() : -1, dim = at.size() == 2 ? at[1].AsInt() : -1;
      if (param < 0 || param >= static_cast<int64_t>(f->params.size()) || dim < 0 ||
          dim >= static_cast<int64_t>(f->params[static_cast<size_t>(param)].shape.size())) {
        throw ValueError(Cat("`", f->name, "` reads a size where there is none"));
      }
      f->read.emplace_back(static_cast<size_t>(param), static_cast<size_t>(dim));
    }
  }
  /// The order of arguments: as it is written, else parameters and then the sizes that are given.
  static void ReadOrder(const Json* order, Function* f) {
    const auto params = static_cast<int64_t>(f->params.size()), given = static_cast<int64_t>(f->given());
    std::vector<int64_t> plain;
    for (int64_t i = 0; i < params; ++i) plain.push_back(i);
    for (int64_t i = 0; i < given; ++i) plain.push_back(-1 - i);
    if (order) {
      for (const Json& a : order->AsArray()) f->order.push_back(a.AsInt());
    } else {
      f->order = plain;
    }
    if (!std::is_permutation(f->order.begin(), f->order.end(), plain.begin(), plain.end())) {
      throw ValueError(Cat("the order of the arguments of `", f->name, "` does not name each once"));
    }
  }
  static std::vector<Formula> Extents(const Json& j, const Function& f) {
    std::vector<Formula> extents;
    for (const Json& e : j.AsArray()) extents.push_back(Formula(e, f.sizes));
    if (extents.size() != 3)
      throw ValueError(Cat("`", f.name, "` has a kernel whose groups have not three dimensions"));
    return extents;
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
    if (args.size() != static_cast<int>(f.order.size())) {
      throw TypeError(Cat("`", f.name, "` takes ", f.params.size(), " tensors",
                          f.given() ? Cat(" and ", f.given(), " sizes") : std::string(), ", got ", args.size()));
    }
    std::vector<int64_t> sizes(f.given());
    std::vector<const DLTensor*> tensors(f.params.size());
    std::vector<std::string> wheres(f.params.size());
    for (int i = 0; i < args.size(); ++i) {
      const int64_t at = f.order[static_cast<size_t>(i)];
      if (at < 0) {
        sizes[static_cast<size_t>(-1 - at)] = args[i].As<int64_t>();
        continue;
      }
      const auto param = static_cast<size_t>(at);
      const Param& want = f.params[param];
      const std::string where = Cat("`", f.name, "`: argument ", i, " (`", want.name, "`) must ");
      if (args[i].is_null() || !args[i].Is<DLTensor*>()) {
        throw TypeError(Cat(where, "be a tensor, got ", runtime::ValueKindName(args[i].raw())));
      }
      tensors[param] = args[i].As<DLTensor*>();
      if (tensors[param]->ndim != static_cast<int>(want.shape.size())) {
        throw ValueError(Cat(where, "have ", want.shape.size(), " dimensions, got ", tensors[param]->ndim));
      }
      wheres[param] = where;
    }
    for (const auto& [param, dim] : f.read) sizes.push_back(tensors[param]->shape[dim]);
    std::vector<void*> places;
    int number = -1;
    for (size_t i = 0; i < f.params.size(); ++i) {
      const Param& want = f.params[i];
      const std::string& where = wheres[i];
      const DLTensor* t = tensors[i];
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

  /// The work-items of a launch.
  struct Range {
    bool empty = false;
    cl_uint dims = 1;
    size_t global[3] = {1, 1, 1}, local[3] = {1, 1, 1};
  };
  Range RangeOf(const Function& f, const Kernel& kernel, const Built& b, const int64_t* sizes) const {
    Range range;
    if (kernel.groups.empty()) {
      const int64_t items = kernel.items(sizes);
      if (items < 0 || items > kMostItems) throw ValueError(Cat("`", f.name, "` asks for ", items, " work-items"));
      range.empty = items == 0;
      if (range.empty) return range;
      // Kernels pass over what is beyond their items, so that groups are full.
      const auto all = static_cast<size_t>(items);
      range.local[0] = all < b.group ? all : b.group;
      range.global[0] = (all + range.local[0] - 1) / range.local[0] * range.local[0];
      return range;
    }
    range.dims = 3;
    int64_t all = 1, threads = 1;
    for (size_t axis = 0; axis < 3; ++axis) {
      const int64_t group = kernel.groups[axis](sizes), thread = kernel.threads[axis](sizes);
      if (group < 0 || thread < 0 || group > kMostItems || thread > kMostItems || (group && all > kMostItems / group) ||
          (thread && threads > kMostItems / thread)) {
        throw ValueError(Cat("`", f.name, "` asks for ", group, " groups of ", thread, " work-items in kernel `",
                             kernel.name, "`, along ", std::string(1, "xyz"[axis])));
      }
      all *= group, threads *= thread;
      range.local[axis] = static_cast<size_t>(thread);
      range.global[axis] = static_cast<size_t>(group * thread);
    }
    range.empty = all == 0 || threads == 0;
    const auto most = static_cast<int64_t>(b.device->Number<size_t>(kDeviceMaxWorkGroupSize));
    if (threads > most && most > 0) {
      throw ValueError(Cat("kernel `", kernel.name, "` of `", f.name, "` has blocks of ", threads, " threads, ",
                           b.device->Name(), " takes at most ", most, "; split the axes that are bound to threadIdx"));
    }
    return range;
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
      const Range range = RangeOf(f, kernel, *b, sizes);
      if (range.empty) continue;
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
      code = api.clEnqueueNDRangeKernel(d.queue(), handle, range.dims, nullptr, range.global, range.local, 0, nullptr,
                                        nullptr);
      if (code == kInvalidWorkGroupSize && kernel.groups.empty()) {  // too large for this kernel: the driver chooses
        code = api.clEnqueueNDRangeKernel(d.queue(), handle, 1, nullptr, range.global, nullptr, 0, nullptr, nullptr);
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
