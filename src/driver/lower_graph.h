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

/// Graphs that share kernels and constant data, an entry function each.
struct LoweredGraphs {
  IRModule mod;                                         ///< PrimFuncs: kernels and entries
  std::vector<runtime::ExecutableDesc> graphs;          ///< all but the constants' address
  std::vector<std::pair<uint64_t, NDArray>> constants;  ///< offset in the constant data, value
  uint64_t constants_bytes = 0;
};

struct LoweredModel {
  IRModule mod;                                         ///< PrimFuncs: kernels and the entry
  runtime::ExecutableDesc desc;                         ///< all but the constants' address
  std::vector<std::pair<uint64_t, NDArray>> constants;  ///< offset in the constant data, value
};

/// True if main is dataflow of primitive functions and views over static tensors, so that it can become one function.
/// Else `*why` says what stands in the way.
bool CanLowerGraph(const relay::Function& main, std::string* why);
LoweredModel LowerGraph(const relay::Function& main, const Target& target);
/// Several at once; entries are named by the strings. `CanLowerGraph` must hold for each.
LoweredGraphs LowerGraphs(const std::vector<std::pair<std::string, relay::Function>>& graphs, const Target& target);

/// Tensor types of a value, tuples flattened; false for other types or shapes that are not static.
bool FlattenType(const Type& type, std::vector<TensorType>* out);
std::vector<int64_t> ShapeOf(const TensorType& t);

}  // namespace baton::driver
