// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/array.h>
#include <baton/runtime/registry.h>
#include <baton/runtime/step_clock.h>
#include <baton/support/nearest.h>
#include <baton/support/text.h>
#include <baton/vm/program.h>

#include <algorithm>
#include <map>
#include <memory>

#include "runtime/model_runner.h"
#include "vm/machine.h"
#include "vm/map_tensors.h"

namespace baton::vm {

using runtime::Any;
using runtime::Args;
using runtime::Array;
using runtime::NDArrayObj;
using runtime::RetValue;
using runtime::RuntimeError;
using runtime::String;
using runtime::TensorInfo;
using runtime::ValueError;
using support::Cat;

namespace {

bool IsTensor(const TensorInfo& t) { return !t.dtype.is_handle(); }

constexpr uintptr_t kLeastAlignment = 16;  // of what kernels read in place

const Entry& EntryNamed(const Program& program, const runtime::ArgValue& v) {
  const std::string name = v.As<std::string>();
  if (const Entry* e = program.Find(name)) return *e;
  std::vector<std::string> names;
  for (const Entry& other : program.entries) names.push_back(other.name);
  throw runtime::Error("AttributeError",
                       Cat("the program has no function `", name, "`", support::DidYouMean(name, names)));
}

Array<String> NamesOf(const Program& program) {
  Array<String> names;
  for (const Entry& e : program.entries) names.push_back(String(e.name));
  return names;
}

/// Returns the names of an entry's inputs, or the dtypes: "" for one other than a tensor.
Array<String> NamesOf(const Entry& e, bool dtypes) {
  Array<String> names;
  for (const TensorInfo& t : e.inputs) {
    const std::string dtype = dtypes && IsTensor(t) ? runtime::DataType2String(t.dtype) : "";
    names.push_back(String(dtypes ? dtype : t.name));
  }
  return names;
}

class VmExecutor final : public runtime::ModelRunner {
 public:
  VmExecutor(std::shared_ptr<const Executable> exe, std::vector<Device> devices)
      : machine_(exe, devices), exe_(std::move(exe)) {
    main_ = exe_->program.Find("main");
    if (!main_) return;
    inputs_info_ = &main_->inputs;
    outputs_info_ = &main_->outputs;
    dynamic_ = &main_->dynamic;
    inputs_.resize(main_->inputs.size());
    lends_ = devices.size() <= 1 && std::all_of(main_->outputs.begin(), main_->outputs.end(), IsTensor) &&
             std::none_of(exe_->program.packed.begin(), exe_->program.packed.end(),
                          [](const PackedSlot& s) { return s.maker.empty(); });
    if (!main_->dynamic.defined()) return;
    auto* sizes = reinterpret_cast<runtime::SizesFunction>(
        exe_->code.defined() ? exe_->code->GetSymbol(main_->dynamic.sizes.c_str()) : nullptr);
    if (!sizes) throw RuntimeError(Cat("the compiled program lacks the code of `", main_->dynamic.sizes, "`"));
    own_shapes_ = std::make_unique<runtime::ShapeFrame>(&main_->dynamic, &main_->inputs, sizes);
    shapes_ = own_shapes_.get();
  }
  const char* type_key() const override { return "vm"; }

  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    if (name == "get_devices" && exe_->program.devices.size() > 1) {
      return PackedFunc([this, self](Args, RetValue* rv) {
        Array<Any> out;
        for (const Device& d : machine_.devices()) out.push_back(Any(d));
        *rv = out;
      });
    }
    if (name == "invoke") {
      return PackedFunc([this, self](Args args, RetValue* rv) {
        runtime::ExecutorLock lock(&busy_);
        Invoke(args, rv);
      });
    }
    if (name == "entries") {
      return PackedFunc([this, self](Args, RetValue* rv) { *rv = NamesOf(exe_->program); });
    }
    if (name == "entry_inputs" || name == "entry_dtypes") {  // "" for one other than a tensor
      return PackedFunc([this, self, dtypes = name == "entry_dtypes"](Args args, RetValue* rv) {
        *rv = NamesOf(EntryNamed(exe_->program, args[0]), dtypes);
      });
    }
    PackedFunc common = ModelRunner::GetFunction(name, self);
    if (main_ || common == nullptr || name == "reserve" || name == "trim" || name == "get_memory") return common;
    return PackedFunc([self](Args, RetValue*) {
      throw RuntimeError("the program has no function `main`; call `invoke(name, values...)`");
    });
  }

