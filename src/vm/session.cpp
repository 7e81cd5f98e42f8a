// SPDX-License-Identifier: Apache-2.0
// Sessions: executors of models with states that are kept between calls, or with inputs whose memory outputs take.
//
// A state is an input whose memory the code appends to (memory.append in Relay): rows lie one behind the other, and
// `length` of them count. A call writes its new rows behind these, and length grows when it has succeeded. So a call
// that fails leaves the session as it was, and to forget rows is to set the length. The memory's room is never known to
// the code.
//
// An output takes an input's memory (`donate=`) where nothing but the session, its results and the argument of the call
// refers to the array, and its elements are its own. Else the code writes into other memory: it reads each element
// before it writes there, and nothing in it depends on where the two lie.
#include <baton/runtime/array.h>
#include <baton/runtime/executor_queries.h>
#include <baton/runtime/module.h>
#include <baton/runtime/registry.h>
#include <baton/runtime/step_clock.h>
#include <baton/support/growing_memory.h>
#include <baton/support/json.h>
#include <baton/support/text.h>

#include <atomic>
#include <cstring>
#include <memory>

namespace baton::vm {

using runtime::Any;
using runtime::Args;
using runtime::ArgValue;
using runtime::Array;
using runtime::Module;
using runtime::RetValue;
using runtime::RuntimeError;
using runtime::TensorInfo;
using runtime::UnsupportedError;
using runtime::ValueError;
using support::Cat;

namespace {

class Session final : public runtime::ModuleNode {
 public:
  explicit Session(const Module& code);
  const char* type_key() const override { return "session"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override;

 private:
  /// In the order of their names in GetFunction.
  enum Op {
    kRun,
    kRunWith,
    kCall,
    kCallGiven,
    kProfile,
    kSetInput,
    kSetInputZeroCopy,
    kGetOutput,
    kGetInput,
    kReserve,
    kTrim,
    kGetMemory,
    kGetDims,
    kGetDonated,
    kInferShapes,
    kTruncate,  // and behind it, what models without states have not
    kReset,
    kLength,
    kGetStates,
    kQuery  // and behind it, what all executors answer alike
  };

  struct State {
    size_t input = 0;                             // of the code
    int32_t rows = 0;                             // word with their number after a call
    bool copied = false;                          // whether new rows are copied behind the others, or made there
    std::vector<std::pair<size_t, size_t>> from;  // of each extent of a row: input and axis; itself for a literal
    std::vector<int64_t> row;                     // extents of a row in the latest call
    size_t row_bytes = 0;
    support::GrowingMemory memory;
  };
  /// A state that an output becomes as a whole, of one size from a first call on: two arrays change places.
  struct Whole {
    size_t input = 0, output = 0;                 // of the code
    std::vector<std::pair<size_t, size_t>> from;  // of each extent: input and axis; itself for a literal
    NDArray now, next;
    bool begun = false;  // a call has succeeded: the shape stays
  };
  struct Input {
    size_t at = 0;                   // among those of the code
    NDArray array;                   // what is read; null for one that is lent for a call
    bool set = false, gone = false;  // gone: to an output
    std::vector<int64_t> shape;
  };
  /// An input, and the output that may take its memory.
  struct Donation {
    size_t input = 0, output = 0;
    bool taken = false;  // in the latest call
  };

  void ReadStates(const std::string& json);
  void ReadWholes(const support::Json& list, std::vector<bool>* kept);
  std::pair<size_t, size_t> SourceOf(size_t input, size_t axis) const;
  void ShapeWholes();
  bool keeps() const { return !states_.empty() || !wholes_.empty(); }
  void ReadDonations(const support::Json& list);
  void Call(Op op, Args args, RetValue* rv);
  void CheckTensor(size_t i, const DLTensor* t) const;
  [[noreturn]] void FailInput(size_t i, std::string_view what) const {
    throw ValueError(Cat("input ", i, " `", given_[i].name, "`: ", what));
  }
  void Bind(size_t i, const ArgValue& v, bool for_call, bool copy);
  void BindAll(Args args);
  /// Lets outputs lie in the memory of inputs. `given`: whose arguments the caller gives away, a bit a donation.
  void TakeInputs(uint64_t given);
  /// Shapes of the outputs for shapes of all inputs: rank and extents of one after the other.
  Array<int64_t> InferShapes(Args args) const;
  /// `all_bound`: all inputs were bound by this call. `given`: as of TakeInputs.
  void Run(bool all_bound, uint64_t given) {
    const int64_t total = Compute(all_bound, given, nullptr);
    for (const State& s : states_) {
      if (s.copied) copied_ += (total - length_) * static_cast<int64_t>(s.row_bytes);
    }
    for (Whole& w : wholes_) {
      std::swap(w.now, w.next);
      w.begun = true;
    }
    length_ = total;
    ran_ = true;
  }
  /// The outputs; states are as they were. Gives how long they would be. `clock`: takes the times of its steps.
  int64_t Compute(bool all_bound, uint64_t given, runtime::StepClock* clock);
  /// The times of the steps of calls with inputs behind the number of rounds, and the value; states stay.
  Array<Any> Profile(Args args);
  void ShapeStates();
  void Grow(int64_t total);
  void Forget(int64_t length);
  void Trim();
  void GrowArena() {
    const uint64_t bytes = frame_ ? frame_->arena_bytes() : desc_->arena_bytes;
    if (bytes <= arena_.nbytes()) return;
    arena_ = NDArray();
    arena_ = NDArray::Empty({static_cast<int64_t>(bytes)}, DataType::UInt(8));
  }
  std::vector<int64_t> OutputShape(size_t i) const {
    std::vector<int64_t> shape = desc_->outputs[i].shape;
    if (frame_) frame_->FillShape(desc_->inputs.size() + i, &shape);
    return shape;
  }
  Array<int64_t> Memory() const;
  const TensorInfo& InfoOf(const State& s) const { return desc_->inputs[s.input]; }

  Module code_;
  const runtime::ExecutableDesc* desc_;
  runtime::EntryFunction entry_;
  std::unique_ptr<runtime::ShapeFrame> frame_;  // null: all shapes are fixed
  std::vector<TensorInfo> given_;               // what a caller gives
  std::vector<Input> inputs_;
  std::vector<State> states_;
  std::vector<Whole> wholes_;
  std::vector<Donation> donations_;
  std::vector<TensorInfo> told_;  // what a caller gets: the code's outputs without those of whole states
  std::vector<int64_t> tree_;
  std::vector<NDArray> outputs_;  // of a caller
  std::vector<void*> io_;
  NDArray arena_;
  size_t dim_ = 0;  // which dimension the length is
  int64_t length_ = 0, copied_ = 0;
  bool ran_ = false, begun_ = false;
  std::atomic<bool> busy_{false};
};

Session::Session(const Module& code) : code_(code) {
  desc_ = code_.defined() ? code_->GetExecutable() : nullptr;
  if (!desc_ || desc_->state.empty()) throw ValueError("the module holds no model with states");
  runtime::CheckFeatures(desc_->features, "the model");
  runtime::CheckResultTree(desc_->result_tree, desc_->outputs.size());
  entry_ = reinterpret_cast<runtime::EntryFunction>(code_->GetSymbol(desc_->entry.c_str()));
  const bool dynamic = desc_->dynamic.defined();
  auto* sizes =
      reinterpret_cast<runtime::SizesFunction>(dynamic ? code_->GetSymbol(desc_->dynamic.sizes.c_str()) : nullptr);
  if (!entry_ || dynamic != (sizes != nullptr)) {
    throw RuntimeError("the model lacks the code that its description names");
  }
  if (dynamic) frame_ = std::make_unique<runtime::ShapeFrame>(&desc_->dynamic, &desc_->inputs, sizes);
  arena_ = NDArray::Empty({0}, DataType::UInt(8));
  io_.resize(desc_->inputs.size() + desc_->outputs.size(), nullptr);
  ReadStates(desc_->state);
}

/// Facts of whole states: input, output, and two zeros. Their outputs stand behind those that a caller gets.
void Session::ReadWholes(const support::Json& list, std::vector<bool>* kept) {
  for (const support::Json& facts : list.AsArray()) {
    const auto& f = facts.AsArray();
    if (f.size() != 4) continue;
    const int64_t input = f[0].AsInt(), output = f[1].AsInt();
    const bool fits = input >= 0 && input < static_cast<int64_t>(kept->size()) &&
                      !(*kept)[static_cast<size_t>(input)] && output >= 0 &&
                      output < static_cast<int64_t>(desc_->outputs.size());
    if (!fits) throw RuntimeError("the description of the model's states contradicts itself");
    (*kept)[static_cast<size_t>(input)] = true;
    Whole w;
    w.input = static_cast<size_t>(input), w.output = static_cast<size_t>(output);
    wholes_.push_back(std::move(w));
  }
  const size_t shown = desc_->outputs.size() - std::min(desc_->outputs.size(), wholes_.size());
  for (size_t i = 0; i < wholes_.size(); ++i) {
    if (wholes_[i].output != shown + i) throw RuntimeError("outputs that are states are not the last ones");
  }
  told_.assign(desc_->outputs.begin(), desc_->outputs.begin() + static_cast<std::ptrdiff_t>(shown));
  outputs_.resize(shown);
  tree_ = desc_->result_tree;
  if (wholes_.empty()) return;
  tree_.clear();
  if (shown != 1) tree_.push_back(static_cast<int64_t>(shown));
  tree_.resize(tree_.size() + shown, -1);
}

/// The input and axis of a call that have a state's extent; itself for a literal.
std::pair<size_t, size_t> Session::SourceOf(size_t input, size_t axis) const {
  const runtime::DynamicShapes& shapes = desc_->dynamic;
  const int32_t word = shapes.defined() ? shapes.extents[input][axis] : -1;
  std::pair<size_t, size_t> from{input, axis};
  if (word < 0) return from;
  bool found = false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const std::vector<int32_t>& other = shapes.extents[inputs_[i].at];
    for (size_t a = 0; a < other.size(); ++a) {
      if (other[a] == word) from = {i, a}, found = true;
    }
  }
  if (!found) {
    throw UnsupportedError(Cat("state `", desc_->inputs[input].name, "` has the extent `",
                               desc_->inputs[input].extents[axis], "`, which no input of a call has: fix it (shape=)"));
  }
  return from;
}

void Session::ReadStates(const std::string& json) {
  const runtime::DynamicShapes& shapes = desc_->dynamic;
  const auto fail = [] { throw RuntimeError("the description of the model's states contradicts itself"); };
  std::vector<bool> kept(desc_->inputs.size());
  const support::Json list = support::Json::Parse(json, "state");
  ReadWholes(list, &kept);
  for (const support::Json& facts : list.AsArray()) {
    const auto& f = facts.AsArray();
    if (f.size() == 2 || f.size() == 4) continue;  // a donation, a whole state
    if (f.size() != 3 || !frame_) fail();
    const int64_t input = f[0].AsInt(), rows = f[1].AsInt();
    if (input < 0 || input >= static_cast<int64_t>(kept.size()) || kept[static_cast<size_t>(input)] || rows < 0 ||
        rows >= shapes.words) {
      fail();
    }
    State s;
    s.input = static_cast<size_t>(input), s.rows = static_cast<int32_t>(rows), s.copied = f[2].AsInt() != 0;
    kept[s.input] = true;
    const std::vector<int32_t>& words = shapes.extents[s.input];
    if (words.empty() || words[0] < 0 || words[0] >= static_cast<int64_t>(shapes.dims.size())) fail();
    if (!states_.empty() && words[0] != static_cast<int64_t>(dim_)) {
      throw UnsupportedError(Cat("states `", InfoOf(states_[0]).name, "` and `", InfoOf(s).name, "` have lengths `",
                                 shapes.dims[dim_].name, "` and `", shapes.dims[static_cast<size_t>(words[0])].name,
                                 "`; give them one name (shape=)"));
    }
    if (!states_.empty() && s.rows != states_[0].rows) {
      throw UnsupportedError(Cat("states `", InfoOf(states_[0]).name, "` and `", InfoOf(s).name,
                                 "` have one length before a call and different ones after it"));
    }
    dim_ = static_cast<size_t>(words[0]);
    states_.push_back(std::move(s));
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) continue;
    Input in;
    in.at = i;
    inputs_.push_back(std::move(in));
    given_.push_back(desc_->inputs[i]);
  }
  ReadDonations(list);
  if (!keeps() && donations_.empty()) fail();
  for (Whole& w : wholes_) {
    for (size_t d = 0; d < desc_->inputs[w.input].shape.size(); ++d) w.from.push_back(SourceOf(w.input, d));
  }
  // The other extents of a state are those of what callers give.
  for (State& s : states_) {
    const std::vector<int32_t>& words = shapes.extents[s.input];
    for (size_t d = 1; d < words.size(); ++d) s.from.push_back(SourceOf(s.input, d));
    s.row.resize(s.from.size());
  }
}

void Session::ReadDonations(const support::Json& list) {
  std::vector<bool> taken(outputs_.size());
  for (const support::Json& facts : list.AsArray()) {
    const auto& f = facts.AsArray();
    if (f.size() != 2) continue;
    Donation d;
    while (d.input < inputs_.size() && static_cast<int64_t>(inputs_[d.input].at) != f[0].AsInt()) ++d.input;
    d.output = static_cast<size_t>(f[1].AsInt());
    bool fits = d.input < inputs_.size() && d.output < outputs_.size() && !taken[d.output];
    for (const Donation& other : donations_) fits = fits && other.input != d.input;
    if (!fits) throw RuntimeError("the description of the model's donated inputs contradicts itself");
    taken[d.output] = true;
    donations_.push_back(d);
  }
}

void Session::CheckTensor(size_t i, const DLTensor* t) const {
  const TensorInfo& want = given_[i];
  if (t->ndim < 0 || t->ndim > 64 || (t->ndim && !t->shape)) FailInput(i, "not a tensor");
  bool same = t->ndim == static_cast<int>(want.shape.size()) && DataType(t->dtype) == want.dtype, empty = false;
  for (int d = 0; same && d < t->ndim; ++d) {
    const int64_t extent = want.shape[static_cast<size_t>(d)];
    same = extent < 0 ? t->shape[d] >= 0 : t->shape[d] == extent;
    empty = empty || t->shape[d] == 0;
  }
  if (!same) {
    FailInput(i, Cat("expected ", runtime::TensorInfoString(want), ", got ",
                     runtime::TensorTypeString(t->shape, t->ndim, t->dtype)));
  }
  if (!t->data && !empty) FailInput(i, "a tensor without data");
}

void Session::Bind(size_t i, const ArgValue& v, bool for_call, bool copy) {
  Input& in = inputs_[i];
  const TensorInfo& want = given_[i];
  if (!v.Is<DLTensor*>()) FailInput(i, Cat("expected a tensor, got ", runtime::ValueKindName(v.raw())));
  const DLTensor* t = v.As<DLTensor*>();
  CheckTensor(i, t);
  in.shape.assign(t->shape, t->shape + t->ndim);
  if (frame_) frame_->SetInput(in.at, t->shape);
  const uintptr_t p = reinterpret_cast<uintptr_t>(t->data) + t->byte_offset;
  const bool usable = t->device.device_type == kDLCPU && p % desc_->io_alignment == 0 && runtime::IsContiguous(t);
  const bool counted = v.type_code() == kBatonObject;
  if (!copy && usable && (counted || for_call)) {
    in.array = counted ? v.As<NDArray>() : NDArray();
    io_[in.at] = reinterpret_cast<void*>(p);
  } else {
    in.array = NDArray::Empty(in.shape, want.dtype);
    in.array.CopyFrom(t);
    io_[in.at] = in.array.data();
  }
  in.set = in.array.defined();
  in.gone = false;
}

void Session::BindAll(Args args) {
  if (args.size() != static_cast<int>(inputs_.size())) {
    throw runtime::TypeError(Cat("a session of this model takes ", inputs_.size(), " inputs, got ", args.size()));
  }
  for (int i = 0; i < args.size(); ++i) Bind(static_cast<size_t>(i), args[i], true, false);
}

/// Tells the frame how long states are.
void Session::ShapeStates() {
  for (State& s : states_) {
    const TensorInfo& info = InfoOf(s);
    std::vector<int64_t> shape{length_};
    for (size_t d = 0; d < s.from.size(); ++d) {
      const auto [from, axis] = s.from[d];
      shape.push_back(info.shape[d + 1] >= 0 ? info.shape[d + 1] : inputs_[from].shape[axis]);
      if (length_ > 0 && shape.back() != s.row[d]) {
        throw ValueError(Cat("state `", info.name, "` has ", info.extents[d + 1], " = ", s.row[d], ", input `",
                             given_[from].name, "` has ", shape.back(), "; reset the session first"));
      }
    }
    frame_->SetInput(s.input, shape.data());
    s.row.assign(shape.begin() + 1, shape.end());
    io_[s.input] = s.memory.data();
  }
}

/// Whole states begin with zeros, in the shape that the inputs of the first call give them.
void Session::ShapeWholes() {
  for (Whole& w : wholes_) {
    const TensorInfo& info = desc_->inputs[w.input];
    std::vector<int64_t> shape = info.shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      const auto [from, axis] = w.from[d];
      if (info.shape[d] < 0) shape[d] = inputs_[from].shape[axis];
      if (w.begun && shape[d] != w.now.dim(static_cast<int>(d))) {
        throw ValueError(Cat("state `", info.name, "` has ", info.extents[d], " = ", w.now.dim(static_cast<int>(d)),
                             ", input `", given_[from].name, "` has ", shape[d], "; reset the session first"));
      }
    }
    if (!w.begun) w.now = NDArray::Zeros(shape, info.dtype);
    if (frame_) frame_->SetInput(w.input, shape.data());
    io_[w.input] = w.now.data();
  }
}

