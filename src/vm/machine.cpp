// SPDX-License-Identifier: Apache-2.0
#include "vm/machine.h"

#include <baton/runtime/array.h>
#include <baton/runtime/c_backend_api.h>
#include <baton/runtime/executor_queries.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/packed_func.h>
#include <baton/support/text.h>

#include <algorithm>
#include <cstring>

namespace baton::vm {

using runtime::Array;
using runtime::NDArrayObj;
using runtime::RuntimeError;
using runtime::TensorInfo;
using support::Cat;

namespace {

std::string Kind(const ObjectRef& v) {
  if (!v.defined()) return "nothing";
  if (v.as<NDArrayObj>()) {
    const DLTensor* t = static_cast<const NDArray&>(v).tensor();
    return runtime::TensorTypeString(t->shape, t->ndim, t->dtype);
  }
  return v.get()->GetTypeKey();
}

bool IsHost(const Device& d) { return d.device_type == kDLCPU || d.device_type == kDLExtDev; }

constexpr uint64_t kReservedBytes = 4096;  // what is smaller has pages of others

/// The host gives memory its pages when it is written: now, not with the first call.
void TakePages(const NDArray& memory) {
  if (IsHost(memory.device())) std::memset(memory.data(), 0, memory.nbytes());
}

/// A tensor as compiled code wants it: on the device, dense, aligned; a copy where it is not.
NDArray ForKernel(const ObjectRef& v, const TensorInfo& want, const Kernel& kernel, Device on) {
  const auto* n = v.as<NDArrayObj>();
  bool same =
      n && n->dl_tensor.ndim == static_cast<int>(want.shape.size()) && DataType(n->dl_tensor.dtype) == want.dtype;
  for (size_t d = 0; same && d < want.shape.size(); ++d) {
    same = n->dl_tensor.shape[d] == want.shape[d] || want.shape[d] < 0;
  }
  if (!same) {
    throw RuntimeError(Cat(
        "`", kernel.symbol, "` was given ", Kind(v), " where ",
        runtime::TensorTypeString(want.shape.data(), static_cast<int>(want.shape.size()), want.dtype), " is expected"));
  }
  const auto& given = static_cast<const NDArray&>(v);
  const bool there = runtime::operator==(given.device(), on);
  if (there && given.IsContiguous() && reinterpret_cast<uintptr_t>(given.data()) % 16 == 0) return given;
  // Elements with gaps are brought together on the CPU.
  const NDArray dense = given.IsContiguous() ? given : given.Contiguous();
  return dense.Copy(on);
}

}  // namespace

Machine::Machine(std::shared_ptr<const Executable> executable, std::vector<Device> devices)
    : exe_(std::move(executable)), devices_(std::move(devices)) {
  const Program& p = exe_->program;
  if (devices_.size() != p.NumDevices())
    throw RuntimeError("a machine with another number of devices than its program");
  std::vector<uint64_t> arenas(devices_.size());
  for (const Kernel& k : p.kernels) {
    const auto d = static_cast<size_t>(k.device);
    void* code = nullptr;
    if (k.steps.empty()) {
      code = exe_->code.defined() ? exe_->code->GetSymbol(k.symbol.c_str()) : nullptr;
      if (!code || !IsHost(devices_[d]))
        throw RuntimeError(Cat("the compiled program lacks the code of `", k.symbol, "`"));
    }
    code_.push_back(reinterpret_cast<runtime::EntryFunction>(code));
    shapes_.push_back(nullptr);
    if (k.dynamic.defined()) {
      auto* sizes = reinterpret_cast<runtime::SizesFunction>(exe_->code->GetSymbol(k.dynamic.sizes.c_str()));
      if (!sizes) throw RuntimeError(Cat("the compiled program lacks the code of `", k.dynamic.sizes, "`"));
      shapes_.back() = std::make_unique<runtime::ShapeFrame>(&k.dynamic, &k.inputs, sizes);
    }
    uint64_t& arena = arenas[ArenaOf(code_.size() - 1)];
    arena = k.arena_bytes > arena ? k.arena_bytes : arena;
  }
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (arenas[d] > (uint64_t{1} << 62)) throw RuntimeError("the program wants more memory than there is");
    arenas_.push_back(NDArray::Empty({static_cast<int64_t>(arenas[d])}, DataType::UInt(8), devices_[d]));
    const bool upload = d < p.devices.size() && p.devices[d].constants_bytes && !IsHost(devices_[d]);
    uploaded_.push_back(upload ? UploadConstants(exe_->constants_owner, exe_->constants + p.devices[d].constants_begin,
                                                 p.devices[d].constants_bytes, devices_[d])
                               : nullptr);
  }
  constants_ = p.constants;
  for (size_t i = 0; i < p.constant_devices.size(); ++i) {
    if (p.constant_devices[i]) constants_[i] = constants_[i].Copy(devices_[static_cast<size_t>(p.constant_devices[i])]);
  }
  steps_.resize(p.kernels.size());
  for (size_t k = 0; k < p.kernels.size(); ++k) PrepareSteps(k);
}

