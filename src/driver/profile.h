// SPDX-License-Identifier: Apache-2.0
// Times the kernels of a model one by one.
#pragma once

#include <baton/ir/target.h>
#include <baton/relay/expr.h>

#include <string>

namespace baton::driver {

/// Runs the steps of `main` (as GraphLowerer takes it) `rounds` times on `inputs` and times each. JSON:
///   threads, rounds, peak_gflops, bandwidth_gb (measured), total_us (the whole model), steps_us (the sum of the
///   steps), steps: in order, each with kernel, operators, source (ONNX node, or file:line), min_us, median_us, share
///   (of all steps), gflop, mb, gflops, roofline (the least time that this machine could take, as a share of min_us)
std::string ProfileModel(const relay::Function& main, const Target& target, const Array<NDArray>& inputs, int rounds);

}  // namespace baton::driver
