// SPDX-License-Identifier: Apache-2.0
// A program for the virtual machine: bytecode for control flow, with compiled code for stretches of tensor work.
//
// A function is a list of 32-bit words: an instruction's number, then its operands. A register that is read for the
// last time is written `~r`: the machine lets go of its value. Jumps lead forward only, so that a function ends unless
// it calls itself for ever. Nothing here depends on the compiler.
#pragma once

#include <baton/runtime/executor.h>
#include <baton/runtime/module.h>
#include <baton/runtime/ndarray.h>
#include <baton/vm/devices.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace baton::vm {

/// Instructions with their operands. d: register that is written; s, r: registers that are read; n: how many follow.
enum class Opcode : int32_t {
  kMove,          ///< d s
  kConst,         ///< d constant
  kKernel,        ///< kernel n_in n_out s... d...
  kPacked,        ///< packed d n s...: a function of the host
  kCall,          ///< function d n s...
  kTailCall,      ///< function n s...
  kCallClosure,   ///< s d n s...
  kTailClosure,   ///< s n s...
  kReturn,        ///< s
  kJump,          ///< target
  kJumpIfFalse,   ///< s target
  kTuple,         ///< d n s...
  kData,          ///< d tag n s...
  kField,         ///< d s index: of a tuple or of data
  kJumpIfTagNot,  ///< s tag target
  kClosure,       ///< d function n s...: the first parameters of the function
  kRefNew,        ///< d s
  kRefRead,       ///< d s
  kRefWrite,      ///< s s: the cell, the value
  kView,          ///< d s view: the same elements in another shape
  kFail,          ///< message
  kCopy,          ///< d s device: the value with all its tensors there
  kNumOpcodes,
};

struct Function {
  std::string name;
  int32_t params = 0, registers = 0;
  std::vector<int32_t> code;
};

/// A kind of device that a program runs on.
struct ProgramDevice {
  int64_t type = 1;                                   ///< as in DLPack
  uint64_t constants_begin = 0, constants_bytes = 0;  ///< its part of the module's constants, for its own code
  std::string code;                                   ///< text of a module of that device; empty: code of the host
};

/// Where an argument of a step is.
struct StepPlace {
  enum Kind : int64_t { kIo, kConstant, kArena, kArenaWord, kWord };
  int64_t kind = kIo;
  int64_t at = 0;  ///< slot of an input, or of an output behind them; bytes from the begin; the word that says them; or
                   ///< the word whose value it is
};

/// The next step of a device with its own code in a kernel.
struct KernelStep {
  std::string symbol;  ///< of the device's code; empty: copy args[0] to args[1]
  std::vector<StepPlace> args;
  uint64_t bytes = 0;  ///< of a copy
  int32_t word = -1;   ///< that holds these bytes where sizes come when the program runs
};

/// A stretch of tensor work on one device, compiled: an EntryFunction (executor.h), or on a device that has code of its
/// own a row of steps. Extents of inputs and outputs may be open where `dynamic` says what they are.
struct Kernel {
  std::string symbol;
  std::vector<runtime::TensorInfo> inputs, outputs;
  uint64_t arena_bytes = 0;
  int32_t device = 0;             ///< where inputs and outputs lie, and the work is done
  std::vector<KernelStep> steps;  ///< empty: the entry function does it all
  runtime::DynamicShapes dynamic = {};
  std::string operators = {};      ///< for people
  std::vector<int32_t> over = {};  ///< pairs: an output may lie in the memory of an input that nothing else refers to
};

/// A function of the host over arrays: one of libbaton_host, by name with its parameters. It runs on the CPU.
struct PackedSlot {
  std::string name;  ///< for people
  PackedFunc function;
  int32_t device = 0;  ///< of the result
  std::string maker;   ///< global function that makes `function` of `params`: "host.topk"; empty: a function of this
                       ///< process, and the program cannot be saved
  std::string params;  ///< JSON (baton/host/function.h)
};

/// The movement of an instruction between devices, for people: `copy`, or a host function that runs elsewhere
/// than its arguments or its result are.
struct CopyNote {
  int32_t function = 0, at = 0;  ///< the instruction's first word
  std::string value, place;      ///< in the program that was compiled
  int32_t from = 0, to = 0;      ///< devices
  int64_t bytes = -1;            ///< -1: not known before it runs
  std::string formula;           ///< of the bytes, with `?` for extents that are open; empty for data types
  std::string because;
};

/// A function that can be called from outside. -1: any extent; the handle type: no tensor.
struct Entry {
  std::string name;
  int32_t function = 0;
  std::vector<runtime::TensorInfo> inputs, outputs;
  std::vector<int32_t> devices;  ///< that inputs are brought to; -1: left where they are. Empty: all of them
  /// Dimensions of the inputs; the extents of the outputs, too, where they follow from them.
  runtime::DynamicShapes dynamic = {};
  std::vector<int32_t> donated = {};  ///< inputs whose memory results may take, where a call gives it away
};

