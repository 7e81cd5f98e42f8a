// SPDX-License-Identifier: Apache-2.0
// Which outputs of a lowered graph may lie in the memory of inputs that callers give away.
#pragma once

#include <baton/relay/expr.h>

#include <string>
#include <utility>
#include <vector>

namespace baton::driver {

/// Attribute of main: names of inputs that give their memory to an output.
inline constexpr const char* kDonated = "donate";
/// Attribute of a region: its inputs may give their memory to its outputs, each that can.
inline constexpr const char* kOverwrites = "overwrites";

/// An input or output of a graph.
struct DonationSide {
  std::string name;
  TensorType type;
  bool state = false;  ///< stays with its session
};
/// The reads and writes of a step of a graph: numbers of inputs, then of outputs behind them; -1 for other memory.
struct StepUse {
  relay::Function function;  ///< null: a copy
  std::vector<int> in, out;
};

/// For each donated input an output of as many bytes that is written once the input is dead: behind the last step that
/// reads it, or by that step where it reads each element before it writes there. `io`: the inputs, then the outputs.
/// Throws CompileError that says why an input has none.
std::vector<std::pair<int64_t, int64_t>> PairDonations(const Array<runtime::String>& names,
                                                       const std::vector<DonationSide>& io, size_t inputs,
                                                       const std::vector<StepUse>& steps);
/// The same of every input that has one.
std::vector<std::pair<int64_t, int64_t>> PairOverwrites(const std::vector<DonationSide>& io, size_t inputs,
                                                        const std::vector<StepUse>& steps);

}  // namespace baton::driver
