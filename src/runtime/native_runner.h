// SPDX-License-Identifier: Apache-2.0
// Runs a model that is one entry function.
#pragma once

#include "runtime/model_runner.h"

namespace baton::runtime {

/// Members that no call reaches are cold: the file is compiled for speed, they for size.
class NativeRunner : public ModelRunner {
 public:
  /// Throws ValueError where `code` holds no model, RuntimeError where it does not run on this machine or device.
  [[gnu::cold]] NativeRunner(Module code, Device device);
  ~NativeRunner() override = default;
  const char* type_key() const override { return "executor"; }

 protected:
  void Bind(size_t i, const ArgValue& v, Keep keep) override;
  ObjectRef Execute(const Args* args, const RunOptions& options) override;
  ObjectRef Bound(size_t i) const override { return inputs_[i].array; }
  ObjectRef Output(size_t i) const override { return ran_ ? ObjectRef(outputs_[i]) : ObjectRef(); }
  [[gnu::cold]] void Reserve(const std::vector<int64_t>& sizes) override;
  [[gnu::cold]] void Trim() override;
  [[gnu::cold]] std::vector<int64_t> Memory() const override;
  [[gnu::cold]] std::unique_ptr<StepClock> MakeClock(int rounds) override;

  // Hooks of a model that keeps memory from call to call, which sets `keeps_` (libbaton_vm has it).
  /// Before sizes are computed: tells `shapes_` and `io_` of inputs that no caller gives.
  virtual void ShapeKept() {}
  /// After it: places outputs. `given`: as of RunOptions.
  virtual void PlaceKept(uint64_t /*given*/) {}
  /// After a call that succeeded.
  virtual void CommitKept() {}

  struct Input {
    NDArray array;      // what is read; null until it is set, and where memory is lent for a call
    NDArray own;        // our buffer for copies, made when first needed
    size_t at = 0;      // among the inputs of the code
    bool gone = false;  // an output took its memory
  };
  /// Makes the arena as large as the latest plan asks for.
  [[gnu::cold]] void GrowArena();
  std::vector<int64_t> OutputShape(size_t i) const {
    std::vector<int64_t> shape = desc_->outputs[i].shape;
    if (shapes_) shapes_->FillShape(desc_->inputs.size() + i, &shape);
    return shape;
  }
  /// Says which inputs and outputs of the code a caller gives and gets, where these are not all of them.
  void SetCallers(const std::vector<TensorInfo>* given, const std::vector<size_t>& at,
                  const std::vector<TensorInfo>* told) {
    inputs_info_ = given;
    outputs_info_ = told;
    unset_ = at.size();
    inputs_.resize(at.size());
    for (size_t i = 0; i < at.size(); ++i) inputs_[i].at = at[i];
    outputs_.resize(told->size());
  }

  Module code_;
  const ExecutableDesc* desc_;
  const std::vector<int64_t>* tree_;  // of the results
  std::vector<Input> inputs_;         // of a caller
  std::vector<NDArray> outputs_;      // of a caller
  std::vector<void*> io_;             // of the code
  std::vector<uint8_t> taken_;        // of each output, whether it is in an input's memory; empty: none ever
  size_t unset_;                      // inputs without an array
  bool ran_ = false, keeps_ = false;

 private:
  void SetCopy(size_t i, const DLTensor* t);
  [[gnu::cold]] void FailUnset() const;
  void UpdateShapes();
  bool Usable(const DLTensor* t) const {
    const uintptr_t p = reinterpret_cast<uintptr_t>(t->data) + t->byte_offset;
    return t->device.device_type == kDLCPU && p % desc_->io_alignment == 0 && IsContiguous(t);
  }

  EntryFunction entry_;
  std::unique_ptr<ShapeFrame> own_shapes_;

 protected:
  NDArray arena_;
};

}  // namespace baton::runtime
