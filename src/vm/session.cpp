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
#include <baton/runtime/registry.h>
#include <baton/support/growing_memory.h>
#include <baton/support/json.h>
#include <baton/support/text.h>

#include <utility>
#include <vector>

#include "runtime/native_runner.h"

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

class Session final : public runtime::NativeRunner {
 public:
  explicit Session(const Module& code);
  const char* type_key() const override { return "session"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override;

 protected:
  void Bind(size_t i, const ArgValue& v, Keep keep) override;
  void Trim() override;
  /// Returns what every model has, then bytes of states, and of new rows that were copied so far; how often memory was
  /// planned; bytes of the latest results that lie in the memory of inputs.
  std::vector<int64_t> Memory() const override;
  Array<Any> Donated() const override;
  void ShapeKept() override {
    ShapeStates();
    ShapeWholes();
  }
  void PlaceKept(uint64_t given) override;
  void CommitKept() override;

 private:
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
  /// An input, and the output that may take its memory.
  struct Donation {
    size_t input = 0, output = 0;
  };

  void ReadStates(const std::string& json);
  void ReadWholes(const support::Json& list, std::vector<bool>* kept);
  std::pair<size_t, size_t> SourceOf(size_t input, size_t axis) const;
  void ReadDonations(const support::Json& list);
  /// Whether anything stays from call to call: donations do not.
  bool has_states() const { return !states_.empty() || !wholes_.empty(); }
  /// Tells the frame how long states are.
  void ShapeStates();
  void ShapeWholes();
  /// Lets outputs lie in the memory of inputs. `given`: whose arguments the caller gives away, a bit a donation.
  void TakeInputs(uint64_t given);
  void Grow(int64_t total);
  void Forget(int64_t length);
  void Reset() {
    length_ = 0;
    for (Whole& w : wholes_) w.now = NDArray(), w.begun = false;
  }
  /// Returns the names of the states, then of their length.
  Array<Any> StateNames() const;
  const TensorInfo& InfoOf(const State& s) const { return desc_->inputs[s.input]; }

  std::vector<TensorInfo> given_;              // what a caller gives
  std::vector<std::vector<int64_t>> extents_;  // of each, as it was bound last
  std::vector<TensorInfo> told_;               // what a caller gets: the code's outputs without those of whole states
  std::vector<int64_t> own_tree_;
  std::vector<State> states_;
  std::vector<Whole> wholes_;
  std::vector<Donation> donations_;
  size_t dim_ = 0;  // which dimension the length is
  int64_t length_ = 0, copied_ = 0;
  int64_t total_ = 0;  // length behind the call that runs
};

Session::Session(const Module& code) : NativeRunner(code, runtime::Cpu()) {
  if (desc_->state.empty()) throw ValueError("the module holds no model with states");
  keeps_ = true;
  ReadStates(desc_->state);
}

/// Facts of whole states: input, output, and two zeros. Their outputs come behind those that a caller gets.
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
  if (wholes_.empty()) return;
  if (shown != 1) own_tree_.push_back(static_cast<int64_t>(shown));
  own_tree_.resize(own_tree_.size() + shown, -1);
  tree_ = &own_tree_;
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
    if (f.size() != 3 || !shapes_) fail();
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
  std::vector<size_t> at;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) continue;
    at.push_back(i);
    given_.push_back(desc_->inputs[i]);
  }
  SetCallers(&given_, at, &told_);
  extents_.resize(at.size());
  ReadDonations(list);
  if (!has_states() && donations_.empty()) fail();
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
  taken_.assign(outputs_.size(), 0);
  for (const support::Json& facts : list.AsArray()) {
    const auto& f = facts.AsArray();
    if (f.size() != 2) continue;
    Donation d;
    while (d.input < inputs_.size() && static_cast<int64_t>(inputs_[d.input].at) != f[0].AsInt()) ++d.input;
    d.output = static_cast<size_t>(f[1].AsInt());
    bool fits = d.input < inputs_.size() && d.output < outputs_.size() && !taken_[d.output];
    for (const Donation& other : donations_) fits = fits && other.input != d.input;
    if (!fits) throw RuntimeError("the description of the model's donated inputs contradicts itself");
    taken_[d.output] = 1;
    donations_.push_back(d);
  }
  taken_.assign(outputs_.size(), 0);
}

void Session::Bind(size_t i, const ArgValue& v, Keep keep) {
  NativeRunner::Bind(i, v, keep);
  const DLTensor* t = v.As<DLTensor*>();
  extents_[i].assign(t->shape, t->shape + t->ndim);
}