/// Makes room for so many rows.
void Session::Grow(int64_t total) {
  const runtime::Dim& dim = desc_->dynamic.dims[dim_];
  const bool bounded = dim.max < runtime::kMaxExtent;
  if (bounded && total > dim.max) {
    throw ValueError(Cat("state `", InfoOf(states_[0]).name, "` has ", dim.name, " = ", length_, " of at most ",
                         dim.max, ", and this call adds ", total - length_,
                         ": truncate or reset the session, or compile the model with a larger maximum"));
  }
  for (State& s : states_) {
    uint64_t row = InfoOf(s).dtype.bytes(), bytes = 0, most = 0;
    bool fits = true;
    for (int64_t n : s.row) fits = fits && !__builtin_mul_overflow(row, static_cast<uint64_t>(n), &row);
    fits = fits && !__builtin_mul_overflow(row, static_cast<uint64_t>(total), &bytes);
    if (!bounded || __builtin_mul_overflow(row, static_cast<uint64_t>(dim.max), &most)) most = 0;
    fits = fits && ((most && s.memory.Reserve(bytes, most)) || s.memory.Reserve(bytes, 0));
    if (!fits) {
      throw runtime::Error("MemoryError",
                           Cat("state `", InfoOf(s).name, "`: no room for ", total, " rows of ", row, " bytes"));
    }
    s.row_bytes = row;
    io_[s.input] = s.memory.data();
  }
}