 protected:
  void Bind(size_t i, const runtime::ArgValue& v, Keep keep) override { inputs_[i] = Value(*main_, i, v, keep); }

  ObjectRef Execute(const Args* args, const RunOptions& options) override {
    if (!args) {
      Run();
      return ObjectRef();
    }
    if (options.want == Want::kOutputs) {
      for (int i = 0; i < args->size(); ++i) Bind(static_cast<size_t>(i), (*args)[i], Keep::kShare);
      Run();
      return outputs_;
    }
    if (!options.profiled) return RunLent(*args, options.given);
    struct NoClock {
      Machine* machine;
      ~NoClock() { machine->SetClock(nullptr); }
    } end{&machine_};
    machine_.SetClock(options.clock);
    return RunLent(*args, options.given);
  }

  ObjectRef Bound(size_t i) const override { return inputs_[i]; }
  ObjectRef Output(size_t i) const override {
    return i < outputs_.size() ? outputs_[static_cast<int64_t>(i)] : ObjectRef();
  }

  std::unique_ptr<runtime::StepClock> MakeClock(int rounds) override {
    std::unique_ptr<runtime::StepClock> clock = runtime::MakeStepClock(exe_->steps, rounds);
    machine_.AddGraphs(clock.get());
    return clock;
  }

  /// Names of each donated input, and of the result that may be in its memory: which one of several, a call decides.
  Array<Any> Donated() const override {
    Array<Any> names;
    for (const int32_t i : main_->donated) {
      names.push_back(Any(main_->inputs[static_cast<size_t>(i)].name));
      names.push_back(Any(main_->outputs.size() == 1 ? main_->outputs[0].name : std::string()));
    }
    return names;
  }

  void Trim() override {
    machine_.Trim();
    outputs_ = Array<ObjectRef>();
  }

  void Reserve(const std::vector<int64_t>& sizes) override {
    const std::vector<runtime::Dim>& dims = main_ ? main_->dynamic.dims : std::vector<runtime::Dim>();
    if (sizes.size() != dims.size()) {
      throw ValueError(Cat("the model has ", dims.size(), " dims, got ", sizes.size()));
    }
    std::map<std::string, int64_t> named;
    for (size_t i = 0; i < dims.size(); ++i) named[dims[i].name] = sizes[i];
    if (shapes_) shapes_->Fresh()->Reserve(sizes);  // refuses what is out of bounds
    machine_.Reserve(named);
  }

  std::vector<int64_t> Memory() const override {
    int64_t outputs = 0;
    for (const ObjectRef& o : outputs_) {
      if (o.as<NDArrayObj>()) outputs += static_cast<int64_t>(Downcast<NDArray>(o).nbytes());
    }
    std::vector<int64_t> out{static_cast<int64_t>(exe_->constants_bytes),
                             static_cast<int64_t>(machine_.workspace_bytes()), outputs,
                             static_cast<int64_t>(machine_.num_plans())};
    if (main_ && !main_->donated.empty()) out.push_back(donated_bytes_);
    return out;
  }

 private:
  /// Asks of the inputs of main what their dimensions promise.
  void CheckShapes() {
    if (!shapes_) return;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (IsTensor(main_->inputs[i])) shapes_->SetInput(i, Downcast<NDArray>(inputs_[i]).tensor()->shape);
    }
    shapes_->Update(nullptr);
  }

  /// The value for these arguments. Memory that the caller lends is forgotten with the call.
  ObjectRef RunLent(Args args, uint64_t given) {
    struct Forget {
      VmExecutor* self;
      Args args;
      ~Forget() {
        for (int i = 0; i < args.size(); ++i) {
          if (!args[i].Is<NDArray>()) self->inputs_[static_cast<size_t>(i)] = ObjectRef();
        }
      }
    } forget{this, args};
    for (int i = 0; i < args.size(); ++i)
      inputs_[static_cast<size_t>(i)] = Value(*main_, static_cast<size_t>(i), args[i], Keep::kForCall);
    CheckShapes();
    return RunGiven(given);
  }