void Machine::PrepareSteps(size_t kernel) {
  const Kernel& k = exe_->program.kernels[kernel];
  const auto d = static_cast<size_t>(k.device);
  for (const KernelStep& s : k.steps) {
    Step step;
    for (const StepPlace& place : s.args) {
      void* address = nullptr;
      if (place.kind == StepPlace::kConstant) {
        if (!uploaded_[d]) throw RuntimeError(Cat("`", k.symbol, "` reads constants that are not there"));
        address = static_cast<char*>(uploaded_[d]->data()) + place.at;
      } else {
        step.bound.push_back(step.args.size());
      }
      step.args.push_back(BatonValue{kBatonHandle, 0, {.v_handle = address}});
    }
    if (!s.symbol.empty()) {
      const Module code = d < exe_->device_code.size() ? exe_->device_code[d] : Module();
      if (code.defined()) step.code = code.GetFunction(Cat(s.symbol, "@", devices_[d].device_id));
      if (!step.code.defined()) throw RuntimeError(Cat("the compiled program lacks the code of `", s.symbol, "`"));
    }
    steps_[kernel].push_back(std::move(step));
  }
}

/// The addresses of inputs and outputs are in `io_`.
void Machine::RunSteps(size_t kernel) {
  const Kernel& k = exe_->program.kernels[kernel];
  const Device on = devices_[static_cast<size_t>(k.device)];
  const int64_t* words = shapes_[kernel] ? shapes_[kernel]->words() : nullptr;
  char* arena = static_cast<char*>(arenas_[static_cast<size_t>(k.device)].data());
  for (size_t i = 0; i < k.steps.size(); ++i) {
    Step& s = steps_[kernel][i];
    for (const size_t arg : s.bound) {
      const StepPlace& place = k.steps[i].args[arg];
      if (place.kind == StepPlace::kWord) {
        s.args[arg] = BatonValue{kBatonInt, 0, {.v_int64 = words[place.at]}};
        continue;
      }
      s.args[arg].v_handle = place.kind == StepPlace::kIo      ? io_[static_cast<size_t>(place.at)]
                             : place.kind == StepPlace::kArena ? arena + place.at
                                                               : arena + words[place.at];
    }
    const auto bytes =
        k.steps[i].word < 0 ? k.steps[i].bytes : static_cast<uint64_t>(words[static_cast<size_t>(k.steps[i].word)]);
    const double begin = clock_ ? runtime::StepClock::Now() : 0;
    if (s.code.defined()) {
      s.code.CallPacked(s.args.data(), static_cast<int>(s.args.size()));
    } else if (bytes) {
      runtime::DeviceAPI::Get(on)->Copy(s.args[0].v_handle, on, s.args[1].v_handle, on, bytes);
    }
    if (clock_) {
      runtime::DeviceAPI::Get(on)->Sync(on);
      clock_->AddStep(kernel, i, begin, words);
    }
  }
}