void Session::TakeInputs(uint64_t given) {
  for (Donation& d : donations_) {
    const auto away = static_cast<int64_t>(given & 1);
    given >>= 1;
    d.taken = false;
    Input& in = inputs_[d.input];
    if (!in.array.defined()) continue;  // lent for the call
    // Those that refer to it: this one, the argument, and results of calls before.
    int64_t known = 1 + away;
    for (const NDArray& out : outputs_) known += out.same_as(in.array) ? 1 : 0;
    const std::vector<int64_t> shape = OutputShape(d.output);
    const DataType dtype = desc_->outputs[d.output].dtype;
    if (in.array.obj()->use_count() != known || in.array.obj()->read_only || !runtime::OwnsElements(in.array) ||
        runtime::TensorBytes(shape, dtype) != in.array.nbytes()) {
      continue;
    }
    const bool same = in.array.dtype() == dtype && in.array.shape() == shape;
    outputs_[d.output] = same ? in.array : in.array.View(shape, dtype);
    in.array = NDArray();
    in.set = false, in.gone = d.taken = true;
  }
}

int64_t Session::Compute(bool all_bound, uint64_t given, runtime::StepClock* clock) {
  ran_ = false;
  desc_->constants_file.RequireUnchanged();
  for (size_t i = 0; i < inputs_.size() && !all_bound; ++i) {
    if (inputs_[i].set) continue;
    FailInput(i, Cat(inputs_[i].gone ? "an output took its memory; set it again, " : "it has not been set; ",
                     "expected ", runtime::TensorInfoString(given_[i])));
  }
  ShapeStates();
  ShapeWholes();
  const bool changed = frame_ && frame_->Update(io_.data());
  const int64_t total = states_.empty() ? 0 : frame_->words()[states_[0].rows];
  if (!states_.empty()) Grow(total);
  if (changed || !frame_) GrowArena();
  begun_ = true;
  TakeInputs(given);
  std::vector<bool> taken(outputs_.size());
  for (const Donation& d : donations_) taken[d.output] = d.taken;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    NDArray& out = outputs_[i];
    if (taken[i]) {
      io_[desc_->inputs.size() + i] = out.data();
      continue;
    }
    if (!out.defined() || out.obj()->use_count() > 1 || (changed && out.shape() != OutputShape(i))) {
      out = NDArray::Empty(OutputShape(i), desc_->outputs[i].dtype);
    }
    io_[desc_->inputs.size() + i] = out.data();
  }
  for (Whole& w : wholes_) {
    const std::vector<int64_t> shape = w.now.shape();
    if (OutputShape(w.output) != shape) {
      throw ValueError(Cat("state `", desc_->inputs[w.input].name, "` would become another shape"));
    }
    if (!w.next.defined() || w.next.shape() != shape) w.next = NDArray::Empty(shape, w.now.dtype());
    io_[desc_->inputs.size() + w.output] = w.next.data();
  }
  const int64_t* words = frame_ ? frame_->words() : nullptr;
  auto* arena = static_cast<uint8_t*>(arena_.data());
  const int32_t code = clock ? clock->Run(0, io_.data(), desc_->constants, arena, words)
                             : entry_(io_.data(), desc_->constants, arena, words);
  if (code != 0) {
    if (*BatonErrorMessage() == '\0') throw RuntimeError("the model failed without saying why");
    runtime::ThrowFromSlot();
  }
  return total;
}

