// SPDX-License-Identifier: Apache-2.0
#include "runtime/model_runner.h"

#include <baton/runtime/bytes.h>
#include <baton/runtime/params.h>
#include <baton/runtime/step_clock.h>
#include <baton/support/text.h>

#include <algorithm>
#include <cstring>

namespace baton::runtime {
using support::Cat;
namespace {

/// The functions, in the order of their names.
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
  kLoadParams,
  kReserve,
  kTrim,
  kGetMemory,
  kInferShapes,
  kBegun,
  kGetDims,  // and behind it, what never changes and needs no lock
  kGetDonated,
  kQuery
};
/// Their names, each with an end, then those of the queries. One text: an array of names costs 40 bytes each to load.
constexpr char kNames[] =
    "run\0run_with\0call\0call_given\0profile\0set_input\0set_input_zero_copy\0get_output\0get_input\0load_params\0"
    "reserve\0trim\0get_memory\0infer_shapes\0begun\0get_dims\0get_donated\0"
    "get_num_inputs\0get_num_outputs\0get_input_index\0get_input_name\0get_output_name\0get_input_info\0"
    "get_output_info\0";

/// The index of an input or output given by index or name. `kind` is "input" or "output", for the IndexError
/// or KeyError.
size_t FindTensor(const ArgValue& v, const std::vector<TensorInfo>& list, const char* kind) {
  if (v.type_code() == kBatonInt) {
    const int64_t i = v.As<int64_t>();
    if (i < 0 || i >= static_cast<int64_t>(list.size())) {
      throw Error("IndexError", Cat("there is no ", kind, " ", i, ": the model has ", list.size()));
    }
    return static_cast<size_t>(i);
  }
  const std::string name = v.As<std::string>();
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) return i;
  }
  std::string known;
  for (size_t i = 0; i < list.size() && i < 20; ++i) known += Cat(i ? ", `" : "`", list[i].name, "`");
  throw Error("KeyError",
              Cat("the model has no ", kind, " `", name, "`; it has ", known, list.size() > 20 ? ", ..." : ""));
}

/// Answers a query. Shapes have -1 for a dynamic extent.
void AnswerQuery(int query, const std::vector<TensorInfo>& inputs, const std::vector<TensorInfo>& outputs, Args args,
                 RetValue* rv) {
  const auto tensor = [&](bool out) -> const TensorInfo& {
    const std::vector<TensorInfo>& list = out ? outputs : inputs;
    return list[FindTensor(args[0], list, out ? "output" : "input")];
  };
  switch (query) {
    case 0:
    case 1:
      *rv = (query ? outputs : inputs).size();
      return;
    case 2: {
      const std::string want = args[0].As<std::string>();
      int64_t found = -1;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].name == want) found = static_cast<int64_t>(i);
      }
      *rv = found;
      return;
    }
    case 3:
    case 4:
      *rv = tensor(query == 4).name;
      return;
    default: {
      const TensorInfo& t = tensor(query == 6);
      Array<Any> out;
      out.push_back(Any(t.name));
      out.push_back(Any(Array<int64_t>(t.shape)));
      out.push_back(Any(t.dtype));
      Array<String> extents;
      for (const std::string& e : t.extents) extents.push_back(String(e));
      out.push_back(Any(extents));
      *rv = out;
    }
  }
}

/// Four fields a dimension: name, least, largest, multiple.
Array<Any> DimFields(const std::vector<Dim>& dims) {
  Array<Any> fields;
  for (const Dim& d : dims) {
    fields.push_back(Any(d.name));
    for (int64_t bound : {d.min, d.max, d.multiple}) fields.push_back(Any(bound));
  }
  return fields;
}

std::vector<int64_t> NumbersOf(const ArgValue& v) { return v.As<Array<int64_t>>().ToVector(); }
void GiveNumbers(const std::vector<int64_t>& numbers, RetValue* rv) { *rv = Array<int64_t>(numbers); }

}  // namespace

ExecutorLock::ExecutorLock(std::atomic<bool>* busy) : busy_(busy) {
  if (busy && busy->exchange(true, std::memory_order_acquire)) [[unlikely]] {
    throw RuntimeError(
        "this executor is in use by another thread (or by itself, from a callback); make one for each thread, they "
        "share "
        "code and weights");
  }
}

void FailInput(const TensorInfo& info, size_t i, std::string_view what, std::string_view of) {
  throw ValueError(Cat("input ", i, " `", info.name, "`", of, ": ", what));
}

void CheckTensor(const TensorInfo& want, size_t i, const DLTensor* t, std::string_view of) {
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
  if (same) FailInput(want, i, "a tensor without data", of);
  if (t->ndim < 0 || t->ndim > 64 || (t->ndim && !t->shape)) FailInput(want, i, "not a tensor", of);
  FailInput(want, i, Cat("expected ", TensorInfoString(want), ", got ", TensorTypeString(t->shape, t->ndim, t->dtype)),
            of);
}

void ModelRunner::FailCount(int given) const {
  throw TypeError(Cat("the model has ", inputs_info_->size(), " inputs, got ", given));
}