void Machine::GrowArena(size_t device, uint64_t bytes, runtime::ShapeFrame* shapes) {
  NDArray& arena = arenas_[device];
  if (arena.defined() && bytes <= arena.nbytes()) return;
  arena = NDArray();  // before there is another
  try {
    arena = NDArray::Empty({static_cast<int64_t>(bytes)}, DataType::UInt(8), devices_[device]);
  } catch (...) {
    if (shapes) shapes->Trim();  // a plan that memory does not hold is not kept
    throw;
  }
}

NDArray Machine::Allocate(const std::vector<int64_t>& shape, DataType dtype, Device on) {
  constexpr size_t kMost = 64;
  const uint64_t bytes = runtime::TensorBytes(shape, dtype);
  NDArray* best = nullptr;
  for (auto& [place, a] : reserved_) {
    if (bytes < kReservedBytes || a.obj()->use_count() != 1 || !runtime::operator==(a.device(), on)) continue;
    if (a.nbytes() >= bytes && (!best || a.nbytes() < best->nbytes())) best = &a;
  }
  if (best) return best->CreateView(shape, dtype);
  if (devices_.size() == 1) return NDArray::Empty(shape, dtype, on);
  // Devices take long to give memory: what no value has any more serves again. Their queues are in order.
  for (NDArray& a : pool_) {
    if (a.obj()->use_count() != 1 || !runtime::operator==(a.device(), on) || a.nbytes() < bytes) continue;
    if (a.nbytes() <= 2 * bytes + 4096 && (!best || a.nbytes() < best->nbytes())) best = &a;
  }
  if (!best) {
    const NDArray made = NDArray::Empty({static_cast<int64_t>(bytes)}, DataType::UInt(8), on);
    if (pool_.size() < kMost) {
      pool_.push_back(made);
      best = &pool_.back();
    } else {
      best = &(pool_[next_pooled_++ % kMost] = made);
    }
  }
  return best->CreateView(shape, dtype);
}

NDArray Machine::Overwritten(const Kernel& k, const int32_t* in, size_t output,
                             const std::vector<int64_t>& shape) const {
  const DataType dtype = k.outputs[output].dtype;
  for (size_t i = 0; i < k.over.size(); i += 2) {
    const auto input = static_cast<size_t>(k.over[i]);
    if (static_cast<size_t>(k.over[i + 1]) != output || in[input] >= 0) continue;
    // A register that gives it up refers to it, and what is held for the kernel.
    const auto& a = static_cast<const NDArray&>(held_[input]);
    const int64_t known = 2 + std::count(given_.begin(), given_.end(), a.get());
    if (a.obj()->use_count() != known || a.obj()->read_only || !runtime::OwnsElements(a) ||
        runtime::TensorBytes(shape, dtype) != a.nbytes())
      continue;
    return a.dtype() == dtype && a.shape() == shape ? a : a.View(shape, dtype);
  }
  return NDArray();
}

ObjectRef Machine::Moved(const ObjectRef& value, Device on) {
  if (!value.as<NDArrayObj>()) return MoveTo(value, on);
  const auto& given = static_cast<const NDArray&>(value);
  if (runtime::operator==(given.device(), on)) return value;
  const NDArray dense = given.IsContiguous() ? given : given.Contiguous();
  const NDArray there = Allocate(dense.shape(), dense.dtype(), on);
  there.CopyFrom(dense.tensor());
  return there;
}

void Machine::Reserve(const std::map<std::string, int64_t>& dims) {
  std::vector<bool> known;
  for (const auto& shapes : shapes_) {
    known.push_back(!shapes);
    if (!shapes || shapes->shapes().reads_values) continue;
    std::vector<int64_t> sizes;
    for (const runtime::Dim& d : shapes->shapes().dims) {
      if (const auto it = dims.find(d.name); it != dims.end()) sizes.push_back(it->second);
    }
    if (sizes.size() != shapes->shapes().dims.size()) continue;
    shapes->Reserve(sizes);
    GrowArena(ArenaOf(static_cast<size_t>(&shapes - shapes_.data())), shapes->arena_bytes(), shapes.get());
    known.back() = true;
  }
  ReserveValues(known);
  for (const NDArray& arena : arenas_) TakePages(arena);
}

