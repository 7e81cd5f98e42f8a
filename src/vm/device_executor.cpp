// SPDX-License-Identifier: Apache-2.0
// Runs device graphs. Steps are handed out in order; devices with a queue of their own go on by themselves, and copies
// to the host wait for them.
#include <baton/runtime/array.h>
#include <baton/runtime/executor_queries.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <baton/support/nearest.h>
#include <baton/support/text.h>
#include <baton/vm/device_graph.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace baton::vm {

using runtime::Any;
using runtime::Args;
using runtime::Array;
using runtime::Device;
using runtime::Device2String;
using runtime::DeviceAPI;
using runtime::RetValue;
using runtime::RuntimeError;
using runtime::TensorInfo;
using runtime::ValueError;
using support::Cat;

namespace {

/// Memory that the host's code reads and writes.
bool IsHost(const Device& d) { return d.device_type == kDLCPU || d.device_type == kDLExtDev; }

class DeviceExecutor final : public runtime::ModuleNode {
 public:
  DeviceExecutor(const runtime::Module& code, const std::vector<Device>& given);
  const char* type_key() const override { return "devices"; }

  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    static constexpr std::string_view kNames[] = {"run",
                                                  "run_with",
                                                  "call",
                                                  "set_input",
                                                  "set_input_zero_copy",
                                                  "get_output",
                                                  "get_input",
                                                  "get_num_inputs",
                                                  "get_num_outputs",
                                                  "get_input_index",
                                                  "get_input_name",
                                                  "get_output_name",
                                                  "get_input_info",
                                                  "get_output_info",
                                                  "get_devices"};
    for (int op = 0; op < static_cast<int>(std::size(kNames)); ++op) {
      if (name == kNames[op]) {
        return PackedFunc([this, self, op](Args args, RetValue* rv) { Call(static_cast<Op>(op), args, rv); });
      }
    }
    return PackedFunc();
  }

 private:
  /// In the order of their names above.
  enum Op {
    kRun,
    kRunWith,
    kCall,
    kSetInput,
    kSetInputZeroCopy,
    kGetOutput,
    kGetInput,
    kNumInputs,
    kNumOutputs,
    kInputIndex,
    kInputName,
    kOutputName,
    kInputInfo,
    kOutputInfo,
    kGetDevices,
  };
  struct Step {
    runtime::EntryFunction host = nullptr;  // code of the host: takes the addresses in `args`
    PackedFunc device;                      // code of a device, likewise; neither: a copy from args[0] to args[1]
    std::vector<void*> args;
    std::vector<BatonValue> values;             // the same as values, for `device`
    std::vector<std::pair<size_t, size_t>> io;  // (argument, slot): bound anew in each run
    Device from{}, to{};
    uint64_t bytes = 0;
  };

  void Call(Op op, Args args, RetValue* rv);
  size_t Index(const runtime::ArgValue& v, const std::vector<TensorInfo>& list, const char* kind) const;
  void Set(size_t i, const runtime::ArgValue& v, bool copy);
  void Run();

  runtime::Module code_;
  const runtime::ExecutableDesc* desc_;
  DeviceGraph graph_;
  std::vector<Device> devices_;
  std::vector<NDArray> arenas_;
  std::vector<std::shared_ptr<NDArray>> constants_;
  std::vector<Step> steps_;
  std::vector<NDArray> inputs_, own_, outputs_;
  bool ran_ = false;
  std::atomic<bool> busy_{false};
};