Array<Any> Session::Profile(Args args) {
  const auto clock = runtime::MakeStepClock(desc_->steps, args[0].As<int>());
  clock->AddGraph(code_, desc_->entry, entry_, desc_->dynamic.words);
  args = Args{args.values + 1, args.size() - 1};
  const ObjectRef value = clock->Rounds([&](runtime::StepClock* now) {
    BindAll(args);
    Compute(true, 0, now);
    begun_ = false;
    return runtime::ResultValue(tree_, outputs_);
  });
  return clock->Answer(value);
}

void Session::Forget(int64_t length) {
  if (states_.empty()) {
    throw UnsupportedError(Cat("state `", desc_->inputs[wholes_[0].input].name,
                               "` keeps its size: it has no rows to forget, reset the session instead"));
  }
  if (length < 0 || length > length_) {
    throw ValueError(
        Cat("the session has ", desc_->dynamic.dims[dim_].name, " = ", length_, ", it cannot be cut to ", length));
  }
  length_ = length;
}

void Session::Trim() {
  if (frame_) frame_->Trim();
  arena_ = NDArray::Empty({0}, DataType::UInt(8));
  for (NDArray& out : outputs_) out = NDArray();
  for (State& s : states_) {
    if (length_ == 0) s.memory.Release();
  }
  for (Whole& w : wholes_) w.next = NDArray();
  ran_ = false;
}