void Session::ShapeStates() {
  for (State& s : states_) {
    const TensorInfo& info = InfoOf(s);
    std::vector<int64_t> shape{length_};
    for (size_t d = 0; d < s.from.size(); ++d) {
      const auto [from, axis] = s.from[d];
      shape.push_back(info.shape[d + 1] >= 0 ? info.shape[d + 1] : extents_[from][axis]);
      if (length_ > 0 && shape.back() != s.row[d]) {
        throw ValueError(Cat("state `", info.name, "` has ", info.extents[d + 1], " = ", s.row[d], ", input `",
                             given_[from].name, "` has ", shape.back(), "; reset the session first"));
      }
    }
    shapes_->SetInput(s.input, shape.data());
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
      if (info.shape[d] < 0) shape[d] = extents_[from][axis];
      if (w.begun && shape[d] != w.now.dim(static_cast<int>(d))) {
        throw ValueError(Cat("state `", info.name, "` has ", info.extents[d], " = ", w.now.dim(static_cast<int>(d)),
                             ", input `", given_[from].name, "` has ", shape[d], "; reset the session first"));
      }
    }
    if (!w.begun) w.now = NDArray::Zeros(shape, info.dtype);
    if (shapes_) shapes_->SetInput(w.input, shape.data());
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
  for (const Donation& d : donations_) {
    const int64_t away = given & 1 ? 1 : 0;
    given >>= 1;
    taken_[d.output] = 0;
    Input& in = inputs_[d.input];
    if (!in.array.defined()) continue;  // lent for the call
    // Those that refer to it: this one, our buffer, the argument, and results of calls before.
    const bool copied = in.own.same_as(in.array);
    int64_t known = 1 + away + (copied ? 1 : 0);
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
    if (copied) in.own = NDArray();
    ++unset_;
    in.gone = true;
    taken_[d.output] = 1;
  }
}

void Session::PlaceKept(uint64_t given) {
  total_ = states_.empty() ? 0 : shapes_->words()[states_[0].rows];
  if (!states_.empty()) Grow(total_);
  GrowArena();
  for (Whole& w : wholes_) {
    const std::vector<int64_t> shape = w.now.shape();
    if (OutputShape(w.output) != shape) {
      throw ValueError(Cat("state `", desc_->inputs[w.input].name, "` would become another shape"));
    }
    if (!w.next.defined() || w.next.shape() != shape) w.next = NDArray::Empty(shape, w.now.dtype());
    io_[desc_->inputs.size() + w.output] = w.next.data();
  }
  begun_ = true;
  TakeInputs(given);
}

void Session::CommitKept() {
  for (const State& s : states_) {
    if (s.copied) copied_ += (total_ - length_) * static_cast<int64_t>(s.row_bytes);
  }
  for (Whole& w : wholes_) {
    std::swap(w.now, w.next);
    w.begun = true;
  }
  length_ = total_;
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
  NativeRunner::Trim();
  for (State& s : states_) {
    if (length_ == 0) s.memory.Release();
  }
  for (Whole& w : wholes_) w.next = NDArray();
}

std::vector<int64_t> Session::Memory() const {
  int64_t states = 0, donated = 0;
  for (const Donation& d : donations_) {
    if (taken_[d.output] && outputs_[d.output].defined()) donated += static_cast<int64_t>(outputs_[d.output].nbytes());
  }
  for (const State& s : states_) states += length_ * static_cast<int64_t>(s.row_bytes);
  for (const Whole& w : wholes_) states += w.now.defined() ? static_cast<int64_t>(w.now.nbytes()) : 0;
  std::vector<int64_t> out = NativeRunner::Memory();
  for (int64_t n : {states, copied_, shapes_ ? static_cast<int64_t>(shapes_->planned()) : 0, donated}) out.push_back(n);
  return out;
}

Array<Any> Session::Donated() const {
  Array<Any> names;
  for (const Donation& d : donations_) {
    names.push_back(Any(given_[d.input].name));
    names.push_back(Any(desc_->outputs[d.output].name));
  }
  return names;
}

Array<Any> Session::StateNames() const {
  Array<Any> names;
  for (const State& s : states_) names.push_back(Any(InfoOf(s).name));
  for (const Whole& w : wholes_) names.push_back(Any(desc_->inputs[w.input].name));
  names.push_back(Any(states_.empty() ? std::string() : desc_->dynamic.dims[dim_].name));
  return names;
}

PackedFunc Session::GetFunction(std::string_view name, const ObjectPtr<Object>& self) {
  if (!has_states()) return NativeRunner::GetFunction(name, self);
  if (name == "infer_shapes") return nullptr;  // they depend on how long the states are
  static constexpr std::string_view kNames[] = {"truncate", "reset", "length", "get_states"};
  size_t op = 0;
  while (op < std::size(kNames) && name != kNames[op]) ++op;
  if (op == std::size(kNames)) return NativeRunner::GetFunction(name, self);
  return PackedFunc([this, self, op](Args args, RetValue* rv) {
    runtime::ExecutorLock lock(&busy_);
    switch (op) {
      case 0:
        return Forget(args[0].As<int64_t>());
      case 1:
        return Reset();
      case 2:
        *rv = length_;
        return;
      default:
        *rv = StateNames();
    }
  });
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