DeviceExecutor::DeviceExecutor(const runtime::Module& code, const std::vector<Device>& given)
    : code_(code), desc_(code->GetExecutable()) {
  graph_ = DeviceGraph::Load(desc_->program, desc_->inputs.size(), desc_->outputs.size(), desc_->constants_bytes);
  ImportDeviceCode(code_);
  runtime::CheckResultTree(desc_->result_tree, desc_->outputs.size());
  runtime::CheckFeatures(desc_->features, "the model");
  std::vector<int64_t> types;
  for (const GraphDevice& d : graph_.devices) types.push_back(d.type);
  devices_ = ChooseDevices(types, given, "the model");
  std::vector<runtime::Module> modules(code_->imports().begin(), code_->imports().end());
  std::vector<runtime::Module> module_of(devices_.size());
  for (size_t i = 0; i < devices_.size(); ++i) {
    const GraphDevice& d = graph_.devices[i];
    arenas_.push_back(NDArray::Empty({static_cast<int64_t>(d.arena_bytes)}, DataType::UInt(8), devices_[i]));
    constants_.push_back(
        devices_[i].device_type == kDLCPU
            ? nullptr
            : UploadConstants(code_, desc_->constants + d.constants_begin, d.constants_bytes, devices_[i]));
    if (d.code.empty()) continue;
    for (runtime::Module& m : modules) {
      if (!m.defined() || !IsDeviceModule(m, d.type)) continue;
      module_of[i] = std::exchange(m, runtime::Module());
      break;
    }
  }
  auto address = [&](const DevicePlace& p) -> void* {
    const auto on = static_cast<size_t>(p.device);
    if (p.kind == DevicePlace::kIo) return nullptr;
    if (p.kind == DevicePlace::kArena) return static_cast<char*>(arenas_[on].data()) + p.at;
    if (constants_[on]) return static_cast<char*>(constants_[on]->data()) + p.at;
    return const_cast<uint8_t*>(desc_->constants) + graph_.devices[on].constants_begin + p.at;
  };
  for (const GraphStep& s : graph_.steps) {
    Step step;
    for (const DevicePlace& p : s.args) {
      if (p.kind == DevicePlace::kIo) {
        const auto slot = static_cast<size_t>(p.at), inputs = desc_->inputs.size();
        const TensorInfo& t = slot < inputs ? desc_->inputs[slot] : desc_->outputs[slot - inputs];
        if (s.bytes > runtime::TensorBytes(t.shape, t.dtype)) {
          throw RuntimeError(Cat("the compiled program copies more than `", t.name, "` has"));
        }
        step.io.push_back({step.args.size(), slot});
      }
      step.args.push_back(address(p));
    }
    const Device on = devices_[static_cast<size_t>(s.device)];
    if (s.symbol.empty()) {
      step.from = devices_[static_cast<size_t>(s.args[0].device)];
      step.to = devices_[static_cast<size_t>(s.args[1].device)];
      step.bytes = s.bytes;
    } else if (const runtime::Module& m = module_of[static_cast<size_t>(s.device)]; m.defined()) {
      step.device = m.GetFunction(Cat(s.symbol, "@", on.device_id));
      if (!step.device.defined()) throw RuntimeError(Cat("the compiled program lacks the code of `", s.symbol, "`"));
      for (void* a : step.args) step.values.push_back(BatonValue{kBatonHandle, 0, {.v_handle = a}});
    } else {
      if (!IsHost(on)) throw RuntimeError(Cat("the model has no code for ", Device2String(on)));
      step.host = reinterpret_cast<runtime::EntryFunction>(code_->GetSymbol(s.symbol.c_str()));
      if (!step.host) throw RuntimeError(Cat("the compiled program lacks the code of `", s.symbol, "`"));
    }
    steps_.push_back(std::move(step));
  }
  inputs_.resize(desc_->inputs.size());
  own_.resize(desc_->inputs.size());
  outputs_.resize(desc_->outputs.size());
}

size_t DeviceExecutor::Index(const runtime::ArgValue& v, const std::vector<TensorInfo>& list, const char* kind) const {
  if (v.type_code() == kBatonInt) {
    const int64_t i = v.As<int64_t>();
    if (i < 0 || i >= static_cast<int64_t>(list.size())) {
      throw runtime::Error("IndexError", Cat("there is no ", kind, " ", i, ": the model has ", list.size()));
    }
    return static_cast<size_t>(i);
  }
  const std::string name = v.As<std::string>();
  std::vector<std::string> names;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) return i;
    names.push_back(list[i].name);
  }
  throw runtime::Error("KeyError", Cat("the model has no ", kind, " `", name, "`", support::DidYouMean(name, names)));
}

