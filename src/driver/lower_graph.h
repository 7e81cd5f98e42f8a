// SPDX-License-Identifier: Apache-2.0
// From a fused main function to loop programs: one a distinct group, and an entry that calls them over one arena.
#pragma once

#include <baton/ir/module.h>
#include <baton/ir/target.h>
#include <baton/relay/expr.h>
#include <baton/runtime/executor.h>

#include <string>
#include <vector>

namespace baton::driver {

struct LoweredModel {
  IRModule mod;                                         ///< PrimFuncs: kernels and the entry
  runtime::ExecutableDesc desc;                         ///< all but the constants' address
  std::vector<std::pair<uint64_t, NDArray>> constants;  ///< offset in the constant data, value
  int num_kernels = 0, num_calls = 0;
};

/// True if main is dataflow of primitive functions and views over static tensors, so that it can become one function.
/// Else `*why` says what stands in the way.
bool CanLowerGraph(const relay::Function& main, std::string* why);
LoweredModel LowerGraph(const relay::Function& main, const Target& target);

}  // namespace baton::driver
