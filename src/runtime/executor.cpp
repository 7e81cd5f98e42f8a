// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/array.h>
#include <baton/runtime/bytes.h>
#include <baton/runtime/executor_queries.h>
#include <baton/runtime/module.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/params.h>
#include <baton/runtime/registry.h>
#include <baton/runtime/step_clock.h>
#include <baton/support/text.h>

#include <atomic>
#include <cstring>
#include <memory>

namespace baton::runtime {
using support::Cat;
namespace {

class Executor final : public ModuleNode {
 public:
  Executor(Module code, Device device);
  ~Executor() override = default;
  const char* type_key() const override { return "executor"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override;

 private:
  /// The functions, in the order of their names in GetFunction.
  enum Op {
    kRun,
    kRunWith,
    kCall,
    kProfile,
    kSetInput,
    kSetInputZeroCopy,
    kGetOutput,
    kGetInput,
    kLoadParams,
    kReserve,
    kTrim,
    kGetMemory,
    kGetDims,
    kInferShapes,
    kQuery  // and behind it, what all executors answer alike
  };
  void Call(Op op, Args args, RetValue* rv);

  struct Input {
    NDArray array;  // what is read; null until it is set
    NDArray own;    // our buffer for copies, made when first needed
  };

  [[noreturn]] void FailInput(size_t i, std::string_view what) const {
    throw ValueError(Cat("input ", i, " `", desc_->inputs[i].name, "`: ", what));
  }
  void CheckTensor(const TensorInfo& want, size_t i, const DLTensor* t) const;
  /// As many arguments as inputs.
  void CheckCount(Args args) const {
    if (args.size() == static_cast<int>(inputs_.size())) return;
    throw TypeError(Cat("the model has ", inputs_.size(), " inputs, got ", args.size()));
  }
  bool Usable(const DLTensor* t) const {
    const uintptr_t p = reinterpret_cast<uintptr_t>(t->data) + t->byte_offset;
    return t->device.device_type == kDLCPU && p % desc_->io_alignment == 0 && IsContiguous(t);
  }
  void SetCopy(size_t i, const DLTensor* t);
  /// `for_call`: the value need not outlive the call in which the model runs.
  void SetShared(size_t i, const ArgValue& v, bool for_call);
  /// Runs on the bound inputs. `all_bound`: all were bound by this call.
  /// `clock`: takes the times of its steps.
  void Run(bool all_bound = false, StepClock* clock = nullptr);
  /// The times of the steps of calls with inputs behind the number of rounds, and the value.
  Array<Any> Profile(Args args);
  /// Brings sizes, arena and shapes of the outputs up to date with the inputs.
  void UpdateShapes();
  void GrowArena();
  std::vector<int64_t> OutputShape(size_t i) const {
    std::vector<int64_t> shape = desc_->outputs[i].shape;
    if (shapes_) shapes_->FillShape(inputs_.size() + i, &shape);
    return shape;
  }
  void Reserve(Args args);
  /// Shapes of the outputs for shapes of all inputs: rank and extents of one after the other.
  Array<int64_t> InferShapes(Args args);
  NDArray Output(size_t i) const;

  Module code_;
  const ExecutableDesc* desc_;
  EntryFunction entry_;
  NDArray arena_;
  std::unique_ptr<ShapeFrame> shapes_;  // of a model with dynamic shapes
  std::vector<Input> inputs_;
  std::vector<NDArray> outputs_;
  std::vector<void*> io_;
  size_t unset_;
  bool ran_ = false;
  std::atomic<bool> busy_{false};
};

Executor::Executor(Module code, Device device) : code_(std::move(code)) {
  desc_ = code_.defined() ? code_->GetExecutable() : nullptr;
  if (!desc_) {
    throw ValueError(Cat("a module of kind `", code_.defined() ? code_->type_key() : "None",
                         "` holds no model that an executor could run"));
  }
  if (device.device_type != kDLCPU) {
    throw RuntimeError(Cat("the model was compiled for the CPU, it cannot run on ", Device2String(device)));
  }
  CheckFeatures(desc_->features, "the model");
  CheckResultTree(desc_->result_tree, desc_->outputs.size());
  entry_ = reinterpret_cast<EntryFunction>(code_->GetSymbol(desc_->entry.c_str()));
  if (!entry_) throw InternalError(Cat("the module has no symbol `", desc_->entry, "`"));
  if (desc_->arena_bytes > (uint64_t(1) << 62)) throw ValueError("the model wants more memory than there is");
  arena_ = NDArray::Empty({static_cast<int64_t>(desc_->arena_bytes)}, DataType::UInt(8));
  unset_ = desc_->inputs.size();
  inputs_.resize(desc_->inputs.size());
  if (const DynamicShapes& dynamic = desc_->dynamic; dynamic.defined()) {
    auto* sizes = reinterpret_cast<SizesFunction>(code_->GetSymbol(dynamic.sizes.c_str()));
    if (!sizes) throw InternalError(Cat("the module has no symbol `", dynamic.sizes, "`"));
    shapes_ = std::make_unique<ShapeFrame>(&dynamic, &desc_->inputs, sizes);
  }
  for (const TensorInfo& t : desc_->outputs) {
    outputs_.push_back(shapes_ ? NDArray() : NDArray::Empty(t.shape, t.dtype));
  }
  io_.resize(inputs_.size() + outputs_.size(), nullptr);
}

void Executor::CheckTensor(const TensorInfo& want, size_t i, const DLTensor* t) const {
  bool same =
      t->ndim == static_cast<int>(want.shape.size()) && DataType(t->dtype) == want.dtype && (t->shape || !t->ndim);
  bool empty = false;
  for (int d = 0; same && d < t->ndim; ++d) {
    empty = empty || t->shape[d] == 0;
    const int64_t extent = want.shape[static_cast<size_t>(d)];
    same = extent < 0 ? t->shape[d] >= 0 : t->shape[d] == extent;
  }
  if (same && (t->data || empty)) [[likely]]
    return;
  if (same) FailInput(i, "a tensor without data");
  if (t->ndim < 0 || t->ndim > 64 || (t->ndim && !t->shape)) FailInput(i, "not a tensor");
  FailInput(i, Cat("expected ", TensorInfoString(want), ", got ", TensorTypeString(t->shape, t->ndim, t->dtype)));
}

void Executor::SetCopy(size_t i, const DLTensor* t) {
  const TensorInfo& want = desc_->inputs[i];
  CheckTensor(want, i, t);
  if (shapes_) shapes_->SetInput(i, t->shape);
  Input& in = inputs_[i];
  const std::vector<int64_t> shape(t->shape, t->shape + t->ndim);
  // The array returned by get_input may still be referenced; its value must not change.
  if (!in.own.defined() || in.own.obj()->use_count() > (in.array.same_as(in.own) ? 2 : 1) || in.own.shape() != shape) {
    in.own = NDArray::Empty(shape, want.dtype);
  }
  in.own.CopyFrom(t);
  if (!in.array.defined()) --unset_;
  in.array = in.own;
  io_[i] = in.own.data();
}

void Executor::SetShared(size_t i, const ArgValue& v, bool for_call) {
  if (v.is_null()) FailInput(i, "expected a tensor, got None");
  if (!v.Is<DLTensor*>()) FailInput(i, Cat("expected a tensor, got ", ValueKindName(v.raw())));
  const DLTensor* t = v.As<DLTensor*>();
  CheckTensor(desc_->inputs[i], i, t);
  const bool counted = v.type_code() == kBatonObject;
  if (!Usable(t) || !(counted || for_call)) return SetCopy(i, t);
  if (shapes_) shapes_->SetInput(i, t->shape);
  Input& in = inputs_[i];
  if (!counted) {
    // Borrowed for the time of the call: used in place, and forgotten after it.
    if (in.array.defined()) ++unset_;
    in.array = NDArray();
    io_[i] = static_cast<char*>(t->data) + t->byte_offset;
    return;
  }
  if (!in.array.defined()) --unset_;
  in.array = v.As<NDArray>();
  io_[i] = in.array.data();
}

void Executor::Run(bool all_bound, StepClock* clock) {
  if (unset_ && !all_bound) [[unlikely]] {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].array.defined())
        FailInput(i, Cat("it has not been set; expected ", TensorInfoString(desc_->inputs[i])));
    }
  }
  ran_ = false;
  desc_->constants_file.RequireUnchanged();
  if (shapes_) UpdateShapes();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    // An output that the caller still holds keeps its value: this run writes into a new one.
    if (!outputs_[i].defined() || outputs_[i].obj()->use_count() > 1) {
      outputs_[i] = NDArray::Empty(OutputShape(i), desc_->outputs[i].dtype);
    }
    io_[inputs_.size() + i] = outputs_[i].data();
  }
  const int64_t* words = shapes_ ? shapes_->words() : nullptr;
  auto* arena = static_cast<uint8_t*>(arena_.data());
  const int32_t code = clock ? clock->Run(0, io_.data(), desc_->constants, arena, words)
                             : entry_(io_.data(), desc_->constants, arena, words);
  if (code != 0) [[unlikely]]
    ThrowFromSlot();
  ran_ = true;
}

