// SPDX-License-Identifier: Apache-2.0
// Times of the steps of a call, for profiles.
#pragma once

#include <baton/runtime/array.h>
#include <baton/runtime/executor.h>
#include <baton/runtime/module.h>
#include <baton/runtime/registry.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace baton::runtime {

/// The description of a model's steps for people (ExecutableDesc::steps) is JSON:
///   {"graphs": {SYMBOL: {"parts": [[SYMBOL, NUMBER OF STEPS], ...],
///                        "steps": [[KERNEL, OPERATORS, SOURCE, FLOPS, BYTES], ...]}},
///    "host": [[FUNCTION, WORD, SOURCE], ...]}
/// A graph's entry function runs its parts, which it may be itself. A part of several steps has a function
/// SYMBOL + kStepsSuffix, with the entry's parameters and the number of the step to run behind them. FLOPS and BYTES
/// are formulas in postfix, "s0 64 * s1 2 // +": numbers, words of `s`, and + - * / // (floor) % least most == < <= and
/// ? (condition, value where it holds, other value); in float64, empty where they are not known. "host" tells where
/// calls of host functions in bytecode come from.
inline constexpr const char* kStepsSuffix = ".steps";
using StepFunction = int32_t (*)(void** io, const uint8_t* constants, uint8_t* arena, const int64_t* s, int64_t step);

/// Runs graphs step by step and adds up times. A call that takes no clock costs what it costs without this class, which
/// libbaton_vm has: the runtime loads it for a profile.
class StepClock {
 public:
  virtual ~StepClock() = default;

  /// Notes a graph of `code`; they are numbered as they come. `entry` is null for a device's row of steps, which the
  /// caller runs. Its `s` has `words` words.
  virtual void AddGraph(const Module& code, const std::string& symbol, EntryFunction entry, int32_t words) = 0;

  /// In place of the entry function of a graph, with its parameters and its value.
  virtual int32_t Run(size_t graph, void** io, const uint8_t* constants, uint8_t* arena, const int64_t* s) = 0;
  /// Seconds, of a monotonic clock.
  static double Now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  /// Adds what was spent since `begin` to a step of a graph, whose words are `s`.
  virtual void AddStep(size_t graph, size_t step, double begin, const int64_t* s) = 0;
  /// Adds what was spent since `begin` to the instruction at a word of a function of bytecode.
  virtual void AddHost(const std::string& name, int64_t function, int64_t at, double begin) = 0;

  /// Calls `call(self, null)` and `call(self, this)` in turns, one of each a round. Returns the value of the last call.
  virtual ObjectRef Rounds(ObjectRef (*call)(void* self, StepClock* clock), void* self) = 0;
  /// [steps as above, or ""; rows; rounds; `value`]. Rows come in the order in which they ran first, each [GRAPH, STEP,
  /// COUNT, -1, -1, FLOPS, BYTES] or [HOST FUNCTION, -1, COUNT, FUNCTION, WORD, -1, -1], with the count, the operations
  /// and the bytes of one call, which are negative where they are not known. Step -1 is a whole graph that tells
  /// nothing of its steps. A round has the seconds of the plain call, of the one with the clock, and of its rows.
  virtual Array<Any> Answer(const ObjectRef& value) const = 0;
};

/// `steps`: as above; empty: graphs are one step each. Throws ValueError for less than one round.
inline std::unique_ptr<StepClock> MakeStepClock(std::string_view steps, int rounds) {
  void* made = FunctionBeside("vm.StepClock", "libbaton_vm.so", "it is profiled")(String(std::string(steps)), rounds)
                   .As<void*>();
  return std::unique_ptr<StepClock>(static_cast<StepClock*>(made));
}

}  // namespace baton::runtime