void DeviceExecutor::Set(size_t i, const runtime::ArgValue& v, bool copy) {
  const TensorInfo& want = desc_->inputs[i];
  auto fail = [&](const std::string& what) -> void {
    throw ValueError(Cat("input ", i, " `", want.name, "`: ", what));
  };
  if (v.is_null() || !v.Is<DLTensor*>()) fail(Cat("expected a tensor, got ", runtime::ValueKindName(v.raw())));
  const DLTensor* t = v.As<DLTensor*>();
  bool same = t->ndim == static_cast<int>(want.shape.size()) && DataType(t->dtype) == want.dtype;
  for (int d = 0; same && d < t->ndim; ++d) same = t->shape[d] == want.shape[static_cast<size_t>(d)];
  if (!same) {
    fail(Cat("expected ", runtime::TensorTypeString(want.shape.data(), static_cast<int>(want.shape.size()), want.dtype),
             ", got ", runtime::TensorTypeString(t->shape, t->ndim, t->dtype)));
  }
  const Device on = devices_[static_cast<size_t>(graph_.inputs[i])];
  const bool usable = t->device.device_type == on.device_type && t->device.device_id == on.device_id &&
                      runtime::IsContiguous(t) && (reinterpret_cast<uintptr_t>(t->data) + t->byte_offset) % 16 == 0;
  if (!copy && usable && v.Is<NDArray>()) {
    inputs_[i] = v.As<NDArray>();
    return;
  }
  NDArray& own = own_[i];
  // The array returned by get_input may still be referenced; its value must not change.
  if (!own.defined() || own.obj()->use_count() > (inputs_[i].same_as(own) ? 2 : 1)) {
    own = NDArray::Empty(want.shape, want.dtype, on);
  }
  if (runtime::IsContiguous(t) || on.device_type == kDLCPU) {
    own.CopyFrom(t);
  } else {  // from elements with gaps on the CPU to another device
    NDArray dense = NDArray::Empty(want.shape, want.dtype);
    dense.CopyFrom(t);
    own.CopyFrom(dense);
  }
  inputs_[i] = own;
}

void DeviceExecutor::Run() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].defined())
      throw ValueError(Cat("input ", i, " `", desc_->inputs[i].name, "`: it has not been set"));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    // An output that the caller still holds keeps its value: this run writes into a new one.
    if (!outputs_[i].defined() || outputs_[i].obj()->use_count() > 1) {
      const TensorInfo& t = desc_->outputs[i];
      outputs_[i] = NDArray::Empty(t.shape, t.dtype, devices_[static_cast<size_t>(graph_.outputs[i])]);
    }
  }
  ran_ = false;
  for (Step& s : steps_) {
    for (const auto& [arg, slot] : s.io) {
      s.args[arg] = slot < inputs_.size() ? inputs_[slot].data() : outputs_[slot - inputs_.size()].data();
      if (!s.values.empty()) s.values[arg].v_handle = s.args[arg];
    }
    if (s.host) {
      if (s.host(s.args.data(), nullptr, nullptr, nullptr) != 0) {
        if (*BatonErrorMessage() == '\0') throw RuntimeError("the model failed without saying why");
        runtime::ThrowFromSlot();
      }
    } else if (s.device.defined()) {
      s.device.CallPacked(s.values.data(), static_cast<int>(s.values.size()));
    } else if (s.bytes) {
      DeviceAPI::Get(s.to.device_type == kDLCPU ? s.from : s.to)->Copy(s.args[0], s.from, s.args[1], s.to, s.bytes);
    }
  }
  ran_ = true;
}

Array<Any> InfoOf(const TensorInfo& t) {
  Array<Any> out;
  out.push_back(Any(t.name));
  out.push_back(Any(Array<int64_t>(t.shape)));
  out.push_back(Any(t.dtype));
  return out;
}

