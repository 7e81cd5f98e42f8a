// SPDX-License-Identifier: Apache-2.0
#include "runtime/native_runner.h"

#include <baton/runtime/step_clock.h>
#include <baton/support/text.h>

#include <algorithm>
#include <cstring>

namespace baton::runtime {
using support::Cat;

NativeRunner::NativeRunner(Module code, Device device) : code_(std::move(code)) {
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
  const auto symbol = [this](const std::string& name) {
    void* found = code_->GetSymbol(name.c_str());
    if (!found) throw InternalError(Cat("the module has no symbol `", name, "`"));
    return found;
  };
  entry_ = reinterpret_cast<EntryFunction>(symbol(desc_->entry));
  if (desc_->arena_bytes > (uint64_t(1) << 62)) throw ValueError("the model wants more memory than there is");
  arena_ = NDArray::Empty({static_cast<int64_t>(desc_->arena_bytes)}, DataType::UInt(8));
  unset_ = desc_->inputs.size();
  inputs_ = std::vector<Input>(unset_);
  for (size_t i = 0; i < unset_; ++i) inputs_[i].at = i;
  dynamic_ = &desc_->dynamic;
  if (dynamic_->defined()) {
    own_shapes_ = std::make_unique<ShapeFrame>(dynamic_, &desc_->inputs,
                                               reinterpret_cast<SizesFunction>(symbol(dynamic_->sizes)));
    shapes_ = own_shapes_.get();
  }
  outputs_ = std::vector<NDArray>(desc_->outputs.size());
  for (size_t i = 0; i < outputs_.size() && !shapes_; ++i) {
    outputs_[i] = NDArray::Empty(desc_->outputs[i].shape, desc_->outputs[i].dtype);
  }
  inputs_info_ = &desc_->inputs;
  outputs_info_ = &desc_->outputs;
  tree_ = &desc_->result_tree;
  io_ = std::vector<void*>(inputs_.size() + outputs_.size());
}

void NativeRunner::SetCopy(size_t i, const DLTensor* t) {
  Input& in = inputs_[i];
  if (shapes_) shapes_->SetInput(in.at, t->shape);
  // The array returned by get_input may still be referenced; its value must not change.
  if (!in.own.defined() || in.own.obj()->use_count() > (in.array.same_as(in.own) ? 2 : 1) ||
      !std::equal(t->shape, t->shape + t->ndim, in.own->shape)) {
    in.own = NDArray::Empty({t->shape, t->shape + t->ndim}, (*inputs_info_)[i].dtype);
  }
  in.own.CopyFrom(t);
  if (!in.array.defined()) --unset_;
  in.array = in.own;
  in.gone = false;
  io_[in.at] = in.own.data();
}

void NativeRunner::Bind(size_t i, const ArgValue& v, Keep keep) {
  const TensorInfo& want = (*inputs_info_)[i];
  if (!v.Is<DLTensor*>() || v.is_null()) [[unlikely]]
    FailInput(want, i, Cat("expected a tensor, got ", ValueKindName(v.raw())));
  const DLTensor* t = v.As<DLTensor*>();
  CheckTensor(want, i, t);
  const bool counted = v.type_code() == kBatonObject;
  if (keep == Keep::kCopy || !Usable(t) || !(counted || keep == Keep::kForCall)) return SetCopy(i, t);
  Input& in = inputs_[i];
  if (shapes_) shapes_->SetInput(in.at, t->shape);
  in.gone = false;
  if (!counted) {
    // Borrowed for the time of the call: used in place, and forgotten after it.
    if (in.array.defined()) ++unset_;
    in.array = NDArray();
    io_[in.at] = static_cast<char*>(t->data) + t->byte_offset;
    return;
  }
  if (!in.array.defined()) --unset_;
  in.array = v.As<NDArray>();
  io_[in.at] = in.array.data();
}

void NativeRunner::FailUnset() const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].array.defined()) continue;
    const TensorInfo& want = (*inputs_info_)[i];
    FailInput(want, i,
              Cat(inputs_[i].gone ? "an output took its memory; set it again, " : "it has not been set; ", "expected ",
                  TensorInfoString(want)));
  }
}