struct BATON_DLL Program {
  std::vector<Entry> entries;
  std::vector<Function> functions;
  std::vector<Kernel> kernels;
  std::vector<PackedSlot> packed;
  std::vector<NDArray> constants;
  std::vector<runtime::TensorInfo> views;
  std::vector<std::string> messages;
  /// For a program for several: the CPU first, which decides where control goes. Empty: the CPU alone.
  std::vector<ProgramDevice> devices;
  std::vector<int32_t> constant_devices;  ///< one for each of `constants`, or none: all on the CPU
  std::vector<CopyNote> copies;

  const Entry* Find(std::string_view name) const;
  size_t NumDevices() const { return devices.empty() ? 1 : devices.size(); }
  /// Throws RuntimeError for an operand, register, jump or function that is out of bounds.
  void Validate() const;
  /// JSON; constants are written to `*data` (aligned to 64 bytes each) and appear as offsets in it.
  /// `before`: bytes of other constants that lie in front of `data`.
  std::string Save(std::string* data, size_t before = 0) const;
  /// Reads what Save wrote, validated; `data` must outlive the program. Throws RuntimeError for anything else.
  static Program Load(std::string_view text, const uint8_t* data, uint64_t data_bytes, const ObjectRef& owner);
  /// The bytecode for people, a line an instruction.
  std::string Disassemble() const;

 private:
  std::string DeviceName(int32_t device) const;
};

/// Calls f(word, kind) for each operand of the instruction at `code[at]` and returns where the next one begins.
/// Throws RuntimeError if the instruction is cut or unknown.
enum class Operand {
  kRead,
  kWrite,
  kFunction,
  kKernel,
  kPacked,
  kConstant,
  kView,
  kMessage,
  kTarget,
  kDevice,
  kNumber
};
template <class F>
size_t ForEachOperand(std::vector<int32_t>& code, size_t at, F f);
BATON_DLL const char* OpcodeName(Opcode op);
/// The operands of an opcode: a letter each (d s f k p c v m t x i), then what repeats after a count.
BATON_DLL const char* OpcodeForm(Opcode op);
[[noreturn]] BATON_DLL void ThrowCutCode();

/// A program with its code. Immutable once made; executors share it.
struct Executable {
  Program program;
  Module code;  ///< has the kernels' symbols
  const uint8_t* constants = nullptr;
  uint64_t constants_bytes = 0;
  ObjectRef constants_owner;
  runtime::FileMark constants_file;  ///< each call asks whether it is as it was
  std::vector<Module> device_code;   ///< of each of the program's devices; null for those of the host
  std::string steps;                 ///< as ExecutableDesc::steps
};

/// An executor: the functions of runtime::CreateExecutor over the entry "main" (where extents may differ from run to
/// run), and `invoke(name, values...)`, the value of any entry. One thread at a time; make one for each thread.
BATON_DLL Module CreateExecutor(std::shared_ptr<const Executable> executable, const std::vector<Device>& devices = {});

template <class F>
size_t ForEachOperand(std::vector<int32_t>& code, size_t at, F f) {
  if (code[at] < 0 || code[at] >= static_cast<int32_t>(Opcode::kNumOpcodes)) ThrowCutCode();
  const char* form = OpcodeForm(static_cast<Opcode>(code[at++]));
  auto one = [&](char c) {
    if (at >= code.size()) ThrowCutCode();
    int32_t& w = code[at++];
    switch (c) {
      case 'd':
        f(w, Operand::kWrite);
        break;
      case 's':
        f(w, Operand::kRead);
        break;
      case 'f':
        f(w, Operand::kFunction);
        break;
      case 'k':
        f(w, Operand::kKernel);
        break;
      case 'p':
        f(w, Operand::kPacked);
        break;
      case 'c':
        f(w, Operand::kConstant);
        break;
      case 'v':
        f(w, Operand::kView);
        break;
      case 'm':
        f(w, Operand::kMessage);
        break;
      case 't':
        f(w, Operand::kTarget);
        break;
      case 'x':
        f(w, Operand::kDevice);
        break;
      default:
        f(w, Operand::kNumber);
    }
    return w;
  };
  int32_t counts[2] = {0, 0};
  int num_counts = 0;
  for (; *form && *form != '*'; ++form) {
    if (*form == 'n') {
      const int32_t n = one('n');
      if (n < 0 || static_cast<size_t>(n) > code.size()) ThrowCutCode();
      counts[num_counts++] = n;
    } else {
      one(*form);
    }
  }
  // "*s": as many as the count says; "*sd": for two counts.
  for (int c = 0; c < num_counts; ++c) {
    for (int32_t i = 0; i < counts[c]; ++i) one(form[1 + c]);
  }
  return at;
}

}  // namespace baton::vm