void DeviceExecutor::Call(Op op, Args args, RetValue* rv) {
  struct Exclusive {
    std::atomic<bool>* busy;
    explicit Exclusive(std::atomic<bool>* b) : busy(b) {
      if (busy && busy->exchange(true, std::memory_order_acquire)) {
        throw RuntimeError(
            "this executor is in use by another thread (or by itself, from a callback); make one for each thread, they "
            "share code and weights");
      }
    }
    ~Exclusive() {
      if (busy) busy->store(false, std::memory_order_release);
    }
  } lock(op < kNumInputs ? &busy_ : nullptr);
  switch (op) {
    case kRun:
      return Run();
    case kRunWith:
    case kCall: {
      if (args.size() != static_cast<int>(inputs_.size())) {
        throw runtime::TypeError(Cat("the model has ", inputs_.size(), " inputs, got ", args.size()));
      }
      for (int i = 0; i < args.size(); ++i) Set(static_cast<size_t>(i), args[i], false);
      Run();
      if (op == kCall) {
        *rv = runtime::ResultValue(desc_->result_tree, outputs_);
      } else {
        *rv = Array<NDArray>(outputs_);
      }
      return;
    }
    case kSetInput:
    case kSetInputZeroCopy:
      return Set(Index(args[0], desc_->inputs, "input"), args[1], op == kSetInput);
    case kGetOutput: {
      const size_t i = Index(args[0], desc_->outputs, "output");
      if (!ran_) throw RuntimeError("the model has not run yet: call run() before get_output()");
      *rv = outputs_[i];
      if (args.size() > 1) {
        outputs_[i].CopyTo(args[1].As<DLTensor*>());
        *rv = args[1];
      }
      return;
    }
    case kGetInput:
      *rv = inputs_[Index(args[0], desc_->inputs, "input")];
      return;
    case kNumInputs:
      *rv = desc_->inputs.size();
      return;
    case kNumOutputs:
      *rv = desc_->outputs.size();
      return;
    case kInputIndex: {
      const std::string want = args[0].As<std::string>();
      int64_t found = -1;
      for (size_t i = 0; i < desc_->inputs.size(); ++i) {
        if (desc_->inputs[i].name == want) found = static_cast<int64_t>(i);
      }
      *rv = found;
      return;
    }
    case kInputName:
      *rv = desc_->inputs[Index(args[0], desc_->inputs, "input")].name;
      return;
    case kOutputName:
      *rv = desc_->outputs[Index(args[0], desc_->outputs, "output")].name;
      return;
    case kInputInfo:
      *rv = InfoOf(desc_->inputs[Index(args[0], desc_->inputs, "input")]);
      return;
    case kOutputInfo:
      *rv = InfoOf(desc_->outputs[Index(args[0], desc_->outputs, "output")]);
      return;
    case kGetDevices: {
      Array<Any> out;
      for (const Device& d : devices_) out.push_back(Any(d));
      *rv = out;
      return;
    }
  }
}

}  // namespace

std::vector<Device> ChooseDevices(const std::vector<int64_t>& types, const std::vector<Device>& given,
                                  const char* what) {
  std::vector<Device> out;
  std::string wanted;
  for (int64_t type : types) {
    out.push_back({static_cast<DLDeviceType>(type), 0});
    const std::string name = Device2String(out.back());
    wanted += Cat(wanted.empty() ? "" : " and ", name.substr(0, name.find('(')));
  }
  std::vector<bool> taken(out.size());
  for (const Device& g : given) {
    size_t at = 0;
    while (at < out.size() && (out[at].device_type != g.device_type || taken[at])) ++at;
    // The host is there anyway.
    if (at == out.size() && g.device_type == kDLCPU) continue;
    if (at == out.size()) {
      throw RuntimeError(Cat(what, " was compiled for ", wanted, ", it cannot run on ", Device2String(g)));
    }
    out[at] = g;
    taken[at] = true;
  }
  for (const Device& d : out) {
    try {
      DeviceAPI::Get(d);
    } catch (const runtime::Error& e) {
      if (types.size() == 1) throw;
      throw RuntimeError(Cat(what, " was compiled for ", wanted, ": ", e.what()));
    }
  }
  return out;
}

std::shared_ptr<NDArray> UploadConstants(const ObjectRef& owner, const uint8_t* data, uint64_t bytes, Device device) {
  static std::mutex mutex;
  static std::map<std::pair<const Object*, std::pair<int, int>>, std::weak_ptr<NDArray>> all;
  std::lock_guard lock(mutex);
  // An executor keeps the owner, so an address that is found belongs to the one that is asked for.
  std::weak_ptr<NDArray>& slot = all[{owner.get(), {device.device_type, device.device_id}}];
  if (std::shared_ptr<NDArray> there = slot.lock()) return there;
  auto made = std::make_shared<NDArray>(NDArray::Empty({static_cast<int64_t>(bytes)}, DataType::UInt(8), device));
  if (bytes) DeviceAPI::Get(device)->Copy(data, runtime::Cpu(), made->data(), device, bytes);
  slot = made;
  return made;
}

runtime::Module CreateDeviceExecutor(const runtime::Module& code, const std::vector<Device>& devices) {
  return runtime::MakeModule<DeviceExecutor>(code, devices);
}

}  // namespace baton::vm
