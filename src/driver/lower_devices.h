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

/// Annotations of a planned program go: what they say is in its copies and in the devices of parameters and result.
relay::Function WithoutAnnotations(const relay::Function& f);

/// `CanLowerGraph(main, &why, true)` must hold. `fallback`: the device of what nothing in the program decides.
LoweredDevices LowerDevices(const relay::Function& main, const std::vector<DeviceTarget>& targets, int64_t fallback);

}  // namespace baton::driver