  /// The value for the inputs that are set. `given`: whose arguments the caller gives away, a bit a donated input. They
  /// are not set any more.
  ObjectRef RunGiven(uint64_t given) {
    exe_->constants_file.RequireUnchanged();
    begun_ = true;
    std::vector<ObjectRef> values = inputs_;
    std::vector<const runtime::Object*> arrays;
    std::vector<const void*> memory;
    for (const int32_t i : main_->donated) {
      const bool away = given & 1;
      given >>= 1;
      ObjectRef& input = inputs_[static_cast<size_t>(i)];
      if (!away || !input.as<NDArrayObj>()) continue;
      arrays.push_back(input.get());
      memory.push_back(static_cast<const NDArray&>(input).data());
      input = ObjectRef();
    }
    const ObjectRef value = Own(machine_.Run(main_->function, std::move(values), std::move(arrays)));
    donated_bytes_ = 0;
    if (memory.empty()) return value;
    return MapTensors(
        value,
        [&](const NDArray& tensor) {
          if (std::count(memory.begin(), memory.end(), tensor.data()))
            donated_bytes_ += static_cast<int64_t>(tensor.nbytes());
          return tensor;
        },
        false);
  }

  void Invoke(Args args, RetValue* rv) {
    const Entry* e = &EntryNamed(exe_->program, args[0]);
    if (args.size() - 1 != static_cast<int>(e->inputs.size())) {
      throw runtime::TypeError(Cat("`", e->name, "` takes ", e->inputs.size(), " arguments, got ", args.size() - 1));
    }
    std::vector<ObjectRef> values;
    for (int i = 1; i < args.size(); ++i)
      values.push_back(Value(*e, static_cast<size_t>(i - 1), args[i], Keep::kShare));
    *rv = machine_.Run(e->function, std::move(values));
  }

  void Run() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].defined()) {
        throw ValueError(Cat("input ", i, " `", main_->inputs[i].name, "`: it has not been set"));
      }
    }
    outputs_ = Array<ObjectRef>();
    CheckShapes();
    const ObjectRef value = Own(machine_.Run(main_->function, inputs_));
    Array<ObjectRef> flat;
    std::vector<ObjectRef> work{value};
    while (!work.empty()) {
      const ObjectRef v = work.back();
      work.pop_back();
      if (v.as<runtime::ArrayObj>()) {
        const auto fields = Downcast<Array<ObjectRef>>(v);
        for (size_t i = fields.size(); i-- > 0;) work.push_back(fields[static_cast<int64_t>(i)]);
      } else {
        flat.push_back(v);
      }
    }
    outputs_ = flat;
  }

  /// The value, with copies of tensors that are memory of inputs: the caller may write over those.
  ObjectRef Own(const ObjectRef& value) const {
    return MapTensors(
        value,
        [&](const NDArray& tensor) {
          for (const ObjectRef& input : inputs_) {
            if (!input.as<NDArrayObj>() || tensor.nbytes() == 0) continue;
            const auto& array = static_cast<const NDArray&>(input);
            const auto begin = reinterpret_cast<uintptr_t>(array.data()),
                       at = reinterpret_cast<uintptr_t>(tensor.data());
            if (at >= begin && at < begin + array.nbytes()) return tensor.Copy(tensor.device());
          }
          return tensor;
        },
        false);
  }

  /// An argument as a value, checked against what the entry says of it.
  ObjectRef Value(const Entry& e, size_t i, const runtime::ArgValue& v, Keep keep) const {
    const TensorInfo& want = e.inputs[i];
    const auto fail = [&](std::string_view what) {
      runtime::FailInput(want, i, what, e.name == "main" ? "" : " of `" + e.name + "`");
    };
    if (v.is_null()) fail("expected a value, got None");
    const int32_t where = i < e.devices.size() ? e.devices[i] : -1;
    const Device on = machine_.devices()[static_cast<size_t>(where < 0 ? 0 : where)];
    if (!IsTensor(want)) return where < 0 ? v.As<ObjectRef>() : MoveTo(v.As<ObjectRef>(), on);
    if (!v.Is<DLTensor*>()) fail(Cat("expected a tensor, got ", runtime::ValueKindName(v.raw())));
    const DLTensor* t = v.As<DLTensor*>();
    if (e.name == "main") {
      runtime::CheckTensor(want, i, t);
    } else {
      runtime::CheckTensor(want, i, t, " of `" + e.name + "`");
    }
    if (keep != Keep::kCopy && v.Is<NDArray>())
      return where < 0 ? ObjectRef(v.As<NDArray>()) : MoveTo(v.As<NDArray>(), on);
    const std::vector<int64_t> shape(t->shape, t->shape + t->ndim);
    char* data = static_cast<char*>(t->data) + t->byte_offset;
    if (keep == Keep::kForCall && lends_ && on.device_type == kDLCPU && t->device.device_type == kDLCPU && t->data &&
        runtime::IsContiguous(t) && reinterpret_cast<uintptr_t>(data) % kLeastAlignment == 0) {
      return NDArray::Wrap(data, shape, t->dtype, ObjectRef(), true);
    }
    // Tensors with gaps are brought together on the CPU.
    const bool there = runtime::IsContiguous(t) || on.device_type == kDLCPU;
    NDArray own = NDArray::Empty(shape, t->dtype, there ? on : runtime::Cpu());
    own.CopyFrom(t);
    return MoveTo(own, on);
  }

  Machine machine_;
  std::shared_ptr<const Executable> exe_;
  const Entry* main_ = nullptr;
  std::vector<ObjectRef> inputs_;
  Array<ObjectRef> outputs_;
  std::unique_ptr<runtime::ShapeFrame> own_shapes_;  // of main, if its dimensions have names
  /// Whether memory of a caller's may be an input for the time of a call. Nothing refers to it afterwards: Own() copies
  /// what results have of it, which are tensors, and the functions that are called are the host's, which keep nothing.
  bool lends_ = false;
  int64_t donated_bytes_ = 0;  // of the latest results, in memory of inputs
};

