// SPDX-License-Identifier: Apache-2.0
// Runs the functions of a program. One machine runs one call at a time; the program is shared.
#pragma once

#include <baton/runtime/step_clock.h>
#include <baton/vm/program.h>
#include <baton/vm/value.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace baton::vm {

class Machine {
 public:
  /// Finds the kernels' code; throws RuntimeError if some of it is missing.
  /// `devices`: one for each of the program's, the CPU first.
  Machine(std::shared_ptr<const Executable> executable, std::vector<Device> devices);
  const std::vector<Device>& devices() const { return devices_; }
  /// The value of a function. Calls nest on our stack: recursion of the program is bounded by memory alone,
  /// and refused with an error beyond kMaxFrames calls or kMaxRegisters live registers.
  /// `given`: arrays among `args` which the caller gives away, though it refers to each once.
  ObjectRef Run(int32_t function, std::vector<ObjectRef> args, std::vector<const Object*> given = {});
  const Program& program() const { return exe_->program; }
  /// Takes the times of what a call does, until it is null again. Its graphs are the program's kernels.
  void SetClock(runtime::StepClock* clock) { clock_ = clock; }
  void AddGraphs(runtime::StepClock* clock) const;

  // ---- Memory of kernels with sizes that come when the program runs.
  /// Takes it for the dimensions of these names, where a kernel depends on no others, and the pages of it; that of
  /// the kernels' results too.
  void Reserve(const std::map<std::string, int64_t>& dims);
  void Trim();
  uint64_t workspace_bytes() const;
  size_t num_plans() const;

 private:
  struct Frame {
    const Function* function;
    size_t pc, base;
    int32_t dst;  // of the caller
  };
  static constexpr size_t kMaxRegisters = size_t{1} << 27, kMaxFrames = size_t{1} << 23;

  /// A step of a kernel on a device with its own code.
  struct Step {
    PackedFunc code;  // null: a copy from args[0] to args[1]
    std::vector<BatonValue> args;
    std::vector<size_t> bound;  // arguments that differ from run to run
  };
  void PrepareSteps(size_t kernel);
  /// The arena of a device, with room for `bytes`.
  void GrowArena(size_t device, uint64_t bytes, runtime::ShapeFrame* shapes = nullptr);
  void Forget();  // what a call left
  void ReserveValues(const std::vector<bool>& known);
  void RunSteps(size_t kernel);
  /// Adds the time since `begin` to the row of an instruction.
  void NoteTime(const int32_t* at, const std::string& name, double begin) const;
  void* const* InputsOnHost(size_t count);
  /// The memory of an input in `held_` that a kernel's output may take; null where none has it to give.
  NDArray Overwritten(const Kernel& k, const int32_t* in, size_t output, const std::vector<int64_t>& shape) const;
  /// A new value's memory.
  NDArray Allocate(const std::vector<int64_t>& shape, DataType dtype, Device on);
  /// The value with its tensors on a device.
  ObjectRef Moved(const ObjectRef& value, Device on);
  /// The device of a kernel's memory between steps: code of the host takes that of the CPU.
  size_t ArenaOf(size_t kernel) const {
    return code_[kernel] ? 0 : static_cast<size_t>(exe_->program.kernels[kernel].device);
  }
  [[noreturn]] void TooDeep(const Function& f, size_t frames) const;
  [[noreturn]] void TooManyRounds(const Function& f) const;

  // An instruction each, which `at` points to, on the registers from `base` on. Members that return a size return words
  // that the instruction has.
  size_t RunKernel(const int32_t* at, size_t base);
  size_t RunPacked(const int32_t* at, size_t base);
  size_t MakeCopy(const int32_t* at, size_t base);
  size_t MakeTuple(const int32_t* at, size_t base);
  size_t MakeData(const int32_t* at, size_t base);
  size_t MakeClosure(const int32_t* at, size_t base);
  size_t TakeField(const int32_t* at, size_t base);
  size_t NewRef(const int32_t* at, size_t base);
  size_t ReadRef(const int32_t* at, size_t base);
  size_t WriteRef(const int32_t* at, size_t base);
  size_t MakeView(const int32_t* at, size_t base);
  bool IsTrue(const int32_t* at, size_t base);
  bool HasTag(const int32_t* at, size_t base);

  /// The place of a call: the function, its next instruction, its first register.
  struct Position {
    const Function* function;
    size_t pc, base;
    const int32_t* at() const { return function->code.data() + pc; }
  };
  void Call(const int32_t* at, Position* here);
  void TailCall(const int32_t* at, Position* here);
  void CallClosure(const int32_t* at, bool tail, Position* here);
  /// Begins `callee` with the arguments in moved_; its value goes to `dst` of the caller.
  void Enter(const Function& callee, int32_t dst, bool tail, Position* here);
  /// Back to the caller with the value; false where there is none.
  bool Return(ObjectRef* value, Position* here);

  ObjectRef& Reg(size_t base, int32_t r) { return regs_[base + static_cast<size_t>(r < 0 ? ~r : r)]; }
  /// The value of an operand; the register gives it up if this is its last use.
  ObjectRef Take(size_t base, int32_t r) {
    return r < 0 ? std::move(regs_[base + static_cast<size_t>(~r)]) : Reg(base, r);
  }
  void Release(size_t base, int32_t r) {
    if (r < 0) regs_[base + static_cast<size_t>(~r)] = ObjectRef();
  }

  std::shared_ptr<const Executable> exe_;
  std::vector<runtime::EntryFunction> code_;
  std::vector<Device> devices_;
  std::vector<NDArray> arenas_;                     // of each device; that of the CPU serves all code of the host
  std::vector<std::shared_ptr<NDArray>> uploaded_;  // constants of kernels
  std::vector<NDArray> constants_;                  // of the program, where they are wanted
  std::vector<std::unique_ptr<runtime::ShapeFrame>> shapes_;  // of each kernel; null for static ones
  std::vector<std::vector<Step>> steps_;                      // of each kernel
  std::vector<NDArray> pool_;                                 // memory of values of programs for several devices
  size_t next_pooled_ = 0;                                    // what goes if all of it is in use
  std::map<std::array<int32_t, 3>, NDArray> reserved_;        // for results: of function, register, device
  std::vector<ObjectRef> regs_;
  std::vector<Frame> frames_;
  std::vector<void*> io_, on_host_io_;
  std::vector<NDArray> on_host_;
  uint32_t kernels_run_ = 0;      // an interrupt is asked for now and then
  std::vector<ObjectRef> held_;   // values that live through one instruction
  std::vector<ObjectRef> moved_;  // arguments on their way to a callee
  std::vector<const Object*> given_;
  runtime::StepClock* clock_ = nullptr;
};

}  // namespace baton::vm
