// SPDX-License-Identifier: Apache-2.0
// The passes between import and code, a line each.
#pragma once

#include <baton/ir/transform.h>

#include <string>

#include "driver/devices.h"
#include "driver/lower_to_tir.h"

namespace baton::driver {

/// Between import and LowerToTIR: to operators in groups, or where devices are planned to a program whose values have
/// devices; passes behind the plan run within LowerToTIR, on each region for its device.
transform::Pass RelayPipeline(const Targets& targets);
/// From there to PrimFuncs, through the TIR pipeline of each target's backend. `by_name`: each function of the program
/// can be called.
transform::Pass TIRPipeline(const Targets& targets, bool by_name = false);
/// Both, and what makes code behind them, for people: a line a pass, with its options.
std::string PipelineLines(const Targets& targets);

}  // namespace baton::driver