/// Registers are few, since a value's is another's once it is dead: so is what they need at most.
void Machine::ReserveValues(const std::vector<bool>& known) {
  const Program& p = exe_->program;
  for (size_t f = 0; f < p.functions.size(); ++f) {
    std::vector<int32_t> code = p.functions[f].code;
    for (size_t at = 0; at < code.size();) {
      const int32_t* words = code.data() + at;
      at = ForEachOperand(code, at, [](int32_t&, Operand) {});
      if (static_cast<Opcode>(words[0]) != Opcode::kKernel || !known[static_cast<size_t>(words[1])]) continue;
      const auto index = static_cast<size_t>(words[1]), n_in = static_cast<size_t>(words[2]);
      const Kernel& k = p.kernels[index];
      for (size_t i = 0; i < k.outputs.size(); ++i) {
        std::vector<int64_t> shape = k.outputs[i].shape;
        if (shapes_[index]) shapes_[index]->FillShape(n_in + i, &shape);
        const auto bytes = static_cast<int64_t>(runtime::TensorBytes(shape, k.outputs[i].dtype));
        const int32_t r = words[4 + n_in + i];
        NDArray& there = reserved_[{static_cast<int32_t>(f), r < 0 ? ~r : r, k.device}];
        if (there.defined() && static_cast<int64_t>(there.nbytes()) >= bytes) continue;
        there = NDArray();
        there = NDArray::Empty({bytes}, DataType::UInt(8), devices_[static_cast<size_t>(k.device)]);
        TakePages(there);
      }
    }
  }
  std::erase_if(reserved_, [](const auto& r) { return r.second.nbytes() < kReservedBytes; });
}

void Machine::Trim() {
  pool_.clear();
  reserved_.clear();
  std::vector<uint64_t> bytes(arenas_.size());
  for (size_t k = 0; k < shapes_.size(); ++k) {
    if (shapes_[k]) shapes_[k]->Trim();
    bytes[ArenaOf(k)] = std::max(bytes[ArenaOf(k)], exe_->program.kernels[k].arena_bytes);
  }
  for (size_t d = 0; d < arenas_.size(); ++d) {
    if (bytes[d] >= arenas_[d].nbytes()) continue;
    arenas_[d] = NDArray();
    GrowArena(d, bytes[d]);
  }
}

uint64_t Machine::workspace_bytes() const {
  uint64_t bytes = 0;
  for (const NDArray& a : arenas_) bytes += a.nbytes();
  for (const NDArray& a : pool_) bytes += a.obj()->use_count() == 1 ? a.nbytes() : 0;
  for (const auto& [place, a] : reserved_) bytes += a.obj()->use_count() == 1 ? a.nbytes() : 0;
  return bytes;
}

size_t Machine::num_plans() const {
  size_t n = 0;
  for (const auto& shapes : shapes_) n += shapes ? shapes->num_plans() : 0;
  return n;
}

void Machine::TooDeep(const Function& f, size_t frames) const {
  throw RuntimeError(Cat("`", f.name, "` is called ", frames,
                         " levels deep, which is more than a machine takes; does the recursion have a "
                         "base case? (A call in tail position needs no level.)"));
}

void Machine::TooManyRounds(const Function& f) const {
  runtime::detail::interrupt_polls.rounds = 1;
  throw RuntimeError(Cat("in `", f.name, "`: more rounds of loops and calls of functions than `limits` allow"));
}

/// The data of the inputs in `held_`, as `sizes` reads it: those that it may read are short.
void* const* Machine::InputsOnHost(size_t count) {
  constexpr int64_t kShort = 16;
  on_host_.clear();
  on_host_io_ = io_;
  for (size_t i = 0; i < count; ++i) {
    const auto& a = static_cast<const NDArray&>(held_[i]);
    if (IsHost(a.device()) || a.numel() > kShort) continue;
    on_host_.push_back(a.Copy(runtime::Cpu()));
    on_host_io_[i] = on_host_.back().data();
  }
  return on_host_io_.data();
}

