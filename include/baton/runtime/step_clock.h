// SPDX-License-Identifier: Apache-2.0
// Times of the steps of a call, for profiles.
#pragma once

#include <baton/runtime/array.h>
#include <baton/runtime/executor.h>
#include <baton/runtime/module.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::runtime {

/// What a model says of its steps, for people (ExecutableDesc::steps), is JSON:
///   {"graphs": {SYMBOL: {"parts": [[SYMBOL, NUMBER OF STEPS], ...],
///                        "steps": [[KERNEL, OPERATORS, SOURCE, FLOPS, BYTES], ...]}},
///    "host": [[FUNCTION, WORD, SOURCE], ...]}
/// A graph's entry function runs its parts, which it may be itself. A part of several steps has a function
/// SYMBOL + kStepsSuffix, with the entry's parameters and the number of the step to run behind them. FLOPS and BYTES
/// are negative where shapes are open. "host" tells where calls of host functions in bytecode come from.
inline constexpr const char* kStepsSuffix = ".steps";
using StepFunction = int32_t (*)(void** io, const uint8_t* constants, uint8_t* arena, const int64_t* s, int64_t step);

/// Runs graphs step by step and adds up times. A call that takes no clock costs what it costs without this class.
class BATON_DLL StepClock {
 public:
  /// `steps`: as above; empty: graphs are one step each.
  explicit StepClock(std::string_view steps, int rounds);

  /// Notes a graph of `code`; they are numbered as they come. `entry` is null for a device's row of steps, which the
  /// caller runs.
  void AddGraph(const Module& code, const std::string& symbol, EntryFunction entry);

  /// In place of the entry function of a graph, with its parameters and its value.
  int32_t Run(size_t graph, void** io, const uint8_t* constants, uint8_t* arena, const int64_t* s);
  /// Seconds, of a monotonic clock.
  static double Now();
  /// Adds what was spent since `begin` to a step of a graph.
  void AddStep(size_t graph, size_t step, double begin);
  /// Adds what was spent since `begin` to the instruction at a word of a function of bytecode.
  void AddHost(const std::string& name, int64_t function, int64_t at, double begin);

  /// Calls `call(null)` and `call(this)` in turns, one of each a round. Gives the value of the last call.
  template <class Call>
  auto Rounds(const Call& call) -> decltype(call(static_cast<StepClock*>(nullptr))) {
    decltype(call(static_cast<StepClock*>(nullptr))) value = call(nullptr);  // memory comes into being
    for (int r = 0; r < rounds_; ++r) {
      double begin = Now();
      value = call(nullptr);
      const double plain = Now() - begin;
      seconds_.emplace_back();
      begin = Now();
      value = call(this);
      rounds_done_.push_back({plain, Now() - begin});
    }
    return value;
  }
  /// [steps as above, or ""; rows; rounds; `value`]. Rows come in the order in which they ran first, each [GRAPH, STEP,
  /// COUNT, -1, -1] or [HOST FUNCTION, -1, COUNT, FUNCTION, WORD], with the count of one call. Step -1 is a whole graph
  /// that tells nothing of its steps. A round has the seconds of the plain call, of the one with the clock, and of its
  /// rows.
  Array<Any> Answer(const ObjectRef& value) const;

 private:
  struct Part {
    EntryFunction whole = nullptr;
    StepFunction steps = nullptr;  // null: one step, or unknown ones
    size_t first = 0, count = 1;
  };
  struct Graph {
    std::string symbol;
    std::vector<Part> parts;
    bool known = false;  // whether steps are told apart
    std::vector<size_t> rows;
  };
  struct Row {
    std::string name;
    int64_t step = -1, count = 0, function = -1, at = -1;
  };
  struct Round {
    double plain = 0, timed = 0;
  };
  size_t NewRow(Row row);
  void Add(size_t row, double seconds);

  std::string steps_;
  std::map<std::string, std::vector<std::pair<std::string, size_t>>> parts_;  // of each graph
  int rounds_;
  std::vector<Graph> graphs_;
  std::vector<Row> rows_;
  std::map<std::pair<int64_t, int64_t>, size_t> host_;  // rows, by function and word
  std::vector<std::vector<double>> seconds_;            // of each round, by row
  std::vector<Round> rounds_done_;
};

}  // namespace baton::runtime