Array<Any> Executor::Profile(Args args) {
  const auto clock = MakeStepClock(desc_->steps, args[0].As<int>());
  clock->AddGraph(code_, desc_->entry, entry_, desc_->dynamic.words);
  args = Args{args.values + 1, args.size() - 1};
  CheckCount(args);
  const ObjectRef value = clock->Rounds([&](StepClock* now) {
    for (int i = 0; i < args.size(); ++i) SetShared(static_cast<size_t>(i), args[i], true);
    Run(true, now);
    return ResultValue(desc_->result_tree, outputs_);
  });
  return clock->Answer(value);
}

void Executor::GrowArena() {
  if (shapes_->arena_bytes() <= arena_.nbytes()) return;
  arena_ = NDArray();  // before there is another
  try {
    arena_ = NDArray::Empty({static_cast<int64_t>(shapes_->arena_bytes())}, DataType::UInt(8));
  } catch (...) {
    shapes_->Trim();  // a plan that memory does not hold is not kept
    throw;
  }
}

void Executor::UpdateShapes() {
  if (!shapes_->Update(io_.data())) return;
  GrowArena();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].defined() && outputs_[i].shape() != OutputShape(i)) outputs_[i] = NDArray();
  }
}

void Executor::Reserve(Args args) {
  if (!shapes_) return;
  shapes_->Reserve(args[0].As<Array<int64_t>>().ToVector());
  GrowArena();
  std::memset(arena_.data(), 0, arena_.nbytes());  // pages come now, not with the first call
}