ObjectRef NativeRunner::Execute(const Args* args, const RunOptions& options) {
  if (args) {
    for (int i = 0; i < args->size(); ++i) {
      const auto at = static_cast<size_t>(i);
      if (keeps_) {
        Bind(at, (*args)[i], Keep::kForCall);
      } else {
        NativeRunner::Bind(at, (*args)[i], Keep::kForCall);  // saves a virtual call for each argument
      }
    }
  }
  if (unset_ && !args) [[unlikely]]
    FailUnset();
  ran_ = false;
  desc_->constants_file.RequireUnchanged();
  if (keeps_) ShapeKept();
  if (shapes_) UpdateShapes();
  if (keeps_) PlaceKept(options.given);
  void** io = io_.data() + desc_->inputs.size();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    // An output that the caller still holds keeps its value: this run writes into a new one.
    if ((!outputs_[i].defined() || outputs_[i].obj()->use_count() > 1) && (taken_.empty() || !taken_[i])) {
      outputs_[i] = NDArray::Empty(OutputShape(i), desc_->outputs[i].dtype);
    }
    io[i] = outputs_[i].data();
  }
  const int64_t* words = shapes_ ? shapes_->words() : nullptr;
  auto* arena = static_cast<uint8_t*>(arena_.data());
  const int32_t code = options.clock ? options.clock->Run(0, io_.data(), desc_->constants, arena, words)
                                     : entry_(io_.data(), desc_->constants, arena, words);
  if (code != 0) [[unlikely]]
    ThrowFromSlot();
  if (keeps_ && !options.profiled) CommitKept();
  ran_ = !(keeps_ && options.profiled);
  switch (options.want) {
    case Want::kNothing:
      return ObjectRef();
    case Want::kOutputs:
      return Array<NDArray>(outputs_);
    default:
      return ResultValue(*tree_, outputs_);
  }
}

std::unique_ptr<StepClock> NativeRunner::MakeClock(int rounds) {
  std::unique_ptr<StepClock> clock = MakeStepClock(desc_->steps, rounds);
  clock->AddGraph(code_, desc_->entry, entry_, desc_->dynamic.words);
  return clock;
}

void NativeRunner::GrowArena() {
  const uint64_t bytes = shapes_ ? shapes_->arena_bytes() : desc_->arena_bytes;
  if (bytes <= arena_.nbytes()) return;
  arena_ = NDArray::Empty({0}, DataType::UInt(8));  // given back before there is another
  try {
    arena_ = NDArray::Empty({static_cast<int64_t>(bytes)}, DataType::UInt(8));
  } catch (...) {
    if (shapes_) shapes_->Trim();  // a plan that memory does not hold is not kept
    throw;
  }
}

void NativeRunner::UpdateShapes() {
  if (!shapes_->Update(io_.data())) return;
  GrowArena();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].defined() && outputs_[i].shape() != OutputShape(i)) outputs_[i] = NDArray();
  }
}

void NativeRunner::Reserve(const std::vector<int64_t>& sizes) {
  if (shapes_) {
    shapes_->Reserve(sizes);
  } else if (!keeps_) {
    return;
  }
  GrowArena();
  std::memset(arena_.data(), 0, arena_.nbytes());  // pages come now, not with the first call
}

void NativeRunner::Trim() {
  if (!shapes_ && !keeps_) return;
  if (shapes_) shapes_->Trim();
  arena_ = NDArray::Empty({0}, DataType::UInt(8));
  for (NDArray& out : outputs_) out = NDArray();
  ran_ = false;
}

std::vector<int64_t> NativeRunner::Memory() const {
  int64_t outputs = 0;
  for (const NDArray& out : outputs_) outputs += out.defined() ? static_cast<int64_t>(out.nbytes()) : 0;
  return {static_cast<int64_t>(desc_->constants_bytes), static_cast<int64_t>(arena_.nbytes()), outputs,
          shapes_ ? static_cast<int64_t>(shapes_->num_plans()) : 0};
}

}  // namespace baton::runtime
