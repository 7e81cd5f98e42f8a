// SPDX-License-Identifier: Apache-2.0
// From a fused main function to PrimFuncs: one a distinct group, and an entry that calls them over one arena.
#pragma once

#include <baton/codegen/codegen.h>
#include <baton/ir/module.h>
#include <baton/ir/target.h>
#include <baton/relay/expr.h>
#include <baton/runtime/executor.h>
#include <baton/vm/program.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "driver/roofline.h"
#include "driver/step_functions.h"
#include "relay/expr/equal_constants.h"

namespace baton::driver {

inline constexpr const char* kDebugFile = "model.relay";

struct LowerOptions {
  codegen::DebugLevel debug = codegen::DebugLevel::kNames;  ///< kLines: instructions say which expression they are of
  std::string debug_file = kDebugFile;                      ///< the name of the text for expressions without a line
};

/// The constants of graphs, each once.
struct ConstantTable {
  std::vector<std::pair<uint64_t, NDArray>> list;  ///< offset in the constant data, value
  uint64_t bytes = 0;
  std::unordered_map<const Object*, size_t> index;
  relay::EqualArrays equal;

  /// The place of a value in `list`, which arrays of the same elements share.
  size_t Add(const NDArray& value);
};

/// Graphs that share kernels and constant data, an entry function each.
struct LoweredGraphs {
  IRModule mod;                                 ///< PrimFuncs: kernels and entries
  std::vector<runtime::ExecutableDesc> graphs;  ///< all but the constants' address
  ConstantTable constants;
  std::vector<GraphSteps> steps;  ///< of the graphs in order; none without debug information
  std::string debug_source;       ///< the text that debug information points into; empty if none was asked for
};

/// The same for a device that has its own code: rows of steps in place of entries.
struct LoweredRows {
  IRModule kernels;                             ///< PrimFuncs, as the device's backend takes them
  IRModule sizes;                               ///< functions of the host, of rows whose sizes come when they run
  std::vector<runtime::ExecutableDesc> graphs;  ///< all but the constants' address
  std::vector<std::vector<vm::KernelStep>> rows;
  std::vector<GraphSteps> steps;
  ConstantTable constants;
};

struct LoweredModel {
  IRModule mod;                  ///< PrimFuncs: kernels and the entry
  runtime::ExecutableDesc desc;  ///< all but the constants' address
  ConstantTable constants;
  std::string debug_source;
};

/// The module's @main; an error where it is not a Relay function.
relay::Function MainOf(const IRModule& mod);

/// Whether an input has an open extent, or values that sizes depend on.
bool IsDynamicGraph(const relay::Function& main);
/// True if main is dataflow of primitive functions and views over static tensors, so that it can become one function.
/// Else `*why` has the reason.
bool CanLowerGraph(const relay::Function& main, std::string* why);
LoweredModel LowerGraph(const relay::Function& main, const Target& target, const LowerOptions& options = {});
/// Several at once; entries are named by the strings. `CanLowerGraph` must hold for each.
LoweredGraphs LowerGraphs(const std::vector<std::pair<std::string, relay::Function>>& graphs, const Target& target,
                          const LowerOptions& options = {});
LoweredRows LowerRows(const std::vector<std::pair<std::string, relay::Function>>& graphs, const Target& target);

/// Tensor types of a value, tuples flattened; false for other types or shapes that are not static.
bool FlattenType(const Type& type, std::vector<TensorType>* out);
std::vector<int64_t> ShapeOf(const TensorType& t);
/// The tuples of a type, as ExecutableDesc::result_tree has them.
std::vector<int64_t> ResultTree(const Type& type);

}  // namespace baton::driver