Array<int64_t> Executor::InferShapes(Args args) {
  CheckCount(args);
  if (desc_->dynamic.reads_values) throw UnsupportedError("the shapes of the results depend on values of the inputs");
  std::unique_ptr<ShapeFrame> frame;
  if (shapes_) frame = shapes_->Fresh();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const TensorInfo& want = desc_->inputs[i];
    std::vector<int64_t> shape = args[static_cast<int>(i)].As<Array<int64_t>>().ToVector();
    const DLTensor t{io_.data(), Cpu(), static_cast<int>(shape.size()), want.dtype, shape.data(), nullptr, 0};
    CheckTensor(want, i, &t);
    if (frame) frame->SetInput(i, shape.data());
  }
  if (frame) frame->Update(io_.data());
  Array<int64_t> out;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    std::vector<int64_t> shape = desc_->outputs[i].shape;
    if (frame) frame->FillShape(inputs_.size() + i, &shape);
    out.push_back(static_cast<int64_t>(shape.size()));
    for (int64_t n : shape) out.push_back(n);
  }
  return out;
}

NDArray Executor::Output(size_t i) const {
  if (!ran_) throw RuntimeError("the model has not run yet: call run() before get_output()");
  return outputs_[i];
}

void Executor::Call(Op op, Args args, RetValue* rv) {
  if (op >= kQuery) return AnswerExecutorQuery(op - kQuery, desc_->inputs, desc_->outputs, args, rv);
  ExecutorLock lock(&busy_);
  switch (op) {
    case kRun:
      return Run();
    case kRunWith:
    case kCall:
      CheckCount(args);
      for (int i = 0; i < args.size(); ++i) SetShared(static_cast<size_t>(i), args[i], true);
      Run(true);
      if (op == kCall) {
        *rv = ResultValue(desc_->result_tree, outputs_);
      } else {
        *rv = Array<NDArray>(outputs_);
      }
      return;
    case kProfile:
      *rv = Profile(args);
      return;
    case kSetInput: {
      const size_t i = FindTensor(args[0], desc_->inputs, "input");
      if (!args[1].Is<DLTensor*>()) FailInput(i, Cat("expected a tensor, got ", ValueKindName(args[1].raw())));
      return SetCopy(i, args[1].As<DLTensor*>());
    }
    case kSetInputZeroCopy:
      return SetShared(FindTensor(args[0], desc_->inputs, "input"), args[1], false);
    case kGetOutput: {
      const NDArray out = Output(FindTensor(args[0], desc_->outputs, "output"));
      *rv = out;
      if (args.size() > 1) {
        out.CopyTo(args[1].As<DLTensor*>());
        *rv = args[1];
      }
      return;
    }
    case kGetInput:
      *rv = inputs_[FindTensor(args[0], desc_->inputs, "input")].array;
      return;
    case kLoadParams: {
      const Map<String, NDArray> params = LoadParams(args[0].As<Bytes>().view(), "parameters");
      for (const auto& [key, value] : params) {
        SetCopy(FindTensor(ArgValue(Any(key).raw()), desc_->inputs, "input"), value.tensor());
      }
      return;
    }
    case kReserve:
      return Reserve(args);
    case kTrim:
      if (!shapes_) return;
      shapes_->Trim();
      arena_ = NDArray::Empty({0}, DataType::UInt(8));
      for (NDArray& out : outputs_) out = NDArray();
      ran_ = false;
      return;
    case kGetMemory: {
      int64_t outputs = 0;
      for (const NDArray& out : outputs_) outputs += out.defined() ? static_cast<int64_t>(out.nbytes()) : 0;
      Array<int64_t> out;
      out.push_back(static_cast<int64_t>(desc_->constants_bytes));
      out.push_back(static_cast<int64_t>(arena_.nbytes()));
      out.push_back(outputs);
      out.push_back(shapes_ ? static_cast<int64_t>(shapes_->num_plans()) : 0);
      *rv = out;
      return;
    }
    case kGetDims:
      *rv = DimFields(desc_->dynamic.dims);
      return;
    case kInferShapes:
      *rv = InferShapes(args);
      return;
    default:
      return;
  }
}