Array<Any> ModelRunner::Profile(Args args) {
  const std::unique_ptr<StepClock> clock = MakeClock(args[0].As<int>());
  args = Args{args.values + 1, args.size() - 1};
  CheckCount(args);
  struct Bound {
    ModelRunner* self;
    const Args* args;
  } bound{this, &args};
  const auto call = [](void* given, StepClock* now) {
    const auto* b = static_cast<const Bound*>(given);
    RunOptions options = kPlain;
    options.want = Want::kValue;
    options.clock = now;
    options.profiled = true;
    return b->self->Execute(b->args, options);
  };
  const ObjectRef value = clock->Rounds(call, &bound);
  return clock->Answer(value);
}

std::vector<int64_t> ModelRunner::InferShapes(Args args) const {
  CheckCount(args);
  bool open = false;
  for (const TensorInfo& t : *outputs_info_) {
    open = open || t.dtype.is_handle() || std::count(t.shape.begin(), t.shape.end(), -1) > 0;
  }
  const bool known = shapes_ && dynamic_->extents.size() >= inputs_info_->size() + outputs_info_->size();
  if (dynamic_->reads_values || (open && !known)) {
    throw UnsupportedError("the shapes of the results depend on values, they are known after a call");
  }
  const std::unique_ptr<ShapeFrame> frame = shapes_ ? shapes_->Fresh() : nullptr;
  for (size_t i = 0; i < inputs_info_->size(); ++i) {
    const TensorInfo& want = (*inputs_info_)[i];
    std::vector<int64_t> shape = NumbersOf(args[static_cast<int>(i)]);
    int64_t data = 0;  // in place of elements, which are not read
    const DLTensor t{&data, Cpu(), static_cast<int>(shape.size()), want.dtype, shape.data(), nullptr, 0};
    CheckTensor(want, i, &t);
    if (frame) frame->SetInput(i, shape.data());
  }
  if (frame) frame->Update(nullptr);
  std::vector<int64_t> out;
  for (size_t i = 0; i < outputs_info_->size(); ++i) {
    std::vector<int64_t> shape = (*outputs_info_)[i].shape;
    if (known) frame->FillShape(inputs_info_->size() + i, &shape);
    out.push_back(static_cast<int64_t>(shape.size()));
    out.insert(out.end(), shape.begin(), shape.end());
  }
  return out;
}

constinit const ModelRunner::RunOptions ModelRunner::kPlain{};

void ModelRunner::Call(int op, Args args, RetValue* rv) {
  if (op >= kQuery) return AnswerQuery(op - kQuery, *inputs_info_, *outputs_info_, args, rv);
  ExecutorLock lock(op < kGetDims ? &busy_ : nullptr);
  switch (op) {
    case kCallGiven:
    case kRunWith:
    case kCall: {
      RunOptions options = kPlain;
      options.want = op == kRunWith ? Want::kOutputs : Want::kValue;
      if (op == kCallGiven) {
        options.given = static_cast<uint64_t>(args[0].As<int64_t>());
        args = Args{args.values + 1, args.size() - 1};
      }
      CheckCount(args);
      *rv = Execute(&args, options);
      begun_ = false;
      return;
    }
    case kProfile:
      *rv = Profile(args);
      begun_ = false;
      return;
    case kSetInput:
    case kSetInputZeroCopy:
      return Bind(FindTensor(args[0], *inputs_info_, "input"), args[1], op == kSetInput ? Keep::kCopy : Keep::kShare);
    case kGetOutput: {
      const ObjectRef out = Output(FindTensor(args[0], *outputs_info_, "output"));
      if (!out.defined()) throw RuntimeError("the model has not run yet: call run() before get_output()");
      *rv = out;
      if (args.size() > 1) {
        Downcast<NDArray>(out).CopyTo(args[1].As<DLTensor*>());
        *rv = args[1];
      }
      return;
    }
    case kGetInput:
      *rv = Bound(FindTensor(args[0], *inputs_info_, "input"));
      return;
    case kLoadParams: {
      const Map<String, NDArray> params = LoadParams(args[0].As<Bytes>().view(), "parameters");
      for (const auto& [key, value] : params) {
        const Any array(value);
        Bind(FindTensor(ArgValue(Any(key).raw()), *inputs_info_, "input"), ArgValue(array.raw()), Keep::kCopy);
      }
      return;
    }
    case kReserve:
      return Reserve(NumbersOf(args[0]));
    case kTrim:
      return Trim();
    case kGetMemory:
      return GiveNumbers(Memory(), rv);
    case kInferShapes:
      return GiveNumbers(InferShapes(args), rv);
    case kBegun:
      *rv = begun_;
      begun_ = false;
      return;
    case kGetDims:
      *rv = DimFields(dynamic_->dims);
      return;
    default:
      *rv = Donated();
  }
}

PackedFunc ModelRunner::GetFunction(std::string_view name, const ObjectPtr<Object>& self) {
  int op = kRun;
  const char* known = kNames;
  while (*known && name != known) {
    known += std::strlen(known) + 1;
    ++op;
  }
  if (!*known) return PackedFunc();
  // The function keeps the runner alive.
  if (op == kRun) {
    return PackedFunc([this, self](Args, RetValue*) {
      ExecutorLock lock(&busy_);
      Execute(nullptr, kPlain);
      begun_ = false;
    });
  }
  return PackedFunc([this, self, op](Args args, RetValue* rv) { Call(op, args, rv); });
}

}  // namespace baton::runtime