/// Bytes: constants, workspace, outputs; plans that are kept; bytes of states, and of new rows that were copied so far;
/// how often memory was planned; bytes of the latest results that lie in the memory of inputs.
Array<int64_t> Session::Memory() const {
  int64_t outputs = 0, states = 0, donated = 0;
  for (const Donation& d : donations_) {
    if (d.taken && outputs_[d.output].defined()) donated += static_cast<int64_t>(outputs_[d.output].nbytes());
  }
  for (const NDArray& out : outputs_) outputs += out.defined() ? static_cast<int64_t>(out.nbytes()) : 0;
  for (const State& s : states_) states += length_ * static_cast<int64_t>(s.row_bytes);
  for (const Whole& w : wholes_) states += w.now.defined() ? static_cast<int64_t>(w.now.nbytes()) : 0;
  Array<int64_t> out;
  for (int64_t n : {static_cast<int64_t>(desc_->constants_bytes), static_cast<int64_t>(arena_.nbytes()), outputs,
                    frame_ ? static_cast<int64_t>(frame_->num_plans()) : 0, states, copied_,
                    frame_ ? static_cast<int64_t>(frame_->planned()) : 0, donated}) {
    out.push_back(n);
  }
  return out;
}

Array<int64_t> Session::InferShapes(Args args) const {
  if (desc_->dynamic.reads_values) throw UnsupportedError("the shapes of the results depend on values of the inputs");
  if (args.size() != static_cast<int>(inputs_.size())) throw runtime::TypeError("a shape for each input is wanted");
  std::unique_ptr<runtime::ShapeFrame> frame = frame_ ? frame_->Fresh() : nullptr;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    std::vector<int64_t> shape = args[static_cast<int>(i)].As<Array<int64_t>>().ToVector();
    int64_t data = 0;  // stands for elements that are not read
    const DLTensor t{&data, Cpu(), static_cast<int>(shape.size()), given_[i].dtype, shape.data(), nullptr, 0};
    CheckTensor(i, &t);
    if (frame) frame->SetInput(inputs_[i].at, shape.data());
  }
  if (frame) frame->Update(nullptr);
  Array<int64_t> out;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    std::vector<int64_t> shape = desc_->outputs[i].shape;
    if (frame) frame->FillShape(desc_->inputs.size() + i, &shape);
    out.push_back(static_cast<int64_t>(shape.size()));
    for (int64_t n : shape) out.push_back(n);
  }
  return out;
}