PackedFunc Executor::GetFunction(std::string_view name, const ObjectPtr<Object>& self) {
  static constexpr std::string_view kNames[] = {
      "run",         "run_with", "call", "profile",    "set_input", "set_input_zero_copy", "get_output", "get_input",
      "load_params", "reserve",  "trim", "get_memory", "get_dims",  "infer_shapes"};
  int op = kRun;
  while (op < kQuery && name != kNames[op]) ++op;
  if (op == kQuery) {
    const int query = FindExecutorQuery(name);
    if (query < 0) return PackedFunc();
    op += query;
  }
  // The function keeps the executor alive.
  return PackedFunc([this, self, op](Args args, RetValue* rv) { Call(static_cast<Op>(op), args, rv); });
}

}  // namespace

const char* LoadBeside(const char* library);  // device_api.cpp

const PackedFunc& FunctionBeside(const std::string& name, const char* library, std::string_view why) {
  const PackedFunc* f = Registry::Get(name);
  if (!f) {
    const char* wrong = LoadBeside(library);
    f = Registry::Get(name);
    if (!f) {
      throw RuntimeError(Cat(why, " and needs the library ", library,
                             " of this version beside libbaton_runtime.so: ", wrong ? wrong : name.c_str()));
    }
  }
  return *f;
}

/// A function of the library that runs programs.
const PackedFunc& ProgramFunction(const char* name) {
  return FunctionBeside(name, "libbaton_vm.so", "the model has control flow, states, imports or several devices");
}

Module CreateExecutorOn(const Module& code, const Args& devices) {
  const ExecutableDesc* desc = code.defined() ? code->GetExecutable() : nullptr;
  if (desc && !(desc->program.empty() && desc->state.empty())) {
    // The module, then its devices: no program knows more than seven.
    const Any self(code);
    BatonValue values[8] = {self.raw()};
    int n = 1;
    for (; n < 8 && n <= devices.num_args; ++n) values[n] = devices.values[n - 1];
    return ProgramFunction(desc->state.empty() ? "vm.CreateExecutor" : "vm.CreateSession")
        .CallPacked(values, n)
        .As<Module>();
  }
  return MakeModule<Executor>(code, devices.size() ? devices[0].As<Device>() : Cpu());
}

Module CreateExecutor(const Module& code, Device device) {
  const Any given(device);
  return CreateExecutorOn(code, Args{&given.raw(), 1});
}

}  // namespace baton::runtime