size_t Machine::RunKernel(const int32_t* at, size_t base) {
  if ((++kernels_run_ & 0xf) == 0) runtime::CheckInterrupt();
  const auto index = static_cast<size_t>(at[1]);
  const Kernel& k = exe_->program.kernels[index];
  const auto n_in = static_cast<size_t>(at[2]), n_out = static_cast<size_t>(at[3]);
  const int32_t* in = at + 4;
  const int32_t* out = in + n_in;
  const Device on = devices_[static_cast<size_t>(k.device)];
  io_.resize(n_in + n_out);
  held_.clear();
  for (size_t i = 0; i < n_in; ++i) {
    NDArray a = ForKernel(Reg(base, in[i]), k.inputs[i], k, on);
    io_[i] = a.data();
    held_.push_back(std::move(a));
  }
  runtime::ShapeFrame* shapes = shapes_[index].get();
  if (shapes) {
    for (size_t i = 0; i < n_in; ++i) shapes->SetInput(i, static_cast<const NDArray&>(held_[i]).tensor()->shape);
    shapes->Update(shapes->shapes().reads_values ? InputsOnHost(n_in) : io_.data());
    GrowArena(ArenaOf(index), shapes->arena_bytes(), shapes);
  }
  for (size_t i = 0; i < n_out; ++i) {
    NDArray a;
    if (shapes || !k.over.empty()) {
      std::vector<int64_t> shape = k.outputs[i].shape;
      if (shapes) shapes->FillShape(n_in + i, &shape);
      a = Overwritten(k, in, i, shape);
      if (!a.defined()) a = Allocate(shape, k.outputs[i].dtype, on);
    } else {
      a = Allocate(k.outputs[i].shape, k.outputs[i].dtype, on);
    }
    io_[n_in + i] = a.data();
    held_.push_back(std::move(a));
  }
  if (!code_[index]) {
    RunSteps(index);
  } else {
    auto* arena = static_cast<uint8_t*>(arenas_[0].data());
    const int64_t* words = shapes ? shapes->words() : nullptr;
    const int32_t failed = clock_ ? clock_->Run(index, io_.data(), exe_->constants, arena, words)
                                  : code_[index](io_.data(), exe_->constants, arena, words);
    if (failed != 0) runtime::ThrowFromSlot();
  }
  for (size_t i = 0; i < n_in; ++i) Release(base, in[i]);
  for (size_t i = 0; i < n_out; ++i) Reg(base, out[i]) = std::move(held_[n_in + i]);
  held_.clear();
  return 4 + n_in + n_out;
}

size_t Machine::RunPacked(const int32_t* at, size_t base) {
  const PackedSlot& slot = exe_->program.packed[static_cast<size_t>(at[1])];
  const auto n = static_cast<size_t>(at[3]);
  if (!slot.function.defined()) throw RuntimeError(Cat("the program lacks the host function `", slot.name, "`"));
  runtime::CheckInterrupt();
  held_.clear();
  std::vector<BatonValue> values(n);
  for (size_t i = 0; i < n; ++i) {
    held_.push_back(Moved(Take(base, at[4 + i]), devices_[0]));
    runtime::ValueTraits<ObjectRef>::To(held_.back(), &values[i]);
  }
  const double begin = clock_ ? runtime::StepClock::Now() : 0;
  ObjectRef value = slot.function.CallPacked(values.data(), static_cast<int>(n)).As<ObjectRef>();
  if (clock_) NoteTime(at, slot.name, begin);
  Reg(base, at[2]) = slot.device ? Moved(value, devices_[static_cast<size_t>(slot.device)]) : std::move(value);
  held_.clear();
  return 4 + n;
}

void Machine::AddGraphs(runtime::StepClock* clock) const {
  for (size_t k = 0; k < code_.size(); ++k)
    clock->AddGraph(exe_->code, exe_->program.kernels[k].symbol, code_[k], exe_->program.kernels[k].dynamic.words);
}