void Session::Call(Op op, Args args, RetValue* rv) {
  if (op >= kQuery) return runtime::AnswerExecutorQuery(op - kQuery, given_, told_, args, rv);
  runtime::ExecutorLock lock(&busy_);
  uint64_t given = 0;
  switch (op) {
    case kRun:
      return Run(false, 0);
    case kCallGiven:
      given = static_cast<uint64_t>(args[0].As<int64_t>());
      args = Args{args.values + 1, args.size() - 1};
      [[fallthrough]];
    case kRunWith:
    case kCall:
      BindAll(args);
      Run(true, given);
      begun_ = false;
      if (op == kRunWith) {
        *rv = Array<NDArray>(outputs_);
      } else {
        *rv = runtime::ResultValue(tree_, outputs_);
      }
      return;
    case kProfile:
      *rv = Profile(args);
      return;
    case kSetInput:
    case kSetInputZeroCopy:
      return Bind(runtime::FindTensor(args[0], given_, "input"), args[1], false, op == kSetInput);
    case kGetOutput: {
      const size_t i = runtime::FindTensor(args[0], told_, "output");
      if (!ran_) throw RuntimeError("the model has not run yet: call run() before get_output()");
      if (args.size() > 1) {
        outputs_[i].CopyTo(args[1].As<DLTensor*>());
        *rv = args[1];
      } else {
        *rv = outputs_[i];
      }
      return;
    }
    case kGetInput:
      *rv = inputs_[runtime::FindTensor(args[0], given_, "input")].array;
      return;
    case kTruncate:
      return Forget(args[0].As<int64_t>());
    case kReset:
      length_ = 0;
      for (Whole& w : wholes_) w.now = NDArray(), w.begun = false;
      return;
    case kReserve:
      if (frame_) frame_->Reserve(args[0].As<Array<int64_t>>().ToVector());
      GrowArena();
      std::memset(arena_.data(), 0, arena_.nbytes());  // pages come now, not with the first call
      return;
    case kTrim:
      return Trim();
    case kLength:
      *rv = length_;
      return;
    case kGetMemory:
      *rv = Memory();
      return;
    case kGetDims:
      *rv = runtime::DimFields(desc_->dynamic.dims);
      return;
    case kInferShapes:
      *rv = InferShapes(args);
      return;
    case kGetDonated: {
      Array<Any> names;  // of each input, then of the output
      for (const Donation& d : donations_) {
        names.push_back(Any(given_[d.input].name));
        names.push_back(Any(desc_->outputs[d.output].name));
      }
      *rv = names;
      return;
    }
    default: {
      Array<Any> names;  // of the states, then of their length
      for (const State& s : states_) names.push_back(Any(InfoOf(s).name));
      for (const Whole& w : wholes_) names.push_back(Any(desc_->inputs[w.input].name));
      names.push_back(Any(states_.empty() ? std::string() : desc_->dynamic.dims[dim_].name));
      *rv = names;
    }
  }
}

