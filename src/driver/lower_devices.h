// SPDX-License-Identifier: Apache-2.0
// From a planned and fused main function to kernels for each device, and the steps that run them.
#pragma once

#include <baton/ir/module.h>
#include <baton/ir/target.h>
#include <baton/relay/expr.h>
#include <baton/runtime/executor.h>
#include <baton/vm/device_graph.h>

#include <utility>
#include <vector>

namespace baton::driver {

/// A kind of device and what code is made of for it.
struct DeviceTarget {
  int64_t type = 1;
  Target target;
};

struct LoweredDevices {
  IRModule host;     ///< PrimFuncs of the host's devices, with a function for each that steps call
  IRModule kernels;  ///< PrimFuncs of the other device, as they were before they became text
  vm::DeviceGraph graph;
  runtime::ExecutableDesc desc;                         ///< all but the constants' address; `graph` is its program
  std::vector<std::pair<uint64_t, NDArray>> constants;  ///< offset in the constant data, value
};

/// Parts of a program for one device that has code of its own. They share kernels and constants.
struct LoweredStretches {
  IRModule kernels;  ///< PrimFuncs, as they were before they became text
  vm::GraphDevice device;
  struct Stretch {
    std::vector<vm::GraphStep> steps;
    uint64_t arena_bytes = 0;
  };
  std::vector<Stretch> stretches;                       ///< in the order of the functions
  std::vector<std::pair<uint64_t, NDArray>> constants;  ///< offset in the device's constant data, value
};
/// `CanLowerGraph` must hold for each. Places are on device 0.
LoweredStretches LowerStretches(const std::vector<relay::Function>& graphs, const DeviceTarget& target);

/// Annotations of a planned program go: what they say is in its copies and in the devices of parameters and result.
relay::Function WithoutAnnotations(const relay::Function& f);

/// `CanLowerGraph(main, &why, true)` must hold. `fallback`: the device of what nothing in the program decides.
LoweredDevices LowerDevices(const relay::Function& main, const std::vector<DeviceTarget>& targets, int64_t fallback);

}  // namespace baton::driver