void Machine::NoteTime(const int32_t* at, const std::string& name, double begin) const {
  for (const Function& f : exe_->program.functions) {
    if (at < f.code.data() || at >= f.code.data() + f.code.size()) continue;
    return clock_->AddHost(name, &f - exe_->program.functions.data(), at - f.code.data(), begin);
  }
}

size_t Machine::MakeCopy(const int32_t* at, size_t base) {
  const Device to = devices_[static_cast<size_t>(at[3])];
  const double begin = clock_ ? runtime::StepClock::Now() : 0;
  Reg(base, at[1]) = Moved(Take(base, at[2]), to);
  if (clock_) {
    for (const Device& d : devices_) runtime::DeviceAPI::Get(d)->Sync(d);
    NoteTime(at, Cat("copy to ", runtime::Device2String(to)), begin);
  }
  return 4;
}

size_t Machine::MakeTuple(const int32_t* at, size_t base) {
  const auto n = static_cast<size_t>(at[2]);
  Array<ObjectRef> fields;
  fields.reserve(n);
  for (size_t i = 0; i < n; ++i) fields.push_back(Take(base, at[3 + i]));
  Reg(base, at[1]) = std::move(fields);
  return 3 + n;
}

size_t Machine::MakeData(const int32_t* at, size_t base) {
  const auto n = static_cast<size_t>(at[3]);
  ADT data(at[2], static_cast<uint32_t>(n));
  ObjectRef* fields = const_cast<ADTObj*>(data.get())->fields();
  for (size_t i = 0; i < n; ++i) fields[i] = Take(base, at[4 + i]);
  Reg(base, at[1]) = std::move(data);
  return 4 + n;
}

size_t Machine::MakeClosure(const int32_t* at, size_t base) {
  const auto n = static_cast<size_t>(at[3]);
  Closure c(at[2], static_cast<uint32_t>(n));
  ObjectRef* captured = const_cast<ClosureObj*>(c.get())->captured();
  for (size_t i = 0; i < n; ++i) captured[i] = Take(base, at[4 + i]);
  Reg(base, at[1]) = std::move(c);
  return 4 + n;
}

size_t Machine::TakeField(const int32_t* at, size_t base) {
  const ObjectRef& v = Reg(base, at[2]);
  const auto i = static_cast<size_t>(at[3]);
  ObjectRef field;
  if (const auto* data = v.as<ADTObj>()) {
    if (i >= data->size) throw RuntimeError(Cat("field ", i, " of data with ", data->size));
    field = data->fields()[i];
  } else if (v.as<runtime::ArrayObj>()) {
    const auto& tuple = static_cast<const Array<ObjectRef>&>(v);
    if (i >= tuple.size()) throw RuntimeError(Cat("field ", i, " of a tuple of ", tuple.size()));
    field = tuple[static_cast<int64_t>(i)];
  } else {
    throw RuntimeError(Cat("field ", i, " is taken of ", Kind(v), ", which is no tuple and no value of a data type"));
  }
  Release(base, at[2]);
  Reg(base, at[1]) = std::move(field);
  return 4;
}

size_t Machine::NewRef(const int32_t* at, size_t base) {
  auto cell = make_object<RefObj>();
  cell->value = Take(base, at[2]);
  Reg(base, at[1]) = ObjectRef(ObjectPtr<Object>(cell));
  return 3;
}

size_t Machine::ReadRef(const int32_t* at, size_t base) {
  const auto* cell = Reg(base, at[2]).as<RefObj>();
  if (!cell) throw RuntimeError(Cat("a read of ", Kind(Reg(base, at[2])), ", which is no reference"));
  ObjectRef value = cell->value;
  Release(base, at[2]);
  Reg(base, at[1]) = std::move(value);
  return 3;
}

size_t Machine::WriteRef(const int32_t* at, size_t base) {
  const ObjectRef ref = Take(base, at[1]);
  const auto* cell = ref.as<RefObj>();
  if (!cell) throw RuntimeError(Cat("a write to ", Kind(ref), ", which is no reference"));
  cell->value = Take(base, at[2]);
  return 3;
}

