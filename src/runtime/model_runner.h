// SPDX-License-Identifier: Apache-2.0
// How a model is called: binding of inputs, checks, shapes, memory and queries, common to all models. Code is run
// in one of two ways: NativeRunner calls an entry function (native_runner.h), the virtual machine runs bytecode
// (libbaton_vm). libbaton_runtime and libbaton_vm each compile these classes for themselves, hidden: their symbols,
// exported, would cost a deployed model's library 4 KB.
#pragma once

#include <baton/runtime/array.h>
#include <baton/runtime/dynamic_shapes.h>
#include <baton/runtime/executor.h>
#include <baton/runtime/executor_queries.h>
#include <baton/runtime/module.h>
#include <baton/runtime/ndarray.h>

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

namespace baton::runtime {

class StepClock;

/// Guards against concurrent calls. Throws RuntimeError if `busy` is set: waiting would not help, since results of two
/// callers would still be mixed up. A null `busy` checks nothing.
class ExecutorLock {
 public:
  explicit ExecutorLock(std::atomic<bool>* busy);
  ~ExecutorLock() {
    if (busy_) busy_->store(false, std::memory_order_release);
  }
  ExecutorLock(const ExecutorLock&) = delete;
  ExecutorLock& operator=(const ExecutorLock&) = delete;

 private:
  std::atomic<bool>* busy_;
};

/// Throws ValueError: "input I `NAME`: ..."; `of` follows the name.
[[noreturn]] void FailInput(const TensorInfo& info, size_t i, std::string_view what, std::string_view of = {});
/// Throws ValueError unless `t` has the dtype and shape of `want`, input number `i`, and data where it has elements.
void CheckTensor(const TensorInfo& want, size_t i, const DLTensor* t, std::string_view of = {});

class ModelRunner : public ModuleNode {
 public:
  /// The functions of executor.h, which a model of any kind has. They keep the runner alive, and refuse a second
  /// thread.
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override;

 protected:
  /// How an input is bound.
  enum class Keep {
    kForCall,  ///< memory of the caller's is used in place, and forgotten after the call
    kShare,    ///< an array is referred to; other memory is copied
    kCopy,     ///< copied
  };
  enum class Want { kNothing, kOutputs, kValue };
  struct RunOptions {
    Want want = Want::kNothing;
    uint64_t given = 0;          ///< a bit for each donated input: whether the caller gives its argument away
    StepClock* clock = nullptr;  ///< takes the times of the steps
    bool profiled = false;       ///< a call of a profile, which leaves states as they are
  };

  static const RunOptions kPlain;  // copied and not made: code for size clears a record slowly

  // The interface of what runs the code.
  /// Binds input `i` to an argument, which it checks.
  virtual void Bind(size_t i, const ArgValue& v, Keep keep) = 0;
  /// Runs the model; returns the result as `want` says, or null. `args`: one for each input, bound for this call alone;
  /// null: runs on what is bound.
  virtual ObjectRef Execute(const Args* args, const RunOptions& options) = 0;
  /// Returns what input `i` is bound to, or null.
  virtual ObjectRef Bound(size_t i) const = 0;
  /// Returns output `i` of the latest run, or null where there was none.
  virtual ObjectRef Output(size_t i) const = 0;
  /// Takes memory for dimensions of these sizes, one for each in order.
  virtual void Reserve(const std::vector<int64_t>& sizes) = 0;
  /// Gives memory back that grew with the shapes of past calls.
  virtual void Trim() = 0;
  /// Returns bytes of constants, workspace and outputs, the number of plans, and what the kind of model adds.
  virtual std::vector<int64_t> Memory() const = 0;
  /// Returns a clock that knows the model's graphs.
  virtual std::unique_ptr<StepClock> MakeClock(int rounds) = 0;
  /// Returns the names of each donated input and of the output that takes its memory.
  virtual Array<Any> Donated() const { return {}; }

  /// Throws TypeError unless there are as many arguments as inputs.
  void CheckCount(const Args& args) const {
    if (args.size() != static_cast<int>(inputs_info_->size())) [[unlikely]]
      FailCount(args.size());
  }

  // Set by the constructor of the implementation, which owns them. Null inputs: nothing can be called by these
  // functions.
  const std::vector<TensorInfo>* inputs_info_ = nullptr;   // what a caller gives
  const std::vector<TensorInfo>* outputs_info_ = nullptr;  // what a caller gets
  const DynamicShapes* dynamic_ = nullptr;
  ShapeFrame* shapes_ = nullptr;  // of a model with dynamic shapes
  /// Whether a call that failed since had begun to take what it was given.
  bool begun_ = false;
  std::atomic<bool> busy_{false};

 private:
  void Call(int op, Args args, RetValue* rv);
  [[noreturn]] void FailCount(int given) const;
  Array<Any> Profile(Args args);
  /// Shapes of the outputs for shapes of all inputs: rank and extents of one after the other.
  std::vector<int64_t> InferShapes(Args args) const;
};

}  // namespace baton::runtime
