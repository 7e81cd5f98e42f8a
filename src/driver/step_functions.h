// SPDX-License-Identifier: Apache-2.0
// The steps of compiled graphs: functions that run one alone, and what people are told of them. See
// runtime/step_clock.h.
#pragma once

#include <baton/ir/module.h>
#include <baton/tir/stmt.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "driver/roofline.h"

namespace baton::driver {

/// A call of a kernel, or a copy.
struct ModelStep {
  std::string kernel, operators, source;
  std::string flops, bytes;  ///< as Postfix gives them
};
struct GraphSteps {
  std::string symbol;
  std::vector<std::pair<std::string, size_t>> parts;  ///< functions that the entry is made of, with their steps
  std::vector<ModelStep> steps;
};
/// A call of a host function in bytecode.
struct HostStep {
  int32_t function = 0, at = 0;  ///< the instruction's first word
  std::string source;
};

/// A formula of numbers and of words that hold variables, in float64 as runtime/step_clock.h has it; empty where an
/// extent is not known, or the formula has operations that others do not need.
std::string Postfix(const PrimExpr& formula, const std::function<int32_t(const tir::Var&)>& word_of);
/// As ExecutableDesc::steps has it; "" where nothing is known.
std::string StepsText(const std::vector<GraphSteps>& graphs, const std::vector<HostStep>& host);

/// A part of an entry as a separate function, with further parameters for buffers of sizes.
tir::PrimFunc OfSteps(const tir::Stmt& steps, const Array<tir::Var>& params, const std::string& symbol);

/// The module with a function beside each part of an entry that runs one of its steps.
IRModule WithStepFunctions(const IRModule& mod);

}  // namespace baton::driver