size_t Machine::MakeView(const int32_t* at, size_t base) {
  const TensorInfo& to = exe_->program.views[static_cast<size_t>(at[3])];
  const ObjectRef v = Take(base, at[2]);
  if (!v.as<NDArrayObj>()) throw RuntimeError(Cat("a reshape of ", Kind(v)));
  const auto& from = static_cast<const NDArray&>(v);
  Reg(base, at[1]) = (from.IsContiguous() ? from : from.Contiguous()).View(to.shape, to.dtype);
  return 4;
}

bool Machine::IsTrue(const int32_t* at, size_t base) {
  const ObjectRef& v = Reg(base, at[1]);
  const auto* n = v.as<NDArrayObj>();
  if (!n || n->numel != 1) {
    throw RuntimeError(Cat("the condition of an if is ", Kind(v), ", must be a scalar of type bool"));
  }
  const bool truth = static_cast<const NDArray&>(v).Contiguous().GetInt(0) != 0;
  Release(base, at[1]);
  return truth;
}

bool Machine::HasTag(const int32_t* at, size_t base) {
  const ObjectRef& v = Reg(base, at[1]);
  const auto* data = v.as<ADTObj>();
  if (!data) throw RuntimeError(Cat("a match on ", Kind(v), ", which is no value of a data type"));
  return data->tag == at[2];
}

void Machine::Enter(const Function& callee, int32_t dst, bool tail, Position* here) {
  runtime::PollInterrupt();
  if (int64_t& rounds = runtime::detail::interrupt_polls.rounds; rounds && --rounds == 0) TooManyRounds(callee);
  if (tail) {
    regs_.resize(here->base);
  } else {
    frames_.push_back({here->function, here->pc, here->base, dst});
    here->base = regs_.size();
  }
  if (here->base + static_cast<size_t>(callee.registers) > kMaxRegisters || frames_.size() > kMaxFrames)
    TooDeep(callee, frames_.size());
  regs_.resize(here->base + static_cast<size_t>(callee.registers));
  for (size_t i = 0; i < moved_.size(); ++i) regs_[here->base + i] = std::move(moved_[i]);
  here->function = &callee;
  here->pc = 0;
}

void Machine::Call(const int32_t* at, Position* here) {
  moved_.clear();
  for (int32_t i = 0; i < at[3]; ++i) moved_.push_back(Take(here->base, at[4 + i]));
  here->pc += 4 + static_cast<size_t>(at[3]);
  Enter(exe_->program.functions[static_cast<size_t>(at[1])], at[2], false, here);
}

void Machine::TailCall(const int32_t* at, Position* here) {
  moved_.clear();
  for (int32_t i = 0; i < at[2]; ++i) moved_.push_back(Take(here->base, at[3 + i]));
  Enter(exe_->program.functions[static_cast<size_t>(at[1])], 0, true, here);
}

void Machine::CallClosure(const int32_t* at, bool tail, Position* here) {
  const ObjectRef callee = Reg(here->base, at[1]);
  const auto* closure = callee.as<ClosureObj>();
  if (!closure) throw RuntimeError(Cat("a value of type ", Kind(callee), " was called"));
  const int32_t n = at[tail ? 2 : 3];
  const int32_t* operands = at + (tail ? 3 : 4);
  const Function& target = exe_->program.functions[static_cast<size_t>(closure->function)];
  if (static_cast<int64_t>(closure->size) + n != target.params) {
    throw RuntimeError(
        Cat("`", target.name, "` takes ", target.params - static_cast<int32_t>(closure->size), " arguments, got ", n));
  }
  moved_.clear();
  for (uint32_t i = 0; i < closure->size; ++i) moved_.push_back(closure->captured()[i]);
  for (int32_t i = 0; i < n; ++i) moved_.push_back(Take(here->base, operands[i]));
  Release(here->base, at[1]);
  here->pc += static_cast<size_t>((tail ? 3 : 4) + n);
  Enter(target, tail ? 0 : at[2], tail, here);
}