PackedFunc Session::GetFunction(std::string_view name, const ObjectPtr<Object>& self) {
  static constexpr std::string_view kNames[] = {
      "run",          "run_with",  "call",    "call_given", "profile",    "set_input", "set_input_zero_copy",
      "get_output",   "get_input", "reserve", "trim",       "get_memory", "get_dims",  "get_donated",
      "infer_shapes", "truncate",  "reset",   "length",     "get_states"};
  if (name == "begun") {  // whether a call that failed since got to take what it was given
    return PackedFunc([this, self](Args, RetValue* rv) { *rv = std::exchange(begun_, false); });
  }
  int op = kRun;
  while (op < kQuery && name != kNames[op]) ++op;
  if (!keeps() && op >= kTruncate && op < kQuery) return PackedFunc();
  if (keeps() && op == kInferShapes) return PackedFunc();
  if (op == kQuery) {
    const int query = runtime::FindExecutorQuery(name);
    if (query < 0) return PackedFunc();
    op += query;
  }
  return PackedFunc([this, self, op](Args args, RetValue* rv) { Call(static_cast<Op>(op), args, rv); });
}

/// Called by the runtime when it meets a model with states.
BATON_REGISTER_GLOBAL("vm.CreateSession").set_body(PackedFunc([](Args args, RetValue* rv) {
  for (int i = 1; i < args.size(); ++i) {
    const Device d = args[i].As<Device>();
    if (d.device_type == kDLCPU) continue;
    throw RuntimeError(Cat("the model was compiled for the CPU, it cannot run on ", runtime::Device2String(d)));
  }
  *rv = runtime::MakeModule<Session>(args[0].As<Module>());
}));

}  // namespace

}  // namespace baton::vm