/// For a program in an artifact, whose module holds the code; called by the runtime when it meets one.
BATON_REGISTER_GLOBAL("vm.CreateExecutor").set_body(PackedFunc([](Args args, RetValue* rv) {
  const Module code = args[0].As<Module>();
  const runtime::ExecutableDesc* desc = code.defined() ? code->GetExecutable() : nullptr;
  if (!desc || desc->program.empty()) throw ValueError("the module holds no program of the virtual machine");
  auto exe = std::make_shared<Executable>();
  exe->program = Program::Load(desc->program, desc->constants, desc->constants_bytes, code);
  exe->code = code;
  exe->constants = desc->constants;
  exe->constants_bytes = desc->constants_bytes;
  exe->constants_owner = code;
  exe->constants_file = desc->constants_file;
  for (PackedSlot& s : exe->program.packed) {
    s.function = runtime::FunctionBeside(s.maker, "libbaton_host.so", Cat("the model calls `", s.maker, "`"))(s.params)
                     .As<PackedFunc>();
  }
  exe->device_code = DeviceModulesOf(code, exe->program.devices);
  exe->steps = desc->steps;
  std::vector<Device> devices;
  for (int i = 1; i < args.size(); ++i) devices.push_back(args[i].As<Device>());
  *rv = CreateExecutor(std::move(exe), devices);
}));

}  // namespace

Module CreateExecutor(std::shared_ptr<const Executable> executable, const std::vector<Device>& devices) {
  std::vector<int64_t> types;
  for (const ProgramDevice& d : executable->program.devices) types.push_back(d.type);
  if (types.empty()) {
    for (const Device& d : devices) {
      if (d.device_type == kDLCPU) continue;
      throw RuntimeError(Cat("the model was compiled for the CPU, it cannot run on ", runtime::Device2String(d)));
    }
    return runtime::MakeModule<VmExecutor>(std::move(executable), std::vector<Device>{runtime::Cpu()});
  }
  std::vector<Device> chosen = ChooseDevices(types, devices, "the program");
  return runtime::MakeModule<VmExecutor>(std::move(executable), std::move(chosen));
}

}  // namespace baton::vm