bool Machine::Return(ObjectRef* value, Position* here) {
  regs_.resize(here->base);
  if (frames_.empty()) return false;
  const Frame& top = frames_.back();
  *here = {top.function, top.pc, top.base};
  Reg(here->base, top.dst) = std::move(*value);
  frames_.pop_back();
  return true;
}

void Machine::Forget() {
  frames_.clear();
  regs_.clear();
  held_.clear();
  moved_.clear();
  given_.clear();
  if (regs_.capacity() > (size_t{1} << 20)) regs_.shrink_to_fit();
}

ObjectRef Machine::Run(int32_t function, std::vector<ObjectRef> args, std::vector<const Object*> given) {
  const Program& p = exe_->program;
  exe_->constants_file.RequireUnchanged();
  // Registers of a call that failed must not outlive it.
  struct Clear {
    Machine* m;
    ~Clear() { m->Forget(); }
  } clear{this};
  Position here{&p.functions[static_cast<size_t>(function)], 0, 0};
  if (args.size() != static_cast<size_t>(here.function->params)) {
    throw RuntimeError(
        Cat("`", here.function->name, "` takes ", here.function->params, " arguments, got ", args.size()));
  }
  given_ = std::move(given);
  regs_.resize(static_cast<size_t>(here.function->registers));
  for (size_t i = 0; i < args.size(); ++i) regs_[i] = std::move(args[i]);

  for (;;) {
    const int32_t* at = here.at();
    const size_t base = here.base;
    switch (static_cast<Opcode>(at[0])) {
      case Opcode::kMove:
        Reg(base, at[1]) = Take(base, at[2]);
        here.pc += 3;
        break;
      case Opcode::kConst:
        Reg(base, at[1]) = constants_[static_cast<size_t>(at[2])];
        here.pc += 3;
        break;
      case Opcode::kKernel:
        here.pc += RunKernel(at, base);
        break;
      case Opcode::kPacked:
        here.pc += RunPacked(at, base);
        break;
      case Opcode::kCall:
        Call(at, &here);
        break;
      case Opcode::kTailCall:
        TailCall(at, &here);
        break;
      case Opcode::kCallClosure:
        CallClosure(at, false, &here);
        break;
      case Opcode::kTailClosure:
        CallClosure(at, true, &here);
        break;
      case Opcode::kReturn: {
        ObjectRef value = Take(base, at[1]);
        if (!Return(&value, &here)) return value;
        break;
      }
      case Opcode::kJump:
        here.pc = static_cast<size_t>(at[1]);
        break;
      case Opcode::kJumpIfFalse:
        here.pc = IsTrue(at, base) ? here.pc + 3 : static_cast<size_t>(at[2]);
        break;
      case Opcode::kJumpIfTagNot:
        here.pc = HasTag(at, base) ? here.pc + 4 : static_cast<size_t>(at[3]);
        break;
      case Opcode::kTuple:
        here.pc += MakeTuple(at, base);
        break;
      case Opcode::kData:
        here.pc += MakeData(at, base);
        break;
      case Opcode::kField:
        here.pc += TakeField(at, base);
        break;
      case Opcode::kClosure:
        here.pc += MakeClosure(at, base);
        break;
      case Opcode::kRefNew:
        here.pc += NewRef(at, base);
        break;
      case Opcode::kRefRead:
        here.pc += ReadRef(at, base);
        break;
      case Opcode::kRefWrite:
        here.pc += WriteRef(at, base);
        break;
      case Opcode::kView:
        here.pc += MakeView(at, base);
        break;
      case Opcode::kCopy:
        here.pc += MakeCopy(at, base);
        break;
      case Opcode::kFail:
        throw RuntimeError(Cat("in `", here.function->name, "`: ", p.messages[static_cast<size_t>(at[1])]));
      case Opcode::kNumOpcodes:
        throw runtime::InternalError("bytecode that was not validated");
    }
  }
}

}  // namespace baton::vm
